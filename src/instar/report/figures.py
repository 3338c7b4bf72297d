"""The figures of a report: Vega-Lite specifications, from what analysis found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import ANY
from instar.report.chart import (
    AXES,
    ROW,
    THRESHOLD_LINE,
    Chart,
    Spec,
    counts,
    dot_layers,
    drawn,
    index_axis,
    labelled,
    name_room,
    name_rows,
    names_below,
    rate_axis,
    rate_tooltip,
    share_axis,
)
from instar.report.matrices import BELOW_NOISE, covered, heat
from instar.report.section import MANY, Section

FAMILY_COLOURS = ("blue", "orange", "green", "pink", "yellow", "sky", "violet")
OTHERS = "other families"
_LEGEND: Spec = {"title": None, "orient": "bottom", "direction": "horizontal"}


def family_colours(section: Section) -> dict[str, str]:
    """A colour per family; where there are too many, the most violated ones have theirs, and the others one."""
    there = section.curves.filter((pl.col("t") == section.start) & pl.col("group").is_in(list(section.families)))
    ranked = there.sort("rate", descending=True, nulls_last=True, maintain_order=True)["group"].to_list()
    return {name: f"var(--{colour})" for name, colour in zip(ranked, FAMILY_COLOURS, strict=False)}


def _coloured_group(column: str, colours: Mapping[str, str], kept: Sequence[str] = ()) -> pl.Expr:
    """The entry in the legend of each family."""
    return pl.when(pl.col(column).is_in([*colours, *kept])).then(pl.col(column)).otherwise(pl.lit(OTHERS))


def _colour_scale(colours: Mapping[str, str], present: Sequence[str], **more: str) -> Spec:
    known = {**colours, OTHERS: "var(--other)", **more}
    scale = {name: colour for name, colour in known.items() if name in present}
    return {"domain": list(scale), "range": list(scale.values())}


# --- curves ----------------------------------------------------------------------------------------


def curves(section: Section) -> Chart:
    """The share of cases that violate at least one rule against the threshold."""
    colours = family_colours(section)
    table = (
        counts(labelled(section.curves, section))
        .filter(pl.col("judged") > 0)
        .with_columns(
            legend=_coloured_group("group", colours, (ANY, "identity")),
            any=pl.col("group") == ANY,
            noise=pl.col("group") == "identity",
        )
        .select("group", "legend", "any", "noise", "t", "threshold", "rate", "low", "high", "count", "interval")
    )
    present = table["legend"].unique().to_list()
    scale = _colour_scale(colours, present, **{ANY: "var(--ink)", "identity": "var(--faint)"})
    colour: Spec = {
        "field": "legend",
        "type": "nominal",
        "scale": scale,
        "legend": {**_LEGEND, "symbolType": "stroke", **names_below(scale["domain"], 5, (75, 75))},
    }
    return Chart(
        "curves",
        "Failing cases against the threshold",
        "The thick line counts cases that violate at least one rule, with the 95 % interval; a thin one those that "
        "violate at least one rule of its family."
        + (" The dashed line is identity, the system's own noise." if "identity" in present else ""),
        drawn(300, section.start, _curve_layers(section, colour), data={"name": "curves"}),
        {"curves": table},
        420,
    )


def _curve_layers(section: Section, colour: Spec) -> list[Spec]:
    x, y = index_axis(section), share_axis("cases that violate at least one rule")
    tips = rate_tooltip(("group", "rules"), ("threshold", "threshold"))
    thin, thick = [{"filter": "!datum.any"}], [{"filter": "datum.any"}]
    # fmt: off
    return [
        *_noise_region(section, x),
        {
            "transform": thick, "mark": {"type": "area", "color": "var(--ink)", "opacity": 0.12},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "transform": thin, "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {
                "x": x, "y": y, "color": colour, "detail": {"field": "group"}, "tooltip": tips,
                "strokeDash": {"condition": {"test": "datum.noise", "value": [5, 4]}, "value": [1, 0]},
            },
        },
        {
            "transform": thick, "mark": {"type": "line", "strokeWidth": 3.2},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "transform": [{"filter": "datum.any && datum.t === t"}],
            "mark": THRESHOLD_LINE, "encoding": {"x": x},
        },
        {
            "transform": [{"filter": "!datum.any && !datum.noise"}],
            "mark": {"type": "point", "filled": True, "size": 18, "opacity": 0.9},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
        {
            "transform": thick, "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips, "size": larger_at_t(130, 40)},
        },
    ]
    # fmt: on


def larger_at_t(large: int, small: int) -> Spec:
    """The point of the current threshold is larger."""
    return {"condition": {"test": "datum.t === t", "value": large}, "value": small}


def _noise_region(section: Section, x: Spec) -> list[Spec]:
    """The thresholds that are not above the noise floor."""
    if not section.below_noise:
        return []
    ends = {"values": [{"t": -0.3, "to": section.below_noise[-1] + 0.5}]}
    return [
        {
            "data": ends,
            "mark": {"type": "rect", "color": "var(--warn)", "opacity": 0.14, "tooltip": None},
            "encoding": {"x": x, "x2": {"field": "to"}},
        },
        {"data": ends, "mark": {**BELOW_NOISE, "y": -4}, "encoding": {"x": x}},
    ]


# --- rates -----------------------------------------------------------------------------------------


def rates(section: Section) -> Chart:
    """The violation rate of each rule at the current threshold."""
    colours = family_colours(section)
    table = (
        counts(section.rates.filter(pl.col("family") != "identity"))
        .with_columns(legend=_coloured_group("family", colours), words=pl.col("name").replace(dict(section.words)))
        .select("name", "words", "family", "legend", "t", "order", "rate", "low", "high", "count", "interval", "judged")
    )
    shown = min(section.rules, MANY)
    tips = rate_tooltip(("name", "rule"), ("words", "in words"), ("family", "family"))
    colour = _family_colour(colours, table["legend"].unique().to_list(), name_room(table["name"]))
    layers = dot_layers(name_rows(), colour, "cases that violate the rule", tips)
    for layer in layers:  # the noise has a table of its own, and another filter
        layer["transform"] = [{"filter": f"datum.t === t && datum.order < {MANY}"}, *layer.get("transform", [])]
    tables = {"rates": table}
    identity = section.rates.filter(family="identity")
    caption = "The share of the judged cases that violate each rule, with its 95 % interval and the counts."
    if section.rules > MANY:
        caption += f" These are the {MANY} most violated of {section.rules} rules at this threshold; the table has all."
    if len(identity) and identity["violated"].max():
        tables["noise"] = identity.select("t", "rate")
        layers += _noise_line()
        caption += " The dashed line is identity, the system's own noise."
    elif len(identity) and identity["judged"].max():
        caption += " Identity, the system's own noise, is violated by no case at any threshold."
    spec = drawn(ROW * shown, section.start, layers, data={"name": "rates"})
    return Chart("rates", "Violation rate per rule", caption, spec, tables, ROW * shown + AXES + 50)


def _family_colour(colours: Mapping[str, str], present: Sequence[str], beside: tuple[int, int]) -> Spec:
    """A colour per family, with a legend below names of so many pixels; one colour where there is one family."""
    if len(present) < 2:
        return {"value": "var(--blue)"}
    scale = _colour_scale(colours, present)
    return {
        "field": "legend",
        "type": "nominal",
        "scale": scale,
        "legend": {
            **_LEGEND,
            "symbolType": "circle",
            "symbolStrokeWidth": 0,
            **names_below(scale["domain"], 3, beside),
        },
    }


def _noise_line() -> list[Spec]:
    """The rate of identity at the current threshold."""
    marks: list[Spec] = [
        {"type": "rule", "color": "var(--faint)", "strokeDash": [5, 4], "strokeWidth": 1.6},
        {"type": "text", "text": "noise", "align": "left", "dx": 3, "y": -7, "color": "var(--faint)", "fontSize": 11},
    ]
    return [
        {
            "data": {"name": "noise"},
            "transform": [{"filter": "datum.t === t"}],
            "encoding": {"x": rate_axis("cases that violate the rule")},
            "mark": mark,
        }
        for mark in marks
    ]


def _shares(name: str, title: str, caption: str, table: pl.DataFrame, section: Section, what: str) -> Chart:
    """Rates of families of rules, or of parts of the subjects."""
    ranked = table.filter(pl.col("judged") > 0).sort("t", "rate", descending=[False, True], maintain_order=True)
    ranked = (
        counts(ranked)
        .with_columns(order=pl.int_range(pl.len()).over("t"))
        .select("group", "t", "order", "rate", "low", "high", "count", "interval")
    )
    tips = rate_tooltip(("group", what))
    rows = ranked["group"].n_unique()
    spec = drawn(
        ROW * rows,
        section.start,
        dot_layers(name_rows("group"), {"value": "var(--blue)"}, "cases that violate at least one rule", tips),
        data={"name": name},
        transform=[{"filter": "datum.t === t"}],
    )
    return Chart(name, title, caption, spec, {name: ranked}, ROW * rows + AXES)


# --- which there are -------------------------------------------------------------------------------


def charts(section: Section) -> list[Chart]:
    """The figures of a section; those that would say nothing are left out."""
    if not section.rules or not section.curves["judged"].max():
        return []
    figures = [curves(section), rates(section)]
    families = section.curves.filter(pl.col("group").is_in(list(section.families)))
    if 1 < len(section.families) < section.rules:
        words = "The share of cases that violate at least one rule of the family, with its 95 % interval."
        figures.append(_shares("families", "By family", words, families, section, "family"))
    if len(section.groups):
        words = "The share of cases in which the part of a subject violates at least one rule, with its 95 % interval."
        parts = section.groups.with_columns(pl.col("group").str.replace_all("_", " "))
        figures.append(_shares("groups", "By part", words, parts, section, "part"))
    figures.append(heat(section))
    if section.coverage["of"].n_unique() > 1 and section.covering:
        figures.append(covered(section))
    if section.rules > MANY:
        figures.append(heat(section, whole=True))
    return figures
