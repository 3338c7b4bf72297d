"""The figures that are matrices: rates of rules over thresholds, and rules that cover each other."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from instar.report.chart import (
    AXES,
    CONTAINER,
    LONG,
    NAME_LABELS,
    NARROW,
    ROW,
    WIDE_LONG,
    Chart,
    Spec,
    counts,
    drawn,
    labelled,
    rate_tooltip,
    threshold_title,
    tooltip,
    without_middle,
)
from instar.report.section import MANY, Section
from instar.report.words import percent

_CELL: Spec = {"axis": {"title": None, "ticks": False, "domain": False, "grid": False}}
_CELL_NAMES: Spec = {"axis": {**_CELL["axis"], **NAME_LABELS}}


_LONGEST = 280
"""Pixels of the longest name over a column: zones of a filtered rule stand at its end."""
_COUNTS = 52
"""Pixels at the right of a matrix for the numbers of cases."""
BELOW_NOISE: Spec = {
    "type": "text",
    "align": "left",
    "baseline": "bottom",
    "color": "var(--warn)",
    "text": "below the noise floor",
}


_ROOMY, _NARROWEST = 26, 17
"""Pixels of a cell whose number is written in full size, and of one that has room for a number at all."""


def _cells(x: Spec, y: Spec, field: str, tips: Sequence[Spec], across: int, beside: int = 0) -> list[Spec]:
    """Shaded cells with their percentage, smaller on a phone; grey where nothing is known.

    There are so many cells `across`, and pixels `beside` them.
    """
    known = f"datum.{field} !== null"
    # from paper to blue: ordered for every eye, in every theme and in print
    shade = {"field": field, "type": "quantitative", "scale": {"domain": [0, 1], "range": [0.04, 1]}, "legend": None}
    return [
        {
            "transform": [{"filter": known}],
            "mark": {"type": "rect", "color": "var(--blue)", "stroke": "var(--line)", "strokeWidth": 0.5},
            "encoding": {"x": x, "y": y, "fillOpacity": shade, "tooltip": list(tips)},
        },
        {
            "transform": [{"filter": f"!({known})"}],
            "mark": {"type": "rect", "color": "var(--line)", "opacity": 0.6},
            "encoding": {"x": x, "y": y, "tooltip": list(tips)},
        },
        {
            "mark": {
                "type": "text",
                "fontSize": {"expr": f"width - {beside} < {_ROOMY * across} ? 8.5 : 10.5"},
                "tooltip": None,
            },
            "encoding": {
                "x": x,
                "y": y,
                "text": {"field": "text"},
                "color": {
                    "condition": {"test": f"({known}) && datum.{field} > 0.6", "value": "var(--paper)"},
                    "value": "var(--ink)",
                },
            },
        },
    ]


def _least_width(names: pl.Series, across: int, beside: int = 0, lines: int = 2) -> int:
    """Pixels that a matrix needs for the numbers in its cells, beside names that are folded where it is narrow.

    Rows that are too low for names of two `lines` do not fold them.
    """
    longest = int(names.str.len_chars().max() or 0)  # type: ignore[arg-type]
    cells = _NARROWEST * across + beside
    folded = cells + 16 + round(4.9 * min(longest, LONG + 2))
    fits = folded < NARROW and (lines > 1 or longest <= LONG)
    return folded if fits else max(NARROW, cells + 16 + min(_LONGEST, round(6.6 * longest)))


def _cell_text(column: str) -> pl.Expr:
    """A share in per cent, as a cell has room for it."""
    return pl.col(column).map_elements(
        lambda share: percent(share, sign=False), return_dtype=pl.String, skip_nulls=False
    )


def heat(section: Section, *, whole: bool = False) -> Chart:
    """The violation rate of each rule at each threshold."""
    rated = section.rates.filter(pl.col("family") != "identity")
    places = (
        rated.group_by("name", maintain_order=True)
        .agg(pl.col("rate").mean())
        .sort("rate", descending=True, nulls_last=True, maintain_order=True)
        .with_row_index("order")
        .drop("rate")
    )
    shown = section.rules if whole else min(section.rules, MANY)
    table = (
        labelled(counts(rated.drop("order").join(places, on="name", maintain_order="left")), section)
        .with_columns(text=_cell_text("rate"))
        .select("name", "order", "t", "threshold", "rate", "count", "interval", "text")
    )
    x: Spec = {
        "field": "threshold",
        "type": "ordinal",
        "sort": {"field": "t", "op": "min"},
        "axis": {
            **_CELL["axis"],
            "title": threshold_title(section),
            "labelAngle": 0,
            "labelOverlap": True,
            "labelSeparation": 4,
        },
    }
    y: Spec = {"field": "name", "type": "nominal", "sort": {"field": "order", "op": "min"}, **_CELL_NAMES}
    tips = rate_tooltip(("name", "rule"), ("threshold", "threshold"))
    step = ROW if shown <= MANY else 14
    if shown > MANY:
        y = {
            **y,
            "axis": {**y["axis"], "labelFontSize": 10, "labelBaseline": "middle", "labelExpr": without_middle(55)},
        }
    layers = _cells(x, y, "rate", tips, len(section.grid))
    layers = [*(layers if shown <= MANY else layers[:2]), *_threshold_marks(section, x)]
    caption = "Violated cases in % of the judged ones. The frame marks the current threshold; grey: not judged."
    if shown < section.rules:
        caption += f" The {shown} most violated of {section.rules} rules over all thresholds."
    return Chart(
        "heat-all" if whole else "heat",
        "Rules and thresholds",
        caption,
        drawn(
            step * shown, section.start, layers, data={"name": "heat"}, transform=[{"filter": f"datum.order < {shown}"}]
        ),
        {"heat": table},
        step * shown + AXES,
        details=f"All {section.rules} rules" if whole else "",
        least=_least_width(places["name"], len(section.grid), lines=1 if shown > MANY else 2),
    )


def _threshold_marks(section: Section, x: Spec) -> list[Spec]:
    """A frame around the current threshold, and a line over those that are not above the noise floor."""
    frame: Spec = {
        "transform": [{"filter": "datum.t === t && datum.order === 0"}],
        "mark": {
            "type": "rect",
            "fill": None,
            "stroke": "var(--orange)",
            "strokeWidth": 2.5,
            "y": 0,
            "y2": {"expr": "height"},
            "tooltip": None,
        },
        "encoding": {"x": x},
    }
    if not section.below_noise:
        return [frame]
    below = f"indexof({json.dumps(section.below_noise)}, datum.t) >= 0 && datum.order === 0"
    return [
        frame,
        {
            "transform": [{"filter": below}],
            "mark": {"type": "rect", "color": "var(--warn)", "y": -7, "y2": -3, "tooltip": None},
            "encoding": {"x": x},
        },
        {
            "transform": [{"filter": "datum.t === 0 && datum.order === 0"}],
            "mark": {**BELOW_NOISE, "y": -9},
            "encoding": {"x": {**x, "bandPosition": 0}},
        },
    ]


def covered(section: Section) -> Chart:
    """How far rules cover each other at the current threshold."""
    table = _coverage_table(section)
    size = table["of"].n_unique()
    # fmt: off
    x: Spec = {
        "field": "by", "type": "nominal", "sort": {"field": "across", "op": "min"},
        "scale": {"range": [0, {"expr": f"max(40, width - {_COUNTS})"}]},
        "axis": {
            **_CELL["axis"], "labelAngle": -90, "labelLimit": _LONGEST, "orient": "top", "labelBaseline": "middle",
            "labelExpr": f"{CONTAINER} < {max(NARROW, 13 * size + 200)} ? '' : {without_middle(WIDE_LONG)}",
        },
    }
    # fmt: on
    y: Spec = {"field": "of", "type": "nominal", "sort": {"field": "order", "op": "min"}, **_CELL_NAMES}
    tips = tooltip(
        ("of", "of the cases that violate"), ("by", "violate also"), ("count", "cases"), ("covered", "share")
    )
    right: Spec = {"type": "text", "align": "right", "fontSize": 11.5, "color": "var(--faint)", "tooltip": None}
    edge: Spec = {"value": {"expr": "width"}}
    layers = [
        *_cells(x, y, "covered", tips, size, _COUNTS),
        {
            "transform": [{"filter": "datum.of === datum.by"}],
            "mark": right,
            "encoding": {"x": edge, "y": y, "text": {"field": "n"}},
        },
        {
            "transform": [{"filter": "datum.order === 0 && datum.across === 0"}],
            "mark": {**right, "y": -8, "text": "cases"},
            "encoding": {"x": edge},
        },
    ]
    kind = "family" if section.by_family else "rule"
    some = "at least one rule of the row's family" if section.by_family else "the row's rule"
    also = "at least one rule of the column's family" if section.by_family else "the column's rule too"
    return Chart(
        "coverage",
        f"Which {kind} covers which",
        f"Of the cases that violate {some} (their number is at the right), the share in % that violate {also}. "
        "Columns are in the order of the rows. Where a row has high shares, others cover it; where a column has, it "
        "covers others.",
        drawn(ROW * size, section.start, layers, data={"name": "coverage"}, transform=[{"filter": "datum.t === t"}]),
        {"coverage": table},
        ROW * size + _LONGEST + 20,
        least=_least_width(table["of"], size, _COUNTS),
    )


def _coverage_table(section: Section) -> pl.DataFrame:
    places = section.at(section.start)["name"].to_list()
    if section.by_family:
        there = section.curves.filter((pl.col("t") == section.start) & pl.col("group").is_in(list(section.families)))
        places = there.sort("rate", descending=True, nulls_last=True, maintain_order=True)["group"].to_list()
    order = {name: number for number, name in enumerate(places)}
    own = section.coverage.filter(pl.col("of") == pl.col("by")).select("of", "t", n="violated")
    return (
        section.coverage.join(own, on=["of", "t"], maintain_order="left")
        .with_columns(
            order=pl.col("of").replace_strict(order, return_dtype=pl.Int32),
            across=pl.col("by").replace_strict(order, return_dtype=pl.Int32),
            covered=pl.when((pl.col("n") > 0) & (pl.col("of") != pl.col("by"))).then("covered"),
            count=pl.format("{}/{}", "both", "violated"),
        )
        .with_columns(text=pl.when(pl.col("of") == pl.col("by")).then(pl.lit("")).otherwise(_cell_text("covered")))
        .select("of", "by", "t", "order", "across", "covered", "count", "text", "n")
    )
