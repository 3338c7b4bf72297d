"""The figures of several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from instar.report.chart import (
    AXES,
    Chart,
    Spec,
    by_width,
    counts,
    dot_layers,
    drawn,
    index_axis,
    labelled,
    name_rows,
    rate_tooltip,
    share_axis,
)
from instar.report.figures import FAMILY_COLOURS, larger_at_t
from instar.report.section import MANY, Section


def comparison(curves: pl.DataFrame, rates: pl.DataFrame, section: Section, runs: Sequence[str]) -> list[Chart]:
    """Any rule against the threshold, and the rates by rule, of several runs on the cases that all of them have."""
    colour: Spec = {
        "field": "run",
        "type": "nominal",
        "sort": list(runs),
        "scale": {"domain": list(runs), "range": [f"var(--{name})" for name in FAMILY_COLOURS[: len(runs)]]},
        "legend": {
            "title": None,
            "orient": "bottom",
            "labelLimit": by_width(240, 260),
            "columns": 1 if max(map(len, runs)) > 22 else by_width(1, 3),
        },
    }
    return [_curves(curves, section, colour), _rates(rates, section, colour, runs)]


def _curves(table: pl.DataFrame, section: Section, colour: Spec) -> Chart:
    x, y = index_axis(section), share_axis("cases that violate at least one rule")
    tips = rate_tooltip(("run", "run"), ("threshold", "threshold"))
    rated = counts(labelled(table, section))
    shown = rated.select("run", "t", "threshold", "rate", "low", "high", "count", "interval")
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.13},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {"mark": {"type": "line", "strokeWidth": 2.6}, "encoding": {"x": x, "y": y, "color": colour}},
        {
            "transform": [{"filter": "datum.t === t"}],
            "mark": {"type": "rule", "color": "var(--accent)"},
            "encoding": {"x": x},
        },
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips, "size": larger_at_t(110, 36)},
        },
    ]
    return Chart(
        "compare-curves",
        "Failing cases against the threshold, by run",
        "Cases that violate at least one rule, with the 95 % interval, among the cases that all runs have.",
        drawn(300, section.start, layers, data={"name": "compare-curves"}),
        {"compare-curves": shown},
        400,
    )


def _rates(table: pl.DataFrame, section: Section, colour: Spec, runs: Sequence[str]) -> Chart:
    rules = table["name"].n_unique()
    shown = counts(table).select("run", "name", "t", "order", "rate", "low", "high", "count", "interval")
    height = min(rules, MANY) * (8 + 15 * len(runs))
    tips = rate_tooltip(("name", "rule"), ("run", "run"))
    layers = dot_layers(name_rows(), colour, "cases that violate the rule", tips)
    offset: Spec = {"field": "run", "type": "nominal", "sort": list(runs), "scale": {"paddingOuter": 0.2}}
    for layer in layers:
        layer["encoding"]["yOffset"] = offset
    return Chart(
        "compare-rates",
        "Violation rate per rule, by run",
        "The share of the judged cases that violate each rule, with its 95 % interval and the counts"
        + (f"; the {MANY} most violated rules." if rules > MANY else "."),
        drawn(
            height,
            section.start,
            layers,
            data={"name": "compare-rates"},
            transform=[{"filter": f"datum.t === t && datum.order < {MANY}"}],
        ),
        {"compare-rates": shown},
        height + AXES + 40,
    )
