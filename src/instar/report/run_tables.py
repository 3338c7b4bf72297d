"""Further tables of a run for the terminal, each by its name."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from instar.analysis import Run
from instar.report.tables import Table
from instar.report.words import percent, rate_text, severity_text
from instar.spelling import unknown


def run_table(run: Run, name: str, *, threshold: float | None = None, judging: str = "default") -> list[Table]:
    """A table by its name, one per relation where it is about one."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    return TABLES[name](run, threshold, judging)


def _groups(table: pl.DataFrame, what: str) -> list[Table]:
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
    caption = f"Cases that violate at least one rule of the {what}, with the 95 % interval; cases with nothing found"
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
                ["violated", *map(severity_text, grid)],
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
        for row in closest.head(40).iter_rows(named=True)
    ]
    return [
        Table(
            "Which rule covers which: of the cases that violate a rule, the share that violates the other; the 40 "
            "closest",
            ["of", "covered by", "share", "cases"],
            rows,
        )
    ]


TABLES: dict[str, Callable[[Run, float | None, str], list[Table]]] = {
    "families": lambda run, threshold, judging: _groups(run.family_rates(threshold, judging=judging), "family"),
    "suites": lambda run, threshold, judging: _groups(run.suite_rates(threshold, judging=judging), "suite"),
    "counts": _counts,
    "coverage": _coverage,
}
