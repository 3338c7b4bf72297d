"""What all figures of a report share: their look, axes and labels, and how they become data and files.

A chart is a Vega-Lite specification that follows the parameter `t`, the place of the current threshold in its
relation's grid. Colours are those of `static/base.css`, written `var(--ink)`: the page's theme fills them in, and
`printed` does for files.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from instar.report.section import Section
from instar.report.words import interval, unit_name

Spec = dict[str, Any]
STATIC = Path(__file__).parent / "static"
ROW, AXES = 21, 52
"""Pixels of a row, and of what is around the rows."""
NARROW = 470
"""A figure with less room than this is read on a phone."""
PHONE = 345
"""Pixels that a figure has there."""
CONTAINER = "containerSize(width)[0]"
"""Pixels of room for a figure. The function takes nothing: that `width` is named lets the figure follow a resized page
or a turned phone."""
PAGE_FONT = "system-ui, -apple-system, Segoe UI, sans-serif"
FILE_FONT = "Liberation Sans, Arial, DejaVu Sans, sans-serif"


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A figure: what it is called, what it says to those who do not see it, its specification and its tables.

    `spec` names a table by `{"name": …}`; the tables come apart, since several charts share them. `least` is how many
    pixels wide it is at least: where there are fewer, it is scrolled.
    """

    name: str
    title: str
    caption: str
    spec: Spec
    tables: Mapping[str, pl.DataFrame]
    height: int
    details: str = ""
    least: int = 0


# --- what all of them share ------------------------------------------------------------------------


def config(font: str) -> Spec:
    """How all figures look."""
    # fmt: off
    return {
        "background": None, "font": font, "padding": 2, "view": {"stroke": None},
        "axis": {
            "labelColor": "var(--ink)", "titleColor": "var(--faint)", "tickColor": "var(--line)",
            "domainColor": "var(--line)", "gridColor": "var(--line)", "gridOpacity": 0.7, "labelFontSize": 12,
            "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 6, "labelLimit": 280,
        },
        "legend": {
            "labelColor": "var(--ink)", "titleColor": "var(--faint)", "labelFontSize": 12, "titleFontSize": 12,
            "titleFontWeight": "normal", "symbolStrokeWidth": 2.5, "symbolOpacity": 1, "labelLimit": 220,
        },
        "text": {"color": "var(--ink)", "fontSize": 12}, "title": {"color": "var(--ink)"},
    }
    # fmt: on


def drawn(height: int, t: int, layers: Sequence[Spec], **more: object) -> Spec:
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "params": [{"name": "t", "value": t}],
        "layer": list(layers),
        **more,
    }


def counts(table: pl.DataFrame) -> pl.DataFrame:
    """With what tooltips and labels say: the count, and the interval in words."""
    ends = table.select("low", "high", "judged").iter_rows()
    return table.with_columns(
        pl.Series("interval", [interval(low, high) if judged else "–" for low, high, judged in ends], pl.String),
        count=pl.format("{}/{}", "violated", "judged"),
    )


def labelled(table: pl.DataFrame, section: Section) -> pl.DataFrame:
    return table.with_columns(pl.Series("threshold", [section.labels[t] for t in table["t"]], pl.String))


def tooltip(*fields: tuple[str, str]) -> list[Spec]:
    shares: dict[str, Spec] = {
        "rate": {"type": "quantitative", "format": ".1%"},
        "covered": {"type": "quantitative", "format": ".0%"},
    }
    return [{"field": name, "title": title, **shares.get(name, {"type": "nominal"})} for name, title in fields]


def rate_tooltip(*fields: tuple[str, str]) -> list[Spec]:
    """A tooltip that ends with the rate, its counts and its interval."""
    return tooltip(*fields, ("count", "violated"), ("rate", "rate"), ("interval", "95 % interval"))


def by_width(narrow: object, wide: object) -> Spec:
    """One thing on a phone, another one elsewhere; in a file nothing has a container, and all is wide."""
    return {"expr": f"{CONTAINER} < {NARROW} ? {json.dumps(narrow)} : {json.dumps(wide)}"}


def names_below(names: Sequence[str], most: int, beside: tuple[int, int]) -> Spec:
    """A legend's names below a figure, in so many columns that none is cut; long ones without their middle.

    `beside`: pixels left of where it begins, on a phone and elsewhere. In a file, where nothing has a container, there
    are as many columns as it has at most.
    """
    letters = [min(len(name), LEGEND_LONG) for name in names]
    needs = [
        sum(_ENTRY + _LETTER * max(letters[column::count]) for column in range(count))
        for count in range(2, min(most, len(names)) + 1)
    ]
    room = f"{CONTAINER} - ({CONTAINER} < {NARROW} ? {beside[0]} : {beside[1]})"
    fewer = "".join(f"{room} < {need} ? {count} : " for count, need in enumerate(needs, 1))
    return {"columns": {"expr": f"{fewer}{len(needs) + 1}"}, "labelExpr": without_middle(LEGEND_LONG)}


def without_middle(most: int) -> str:
    """A label as an expression: where it has more letters than this, both its ends, which tell rules apart."""
    end = (most - 1) // 2
    short = f"slice(datum.label, 0, {end}) + '…' + slice(datum.label, -{end})"
    return f"length(datum.label) > {most} ? {short} : datum.label"


LEGEND_LONG = 27
"""Letters that a name in a legend has at the most."""
_ENTRY, _LETTER = 28, 7
"""Pixels of a legend's symbol with the gaps around it, and of a letter beside it."""
THRESHOLD_LINE: Spec = {"type": "rule", "color": "var(--ink)", "strokeDash": [2, 3], "strokeWidth": 1.4}
"""The current threshold across curves: in the colour of no series."""


def whole_names(names: Sequence[str], beside: tuple[int, int] = (75, 75), **more: object) -> Spec:
    """A legend below a figure in which every name is read whole, in as many lines as it needs.

    `beside`: pixels left of where it begins, on a phone and elsewhere.
    """
    rooms = zip((PHONE, NARROW), beside, strict=True)
    letters = [(room - left - _ENTRY) // _LETTER for room, left in rooms]
    narrow, wide = ({name: _name_lines(name, room) for name in names} for room in letters)
    return {
        "title": None,
        "orient": "bottom",
        "labelLimit": 0,
        "labelExpr": f"({by_width(narrow, wide)['expr']})[datum.label]",
        "columns": 1 if max(map(len, names)) > 22 else by_width(1, 3),
        **more,
    }


def _name_lines(name: str, letters: int) -> list[str]:
    """A name in lines of at most so many letters, broken between its words where that is possible.

    >>> _name_lines("detector (trained-on-night-and-day)", 24)
    ['detector (trained-on-', 'night-and-day)']
    """
    lines = [""]
    for word in re.findall(r"[^\s\-_/(,:]*[\s\-_/(,:]?", name):
        for piece in textwrap.wrap(word, letters, drop_whitespace=False):
            fits = len(lines[-1]) + len(piece.rstrip()) <= letters
            lines[-1:] = [lines[-1] + piece] if fits else [lines[-1], piece]
    return [line.strip() for line in lines]


def apart(field: str, names: Sequence[str]) -> Spec:
    """Channels of curves that may be equal: each is thinner than those below it, and dashed, so that all are seen."""
    widths = [round(5.6 - 3.6 * place, 1) for place in _places(names)]
    dashes = [[1, 0], *([6 + n % 3, 4 + n % 3] for n in range(1, len(names)))]
    return {"strokeWidth": _by_name(field, names, widths), "strokeDash": _by_name(field, names, dashes)}


def smaller(field: str, names: Sequence[str], most: int = 90) -> Spec:
    """Sizes of points that may be equal: each is smaller than those below it."""
    return _by_name(field, names, [round(most - 0.75 * most * place) for place in _places(names)])


def _places(names: Sequence[str]) -> list[float]:
    """From 0 for the first name to 1 for the last."""
    return [n / max(1, len(names) - 1) for n in range(len(names))]


def _by_name(field: str, names: Sequence[str], values: Sequence[object]) -> Spec:
    """A value for each name, without a legend: the one of the colours has the names."""
    tests = [
        {"test": f"datum.{field} === {json.dumps(name)}", "value": value}
        for name, value in zip(names, values, strict=True)
    ]
    return {"condition": tests, "value": values[0]}


LONG, WIDE_LONG = 20, 46
"""Letters of a name that stands in one line, on a phone and elsewhere."""


def _folded(most: int) -> str:
    """A label as an expression, in two lines of about so many letters: folded between two words of it, or anywhere if
    the rest would be too long. One that is longer than two lines has both its ends."""
    between, anywhere = f"^(.{{0,{most - 1}}}[ (=_])(.{{1,{most + 2}}})$", f"^([^¶]{{{most}}},?) ?([^¶]+)$"
    ends = f"[slice(datum.label, 0, {most}), '…' + slice(datum.label, -{most})]"
    whole = f"split(replace(replace(datum.label, regexp('{between}'), '$1¶$2'), regexp('{anywhere}'), '$1¶$2'), '¶')"
    return f"length(datum.label) > {2 * most + 2} ? {ends} : length(datum.label) > {most} ? {whole} : datum.label"


_IN_TWO_LINES = f"length(datum.value) > ({CONTAINER} < {NARROW} ? {LONG} : {WIDE_LONG})"
NAME_LABELS: Spec = {
    "labelPadding": 7,
    "labelLineHeight": 10.5,
    "labelFontSize": {"condition": {"test": f"{CONTAINER} < {NARROW} || {_IN_TWO_LINES}", "value": 9.5}, "value": 12},
    "labelExpr": f"{CONTAINER} < {NARROW} ? ({_folded(LONG)}) : ({_folded(WIDE_LONG)})",
    "labelBaseline": {"condition": {"test": _IN_TWO_LINES, "value": "bottom"}, "value": "middle"},
}
"""Names of rules: long ones in two lines, so that they are told apart."""


def name_room(names: pl.Series) -> tuple[int, int]:
    """Pixels that names beside rows take, on a phone and elsewhere."""
    longest = int(names.str.len_chars().max() or 0)  # type: ignore[arg-type]
    return 20 + round(5.5 * min(longest, LONG + 2)), 20 + min(280, 7 * longest)


PERCENT_AXIS = {"format": ".0%", "tickCount": 5, "labelFlush": False}


def index_axis(section: Section) -> Spec:
    """An axis over the thresholds of a grid, equally far apart: ∞ has a place on it, and so have the gaps between."""
    last = len(section.grid) - 1
    # fmt: off
    return {
        "field": "t", "type": "quantitative", "scale": {"domain": [-0.3, last + 0.3], "nice": False, "zero": False},
        "axis": {
            "values": list(range(last + 1)), "grid": False, "title": threshold_title(section),
            "labelOverlap": "greedy", "labelSeparation": 5, "labelExpr": f"{json.dumps(section.labels)}[datum.value]",
        },
    }
    # fmt: on


def share_axis(title: str) -> Spec:
    """An axis for shares of cases, from none to all."""
    return {
        "field": "rate",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {**PERCENT_AXIS, "title": title},
    }


def threshold_title(section: Section) -> list[str]:
    """What an axis of thresholds is measured in, in lines that fit under a figure."""
    words = f"threshold in {unit_name(section.unit)}"
    count = len(_lines(words, _TITLE))
    return next(lines for letters in range(1, _TITLE + 1) if len(lines := _lines(words, letters)) <= count)


def _lines(words: str, letters: int) -> list[str]:
    return textwrap.wrap(words, letters, break_on_hyphens=False, break_long_words=False)


_TITLE = 38
"""Letters of a line under the narrowest figure."""


def curve_layers(
    x: Spec, y: Spec, colour: Spec, tips: Sequence[Spec], *, size: int, shade: float = 0.13, **line: Spec
) -> list[Spec]:
    """The bands of intervals, the curves and their points; `line` are further channels of the curves."""
    return [
        {
            "mark": {"type": "area", "opacity": shade},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {"mark": {"type": "line", "strokeWidth": 2.4}, "encoding": {"x": x, "y": y, "color": colour, **line}},
        {
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": size},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": list(tips)},
        },
    ]


# --- rows of rates -----------------------------------------------------------------------------------

_COUNT_ROOM = 74


def rate_axis(title: str) -> Spec:
    return {
        "field": "rate",
        "type": "quantitative",
        "axis": {**PERCENT_AXIS, "title": title},
        "scale": {"domain": [0, 1], "range": [0, {"expr": f"max(40, width - {_COUNT_ROOM})"}]},
    }


def dot_layers(y: Spec, colour: Spec, title: str, tips: Sequence[Spec]) -> list[Spec]:
    """Rates with their intervals, and the counts at the right."""
    x = rate_axis(title)
    return [
        {
            "transform": [{"filter": "isValid(datum.rate)"}],  # where nothing was judged
            "mark": {"type": "rule", "strokeWidth": 2.2, "opacity": 0.55},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": list(tips)},
        },
        {
            "mark": {"type": "text", "align": "right", "fontSize": 11.5, "color": "var(--faint)", "tooltip": None},
            "encoding": {"x": {"value": {"expr": "width"}}, "y": y, "text": {"field": "count"}},
        },
    ]


def name_rows(field: str = "name") -> Spec:
    return {
        "field": field,
        "type": "nominal",
        "sort": {"field": "order", "op": "min"},
        "axis": {"title": None, "ticks": False, "domain": False, "grid": True, "gridDash": [1, 3], **NAME_LABELS},
    }


# --- data and files --------------------------------------------------------------------------------


def columns(table: pl.DataFrame) -> dict[str, object]:
    """A table by columns, short: texts are numbered, numbers have six digits at most.

    >>> columns(pl.DataFrame({"rule": ["a", "a"], "rate": [1 / 3, None]}))
    {'rule': {'texts': ['a'], 'at': [0, 0]}, 'rate': [0.333333, None]}
    """
    by_name: dict[str, object] = {}
    for column in table.iter_columns():
        if column.dtype == pl.String:
            texts = column.unique(maintain_order=True)
            place = {text: number for number, text in enumerate(texts)}
            by_name[column.name] = {"texts": texts.to_list(), "at": [place[text] for text in column]}
        elif column.dtype.is_float():
            by_name[column.name] = [None if value is None else float(f"{value:.6g}") for value in column]
        else:
            by_name[column.name] = column.to_list()
    return by_name


@cache
def _light() -> dict[str, str]:
    """The colours of the light theme, as the pages have them."""
    text = "".join((STATIC / name).read_text("utf-8") for name in ("base.css", "report.css"))
    colours: dict[str, str] = {}
    for block in re.findall(r"^:root \{(.*?)^\}", text, re.M | re.S):
        colours.update(re.findall(r"--(\w[\w-]*):\s*([^;]+);", block))
    return colours


def printed(chart: Chart, *, width: int = 760) -> Spec:
    """A chart that stands for itself, on white and at the threshold where the page starts: for papers."""
    spec = {
        **chart.spec,
        **({"width": width} if chart.spec.get("width") == "container" else {}),
        "config": config(FILE_FONT),
        "autosize": "pad",
        "padding": 12,
        "background": "white",
        "description": chart.caption,
    }
    coloured: Spec = json.loads(re.sub(r"var\(--([\w-]+)\)", lambda name: _light()[name[1]], json.dumps(spec)))
    return {**coloured, "datasets": {name: table.to_dicts() for name, table in chart.tables.items()}}
