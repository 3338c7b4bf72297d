"""What rules have in common: which covers which, and how many of them one case violates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["coverage", "default_bins", "violated_counts", "violations"]

Floats = npt.NDArray[np.float64]


def coverage(verdicts: pl.DataFrame, thresholds: Mapping[str, float]) -> pl.DataFrame:
    """How far rule `by` covers rule `of`: of the cases that violate `of`, the share that violates `by`.

    One row per ordered pair of rules, in the order of `thresholds`. `violated` counts the cases that violate
    `of`, `both` those that violate `by`, too, among the cases judged under both. A rule that never fires is
    covered by all. `covered` is null where a rule fires but no case was judged under both.

    MET-POSE prints this number as SubRate(of, by), which its text describes the other way round.
    """
    rules, _, severity = _severities(verdicts, list(thresholds))
    limits = np.array([float(thresholds[rule]) for rule in rules]).reshape(-1, 1)
    hit = _violated(severity, limits).astype(np.float64)
    judged = (~np.isnan(severity)).astype(np.float64)
    both, fired, shared = hit @ hit.T, hit @ judged.T, judged @ judged.T
    covered = np.where(fired > 0, both / np.maximum(fired, 1), 1.0)
    covered[(shared == 0) & (hit.sum(1) > 0)[:, None]] = np.nan
    table = pl.DataFrame({
        "of": pl.Series([rule for rule in rules for _ in rules], dtype=pl.String),
        "by": pl.Series(rules * len(rules), dtype=pl.String),
        "covered": covered.ravel(), "both": both.ravel().astype(np.int64),
        "violated": fired.ravel().astype(np.int64)})
    return table.with_columns(pl.col("covered").fill_nan(None))


def default_bins(rules: int) -> tuple[tuple[int, int], ...]:
    """Numbers of violated rules, first and last of each bin: 0 to 4 apart, then by quarters, and all of them.

    >>> default_bins(122)[5:]
    ((5, 30), (31, 61), (62, 91), (92, 121), (122, 122))
    >>> default_bins(3)
    ((0, 0), (1, 1), (2, 2), (3, 3))
    """
    bins = [(number, number) for number in range(min(5, rules))]
    for last in (rules // 4, rules // 2, rules * 3 // 4, rules - 1):
        first = bins[-1][1] + 1 if bins else 1
        if first <= last:
            bins.append((first, last))
    return (*bins, (rules, rules))


def violated_counts(verdicts: pl.DataFrame, grid: Sequence[float],
                    bins: Sequence[tuple[int, int]] | None = None) -> pl.DataFrame:
    """How many cases violate how many rules, for each threshold of a grid.

    One row per threshold and bin; a bin has a first and a last number of violated rules, both in it. The
    default bins do not overlap, so that the cases of a threshold add up to all that have any severity.
    (MET-POSE's Table II has 30, 61 and 91 in two bins each; bins given here may do the same.)
    """
    rules, _, severity = _severities(verdicts, verdicts["rule"].unique(maintain_order=True).to_list())
    chosen = default_bins(len(rules)) if bins is None else tuple(bins)
    rows = []
    for threshold in grid:
        found = np.bincount(_violated(severity, float(threshold)).sum(0), minlength=len(rules) + 1)
        rows += [(float(threshold), str(first) if first == last else f"{first}–{last}", first, last,
                  int(found[max(first, 0):last + 1].sum())) for first, last in chosen]
    whole = dict.fromkeys(("first", "last", "cases"), pl.Int64)
    return pl.DataFrame(rows, orient="row", schema={"threshold": pl.Float64, "violated": pl.String, **whole})


def violations(verdicts: pl.DataFrame, thresholds: Mapping[str, float]
               ) -> tuple[list[str], pl.Series, npt.NDArray[np.bool_]]:
    """The rules that have verdicts, the cases judged under any of them, and which violate which (rule, case)."""
    rules, cases, severity = _severities(verdicts, list(thresholds))
    return rules, cases, _violated(severity, np.array([float(thresholds[rule]) for rule in rules]).reshape(-1, 1))


def _violated(severity: Floats, threshold: float | Floats) -> npt.NDArray[np.bool_]:
    return np.asarray((severity >= threshold) & (severity > 0))  # false where it is NaN


def _severities(verdicts: pl.DataFrame, wanted: Sequence[str]) -> tuple[list[str], pl.Series, Floats]:
    """The wanted rules that have verdicts on cases, the cases, and severities (rule, case): the maximum over targets.

    NaN where a case was not judged; cases that were judged under none of the rules are not there.
    """
    kept = verdicts.select("case", "rule", "severity").filter(pl.col("case").is_not_null())
    known = set(kept["rule"].unique())
    rules = [rule for rule in wanted if rule in known]
    judged = kept.filter(pl.col("severity").is_not_null() & pl.col("rule").is_in(rules))
    rows = judged["rule"].cast(pl.Enum(rules)).to_physical().to_numpy()
    cases = judged["case"].unique()
    columns = judged["case"].cast(pl.Enum(cases)).to_physical().to_numpy()
    matrix = np.full((len(rules), len(cases)), np.nan)
    np.fmax.at(matrix, (rows, columns), judged["severity"].to_numpy())
    return rules, cases, matrix
