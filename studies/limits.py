"""How often the intervals of a search for limits cover, and how many predictions it takes: `python -m studies.limits`
writes `studies/limits.json` and `studies/limit_costs.json`.

Limits on a grid of 20 levels, exponential or all near one level, of few cases or many, some of them lost before they
break. Covered is the true share at each level, and the true level at which a share of all cases has broken.

Costs are counted out for every family that can be searched and every limit that a monotone response can have.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from instar.analysis.limits import BROKEN, HELD, UNKNOWN, next_levels
from instar.spelling import REQUIRED
from instar.stats import survival
from instar.suites.grid import Grid, can_be_searched
from instar.transforms import TransformationFamily, families

Floats = npt.NDArray[np.float64]
LEVELS, TIMES = 20, 2000
CASES = (5, 10, 30, 100)
SHARES = (0.1, 0.5, 0.9)
RESULT = Path(__file__).with_suffix(".json")
COSTS = Path(__file__).with_name("limit_costs.json")
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


def searched(levels: int, limit: int) -> tuple[int, int]:
    """Where a search of so many levels finds the limit of a monotone response, and how many levels it asks."""
    truth = np.where(np.arange(levels) >= limit, BROKEN, HELD).astype(np.uint8)
    states = np.zeros(levels, np.uint8)
    while chosen := next_levels(states):
        states[chosen] = truth[chosen]
    broken = np.flatnonzero(states == BROKEN)
    return (int(broken[0]) if len(broken) else levels), int((states != UNKNOWN).sum())


def most_asked(levels: int) -> int:
    """How many levels a search asks at the most, whatever the limit of a monotone response."""
    return max(searched(levels, limit)[1] for limit in range(levels + 1))


def searchable() -> Iterator[str]:
    """Every family that can be searched, with a value for those that must be given."""
    for family in families().values():
        if can_be_searched(family):
            yield _spelled(family)


def _spelled(family: TransformationFamily) -> str:
    needed = [one for one in family.parameters if one.default is REQUIRED and one.scale is None]
    values = ", ".join(f"{one.name}={one.choices[0] if one.choices else 0}" for one in needed)
    return f"{family.name}({values})" if values else family.name


def costs() -> Iterator[dict[str, object]]:
    """One row per family: the largest share of a grid's predictions that a search takes, of each way alone and of all
    ways together; the source and the unchanged input are two of them."""
    for spelled in searchable():
        counts = {ray.name: len(ray.levels) for ray in Grid.of(spelled).rays}
        most = {name: most_asked(count) for name, count in counts.items()}
        alone = max((most[name] + 2) / (count + 2) for name, count in counts.items())
        together = (sum(most.values()) + 2) / (sum(counts.values()) + 2)
        shares = {"one way": round(alone, 4), "all ways": round(together, 4)}
        yield {"family": spelled, "levels": counts, "asked": most, **shares}


if __name__ == "__main__":
    COSTS.write_text(json.dumps(list(costs()), indent=1) + "\n", "utf-8")
    rows = list(results(times=int(sys.argv[1]) if len(sys.argv) > 1 else TIMES))
    RESULT.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    for row in rows:
        print(row)
