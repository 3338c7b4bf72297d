"""Classes that stray more often than others: a detector that fails on bicycles alone, a caption that never says dog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from instar.analysis.parts import LEAST_EXCESS, SURE
from instar.outputs import Schema
from instar.relations import Relation
from instar.stats import fisher_excess, holm, wilson

if TYPE_CHECKING:
    from instar.analysis.run import Run

FEWEST = 5
"""Cases that show a class, below which nothing is asked about it."""

# fmt: off
SCHEMA: Schema = {
    "rule": pl.String, "class": pl.String, "judged": pl.Int64, "strayed": pl.Int64, "rate": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "others": pl.Float64, "kind": pl.String, "p": pl.Float64,
    "p_corrected": pl.Float64,
}
# fmt: on
FRAME: Schema = {"rule": pl.String, "case": pl.String, "class": pl.String, "severity": pl.Float64, "kind": pl.String}


def class_severities(run: Run, relation: Relation, judging: str) -> pl.DataFrame:
    """How far each class strays in each case, under each rule that changes something: the median over its targets."""
    if not relation.classes:
        return pl.DataFrame(schema=FRAME)
    rules = run.changing_rules(relation.name)
    columns = ["case", "rule", "severity", "kind", relation.classes, *filter(None, [relation.by_class])]
    frames = [
        _named(part.filter(pl.col("rule").is_in(rules) & pl.col("severity").is_not_null()), relation)
        for part in run.store.verdict_parts(judging, columns)
        if relation.classes in part.columns
    ]
    every = pl.concat([pl.DataFrame(schema=FRAME), *frames])
    kinds = pl.col("kind").sort_by("severity", descending=True).drop_nulls().first()
    return every.group_by("rule", "case", "class", maintain_order=True).agg(pl.col("severity").median(), kinds)


def _named(verdicts: pl.DataFrame, relation: Relation) -> pl.DataFrame:
    """One row for each verdict and class that it is about."""
    named = verdicts.with_columns(pl.col(relation.classes).alias("class")).drop_nulls("class")
    if relation.by_class:
        lists = pl.col("class").str.split(", "), pl.col(relation.by_class).str.split(", ").alias("severity")
        named = named.with_columns(lists).explode("class", "severity").with_columns(pl.col("severity").cast(pl.Float64))
    return named.select(FRAME.keys())


def straying_classes(frame: pl.DataFrame, thresholds: Mapping[str, float]) -> pl.DataFrame:
    """The classes that stray beyond the threshold surely more often than the others, most first.

    A class strays in a case under a rule where its median severity over the case's targets is at least the rule's
    threshold and above 0. `others` is the same share of all other classes in all cases. p is Fisher's (exact,
    one-sided); `p_corrected` is p after Holm over all classes, each under every rule and under any (`rule` is null). A
    class is listed where that is at most 0.05 and it strays in at least 5 % more of its cases than the others together
    and than the class in their middle: where most classes stray, none of them is the odd one.
    """
    limits = pl.DataFrame(list(thresholds.items()), {"rule": pl.String, "limit": pl.Float64}, orient="row")
    seen = frame.join(limits, on="rule").with_columns(
        hit=(pl.col("severity") >= pl.col("limit")) & (pl.col("severity") > 0)
    )
    seen = seen.with_columns(kind=pl.when("hit").then("kind"))
    kind = pl.col("kind").drop_nulls().mode().sort().first()
    any_rule = seen.group_by("case", "class", maintain_order=True).agg(pl.col("hit").any(), kind)
    scopes = pl.concat([seen.select("rule", "case", "class", "hit", "kind"), any_rule.select(_ANY, pl.all())])
    counts = scopes.group_by("rule", "class", maintain_order=True).agg(
        judged=pl.len(), strayed=pl.col("hit").sum(), kind=kind
    )
    every, hits = (pl.col(name).sum().over("rule") for name in ("judged", "strayed"))
    usual = (pl.col("strayed") / pl.col("judged")).median().over("rule")
    table = counts.with_columns(every=every, hits=hits, usual=usual).filter(
        (pl.col("judged") >= FEWEST) & (pl.col("every") - pl.col("judged") >= FEWEST) & (pl.col("strayed") > 0)
    )
    return _sure(table)


_ANY = pl.lit(None, pl.String).alias("rule")


def _sure(table: pl.DataFrame) -> pl.DataFrame:
    """The rows whose class strays surely more often, with shares, intervals and p."""
    if table.is_empty():  # most runs have no classes: they need not load the tests of chance
        return pl.DataFrame(schema=SCHEMA)
    hits, count = (table[name].cast(pl.Int64).to_numpy() for name in ("strayed", "judged"))
    other_hits, other_count = table["hits"].to_numpy() - hits, table["every"].to_numpy() - count
    p: Sequence[float] = fisher_excess(hits, count, other_hits, other_count).tolist()
    ends = [wilson(int(some), int(every)) for some, every in zip(hits, count, strict=True)]
    rated = table.with_columns(
        rate=pl.Series(hits / count, dtype=pl.Float64),
        others=pl.Series(other_hits / other_count, dtype=pl.Float64),
        low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
        high=pl.Series([high for _, high in ends], dtype=pl.Float64),
        p=pl.Series(p, dtype=pl.Float64),
        p_corrected=pl.Series(holm(p), dtype=pl.Float64),
    )
    more = pl.col("rate") >= pl.max_horizontal("others", "usual") + LEAST_EXCESS
    sure = rated.filter((pl.col("p_corrected") <= SURE) & more)
    ranked = sure.sort(pl.col("rate") - pl.col("others"), "class", "rule", descending=[True, False, False])
    return ranked.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
