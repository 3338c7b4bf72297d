"""Captions in numbers: per change, how many pairs break which relation, and how."""

from __future__ import annotations

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.relations import rule
from instar.stats import wilson
from instar.tasks.meta_ic.relations import RELATIONS

CAPTION_KINDS = ("misclassification", "omission", "number")


def caption_rules(run: Run) -> pl.DataFrame:
    """The rules of a run that are about captions: `rule`, `change` and `relation`."""
    change = pl.col("rule").map_elements(lambda text: rule(text).left, pl.String).alias("change")
    return run.rules().filter(pl.col("relation").is_in(list(RELATIONS))).select("rule", change, "relation")


def caption_table(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """Tables 1 and 2 of MetaIC without a human's word: one row per change, and `all` of them together.

    `pairs` are those that the first relation judges; `objects` violate it, `numbers` the second one, `either` one of
    both, with the 95 % interval of its share. `verbatim` counts captions that changed at all, where a rule asks for
    that. A pair counts once in each of the kinds that it shows.
    """
    rules = caption_rules(run)
    if rules.is_empty():
        raise ValueError(
            f"{run.folder} has no rules about captions; `instar run CAPTIONER meta-ic DATASET` with a pool of objects "
            "to insert makes such a run"
        )
    limit = run.thresholds(threshold)[rules["rule"][0]]
    verdicts = run.verdicts(judging).select("rule", "case", "target", "severity", "kind")
    violated = (pl.col("severity") >= limit) & (pl.col("severity") > 0)
    of = {name: pl.col("relation") == name for name in RELATIONS}
    pairs = (
        rules.join(verdicts, on="rule", maintain_order="left")
        .group_by("change", "case", "target", maintain_order=True)
        .agg(
            judged=(of["objects"] & pl.col("severity").is_not_null()).any(),
            **{name: (of[name] & violated).any() for name in RELATIONS},
            exact=(of["verbatim"] & pl.col("severity").is_not_null()).any(),
            **{kind: (violated & (pl.col("kind") == kind)).any() for kind in CAPTION_KINDS},
        )
    )
    pairs = pl.concat([pairs, pairs.with_columns(change=pl.lit("all"))]) if pairs["change"].n_unique() > 1 else pairs
    table = pairs.group_by("change", maintain_order=True).agg(
        pairs=pl.col("judged").sum(),
        **{name: pl.col(name).sum() for name in ("objects", "numbers")},
        either=(pl.col("objects") | pl.col("numbers")).sum(),
        **{kind: pl.col(kind).sum() for kind in CAPTION_KINDS},
        exact=pl.col("exact").sum(),
        verbatim=pl.col("verbatim").sum(),
    )
    counts = table.select("either", "pairs").iter_rows()
    ends = [wilson(hits, tries) if tries else (None, None) for hits, tries in counts]
    share = pl.when(pl.col("pairs") > 0).then(pl.col("either") / pl.col("pairs"))
    return table.with_columns(
        share=share,
        low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
        high=pl.Series([high for _, high in ends], dtype=pl.Float64),
        verbatim=pl.when(pl.col("exact") > 0).then(pl.col("verbatim")),
    ).drop("exact")
