"""Several captioners beside each other, on the follow-ups that all of them were judged on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.tasks.meta_ic.analysis import caption_rules, caption_table

PAIR = ["change", "case", "target"]


def caption_comparison(runs: Mapping[str, Run], *, judging: str = DEFAULT) -> pl.DataFrame:
    """`caption_table` of each run with a column `run`, over the pairs that all of them judge: the same change of the
    same image. The rows of a change stand together. Empty where they have no such pair."""
    keys = [_judged(run, judging) for run in runs.values()]
    common = reduce(
        lambda one, other: one.join(other, on=[*PAIR, "hash"], how="semi", nulls_equal=True, maintain_order="left"),
        keys,
    )
    tables = [
        caption_table(run, judging=judging, among=common).select(pl.lit(name).alias("run"), pl.all())
        for name, run in runs.items()
    ]
    order = {change: place for place, change in enumerate(tables[0]["change"])}
    place = pl.col("change").replace_strict(order, return_dtype=pl.Int64)
    return pl.concat(tables).drop("unjudged").sort(place, maintain_order=True)


def _judged(run: Run, judging: str) -> pl.DataFrame:
    """The pairs that the relation of objects or that of numbers judges, with what the image's content is known by."""
    rules = caption_rules(run).filter(pl.col("relation").is_in(["objects", "numbers"]))
    verdicts = run.verdicts(judging).filter(pl.col("severity").is_not_null())
    pairs = verdicts.join(rules, on="rule", maintain_order="left").select(PAIR).unique(maintain_order=True)
    return pairs.join(run.cases().select("case", "hash"), on="case", maintain_order="left")
