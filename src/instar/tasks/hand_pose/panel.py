"""What a report shows of hand pose: what each test case costs, figures, tables and advice; of one run or of several."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Console

from instar.analysis import Run
from instar.engine import DEFAULT, SOURCE
from instar.report.chart import (
    AXES,
    NAME_LABELS,
    NARROW,
    PERCENT_AXIS,
    ROW,
    Chart,
    Spec,
    by_width,
    drawn,
    name_rows,
    tooltip,
)
from instar.report.compared import run_names
from instar.report.panels import Panel, PanelContent, Table
from instar.report.section import Section
from instar.report.tables import Prepared, show_tables
from instar.tasks.hand_pose.analysis import (
    FINGERS,
    GROUPS,
    PURPOSES,
    HandCounts,
    hand_comparison,
    hand_counts,
    hand_frames,
)

__all__ = ["hand_json", "hand_panel", "hands_compared", "show_hands"]

_SERIES = {SOURCE: "ink", "occlusion": "orange", "exposure": "yellow", "blur": "blue", "other": "pink"}
_RUNS = ("blue", "orange", "green", "pink", "yellow", "sky", "violet")
_SHARES = ("hand_precision", "hand_recall", "hand_f1", "precision", "recall", "f1")
_UNITS = {"part": "sizes of the hand", "box": "sizes of its box", "image": "image diagonals", "pixels": "pixels"}


def hand_panel(run: Run, section: Section, judging: str) -> PanelContent | None:
    """The panel `hands`, under the relation `accuracy`."""

    if section.relation != "accuracy":
        return None
    frames, held = hand_frames(run, judging=judging), hand_counts(run, judging)
    if frames["measures"]["value"].is_null().all():
        return None
    charts = [
        _response(frames["response"], section),
        _test_cases(frames["measures"], section),
        _pck(frames["pck"], held, section),
        _fingers(frames["fingers"], section),
    ]
    tables = [
        _advice(frames["advice"]),
        *_baselines({"": frames["baselines"]}, held),
        _costs(frames["measures"], held),
        _finger_shares(frames["fingers"]),
        _crucial(frames["crucial"]),
    ]
    return PanelContent(
        "How well it finds hands",
        _text(held),
        [chart for chart in charts if chart],
        [Table(*table) for table in tables if table[2]],
    )


def hands_compared(runs: Sequence[Run], names: Sequence[str], section: Section, judging: str) -> PanelContent | None:
    """The same of several runs beside each other, and which of them to prefer for what; None for other relations."""

    if section.relation != "accuracy":
        return None
    held = {name: hand_counts(run, judging) for name, run in zip(names, runs, strict=True)}
    frames = hand_comparison(held)
    tables = [
        _advice(frames["advice"]),
        *_baselines(_by_run(frames["baselines"]), *held.values()),
        _side_by_side(frames["measures"]),
    ]
    charts = [_compared(frames["measures"], names, section), _purposes(frames["groups"], names, section)]
    return PanelContent(
        "Which one for what", _text(*held.values()), charts, [Table(*table) for table in tables if table[2]]
    )


# --- words -----------------------------------------------------------------------------------------


def _text(*held: HandCounts) -> str:
    """What the numbers are measured against, and by."""
    options = held[0].options
    kinds = {kind for each in held for kind in each.cases["reference"]}
    against = {"truth": "the ground truth", "source": "the system's own answers to the source"}
    told = " or ".join(words for kind, words in against.items() if kind in kinds)
    some = any(
        each.cases["object"].dtype == pl.Boolean
        and each.cases["object"].any()
        and not each.cases["object"].fill_null(False).all()
        for each in held
    )
    objects = " Cases whose attribute object is true are in the baselines only." if some else ""
    unit = _UNITS[options["normaliser"]]
    return (
        f"Measured against {told}. A landmark is right nearer than {options['within']:g} {unit}"
        f"{' (wrist to middle knuckle)' if options['normaliser'] == 'part' else ''}, a hand where the boxes of the "
        f"landmarks overlap by more than {options['iou']:g}; nothing found is a miss. Intervals are 95 % intervals "
        f"over a thousand resamples of the cases.{objects}"
    )


def _advice(table: pl.DataFrame) -> Prepared:
    return "What follows, and from which numbers", ["advice"], [[sentence] for sentence in _sentences(table)]


def _sentences(table: pl.DataFrame) -> list[str]:
    """Advice, each followed by the numbers that it follows from."""
    return [
        f"{says} {because[0].upper()}{because[1:]}." for says, because in table.select("says", "because").iter_rows()
    ]


def _percent(row: Mapping[str, Any] | None) -> str:
    """A share in per cent with its interval."""
    if row is None or row["value"] is None:
        return "–"
    share = "100" if row["value"] == 1 else f"{100 * row['value']:.1f}"
    return f"{share} ({100 * row['low']:.0f}–{100 * row['high']:.0f})"


def _distance(row: Mapping[str, Any] | None) -> str:
    return "–" if row is None or row["value"] is None else f"{row['value']:.2f} ({row['low']:.2f}–{row['high']:.2f})"


def _lost(row: Mapping[str, Any]) -> str:
    if row["lost"] is None or row["follow_up"] == SOURCE:
        return "–"
    return f"{100 * row['lost']:z.1f} ({round(100 * row['lost_low'])} to {round(100 * row['lost_high'])})"


def _by_run(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {str(name): part for (name,), part in table.group_by("run", maintain_order=True)}


def _rows_of(table: pl.DataFrame, *keys: str) -> dict[Any, dict[str, dict[str, Any]]]:
    """By some columns, and then by measure."""
    found: dict[Any, dict[str, dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(tuple(row[key] for key in keys), {})[row["measure"]] = row
    return found


# --- tables ----------------------------------------------------------------------------------------

_TITLES = {"without objects": "hands without objects (Table II)", "with objects": "hands with objects (Table III)"}


def _baselines(runs: Mapping[str, pl.DataFrame], *held: HandCounts) -> list[Prepared]:
    """Tables II and III; one of all hands where nothing says which of them hold an object.

    None where nothing is annotated: against itself, every system is perfect.
    """
    if not any("truth" in each.cases["reference"] for each in held):
        return []
    slices = list(dict.fromkeys(name for table in runs.values() for name in table["hands"]))
    first = ["system"] if len(runs) > 1 else []
    found = []
    for name in slices[1:] if len(slices) > 1 else slices:
        rows = []
        for run, table in runs.items():
            mine = _rows_of(table, "hands").get((name,))
            if mine:
                rows.append(
                    [
                        *([run] if first else []),
                        str(mine["f1"]["cases"]),
                        *(_percent(mine[one]) for one in (*_SHARES, "auc")),
                    ]
                )
        heads = [f"{of} {measure}" for of in ("hand", "mark") for measure in ("P", "R", "F1")]
        found.append(
            (
                f"Baseline of {_TITLES.get(name, name)}, in % with 95 % intervals: precision, recall and F1 of "
                "hands and of landmarks, and the area under the PCK curve",
                [*first, "cases", *heads, "PCK"],
                rows,
            )
        )
    return found


def _named(row: Mapping[str, Any]) -> str:
    return f"{row['test_case']} {row['name']}".strip()


def _costs(table: pl.DataFrame, held: HandCounts) -> Prepared:
    """What each test case costs, without the levels of TC1: those are a curve."""
    mine = _rows_of(table.filter(pl.col("group") != "response"), "follow_up")
    rows = [
        [
            _named(row["f1"]),
            str(row["f1"]["cases"]),
            _percent(row["f1"]),
            _lost(row["f1"]),
            *(_percent(row[name]) for name in ("precision", "recall", "hand_f1")),
            _distance(row["error"]),
        ]
        for row in mine.values()
    ]
    return (
        "Test cases, in % with 95 % intervals; lost: points of F1 less than the source of the same cases; error in "
        f"{_UNITS[held.options['normaliser']]}",
        ["test case", "cases", "F1", "lost", "precision", "recall", "hand F1", "error"],
        rows,
    )


def _side_by_side(table: pl.DataFrame) -> Prepared:
    """Systems × test cases × measures."""
    mine = _rows_of(table.filter(pl.col("group") != "response"), "follow_up", "run")
    runs, names = list(dict.fromkeys(table["run"])), dict.fromkeys(follow_up for follow_up, _ in mine)
    rows = []
    for name in names:
        for run in runs:
            row = mine.get((name, run))
            if row:
                rows.append(
                    [
                        _named(row["f1"]) if run == runs[0] else "",
                        run,
                        _percent(row["f1"]),
                        _lost(row["f1"]),
                        _percent(row["precision"]),
                        _percent(row["recall"]),
                        _percent(row["hand_f1"]),
                    ]
                )
    return (
        "Test cases by system, in % with 95 % intervals; lost: points of F1 less than the source of the same cases",
        ["test case", "system", "F1", "lost", "precision", "recall", "hand F1"],
        rows,
    )


def _finger_shares(table: pl.DataFrame) -> Prepared:
    series = [name for name in _SERIES if name in set(table["of"])]
    held = {(row["of"], row["finger"]): row for row in table.filter(measure="right").iter_rows(named=True)}
    rows = [
        [finger, *(_percent(held.get((name, finger))) for name in series)]
        for finger in dict.fromkeys(table["finger"])
        if held[SOURCE, finger]["value"] is not None
    ]
    return (
        "Landmarks that are right, by finger, in % with 95 % intervals",
        ["finger", "source", *(GROUPS[name] for name in series[1:])],
        rows,
    )


def _crucial(table: pl.DataFrame) -> Prepared:
    rows = [
        [
            {"f1": "F1"}.get(row["measure"], row["measure"]),
            str(row["cases"]),
            f"{100 * row['completing']:z.1f}",
            f"{100 * row['others']:z.1f}",
            _more(row),
        ]
        for row in table.drop_nulls("value").iter_rows(named=True)
    ]
    return (
        "TC1, crucial points: what one more covered landmark costs in points, where it completes a finger (5, 9, "
        "13, 17, 21) and elsewhere, and the difference with its 95 % interval",
        ["measure", "cases", "completing", "elsewhere", "difference"],
        rows,
    )


def _more(row: Mapping[str, Any]) -> str:
    return f"{100 * row['value']:+z.1f} ({100 * row['low']:+z.1f} to {100 * row['high']:+z.1f})"


# --- figures ---------------------------------------------------------------------------------------

_LOST_ROOM = 100


def _interval(table: pl.DataFrame) -> pl.DataFrame:
    """With what tooltips say."""
    ends = [(100 * pl.col(end)).round(0).cast(pl.Int64) for end in ("low", "high")]
    return table.with_columns(rate=pl.col("value"), interval=pl.format("{}–{} %", *ends))


def _colours(names: Sequence[str], colours: Iterable[str], symbol: str, **more: Any) -> Spec:
    """A colour and an entry in the legend for each series."""
    return {
        "field": "series",
        "type": "nominal",
        "sort": list(names),
        "scale": {"domain": list(names), "range": [f"var(--{colour})" for colour in colours][: len(names)]},
        "legend": {
            "title": None,
            "orient": "bottom",
            "columns": by_width(2, 4),
            "symbolType": symbol,
            "symbolStrokeWidth": 2.5 if symbol == "stroke" else 0,
            **more,
        },
    }


def _share(title: str) -> Spec:
    return {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {**PERCENT_AXIS, "title": title},
    }


def _lines(x: Spec, y: Spec, colour: Spec, tips: Sequence[Spec], *, size: int, banded: str = "true") -> list[Spec]:
    """Curves with their points, and the intervals of those that pass a filter."""
    return [
        {
            "transform": [{"filter": banded}],
            "mark": {"type": "area", "opacity": 0.13},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {"mark": {"type": "line", "strokeWidth": 2.4}, "encoding": {"x": x, "y": y, "color": colour}},
        {
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": size},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": list(tips)},
        },
    ]


def _response(table: pl.DataFrame, section: Section) -> Chart | None:
    """TC1: precision, recall and F1 against the number of covered landmarks."""
    if table.is_empty():
        return None
    names = {"f1": "F1", "precision": "precision", "recall": "recall"}
    shown = _interval(table).select(
        "n", "rate", "low", "high", "interval", "landmark", series=pl.col("measure").replace(names)
    )
    finished = table.filter((pl.col("measure") == "f1") & pl.col("completes").is_not_null()).select("n", "completes")
    last = max(table["n"])
    x: Spec = {
        "field": "n",
        "type": "quantitative",
        "scale": {"domain": [0, last], "nice": False},
        "axis": {
            "grid": False,
            "title": "landmarks covered, from the wrist on",
            "values": [0, 1, *finished["n"]],
            "labelFlush": False,
        },
    }
    colour = _colours(list(names.values()), ("ink", "blue", "orange"), "stroke")
    tips = tooltip(
        ("series", "measure"),
        ("n", "covered"),
        ("landmark", "the last one"),
        ("rate", "value"),
        ("interval", "95 % interval"),
    )
    end = {"expr": f"datum.n > {last - 1} ? 'right' : 'center'"}
    layers: list[Spec] = [
        {
            "data": {"name": "completed"},
            "mark": {"type": "rule", "strokeDash": [2, 3], "color": "var(--faint)"},
            "encoding": {"x": x},
        },
        {
            "data": {"name": "completed"},
            "mark": {"type": "text", "y": -8, "fontSize": 11, "color": "var(--faint)", "tooltip": None, "align": end},
            "encoding": {"x": x, "text": {"field": "completes"}},
        },
        *_lines(x, _share("precision, recall, F1 of landmarks"), colour, tips, size=30, banded="datum.series === 'F1'"),
    ]
    return Chart(
        "hands-response",
        "TC1: the response to covering",
        "With the 95 % interval of F1. Dotted: the landmark that completes a finger. A system that sees what "
        "is there falls evenly; one that does not fall does not look.",
        drawn(270, section.start, layers, data={"name": "response"}),
        {"response": shown, "completed": finished},
        380,
    )


def _test_cases(table: pl.DataFrame, section: Section) -> Chart:
    """F1 of each test case with precision and recall, the baseline, and what is lost from it."""
    words = {**GROUPS, SOURCE: "baseline"}
    asked = pl.col("measure").is_in(["f1", "precision", "recall"])
    mine = _placed(table.filter(asked & (pl.col("group") != "response")))
    ends = [(100 * pl.col(end)).round(0).cast(pl.Int64) for end in ("lost", "lost_low", "lost_high")]
    shown = mine.select(
        "name",
        "order",
        "measure",
        "rate",
        "low",
        "high",
        "interval",
        "cases",
        series=pl.col("group").replace(words),
        lost=pl.when((pl.col("measure") == "f1") & (pl.col("order") > 0)).then(pl.format("{} ({} to {})", *ends)),
    )
    groups = [name for name in _SERIES if words[name] in set(shown["series"])]
    narrow = f"containerSize()[0] < {NARROW}"
    x: Spec = {
        "field": "rate",
        "type": "quantitative",
        "axis": {**PERCENT_AXIS, "title": "F1 of landmarks"},
        "scale": {"domain": [0, 1], "range": [0, {"expr": f"{narrow} ? width : width - {_LOST_ROOM}"}]},
    }
    y = name_rows()
    y["axis"] = {**y["axis"], **_in_two("datum.label")}
    colour = _colours([words[name] for name in groups], [_SERIES[name] for name in groups], "square")
    f1: list[Spec] = [{"filter": "datum.measure === 'f1' && isValid(datum.rate)"}]
    tips = tooltip(
        ("name", "test case"),
        ("measure", "measure"),
        ("rate", "value"),
        ("interval", "95 % interval"),
        ("cases", "cases"),
        ("lost", "points lost"),
    )
    faint: Spec = {"type": "text", "align": "right", "fontSize": 11.5, "color": "var(--faint)", "tooltip": None}
    right: Spec = {"x": {"value": {"expr": "width"}}, "opacity": {"value": by_width(0, 1)}}
    layers: list[Spec] = [
        {
            "transform": f1,
            "mark": {"type": "bar", "height": {"band": 0.62}, "opacity": 0.45},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
        {
            "transform": [{"filter": "datum.measure === 'f1' && datum.order === 0"}],
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
            "encoding": {
                "x": x,
                "y": y,
                "stroke": {"value": "var(--ink)"},
                "tooltip": tips,
                "shape": {
                    "field": "measure",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": ["precision", "recall"], "range": ["triangle-up", "circle"]},
                },
            },
        },
        {
            "transform": [{"filter": "isValid(datum.lost)"}],
            "mark": faint,
            "encoding": {**right, "y": y, "text": {"field": "lost"}},
        },
        {
            "transform": [{"filter": "datum.measure === 'f1' && datum.order === 0"}],
            "mark": {**faint, "text": "points lost"},
            "encoding": {**right, "y": y},
        },
    ]
    rows = shown["name"].n_unique()
    return Chart(
        "hands-tests",
        "F1 per test case",
        "Bars with 95 % intervals; dashed: the baseline; triangles: precision, circles: recall. At the right "
        "the points of F1 lost from the baseline, as in the table: more than 5 for certain is a violation.",
        drawn((ROW + 5) * rows, section.start, layers, data={"name": "tests"}),
        {"tests": shown},
        (ROW + 5) * rows + AXES + 60,
    )


def _placed(table: pl.DataFrame) -> pl.DataFrame:
    """With what figures of test cases need: the name in full, and the place in the suite."""
    places = {name: number for number, name in enumerate(dict.fromkeys(table["follow_up"]))}
    return _interval(table).with_columns(
        name=pl.format("{} {}", "test_case", "name").str.strip_chars(),
        order=pl.col("follow_up").replace_strict(places, return_dtype=pl.Int32),
    )


def _pck(table: pl.DataFrame, held: HandCounts, section: Section) -> Chart | None:
    """The share of landmarks within a distance, for the source and each kind of test case."""
    words = {**GROUPS, SOURCE: SOURCE}
    series = [name for name in _SERIES if name in set(table["group"])]
    shown = _interval(table.filter(pl.col("group").is_in(series) & pl.col("value").is_not_null())).select(
        "t", "rate", "low", "high", "interval", series=pl.col("group").replace(words)
    )
    if shown.is_empty():
        return None
    x: Spec = {
        "field": "t",
        "type": "quantitative",
        "scale": {"domain": [0, 0.5], "nice": False},
        "axis": {"grid": False, "title": "distance in sizes of the hand", "tickCount": 5, "labelFlush": False},
    }
    colour = _colours([words[name] for name in series], [_SERIES[name] for name in series], "stroke")
    tips = tooltip(("series", "pictures"), ("t", "within"), ("rate", "landmarks"), ("interval", "95 % interval"))
    layers = _lines(x, _share("landmarks within this distance"), colour, tips, size=12)
    dotted = held.options["normaliser"] == "part"
    if dotted:
        layers.insert(
            0,
            {
                "data": {"values": [{"t": held.options["within"]}]},
                "encoding": {"x": x},
                "mark": {"type": "rule", "strokeDash": [2, 3], "color": "var(--faint)", "tooltip": None},
            },
        )
    return Chart(
        "hands-pck",
        "How near landmarks are",
        "The share of all landmarks that lie within a distance (PCK), with 95 % intervals; a hand that is not "
        f"found is within none.{' Dotted: what is nearer is right.' if dotted else ''}",
        drawn(270, section.start, layers, data={"name": "pck"}),
        {"pck": shown},
        370,
    )


def _bars(
    shown: pl.DataFrame, names: Sequence[str], colours: Sequence[str], title: str, tips: Sequence[Spec]
) -> tuple[pl.DataFrame, list[Spec], int]:
    """Bars with intervals, some rows for each name and one of them for each series; and how high they are.

    Rows have places of their own on a plain axis: in bands, rules would lie at the edges of their bars.
    """
    step = len(names) + 1
    rows = dict(shown.select("order", "name").unique().sort("order").iter_rows())
    places = {order: number * step for number, order in enumerate(rows)}
    series = {name: number for number, name in enumerate(names)}
    at = pl.col("order").replace_strict(places, return_dtype=pl.Float64) + pl.col("series").replace_strict(
        series, return_dtype=pl.Float64
    )
    placed = shown.with_columns(at=at, top=at - 0.42, bottom=at + 0.42, zero=pl.lit(0.0))
    middles = [place + (step - 2) / 2 for place in places.values()]
    label = f"{json.dumps(list(rows.values()))}[indexof({json.dumps(middles)}, datum.value)]"
    x, last = _share(title), step * len(rows) - 1.4
    y: Spec = {
        "field": "at",
        "type": "quantitative",
        "scale": {"domain": [-0.6, last], "reverse": True, "nice": False},
        "axis": {"title": None, "ticks": False, "domain": False, "grid": False, "values": middles, **_in_two(label)},
    }
    colour = _colours(names, colours, "square", labelLimit=300)
    return (
        placed,
        [
            {
                "mark": {"type": "rect", "opacity": 0.45},
                "encoding": {
                    "x": {**x, "field": "zero"},
                    "x2": {"field": "rate"},
                    "y": {**y, "field": "top"},
                    "y2": {"field": "bottom"},
                    "color": colour,
                    "tooltip": list(tips),
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
            },
        ],
        round(13 * (last + 0.6)),
    )


def _in_two(label: str) -> Spec:
    """Labels that on a phone have two lines: the first word, and the rest."""
    test = f"containerSize()[0] < {NARROW} && indexof({label}, ' ') > 0"
    return {
        **NAME_LABELS,
        "labelExpr": f"{test} ? [slice({label}, 0, indexof({label}, ' ')), "
        f"slice({label}, indexof({label}, ' ') + 1)] : {label}",
        "labelBaseline": {"condition": {"test": test, "value": "bottom"}, "value": "middle"},
    }


def _fingers(table: pl.DataFrame, section: Section) -> Chart | None:
    """The share of each finger's landmarks that are right, in the source and under each kind of test case."""
    words = {**GROUPS, SOURCE: SOURCE}
    series = [name for name in _SERIES if name in set(table["of"])]
    order = {name: number for number, name in enumerate([*FINGERS, "wrist"])}
    mine = table.filter((pl.col("measure") == "right") & pl.col("of").is_in(series) & pl.col("value").is_not_null())
    shown = _interval(mine).select(
        "rate",
        "low",
        "high",
        "interval",
        name="finger",
        series=pl.col("of").replace(words),
        order=pl.col("finger").replace_strict(order, return_dtype=pl.Int32),
    )
    if shown.is_empty():
        return None
    tips = tooltip(("name", "finger"), ("series", "pictures"), ("rate", "right"), ("interval", "95 % interval"))
    shown, layers, height = _bars(
        shown, [words[name] for name in series], [_SERIES[name] for name in series], "landmarks that are right", tips
    )
    return Chart(
        "hands-fingers",
        "Finger by finger",
        "The share of each finger's landmarks that are right, with 95 % intervals.",
        drawn(height, section.start, layers, data={"name": "fingers"}),
        {"fingers": shown},
        height + AXES + 40,
    )


def _compared(table: pl.DataFrame, names: Sequence[str], section: Section) -> Chart:
    """F1 of each test case, run by run."""
    mine = table.filter((pl.col("measure") == "f1") & (pl.col("group") != "response") & pl.col("value").is_not_null())
    shown = _placed(mine).select("name", "order", "rate", "low", "high", "interval", "cases", series="run")
    tips = tooltip(
        ("name", "test case"), ("series", "run"), ("rate", "F1"), ("interval", "95 % interval"), ("cases", "cases")
    )
    shown, layers, height = _bars(shown, names, _RUNS, "F1 of landmarks", tips)
    return Chart(
        "hands-compared",
        "F1 per test case, by run",
        "With 95 % intervals, on the cases that all runs have.",
        drawn(height, section.start, layers, data={"name": "hands-compared"}),
        {"hands-compared": shown},
        height + AXES + 40,
    )


def _purposes(table: pl.DataFrame, names: Sequence[str], section: Section) -> Chart:
    """The measure that decides, for each purpose, run by run."""
    asked = pl.DataFrame(
        [(number, name, measure, where) for number, (name, (_, measure, where)) in enumerate(PURPOSES.items())],
        schema=["order", "name", "measure", "group"],
        orient="row",
    )
    mine = asked.join(table, on=["measure", "group"], maintain_order="left").filter(pl.col("value").is_not_null())
    shown = _interval(mine).select("order", "name", "rate", "low", "high", "interval", "measure", "cases", series="run")
    tips = tooltip(
        ("name", "purpose"),
        ("series", "run"),
        ("measure", "measure"),
        ("rate", "value"),
        ("interval", "95 % interval"),
        ("cases", "cases"),
    )
    shown, layers, height = _bars(shown, names, _RUNS, "the measure that decides", tips)
    return Chart(
        "hands-purposes",
        "What they are good for",
        "With 95 % intervals: F1 in the source, under motion blur, exposure and a covered finger; precision, "
        "and recall of hands, over source and test cases.",
        drawn(height, section.start, layers, data={"name": "hands-purposes"}),
        {"hands-purposes": shown},
        height + AXES + 40,
    )


# --- the terminal ----------------------------------------------------------------------------------


def _frames(runs: Sequence[Run], judging: str) -> dict[str, pl.DataFrame]:
    """Of one run, or of several beside each other."""
    if len(runs) == 1:
        return hand_frames(runs[0], judging=judging)
    return hand_comparison({name: hand_counts(run, judging) for name, run in zip(run_names(runs), runs, strict=True)})


def hand_json(runs: Sequence[Run], *, judging: str = DEFAULT) -> dict[str, list[dict[str, Any]]]:
    """All numbers of one run, or of several beside each other, and the advice."""
    return {name: table.to_dicts() for name, table in _frames(runs, judging).items()}


def show_hands(console: Console, runs: Sequence[Run], *, judging: str = DEFAULT, markdown: bool = False) -> None:
    """Print Tables II and III, what each test case costs and the advice, of one run or of several."""
    frames, held = _frames(runs, judging), [hand_counts(run, judging) for run in runs]
    if len(runs) == 1:
        tables = [
            *_baselines({"": frames["baselines"]}, *held),
            _costs(frames["measures"], held[0]),
            _finger_shares(frames["fingers"]),
            _crucial(frames["crucial"]),
        ]
    else:
        tables = [*_baselines(_by_run(frames["baselines"]), *held), _side_by_side(frames["measures"])]
    for line in _text(*held), "":
        console.print(line, highlight=False, markup=False, soft_wrap=markdown)
    show_tables(console, tables, markdown=markdown)
    for sentence in _sentences(frames["advice"]):
        console.print(f"* {sentence}", highlight=False, markup=False, soft_wrap=markdown)


PANELS: Mapping[str, Panel] = {"hands": Panel(of_relation=hand_panel, of_runs=hands_compared)}
