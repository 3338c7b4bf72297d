"""Further tables of a run for the terminal, each by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from instar.analysis import Run
from instar.report.limits import limit_words
from instar.report.tables import Table
from instar.report.words import percent, rate_text, threshold_text
from instar.spelling import unknown

MOST = 40
"""How many pairs of rules a table of coverage has."""


def run_table(run: Run, name: str, *, threshold: float | None = None, judging: str = "default") -> list[Table]:
    """A table by its name, one per relation where it is about one."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    return TABLES[name](run, threshold, judging)


def _groups(run: Run, table: pl.DataFrame, what: str, threshold: float | None, judging: str) -> list[Table]:
    rows = [
        [
            row["group"],
            str(row["rules"]),
            f"{row['violated']}/{row['judged']}",
            rate_text(row["rate"], row["low"], row["high"], digits=1),
            str(row["nothing_found"]),
        ]
        for row in table.sort("rate", descending=True, nulls_last=True).iter_rows(named=True)
    ]
    limits = limit_words(run, threshold=threshold, judging=judging)
    caption = f"Cases that violate at least one rule of the {what}, with the 95 % interval; {limits}"
    return [Table(caption, [what, "rules", "cases", "share", "nothing found"], rows)]


def _counts(run: Run, threshold: float | None, judging: str) -> list[Table]:
    tables, units = [], run.units(judging)
    for relation, grid in run.grids().items():
        table = run.violated_counts(relation, judging=judging)
        rows = [
            [str(name), *map(str, part["cases"])] for (name,), part in table.group_by("violated", maintain_order=True)
        ]
        tables.append(
            Table(
                f"{relation}: cases by the number of rules that they violate, per threshold in {units[relation]}",
                ["violated", *map(threshold_text, grid)],
                rows,
            )
        )
    return tables


def _coverage(run: Run, threshold: float | None, judging: str) -> list[Table]:
    table = run.coverage(threshold, judging=judging).filter((pl.col("of") != pl.col("by")) & (pl.col("violated") > 0))
    closest = table.drop_nulls("covered").sort("covered", "violated", descending=True)
    names = dict(run.rules().select("rule", "name").iter_rows())
    rows = [
        [names[row["of"]], names[row["by"]], percent(row["covered"]), f"{row['both']}/{row['violated']}"]
        for row in closest.head(MOST).iter_rows(named=True)
    ]
    return [
        Table(
            "Which rule covers which: of the cases that violate a rule, the share that violates the other; "
            f"{limit_words(run, threshold=threshold, judging=judging)}"
            + (f"; {MOST} closest" if closest.height > MOST else ""),
            ["of", "covered by", "share", "cases"],
            rows,
        )
    ]


def _families(run: Run, threshold: float | None, judging: str) -> list[Table]:
    """One table, or one for each suite of a run that has several."""
    suites = list(run.suites())
    if len(suites) < 2:
        return _groups(run, run.family_rates(threshold, judging=judging), "family", threshold, judging)
    return [
        replace(table, caption=f"{suite}. {table.caption}")
        for suite in suites
        for table in _groups(
            run, run.family_rates(threshold, judging=judging, suite=suite), "family", threshold, judging
        )
    ]


def _suites(run: Run, threshold: float | None, judging: str) -> list[Table]:
    return _groups(run, run.suite_rates(threshold, judging=judging), "suite", threshold, judging)


TABLES: dict[str, Callable[[Run, float | None, str], list[Table]]] = {
    "families": _families,
    "suites": _suites,
    "counts": _counts,
    "coverage": _coverage,
}
