"""Panels: what a report shows of a task besides what it shows of every run. Suites ask for them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from instar.analysis import Run
from instar.outputs.poses import Poses
from instar.relations import own_equivariance
from instar.report.chart import Chart
from instar.report.panel_figures import classic_bars, classic_shares, object_curves, skeleton, worst_landmarks
from instar.report.section import Section
from instar.report.tables import captions_prepared, objects_prepared, prepared
from instar.report.words import interval, percent
from instar.spelling import unknown
from instar.tasks.hand_pose.panel import hand_panel, hands_compared
from instar.tasks.met_pose.suite import PAPER_BINS

__all__ = ["SuitePanel", "Table", "panels_of_relation", "panels_of_run", "panels_of_runs"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table in words. Where `by_threshold`, the columns after the first are the grid's thresholds."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    by_threshold: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SuitePanel:
    """A heading, what to know, charts and tables. `rules` are what the charts' parameter `rule` may be."""

    title: str
    text: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    rules: Sequence[str] = ()


def _violated_counts(run: Run, section: Section, judging: str, *, paper: bool = False) -> SuitePanel | None:
    if section.rules < 2 or not section.whole(section.start)["judged"]:
        return None
    asked: dict[str, Any] = {"bins": PAPER_BINS, "strict": True} if paper and section.rules == PAPER_BINS[-1][1] else {}
    table = run.violated_counts(section.relation, grid=section.grid, judging=judging, **asked)
    bins: list[str] = table["violated"].unique(maintain_order=True).to_list()
    counts = {(row["violated"], row["threshold"]): row["cases"] for row in table.iter_rows(named=True)}
    rows = [[name, *(f"{counts[name, value]:,}" for value in section.grid)] for name in bins]
    text = "Cases by the number of rules that they violate, for each threshold."
    if asked:
        text += " As published: some bins overlap, and severities count above the threshold only."
    return SuitePanel("How many rules a case violates", text, tables=[
        Table(f"threshold in {section.unit}", ["violated rules", *section.labels], rows, by_threshold=True)])


def _paper_counts(run: Run, section: Section, judging: str) -> SuitePanel | None:
    return _violated_counts(run, section, judging, paper=True)


def _classic(run: Run, section: Section, judging: str) -> SuitePanel | None:
    if not run.has_truth or section.relation != own_equivariance(run.manifest["system"]["kind"]).relation.name:
        return None
    table = run.classic(grid=section.grid, judging=judging)
    cases = int(table.row(0, named=True)["cases"])
    if not cases:
        return None
    rows = [[label, *(f"{row[name]:,}" for name in ("both", "classic_only", "metamorphic_only", "neither")),
             *(f"{percent(row[name])} ({interval(row[f'{name}_low'], row[f'{name}_high'])})"
               if row[name] is not None else "–" for name in ("precision", "recall"))]
            for label, row in zip(section.labels, table.iter_rows(named=True), strict=True)]
    return SuitePanel(
        "Beside classic testing",
        "Classic testing compares the source outputs with the ground truth. Precision: of the cases that fail "
        "metamorphic testing, the share that fails classic testing; recall: of the cases that fail classic testing, "
        "the share that metamorphic testing finds without labels. Both with 95 % intervals.",
        [classic_bars(table, section), classic_shares(table, section)],
        [Table(f"by threshold in {section.unit}, {cases:,} cases",
               ["threshold", "both", "classic only", "metamorphic only", "neither", "precision", "recall"], rows)])


ALL_RULES = "all rules"
ROWS = 60_000
"""Of more rows (a face has 468 landmarks) a page has the sum over all rules only."""


def _landmarks(run: Run, section: Section, judging: str) -> SuitePanel | None:
    kind = run.manifest["system"]["kind"]  # a suite for poses may test a detector too
    if kind != Poses.kind or section.relation != own_equivariance(kind).relation.name:
        return None
    places = {value: t for t, value in enumerate(section.grid)}
    found = run.landmarks(grid=section.grid, judging=judging).select(
        pl.col("rule").replace(dict(section.names)).fill_null(ALL_RULES), "landmark", "part",
        pl.col("threshold").replace_strict(places, return_dtype=pl.Int32).alias("t"), "judged", "violated", "rate",
        "low", "high")
    together, table = found.filter(pl.col("rule") == ALL_RULES), found.filter(pl.col("rule") != ALL_RULES)
    if not together["judged"].sum():
        return None
    few = len(table) <= ROWS and section.rules > 1
    shown = pl.concat([together, table] if few else [together])
    poses = [figure for figure in run.figures() if figure.part in set(together["part"])]
    return SuitePanel(
        "Which landmarks stray",
        "Every landmark's own rate, over all pairs of subjects: it is violated where it alone strays by at least the "
        "threshold. Landmarks at a place outside the frame are not judged."
        + ("" if few or section.rules < 2 else " All rules together; for one rule there are too many landmarks here."),
        [*(skeleton(shown, figure, section, ALL_RULES) for figure in poses),
         worst_landmarks(shown, section, ALL_RULES)], rules=[ALL_RULES, *sorted(set(table["rule"]))] if few else ())


def _objects(run: Run, section: Section, judging: str) -> SuitePanel | None:
    if section.relation != "presence":
        return None
    table = run.objects(judging=judging)
    own = "" if run.manifest["truth"] else (" Nothing is annotated: objects are what the system found in the source "
                                            "with a score of at least 0.5.")
    return SuitePanel(
        "Is it found because of itself?",
        "An inference is unreliable where at least two of three follow-ups break the relation: an object that nothing "
        "relevant happened to is missing, or incorrectly found; one that was erased persists. An image counts once in "
        "each outcome it shows." + own,
        object_curves(table, section),
        [Table(*objects_prepared(table))])


def _trajtest(run: Run, judging: str) -> SuitePanel | None:
    p = 0.05
    tables = [Table(title, heads, rows) for title, heads, rows in prepared(run.tables(p=p, judging=judging), p) if rows]
    return SuitePanel("TrajTest's tables", tables=tables) if tables else None


def _captions(run: Run, judging: str) -> SuitePanel | None:
    table = run.captions(judging=judging)
    if not table["pairs"].sum():
        return None
    read = "as MetaIC's code had it" if run.manifest["options"].get("reader") == "paper" else "by Instar"
    return SuitePanel(
        "What captions make of it",
        "With an object inserted, a caption names what it named before, and that object; everything keeps its "
        f"grammatical number. Captions are understood {read}: `instar words` says how a caption is read.",
        tables=[Table(*captions_prepared(table))])


OfRelation = Callable[[Run, Section, str], SuitePanel | None]
OfRun = Callable[[Run, str], SuitePanel | None]
OfRuns = Callable[[Sequence[Run], Sequence[str], Section, str], SuitePanel | None]
_OF_RELATION: dict[str, OfRelation] = {
    "violated-counts": _violated_counts, "violated-counts@paper": _paper_counts, "classic": _classic,
    "landmarks": _landmarks, "objects": _objects, "hands": hand_panel}
_OF_RUN: dict[str, OfRun] = {"captions": _captions, "trajtest": _trajtest}
_OF_RUNS: dict[str, OfRuns] = {"hands": hands_compared}


def _asked(run: Run) -> list[str]:
    allowed = [*_OF_RELATION, *_OF_RUN]
    for name in run.panels():
        if name not in allowed:
            raise unknown("panel of a report", name, allowed)
    return run.panels()


def panels_of_relation(run: Run, section: Section, judging: str) -> list[SuitePanel]:
    """The panels about one relation of a run that its suites ask for, without those that have nothing to show."""
    found = [_OF_RELATION[name](run, section, judging) for name in _asked(run) if name in _OF_RELATION]
    return [panel for panel in found if panel]


def panels_of_run(run: Run, judging: str) -> list[SuitePanel]:
    """The panels about a whole run that its suites ask for."""
    found = [_OF_RUN[name](run, judging) for name in _asked(run) if name in _OF_RUN]
    return [panel for panel in found if panel]


def panels_of_runs(runs: Sequence[Run], names: Sequence[str], section: Section, judging: str) -> list[SuitePanel]:
    """The panels about one relation of several runs, where the suites of all of them ask for it."""
    asked = [name for name in _asked(runs[0]) if name in _OF_RUNS and all(name in _asked(run) for run in runs)]
    found = [_OF_RUNS[name](runs, names, section, judging) for name in asked]
    return [panel for panel in found if panel]
