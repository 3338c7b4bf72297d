"""Distances between sampled distributions, and tests of them."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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
