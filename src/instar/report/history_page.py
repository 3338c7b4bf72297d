"""The versions of a model over time as one page: figures, and the same as tables. It has no script."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from markupsafe import Markup

from instar import __version__
from instar.analysis import ANY
from instar.files import place_file
from instar.report.chart import PAGE_FONT, PERCENT_AXIS, STATIC, Chart, Spec, config
from instar.report.history import SIGNS, STEPS, History
from instar.report.page import template
from instar.report.verdict import BETTER, FEWER, MORE, WORSE
from instar.report.words import interval, percent

SHORT = 12
"""Letters of a name that the axis of a small figure has room for, where there are few runs."""
FEW = 6
_COLUMNS, _WIDTH, _HEIGHT = 3, 290, 120
UNSURE = "no sure change"


def write_history(one: History, out: str | Path) -> Path:
    """Write the page; returns its file."""
    return place_file(Path(out), history_page(one).encode("utf-8"))


def history_page(one: History) -> str:
    """The history as HTML that asks nobody for anything."""
    styles = "".join((STATIC / name).read_text("utf-8") for name in ("base.css", "report.css"))
    chart = history_chart(one)
    first, last = one.versions[0].name, one.versions[-1].name
    # fmt: off
    content = {
        "history": one, "title": last if first == last else f"{first} to {last}", "chart": chart,
        "wide": Markup(_drawn(chart)), "narrow": Markup(_drawn(replace(chart, spec={**chart.spec, "columns": 1}))),
        "styles": styles, "version": __version__, "steps": STEPS, "signs": SIGNS, "any_rule": ANY,
        "families": [name for name in one.families if name != ANY],
    }
    # fmt: on
    return template("history.html").render(content).lstrip()


def history_chart(one: History) -> Chart:
    """The rate of each family over the runs, with its interval; sure changes stand out."""
    names = _ticks([version.name for version in one.versions])
    families = [ANY, *(name for name in one.families if name != ANY)]
    rows = [
        {
            "family": family,
            "run": names[version.number - 1],
            "rate": row["rate"],
            "low": row["low"],
            "high": row["high"],
            "change": version.change(family) or UNSURE,
            "says": f"{version.name}, {family}: {percent(row['rate'])} ({interval(row['low'], row['high'])})",
        }
        for version in one.versions
        for family in families
        if (row := version.rate(family)) is not None
    ]
    table = pl.DataFrame(rows, schema={**dict.fromkeys(("family", "run"), pl.String), **_NUMBERS, **_TEXTS})
    lines = -(-len(families) // _COLUMNS)
    return Chart(
        "history",
        "Violation rate of each family, by run",
        "The share of the judged cases that violate any rule of the family, with its 95 % interval. " + STEPS,
        _spec(families, names, {row["change"] for row in rows}),
        {"history": table},
        lines * (_HEIGHT + 60),
    )


_NUMBERS = dict.fromkeys(("rate", "low", "high"), pl.Float64)
_TEXTS = dict.fromkeys(("change", "says"), pl.String)


_DRAWN = {
    WORSE: ("triangle-up", "var(--orange)"),
    BETTER: ("triangle-down", "var(--green)"),
    MORE: ("triangle-up", "var(--ink)"),
    FEWER: ("triangle-down", "var(--ink)"),
    UNSURE: ("circle", "var(--faint)"),
}
"""The shape and the colour of each change, in the order of the legend."""


def _ticks(names: Sequence[str]) -> list[str]:
    """What the axis calls runs: by their names where they are short and few, else by their numbers."""
    short = len(names) <= FEW and len(set(names)) == len(names) and max(map(len, names)) <= SHORT
    return list(names) if short else [str(number) for number in range(1, len(names) + 1)]


def _spec(families: Sequence[str], names: Sequence[str], occurring: Collection[str]) -> Spec:
    x: Spec = {
        "field": "run",
        "type": "ordinal",
        "sort": list(names),
        "scale": {"domain": list(names)},
        "axis": {"title": None, "labelAngle": 0, "labelOverlap": "greedy", "grid": False},
    }
    y: Spec = {"field": "rate", "type": "quantitative", "axis": {**PERCENT_AXIS, "title": None, "tickCount": 4}}
    changes = [change for change in _DRAWN if change in (WORSE, BETTER, UNSURE) or change in occurring]
    shapes, colours = zip(*(_DRAWN[change] for change in changes), strict=True)
    colour: Spec = {
        "field": "change",
        "type": "nominal",
        "scale": {"domain": changes, "range": colours},
        "legend": {"title": "against the run before", "orient": "top", "direction": "horizontal", "columns": 3},
    }
    shape: Spec = {"field": "change", "type": "nominal", "scale": {"domain": changes, "range": shapes}}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.6, "color": "var(--line)"}, "encoding": {"x": x, "y": y}},
        {
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.5},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 90},
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "description": {"field": "says"}},
        },
    ]
    return {
        "data": {"name": "history"},
        "facet": {
            "field": "family",
            "type": "nominal",
            "sort": list(families),
            "title": None,
            "header": {
                "labelColor": "var(--ink)",
                "labelFontSize": 12,
                "labelFontWeight": "bold",
                "labelAnchor": "start",
            },
        },
        "columns": _COLUMNS,
        "spec": {"width": _WIDTH, "height": _HEIGHT, "layer": layers},
    }


def _drawn(chart: Chart) -> str:
    """The figure as SVG in the page: its colours are the page's, so that it follows the theme."""
    import vl_convert

    spec = {
        **chart.spec,
        "config": config(PAGE_FONT),
        "description": f"{chart.title}. {chart.caption}",
        "datasets": {name: table.to_dicts() for name, table in chart.tables.items()},
    }
    return str(vl_convert.vegalite_to_svg(spec, vl_version=vl_convert.get_vegalite_versions()[-1]))
