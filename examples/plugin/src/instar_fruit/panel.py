"""What the report and `instar tables` show of fruit: by how many the numbers are off, per rule."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from instar import Run
from instar.report import Panel, PanelContent, Table, TaskTables

__all__ = ["PANEL"]


def differences(run: Run, judging: str) -> pl.DataFrame:
    verdicts = run.verdicts(judging).drop_nulls("severity")
    return verdicts.group_by("rule", maintain_order=True).agg(cases=pl.len(), difference=pl.col("difference").mean())


def _table(frame: pl.DataFrame) -> Table:
    rows = [[rule, f"{cases:,}", f"{difference:.2f}"] for rule, cases, difference in frame.iter_rows()]
    return Table("By how many fruits the answers differ, on average", ["rule", "cases", "fruits"], rows)


def _of_run(run: Run, judging: str) -> PanelContent | None:
    frame = differences(run, judging)
    return PanelContent("How many fruits are lost", tables=[_table(frame)]) if frame.height else None


def _tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    frame = differences(runs[0], judging)
    return TaskTables([_table(frame)], {"differences": frame}, before=["Fruit, counted."])


PANEL = Panel(of_run=_of_run, tables=_tables)
