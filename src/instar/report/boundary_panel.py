"""What a report shows of a search for limits: curves, frontiers, tables, and pictures at the limits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import polars as pl

from instar.analysis import Run
from instar.analysis.boundary import Boundary, searched_grids
from instar.engine import DEFAULT
from instar.report.boundary_pictures import limit_tiles, shown_limits
from instar.report.boundary_words import (
    boundary_findings,
    cases_table,
    curve_table,
    median_table,
    unfinished_words,
    value_text,
)
from instar.report.chart import Chart, Spec, drawn, names_below, share_axis, tooltip
from instar.report.finding import Finding
from instar.report.panels import Panel, PanelContent, PanelPictures, TaskTables
from instar.report.picture import data_address
from instar.report.rebuild import CannotDraw, run_legend
from instar.report.section import Section
from instar.report.words import interval
from instar.stats import survival
from instar.suites.grid import PANEL, Grid, Ray

COLOURS = ("blue", "orange", "green", "pink", "yellow", "sky", "violet", "ink", "faint", "warn", "other")
TITLE = "How far until it breaks"
MOST = 12
"""Limits of which a report has pictures, over all rays; each has one at least."""
MOST_POINTS = 400
"""Steps that a curve over single cases has at the most: more are not told apart."""
_TEXT = (
    "The limit of a case is the smallest change that was seen to break its answer. It was found by bisection, so that "
    "between the levels that were asked others may break, too, where a response is not monotone. A case that never "
    "broke, or was not judged any further, counts as unbroken as far as it was judged (Kaplan and Meier)."
)
_SCALES: Mapping[str, Spec] = {
    "linear": {"type": "linear", "zero": False},
    "log": {"type": "log"},
    "square": {"type": "sqrt", "zero": False},
}
"""How the axis of a figure goes, by the steps of a parameter's scale."""


def _of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    grids = [grid for grid in searched_grids(run) if _relation(run, grid) == section.relation]
    if not grids:
        return None
    whole = run.boundary(judging=judging)
    count = max(1, MOST // whole.median.height)
    return replace(
        limits_panel(whole.of(grids), section.start),
        tables=[
            median_table(whole.of(grids)),
            *(curve_table(whole, grid) for grid in grids),
            *(cases_table(whole, grid) for grid in grids),
        ],
        pictures=_pictures(whole.of(grids), count, judging),
        legend=run_legend(run, relation=section.relation, judging=judging),
        leads=run.searched,
    )


def limits_panel(boundary: Boundary, start: int = 0, threshold: float | None = None) -> PanelContent:
    """The section of report and viewer, in brief: its figures, and the table of medians. A `threshold` is another one
    than those that the search followed."""
    seen = [grid.family for grid in boundary.grids]
    return PanelContent(
        TITLE,
        " ".join([_TEXT, *unfinished_words(boundary, threshold)]),
        [
            *(chart for grid in boundary.grids for chart in grid_charts(boundary, grid, start)),
            *_visual_chart(boundary, seen, start),
        ],
        [median_table(boundary)],
    )


def _relation(run: Run, grid: Grid) -> str:
    return grid.unchanged.for_output(run.manifest.system.kind).relation.relation.name


def _pictures(boundary: Boundary, count: int, judging: str) -> list[PanelPictures]:
    """The source, the last level that held and the first that broke, of so many cases of each ray."""
    pictures = []
    for ray in boundary.median["ray"]:
        rows = []
        for limit in shown_limits(boundary, ray, count):
            with suppress(*CannotDraw):
                tiles = limit_tiles(boundary.run, limit, judging=judging)
                rows.append([(data_address(image, "webp"), words) for image, words in tiles])
        if rows:
            words = f"{ray}: the source, the last level that held and the first that broke"
            pictures.append(PanelPictures(words, rows))
    return pictures


# --- figures ------------------------------------------------------------------------------------------


def grid_charts(boundary: Boundary, grid: Grid, start: int = 0) -> list[Chart]:
    """The survival curves of a grid, one figure per parameter; of two families the frontier."""
    if grid.frontier:
        return _frontier_chart(boundary, grid, start)
    names = dict.fromkeys(ray.axes[0].name for ray in grid.rays)
    charts = [_survival_chart(boundary, grid, name, start) for name in names]
    return [chart for chart in charts if chart is not None]


def _survival_chart(boundary: Boundary, grid: Grid, name: str, start: int) -> Chart | None:
    rays = [ray for ray in grid.rays if ray.axes[0].name == name]
    own = boundary.curve.filter(pl.col("family") == grid.family, pl.col("ray").is_in([ray.name for ray in rays]))
    table = own.filter(pl.col("share").is_not_null()).select(
        "ray", "level", "value", "at_risk", "low", "high", rate="share", signed=pl.col("value")
    )
    if table.is_empty():
        return None
    table = table.with_columns(
        pl.Series("shown", [value_text(value) for value in table["value"]], pl.String),
        pl.Series(
            "interval", [interval(low, high) for low, high in table.select("low", "high").iter_rows()], pl.String
        ),
    ).sort("ray", "value")
    axis = rays[0].axes[0]
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {**_SCALES[axis.steps], "nice": False},
        "axis": {"title": axis.name, "grid": False, "labelOverlap": "greedy", "labelSeparation": 6, "format": ".4~r"},
    }
    y = share_axis("cases not broken")
    tips = tooltip(
        ("ray", "way"),
        ("shown", axis.name),
        ("rate", "not broken"),
        ("interval", "95 % interval"),
        ("at_risk", "at risk"),
    )
    layers = [layer for ray in rays for layer in _falling(ray, x, y)]
    layers += [
        {"mark": {"type": "point", "filled": True, "size": 22, "opacity": 1, "color": "var(--blue)"},
         "encoding": {"x": x, "y": y, "tooltip": tips}},
        {"mark": {"type": "rule", "color": "var(--faint)", "strokeDash": [2, 3]}, "encoding": {"y": {"datum": 0.5}}},
    ]  # fmt: skip
    slug = f"limits-{'-'.join(name.split())}-{grid.steps}"
    return Chart(
        slug,
        f"How far {name} may go",
        "The share of cases whose answer has not broken up to each level, from no change to the far end "
        "or as far as cases were judged, with the 95 % interval of each level. Where the curve crosses the dashed "
        "line, half of the cases are broken.",
        drawn(260, start, layers, data={"name": slug}),
        {slug: table},
        360,
    )


def _falling(ray: Ray, x: Spec, y: Spec) -> list[Spec]:
    """A curve with its intervals: it falls away from the neutral value, on whichever side the ray goes."""
    step = "step-after" if (ray.ends[0] or 0) > ray.axes[0].neutral else "step-before"
    look = {"opacity": 0.15}, {"strokeWidth": 2.4}
    marks = ({"type": kind, "interpolate": step, "color": "var(--blue)"} for kind in ("area", "line"))
    shapes = [{**mark, **more} for mark, more in zip(marks, look, strict=True)]
    places = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}, {"x": x, "y": y}
    only = [{"filter": f"datum.ray === {json.dumps(ray.name)}"}]
    return [{"transform": only, "mark": shape, "encoding": place} for shape, place in zip(shapes, places, strict=True)]


def _visual_chart(boundary: Boundary, families: Sequence[str], start: int) -> list[Chart]:
    """All rays on one axis: how many cases break at a change that a person sees so much of."""
    frames = []
    for ray in boundary.median.filter(pl.col("family").is_in(list(families)), pl.col("visual_low").is_not_null())[
        "ray"
    ]:
        own = boundary.limits.filter(pl.col("ray") == ray, pl.col("visual_change").is_not_null())
        curve = survival(own["visual_change"].to_numpy(), (own["status"] == "broken").to_numpy())
        levels, shares = np.append(0.0, curve.levels), np.append(1.0, curve.share)
        thin = np.unique(np.linspace(0, len(levels) - 1, MOST_POINTS).round().astype(int))  # of many cases not each
        levels, shares = levels[thin], shares[thin]
        frames.append(pl.DataFrame({"ray": ray, "seen": levels, "rate": shares}))
    if not frames:
        return []
    table = pl.concat(frames)
    rays = table["ray"].unique(maintain_order=True).to_list()
    x: Spec = {
        "field": "seen",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"title": "visual change, from 0 for none to 1", "grid": False, "format": ".4~r"},
    }
    colours = [f"var(--{COLOURS[number % len(COLOURS)]})" for number in range(len(rays))]
    colour: Spec = {
        "field": "ray",
        "type": "nominal",
        "scale": {"domain": rays, "range": colours},
        "legend": {"title": None, "orient": "bottom", **names_below(rays, 2, (40, 50))},
    }
    tips = tooltip(("ray", "way"), ("seen", "visual change"), ("rate", "not broken"))
    encoding = {"x": x, "y": share_axis("cases not broken"), "color": colour, "tooltip": tips}
    mark: Spec = {"type": "line", "interpolate": "step-after", "strokeWidth": 2.2}
    name = "limits-visual"
    return [
        Chart(
            name,
            "At how much of a visible change it breaks",
            "The same against the visual change (1 − VIF) of the first follow-up that broke, so that families compare: "
            "a curve that falls early breaks at changes that people hardly notice. Ways that move pixels have none.",
            drawn(260, start, [{"mark": mark, "encoding": encoding}], data={"name": name}),
            {name: table},
            400,
        )
    ]


def frontier_points(boundary: Boundary, grid: Grid) -> pl.DataFrame:
    """Where a share of the cases has broken along each ray of a frontier, in the order of the rays' angles.

    `beyond` where the far end is not enough; then the point is the far end, or the last level at which a case was
    judged.
    """
    rows = []
    for ray in grid.rays:
        own = boundary.curve.filter(pl.col("family") == grid.family, pl.col("ray") == ray.name).sort("level")
        if own["share"][0] is None:
            continue
        turn = math.atan2(
            ray.slant[1] * (1 if (ray.ends[1] or 0) >= ray.axes[1].neutral else -1),
            ray.slant[0] * (1 if (ray.ends[0] or 0) >= ray.axes[0].neutral else -1),
        )
        for broken, name in ((0.1, "10 %"), (0.5, "half"), (0.9, "90 %")):
            reached = own.filter(pl.col("share") <= 1 - broken + 1e-9)["level"]
            judged = own.filter(pl.col("share").is_not_null())["level"]
            level = int(reached[0]) if len(reached) else int(judged[-1])
            values = [axis.neutral for axis in ray.axes] if not level else ray.levels[level - 1].values
            rows.append(
                {"ray": ray.name, "turn": turn, "broken": name, "x": values[0], "y": values[1],
                 "beyond": not len(reached)}
            )  # fmt: skip
    schema = {"ray": pl.String, "turn": pl.Float64, "broken": pl.String, "x": pl.Float64, "y": pl.Float64}
    return pl.DataFrame(rows, schema={**schema, "beyond": pl.Boolean}).sort("broken", "turn")


def _frontier_chart(boundary: Boundary, grid: Grid, start: int) -> list[Chart]:
    points = frontier_points(boundary, grid)
    if points.is_empty():
        return []
    closed = pl.concat([points, points.group_by("broken", maintain_order=True).first().select(points.columns)])
    closed = closed.with_columns(
        place=pl.int_range(pl.len()).over("broken"),
        state=pl.when("beyond")
        .then(pl.lit("not broken so far: nothing is judged beyond this"))
        .otherwise(pl.lit("broken here")),
    )
    first, second = grid.rays[0].axes
    x: Spec = {
        "field": "x", "type": "quantitative", "scale": _SCALES[first.steps],
        "axis": {"title": first.name, "format": ".4~r"},
    }  # fmt: skip
    y: Spec = {
        "field": "y", "type": "quantitative", "scale": _SCALES[second.steps],
        "axis": {"title": second.name, "format": ".4~r"},
    }  # fmt: skip
    colour: Spec = {
        "field": "broken", "type": "nominal", "legend": {"title": "broken", "orient": "bottom"},
        "scale": {"domain": ["10 %", "half", "90 %"], "range": ["var(--sky)", "var(--blue)", "var(--orange)"]},
    }  # fmt: skip
    tips = tooltip(
        ("ray", "way"), ("broken", "cases broken"), ("x", first.name), ("y", second.name), ("state", "state")
    )
    order: Spec = {"field": "place", "type": "quantitative"}
    filled: Spec = {"condition": {"test": "datum.beyond", "value": 0}, "value": 1}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 2.2}, "encoding": {"x": x, "y": y, "color": colour, "order": order}},
        {"mark": {"type": "point", "size": 70, "filled": False, "strokeWidth": 2, "opacity": 1},
         "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips, "fillOpacity": filled,
                      "fill": colour}},
    ]  # fmt: skip
    name = "frontier"
    return [
        Chart(
            f"{name}-{first.short}-{second.short}",
            f"How far {first.name} and {second.name} may go together",
            "Where a tenth, a half and nine tenths of the cases have broken, along each ray from the unchanged input; "
            "hollow points are the end of a ray along which fewer break, or the last level at which a case was judged.",
            drawn(360, start, layers, data={"name": name}),
            {name: closed},
            470,
        )
    ]


# --- the same elsewhere --------------------------------------------------------------------------------


def _tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    (run,) = runs
    return boundary_tables(run.boundary(judging=judging), judging=judging)


def boundary_tables(boundary: Boundary, *, judging: str = DEFAULT, brief: bool = False) -> TaskTables:
    """What a search found: sentences, medians, curves and the limits of all cases; in brief, curves of one grid alone
    and no cases."""
    return TaskTables(
        [
            median_table(boundary),
            *(curve_table(boundary, grid) for grid in boundary.grids if not brief or len(boundary.grids) == 1),
            *(cases_table(boundary, grid) for grid in boundary.grids if not brief),
        ],
        {"median": boundary.median, "curve": boundary.curve, "limits": boundary.limits},
        before=[one.words for one in boundary_findings(boundary, judging=judging)],
    )


def _remarks(run: Run, judging: str) -> Sequence[Finding]:
    if not searched_grids(run):
        return []
    return list(boundary_findings(run.boundary(judging=judging), judging=judging))


PANELS: Mapping[str, Panel] = {PANEL: Panel(of_relation=_of_relation, tables=_tables, remarks=_remarks)}
