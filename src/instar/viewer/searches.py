"""What searches found, on pages: limits of cases with their pictures, and combinations that break answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
from starlette.exceptions import HTTPException

from instar.analysis.boundary import Boundary
from instar.analysis.found import found_combinations
from instar.report.boundary_panel import TITLE, limits_panel
from instar.report.boundary_pictures import shown_limits
from instar.report.boundary_words import boundary_findings, cases_table, curve_table, level_words, unfinished_words
from instar.report.chart import Spec
from instar.report.combinations import combinations_panel
from instar.report.marks import marked_pairs
from instar.report.panels import PanelContent
from instar.report.tables import Table
from instar.store import Row
from instar.suites.grid import PANEL, Grid
from instar.viewer import charts
from instar.viewer.index import Index
from instar.viewer.pages import SHARED, Viewer, known_rule, verdict_of
from instar.viewer.query import VIOLATED, Filters, address, whole
from instar.viewer.watch import PATIENCE

CASES = 100
"""Cases on a page of limits."""
PICTURES = 6
"""Cases of a way that are shown in pictures, from the least limit to the largest."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkedTable:
    """A table of a report, and where its cells lead, by row and column."""

    table: Table
    links: Mapping[tuple[int, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class PanelShown:
    """A section of a report on a page: its figures are drawn here."""

    content: PanelContent
    figures: Sequence[Spec]
    tables: Sequence[LinkedTable]
    waiting: bool = False


# --- combinations ----------------------------------------------------------------------------------


def combinations_shown(index: Index, filters: Filters) -> list[PanelShown]:
    """The section of a search for combinations, whose rows lead to their pairs; none of another run."""
    best = found_combinations(index.run)
    known = {rule.name: rule.id for rule in index.rules}
    links = {}
    for row, names in enumerate(best.select("name", "shrunk").iter_rows()):
        for column, name in zip((0, _SHRUNK), names, strict=True):
            if name in known:
                links[row, column] = address("/gallery", replace(filters, rule=known[name], status=VIOLATED).query())
    return [
        PanelShown(panel, [], [LinkedTable(table, links) for table in panel.tables])
        for panel in combinations_panel(index.run)
    ]


_SHRUNK = 5
"""The column of the smallest form."""


# --- limits ----------------------------------------------------------------------------------------


def _searched(index: Index) -> bool:
    """Whether the run has levels that were searched for limits."""
    return PANEL in index.manifest.panels


def limits_shown(index: Index, filters: Filters) -> list[PanelShown]:
    """The section of a search for limits, whose rows lead to the cases of each way; none of another run."""
    if not _searched(index):
        return []
    boundary = index.limits(filters.threshold, PATIENCE)
    if not isinstance(boundary, Boundary):
        text = "The limits are being read; this page looks again by itself." if boundary is None else str(boundary)
        return [PanelShown(PanelContent(TITLE, text), [], [], boundary is None)]
    panel = limits_panel(boundary, threshold=filters.threshold)
    links = {(row, 0): _address(filters, row + 1) for row in range(boundary.median.height)}
    tables = [LinkedTable(table, links) for table in panel.tables]
    return [PanelShown(panel, charts.of_report(panel.charts), tables)]


def _address(filters: Filters, way: int, **more: object) -> str:
    return address("/limits", {**filters.query("run", "judging", "threshold"), "way": way, **more})


def limits_address(index: Index, filters: Filters) -> str:
    """Where the limits of a run's cases are; nowhere for a run that searched none."""
    return _address(filters, 1) if _searched(index) else ""


def limits(viewer: Viewer, query: Mapping[str, str]) -> dict[str, object]:
    """The limits of all cases, one way at a time."""
    filters = Filters(**{name: getattr(viewer.filters(query), name) for name in (*SHARED, "page")})
    index = viewer.index(filters)
    if not _searched(index):
        raise HTTPException(404, "This run holds no search for limits; `instar boundary` makes one.")
    page: dict[str, object] = {"filters": filters, "index": index, "waiting": True, "notes": []}
    boundary = index.limits(filters.threshold, PATIENCE)
    if boundary is None:
        return {**page, "canonical": _address(filters, 1), "boundary": None}
    if isinstance(boundary, ValueError):
        raise HTTPException(404, str(boundary))
    number = min(max(1, whole(query.get("way"), 1)), boundary.median.height)
    way = boundary.median.row(number - 1, named=True)
    grid = next(grid for grid in boundary.grids if grid.family == way["family"])
    one_way = pl.col("ray") == way["ray"]
    own = boundary.of([grid])
    unchanged = grid.unchanged.for_output(index.manifest.system.kind).id
    shown = pl.when(status="broken before").then(pl.lit(unchanged)).otherwise(pl.coalesce("rule", "last_rule"))
    own = replace(own, limits=own.limits.filter(one_way).with_columns(shown=shown), curve=own.curve.filter(one_way))
    sentences = boundary_findings(boundary, threshold=filters.threshold, judging=index.judging)
    return {
        **page,
        "waiting": False,
        "boundary": boundary,
        "notes": unfinished_words(boundary, filters.threshold),
        "sentences": list(sentences),
        "every_way": [
            {"name": name, "address": _address(filters, place), "on": place == number}
            for place, name in enumerate(boundary.median["ray"], 1)
        ],
        "way": way,
        "curve": LinkedTable(_of_one_way(curve_table(own, grid)), {}),
        "pictures": [_in_pictures(viewer, index, filters, limit) for limit in shown_limits(own, way["ray"], PICTURES)],
        **_cases(own, grid, filters, number, query.get("state", "")),
    }


def _cases(own: Boundary, grid: Grid, filters: Filters, way: int, state: str) -> dict[str, object]:
    """A page of the cases of a way, the least limits first; those of one state, where one is chosen."""
    counts = own.limits["status"].value_counts(sort=True, name="count")
    states = [("", own.limits.height), *counts.iter_rows()]
    state = state if state in counts["status"] else ""
    chosen = own.limits if not state else own.limits.filter(status=state)
    chosen = chosen.sort("level", "case", nulls_last=True)  # as the table has them
    pages = max(1, -(-chosen.height // CASES))
    page = min(filters.page, pages)
    shown = chosen.slice((page - 1) * CASES, CASES)
    pairs = shown.select("case", "shown").iter_rows()
    links = {(row, 0): _case_address(filters, case, rule) for row, (case, rule) in enumerate(pairs)}
    kept = {"state": state}
    return {
        "canonical": _address(filters, way, **kept, page=page if page > 1 else ""),
        "cases": LinkedTable(_of_one_way(cases_table(replace(own, limits=shown), grid)), links),
        "states": [(name, count, _address(filters, way, state=name), name == state) for name, count in states],
        "page": page,
        "pages": pages,
        "links": {
            number: _address(filters, way, **kept, page=number)
            for number in (1, page - 1, page + 1, pages)
            if 1 <= number <= pages
        },
    }


def _of_one_way(table: Table) -> Table:
    """A table without its first column, the way, which is the same in all rows."""
    return Table(table.caption, table.heads[1:], [row[1:] for row in table.rows])


def _case_address(filters: Filters, case: str, rule: str | None) -> str:
    return address("/case", {**filters.query("run", "judging", "threshold"), "case": case, "shown": rule})


def _in_pictures(viewer: Viewer, index: Index, filters: Filters, limit: Row) -> Row:
    """A limit in pictures: the source, the last level that held, where one was asked, and the first that broke."""
    case, drawn = limit["case"], {**filters.query("run", "judging"), "case": limit["case"], "w": 480}
    viewer.pictures.expect(viewer.run(filters.run).store, [case])
    number = index.case_number(case)
    source = {"picture": address("/picture", {**drawn, "side": "source"}), "open": _case_address(filters, case, None)}
    tiles: list[Row] = [{**source, "words": "source", "severity": None, "answer": ()}]
    for rule, which, state in ((limit["last_rule"], "last", "holds"), (limit["rule"], "limit", "broken")):
        if rule is None or number is None:
            words = "no smaller level was seen to hold"
            tiles.append({"picture": "", "open": "", "words": words, "severity": None, "answer": ()})
            continue
        verdict = verdict_of(index, "", number, known_rule(index, rule))
        (marked,) = marked_pairs(index.run.store, [verdict], index.judging) if verdict else (None,)
        tiles.append(
            {
                "picture": address("/picture", {**drawn, "rule": rule, "side": "follow-up"}),
                "open": _case_address(filters, case, rule),
                "words": f"{level_words(limit, which)}: {state}",
                "severity": verdict and verdict["severity"],
                "limit": index.thresholds(filters.threshold)[rule],
                "answer": marked.follow_up if marked else (),
            }
        )
        tiles[0]["answer"] = marked.source if marked else ()
    return {"case": case, "tiles": tiles}
