"""same_count: the numbers of fruits stay what they were."""

from __future__ import annotations

import polars as pl

from instar import Evidence, Relation
from instar_fruit.output import Count

__all__ = ["SAME_COUNT"]


def same_count(evidence: Evidence) -> pl.DataFrame:
    """By how many fruits the two answers differ."""
    sources = {row["case"]: Count.from_row(row, {}) for row in evidence.sources.iter_rows(named=True)}
    rows = []
    for row in evidence.follow_ups.filter(pl.col("draw") == 0, pl.col("repeat") == 0).iter_rows(named=True):
        source, follow_up = sources[row["case"]].numbers, Count.from_row(row, {}).numbers
        wrong = {sort: follow_up.get(sort, 0) - source.get(sort, 0) for sort in {*source, *follow_up}}
        difference = sum(map(abs, wrong.values()))
        rows.append(
            {
                "case": row["case"],
                "follow_up": row["follow_up"],
                "target": "whole",
                "severity": float(difference),
                "kind": None if not difference else "too many" if sum(wrong.values()) > 0 else "too few",
                "reason": None,
                "difference": difference,
            }
        )
    schema = {
        "case": pl.String,
        "follow_up": pl.String,
        "target": pl.String,
        "severity": pl.Float64,
        "kind": pl.String,
        "reason": pl.String,
        "difference": pl.Int32,
    }
    return pl.DataFrame(rows, schema=schema)


SAME_COUNT = Relation(
    "same_count",
    "count",
    same_count,
    unit="fruits",
    threshold=1.0,
    grid=(1.0, 2.0, 3.0),
    kinds=("too many", "too few"),
    measures={"difference": pl.Int32},
    help="The number of fruits of each sort stays.",
)
