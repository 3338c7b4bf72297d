"""The figures of a report: Vega-Lite specifications, from what analysis found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import ANY
from instar.report.chart import (
    AXES,
    NAME_LABELS,
    NARROW,
    PERCENT_AXIS,
    ROW,
    Chart,
    Spec,
    by_width,
    counts,
    dot_layers,
    drawn,
    index_axis,
    labelled,
    name_rows,
    rate_axis,
    threshold_title,
    tooltip,
)
from instar.report.section import MANY, Section
from instar.report.words import percent

__all__ = ["charts", "comparison"]

FAMILY_COLOURS = ("blue", "orange", "green", "pink", "yellow", "sky", "violet")
OTHERS = "other families"


def family_colours(section: Section) -> dict[str, str]:
    """A colour per family; where there are too many, the most violated ones have theirs, and the others one."""
    there = section.curves.filter((pl.col("t") == section.start) & pl.col("group").is_in(list(section.families)))
    ranked = there.sort("rate", descending=True, nulls_last=True, maintain_order=True)["group"].to_list()
    return {name: f"var(--{colour})" for name, colour in zip(ranked, FAMILY_COLOURS, strict=False)}


def _coloured_group(column: str, colours: Mapping[str, str], kept: Sequence[str] = ()) -> pl.Expr:
    """The entry in the legend of each family."""
    return pl.when(pl.col(column).is_in([*colours, *kept])).then(pl.col(column)).otherwise(pl.lit(OTHERS))


def _colour_scale(colours: Mapping[str, str], present: Sequence[str], **more: str) -> Spec:
    scale = {
        **{name: colour for name, colour in colours.items() if name in present},
        **({OTHERS: "var(--other)"} if OTHERS in present else {}),
        **more,
    }
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
    more = {
        **({ANY: "var(--ink)"} if ANY in present else {}),
        **({"identity": "var(--faint)"} if "identity" in present else {}),
    }
    x = index_axis(section)
    y: Spec = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {**PERCENT_AXIS, "title": "cases that violate at least one rule"},
    }
    colour: Spec = {
        "field": "legend",
        "type": "nominal",
        "scale": _colour_scale(colours, present, **more),
        "legend": {
            "title": None,
            "orient": "bottom",
            "direction": "horizontal",
            "symbolType": "stroke",
            "columns": by_width(2, 5),
        },
    }
    tips = tooltip(
        ("group", "rules"),
        ("threshold", "threshold"),
        ("count", "violated"),
        ("rate", "rate"),
        ("interval", "95 % interval"),
    )
    layers: list[Spec] = [
        *_noise_region(section, x),
        {
            "transform": [{"filter": "datum.any"}],
            "mark": {"type": "area", "color": "var(--ink)", "opacity": 0.12},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "transform": [{"filter": "!datum.any"}],
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "detail": {"field": "group"},
                "tooltip": tips,
                "strokeDash": {"condition": {"test": "datum.noise", "value": [5, 4]}, "value": [1, 0]},
            },
        },
        {
            "transform": [{"filter": "datum.any"}],
            "mark": {"type": "line", "strokeWidth": 3.2},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "transform": [{"filter": "datum.any && datum.t === t"}],
            "mark": {"type": "rule", "color": "var(--accent)", "strokeWidth": 1.6},
            "encoding": {"x": x},
        },
        {
            "transform": [{"filter": "!datum.any && !datum.noise"}],
            "mark": {"type": "point", "filled": True, "size": 18, "opacity": 0.9},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
        {
            "transform": [{"filter": "datum.any"}],
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "tooltip": tips,
                "size": {"condition": {"test": "datum.t === t", "value": 130}, "value": 40},
            },
        },
    ]
    return Chart(
        "curves",
        "Failing cases against the threshold",
        "Thick: cases that violate at least one rule, with the 95 % interval; thin: at least one rule of the "
        "family." + (" Dashed: identity, the system's own noise." if "identity" in present else ""),
        drawn(300, section.start, layers, data={"name": "curves"}),
        {"curves": table},
        420,
    )


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
        {
            "data": ends,
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "bottom",
                "color": "var(--warn)",
                "y": -4,
                "text": "below the noise floor",
            },
            "encoding": {"x": x},
        },
    ]


# --- rates -----------------------------------------------------------------------------------------


def rates(section: Section) -> Chart:
    """The violation rate of each rule at the current threshold."""
    colours = family_colours(section)
    mine = section.rates.filter(pl.col("family") != "identity")
    table = (
        counts(mine)
        .with_columns(legend=_coloured_group("family", colours))
        .select("name", "family", "legend", "t", "order", "rate", "low", "high", "count", "interval", "judged")
    )
    shown = min(section.rules, MANY)
    present = table["legend"].unique().to_list()
    one = len(present) < 2
    colour: Spec = (
        {"value": "var(--blue)"}
        if one
        else {
            "field": "legend",
            "type": "nominal",
            "scale": _colour_scale(colours, present),
            "legend": {
                "title": None,
                "orient": "bottom",
                "direction": "horizontal",
                "symbolType": "circle",
                "symbolStrokeWidth": 0,
                "columns": by_width(2, 3),
            },
        }
    )
    tips = tooltip(
        ("name", "rule"), ("family", "family"), ("count", "violated"), ("rate", "rate"), ("interval", "95 % interval")
    )
    spec = drawn(
        ROW * shown,
        section.start,
        dot_layers(name_rows(), colour, "cases that violate the rule", tips),
        data={"name": "rates"},
        transform=[{"filter": f"datum.t === t && datum.order < {MANY}"}],
    )
    tables = {"rates": table}
    identity = section.rates.filter(family="identity")
    strays = bool(len(identity) and identity["violated"].max())
    if strays:
        tables["noise"] = identity.select("t", "rate")
        x = rate_axis("cases that violate the rule")
        mine_only = [{"filter": "datum.t === t"}]
        spec["layer"] += [
            {
                "data": {"name": "noise"},
                "transform": mine_only,
                "encoding": {"x": x},
                "mark": {"type": "rule", "color": "var(--faint)", "strokeDash": [5, 4], "strokeWidth": 1.6},
            },
            {
                "data": {"name": "noise"},
                "transform": mine_only,
                "encoding": {"x": x},
                "mark": {
                    "type": "text",
                    "text": "noise",
                    "align": "left",
                    "dx": 3,
                    "y": -7,
                    "color": "var(--faint)",
                    "fontSize": 11,
                },
            },
        ]
        # the filter of the rates is not the noise's
        for layer in spec["layer"][:3]:
            layer["transform"] = spec["transform"]
        del spec["transform"]
    caption = "The share of the judged cases that violate each rule, with its 95 % interval and the counts."
    if section.rules > MANY:
        caption += f" The {MANY} most violated of {section.rules} rules at this threshold; the table has all."
    if strays:
        caption += " Dashed: identity, the system's own noise."
    elif len(identity) and identity["judged"].max():
        caption += " Identity, the system's own noise, is violated by no case at any threshold."
    return Chart("rates", "Violation rate per rule", caption, spec, tables, ROW * shown + AXES + 50)


def _shares(name: str, title: str, caption: str, table: pl.DataFrame, section: Section, what: str) -> Chart:
    """Rates of groups of rules, or of landmark groups."""
    ranked = table.filter(pl.col("judged") > 0).sort("t", "rate", descending=[False, True], maintain_order=True)
    ranked = (
        counts(ranked)
        .with_columns(order=pl.int_range(pl.len()).over("t"))
        .select("group", "t", "order", "rate", "low", "high", "count", "interval")
    )
    tips = tooltip(("group", what), ("count", "violated"), ("rate", "rate"), ("interval", "95 % interval"))
    rows = ranked["group"].n_unique()
    spec = drawn(
        ROW * rows,
        section.start,
        dot_layers(name_rows("group"), {"value": "var(--blue)"}, "cases that violate at least one rule", tips),
        data={"name": name},
        transform=[{"filter": "datum.t === t"}],
    )
    return Chart(name, title, caption, spec, {name: ranked}, ROW * rows + AXES)


# --- matrices --------------------------------------------------------------------------------------

_CELL: Spec = {"axis": {"title": None, "ticks": False, "domain": False, "grid": False}}
_CELL_NAMES: Spec = {"axis": {**_CELL["axis"], **NAME_LABELS}}


def _shade(field: str) -> Spec:
    """From paper to blue: ordered for every eye, in every theme and in print."""
    return {"field": field, "type": "quantitative", "scale": {"domain": [0, 1], "range": [0.04, 1]}, "legend": None}


def _cells(x: Spec, y: Spec, field: str, tips: Sequence[Spec], known: str, text: str, wide: int) -> list[Spec]:
    """Shaded cells with their percentage where there is room; grey where nothing is known."""
    return [
        {
            "transform": [{"filter": known}],
            "mark": {"type": "rect", "color": "var(--blue)", "stroke": "var(--line)", "strokeWidth": 0.5},
            "encoding": {"x": x, "y": y, "fillOpacity": _shade(field), "tooltip": list(tips)},
        },
        {
            "transform": [{"filter": f"!({known})"}],
            "mark": {"type": "rect", "color": "var(--line)", "opacity": 0.6},
            "encoding": {"x": x, "y": y, "tooltip": list(tips)},
        },
        {
            "mark": {"type": "text", "fontSize": 10.5, "tooltip": None},
            "encoding": {
                "x": x,
                "y": y,
                "text": {"field": text},
                "opacity": {"condition": {"test": f"width > {wide}", "value": 1}, "value": 0},
                "color": {
                    "condition": {"test": f"({known}) && datum.{field} > 0.6", "value": "var(--paper)"},
                    "value": "var(--ink)",
                },
            },
        },
    ]


def _cell_text(column: str) -> pl.Expr:
    """A share in per cent, as a cell has room for it."""
    return pl.col(column).map_elements(
        lambda share: percent(share, sign=False), return_dtype=pl.String, skip_nulls=False
    )


def heat(section: Section, *, whole: bool = False) -> Chart:
    """The violation rate of each rule at each threshold."""
    mine = section.rates.filter(pl.col("family") != "identity")
    places = (
        mine.group_by("name", maintain_order=True)
        .agg(pl.col("rate").mean())
        .sort("rate", descending=True, nulls_last=True, maintain_order=True)
        .with_row_index("order")
        .drop("rate")
    )
    shown = section.rules if whole else min(section.rules, MANY)
    table = (
        labelled(counts(mine.drop("order").join(places, on="name", maintain_order="left")), section)
        .with_columns(text=_cell_text("rate"))
        .select("name", "order", "t", "threshold", "rate", "count", "interval", "text")
    )
    x: Spec = {
        "field": "threshold",
        "type": "ordinal",
        "sort": {"field": "t", "op": "min"},
        "axis": {**_CELL["axis"], "title": threshold_title(section), "labelAngle": 0, "labelOverlap": True},
    }
    y: Spec = {"field": "name", "type": "nominal", "sort": {"field": "order", "op": "min"}, **_CELL_NAMES}
    tips = tooltip(
        ("name", "rule"),
        ("threshold", "threshold"),
        ("count", "violated"),
        ("rate", "rate"),
        ("interval", "95 % interval"),
    )
    step = ROW if shown <= MANY else 14
    if shown > MANY:
        y = {**y, "axis": {**y["axis"], "labelFontSize": 10}}
    layers = _cells(x, y, "rate", tips, "datum.rate !== null", "text", 26 * len(section.grid))
    layers = layers if shown <= MANY else layers[:2]
    layers.append(
        {
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
    )
    if section.below_noise:
        below = f"indexof({json.dumps(section.below_noise)}, datum.t) >= 0 && datum.order === 0"
        layers += [
            {
                "transform": [{"filter": below}],
                "mark": {"type": "rect", "color": "var(--warn)", "y": -7, "y2": -3, "tooltip": None},
                "encoding": {"x": x},
            },
            {
                "transform": [{"filter": "datum.t === 0 && datum.order === 0"}],
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "bottom",
                    "y": -9,
                    "color": "var(--warn)",
                    "text": "below the noise floor",
                },
                "encoding": {"x": {**x, "bandPosition": 0}},
            },
        ]
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
    )


def covered(section: Section) -> Chart:
    """How far rules cover each other at the current threshold."""
    places = section.at(section.start)["name"].to_list()
    if section.by_family:
        there = section.curves.filter(t=section.start)
        places = there.sort("rate", descending=True, nulls_last=True, maintain_order=True)["group"].to_list()
    order = {name: number for number, name in enumerate(places)}
    found = section.coverage
    size = found["of"].n_unique()
    own = found.filter(pl.col("of") == pl.col("by")).select("of", "t", n="violated")
    table = (
        found.join(own, on=["of", "t"], maintain_order="left")
        .with_columns(
            order=pl.col("of").replace_strict(order, return_dtype=pl.Int32),
            across=pl.col("by").replace_strict(order, return_dtype=pl.Int32),
            covered=pl.when((pl.col("n") > 0) & (pl.col("of") != pl.col("by"))).then("covered"),
            count=pl.format("{}/{}", "both", "violated"),
        )
        .with_columns(text=pl.when(pl.col("of") == pl.col("by")).then(pl.lit("")).otherwise(_cell_text("covered")))
        .select("of", "by", "t", "order", "across", "covered", "count", "text", "n")
    )
    across = [0, {"expr": "max(40, width - 52)"}]
    x: Spec = {
        "field": "by",
        "type": "nominal",
        "sort": {"field": "across", "op": "min"},
        "scale": {"range": across},
        "axis": {
            **_CELL["axis"],
            "labelAngle": -90,
            "labelLimit": 150,
            "orient": "top",
            "labelBaseline": "middle",
            "labelExpr": f"containerSize()[0] < {max(NARROW, 13 * size + 200)} ? '' : datum.label",
        },
    }
    y: Spec = {"field": "of", "type": "nominal", "sort": {"field": "order", "op": "min"}, **_CELL_NAMES}
    tips = tooltip(
        ("of", "of the cases that violate"), ("by", "violate also"), ("count", "cases"), ("covered", "share")
    )
    layers = _cells(x, y, "covered", tips, "datum.covered !== null", "text", 24 * size + 52)
    layers.append(
        {
            "transform": [{"filter": "datum.of === datum.by"}],
            "mark": {"type": "text", "align": "right", "fontSize": 11.5, "color": "var(--faint)", "tooltip": None},
            "encoding": {"x": {"value": {"expr": "width"}}, "y": y, "text": {"field": "n"}},
        }
    )
    layers.append(
        {
            "transform": [{"filter": "datum.order === 0 && datum.across === 0"}],
            "mark": {
                "type": "text",
                "align": "right",
                "fontSize": 11.5,
                "color": "var(--faint)",
                "y": -8,
                "text": "cases",
                "tooltip": None,
            },
            "encoding": {"x": {"value": {"expr": "width"}}},
        }
    )
    kind = "family" if section.by_family else "rule"
    some = "at least one rule of the row's family" if section.by_family else "the row's rule"
    also = "at least one of the column's" if section.by_family else "the column's too"
    return Chart(
        "coverage",
        f"Which {kind} covers which",
        f"Of the cases that violate {some} (how many: at the right), the share in % that violate {also}. "
        "Columns are in the order of the rows. A dark row is covered by others; a dark column covers them.",
        drawn(ROW * size, section.start, layers, data={"name": "coverage"}, transform=[{"filter": "datum.t === t"}]),
        {"coverage": table},
        ROW * size + 170,
    )


# --- which there are -------------------------------------------------------------------------------


def charts(section: Section) -> list[Chart]:
    """The figures of a section; those that would say nothing are left out."""
    if not section.rules or not section.curves["judged"].max():
        return []
    found = [curves(section), rates(section)]
    families = section.curves.filter(pl.col("group").is_in(list(section.families)))
    if 1 < len(section.families) < section.rules:
        found.append(
            _shares(
                "families",
                "By family",
                "The share of cases that violate at least one rule of the family, with its 95 % interval.",
                families,
                section,
                "family",
            )
        )
    if len(section.groups):
        found.append(
            _shares(
                "groups",
                "By landmark group",
                "The share of cases in which the group violates at least one rule, with its 95 % interval.",
                section.groups,
                section,
                "landmark group",
            )
        )
    found.append(heat(section))
    if section.coverage["of"].n_unique() > 1:
        found.append(covered(section))
    if section.rules > MANY:
        found.append(heat(section, whole=True))
    return found


# --- several runs ----------------------------------------------------------------------------------


def comparison(
    curve_table: pl.DataFrame, rate_table: pl.DataFrame, section: Section, runs: Sequence[str]
) -> list[Chart]:
    """Any rule against the threshold, and the rates by rule, of several runs on the cases that all of them have."""
    colour: Spec = {
        "field": "run",
        "type": "nominal",
        "sort": list(runs),
        "scale": {"domain": list(runs), "range": [f"var(--{name})" for name in FAMILY_COLOURS[: len(runs)]]},
        "legend": {
            "title": None,
            "orient": "bottom",
            "labelLimit": 300,
            "columns": 1 if max(map(len, runs)) > 22 else by_width(1, 3),
        },
    }
    x = index_axis(section)
    y: Spec = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {**PERCENT_AXIS, "title": "cases that violate at least one rule"},
    }
    tips = tooltip(
        ("run", "run"),
        ("threshold", "threshold"),
        ("count", "violated"),
        ("rate", "rate"),
        ("interval", "95 % interval"),
    )
    first = counts(labelled(curve_table, section)).select(
        "run", "t", "threshold", "rate", "low", "high", "count", "interval"
    )
    lines: list[Spec] = [
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
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "tooltip": tips,
                "size": {"condition": {"test": "datum.t === t", "value": 110}, "value": 36},
            },
        },
    ]
    shown = min(rate_table["name"].n_unique(), MANY)
    second = counts(rate_table).select("run", "name", "t", "order", "rate", "low", "high", "count", "interval")
    names = name_rows()
    offset: Spec = {"field": "run", "type": "nominal", "sort": list(runs), "scale": {"paddingOuter": 0.2}}
    height = shown * (8 + 15 * len(runs))
    dots = dot_layers(
        names,
        colour,
        "cases that violate the rule",
        tooltip(
            ("name", "rule"), ("run", "run"), ("count", "violated"), ("rate", "rate"), ("interval", "95 % interval")
        ),
    )
    for layer in dots:
        layer["encoding"]["yOffset"] = offset
    return [
        Chart(
            "compare-curves",
            "Failing cases against the threshold, by run",
            "Cases that violate at least one rule, with the 95 % interval, among the cases that all runs have.",
            drawn(300, section.start, lines, data={"name": "compare-curves"}),
            {"compare-curves": first},
            400,
        ),
        Chart(
            "compare-rates",
            "Violation rate per rule, by run",
            "The share of the judged cases that violate each rule, with its 95 % interval and the counts"
            + (f"; the {MANY} most violated rules." if rate_table["name"].n_unique() > MANY else "."),
            drawn(
                height,
                section.start,
                dots,
                data={"name": "compare-rates"},
                transform=[{"filter": f"datum.t === t && datum.order < {MANY}"}],
            ),
            {"compare-rates": second},
            height + AXES + 40,
        ),
    ]
