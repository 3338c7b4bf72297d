"""Panels: what a report shows of a task besides what it shows of every run. Tasks bring them, suites name them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from instar.analysis import Run
from instar.registry import BrokenPlugin, find, names
from instar.report.chart import Chart
from instar.report.section import Section
from instar.report.sentences import Finding
from instar.report.tables import Table as Table


@dataclass(frozen=True, slots=True, eq=False)
class PanelContent:
    """A heading, what to know, charts and tables. `rules` are what the charts' parameter `rule` may be."""

    title: str
    text: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    rules: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TaskTables:
    """What `instar tables` prints of a task: sentences, tables, sentences; and `frames`, the numbers behind them."""

    tables: Sequence[Table]
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    before: Sequence[str] = ()
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """What a task shows of runs whose suites name the panel; each function returns None where it has nothing to show.

    `of_relation` is asked for every relation of a run, with the judging's id; `of_run` once; `of_runs` for every
    relation that several runs share. `tables` makes what `instar tables` prints of runs, with the level of
    significance for tests; `several`: it can put runs side by side. `remarks` are sentences on a run as a whole, which
    stand among its findings; one that speaks against the system is a `Finding` that says so.
    """

    of_relation: Callable[[Run, Section, str], PanelContent | None] | None = None
    of_run: Callable[[Run, str], PanelContent | None] | None = None
    of_runs: Callable[[Sequence[Run], Sequence[str], Section, str], PanelContent | None] | None = None
    tables: Callable[[Sequence[Run], str, float], TaskTables | None] | None = None
    several: bool = False
    remarks: Callable[[Run, str], Sequence[Finding | str]] | None = None


def panels_of(run: Run) -> dict[str, Panel]:
    """The panels that the suites of a run name; one that nobody registered here is said and left out."""
    registered = names("panels")
    for name in run.panels():
        if name not in registered:
            _warn_once(f"{run.folder} names a panel {name!r}, which nothing that is installed brings; it is left out")
    return {name: find("panel of a report", name, "panels", Panel) for name in run.panels() if name in registered}


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, BrokenPlugin, stacklevel=3)


def panels_of_relation(run: Run, section: Section, judging: str) -> list[PanelContent]:
    """What the panels of a run show of one relation."""
    return list(
        filter(
            None, (panel.of_relation(run, section, judging) for panel in panels_of(run).values() if panel.of_relation)
        )
    )


def panels_of_run(run: Run, judging: str) -> list[PanelContent]:
    """What the panels of a run show of it as a whole."""
    return list(filter(None, (panel.of_run(run, judging) for panel in panels_of(run).values() if panel.of_run)))


def remarks_on(run: Run, judging: str) -> list[Finding]:
    """What the panels of a run have to say of it as a whole."""
    remarks = (each for panel in panels_of(run).values() if panel.remarks for each in panel.remarks(run, judging))
    return [each if isinstance(each, Finding) else Finding(each) for each in remarks]


def panels_of_runs(runs: Sequence[Run], names: Sequence[str], section: Section, judging: str) -> list[PanelContent]:
    """What the panels that all runs name show of one relation of several runs."""
    return list(
        filter(None, (panel.of_runs(runs, names, section, judging) for panel in _shared(runs) if panel.of_runs))
    )


def _shared(runs: Sequence[Run]) -> Iterator[Panel]:
    others = [run.panels() for run in runs[1:]]
    return (panel for name, panel in panels_of(runs[0]).items() if all(name in other for other in others))


def tables_of(runs: Sequence[Run], judging: str, p: float) -> dict[str, TaskTables]:
    """What `instar tables` prints: the tables of every panel that all these runs name, by the panel's name."""
    shared = set.intersection(*(set(run.panels()) for run in runs))
    panels = {name: panel for name, panel in panels_of(runs[0]).items() if name in shared and panel.tables}
    if len(runs) > 1:
        panels = {name: panel for name, panel in panels.items() if panel.several}
        if not panels:
            raise ValueError(
                f"{len(runs)} runs were given, and they have no tables that are put side by side; give one run"
            )
    made = {name: panel.tables(runs, judging, p) for name, panel in panels.items() if panel.tables}
    tables = {name: task for name, task in made.items() if task is not None}
    if not tables:
        raise ValueError(
            f"{runs[0].folder} has no tables: they belong to the suites of tasks, and this is a run of "
            f"{', '.join(runs[0].manifest.suites)}. `instar suites` lists the suites, `instar show` shows any run"
        )
    return tables
