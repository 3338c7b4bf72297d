"""The figures of MET-POSE: classic testing beside metamorphic testing, and landmarks that stray."""

from __future__ import annotations

import polars as pl

from instar.report.chart import (
    AXES,
    ROW,
    THRESHOLD_LINE,
    Chart,
    Spec,
    counts,
    curve_layers,
    dot_layers,
    drawn,
    index_axis,
    labelled,
    name_rows,
    rate_tooltip,
    share_axis,
    threshold_title,
    tooltip,
)
from instar.report.section import Section
from instar.tasks.met_pose.landmarks import Figure

# --- beside classic testing ------------------------------------------------------------------------

KINDS = {"both": "blue", "metamorphic only": "orange", "classic only": "pink", "neither": "line"}
"""Which testing a case may fail, and in which colour that is drawn."""


def classic_bars(table: pl.DataFrame, section: Section) -> Chart:
    """Cases that fail classic testing, metamorphic testing, both or neither, per threshold."""
    counted = table.select(
        "cases",
        pl.int_range(pl.len(), dtype=pl.Int32).alias("t"),
        *(pl.col(kind.replace(" ", "_")).alias(kind) for kind in KINDS),
    )
    long = labelled(
        counted.unpivot(list(KINDS), index=["t", "cases"], variable_name="kind", value_name="number"), section
    ).with_columns(
        rate=pl.col("number") / pl.col("cases"),
        count=pl.format("{}/{}", "number", "cases"),
        place=pl.col("kind").replace_strict({kind: n for n, kind in enumerate(KINDS)}, return_dtype=pl.Int32),
    )
    return Chart(
        "classic",
        "Which testing finds which cases",
        "Cases that fail metamorphic testing, classic testing, both or neither. The frame marks the current threshold.",
        drawn(240, section.start, _bar_layers(section), data={"name": "classic"}),
        {"classic": long.select("t", "threshold", "kind", "place", "rate", "count")},
        360,
    )


def _bar_layers(section: Section) -> list[Spec]:
    x: Spec = {
        "field": "threshold",
        "type": "ordinal",
        "sort": {"field": "t", "op": "min"},
        "axis": {"title": threshold_title(section), "labelAngle": 0, "ticks": False, "labelOverlap": True},
    }
    y: Spec = {**share_axis("cases"), "stack": "zero"}
    colour: Spec = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(KINDS), "range": [f"var(--{colour})" for colour in KINDS.values()]},
        "legend": {"title": None, "orient": "bottom", "symbolStrokeWidth": 0, "columns": 2},
    }
    tips = tooltip(("kind", "fail"), ("threshold", "threshold"), ("count", "cases"), ("rate", "share"))
    frame: Spec = {
        "type": "rect",
        "fill": None,
        "stroke": "var(--accent)",
        "strokeWidth": 2.5,
        "y": 0,
        "y2": {"expr": "height"},
        "tooltip": None,
    }
    return [
        {
            "mark": {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.7},
            "encoding": {"x": x, "order": {"field": "place"}, "y": y, "color": colour, "tooltip": tips},
        },
        {"transform": [{"filter": "datum.t === t && datum.place === 0"}], "mark": frame, "encoding": {"x": x}},
    ]


def classic_shares(table: pl.DataFrame, section: Section) -> Chart:
    """Precision and recall of metamorphic testing as a predictor of classic failure, per threshold."""
    numbered = table.with_columns(t=pl.int_range(pl.len(), dtype=pl.Int32))
    parts = [
        numbered.select(
            "t",
            pl.lit(name).alias("measure"),
            pl.col(name).alias("rate"),
            pl.col(f"{name}_low").alias("low"),
            pl.col(f"{name}_high").alias("high"),
            count=pl.format("{}/{}", "both", pl.col("both") + pl.col(rest)),
        )
        for name, rest in (("precision", "metamorphic_only"), ("recall", "classic_only"))
    ]
    long = labelled(pl.concat(parts), section).filter(pl.col("rate").is_not_null())
    return Chart(
        "precision-recall",
        "Precision and recall",
        "Metamorphic failure as a predictor of classic failure, with 95 % intervals.",
        drawn(240, section.start, _share_layers(section), data={"name": "shares"}),
        {"shares": long.select("t", "threshold", "measure", "rate", "low", "high", "count")},
        360,
    )


def _share_layers(section: Section) -> list[Spec]:
    x, y = index_axis(section), share_axis("precision, recall")
    colour: Spec = {
        "field": "measure",
        "type": "nominal",
        "scale": {"domain": ["precision", "recall"], "range": ["var(--blue)", "var(--orange)"]},
        "legend": {"title": None, "orient": "bottom"},
    }
    dash: Spec = {"field": "measure", "type": "nominal", "legend": None, "scale": {"range": [[1, 0], [6, 3]]}}
    tips = tooltip(("measure", "measure"), ("threshold", "threshold"), ("count", "cases"), ("rate", "share"))
    band, line, points = curve_layers(x, y, colour, tips, size=40, strokeDash=dash)
    current: Spec = {"transform": [{"filter": "datum.t === t"}], "encoding": {"x": x}}
    return [band, line, {**current, "mark": THRESHOLD_LINE}, points]


# --- landmarks -------------------------------------------------------------------------------------

LARGEST, WORST = 320, 10


def _of_rule(spec: Spec, rule: str) -> Spec:
    """A chart that also follows the parameter `rule`."""
    return {**spec, "params": [*spec["params"], {"name": "rule", "value": rule}]}


def _landmark_counts(table: pl.DataFrame) -> pl.DataFrame:
    return counts(table).select("rule", "landmark", "part", "t", "rate", "low", "high", "count", "interval")


def _slug(pose: Figure) -> str:
    """The part of a figure, as names of charts and tables have it."""
    return pose.part.replace(" ", "-")


def skeleton(table: pl.DataFrame, pose: Figure, section: Section, rule: str) -> Chart:
    """How often each landmark of a part strays, on a typical pose."""
    high, wide = float(pose.xy[:, 1].max()), float(pose.xy[:, 0].max())
    points = pl.DataFrame({"landmark": pose.landmarks, "x": pose.xy[:, 0], "y": pose.xy[:, 1]})
    place = {name: tuple(xy) for name, xy in zip(pose.landmarks, pose.xy.tolist(), strict=True)}
    edges = pl.DataFrame(
        [(*place[a], *place[b]) for a, b in pose.edges],
        orient="row",
        schema=dict.fromkeys(("x", "y", "x2", "y2"), pl.Float64),
    )
    spec = _of_rule(
        {
            **drawn(round(LARGEST * high) or 10, section.start, _skeleton_layers(pose, wide or 1, high or 1)),
            "width": round(LARGEST * wide) or 10,
            "autosize": "pad",
        },
        rule,
    )
    spec["padding"] = 10
    part = _slug(pose)
    return Chart(
        f"landmarks-{part}",
        pose.part.capitalize(),
        "A typical pose of this run. The larger and stronger a landmark is drawn, the more often it strays."
        + _sides(points),
        spec,
        {"landmarks": _landmark_counts(table), f"places-{part}": points, f"edges-{part}": edges},
        round(LARGEST * high) + 60,
    )


def _sides(points: pl.DataFrame) -> str:
    """On which side of the figure the left of the person is, where landmarks have sides."""
    left, right = (points.filter(pl.col("landmark").str.starts_with(side))["x"].mean() for side in ("left", "right"))
    if left is None or right is None:
        return ""
    return f" The person's left is on the {'right' if left > right else 'left'}."  # type: ignore[operator]


def _skeleton_layers(pose: Figure, wide: float, high: float) -> list[Spec]:
    large = 90 if len(pose.landmarks) < 60 else 20
    x: Spec = {"field": "x", "type": "quantitative", "axis": None, "scale": {"domain": [0, wide], "nice": False}}
    down: Spec = {"domain": [0, high], "nice": False, "reverse": True}
    y: Spec = {"field": "y", "type": "quantitative", "axis": None, "scale": down}
    mark: Spec = {"type": "point", "filled": True, "stroke": "var(--ink)", "strokeWidth": 0.8, "opacity": 1}
    places: Spec = {"data": {"name": f"places-{_slug(pose)}"}, "key": "landmark", "fields": ["x", "y"]}
    chosen: list[Spec] = [
        {"filter": "datum.t === t && datum.rule === rule && datum.rate !== null"},
        {"lookup": "landmark", "from": places},
        {"filter": "isValid(datum.x)"},
    ]
    size, opacity = (
        {"field": "rate", "type": "quantitative", "scale": {"domain": [0, 1], "range": ends}, "legend": None}
        for ends in ([large / 6, 2 * large], [0.05, 1])
    )
    tips = rate_tooltip(("landmark", "landmark"))
    landmarks: Spec = {"data": {"name": "landmarks"}, "transform": chosen}
    return [
        {
            "data": {"name": f"edges-{_slug(pose)}"},
            "mark": {"type": "rule", "color": "var(--other)", "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
        },
        {**landmarks, "mark": {**mark, "fill": "var(--paper)"}, "encoding": {"x": x, "y": y, "size": size}},
        {
            **landmarks,
            "mark": {**mark, "fill": "var(--orange)"},
            "encoding": {"x": x, "y": y, "size": size, "fillOpacity": opacity, "tooltip": tips},
        },
    ]


def worst_landmarks(table: pl.DataFrame, section: Section, rule: str) -> Chart:
    rows = min(WORST, table.filter(pl.col("judged") > 0)["landmark"].n_unique())
    tips = rate_tooltip(("landmark", "landmark"), ("part", "part"))
    spec = drawn(
        ROW * rows,
        section.start,
        dot_layers(name_rows("landmark"), {"value": "var(--orange)"}, "pairs in which the landmark strays", tips),
        data={"name": "landmarks"},
        transform=[
            {"filter": "datum.t === t && datum.rule === rule && datum.rate !== null"},
            {"window": [{"op": "row_number", "as": "order"}], "sort": [{"field": "rate", "order": "descending"}]},
            {"filter": f"datum.order <= {WORST}"},
        ],
    )
    return Chart(
        "landmarks-worst",
        "The landmarks that stray most often",
        f"These are the {rows} worst, with 95 % intervals and the counts of pairs.",
        _of_rule(spec, rule),
        {"landmarks": _landmark_counts(table)},
        ROW * rows + AXES,
    )
