"""Shares of cases: their intervals, differences and tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

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


def z_test(value: float, mean: float, deviation: float) -> float:
    """Two-sided p of a value under a normal distribution; without any deviation 1 for the mean and 0 for others."""
    if deviation <= 0:
        return 1.0 if value == mean else 0.0
    return math.erfc(abs(value - mean) / deviation / math.sqrt(2))


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


def binomial_bounds(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact bounds of a share (Clopper and Pearson): each alone is on the right side with this confidence.

    >>> tuple(round(end, 4) for end in binomial_bounds(0, 59))
    (0.0, 0.0495)
    """
    from scipy.special import betaincinv

    if not 0 <= hits <= trials:
        raise ValueError(f"hits must be between 0 and trials, got {hits} of {trials}")
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, 1 - confidence))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, confidence))
    return low, high


Counts = npt.NDArray[np.integer[Any] | np.floating[Any]]
UNSEEN = 2.0
"""Weight, in hits, of the assumption that all trials of a cluster are alike. If smaller, intervals cover too seldom; if
larger, they are wider without need (`studies/clusters.py`)."""


def clustered_share(hits: npt.ArrayLike, trials: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a share whose trials come in clusters, such as the pairs of one case.

    `hits` and `trials` are those of each cluster (see `clustered_interval`).

    >>> tuple(round(end, 3) for end in clustered_share([1, 1, 0], [1, 1, 1]))
    (0.094, 0.992)
    """
    low, high = clustered_interval(moments(np.asarray(hits, np.float64), np.asarray(trials, np.float64)), confidence)
    return float(low), float(high)


def moments(hits: Counts, trials: Counts) -> tuple[Counts, ...]:
    """What is summed over clusters (the first axis) for the interval of a share: how many there are, hits and trials,
    the squares of both, and their product."""
    parts = trials > 0, hits, trials, hits**2, hits * trials, trials**2
    return tuple(np.asarray(part.sum(0)) for part in parts)


def clustered_interval(sums: Sequence[Counts], confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Return the intervals of many shares at once, by the `moments` of their clusters.

    Each is the interval of Clopper and Pearson for the effective number of trials (Korn and Graubard 1998, "Confidence
    intervals for proportions with small expected number of positive counts estimated from survey data"). With one trial
    in each cluster the number is exact. Few hits don't show how strongly the trials of a cluster are correlated, and a
    missed correlation hides a larger share: the end on the other side of few hits uses a cautious number.

    `studies/clusters.py` has the coverage: at least 94 % for 10 to 300 clusters of 1 to 30 trials.

    >>> [round(float(end), 3) for end in clustered_interval(moments(np.array([1] * 5 + [0] * 15), np.array([1] * 20)))]
    [0.087, 0.491]
    """
    from scipy.special import betaincinv

    _, hits, trials, *_ = sums
    share = hits / np.maximum(trials, 1)
    estimated, cautious = _effective_trials(sums, confidence)
    side = (1 - confidence) / 2
    below, above = np.where(share < 0.5, estimated, cautious), np.where(share > 0.5, estimated, cautious)
    low = betaincinv(np.where(hits > 0, share * below, 1.0), (1 - share) * below + 1, side)
    high = betaincinv(share * above + 1, np.where(hits < trials, (1 - share) * above, 1.0), 1 - side)
    return np.where(hits > 0, low, 0.0), np.where(hits < trials, high, 1.0)


def _effective_trials(sums: Sequence[Counts], confidence: float) -> tuple[Floats, Floats]:
    """Return the effective number of trials, as estimated from the hits, and a cautious one.

    The estimate divides by the design effect of the linearised share, and uses Student's quantiles for the number of
    clusters (Kish's n²/Σn² if their sizes differ). The cautious number is the geometric mean of the estimate and the
    number of clusters, weighted by the effective hits and by `UNSEEN`.
    """
    from scipy.special import stdtrit

    clusters, hits, trials, hits_squared, products, trials_squared = sums
    tried = np.maximum(trials, 1).astype(np.float64)
    share = hits / tried
    alike = tried**2 / np.maximum(trials_squared, 1)  # as many clusters of one size
    spread = hits_squared - 2 * share * products + share**2 * trials_squared
    chance = share * (1 - share) * tried  # the spread of independent trials
    effect = np.where(chance > 0, spread * clusters / np.maximum(clusters - 1, 1) / np.where(chance > 0, chance, 1), 1)
    tail = (1 + confidence) / 2
    unsure = (stdtrit(np.maximum(alike - 1, 1), tail) / stdtrit(np.maximum(tried - 1, 1), tail)) ** 2
    estimated = tried / np.maximum(effect * unsure, 1.0)
    weight = UNSEEN / (UNSEEN + chance / np.maximum(effect, 1.0))
    cautious = estimated ** (1 - weight) * alike**weight
    one_each = trials <= clusters
    estimated, cautious = (np.where(clusters > 1, counted, alike) for counted in (estimated, cautious))
    return np.where(one_each, tried, estimated), np.where(one_each, tried, cautious)


def clustered_difference(counts: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return the second share less the first, and its 95 % interval.

    `counts` are (…, clusters, 4): hits and trials of either side. The interval combines those of both shares
    (`clustered_interval`) with the correlation between the sides (Newcombe 1998, method 10; Zou and Donner 2008). The
    correlation is shrunk towards 0 with the weight of one hit. `studies/clusters.py` has the coverage.

    >>> [round(float(end), 2) for end in clustered_difference([[1, 2, 2, 2], [1, 2, 2, 2], [0, 1, 1, 1]])]
    [0.6, -0.3, 0.95]
    >>> [round(float(end), 2) for end in clustered_difference([[0, 2, 0, 3]] * 100)]
    [0.0, -0.04, 0.04]
    """
    sides = np.moveaxis(np.asarray(counts, np.float64), (-1, -2), (0, 1))
    (first, a, low_a, high_a, sure_a), (second, b, low_b, high_b, sure_b) = _side(*sides[:2]), _side(*sides[2:])
    norm = np.sqrt((first**2).sum(0) * (second**2).sum(0))
    sure = np.minimum(sure_a, sure_b)
    phi = (first * second).sum(0) / np.where(norm > 0, norm, 1.0) * sure / (sure + 1)

    def reach(one: Floats, two: Floats) -> Floats:
        return np.asarray(np.sqrt(np.maximum(one * one - 2 * phi * one * two + two * two, 0.0)))

    return b - a, b - a - reach(b - low_b, high_a - a), b - a + reach(high_b - b, a - low_a)


def _side(hits: Floats, trials: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """What each cluster has above its share of the hits; the share with its interval, and how many hits tell of it."""
    sums = moments(hits, trials)
    share = np.asarray(hits.sum(0) / np.maximum(trials.sum(0), 1))
    estimated, _ = _effective_trials(sums, 0.95)
    return hits - share * trials, share, *clustered_interval(sums), share * (1 - share) * estimated


def paired_bound(first_only: int, second_only: int, count: int, confidence: float = 0.95) -> float:
    """How much larger the second share may be than the first, of the same pairs, with this confidence.

    Tango's score bound, with a correction of one pair for the steps of counts: over all shares it is too low no more
    often than it says, which the score bound alone and Newcombe's are.

    >>> round(paired_bound(10, 10, 100), 3), round(paired_bound(0, 0, 100), 3)
    (0.087, 0.044)
    """
    z = _normal_quantile(confidence)
    low, high = (second_only - first_only) / count, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        b = -second_only - first_only + (2 * count - second_only + first_only) * middle
        c = -first_only * middle * (1 - middle)
        nuisance = (math.sqrt(max(b * b - 8 * count * c, 0.0)) - b) / (4 * count)
        spread = math.sqrt(max(count * (2 * nuisance + middle * (1 - middle)), 1e-12))
        inside = (second_only - first_only - count * middle + 1) / spread > -z
        low, high = (middle, high) if inside else (low, middle)
    return high


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
