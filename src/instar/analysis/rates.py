"""Violation rates with their intervals, and the worst cases. Thresholds are chosen here, afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.severities import FAILED, NOT_APPLICABLE, Verdicts, severities
from instar.stats import wilson

NOISE_SHARE = 0.95
"""The noise floor: this share of the cases stay at or below it when nothing was changed."""


class AnyRule(TypedDict):
    """How many cases violate at least one rule, and their share with its interval; None where none was judged."""

    judged: int
    violated: int
    rate: float | None
    low: float
    high: float


def by_case(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One row per case and rule: the maximum over its targets, with the target it comes from.

    A pair counts as not applicable or failed only where none of its targets has a severity.
    """
    ranked = verdicts.sort("severity", descending=True, nulls_last=True, maintain_order=True)
    return ranked.unique(["case", "rule"], keep="first", maintain_order=True)


def rates(
    verdicts: Verdicts,
    thresholds: Mapping[str, float],
    *,
    by: Literal["case", "target"] = "case",
    alphas: Mapping[str, float] | None = None,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Per rule: how many pairs were judged and violated, the rate with its Wilson interval, and what was not judged.

    `thresholds` gives each rule's threshold; a rule in `alphas` is violated where its test's p is at most that.
    Not applicable and failed pairs count in no rate. `by` says what of a frame counts as one; a matrix is counted
    by its columns.
    """
    matrix = severities(verdicts, by=by).only(list(thresholds))
    hit = matrix.violated(thresholds, alphas)
    judged = ~np.isnan(matrix.severity)
    kinds = {name: number for number, name in enumerate(matrix.kinds)}
    middle = [
        float(np.median(row[there])) if there.any() else None
        for row, there in zip(matrix.severity, judged, strict=True)
    ]
    table = pl.DataFrame(
        {
            "rule": pl.Series(matrix.rules, dtype=pl.String),
            "threshold": pl.Series([float(thresholds[rule]) for rule in matrix.rules], dtype=pl.Float64),
            "judged": judged.sum(1),
            "violated": hit.sum(1),
            "median": pl.Series(middle, dtype=pl.Float64),
            "worst": np.where(judged, matrix.severity, -1.0).max(1, initial=-1.0),
            **{name: (hit & (matrix.kind == kinds.get(name, -1))).sum(1) for name in ("lost", "invented")},
            "not_applicable": (matrix.status == NOT_APPLICABLE).sum(1),
            "failed": (matrix.status == FAILED).sum(1),
        }
    )
    first = ("rule", "threshold", "judged", "violated", "rate", "low", "high")
    rated = _with_rate(table, confidence).with_columns(worst=pl.when(pl.col("judged") > 0).then("worst"))
    return rated.select(*first, pl.exclude(first))


def _with_rate(table: pl.DataFrame, confidence: float = 0.95) -> pl.DataFrame:
    """Rates with their intervals from the columns `violated` and `judged`."""
    ends = [wilson(hits, tries, confidence) for hits, tries in table.select("violated", "judged").iter_rows()]
    rate = pl.when(pl.col("judged") > 0).then(pl.col("violated") / pl.col("judged"))
    return table.with_columns(
        rate=rate,
        low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
        high=pl.Series([high for _, high in ends], dtype=pl.Float64),
    )


def any_rule(
    verdicts: Verdicts,
    thresholds: Mapping[str, float],
    confidence: float = 0.95,
    *,
    alphas: Mapping[str, float] | None = None,
) -> AnyRule:
    """The share of cases that violate at least one rule."""
    matrix = severities(verdicts).only(list(thresholds)).per_case()
    return rated(int(matrix.violated(thresholds, alphas).any(0).sum()), len(matrix.cases), confidence)


def rated(hits: int, count: int, confidence: float = 0.95) -> AnyRule:
    """A share of the judged cases with its interval."""
    low, high = wilson(hits, count, confidence)
    return {"judged": count, "violated": hits, "rate": hits / count if count else None, "low": low, "high": high}


def group_rates(
    verdicts: Verdicts,
    groups: Mapping[str, Sequence[str]],
    thresholds: Mapping[str, float],
    *,
    alphas: Mapping[str, float] | None = None,
) -> pl.DataFrame:
    """For each group of rules (a family, a suite) the share of cases that violate at least one of them."""
    matrix = severities(verdicts)
    rows = [
        {
            "group": name,
            "rules": len(rules),
            **any_rule(matrix, {rule: thresholds[rule] for rule in rules if rule in thresholds}, alphas=alphas),
        }
        for name, rules in groups.items()
    ]
    counts = dict.fromkeys(("rules", "judged", "violated"), pl.Int64)
    shares = dict.fromkeys(("rate", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema={"group": pl.String, **counts, **shares})


def curve(verdicts: Verdicts, grid: Sequence[float]) -> pl.DataFrame:
    """The share of cases that violate at least one rule, for each threshold of a grid."""
    matrix = severities(verdicts).per_case()
    worst_of = np.sort(np.where(np.isnan(matrix.severity), 0.0, matrix.severity).max(0, initial=0.0))
    kept = [int(max(np.searchsorted(worst_of, t), np.searchsorted(worst_of, 0.0, side="right"))) for t in grid]
    table = pl.DataFrame(
        {
            "threshold": [float(t) for t in grid],
            "judged": [len(worst_of)] * len(grid),
            "violated": [len(worst_of) - number for number in kept],
        },
        schema={"threshold": pl.Float64, "judged": pl.Int64, "violated": pl.Int64},
    )
    return _with_rate(table)


def noise(verdicts: Verdicts, identity: Mapping[str, str]) -> pl.DataFrame:
    """The system's own noise: how far answers stray when nothing was changed, per relation.

    `identity` gives the rule `identity` of each relation. `floor` is the severity that 95 % of the cases stay at or
    below; a rate at a threshold that is not above it says little about the rules. `noisy` counts cases with any
    severity above 0: none for a deterministic system.
    """
    matrix = severities(verdicts)
    rows = []
    for relation, rule in identity.items():
        unchanged = matrix.only([rule]).per_case()
        strays = np.sort(unchanged.severity.ravel())
        count = len(strays)
        rows.append(
            {
                "relation": relation,
                "rule": rule,
                "judged": count,
                "noisy": int((strays > 0).sum()),
                "floor": float(strays[max(0, int(np.ceil(NOISE_SHARE * count)) - 1)]) if count else None,
                "worst": float(strays[-1]) if count else None,
            }
        )
    names = {"relation": pl.String, "rule": pl.String}
    return pl.DataFrame(
        rows, schema={**names, "judged": pl.Int64, "noisy": pl.Int64, "floor": pl.Float64, "worst": pl.Float64}
    )


def worst_pairs(verdicts: Verdicts, count: int = 10, *, thresholds: Mapping[str, float] | None = None) -> pl.DataFrame:
    """The cases and rules with the highest severities; among equals, one case does not crowd out the others.

    With `thresholds` severities count in units of their rule's threshold, so that different relations compare.
    """
    matrix = severities(verdicts).per_case()
    unit = np.array([(thresholds or {}).get(rule, 1.0) or 1.0 for rule in matrix.rules]).reshape(-1, 1)
    rank = np.where(np.isnan(matrix.severity), 0.0, matrix.severity) / unit
    row, column = _highest(rank, count)
    names = pl.Series([matrix.rules[i] for i in row], dtype=pl.String)
    return pl.DataFrame({"case": matrix.cases.gather(column), "rule": names, "severity": matrix.severity[row, column]})


def _highest(rank: npt.NDArray[np.float64], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the highest ranks above 0 are; of equal ranks each column's first, then each column's second …"""
    flat = rank.ravel()
    above = int((flat > 0).sum())
    if not above or not count:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    least = np.partition(flat, -min(count, above))[-min(count, above)]
    row, column = np.nonzero(rank >= least)
    values = rank[row, column]
    order = np.lexsort((row, column, values))
    ranked, owner = values[order], column[order]
    same = np.concatenate([[False], (ranked[1:] == ranked[:-1]) & (owner[1:] == owner[:-1])])
    starts = np.flatnonzero(~same)
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - starts[np.cumsum(~same) - 1]
    best = np.lexsort((row, column, turn, -values))[:count]
    return row[best], column[best]
