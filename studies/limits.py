"""How often the intervals of a search for limits cover: `python -m studies.limits` writes `studies/limits.json`.

Limits on a grid of 20 levels, exponential or all near one level, of few cases or many, some of them lost before they
break. Covered is the true share at each level, and the true level at which a share of all cases has broken.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from instar.stats import survival

Floats = npt.NDArray[np.float64]
LEVELS, TIMES = 20, 2000
CASES = (5, 10, 30, 100)
SHARES = (0.1, 0.5, 0.9)
RESULT = Path(__file__).with_suffix(".json")
_SPREAD, _MIDDLE = 10.0, 8.0


def _steep(level: Floats) -> Floats:
    """Most limits lie near one level."""
    return 1 / (1 + (level / _MIDDLE) ** 4)


def _exponential(level: Floats) -> Floats:
    return np.exp(-level / _SPREAD)


KINDS: Mapping[str, Callable[[Floats], Floats]] = {"exponential": _exponential, "steep": _steep}


def _drawn(unbroken: Callable[[Floats], Floats], rng: np.random.Generator, cases: int) -> Floats:
    """The first level of each case at which it is broken: one beyond the grid where it is not."""
    curve = unbroken(np.arange(LEVELS + 1, dtype=np.float64))
    return np.searchsorted(-curve, -rng.uniform(0, 1, cases), side="left").astype(np.float64)


def coverage(
    unbroken: Callable[[Floats], Floats], cases: int, lost: bool, *, times: int = TIMES, seed: int = 0
) -> dict[str, float]:
    """How often the interval of the share covers, at its worst level, and that of each quantile; and how wide they
    are."""
    rng = np.random.default_rng([seed, cases, lost])
    levels = np.arange(LEVELS + 1, dtype=np.float64)
    truth = unbroken(levels)
    # the least level up to which so many have broken; beyond the far end where there is none
    right = {share: float(np.append(levels, math.inf)[int((truth > 1 - share).sum())]) for share in SHARES}
    inside, quantiles, width = np.zeros(LEVELS + 1), dict.fromkeys(SHARES, 0), np.zeros(LEVELS + 1)
    for _ in range(times):
        limits = _drawn(unbroken, rng, cases)
        seen = np.floor(rng.uniform(0, 3 * LEVELS, cases)) if lost else np.full(cases, LEVELS)
        seen = np.minimum(seen, LEVELS)
        broken = limits <= seen
        curve = survival(np.where(broken, limits, seen), broken, levels=levels)
        inside += (curve.low <= truth) & (truth <= curve.high)
        width += curve.high - curve.low
        for share in SHARES:
            _, low, high = curve.quantile(share)
            quantiles[share] += low <= right[share] <= high
    some = truth < 1  # at no change all are unbroken, and every interval says so
    return {
        "share, worst level": float(inside[some].min() / times),
        "share, all levels": float(inside[some].mean() / times),
        "width": float(width[some].mean() / times),
        **{f"quantile {share:g}": quantiles[share] / times for share in SHARES},
    }


def results(*, times: int = TIMES) -> Iterator[dict[str, object]]:
    """One row per kind of limits, number of cases, and whether some are lost."""
    for name, unbroken in KINDS.items():
        for lost in (False, True):
            for cases in CASES:
                made = coverage(unbroken, cases, lost, times=times)
                yield {"limits": name, "cases": cases, "lost": lost, **{key: round(x, 4) for key, x in made.items()}}


if __name__ == "__main__":
    rows = list(results(times=int(sys.argv[1]) if len(sys.argv) > 1 else TIMES))
    RESULT.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    for row in rows:
        print(row)
