"""Tests and intervals. The only statistics in the project."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["bootstrap", "pearson", "spearman", "wilson"]

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


def bootstrap(samples: Sequence[npt.ArrayLike] | npt.NDArray[np.float64], statistic: Callable[[Floats], float], *,
              confidence: float = 0.95, resamples: int = 1000, seed: int = 0) -> tuple[float, float]:
    """Percentile interval of a statistic over resampled rows (one row per case)."""
    rows = np.asarray(samples, np.float64)
    if len(rows) == 0:
        raise ValueError("nothing to resample")
    rng = np.random.default_rng(seed)
    drawn = [statistic(rows[rng.integers(len(rows), size=len(rows))]) for _ in range(resamples)]
    low, high = np.quantile(drawn, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return float(low), float(high)
