"""The figures of the MET-POSE paper, drawn of one's own run: Figures 4 to 8 and Table II."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl

from instar.analysis import Run, coverage, has_comparable_truth, violated_counts
from instar.outputs.poses import Poses
from instar.report.chart import Chart, Spec, apart, curve_layers, share_axis, smaller, whole_names
from instar.report.limits import limit_words
from instar.report.panels import Choice, PaperFigure, Table, TaskTables
from instar.report.words import count_of, listed, percent, rate_text, threshold_text
from instar.skeleton import Skeleton
from instar.tasks.met_pose.beside_truth import classic_by_sets, left_out, left_out_sentences
from instar.tasks.met_pose.figures import KINDS
from instar.tasks.met_pose.rule_sets import ALL, NAMED, RuleSet, chosen_sets, own_relation
from instar.tasks.met_pose.suite import PAPER_BINS

_COLOURS = ("blue", "orange", "green", "pink", "violet", "sky", "yellow")
_READABLE = 30
"""So many rules are a matrix whose cells have room for their numbers."""
_SMALL, _LARGE = 12, 26
"""Pixels of a cell."""
_HANDS = "hands"
"""The landmark group of Figure 5."""


def _threshold_axis(unit: str) -> Spec:
    axis: Spec = {"title": f"threshold in {unit}", "labelAngle": 0, "labelOverlap": True, "ticks": False}
    return {"field": "threshold", "type": "ordinal", "sort": {"field": "t", "op": "min"}, "axis": axis}


def _labelled(table: pl.DataFrame) -> pl.DataFrame:
    """With the place of each threshold, and the threshold as text."""
    places = {value: number for number, value in enumerate(table["threshold"].unique(maintain_order=True))}
    return table.with_columns(
        t=pl.col("threshold").replace_strict(places, return_dtype=pl.Int32),
        threshold=pl.Series([threshold_text(value) for value in table["threshold"]], dtype=pl.String),
    )


# --- Figures 4 and 5: failing cases against the threshold --------------------------------------------


def _curves(runs: Sequence[Run], choice: Choice, *, usual: Sequence[str], hands: bool = False) -> TaskTables:
    (run,) = runs
    relation, judging = own_relation(run), choice.judging
    if hands:
        judging = _judged_by_hands(run, judging)
    sets, notes = chosen_sets(run, choice.rules, usual)
    by_name = {each.name: each.rules for each in sets}
    frame = run.curves(relation, sets=by_name, judging=judging).rename({"group": "set"})
    unit = run.units(judging)[relation]
    rows = [
        [threshold_text(limit), *(rate_text(*row) for row in part.select("rate", "low", "high").iter_rows())]
        for limit, part in ((limit, part) for (limit,), part in frame.group_by("threshold", maintain_order=True))
    ]
    judged = frame.unique("set", maintain_order=True)["judged"]
    heads = [f"{name}, {count_of(cases, 'case')}" for name, cases in zip(by_name, judged, strict=True)]
    what = "Cases that violate at least one rule" + (", by the landmarks of hands" if hands else "")
    table = Table(f"{what}, by threshold in {unit}, with 95 % intervals", ["threshold", *heads], rows)
    return TaskTables([table], {"curves": frame}, after=notes, chart=_curve_chart(frame, list(by_name), unit, what))


def _judged_by_hands(run: Run, judging: str) -> str:
    """The same judging by the landmarks of hands; its verdicts are made where they are not there."""
    header = run.manifest.output or {}
    if header.get("kind") != Poses.kind:
        raise ValueError(f"{run.folder} has no poses, whose hands could be judged")
    bones = Skeleton.from_dict(header["skeleton"])
    there = [*(part.name for part in bones.parts), *bones.groups]
    if _HANDS not in there:
        raise ValueError(
            f"this figure needs the landmark group {_HANDS}, and the skeleton {bones.name} of {run.folder} has none; "
            f"it has {listed(there, 12)}. Figure 4 shows the same by the landmarks that it has; for hands, test a "
            f"system whose skeleton has them, such as mediapipe-holistic, or name the group {_HANDS} in your skeleton"
        )
    return run.judge(**{**run.judging(judging).options, "landmarks": _HANDS})


def _curve_chart(frame: pl.DataFrame, names: Sequence[str], unit: str, what: str) -> Chart:
    colour: Spec = {
        "field": "set",
        "type": "nominal",
        "sort": list(names),
        "scale": {"domain": list(names), "range": [f"var(--{_COLOURS[n % len(_COLOURS)]})" for n in range(len(names))]},
        "legend": whole_names(names, symbolType="stroke"),
    }
    x, y = _threshold_axis(unit), share_axis("cases that violate at least one rule")
    band, line, points = curve_layers(x, y, colour, [], size=40, **apart("set", names))
    points["encoding"]["size"] = smaller("set", names)
    return Chart(
        "curves",
        what,
        "For each set of rules the share of cases that violate at least one of them, with 95 % intervals.",
        {"width": "container", "height": 300, "layer": [band, line, points], "data": {"name": "curves"}},
        {"curves": _labelled(frame)},
        380,
    )


# --- Figure 6: beside classic testing ----------------------------------------------------------------

_HEADS = {"both": "both", "classic_only": "classic only", "metamorphic_only": "metamorphic only", "neither": "neither"}


def _classic(runs: Sequence[Run], choice: Choice) -> TaskTables:
    (run,) = runs
    if not has_comparable_truth(run, choice.judging):
        raise ValueError(
            f"{run.folder} has no ground truth that its answers can be compared with; classic testing needs annotated "
            "cases"
        )
    relation = own_relation(run)
    sets, notes = chosen_sets(run, choice.rules, (ALL, *NAMED))
    frame = classic_by_sets(run, sets, run.grids()[relation], choice.judging)
    omitted, unit = left_out(run, sets, choice.judging), run.units(choice.judging)[relation]
    heads = ["threshold", *_HEADS.values(), "precision", "recall"]
    what = "cases that fail, by threshold in"
    tables = [
        Table(f"{name}: {what} {unit}; precision and recall of classic failure", heads, _rows(part))
        for (name,), part in frame.group_by("set", maintain_order=True)
    ]
    frames = {"classic": frame, "left out": omitted}
    after = [*left_out_sentences(omitted), *notes]
    return TaskTables(tables, frames, after=after, chart=_classic_chart(frame, sets, unit, " ".join(after)))


def _rows(frame: pl.DataFrame) -> list[list[str]]:
    return [
        [
            threshold_text(row["threshold"]),
            *(f"{row[name]:,}" for name in _HEADS),
            *(rate_text(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in ("precision", "recall")),
        ]
        for row in frame.iter_rows(named=True)
    ]


def _classic_chart(frame: pl.DataFrame, sets: Sequence[RuleSet], unit: str, omitted: str) -> Chart:
    places = {kind: number for number, kind in enumerate(KINDS)}
    long = (
        _labelled(frame)
        .rename(_HEADS)
        .unpivot(list(KINDS), index=["set", "t", "threshold", "cases"], variable_name="kind", value_name="number")
        .with_columns(
            rate=pl.when(pl.col("cases") > 0).then(pl.col("number") / pl.col("cases")),
            place=pl.col("kind").replace_strict(places, return_dtype=pl.Int32),
        )
    )
    colour: Spec = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(KINDS), "range": [f"var(--{colour})" for colour in KINDS.values()]},
        "legend": {"title": None, "orient": "bottom", "symbolStrokeWidth": 0, "columns": 4},
    }
    facet: Spec = {
        "field": "set",
        "type": "nominal",
        "sort": [each.name for each in sets],
        "columns": 1 if len(sets) == 1 else 2,
        "header": {"title": None, "labelFontSize": 13, "labelColor": "var(--ink)"},
    }
    encoding = {
        "x": _threshold_axis(unit),
        "y": {**share_axis("compared cases"), "stack": "zero"},
        "color": colour,
        "order": {"field": "place"},
        "facet": facet,
    }
    mark = {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.7}
    return Chart(
        "classic",
        "Which testing finds which cases",
        "Cases that fail metamorphic testing with a set of rules, classic testing, both or neither. " + omitted,
        {"width": 340, "height": 200, "mark": mark, "encoding": encoding, "data": {"name": "classic"}},
        {"classic": long},
        600,
    )


# --- Figures 7 and 8: which rule covers which ----------------------------------------------------------


def _covered(runs: Sequence[Run], choice: Choice, *, motion: bool = False) -> TaskTables:
    (run,) = runs
    relation = own_relation(run)
    if motion and not choice.rules:
        rules = run.families(relation).get("motion", [])
        if len(rules) < 2:
            raise ValueError(
                f"{run.folder} has {'one rule' if rules else 'no rule'} of motion blur, and two at least cover each "
                "other; name other rules"
            )
    else:
        usual = "sub" if len(chosen_sets(run, (), ("sub", ALL))[0][0].rules) > 1 else ALL
        sets, _ = chosen_sets(run, choice.rules, (usual,))
        rules = list(dict.fromkeys(rule for each in sets for rule in each.rules))
    limits = run.thresholds(choice.threshold)
    names = dict(run.rules().select("rule", "name").iter_rows())
    table = coverage(run.severities(choice.judging), {rule: limits[rule] for rule in rules})
    table = table.with_columns(pl.col("of", "by").replace(names))
    limit = limit_words(run, threshold=choice.threshold, judging=choice.judging)
    chart = _coverage_chart(table, limit)
    return TaskTables([_coverage_rows(table, limit)], {"coverage": table}, chart=chart)


def _coverage_rows(table: pl.DataFrame, limit: str) -> Table:
    """A matrix is too wide for a terminal: of every rule the one that covers it best."""
    rows = []
    for (name,), part in table.group_by("of", maintain_order=True):
        own = int(part.filter(by=name)["violated"][0])
        others = part.filter((pl.col("by") != name) & (pl.col("both") > 0))
        if own and len(others):
            best = others.sort("covered", "both", descending=True, maintain_order=True).row(0, named=True)
            share = [f"{percent(best['covered'])}, {best['both']:,}/{best['violated']:,}", str(best["by"])]
        else:
            share = ["–", "–"]
        rows.append([str(name), f"{own:,}", *share])
    caption = (
        f"How many cases violate each rule ({limit}), and the rule that covers it best: of these cases, as far as "
        "they were judged under both, the share that violates that one too"
    )
    return Table(caption, ["rule", "violated", "covered", "by"], rows)


def _coverage_chart(table: pl.DataFrame, limit: str) -> Chart:
    rules = table["of"].unique(maintain_order=True).to_list()
    places = {name: number for number, name in enumerate(rules)}
    own = table.filter(pl.col("of") == pl.col("by")).select("of", n="violated")
    cells = table.join(own, on="of", maintain_order="left").with_columns(
        order=pl.col("of").replace_strict(places, return_dtype=pl.Int32),
        across=pl.col("by").replace_strict(places, return_dtype=pl.Int32),
        covered=pl.when(pl.col("n") > 0).then("covered"),
    )
    texts = [percent(share, sign=False) for share in cells["covered"]]
    cells = cells.with_columns(text=pl.Series(texts, dtype=pl.String))
    step = _LARGE if len(rules) <= _READABLE else _SMALL
    font = 11 if step == _LARGE else 9
    label = {"title": None, "ticks": False, "domain": False, "grid": False, "labelFontSize": font}
    x: Spec = {
        "field": "by",
        "type": "nominal",
        "sort": {"field": "across", "op": "min"},
        "axis": {**label, "labelAngle": -90, "orient": "top", "labelBaseline": "middle"},
    }
    y: Spec = {"field": "of", "type": "nominal", "sort": {"field": "order", "op": "min"}, "axis": label}
    scale = {"domain": [0, 1], "range": [0.04, 1]}
    shade: Spec = {"field": "covered", "type": "quantitative", "legend": None, "scale": scale}
    known = "datum.covered !== null"
    white = {"condition": {"test": f"{known} && datum.covered > 0.6", "value": "var(--paper)"}, "value": "var(--ink)"}
    layers: list[Spec] = [
        {
            "transform": [{"filter": known}],
            "mark": {"type": "rect", "color": "var(--blue)", "stroke": "var(--line)", "strokeWidth": 0.5},
            "encoding": {"x": x, "y": y, "fillOpacity": shade},
        },
        {
            "transform": [{"filter": f"!({known})"}],
            "mark": {"type": "rect", "color": "var(--line)", "opacity": 0.6},
            "encoding": {"x": x, "y": y},
        },
    ]
    if step == _LARGE:
        text: Spec = {"x": x, "y": y, "text": {"field": "text"}, "color": white}
        layers.append({"mark": {"type": "text", "fontSize": 10}, "encoding": text})
    size = step * len(rules)
    right: Spec = {"type": "text", "align": "left", "fontSize": font, "color": "var(--faint)"}
    edge: Spec = {"value": size + 6}
    own_rows = [{"filter": "datum.of === datum.by"}]
    layers += [
        {"transform": own_rows, "mark": right, "encoding": {"x": edge, "y": y, "text": {"field": "n"}}},
        {"data": {"values": [{}]}, "mark": {**right, "y": -8, "text": "cases"}, "encoding": {"x": edge}},
    ]
    return Chart(
        "coverage",
        "Which rule covers which",
        f"Of the cases that violate the row's rule ({limit}; their number is at the right), the share in % that "
        "violate the column's rule too. "
        "Grey: no case violates the row's rule, so that every rule covers it.",
        {"width": size, "height": size, "layer": layers, "data": {"name": "coverage"}},
        {"coverage": cells},
        size + 150,
    )


# --- Table II: how many rules a case violates ----------------------------------------------------------


def _violated_counts(runs: Sequence[Run], choice: Choice, *, paper: bool) -> TaskTables:
    (run,) = runs
    relation = own_relation(run)
    sets, _ = chosen_sets(run, choice.rules, (ALL,))
    unit, grid, matrix = run.units(choice.judging)[relation], run.grids()[relation], run.severities(choice.judging)
    frames, tables = [], []
    for each in sets:
        published = paper and len(each.rules) == PAPER_BINS[-1][1]
        bins = PAPER_BINS if published else None
        frame = violated_counts(matrix.only(each.rules), grid, bins, strict=published)
        frames.append(frame.select(pl.lit(each.name).alias("set"), pl.all()))
        rows = [
            [str(name), *(f"{cases:,}" for cases in part["cases"])]
            for (name,), part in frame.group_by("violated", maintain_order=True)
        ]
        heads = ["violated rules", *(threshold_text(value) for value in grid)]
        what = "cases by the number of rules that they violate, by threshold in"
        tables.append(Table(f"{each.name}: {what} {unit}", heads, rows))
    return TaskTables(tables, {"violated counts": pl.concat(frames)})


_BOTH = "grey + mirror-h"


def counted_figures(*, paper: bool) -> Mapping[str, PaperFigure]:
    """The figures that need no ground truth, by their numbers."""
    at_threshold = ("rules", "threshold")
    return {
        "4": PaperFigure(
            "cases that violate at least one rule, against the threshold",
            partial(_curves, usual=(ALL, "sub", _BOTH)),
            choices=("rules",),
        ),
        "5": PaperFigure(
            "the same by the landmarks of hands",
            partial(_curves, usual=("mirror-h", "grey"), hands=True),
            choices=("rules",),
        ),
        "7": PaperFigure("which rule covers which", _covered, choices=at_threshold),
        "8": PaperFigure(
            "which rule of motion blur covers which", partial(_covered, motion=True), choices=at_threshold
        ),
        "II": PaperFigure(
            "cases by the number of rules that they violate", partial(_violated_counts, paper=paper), choices=("rules",)
        ),
    }


CLASSIC_FIGURES: Mapping[str, PaperFigure] = {
    "6": PaperFigure("classic testing beside metamorphic testing, by set of rules", _classic, choices=("rules",))
}
