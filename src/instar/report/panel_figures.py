"""The figures of the panels that suites ask for: objects."""

from __future__ import annotations

import json

import polars as pl

from instar.relations import rule
from instar.report.chart import PERCENT_AXIS, Chart, Spec, drawn, tooltip
from instar.report.section import Section

__all__ = ["object_curves"]

# --- objects ---------------------------------------------------------------------------------------


def object_curves(table: pl.DataFrame, section: Section) -> list[Chart]:
    """One figure per family of changes: unreliable objects and those still found, against its varied parameter."""
    charts = []
    for family, rules in section.families.items():
        steps = {one: rule(one).transformations[0].steps[0] for one in rules}
        varied = [
            p.name
            for p in next(iter(steps.values())).family.parameters
            if p.ordered and len({step.values[p.name] for step in steps.values()}) > 1
        ]
        if len(varied) != 1:
            continue
        levels = {one: float(step.values[varied[0]]) for one, step in steps.items()}
        charts.append(
            _object_curve(
                table.filter(pl.col("rule").is_in(rules))
                .with_columns(level=pl.col("rule").replace_strict(levels, return_dtype=pl.Float64))
                .sort("level"),
                family,
                varied[0],
                section,
            )
        )
    return charts


def _object_curve(table: pl.DataFrame, family: str, parameter: str, section: Section) -> Chart:
    place = pl.int_range(pl.len(), dtype=pl.Int32).alias("place")
    broken = pl.sum_horizontal("missing", "incorrect", "persists")
    parts = [
        table.select(
            place,
            "level",
            "low",
            "high",
            measure=pl.lit("unreliable"),
            rate="unreliable",
            count=pl.format("{}/{}", broken, "objects"),
        ),
        table.select(
            place,
            "level",
            low=pl.lit(None, pl.Float64),
            high=pl.lit(None, pl.Float64),
            measure=pl.lit("still found"),
            rate="still_found",
            count=pl.format("of {}", "tried"),
        ),
    ]
    long = (
        pl.concat(parts, how="diagonal")
        .filter(pl.col("rate").is_not_null())
        .with_columns(level=pl.format("{}", pl.col("level").round(3).cast(pl.String).str.strip_suffix(".0")))
    )
    labels = [f"{level:g}" for level in table["level"]]
    x: Spec = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [-0.3, len(labels) - 0.7], "nice": False},
        "axis": {
            "values": list(range(len(labels))),
            "grid": False,
            "title": parameter,
            "labelExpr": f"{json.dumps(labels)}[datum.value]",
            "labelOverlap": "greedy",
        },
    }
    y: Spec = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {**PERCENT_AXIS, "title": "objects"},
    }
    colour: Spec = {
        "field": "measure",
        "type": "nominal",
        "scale": {"domain": ["unreliable", "still found"], "range": ["var(--orange)", "var(--blue)"]},
        "legend": {"title": None, "orient": "bottom"},
    }
    tips = tooltip(("measure", "objects"), ("level", parameter), ("count", "count"), ("rate", "share"))
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.18},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2.4},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "strokeDash": {
                    "field": "measure",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"range": [[1, 0], [6, 3]]},
                },
            },
        },
        {
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 45},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
    ]
    name = f"objects-{family}"
    return Chart(
        name,
        f"{family} by {parameter}",
        "Unreliable: of the judged objects, with the 95 % interval. Still "
        "found: of the objects found in the source, the share found in follow-ups.",
        drawn(220, section.start, layers, data={"name": name}),
        {name: long},
        330,
    )
