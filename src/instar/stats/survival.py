"""Survival: how many cases have not broken up to a level, where some never break or are lost on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_SAME = 1e-9
"""Shares that differ by less are the same: they are products of fractions."""


@dataclass(frozen=True, slots=True, eq=False)
class Survival:
    """The share of cases that have not broken up to and with each level, and its 95 % interval.

    `at_risk` cases had neither broken nor been lost before a level, and `broken` broke at it. Where none is at risk any
    more though some were lost, the share is NaN: nobody was seen there. An interval is that of one level: they do not
    hold all together.
    """

    levels: Floats
    at_risk: npt.NDArray[np.int64]
    broken: npt.NDArray[np.int64]
    share: Floats
    low: Floats
    high: Floats

    def quantile(self, share: float) -> tuple[float, float, float]:
        """The least level at which so large a share of the cases has broken, and its 95 % interval (Brookmeyer and
        Crowley's, of the intervals at the levels); ∞ where no level is enough, and NaN for a level that would lie
        where nobody was at risk."""
        return (self._first(self.share, share), self._first(self.low, share), self._first(self.high, share))

    def _first(self, shares: Floats, broken: float) -> float:
        reached = np.flatnonzero(shares <= 1 - broken + _SAME)
        if len(reached):
            return float(self.levels[reached[0]])
        return math.nan if np.isnan(shares).any() else math.inf


def survival(
    ends: npt.ArrayLike, broken: npt.ArrayLike, levels: Sequence[float] | Floats | None = None, confidence: float = 0.95
) -> Survival:
    """The survival of cases that broke at their end, or were last seen unbroken there.

    The share is Kaplan and Meier's estimate; on a grid that all cases share, it is Turnbull's, too. The interval is
    the beta product of Fay, Brittain and Proschan (2013): it covers at least as often as it says however few the cases
    are, and without lost cases it is Clopper and Pearson's. The products are matched by their first two moments.

    Args:
        ends: one number per case.
        broken: whether the case broke there; else it was unbroken there, and nothing is known of what comes after.
        levels: where the curve is asked for; by default wherever a case ends.

    >>> curve = survival([1, 2, 2, 3, 3], [True, True, False, True, False])
    >>> curve.share.round(3).tolist(), curve.quantile(0.5)[0]
    ([0.8, 0.6, 0.3], 3.0)
    """
    last, events = np.asarray(ends, np.float64), np.asarray(broken, np.bool_)
    if last.shape != events.shape or last.ndim != 1:
        raise ValueError(f"every case has one end that is broken or not, got {last.shape} and {events.shape}")
    at = np.unique(last) if levels is None else np.asarray(levels, np.float64)
    tail = 0.5 - confidence / 2
    rows = [_at(level, last, events, tail) for level in at]
    at_risk, count, share, low, high = zip(*rows, strict=True) if rows else ((),) * 5
    return Survival(
        at,
        np.array(at_risk, np.int64),
        np.array(count, np.int64),
        np.array(share, np.float64),
        np.array(low, np.float64),
        np.array(high, np.float64),
    )


def _at(level: float, last: Floats, events: npt.NDArray[np.bool_], tail: float) -> tuple[int, int, float, float, float]:
    """One level: at risk, broken there, the share unbroken, and the ends of its interval."""
    times, counts = np.unique(last[events & (last <= level)], return_counts=True)
    at_risk = np.array([(last >= time).sum() for time in times], np.float64)
    share = float(np.prod(1 - counts / at_risk)) if len(times) else 1.0
    # unbroken for certain after this level: a case that was last seen unbroken at it is one of them
    beyond = int((last > level).sum() + ((last == level) & ~events).sum())
    first, second = at_risk - counts + 1, counts.astype(np.float64)
    high = _beta_quantile(first, second, 1 - tail) if len(times) else 1.0
    low = _beta_quantile(np.append(first, beyond), np.append(second, 1.0), tail) if beyond else 0.0
    here = int(counts[-1]) if len(times) and times[-1] == level else 0
    left = int((last >= level).sum())
    return left, here, share if left or not share else math.nan, low, high


def _beta_quantile(first: Floats, second: Floats, share: float) -> float:
    """The quantile of a product of independent beta variables, by the beta variable of the same mean and variance."""
    from scipy.stats import beta

    both = first + second
    mean, square = float(np.prod(first / both)), float(np.prod(first * (first + 1) / (both * (both + 1))))
    variance = square - mean * mean
    if variance <= 0:
        return mean
    scale = mean * (1 - mean) / variance - 1
    return float(beta.ppf(share, mean * scale, (1 - mean) * scale))
