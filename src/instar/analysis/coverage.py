"""What rules have in common: which covers which, and how many of them one case violates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.severities import Verdicts, severities


def coverage(verdicts: Verdicts, thresholds: Mapping[str, float]) -> pl.DataFrame:
    """How far rule `by` covers rule `of`: of the cases that violate `of`, the share that violates `by`.

    One row per ordered pair of rules, in the order of `thresholds`. `violated` counts the cases that violate
    `of`, `both` those that violate `by`, too, among the cases judged under both. A rule that never fires is
    covered by all. `covered` is null where a rule fires, but in no case that was judged under both.

    MET-POSE prints this number as SubRate(of, by), which its text describes the other way round.
    """
    matrix = severities(verdicts).only(list(thresholds)).per_case()
    rules = list(matrix.rules)
    hit = matrix.violated(thresholds).astype(np.float32)  # whole numbers below 2²⁴ cases
    judged = (~np.isnan(matrix.severity)).astype(np.float32)
    both, fired = (counts.astype(np.float64) for counts in (hit @ hit.T, hit @ judged.T))
    covered = np.where(fired > 0, both / np.maximum(fired, 1), 1.0)
    covered[(fired == 0) & (hit.sum(1) > 0)[:, None]] = np.nan
    table = pl.DataFrame(
        {
            "of": pl.Series([rule for rule in rules for _ in rules], dtype=pl.String),
            "by": pl.Series(rules * len(rules), dtype=pl.String),
            "covered": covered.ravel(),
            "both": both.ravel().astype(np.int64),
            "violated": fired.ravel().astype(np.int64),
        }
    )
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


def violated_counts(
    verdicts: Verdicts, grid: Sequence[float], bins: Sequence[tuple[int, int]] | None = None, *, strict: bool = False
) -> pl.DataFrame:
    """How many cases violate how many rules, for each threshold of a grid.

    One row per threshold and bin; a bin has a first and a last number of violated rules, both in it. The
    default bins do not overlap, so that the cases of a threshold add up to all that have any severity.
    MET-POSE's Table II has 30, 61 and 91 in two bins each and, unlike all its figures, counts severities above the
    threshold only: bins given here may do the same, and `strict` does.
    """
    matrix = severities(verdicts).per_case()
    rules = matrix.rules
    chosen = default_bins(len(rules)) if bins is None else tuple(bins)
    rows = []
    for threshold in grid:
        least = float(np.nextafter(threshold, np.inf)) if strict and np.isfinite(threshold) else float(threshold)
        number = matrix.violated(dict.fromkeys(rules, least)).sum(0)
        counts = np.bincount(number, minlength=len(rules) + 1)
        rows += [
            (
                float(threshold),
                str(first) if first == last else f"{first}–{last}",
                first,
                last,
                int(counts[max(first, 0) : last + 1].sum()),
            )
            for first, last in chosen
        ]
    whole = dict.fromkeys(("first", "last", "cases"), pl.Int64)
    return pl.DataFrame(rows, orient="row", schema={"threshold": pl.Float64, "violated": pl.String, **whole})


def violations(
    verdicts: Verdicts, thresholds: Mapping[str, float]
) -> tuple[list[str], pl.Series, npt.NDArray[np.bool_]]:
    """The rules that have verdicts, the cases judged under any of them, and which violate which (rule, case)."""
    matrix = severities(verdicts).only(list(thresholds)).per_case()
    return list(matrix.rules), matrix.cases, matrix.violated(thresholds)
