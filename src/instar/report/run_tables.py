"""Further tables of a run for the terminal, each by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from instar.analysis import Run
from instar.report.rebuild import severity_text
from instar.report.tables import Prepared
from instar.spelling import unknown

__all__ = ["TABLES", "run_table"]


def run_table(run: Run, name: str, *, threshold: float | None = None, judging: str = "default") -> list[Prepared]:
    """A table by its name, one per relation where it is about one."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    return TABLES[name](run, threshold, judging)


def _share(row: Mapping[str, Any], name: str = "rate", low: str = "low", high: str = "high") -> str:
    return "–" if row[name] is None else f"{row[name]:.1%} ({100 * row[low]:.0f}–{row[high]:.0%})"


def _groups(table: pl.DataFrame, what: str) -> list[Prepared]:
    rows = [
        [row["group"], str(row["rules"]), f"{row['violated']}/{row['judged']}", _share(row)]
        for row in table.sort("rate", descending=True, nulls_last=True).iter_rows(named=True)
    ]
    return [
        (
            f"Cases that violate at least one rule of the {what}, with the 95 % interval",
            [what, "rules", "cases", "share"],
            rows,
        )
    ]


def _families(run: Run, threshold: float | None, judging: str) -> list[Prepared]:
    return _groups(run.family_rates(threshold, judging=judging), "family")


def _suites(run: Run, threshold: float | None, judging: str) -> list[Prepared]:
    return _groups(run.suite_rates(threshold, judging=judging), "suite")


def _counts(run: Run, threshold: float | None, judging: str) -> list[Prepared]:
    found = []
    for relation, grid in run.grids().items():
        table = run.violated_counts(relation, judging=judging)
        rows = [
            [name, *(str(cases) for cases in part["cases"])]
            for (name,), part in table.group_by("violated", maintain_order=True)
        ]
        found.append(
            (
                f"{relation}: cases by the number of rules that they violate, per threshold in {run.units()[relation]}",
                ["violated", *map(severity_text, grid)],
                [[str(cell) for cell in row] for row in rows],
            )
        )
    return found


def _coverage(run: Run, threshold: float | None, judging: str) -> list[Prepared]:
    table = run.coverage(threshold, judging=judging).filter((pl.col("of") != pl.col("by")) & (pl.col("violated") > 0))
    names = dict(run.rules().select("rule", "name").iter_rows())
    rows = [
        [names[row["of"]], names[row["by"]], f"{row['covered']:.0%}", f"{row['both']}/{row['violated']}"]
        for row in table.drop_nulls("covered")
        .sort("covered", "violated", descending=True)
        .head(40)
        .iter_rows(named=True)
    ]
    return [
        (
            "Which rule covers which: of the cases that violate a rule, the share that violates the other; the 40 "
            "closest",
            ["of", "covered by", "share", "cases"],
            rows,
        )
    ]


TABLES: dict[str, Callable[[Run, float | None, str], list[Prepared]]] = {
    "families": _families,
    "suites": _suites,
    "counts": _counts,
    "coverage": _coverage,
}
