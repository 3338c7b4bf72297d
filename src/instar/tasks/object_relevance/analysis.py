"""Object relevance in numbers: per rule, how many objects and images show which outcome."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.stats import wilson
from instar.tasks.object_relevance.relations import OUTCOMES

RELATION = "presence"
"""The relation whose verdicts are about objects."""


def presence_rules(run: Run) -> list[str]:
    """The rules of a run about the presence of objects, in their order. Raises ValueError where there are none."""
    rules = run.rules().filter(relation=RELATION)["rule"].to_list()
    if not rules:
        raise ValueError(
            f"{run.folder} has no rules about the presence of objects; `instar run DETECTOR object-relevance DATASET` "
            "makes such a run"
        )
    return rules


def object_table(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """Tables 6 to 10: one row per rule of the relation `presence`, in the order of the rules.

    Rules about one object each, which differ by its number alone, share a row.

    `objects` and `images` count what was judged; `missing`, `incorrect` and `persists` the objects with that outcome in
    at least `threshold` of their follow-ups, `images_…` the images with such an object: an image counts once in each
    outcome it shows, and in `images_none` if it shows none. `unreliable` is the share of the objects with any of them,
    with its 95 % interval. `still_found` is the response curve: of the objects found in the source, how often they are
    found in follow-ups, also where nothing is judged.
    """
    limits = run.thresholds(threshold)
    return outcome_table(run.verdicts(judging), {rule: limits[rule] for rule in presence_rules(run)})


def outcome_table(verdicts: pl.DataFrame, limits: Mapping[str, float]) -> pl.DataFrame:
    """The same of some verdicts; `limits` are the rules in their order with their thresholds."""
    for name, dtype in (("found_source", pl.Boolean), ("found", pl.Float64)):
        if name not in verdicts.columns:
            verdicts = verdicts.with_columns(pl.lit(None, dtype).alias(name))
    of_rules = (
        pl.LazyFrame({"rule": list(limits), "limit": list(limits.values())}, {"rule": pl.String, "limit": pl.Float64})
        .join(verdicts.lazy(), on="rule", maintain_order="left")
        .with_columns(pl.col("rule").str.replace(r"only=\d+", "each object"))
    )
    judged = pl.col("severity").is_not_null()
    broken = judged & (pl.col("severity") >= pl.col("limit")) & (pl.col("severity") > 0)
    shows = {name: broken & (pl.col("kind") == name) for name in OUTCOMES}
    images = (
        of_rules.filter(judged)
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
        of_rules.group_by("rule", maintain_order=True)
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
    numbers = ("images", *(f"images_{name}" for name in OUTCOMES), "images_none", "tried", "still_found")
    return table.with_columns(
        unreliable=share.then(pl.col("broken") / pl.col("objects")),
        low=share.then(pl.Series([low for low, _ in ends], dtype=pl.Float64)),
        high=share.then(pl.Series([high for _, high in ends], dtype=pl.Float64)),
    ).select("rule", "objects", *OUTCOMES, "unreliable", "low", "high", *numbers)
