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


_BY_P = pl.when(pl.col("alpha").is_not_null() & pl.col("p").is_not_null()).then(
    pl.col("p") <= pl.col("alpha")).otherwise(violated(pl.col("threshold")))
"""Where a rule has a level of significance, its test decides."""


def _limits(thresholds: Mapping[str, float], alphas: Mapping[str, float]) -> pl.DataFrame:
    return pl.DataFrame({"rule": list(thresholds), "threshold": [float(t) for t in thresholds.values()],
                         "alpha": [alphas.get(rule) for rule in thresholds]},
                        schema={"rule": pl.String, "threshold": pl.Float64, "alpha": pl.Float64})


def _with_p(verdicts: pl.DataFrame) -> pl.DataFrame:
    return verdicts if "p" in verdicts.columns else verdicts.with_columns(p=pl.lit(None, pl.Float64))


def by_case(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One row per case and rule: the maximum over its targets, with the target it comes from.

    A pair counts as not applicable or failed only where none of its targets has a severity.
    """
    ranked = verdicts.sort("severity", descending=True, nulls_last=True, maintain_order=True)
    return ranked.unique(["case", "rule"], keep="first", maintain_order=True)


def rates(verdicts: pl.DataFrame, thresholds: Mapping[str, float], *, by: Literal["case", "target"] = "case",
          alphas: Mapping[str, float] | None = None, confidence: float = 0.95) -> pl.DataFrame:
    """Per rule: how many pairs were judged and violated, the rate with its Wilson interval, and what was not judged.

    `thresholds` gives each rule's threshold; a rule in `alphas` is violated where its test's p is at most that.
    Not applicable and failed pairs count in no rate.
    """
    pairs = _with_p(by_case(verdicts) if by == "case" else verdicts)
    limits = _limits(thresholds, alphas or {})
    failed = ~pl.col("status").is_in(["ok", "not applicable"])
    table = limits.join(pairs, on="rule", maintain_order="left").group_by("rule", maintain_order=True).agg(
        pl.col("threshold").first(),
        judged=pl.col("severity").is_not_null().sum(),
        violated=_BY_P.sum(),
        lost=(_BY_P & (pl.col("kind") == "lost")).sum(),
        invented=(_BY_P & (pl.col("kind") == "invented")).sum(),
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


def any_rule(verdicts: pl.DataFrame, thresholds: Mapping[str, float], confidence: float = 0.95, *,
             alphas: Mapping[str, float] | None = None) -> dict[str, Any]:
    """The share of cases that violate at least one rule."""
    limits = _limits(thresholds, alphas or {})
    known = pl.col("severity").is_not_null() & pl.col("case").is_not_null()
    judged = _with_p(verdicts).filter(known).join(limits, on="rule")
    cases = judged.group_by("case").agg(_BY_P.any().alias("hit"))
    hits = int(cases["hit"].sum())
    low, high = wilson(hits, cases.height, confidence)
    return {"judged": cases.height, "violated": hits, "rate": hits / cases.height if cases.height else None,
            "low": low, "high": high}


def curve(verdicts: pl.DataFrame, grid: tuple[float, ...]) -> pl.DataFrame:
    """The share of cases that violate at least one rule, for each threshold of a grid."""
    rules = verdicts["rule"].unique().to_list()
    return pl.DataFrame([{"threshold": t, **any_rule(verdicts, dict.fromkeys(rules, t))} for t in grid])


def worst(verdicts: pl.DataFrame, count: int = 10, *, thresholds: Mapping[str, float] | None = None) -> pl.DataFrame:
    """The pairs with the highest severities; among equals, one case does not crowd out the others.

    With `thresholds` severities count in units of their rule's threshold, so that different relations compare.
    """
    pairs = by_case(verdicts).filter((pl.col("severity") > 0) & pl.col("case").is_not_null())
    limits = pl.DataFrame({"rule": list(thresholds or {}), "limit": list((thresholds or {}).values())},
                          schema={"rule": pl.String, "limit": pl.Float64})
    unit = pl.when(pl.col("limit") > 0).then("limit").otherwise(1.0)
    ranked = pairs.join(limits, on="rule", how="left", maintain_order="left").with_columns(
        rank=pl.col("severity") / unit)
    turn = pl.int_range(pl.len()).over("case", "rank")
    return ranked.with_columns(turn=turn).sort(["rank", "turn"], descending=[True, False], maintain_order=True
                                               ).drop("limit", "rank", "turn").head(count)
