"""Intervals that hold however often one looks: confidence sequences of a share."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

PRIOR = 0.5
"""Both parameters of the beta distribution over which the likelihood is mixed: Jeffreys', good near 0 and 1."""


@lru_cache(maxsize=4096)
def sequence_bounds(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a share after so many trials, of a sequence of intervals all of which hold together.

    With this confidence the share lies within every one of them, however many are looked at and whenever one stops
    because of what they say. It holds the shares under which the likelihood, mixed over a beta distribution, is not
    1/(1 − confidence) times as high as under the share itself (Ville's inequality; beta-binomial mixture).

    >>> tuple(round(end, 3) for end in sequence_bounds(5, 20)), sequence_bounds(0, 0)
    ((0.047, 0.589), (0.0, 1.0))
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"hits must be between 0 and trials, got {hits} of {trials}")
    if trials == 0:
        return 0.0, 1.0
    misses = trials - hits
    most = _log_beta(hits + PRIOR, misses + PRIOR) - _log_beta(PRIOR, PRIOR) + math.log(1 - confidence)

    def excluded(share: float) -> bool:
        return most > hits * math.log(share) + misses * math.log1p(-share)

    middle = hits / trials
    low = 0.0 if hits == 0 else _edge(excluded, 0.0, middle)
    high = 1.0 if misses == 0 else 1.0 - _edge(lambda share: excluded(1.0 - share), 0.0, 1.0 - middle)
    return low, high


def _edge(excluded: Callable[[float], bool], outside: float, inside: float) -> float:
    """Where the shares that are not excluded begin, from outside."""
    for _ in range(60):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if middle == 0.0 or excluded(middle) else (outside, middle)
    return outside


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def sequence_quantile_bounds(values: npt.ArrayLike, quantile: float, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of a quantile, values that were measured or ∞, that hold however often one looks.

    The quantile lies at or below a value where the share of values up to it is surely large enough.

    >>> sequence_quantile_bounds(range(100), 0.5)
    (33.0, 66.0)
    """
    ordered = np.sort(np.asarray(values, np.float64))
    count = len(ordered)
    counts = range(count + 1)
    few = bisect_left(counts, True, key=lambda n: sequence_bounds(n, count, confidence)[1] >= quantile)
    enough = bisect_left(counts, True, key=lambda n: sequence_bounds(n, count, confidence)[0] >= quantile)
    low = float(ordered[few - 1]) if few > 0 else 0.0
    return low, float(ordered[enough - 1]) if 0 < enough <= count else math.inf
