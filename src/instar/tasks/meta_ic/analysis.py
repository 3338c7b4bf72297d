"""Captions in numbers: per change, how many pairs break which relation, and how."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.relations import rule
from instar.stats import wilson

__all__ = ["CAPTION_KINDS", "caption_table"]

CAPTION_KINDS = ("misclassification", "omission", "number")
_RELATIONS = ("objects", "numbers", "verbatim")


def caption_table(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """The tables of MetaIC: per change how many pairs break which relation of captions, and how."""
    rules = run.rules().filter(pl.col("relation").is_in(list(_RELATIONS)))["rule"].to_list()
    if not rules:
        raise ValueError(
            f"{run.folder} has no rules about captions; `instar run CAPTIONER meta-ic DATASET --pool FOLDER` makes "
            "such a run"
        )
    return _caption_table(run.verdicts(judging), rules, threshold=run.thresholds(threshold)[rules[0]])


def _caption_table(verdicts: pl.DataFrame, rules: Sequence[str], *, threshold: float) -> pl.DataFrame:
    """Tables 1 and 2 of MetaIC without a human's word: one row per change, and `all` of them together.

    `pairs` are those that the first relation judges; `objects` violate it, `numbers` the second one, `either` one of
    both, with the 95 % interval of its share. `verbatim` counts captions that changed at all, where that was asked. A
    pair counts once in each of the kinds that it shows.
    """
    named = {}
    for text in rules:
        one = rule(text)
        if one.relation is not None and one.relation.relation.name in _RELATIONS:
            named[text] = (one.left, one.relation.relation.name)
    names = pl.DataFrame(
        [(text, *what) for text, what in named.items()],
        orient="row",
        schema={"rule": pl.String, "change": pl.String, "relation": pl.String},
    )
    mine = names.join(verdicts.select("rule", "case", "target", "severity", "kind"), on="rule", maintain_order="left")
    broken = (pl.col("severity") >= threshold) & (pl.col("severity") > 0)
    of = {name: pl.col("relation") == name for name in _RELATIONS}
    pairs = mine.group_by("change", "case", "target", maintain_order=True).agg(
        judged=(of["objects"] & pl.col("severity").is_not_null()).any(),
        **{name: (of[name] & broken).any() for name in _RELATIONS},
        exact=(of["verbatim"] & pl.col("severity").is_not_null()).any(),
        **{kind: (broken & (pl.col("kind") == kind)).any() for kind in CAPTION_KINDS},
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
