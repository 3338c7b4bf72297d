"""Shares over several pairs of a case, which are no independent trials: their intervals count cases as clusters."""

from __future__ import annotations

import polars as pl

from instar.stats import clustered_interval

MOMENTS = ("clusters", "hits", "trials", "squares", "products", "trials_squared")
"""What is summed over cases, in the order of `instar.stats.moments`."""


def clustered(trials: pl.DataFrame, by: str) -> pl.DataFrame:
    """The 95 % interval `low` to `high` of the share of hits, for each value of a column.

    `trials` has a row for each trial: that column, the `case` it is of, and whether it is a `hit`.
    """
    cases = trials.group_by(by, "case", maintain_order=True).agg(
        hits=pl.col("hit").sum().cast(pl.Float64), trials=pl.len().cast(pl.Float64)
    )
    sums = cases.group_by(by, maintain_order=True).agg(
        clusters=pl.len(),
        squares=(pl.col("hits") ** 2).sum(),
        products=(pl.col("hits") * pl.col("trials")).sum(),
        trials_squared=(pl.col("trials") ** 2).sum(),
        hits=pl.col("hits").sum(),
        trials=pl.col("trials").sum(),
    )
    low, high = clustered_interval([sums[name].to_numpy() for name in MOMENTS])
    return sums.select(by).with_columns(pl.Series("low", low), pl.Series("high", high))
