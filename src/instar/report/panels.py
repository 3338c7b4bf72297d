"""Panels: what a report shows of a task besides what it shows of every run. Tasks bring them, suites name them."""

from __future__ import annotations

import math
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.registry import BrokenPlugin, find, names
from instar.report.chart import Chart
from instar.report.finding import Finding
from instar.report.picture import LegendEntry
from instar.report.section import Section
from instar.report.tables import Table as Table


@dataclass(frozen=True, slots=True)
class PanelPictures:
    """Pictures of a panel in rows, each as a data address with what it shows, and what all of them show."""

    caption: str
    rows: Sequence[Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True, eq=False)
class PanelContent:
    """A heading, what to know, charts, tables, and pictures with the legend of what is drawn on them. `rules` are what
    the charts' parameter `rule` may be.

    One that `leads` stands before what a report shows of any relation.
    """

    title: str
    text: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    rules: Sequence[str] = ()
    pictures: Sequence[PanelPictures] = ()
    legend: Sequence[LegendEntry] = ()
    leads: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TaskTables:
    """What `instar tables` prints of a task: sentences, tables, sentences; and `frames`, the numbers behind them.

    A figure of a paper has its `chart` too.
    """

    tables: Sequence[Table]
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What a figure of a paper is made with: sets of rules as the user spells them, one threshold, the judging, and the
    level of significance of tests.

    Without rules a figure has those of its paper, without a threshold each rule has its own.
    """

    rules: Sequence[str] = ()
    threshold: float | None = None
    judging: str = DEFAULT
    p: float = 0.05


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or a table of a paper, made of one's own run; of several side by side, where it says so.

    `title` says what it shows. `choices` are those of `rules` and `threshold` that it uses of a `Choice`.
    """

    title: str
    make: Callable[[Sequence[Run], Choice], TaskTables]
    several: bool = False
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """What a task shows of runs whose suites name the panel; each function returns None where it has nothing to show.

    `kind` is the kind of output that the panel reads: a suite of rules without relations may be asked of any system,
    and runs of another kind do without the panel.

    `of_relation` is asked for every relation of a run, with the judging's id; `of_run` once; `of_runs` for every
    relation that several runs share. `tables` makes what `instar tables` prints of runs, with the level of
    significance for tests; `several`: it can put runs side by side. `remarks` are sentences on a run as a whole, which
    stand among its findings. `figures` are those of the
    task's paper that can be made of a run, by their numbers there: `7` for a figure, `II` for a table.
    """

    of_relation: Callable[[Run, Section, str], PanelContent | None] | None = None
    of_run: Callable[[Run, str], PanelContent | None] | None = None
    of_runs: Callable[[Sequence[Run], Sequence[str], Section, str], PanelContent | None] | None = None
    tables: Callable[[Sequence[Run], str, float], TaskTables | None] | None = None
    several: bool = False
    remarks: Callable[[Run, str], Sequence[Finding]] | None = None
    figures: Mapping[str, PaperFigure] = field(default_factory=dict)
    kind: str | None = None


def _own() -> Mapping[str, Panel]:
    """The panels of no task."""
    from instar.report.boundary_panel import PANELS  # late: it is made of what is above

    return PANELS


def panels_of(run: Run) -> dict[str, Panel]:
    """The panels that the suites of a run name and that read its answers; one that nobody registered here is said."""
    own = _own()
    registered = [*own, *names("panels")]
    for name in run.panels():
        if name not in registered:
            _warn_once(f"{run.folder} names a panel {name!r}, which nothing that is installed brings; it is left out")
    wanted = [name for name in run.panels() if name in registered]
    named = {name: own.get(name) or find("panel of a report", name, "panels", Panel) for name in wanted}
    return {name: panel for name, panel in named.items() if panel.kind in (None, run.manifest.system.kind)}


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
    return [each for panel in panels_of(run).values() if panel.remarks for each in panel.remarks(run, judging)]


def panels_of_runs(runs: Sequence[Run], names: Sequence[str], section: Section, judging: str) -> list[PanelContent]:
    """What the panels that all runs name show of one relation of several runs."""
    contents = [panel.of_runs(runs, names, section, judging) for panel in _of_all(runs).values() if panel.of_runs]
    return [content for content in contents if content is not None]


def _of_all(runs: Sequence[Run]) -> dict[str, Panel]:
    """The panels that all runs name."""
    others = [panels_of(run) for run in runs[1:]]
    return {name: panel for name, panel in panels_of(runs[0]).items() if all(name in other for other in others)}


def tables_of(runs: Sequence[Run], judging: str, p: float) -> dict[str, TaskTables]:
    """What `instar tables` prints: the tables of every panel that all these runs name, by the panel's name."""
    panels = {name: panel for name, panel in _of_all(runs).items() if panel.tables}
    if len(runs) > 1:
        panels = {name: panel for name, panel in panels.items() if panel.several}
        if not panels:
            raise ValueError(
                f"{len(runs)} runs were given, and the tables of these tasks are of one run; give one run, or put the "
                f"runs side by side with {_compare_command(runs)}"
            )
    made = {name: panel.tables(runs, judging, p) for name, panel in panels.items() if panel.tables}
    tables = {name: task for name, task in made.items() if task is not None}
    if not tables:
        raise ValueError(
            f"{runs[0].folder} has no tables: they belong to the suites of tasks, and this is a run of "
            f"{', '.join(runs[0].manifest.suites)}. `instar suites` lists the suites, `instar show` shows any run"
        )
    return tables


def _compare_command(runs: Sequence[Run]) -> str:
    return f"`instar compare {' '.join(shlex.quote(str(run.folder)) for run in runs)}`"


def figures_of(runs: Sequence[Run]) -> dict[str, PaperFigure]:
    """The figures of papers that can be made of these runs, by number; by `panel:number` where two papers share one."""
    figures = [(name, number, one) for name, panel in _of_all(runs).items() for number, one in panel.figures.items()]
    shared = Counter(number for _, number, _ in figures)
    return {number if shared[number] == 1 else f"{panel}:{number}": one for panel, number, one in figures}


def paper_figure(runs: Sequence[Run], number: str, choice: Choice) -> TaskTables:
    """A figure or a table of a paper, made of these runs."""
    figures = figures_of(runs)
    if number not in figures:
        in_order = sorted(figures, key=lambda name: int(name) if name.isdigit() else math.inf)
        there = "; ".join(f"{name}: {figures[name].title}" for name in in_order)
        suites = ", ".join(dict.fromkeys(suite for run in runs for suite in run.manifest.suites))
        raise ValueError(
            f"there is no figure {number!r} of a run of {suites}. "
            + (f"There are: {there}" if there else "No suite of it has figures of a paper")
        )
    figure = figures[number]
    if len(runs) > 1 and not figure.several:
        raise ValueError(f"figure {number} is made of one run, and {len(runs)} were given")
    for name in ("rules", "threshold"):
        if getattr(choice, name) not in ((), None) and name not in figure.choices:
            raise ValueError(f"figure {number} ({figure.title}) takes no {name}")
    return figure.make(runs, choice)
