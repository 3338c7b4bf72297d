"""The figures of several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from instar.report.chart import (
    AXES,
    THRESHOLD_LINE,
    Chart,
    Spec,
    apart,
    counts,
    dot_layers,
    drawn,
    index_axis,
    labelled,
    name_room,
    name_rows,
    rate_tooltip,
    share_axis,
    smaller,
    whole_names,
)
from instar.report.compared import Comparison, common_words, judged_words
from instar.report.figures import FAMILY_COLOURS
from instar.report.section import MANY


def comparison(one: Comparison, runs: Sequence[str]) -> list[Chart]:
    """Any rule against the threshold, and the rates by rule, of several runs on the cases that all of them have."""
    colour: Spec = {
        "field": "run",
        "type": "nominal",
        "sort": list(runs),
        "scale": {"domain": list(runs), "range": [f"var(--{name})" for name in FAMILY_COLOURS[: len(runs)]]},
    }
    return [_curves(one.curves, one, colour, runs), _rates(one.rates, one, colour, runs)]


def _curves(table: pl.DataFrame, one: Comparison, colour: Spec, runs: Sequence[str]) -> Chart:
    section = one.section
    x, y = index_axis(section), share_axis("cases that violate at least one rule")
    colour = {**colour, "legend": whole_names(runs, symbolType="stroke")}
    tips = rate_tooltip(("run", "run"), ("threshold", "threshold"))
    rated = counts(labelled(table, section)).filter(pl.col("judged") > 0)
    shown = rated.select("run", "t", "threshold", "rate", "low", "high", "count", "interval")
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.13},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {"mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": colour, **apart("run", runs)}},
        {"transform": [{"filter": "datum.t === t"}], "mark": THRESHOLD_LINE, "encoding": {"x": x}},
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips, "size": smaller("run", runs)},
        },
    ]
    return Chart(
        "compare-curves",
        "Failing cases against the threshold, by run",
        f"Cases that violate at least one rule, with the 95 % interval, among {common_words(one.cases)}."
        + judged_words(one),
        drawn(300, section.start, layers, data={"name": "compare-curves"}),
        {"compare-curves": shown},
        400,
    )


def _rates(table: pl.DataFrame, one: Comparison, colour: Spec, runs: Sequence[str]) -> Chart:
    section = one.section
    rules = table["name"].n_unique()
    shown = counts(table).select("run", "name", "t", "order", "rate", "low", "high", "count", "interval")
    height = min(rules, MANY) * (8 + 15 * len(runs))
    tips = rate_tooltip(("name", "rule"), ("run", "run"))
    colour = {**colour, "legend": whole_names(runs, name_room(table["name"]))}
    # each rule has as much room as every other, be it one or many
    rows = {**name_rows(), "scale": {"paddingInner": 0.2, "paddingOuter": 0.1}}
    layers = dot_layers(rows, colour, "cases that violate the rule", tips)
    offset: Spec = {"field": "run", "type": "nominal", "sort": list(runs), "scale": {"paddingOuter": 0.2}}
    for layer in layers:
        layer["encoding"]["yOffset"] = offset
    return Chart(
        "compare-rates",
        "Violation rate per rule, by run",
        "The share of the judged cases that violate each rule, with its 95 % interval and the counts, among "
        + common_words(one.cases)
        + (f"; the {MANY} most violated rules." if rules > MANY else ".")
        + judged_words(one),
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
