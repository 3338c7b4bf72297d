"""Numbers measured on cases: ranks, intervals over resampled cases, paired differences and tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from instar.stats.shares import z_test

Floats = npt.NDArray[np.float64]
LEAST_FOR_MEDIAN = 6
"""Of fewer values no interval of their median has 95 %: all n lie on one side of it with a probability of 2 · 0.5^n."""


def pearson(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Pearson's correlation; 0 where one side does not vary."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise ValueError(f"correlation needs two equal lists of at least two numbers, got {a.shape} and {b.shape}")
    a, b = a - a.mean(), b - b.mean()
    norm = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / norm if norm > 0 else 0.0


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Spearman's rank correlation, ties at their mean rank."""
    return pearson(_ranks(x), _ranks(y))


def _ranks(x: npt.ArrayLike) -> Floats:
    values = np.asarray(x, np.float64)
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place], np.float64)


def bootstrap(
    samples: Sequence[npt.ArrayLike] | npt.NDArray[np.float64],
    statistic: Callable[[Floats], float],
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval of a statistic over resampled rows (one row per case)."""
    rows = np.asarray(samples, np.float64)
    if len(rows) == 0:
        raise ValueError("nothing to resample")
    rng = np.random.default_rng(seed)
    drawn = [statistic(rows[rng.integers(len(rows), size=len(rows))]) for _ in range(resamples)]
    low, high = np.quantile(drawn, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return float(low), float(high)


def median_interval(values: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a median by order statistics, whatever the distribution: it covers at least as often.

    Of fewer than `LEAST_FOR_MEDIAN` values none is sure enough, and nothing is excluded.

    >>> median_interval([1.0, 2.0, 2.0, 2.0, 2.0, 3.0]), median_interval([1.0, 2.0])
    ((1.0, 3.0), (-inf, inf))
    """
    from scipy.stats import binom

    ordered = np.sort(np.asarray(values, np.float64))
    outside = int(binom.ppf(0.5 - confidence / 2, len(ordered), 0.5))  # so many values on either side
    return (float(ordered[outside - 1]), float(ordered[-outside])) if outside else (-math.inf, math.inf)


def resamples(count: int, *, times: int = 1000, seed: int = 0) -> Iterator[Floats]:
    """How often each of so many rows is in each resample (50, count), 50 resamples at a time.

    A product with these sums over resampled rows: for what is made of sums it is far faster than `bootstrap`, which
    draws the same resamples from the same seed.
    """
    rng = np.random.default_rng(seed)
    for at in range(0, times, 50):
        drawn = [np.bincount(rng.integers(count, size=count), minlength=count) for _ in range(min(50, times - at))]
        yield np.array(drawn, np.float64)


def ends(drawn: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Percentile intervals of statistics (resamples, …); resamples that have none (NaN) are left out.

    >>> [round(float(end), 3) for end in ends(np.linspace(0.0, 1.0, 1001))]
    [0.025, 0.975]
    """
    at = [0.5 - confidence / 2, 0.5 + confidence / 2]
    if np.isnan(drawn).any():
        low, high = np.nanquantile(np.where(np.isnan(drawn).all(0), 0.0, drawn), at, axis=0)
    else:
        low, high = np.quantile(drawn, at, axis=0)
    return low, high


def greatest_interval(drawn: Floats, cases: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of the greatest of several numbers that were measured on the same cases.

    The lower end is the greatest of lower bounds that hold together: each is the same percentile of its own number,
    so low that the resampled numbers all stay within theirs often enough (Beran 1988, "Balanced simultaneous confidence
    sets"). The upper end is the greatest of the upper bounds, each of which holds alone. Of a single number it is the
    percentile interval (see `expanded_tail`).

    Args:
        drawn: the numbers (resamples, numbers) on resampled cases; a thousand resamples for each number.
        cases: how many cases were resampled.
        confidence: that of the interval; each end is wrong half as often as it is.

    >>> [round(end, 3) for end in greatest_interval(np.linspace(0.0, 1.0, 1001)[:, None], 1000)]
    [0.025, 0.975]
    """
    tail = 0.5 - confidence / 2
    ordered = np.sort(drawn, axis=0)
    below = [np.searchsorted(column, values) for column, values in zip(ordered.T, drawn.T, strict=True)]
    together = min(tail, float(1 - np.quantile(np.max(below, axis=0), 1 - tail) / len(drawn)))
    at = [expanded_tail(cases, together), 1 - expanded_tail(cases, tail)]
    low, high = np.quantile(ordered, at, axis=0).max(1)
    return float(low), float(high)


def wilcoxon(before: npt.ArrayLike, after: npt.ArrayLike) -> float:
    """One-sided p of Wilcoxon's signed-rank test that `after` lies above `before`, by the normal approximation.

    Pairs without a difference are left out; 1 where there are no others.
    """
    gap = np.asarray(after, np.float64) - np.asarray(before, np.float64)
    gap = gap[gap != 0]
    if not len(gap):
        return 1.0
    ranks = _ranks(np.abs(gap))
    count = len(gap)
    _, ties = np.unique(ranks, return_counts=True)
    variance = count * (count + 1) * (2 * count + 1) / 24 - float((ties**3 - ties).sum()) / 48
    z = (float(ranks[gap > 0].sum()) - count * (count + 1) / 4) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2)) / 2


def quantile_bounds(values: npt.ArrayLike, quantile: float, confidence: float = 0.95) -> tuple[float, float]:
    """Exact bounds of a quantile, values that were measured or ∞: each alone is right with this confidence, whatever
    the distribution.

    >>> quantile_bounds(range(100), 0.5)
    (41.0, 58.0)
    """
    from scipy.stats import binom

    ordered = np.sort(np.asarray(values, np.float64))
    count = len(ordered)
    below = int(binom.ppf(1 - confidence, count, quantile))  # as many values lie below it, or more
    above = int(binom.ppf(confidence, count, quantile))
    low = float(ordered[below - 1]) if below > 0 else 0.0
    return low, float(ordered[above]) if above < count else math.inf


def median_shift(first: npt.ArrayLike, second: npt.ArrayLike, *, seed: int = 0) -> tuple[float, float, float]:
    """The second median less the first, of the same cases, and its 95 % interval over resampled cases.

    The percentiles are those of few cases (`expanded_tail`); of fewer than `LEAST_FOR_MEDIAN` nothing is excluded.
    Infinite values have a place in the order and no size: a median that is infinite on both sides has not moved.

    >>> median_shift([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    (1.0, 1.0, 1.0)
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    count = len(a)
    times = int(np.clip(20_000_000 // max(1, count), 200, 1000))
    rng = np.random.default_rng(seed)

    def shift(drawn: npt.NDArray[np.int64]) -> Floats:
        before, after = np.median(a[drawn], axis=-1), np.median(b[drawn], axis=-1)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(before == after, 0.0, after - before), np.float64)

    middle = float(shift(np.arange(count)))
    if count < LEAST_FOR_MEDIAN:
        return middle, -math.inf, math.inf
    block = max(1, 200_000 // max(1, count))
    drawn = np.concatenate(
        [shift(rng.integers(count, size=(min(block, times - at), count))) for at in range(0, times, block)]
    )
    # order statistics, not a mean of two: between finite and infinite there is none
    tail = expanded_tail(count)
    low, high = np.quantile(drawn, [tail, 1 - tail], method="nearest")
    return middle, float(low), float(high)


def expanded_tail(cases: int, tail: float = 0.025) -> float:
    """Return the percentile at which an interval over so many resampled cases ends, to be wrong as often as `tail`.

    It is expanded as Student's interval is: percentiles of few cases are too close together (Hesterberg 2015, "What
    teachers should know about the bootstrap").

    >>> round(expanded_tail(10), 4), round(expanded_tail(1000), 4)
    (0.0086, 0.0248)
    """
    from scipy.special import ndtr, stdtrit

    return float(ndtr(math.sqrt(cases / (cases - 1)) * stdtrit(cases - 1, tail)))


def swapped_sides(counts: npt.ArrayLike, *, times: int = 9999, seed: int = 0) -> float:
    """Two-sided p of the difference of two shares, of counts (clusters, 4): hits and trials of either side.

    Were the sides alike, each cluster's could be exchanged: p is how often that reaches the difference, of fixed
    random exchanges and the one that was made.
    """
    rows = np.asarray(counts, np.float64)
    rng = np.random.default_rng(seed)
    middle, half = (rows[:, :2] + rows[:, 2:]) / 2, (rows[:, 2:] - rows[:, :2]) / 2

    def apart(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            first, second = middle.sum(0) - sums, middle.sum(0) + sums
            gap = np.abs(second[..., 0] / second[..., 1] - first[..., 0] / first[..., 1])
        return np.asarray(np.nan_to_num(gap), np.float64)

    seen, reached = float(apart(half.sum(0))), 1
    for at in range(0, times, 500):
        signs = rng.integers(0, 2, (min(500, times - at), len(rows))) * 2.0 - 1.0
        reached += int((apart(signs @ half) >= seen - 1e-12).sum())
    return reached / (times + 1)


def rank_test(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[float, float]:
    """The probability that one of the second numbers is above one of the first (ties half), and its two-sided p.

    Mann and Whitney's test by the normal approximation, with ties.

    >>> rank_test([1.0, 2, 3], [2.0, 4, 5])[0].__round__(3)
    0.833
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if not len(a) or not len(b):
        raise ValueError(f"both sides need numbers, got {len(a)} and {len(b)}")
    both = np.concatenate([a, b])
    ranks = _ranks(both)
    above = (float(ranks[len(a) :].sum()) - len(b) * (len(b) + 1) / 2) / (len(a) * len(b))
    _, ties = np.unique(both, return_counts=True)
    count = len(both)
    variance = (count + 1 - float((ties**3 - ties).sum()) / (count * (count - 1))) / (12 * len(a) * len(b))
    return above, z_test(above, 0.5, math.sqrt(max(variance, 0.0)))
