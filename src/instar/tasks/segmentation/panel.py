"""What a report shows of a segmenter: overlap and agreement per rule, and the classes that suffer most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.report.panels import Panel, PanelContent, Table, TaskTables
from instar.report.section import Section
from instar.report.words import percent

RELATION = "class_overlap"


def overlaps(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Per rule: pairs, mean mIoU, mean agreement of cells, and the class that is worst most often."""
    schema = {"rule": pl.String, "name": pl.String, "pairs": pl.UInt32}
    rules = run.rules().filter(relation=RELATION).select("rule", "name")
    verdicts = run.verdicts(judging).filter(pl.col("severity").is_not_null())
    if rules.is_empty() or verdicts.is_empty():
        return pl.DataFrame(schema=schema)
    return (
        verdicts.join(rules, on="rule", maintain_order="left")
        .group_by("rule", "name", maintain_order=True)
        .agg(
            pairs=pl.len(),
            miou=(1 - pl.col("severity")).mean(),
            agreement=pl.col("pixel_accuracy").mean(),
            worst=pl.col("worst").mode().sort().first(),
            worst_iou=pl.col("worst_iou").mean(),
        )
        .sort("miou", maintain_order=True)
    )


def _table(frame: pl.DataFrame) -> Table:
    rows = []
    for row in frame.iter_rows(named=True):
        worst = f"{row['worst']} ({row['worst_iou']:.2f})"
        rows.append([row["name"], f"{row['pairs']:,}", f"{row['miou']:.3f}", percent(row["agreement"]), worst])
    return Table(
        "Mean IoU of the classes present, the share of cells that agree, and the class that is worst most often with "
        "the mean IoU of the worst class",
        ["rule", "pairs", "mean IoU", "cells that agree", "worst class"],
        rows,
    )


def _of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    frame = overlaps(run, judging=judging) if section.relation == RELATION else pl.DataFrame()
    return PanelContent("How well the classes overlap", tables=[_table(frame)]) if frame.height else None


def _tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    frame = overlaps(runs[0], judging=judging)
    return TaskTables([_table(frame)], {"overlaps": frame}) if frame.height else None


PANELS: Mapping[str, Panel] = {"overlaps": Panel(of_relation=_of_relation, tables=_tables)}
