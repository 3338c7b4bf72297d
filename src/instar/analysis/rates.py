"""Violation rates with their intervals, and why pairs were not judged. Thresholds are chosen here, afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.severities import (
    ABSENT,
    FAILED,
    NOT_APPLICABLE,
    NOTHING_FOUND,
    OK,
    Bools,
    Severities,
    Verdicts,
    has_nothing,
    severities,
    shown_status,
)
from instar.engine.progress import FAILURES, alike_reasons
from instar.stats import clustered_interval, moments, wilson

NOISE_SHARE = 0.95
"""The noise floor: this share of the cases stay at or below it when nothing was changed."""

KIND = pl.Struct({"kind": pl.String, "count": pl.Int64})


class AnyRule(TypedDict):
    """How many cases violate at least one rule, and their share with its interval; None where none was judged.

    `nothing_found` counts the cases that were not judged because nothing was found in either input.
    """

    judged: int
    violated: int
    rate: float | None
    low: float
    high: float
    nothing_found: int


class Judged(TypedDict):
    """What became of the pairs of some rules, and of the cases they are about.

    `empty` counts the cases in which the system found nothing: nothing of theirs was judged, and under at least one
    rule nothing was found in either input.
    """

    pairs: int
    judged: int
    nothing_found: int
    not_applicable: int
    failed: int
    cases: int
    empty: int


def by_case(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One row per case and rule: the maximum over its targets, with the target it comes from.

    A pair counts as not applicable or failed only where none of its targets has a severity, and as nothing found only
    where nothing was found of any of them.
    """
    order = [pl.col("severity"), ~has_nothing()]
    ranked = verdicts.sort(order, descending=True, nulls_last=True, maintain_order=True)
    return ranked.unique(["case", "rule"], keep="first", maintain_order=True)


def rates(
    verdicts: Verdicts,
    thresholds: Mapping[str, float],
    *,
    by: Literal["case", "target"] = "case",
    alphas: Mapping[str, float] | None = None,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Per rule: how many pairs were judged and violated, the rate with its interval (Wilson's, or
    one that holds at every look), and what was not judged. By target, those of a case count as a cluster
    (`clustered_interval`).

    `thresholds` gives each rule's threshold; a rule in `alphas` is violated where its test's p is at most that.
    Rates are over what was judged. Pairs in which nothing was found in either input, pairs that are not applicable and
    pairs that failed are counted for themselves. `kinds` lists how many of the violations are of each kind, most
    frequent first; `worst_without_kind` is the highest severity of the violations that are of none. `by` says what of a
    frame counts as one; a matrix is counted by its columns.
    """
    matrix = severities(verdicts, by=by).only(list(thresholds))
    hit = matrix.violated(thresholds, alphas)
    judged = ~np.isnan(matrix.severity)
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
            "kinds": pl.Series(
                [_counted(row, matrix.kinds) for row in np.where(hit, matrix.kind, 0)], dtype=pl.List(KIND)
            ),
            "worst_without_kind": np.where(hit & (matrix.kind == 0), matrix.severity, -1.0).max(1, initial=-1.0),
            "nothing_found": (matrix.status == NOTHING_FOUND).sum(1),
            "not_applicable": (matrix.status == NOT_APPLICABLE).sum(1),
            "failed": (matrix.status == FAILED).sum(1),
        }
    )
    first = ("rule", "threshold", "judged", "violated", "rate", "low", "high")
    worst = pl.col("worst", "worst_without_kind")
    rated = _with_rate(table, matrix, confidence).with_columns(pl.when(worst >= 0).then(worst))
    if (owners := matrix.of_case) is not None and not matrix.looked:
        ends = [_clustered(row, there, owners, confidence) for row, there in zip(hit, judged, strict=True)]
        rated = rated.with_columns(
            pl.Series("low", [low for low, _ in ends], pl.Float64),
            pl.Series("high", [high for _, high in ends], pl.Float64),
        )
    return rated.select(*first, pl.exclude(first))


def _clustered(hit: Bools, judged: Bools, owners: npt.NDArray[np.int64], confidence: float) -> tuple[float, float]:
    """The interval of a share of the targets: those of a case are no independent trials."""
    hits, trials = (np.bincount(owners, which, owners.max(initial=0) + 1) for which in (hit, judged))
    low, high = clustered_interval(moments(hits[:, None], trials[:, None]), confidence)
    return float(low[0]), float(high[0])


def _counted(kind: npt.NDArray[np.uint8], names: Sequence[str]) -> list[dict[str, object]]:
    """How often each kind occurs, most frequent first; 0 is no kind."""
    counts = np.bincount(kind, minlength=len(names))
    counts[0] = 0
    order = np.argsort(-counts, kind="stable")
    return [{"kind": names[i], "count": int(counts[i])} for i in order if counts[i]]


def kind_counts(rates: pl.DataFrame) -> dict[str, int]:
    """How many violations of all rules of a table are of each kind, most frequent first."""
    every = rates.select(pl.col("kinds").explode().struct.unnest()).drop_nulls()
    table = every.group_by("kind").agg(pl.col("count").sum()).sort("count", "kind", descending=[True, False])
    return dict(table.iter_rows())


def judged_pairs(verdicts: Verdicts, rules: Sequence[str]) -> Judged:
    """What became of the pairs of these rules: judged, nothing found in either input, not applicable, failed."""
    matrix = severities(verdicts).only(rules)
    status = matrix.status[:, matrix.cases.is_not_null().to_numpy()]
    judged, nothing = status == OK, status == NOTHING_FOUND
    return {
        "pairs": int((status != ABSENT).sum()),
        "judged": int(judged.sum()),
        "nothing_found": int(nothing.sum()),
        "not_applicable": int((status == NOT_APPLICABLE).sum()),
        "failed": int((status == FAILED).sum()),
        "cases": int((status != ABSENT).any(0).sum()),
        "empty": int((nothing.any(0) & ~judged.any(0)).sum()),
    }


def _with_rate(table: pl.DataFrame, of: Severities, confidence: float = 0.95) -> pl.DataFrame:
    """Rates with their intervals from the columns `violated` and `judged`."""
    ends = [of.bounds(hits, tries, confidence) for hits, tries in table.select("violated", "judged").iter_rows()]
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
    chosen = severities(verdicts).only(list(thresholds))
    matrix = chosen.per_case()
    empty = judged_pairs(chosen, chosen.rules)["empty"]
    hits, count = int(matrix.violated(thresholds, alphas).any(0).sum()), len(matrix.cases)
    low, high = matrix.bounds(hits, count, confidence)
    return {**rated(hits, count, confidence, empty), "low": low, "high": high}


def rated(hits: int, count: int, confidence: float = 0.95, empty: int = 0) -> AnyRule:
    """A share of the judged cases with its interval, and how many cases were not judged for want of any answer."""
    low, high = wilson(hits, count, confidence)
    rate = hits / count if count else None
    return {"judged": count, "violated": hits, "rate": rate, "low": low, "high": high, "nothing_found": empty}


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
    return pl.DataFrame(rows, schema={"group": pl.String, **counts, **shares, "nothing_found": pl.Int64})


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
    return _with_rate(table, matrix)


_ORDER = {"nothing found": NOTHING_FOUND, "not applicable": NOT_APPLICABLE}
"""Which status a pair has whose targets have several: the highest, and a failure before all."""
UNJUDGED = ("case", "rule", "severity", "status", "reason")
"""What is read of verdicts to say why pairs have no severity."""


def unjudged_pairs(verdicts: Iterable[pl.DataFrame], rules: Sequence[str]) -> pl.DataFrame:
    """Why pairs of these rules have no severity, most frequent first: status, reason, how many pairs and rules, an
    example. Reasons that differ in numbers alone are one: why rules do not apply with the least and greatest of them,
    why predictions failed with the commonest message, since numbers in it may be codes.

    A pair counts once, as in every rate: where its targets have several reasons, under that which most pairs have.
    """
    bare = [
        part.filter(pl.col("severity").is_null() & pl.col("case").is_not_null() & pl.col("rule").is_in(rules))
        .join(part.filter(pl.col("severity").is_not_null()), on=["case", "rule"], how="anti", maintain_order="left")
        .with_columns(shown_status())
        .unique(["case", "rule", "status", "reason"], maintain_order=True)
        for part in verdicts
    ]
    pairs = pl.concat(bare or [pl.DataFrame(schema=dict.fromkeys(UNJUDGED, pl.String))])
    inapplicable = pl.col("status") == "not applicable"
    ranges = _with_ranges(pairs.filter(inapplicable)["reason"].drop_nulls().unique().sort())
    failed = pairs.filter(pl.col("status").is_in(FAILURES))["reason"].drop_nulls()
    words = alike_reasons(dict(failed.value_counts(sort=True).sort("reason", maintain_order=True).iter_rows()))
    alike = pl.when(pl.col("status").is_in(FAILURES)).then(pl.col("reason").replace(words)).otherwise("reason")
    return (
        pairs.with_columns(reason=pl.when(inapplicable).then(pl.col("reason").replace(ranges)).otherwise(alike))
        .unique(["case", "rule", "status", "reason"], maintain_order=True)
        .with_columns(
            order=pl.col("status").replace_strict(_ORDER, default=FAILED, return_dtype=pl.UInt8),
            alike=pl.len().over("status", "reason"),
        )
        .sort("order", "alike", descending=True, maintain_order=True)
        .unique(["case", "rule"], keep="first", maintain_order=True)
        .group_by("status", "reason")
        .agg(pairs=pl.len(), rules=pl.col("rule").n_unique(), case=pl.col("case").first(), rule=pl.col("rule").first())
        .sort("pairs", "status", "reason", descending=[True, False, False], nulls_last=True)
    )


_NUMBER = re.compile(r"(?<![\w.,/])\d+(?:\.\d+)?(?=[\s%;:]|,? |$)", re.ASCII)
"""A number in a sentence; not one in a name, as of a file."""


def _with_ranges(reasons: Iterable[str]) -> dict[str, str]:
    """Each reason as it reads together with those that differ from it in numbers alone.

    >>> _with_ranges(["it covers 8 % of 3", "it covers 24 % of 3", "there is no 3rd object"])["it covers 8 % of 3"]
    'it covers 8 to 24 % of 3'
    """
    alike: dict[str, list[str]] = {}
    for reason in reasons:
        alike.setdefault(_NUMBER.sub("0", reason), []).append(reason)
    words: dict[str, str] = {}
    for group in alike.values():
        columns = zip(*(_NUMBER.findall(reason) for reason in group), strict=True)
        ends = [(min(column, key=float), max(column, key=float)) for column in columns]
        between = _NUMBER.split(group[0])
        numbers = [low if low == high else f"{low} to {high}" for low, high in ends]
        words |= dict.fromkeys(group, "".join(map("".join, zip(between, [*numbers, ""], strict=True))))
    return words


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
