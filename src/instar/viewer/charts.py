"""Charts, drawn here by Vega and set into the page as SVG: no script runs there, and colours follow the theme."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from threading import Event

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from instar.analysis import ANY, curve
from instar.report.chart import AXES, CONTAINER, Chart, Spec
from instar.report.words import count_of, severity_text, threshold_text, unit_name
from instar.stats import fisher
from instar.viewer.index import Index

INK, FAINT, LINE, PAPER = "var(--ink)", "var(--faint)", "var(--line)", "var(--paper)"
BLUE, ORANGE = "var(--blue)", "var(--orange)"
NARROW, ONE_OF_SEVERAL, ALONE = 290, 270, 560
"""Widths of charts in pixels, without their axes: on a phone, beside others, and by itself."""
# fmt: off
_CONFIG = {
    "view": {"stroke": None}, "font": "sans-serif", "background": None,
    "axis": {
        "labelColor": FAINT, "titleColor": FAINT, "gridColor": LINE, "domainColor": LINE, "tickColor": LINE,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
    },
    "legend": {"labelColor": INK, "titleColor": FAINT, "labelFontSize": 11, "titleFontSize": 11, "labelLimit": 300},
}
# fmt: on
_pen = ThreadPoolExecutor(1, "instar-viewer-charts")
PATIENCE = 0.4
"""Seconds that a page waits for its charts; for those that take longer it asks again by itself (`data-later`)."""
_warm = Event()
"""Whether a chart was drawn. The first one holds up all of Python for a third of a second: no page waits for it,
and it is drawn when the page that asked for it is there."""
HEAD_START = 0.25
"""Seconds in which that page and what belongs to it are sent."""
MOST_BINS = 24


def warm_up() -> None:
    """The first chart and the first test take about a second each: they are over before anybody asks for one."""
    _drawing(json.dumps({"data": {"values": []}, "mark": "bar", "encoding": {}}))
    _pen.submit(fisher, 1, 2, 3, 4)


@lru_cache(maxsize=256)
def _drawing(spec: str) -> Future[Markup]:
    return _pen.submit(_svg, spec)


def _svg(spec: str) -> Markup:
    if not _warm.is_set():
        time.sleep(HEAD_START)
    import vl_convert

    drawn = Markup(vl_convert.vegalite_to_svg(spec))  # Vega escapes what it writes
    _warm.set()
    return drawn


def _chart(spec: Spec, label: str, until: float, wide: int = ALONE) -> list[Spec]:
    """A chart in a size for desks and one for phones; nothing while they are not drawn."""
    drawings = []
    for name, width in (("wide", wide), ("narrow", NARROW)):
        text = json.dumps({**spec, "width": width, "config": _CONFIG}, sort_keys=True)
        drawings.append((name, _drawing(text.replace(CONTAINER, str(width + AXES)))))  # nothing contains it
    patience = max(0.0, until - time.monotonic()) if _warm.is_set() else 0.0
    _, open_ones = wait([future for _, future in drawings], patience)
    return [] if open_ones else [{"size": name, "label": label, "svg": future.result()} for name, future in drawings]


def of_report(made: Sequence[Chart]) -> list[Spec]:
    """Figures of a report, each with its title and caption."""
    until = time.monotonic() + PATIENCE
    figures: list[Spec] = []
    for chart in made:
        tables = {name: table.to_dicts() for name, table in chart.tables.items()}
        spec = {**chart.spec, "datasets": tables, "autosize": "pad"}
        drawn = _chart(spec, f"{chart.title}. {chart.caption}", until, ONE_OF_SEVERAL + 150)
        figures.append({"title": chart.title, "caption": chart.caption, "drawn": drawn})
    return figures


def curves(index: Index) -> list[Spec]:
    """Per relation: the share of cases that violate at least one rule, against the threshold; and identity's."""
    figures, until = [], time.monotonic() + PATIENCE
    for relation, grid in index.grids.items():
        rows: list[Spec] = []
        own = [rule for rule in index.rules if rule.relation == relation and rule.over == "case"]
        sets = {
            ANY: [rule.id for rule in own if rule.family != "identity"],
            "identity": [rule.id for rule in own if rule.family == "identity"],
        }
        for name, rules in sets.items():
            if rules:
                table = curve(index.matrix().only(rules), grid)
                rows += [
                    {"set": name, "x": threshold_text(row["threshold"])}
                    | {share: 100 * row[share] for share in ("rate", "low", "high")}
                    for row in table.iter_rows(named=True)
                    if row["rate"] is not None
                ]
        if rows:
            unit = unit_name(next(rule.unit for rule in own))
            drawn = _chart(
                _curves(rows, [threshold_text(t) for t in grid], unit),
                f"Share of cases that violate at least one rule of {relation}, against the threshold",
                until,
                ONE_OF_SEVERAL if len(index.grids) > 1 else ALONE,
            )
            judged = index.matrix().only(sets[ANY] or sets["identity"]).per_case().cases.len()
            figure = {"relation": relation, "unit": unit, "drawn": drawn, "judged": judged}
            figures.append({**figure, "identity": any(row["set"] == "identity" for row in rows)})
    return figures


def _curves(rows: Sequence[Spec], grid: Sequence[str], unit: str) -> Spec:
    x = {
        "field": "x",
        "type": "ordinal",
        "sort": list(grid),
        "scale": {"domain": list(grid)},
        "title": f"threshold, {unit}",
        "axis": {"labelAngle": 0, "labelOverlap": True},
    }
    y = {"type": "quantitative", "scale": {"domain": [0, 100]}, "title": "cases, %", "axis": {"tickCount": 5}}
    colour = {"field": "set", "scale": {"domain": [ANY, "identity"], "range": [ORANGE, BLUE]}, "legend": None}
    return {
        "data": {"values": list(rows)},
        "height": 150,
        "encoding": {"x": x, "color": colour},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.18},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {
                    "y": {**y, "field": "rate"},
                    "strokeDash": {
                        "field": "set",
                        "scale": {"domain": [ANY, "identity"], "range": [[1, 0], [5, 4]]},
                        "legend": None,
                    },
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 26, "opacity": 1},
                "encoding": {"y": {**y, "field": "rate"}},
            },
        ],
    }


# --- severities of one rule ------------------------------------------------------------------------


def bins(severity: npt.NDArray[np.float64], threshold: float) -> tuple[list[float], list[int], int, int]:
    """Edges in steps of 1, 2, 5, how many severities lie between each two, how many are 0, and how many ∞.

    The threshold is an edge, too, where it lies among or below them: a bar is violated or kept, never both.
    """
    inside = severity[(severity > 0) & np.isfinite(severity)]
    edges: list[float] = []
    if len(inside):
        least, most = float(inside.min()), float(inside.max())
        span = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 2)
        for steps in ((1, 2, 5), (1,)):
            every = [step * 10.0**power for power in span for step in steps]
            low = max((edge for edge in every if edge <= least), default=every[0])
            high = min((edge for edge in every if edge > most), default=every[-1])
            edges = [edge for edge in every if low <= edge <= high]
            if len(edges) <= MOST_BINS:
                break
        if 0 < threshold < edges[-1] and not any(math.isclose(threshold, edge) for edge in edges):
            edges = sorted([*edges, threshold])
        # 0.1 + 0.2 is not 0.3: an edge that is meant to be the threshold is the threshold
        edges = [threshold if math.isclose(threshold, edge) else edge for edge in edges]
    places = np.searchsorted(edges, inside, side="right") - 1
    counts = np.bincount(places, minlength=max(0, len(edges) - 1)).tolist() if len(inside) else []
    return edges, counts, int((severity == 0).sum()), int(np.isinf(severity).sum())


def histogram(severity: npt.NDArray[np.float64], threshold: float, unit: str, floor: float | None) -> list[Spec]:
    """How many cases have which severity; 0 and ∞ stand apart, the threshold and the noise floor are lines."""
    edges, counts, zeros, infinite = bins(severity, threshold)
    last = 1 + len(counts)
    bars = [{"from": 0.0, "to": 1.0, "cases": zeros, "violated": False}]
    bars += [
        {"from": n + 1.0, "to": n + 2.0, "cases": count, "violated": edges[n] >= threshold}
        for n, count in enumerate(counts)
    ]
    ticks = {0.5: "0", **{n + 1.0: threshold_text(edge) for n, edge in enumerate(edges)}}
    if infinite or math.isinf(threshold):
        bars.append({"from": float(last), "to": last + 1.0, "cases": infinite, "violated": True})
        ticks[last + 0.5] = "∞"
    marks: list[Spec] = [{"x": _place(threshold, edges), "text": f"threshold {threshold_text(threshold)}"}]
    if floor:
        marks.append({"x": _place(floor, edges), "text": f"noise floor {severity_text(floor, threshold)}"})
    x = {"type": "quantitative", "scale": {"domain": [0, bars[-1]["to"]], "nice": False}, "title": f"severity, {unit}"}
    most = max(1, zeros, infinite, *counts)
    y = {
        "field": "cases",
        "type": "quantitative",
        "title": "cases",
        # room above the bars for the words of the lines
        "scale": {"domain": [0, most * (1 + 0.12 * len(marks))], "nice": False},
        "axis": {"tickCount": max(1, min(4, most)), "format": ",d"},  # no half of a case
    }
    axis = {"values": list(ticks), "grid": False, "labelExpr": _expression(ticks), "labelOverlap": True}
    spec = {
        "height": 170,
        "layer": [
            {
                "data": {"values": bars},
                "mark": {"type": "rect", "stroke": PAPER, "strokeWidth": 1},
                "encoding": {
                    "x": {**x, "field": "from", "axis": axis},
                    "x2": {"field": "to"},
                    "y": y,
                    "y2": {"datum": 0},
                    "color": {"condition": {"test": "datum.violated", "value": ORANGE}, "value": BLUE},
                },
            },
            {
                "data": {"values": marks},
                "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5, "color": INK},
                "encoding": {"x": {**x, "field": "x"}},
            },
            *(layer for number, mark in enumerate(marks) for layer in _label(mark, number, x, mark["x"] > 0.55 * last)),
        ],
    }
    label = f"Histogram of severities in {unit}: {count_of(zeros, 'case')} at 0, {count_of(infinite, 'case')} at ∞"
    return _chart(spec, label, time.monotonic() + PATIENCE)


def _label(mark: Spec, number: int, x: Spec, left: bool) -> list[Spec]:
    """The words of a line, each on a height of its own, on the side where there is room, clear of what lies below."""
    place = {"x": {**x, "field": "x"}, "y": {"value": 2 + 15 * number}, "text": {"field": "text"}}
    side = {"align": "right", "dx": -4} if left else {"align": "left", "dx": 4}
    words = {"type": "text", "baseline": "top", "fontSize": 11, **side}
    return [
        {"data": {"values": [mark]}, "mark": {**words, **ink}, "encoding": place}
        for ink in ({"color": PAPER, "stroke": PAPER, "strokeWidth": 4}, {"color": INK})
    ]


def _place(value: float, edges: Sequence[float]) -> float:
    """Where a severity lies on the axis: between the edges as their logarithms do."""
    if math.isinf(value):
        return 1.0 + max(0, len(edges) - 1)
    if value <= 0 or not edges or value < edges[0]:
        return 1.0
    if value >= edges[-1]:
        return float(len(edges))
    at = int(np.searchsorted(edges, value, side="right")) - 1
    return 1.0 + at + math.log(value / edges[at]) / math.log(edges[at + 1] / edges[at])


def _expression(ticks: dict[float, str]) -> str:
    """Vega's words for `the text of this tick`."""
    return " : ".join(f"datum.value == {place} ? {json.dumps(text)}" for place, text in ticks.items()) + " : ''"
