"""Object relevance in numbers: per rule, how many objects and images show which outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.relations import rule
from instar.stats import wilson

__all__ = ["OUTCOMES", "object_table", "outcome_table"]

OUTCOMES = ("missing", "incorrect", "persists")
"""What an unreliable inference is: lost although nothing relevant changed, found only then, found although erased."""


def object_table(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """The tables of object relevance: per rule of `presence` how many objects and images show which outcome."""
    rules = run.rules().filter(relation="presence")["rule"].to_list()
    if not rules:
        raise ValueError(
            f"{run.folder} has no rules about the presence of objects; `instar run DETECTOR object-relevance DATASET` "
            "makes such a run"
        )
    return outcome_table(run.verdicts(judging), rules, threshold=run.thresholds(threshold)[rules[0]])


def outcome_table(verdicts: pl.DataFrame, rules: Sequence[str], *, threshold: float = 2 / 3) -> pl.DataFrame:
    """Tables 6 to 10: one row per rule of the relation `presence`, in the order of the rules.

    Rules about one object each, which differ by its number alone, share a row.

    `objects` and `images` count what was judged; `missing`, `incorrect` and `persists` the objects with that outcome in
    at least `threshold` of their follow-ups, `images_…` the images with such an object: an image counts once in each
    outcome it shows, and in `images_none` if it shows none. `unreliable` is the share of the objects with any of them,
    with its 95 % interval. `still_found` is the response curve: of the objects found in the source, how often they are
    found in follow-ups, also where nothing is judged.
    """
    names = [text for text in rules if (one := rule(text).relation) is not None and one.relation.name == "presence"]
    measures: dict[str, Any] = {"found_source": pl.Boolean, "found": pl.Float64}
    verdicts = verdicts.with_columns(
        pl.lit(None, kind).alias(name) for name, kind in measures.items() if name not in verdicts.columns
    )
    mine = (
        pl.LazyFrame({"rule": names}, schema={"rule": pl.String})
        .join(verdicts.lazy(), on="rule", maintain_order="left")
        .with_columns(pl.col("rule").str.replace(r"only=\d+", "each object"))
    )
    judged = pl.col("severity").is_not_null()
    broken = judged & (pl.col("severity") >= threshold) & (pl.col("severity") > 0)
    shows = {name: broken & (pl.col("kind") == name) for name in OUTCOMES}
    images = (
        mine.filter(judged)
        .group_by("rule", "case")
        .agg(**{name: hit.any() for name, hit in shows.items()}, any=broken.any())
        .group_by("rule")
        .agg(
            images=pl.len().cast(pl.Int64),
            **{f"images_{name}": pl.col(name).sum().cast(pl.Int64) for name in OUTCOMES},
            images_none=(~pl.col("any")).sum().cast(pl.Int64),
        )
    )
    table = (
        mine.group_by("rule", maintain_order=True)
        .agg(
            objects=judged.sum().cast(pl.Int64),
            **{name: hit.sum().cast(pl.Int64) for name, hit in shows.items()},
            broken=broken.sum().cast(pl.Int64),
            tried=pl.col("found_source").sum().cast(pl.Int64),
            still_found=pl.col("found").filter(pl.col("found_source")).mean(),
        )
        .join(images, on="rule", how="left", maintain_order="left")
        .with_columns(pl.col("^images.*$").fill_null(0))
        .collect()
    )
    ends = [wilson(hits, tries) for hits, tries in table.select("broken", "objects").iter_rows()]
    share = pl.when(pl.col("objects") > 0)
    return table.with_columns(
        unreliable=share.then(pl.col("broken") / pl.col("objects")),
        low=share.then(pl.Series([low for low, _ in ends], dtype=pl.Float64)),
        high=share.then(pl.Series([high for _, high in ends], dtype=pl.Float64)),
    ).select(
        "rule",
        "objects",
        *OUTCOMES,
        "unreliable",
        "low",
        "high",
        "images",
        *(f"images_{name}" for name in OUTCOMES),
        "images_none",
        "tried",
        "still_found",
    )
