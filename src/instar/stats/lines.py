"""Fit a line that a few outliers don't bend."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def robust_line(
    x: npt.ArrayLike, y: npt.ArrayLike, clusters: npt.ArrayLike, confidence: float = 0.999
) -> tuple[float, float, float] | None:
    """Return slope, value at 0 and the half-width of the slope's interval, or None if there are too few points.

    Use least squares with Huber's weights. The interval allows for points of one cluster that are off together: it has
    Student's t with one degree of freedom less than there are clusters. For fewer than three clusters it is 25 standard
    errors wide on each side.

    >>> slope, value, margin = robust_line(range(8), [1, 3, 5, 90, 9, 11, 13, 15], [0, 0, 1, 1, 2, 2, 3, 3])
    >>> round(slope, 2), round(value, 2)
    (2.0, 1.0)
    """
    from scipy.special import stdtrit

    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(xs) < 4 or np.ptp(xs) == 0:
        return None
    weights = np.ones(len(xs))
    for _ in range(30):
        middle = float(np.average(xs, weights=weights))
        apart = xs - middle
        slope = float((weights * apart * ys).sum() / (weights * apart**2).sum())
        value = float(np.average(ys, weights=weights)) - slope * middle
        left = ys - value - slope * xs
        usual = 1.4826 * float(np.median(np.abs(left))) + 1e-9
        weights = np.minimum(1, 1.5 * usual / np.maximum(np.abs(left), 1e-12))
    pulls = weights * apart * left
    numbers = np.unique(np.asarray(clusters), return_inverse=True)[1]
    by_cluster = np.bincount(numbers, pulls)
    variance = max(float((pulls**2).sum()), float((by_cluster**2).sum()))
    error = math.sqrt(variance) / float((weights * apart**2).sum())
    freedom = len(by_cluster) - 1
    times = float(stdtrit(freedom, (1 + confidence) / 2)) if freedom > 1 else MOST
    return slope, value, min(times, MOST) * error


MOST = 25.0
"""Standard errors on each side of the slope at most."""
