"""Figures of hand pose: the response to covering, F1 per test case, PCK curves, fingers, and runs beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

import polars as pl

from instar.engine import SOURCE
from instar.report.chart import (
    AXES,
    CONTAINER,
    NAME_LABELS,
    NARROW,
    ROW,
    Chart,
    Spec,
    apart,
    by_width,
    curve_layers,
    drawn,
    name_rows,
    share_axis,
    smaller,
    tooltip,
    whole_names,
)
from instar.report.section import Section
from instar.report.words import interval
from instar.tasks.hand_pose.comparison import PURPOSES
from instar.tasks.hand_pose.counts import FINGERS
from instar.tasks.hand_pose.follow_ups import GROUPS, RESPONSE
from instar.tasks.hand_pose.measures import LOST

SERIES = {
    SOURCE: "ink",
    "occlusion": "orange",
    "exposure": "yellow",
    "blur": "blue",
    "geometry": "green",
    "colour": "violet",
    "other": "pink",
}
"""What is drawn of the groups of test cases, in this order and in these colours."""
_RUNS = ("blue", "orange", "green", "pink", "yellow", "sky", "violet")
_LOST_ROOM = 100
"""Pixels at the right of the bars, for what test cases lose."""
_WORDS = {**GROUPS, SOURCE: SOURCE}
_FAINT_LINE: Spec = {"type": "rule", "strokeDash": [2, 3], "color": "var(--faint)"}


def _with_words(table: pl.DataFrame) -> pl.DataFrame:
    """With what tooltips say."""
    ends = table.select("low", "high").iter_rows()
    words = [None if low is None else f"{interval(low, high)} %" for low, high in ends]
    return table.with_columns(pl.Series("interval", words, pl.String), rate=pl.col("value"))


def _colours(names: Sequence[str], colours: Iterable[str], symbol: str, **more: object) -> Spec:
    """A colour and an entry in the legend for each series."""
    return {
        "field": "series",
        "type": "nominal",
        "sort": list(names),
        "scale": {"domain": list(names), "range": [f"var(--{colour})" for colour in colours][: len(names)]},
        "legend": {
            "title": None,
            "orient": "bottom",
            "columns": by_width(2, 3),
            "symbolType": symbol,
            "symbolStrokeWidth": 2.5 if symbol == "stroke" else 0,
            **more,
        },
    }


def _numbers(field: str, scale: Spec, axis: Spec) -> Spec:
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def response_curves(table: pl.DataFrame, section: Section) -> Chart | None:
    """TC1: precision, recall and F1 against the number of covered landmarks."""
    if table.is_empty():
        return None
    names = {"f1": "F1", "precision": "precision", "recall": "recall"}
    shown = _with_words(table.filter(pl.col("measure").is_in(list(names)))).select(
        "n",
        "rate",
        "low",
        "high",
        "interval",
        pl.col("landmark").str.replace_all("_", " "),
        series=pl.col("measure").replace(names),
    )
    finished = table.filter((pl.col("measure") == "f1") & pl.col("completes").is_not_null()).select("n", "completes")
    last = max(table["n"])
    axis: Spec = {"grid": False, "title": "landmarks covered, from the wrist on", "values": [0, 1, *finished["n"]]}
    x = _numbers("n", {"domain": [0, last], "nice": False}, {**axis, "labelFlush": False})
    colour = _colours(list(names.values()), ("ink", "blue", "orange"), "stroke")
    tips = tooltip(
        ("series", "measure"),
        ("n", "covered"),
        ("landmark", "the last one"),
        ("rate", "value"),
        ("interval", "95 % interval"),
    )
    end = {"expr": f"datum.n > {last - 1} ? 'right' : 'center'"}
    name: Spec = {"type": "text", "y": -8, "fontSize": 11, "color": "var(--faint)", "tooltip": None, "align": end}
    completed = {"data": {"name": "completed"}}
    band, *curves = curve_layers(x, share_axis("precision, recall, F1 of landmarks"), colour, tips, size=30)
    layers: list[Spec] = [
        {**completed, "mark": _FAINT_LINE, "encoding": {"x": x}},
        {**completed, "mark": name, "encoding": {"x": x, "text": {"field": "completes"}}},
        {**band, "transform": [{"filter": "datum.series === 'F1'"}]},
        *curves,
    ]
    return Chart(
        "hands-response",
        "TC1: the response to covering",
        "The band is the 95 % interval of F1. Dotted lines mark the landmarks that complete a finger. A system that "
        "sees what is there falls evenly; one that does not fall does not look.",
        drawn(270, section.start, layers, data={"name": "response"}),
        {"response": shown, "completed": finished},
        380,
    )


_RESPONSES = {
    "precision": "precision of landmarks",
    "recall": "recall of landmarks",
    "f1": "F1 of landmarks",
    "hand_precision": "precision of hands",
    "hand_recall": "recall of hands",
    "hand_f1": "F1 of hands",
}


def compared_responses(table: pl.DataFrame, names: Sequence[str]) -> Chart:
    """TC1 of several systems: each measure against the number of covered landmarks, a curve for each system."""
    measure = pl.col("measure").replace(_RESPONSES)
    shown = table.select("n", "low", "high", measure, rate="value", series="run")
    crucial = [0, *table.drop_nulls("completes")["n"].unique().sort()]
    axis: Spec = {"grid": True, "title": "landmarks covered", "values": crucial, "labelFlush": False}
    x = _numbers("n", {"domain": [0, max(table["n"])], "nice": False}, axis)
    colours = dict(zip(names, cycle(_RUNS), strict=False))
    colour = _colours(list(names), colours.values(), "stroke")
    colour = {**colour, "legend": whole_names(names, symbolType="stroke")}
    band, line, points = curve_layers(x, share_axis(""), colour, [], size=12, **apart("series", names))
    points["encoding"]["size"] = smaller("series", names, 36)
    layers = [band, line, points]
    header: Spec = {"title": None, "labelFontSize": 13, "labelColor": "var(--ink)"}
    facet: Spec = {"field": "measure", "type": "nominal", "sort": list(_RESPONSES.values()), "header": header}
    return Chart(
        "hands-responses",
        "TC1: the response to covering, by system",
        "With 95 % intervals. Lines mark the landmarks that complete a finger. The cases are those that were judged at "
        "every level, and that all systems have.",
        {
            "facet": facet,
            "columns": 3,
            "spec": {"width": 250, "height": 170, "layer": layers},
            "data": {"name": "responses"},
        },
        {"responses": shown},
        520,
    )


def bars_by_test_case(table: pl.DataFrame, section: Section) -> Chart:
    """F1 of each test case with precision and recall, the baseline, and what is lost from it."""
    words = {**GROUPS, SOURCE: "baseline"}
    drawn_measures = pl.col("measure").is_in(["f1", "precision", "recall"])
    placed = _placed(table.filter(drawn_measures & (pl.col("group") != RESPONSE)))
    ends = [(100 * pl.col(end)).round(0).cast(pl.Int64) for end in LOST]
    series = pl.col("group").replace(words)
    lost = pl.when((pl.col("measure") == "f1") & (pl.col("order") > 0)).then(pl.format("{} ({} to {})", *ends))
    columns = ("name", "order", "measure", "rate", "low", "high", "interval", "cases")
    shown = placed.select(*columns, series=series, lost=lost)
    groups = {words[name]: colour for name, colour in SERIES.items() if words[name] in set(shown["series"])}
    rows = shown["name"].n_unique()
    return Chart(
        "hands-tests",
        "F1 per test case",
        "Lines over the bars are 95 % intervals. The dashed line is the baseline; triangles are precision, circles "
        "recall. Points of F1 lost from the baseline are in the table, and at the right where there is room. "
        "The suite's rules over all cases allow 5 % of the baseline to be lost, whatever that is in points.",
        drawn((ROW + 5) * rows, section.start, _test_case_layers(groups), data={"name": "tests"}),
        {"tests": shown},
        (ROW + 5) * rows + AXES + 60,
    )


def _test_case_layers(groups: Mapping[str, str]) -> list[Spec]:
    narrow = f"{CONTAINER} < {NARROW}"
    x = share_axis("F1 of landmarks")
    x["scale"] = {"domain": [0, 1], "range": [0, {"expr": f"{narrow} ? width : width - {_LOST_ROOM}"}]}
    y = name_rows()
    y["axis"] = {**y["axis"], **_in_two("datum.label")}
    colour = _colours(list(groups), groups.values(), "square")
    tips = tooltip(
        ("name", "test case"),
        ("measure", "measure"),
        ("rate", "value"),
        ("interval", "95 % interval"),
        ("cases", "cases"),
        ("lost", "points lost"),
    )
    f1 = [{"filter": "datum.measure === 'f1' && isValid(datum.rate)"}]
    baseline = [{"filter": "datum.measure === 'f1' && datum.order === 0"}]
    faint: Spec = {"type": "text", "align": "right", "fontSize": 11.5, "color": "var(--faint)", "tooltip": None}
    right: Spec = {"x": {"value": {"expr": "width"}}, "opacity": {"value": by_width(0, 1)}, "y": y}
    shape: Spec = {
        "field": "measure",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": ["precision", "recall"], "range": ["triangle-up", "circle"]},
    }
    return [
        {
            "transform": f1,
            "mark": {"type": "bar", "height": {"band": 0.62}, "opacity": 0.45},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
        {
            "transform": baseline,
            "encoding": {"x": x},
            "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.4, "color": "var(--ink)"},
        },
        {
            "transform": f1,
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        },
        {
            "transform": [{"filter": "datum.measure !== 'f1' && isValid(datum.rate)"}],
            "mark": {"type": "point", "size": 46, "opacity": 1, "strokeWidth": 1.6, "fill": "var(--paper)"},
            "encoding": {"x": x, "y": y, "stroke": {"value": "var(--ink)"}, "tooltip": tips, "shape": shape},
        },
        {
            "transform": [{"filter": "isValid(datum.lost)"}],
            "mark": faint,
            "encoding": {**right, "text": {"field": "lost"}},
        },
        {"transform": baseline, "mark": {**faint, "text": "points lost"}, "encoding": right},
    ]


def _placed(table: pl.DataFrame) -> pl.DataFrame:
    """With what figures of test cases need: the title as a name, and the place in the suite."""
    places = {name: number for number, name in enumerate(dict.fromkeys(table["follow_up"]))}
    order = pl.col("follow_up").replace_strict(places, return_dtype=pl.Int32)
    return _with_words(table).with_columns(name="title", order=order)


def pck_curves(table: pl.DataFrame, options: Mapping[str, object], section: Section) -> Chart | None:
    """The share of landmarks within a distance, for the source and each kind of test case."""
    series = [name for name in SERIES if name in set(table["group"])]
    shown = _with_words(table.filter(pl.col("group").is_in(series) & pl.col("value").is_not_null())).select(
        "t", "rate", "low", "high", "interval", series=pl.col("group").replace(_WORDS)
    )
    if shown.is_empty():
        return None
    axis: Spec = {"grid": False, "title": "distance in sizes of the hand", "tickCount": 5, "labelFlush": False}
    x = _numbers("t", {"domain": [0, 0.5], "nice": False}, axis)
    colour = _colours([_WORDS[name] for name in series], [SERIES[name] for name in series], "stroke")
    tips = tooltip(("series", "images"), ("t", "within"), ("rate", "landmarks"), ("interval", "95 % interval"))
    layers = curve_layers(x, share_axis("landmarks within this distance"), colour, tips, size=12)
    dotted = options["normaliser"] == "part"
    if dotted:
        near: Spec = {"values": [{"t": options["within"]}]}
        layers.insert(0, {"data": near, "encoding": {"x": x}, "mark": {**_FAINT_LINE, "tooltip": None}})
    return Chart(
        "hands-pck",
        "How near landmarks are",
        "The share of all landmarks that lie within a distance (PCK), with 95 % intervals; a hand that is not "
        f"found is within none.{' What lies to the left of the dotted line is right.' if dotted else ''}",
        drawn(270, section.start, layers, data={"name": "pck"}),
        {"pck": shown},
        370,
    )


def _bar_chart(
    name: str,
    title: str,
    description: str,
    shown: pl.DataFrame,
    colours: Mapping[str, str],
    measure: str,
    tips: Sequence[Spec],
    section: Section,
) -> Chart:
    """Bars with intervals, some rows for each name and one of them for each series.

    Rows have places of their own on a plain axis: in bands, rules would lie at the edges of their bars.
    """
    step = len(colours) + 1
    rows = dict(shown.select("order", "name").unique().sort("order").iter_rows())
    places = {order: number * step for number, order in enumerate(rows)}
    series = {name: number for number, name in enumerate(colours)}
    at = pl.col("order").replace_strict(places, return_dtype=pl.Float64) + pl.col("series").replace_strict(
        series, return_dtype=pl.Float64
    )
    placed = shown.with_columns(at=at, top=at - 0.42, bottom=at + 0.42, zero=pl.lit(0.0))
    middles = [place + (step - 2) / 2 for place in places.values()]
    label = f"{json.dumps(list(rows.values()))}[indexof({json.dumps(middles)}, datum.value)]"
    x, last = share_axis(measure), step * len(rows) - 1.4
    axis: Spec = {"title": None, "ticks": False, "domain": False, "grid": False, "values": middles, **_in_two(label)}
    y = _numbers("at", {"domain": [-0.6, last], "reverse": True, "nice": False}, axis)
    colour = _colours(list(colours), colours.values(), "square", labelLimit=300)
    across: Spec = {"x": {**x, "field": "zero"}, "x2": {"field": "rate"}}
    down: Spec = {"y": {**y, "field": "top"}, "y2": {"field": "bottom"}}
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "opacity": 0.45},
            "encoding": {**across, **down, "color": colour, "tooltip": list(tips)},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        },
    ]
    height = round(13 * (last + 0.6))
    spec = drawn(height, section.start, layers, data={"name": name})
    return Chart(name, title, description, spec, {name: placed}, height + AXES + 40)


def _in_two(label: str) -> Spec:
    """Labels that on a phone have two lines: the first word, and the rest."""
    test = f"{CONTAINER} < {NARROW} && indexof({label}, ' ') > 0"
    return {
        **NAME_LABELS,
        "labelExpr": f"{test} ? [slice({label}, 0, indexof({label}, ' ')), "
        f"slice({label}, indexof({label}, ' ') + 1)] : {label}",
        "labelBaseline": {"condition": {"test": test, "value": "bottom"}, "value": "middle"},
    }


def finger_bars(table: pl.DataFrame, section: Section) -> Chart | None:
    """The share of each finger's landmarks that are right, in the source and under each kind of test case."""
    series = [name for name in SERIES if name in set(table["of"])]
    order = {name: number for number, name in enumerate([*FINGERS, "wrist"])}
    shares = table.filter((pl.col("measure") == "right") & pl.col("of").is_in(series) & pl.col("value").is_not_null())
    if shares.is_empty():
        return None
    place = pl.col("finger").replace_strict(order, return_dtype=pl.Int32)
    shown = _with_words(shares).select(
        "rate", "low", "high", "interval", name="finger", series=pl.col("of").replace(_WORDS), order=place
    )
    return _bar_chart(
        "hands-fingers",
        "Finger by finger",
        "The share of each finger's landmarks that are right, with 95 % intervals.",
        shown,
        {_WORDS[name]: SERIES[name] for name in series},
        "landmarks that are right",
        tooltip(("name", "finger"), ("series", "images"), ("rate", "right"), ("interval", "95 % interval")),
        section,
    )


def run_bars(table: pl.DataFrame, names: Sequence[str], section: Section, cases: str) -> Chart:
    """F1 of each test case, run by run; `cases` says on how many."""
    f1 = table.filter((pl.col("measure") == "f1") & (pl.col("group") != RESPONSE) & pl.col("value").is_not_null())
    return _bar_chart(
        "hands-compared",
        "F1 per test case, by run",
        f"With 95 % intervals. {cases}",
        _placed(f1).select("name", "order", "rate", "low", "high", "interval", "cases", series="run"),
        dict(zip(names, cycle(_RUNS), strict=False)),
        "F1 of landmarks",
        tooltip(
            ("name", "test case"), ("series", "run"), ("rate", "F1"), ("interval", "95 % interval"), ("cases", "cases")
        ),
        section,
    )


def purpose_bars(table: pl.DataFrame, names: Sequence[str], section: Section) -> Chart:
    """The measure that decides, for each purpose, run by run."""
    deciding = pl.DataFrame(
        [(number, name, each.measure, each.group) for number, (name, each) in enumerate(PURPOSES.items())],
        schema=["order", "name", "measure", "group"],
        orient="row",
    )
    decided = deciding.join(table, on=["measure", "group"], maintain_order="left").filter(pl.col("value").is_not_null())
    return _bar_chart(
        "hands-purposes",
        "What they are good for",
        "With 95 % intervals: F1 in the source, under motion blur, exposure and a covered finger; precision, "
        "and recall of hands, over source and test cases.",
        _with_words(decided).select(
            "order", "name", "rate", "low", "high", "interval", "measure", "cases", series="run"
        ),
        dict(zip(names, cycle(_RUNS), strict=False)),
        "the measure that decides",
        tooltip(
            ("name", "purpose"),
            ("series", "run"),
            ("measure", "measure"),
            ("rate", "value"),
            ("interval", "95 % interval"),
            ("cases", "cases"),
        ),
        section,
    )
