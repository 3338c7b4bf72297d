"""Violation rates with their intervals, and the worst cases. Thresholds are chosen here, afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import polars as pl

from instar.stats import wilson

__all__ = ["any_rule", "by_case", "curve", "rates", "violated", "worst"]


def violated(threshold: float | pl.Expr) -> pl.Expr:
    """Violated is severity ≥ threshold and > 0. A null severity is neither violated nor kept."""
    return (pl.col("severity") >= threshold) & (pl.col("severity") > 0)


def by_case(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One row per case and rule: the maximum over its targets, with the target it comes from.

    A pair counts as not applicable or failed only where none of its targets has a severity.
    """
    ranked = verdicts.sort("severity", descending=True, nulls_last=True, maintain_order=True)
    return ranked.unique(["case", "rule"], keep="first", maintain_order=True)


def rates(verdicts: pl.DataFrame, thresholds: Mapping[str, float], *, by: Literal["case", "target"] = "case",
          confidence: float = 0.95) -> pl.DataFrame:
    """Per rule: how many pairs were judged and violated, the rate with its Wilson interval, and what was not judged.

    `thresholds` gives each rule's threshold. Not applicable and failed pairs count in no rate.
    """
    pairs = by_case(verdicts) if by == "case" else verdicts
    limits = pl.DataFrame({"rule": list(thresholds), "threshold": [float(t) for t in thresholds.values()]},
                          schema={"rule": pl.String, "threshold": pl.Float64})
    failed = ~pl.col("status").is_in(["ok", "not applicable"])
    table = limits.join(pairs, on="rule", maintain_order="left").group_by("rule", maintain_order=True).agg(
        pl.col("threshold").first(),
        judged=pl.col("severity").is_not_null().sum(),
        violated=violated(pl.col("threshold")).sum(),
        lost=(violated(pl.col("threshold")) & (pl.col("kind") == "lost")).sum(),
        invented=(violated(pl.col("threshold")) & (pl.col("kind") == "invented")).sum(),
        median=pl.col("severity").median(),
        worst=pl.col("severity").max(),
        not_applicable=(pl.col("status") == "not applicable").sum(),
        failed=failed.sum(),
    )
    ends = [wilson(hits, tries, confidence) for hits, tries in table.select("violated", "judged").iter_rows()]
    rate = pl.when(pl.col("judged") > 0).then(pl.col("violated") / pl.col("judged"))
    return table.with_columns(rate=rate, low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
                              high=pl.Series([high for _, high in ends], dtype=pl.Float64)).select(
        "rule", "threshold", "judged", "violated", "rate", "low", "high", "median", "worst", "lost", "invented",
        "not_applicable", "failed")


def any_rule(verdicts: pl.DataFrame, thresholds: Mapping[str, float], confidence: float = 0.95) -> dict[str, Any]:
    """The share of cases that violate at least one rule."""
    limits = pl.DataFrame({"rule": list(thresholds), "threshold": [float(t) for t in thresholds.values()]},
                          schema={"rule": pl.String, "threshold": pl.Float64})
    judged = verdicts.filter(pl.col("severity").is_not_null() & pl.col("case").is_not_null()).join(limits, on="rule")
    cases = judged.group_by("case").agg(violated(pl.col("threshold")).any().alias("hit"))
    hits = int(cases["hit"].sum())
    low, high = wilson(hits, cases.height, confidence)
    return {"judged": cases.height, "violated": hits, "rate": hits / cases.height if cases.height else None,
            "low": low, "high": high}


def curve(verdicts: pl.DataFrame, grid: tuple[float, ...]) -> pl.DataFrame:
    """The share of cases that violate at least one rule, for each threshold of a grid."""
    rules = verdicts["rule"].unique().to_list()
    return pl.DataFrame([{"threshold": t, **any_rule(verdicts, dict.fromkeys(rules, t))} for t in grid])


def worst(verdicts: pl.DataFrame, count: int = 10) -> pl.DataFrame:
    """The pairs with the highest severities; among equals, one case does not crowd out the others."""
    pairs = by_case(verdicts).filter((pl.col("severity") > 0) & pl.col("case").is_not_null())
    turn = pl.int_range(pl.len()).over("case", "severity")
    return pairs.with_columns(turn=turn).sort(["severity", "turn"], descending=[True, False], maintain_order=True
                                              ).drop("turn").head(count)
