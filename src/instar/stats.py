"""Tests and intervals. The only statistics in the project."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def wilson(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion; (0, 1) when nothing was tried.

    >>> tuple(round(end, 3) for end in wilson(5, 20))
    (0.112, 0.469)
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"hits must be between 0 and trials, got {hits} of {trials}")
    if trials == 0:
        return 0.0, 1.0
    z = _normal_quantile(0.5 + confidence / 2)
    share = hits / trials
    scale = 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / scale
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / scale
    # the ends are exact where the proportion is: rounding must not exclude it
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == trials else min(1.0, middle + half)
    return low, high


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


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


# --- distances between sampled distributions, and tests of them -------------------------------------


def wasserstein(first: npt.ArrayLike, second: npt.ArrayLike | None = None, *, squared: bool = True) -> Floats:
    """The exact Wasserstein distances W2 of all sets of points (N, K, D) from all others (M, K, D), or among them.

    W2² is the mean squared Euclidean distance over the best matching of the two sets. With `squared=False` the
    mean plain distance over the matching that makes it least: W1.

    >>> wasserstein([[[0.0], [1.0]]], [[[2.0], [0.0]], [[0.0], [1.0]]])
    array([[0.70710678, 0.        ]])
    """
    from scipy.optimize import linear_sum_assignment

    a = np.asarray(first, np.float64)
    b = a if second is None else np.asarray(second, np.float64)
    # about their middle, so that the difference of large squares keeps its digits
    middle = a.mean((0, 1))
    a, b = _outermost_first(a - middle), _outermost_first(b - middle)
    squares = np.einsum("nkd,nkd->nk", a, a), np.einsum("mkd,mkd->mk", b, b)

    def solved(pairs: tuple[npt.NDArray[np.int64], ...]) -> Floats:
        one, other = pairs
        x, y = a[one], b[other]
        cost = x @ y.swapaxes(1, 2)
        cost *= -2
        cost += squares[0][one][:, :, None]
        if not squared:
            cost += squares[1][other][:, None]
            np.sqrt(np.maximum(cost, 0, out=cost), out=cost)
        # what is the same for a whole column changes no matching, and the solver is a quarter faster without
        cost -= cost.min(1, keepdims=True)
        match = np.array([linear_sum_assignment(each)[1] for each in cost])
        gap = x - y[np.arange(len(y))[:, None], match]  # of the matching itself: 0 for equal sets
        apart = np.einsum("pkd,pkd->pk", gap, gap)
        return np.asarray(np.sqrt(apart.mean(1)) if squared else np.sqrt(apart).mean(1), np.float64)

    wanted = np.triu_indices(len(a), 1) if second is None else np.divmod(np.arange(len(a) * len(b)), max(1, len(b)))
    # The solver lets other threads run: every core has as many pairs, few enough at a time to stay in its cache.
    cores = (os.cpu_count() or 1) if len(wanted[0]) > 64 else 1
    pieces = cores * math.ceil(len(wanted[0]) / cores / 75)
    blocks = list(zip(*(np.array_split(side, pieces) for side in wanted), strict=True)) if pieces else []
    matrix = np.zeros((len(a), len(b)))
    if blocks:
        matrix[wanted] = np.concatenate(list((_threads().map if cores > 1 else map)(solved, blocks)))
    return matrix + matrix.T if second is None else matrix


def _outermost_first(sets: Floats) -> Floats:
    """The points of each set in another order: with the hardest to match at first, the solver has less to undo."""
    order = np.argsort(-np.einsum("nkd,nkd->nk", sets, sets), 1)
    return np.take_along_axis(sets, order[:, :, None], 1)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="instar-stats")


def hellinger(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """The Hellinger distance of two distributions over the same cells, 0 to 1. Mass that is missing lies elsewhere.

    >>> hellinger([1.0, 0.0], [0.0, 1.0]), hellinger([0.5, 0.5], [0.5, 0.5])
    (1.0, 0.0)
    """
    a, b = np.asarray(p, np.float64), np.asarray(q, np.float64)
    elsewhere = sum(lack for lack in (1 - float(a.sum()), 1 - float(b.sum())) if lack > 1e-12)  # not rounding
    return min(1.0, math.sqrt((float(((np.sqrt(a) - np.sqrt(b)) ** 2).sum()) + elsewhere) / 2))


def permutation_test(distances: npt.ArrayLike, first: int) -> tuple[float, float, float]:
    """Whether the last runs come from the distribution of the `first` ones, from their distances (R, R).

    The statistic is 2·mean between − mean within the first − mean within the rest (0 for one run); p is the share
    of all ways to choose as many runs that reach it: exact where the runs are exchangeable. Returns the statistic,
    p, and the least p that this number of runs can show. Where there are too many ways, 20,000 fixed ones stand
    for them.

    >>> apart = np.abs(np.subtract.outer([0.0, 1, 2, 9], [0.0, 1, 2, 9]))
    >>> permutation_test(apart, 3)[1:]
    (0.25, 0.25)
    """
    matrix = np.asarray(distances, np.float64)
    runs = len(matrix)
    rest = runs - first
    if first < 2 or rest < 1 or matrix.shape != (runs, runs):
        raise ValueError(f"it takes at least two runs and one to compare with them, got {first} and {rest}")
    chosen, pairs = _choices(runs, rest)
    row, total = matrix.sum(1).take(chosen).sum(0), matrix.sum() / 2
    within = matrix.ravel().take(pairs).sum(0)
    statistic = (
        2 * (row - 2 * within) / (rest * first)
        - within * (2 / (rest * (rest - 1)) if rest > 1 else 0)
        - (total - row + within) * 2 / (first * (first - 1))
    )
    seen = float(statistic[0])
    reached = int((statistic >= seen - 1e-9 * max(abs(seen), float(matrix.max(initial=0.0)))).sum())
    return seen, reached / len(statistic), 1 / len(statistic)


def randomisation_test(actual: npt.ArrayLike, possible: npt.ArrayLike) -> float:
    """How often chance alone reaches the sum of what was measured: p of a test by what was drawn at random.

    `actual` (units,) is measured under what was drawn for each unit, `possible` (units, draws) under other draws that
    could have been made. 20,000 fixed choices, one draw for each unit, stand for all of them.

    >>> randomisation_test([1.0, 1.0], [[1.0, 0.0], [1.0, 0.0]]) > 0.2
    True
    """
    measured, others = np.asarray(actual, np.float64), np.asarray(possible, np.float64)
    if others.ndim != 2 or measured.shape != others.shape[:1]:
        raise ValueError(f"it takes (units,) and (units, draws), got {measured.shape} and {others.shape}")
    rng, times = np.random.default_rng(0), 20_000
    sums = np.zeros(times)
    for unit in others:
        sums += unit[rng.integers(len(unit), size=times)]
    return float((1 + (sums >= measured.sum() - 1e-9).sum()) / (1 + times))


@lru_cache(maxsize=16)
def _choices(runs: int, rest: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The ways to take some runs for the rest, the real one first: their runs (rest, ways), and which distances
    (pairs, ways) lie within them."""
    if math.comb(runs, rest) <= 60_000:
        # counted from the end, so that the last runs come first
        taken = runs - 1 - np.array(list(combinations(range(runs), rest)))
    else:
        rng = np.random.default_rng(0)
        taken = np.argsort(rng.random((20_000, runs)), 1)[:, :rest]
        taken[0] = np.arange(first := runs - rest, first + rest)
    one, other = np.triu_indices(rest, 1)
    pairs = taken[:, one] * runs + taken[:, other]
    return np.ascontiguousarray(taken.T, np.int32), np.ascontiguousarray(pairs.T, np.int32)


def z_test(value: float, mean: float, deviation: float) -> float:
    """Two-sided p of a value under a normal distribution; without any deviation 1 for the mean and 0 for others."""
    if deviation <= 0:
        return 1.0 if value == mean else 0.0
    return math.erfc(abs(value - mean) / deviation / math.sqrt(2))


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


def mcnemar(first_only: int, other_only: int) -> float:
    """McNemar's paired test, exact and two-sided: whether as many pairs hit the first alone as the other alone.

    >>> mcnemar(4, 0), mcnemar(2, 2), mcnemar(0, 0)
    (0.125, 1.0, 1.0)
    """
    most, every = max(first_only, other_only), first_only + other_only
    return min(1.0, 2 * float(binomial_excess(most, every, 0.5)))


def paired_difference(both: int, first_only: int, other_only: int, neither: int) -> tuple[float, float]:
    """The 95 % interval of the other share less the first, of the same pairs: Newcombe's, made of Wilson's intervals.

    >>> [round(end, 3) for end in paired_difference(20, 12, 2, 16)]
    [-0.329, -0.056]
    """
    count = both + first_only + other_only + neither
    first, other = both + first_only, both + other_only
    product = first * (count - first) * other * (count - other)
    together = float(both * neither - first_only * other_only)
    if together > 0:
        together = max(together - count / 2, 0.0)
    phi = together / math.sqrt(product) if product else 0.0
    (low_a, high_a), (low_b, high_b) = wilson(first, count), wilson(other, count)
    a, b = first / count, other / count

    def reach(one: float, two: float) -> float:
        return math.sqrt(max(one * one - 2 * phi * one * two + two * two, 0.0))

    return b - a - reach(b - low_b, high_a - a), b - a + reach(high_b - b, a - low_a)


# --- many questions ---------------------------------------------------------------------------------


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


def fisher(a: int, b: int, c: int, d: int) -> float:
    """Fisher's exact test of a table of four counts [[a, b], [c, d]], two-sided."""
    from scipy.stats import fisher_exact

    return float(fisher_exact(np.array([[a, b], [c, d]])).pvalue)


def fisher_excess(
    hits: npt.ArrayLike, trials: npt.ArrayLike, other_hits: npt.ArrayLike, other_trials: npt.ArrayLike
) -> Floats:
    """How likely so many of all hits or more fall to the first of two groups by chance: Fisher's test, one-sided.

    >>> fisher_excess([3, 0], 3, [0, 3], 3).round(3).tolist()
    [0.05, 1.0]
    """
    from scipy.stats import hypergeom

    some, every, rest, others = (np.asarray(each) for each in (hits, trials, other_hits, other_trials))
    return np.asarray(hypergeom.sf(some - 1, every + others, some + rest, every), np.float64)


def binomial_excess(hits: npt.ArrayLike, trials: npt.ArrayLike, share: float) -> Floats:
    """How likely so many hits or more are by chance, where each of the trials is a hit with this probability.

    >>> binomial_excess([0, 2, 4], 4, 0.5).tolist()
    [1.0, 0.6875, 0.0625]
    """
    from scipy.special import betainc

    some, every = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(trials, np.float64))
    if ((some < 0) | (some > every)).any():
        raise ValueError("hits must be between 0 and trials")
    return np.asarray(np.where(some > 0, betainc(np.maximum(some, 1), every - some + 1, share), 1.0))


def holm(p: Sequence[float]) -> list[float]:
    """p values corrected for how many there are, after Holm: each is what the whole family of questions allows.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, highest = [1.0] * len(p), 0.0
    for place, number in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        highest = max(highest, min(1.0, p[number] * (len(p) - place)))
        corrected[number] = highest
    return corrected
