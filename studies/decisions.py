"""Decisions of gates and comparisons, counted out: how often they are wrong, and after how many cases they are made.

`python -m studies.decisions --write` writes `studies/decisions.json`. Gates are counted out exactly, over all that can
happen; comparisons are simulated. The product's own functions decide. Where the truth lies just on a limit, a gate that
passes is wrong, and one that says that the run is shown to be bad is wrong, too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from scipy.stats import binom

from instar.analysis import Severities
from instar.analysis.comparison import LEVEL, Sides, differences
from instar.analysis.until import looks
from instar.gate import Limit, Policy
from instar.gate.checks import AT_THE_END
from instar.gate.until import decided
from instar.stats import binomial_bounds

RESULT = Path(__file__).with_suffix(".json")
ALPHA = 0.05
Sure = Literal["upper", "lower"]
Looks = Literal["never", "as run --until does", "after every case"]


@dataclass(frozen=True)
class Gate:
    """What becomes of a gate: how often it passes, and after how many cases it is decided."""

    limit: float
    rate: float
    cases: int
    sure: Sure
    looks: Looks
    passes: float
    early: float
    """How often it was decided before all cases were asked."""
    median: int
    most: int
    """After so many cases it was decided nine times of ten."""


def gate(limit: float, rate: float, cases: int, sure: Sure, at: Looks) -> Gate:
    """A gate of one limit over so many cases, each of which violates it with this probability: exactly."""
    ends = {"never": [cases], "as run --until does": looks(cases), "after every case": list(range(1, cases + 1))}[at]
    chances, before = np.ones(1), 0
    passes, decisions = 0.0, {}
    for end in ends:
        step = binom.pmf(np.arange(end - before + 1), end - before, rate)
        chances, before = np.convolve(chances, step), end
        # who looks after every case never comes to an end, and has no bound of its own for it
        last = end == cases and at != "after every case"
        passing, failing = _verdicts(limit, sure, end, "before" if not last else "alone" if at == "never" else "end")
        passes += float(chances[passing].sum())
        decisions[end] = float(chances[passing | failing].sum())
        chances[passing | failing] = 0.0
    if sure == "lower":
        passes += float(chances.sum())  # what is not shown to be bad passes
    shares = np.cumsum(list(decisions.values()))
    after = [[*decisions, cases][int(np.searchsorted(shares, share))] for share in (0.5, 0.9)]
    early = float(shares[-2]) if len(shares) > 1 else 0.0
    return Gate(limit, rate, cases, sure, at, round(passes, 5), round(early, 5), *after)


@cache
def _verdicts(
    limit: float, sure: Sure, count: int, look: Literal["before", "alone", "end"]
) -> tuple[np.ndarray, np.ndarray]:
    """For each number of violations: whether the gate passes here, and whether it fails."""
    policy, of = Policy(confidence=1 - ALPHA), Limit("any rule", 1, rate=limit, sure=sure)
    enough, fails = decided(policy, of)
    hits = range(count + 1)
    if look != "before":  # all was asked: the gate's own bounds, and what was decided before stays
        side, risk = {"upper": 1, "lower": 0}[sure], ALPHA * (AT_THE_END if look == "end" else 1)
        passing = np.array([binomial_bounds(hit, count, 1 - risk)[side] <= limit for hit in hits])
        return passing, ~passing
    sure_to = np.array([(enough(hit, count, 1), fails(hit, count, 1)) for hit in hits], np.bool_)
    return sure_to[:, 0] & ~sure_to[:, 1], sure_to[:, 1]


def gates_on_their_limit(sizes: Sequence[int], limits: Sequence[float]) -> list[Gate]:
    """The truth lies on the limit: a gate that wants a good run shown passes wrongly, one that wants a bad one shown
    fails wrongly. Looking after every case is counted out for sizes that it is quick for, by looks alone."""
    return [
        gate(limit, limit, cases, sure, at)
        for sure in ("upper", "lower")
        for at in ("never", "as run --until does", "after every case")
        for limit in limits
        for cases in sizes
        if at != "after every case" or cases <= EVERY
    ]


EVERY = 200


def wrong(one: Gate) -> float:
    """How often a gate on its limit is wrong."""
    return one.passes if one.sure == "upper" else 1 - one.passes


def clear_gates(cases: int, pairs: Sequence[tuple[float, float]]) -> list[dict[str, object]]:
    """Where the answer is clear: after how many cases, and how many a sample of fixed size takes for the same."""
    rows = []
    for limit, rate in pairs:
        one = gate(limit, rate, cases, "upper" if rate < limit else "lower", "as run --until does")
        rows.append({**asdict(one), "fixed": fixed_size(limit, rate, cases)})
    return rows


def fixed_size(limit: float, rate: float, most: int) -> int | None:
    """How many cases, chosen beforehand, show nine times of ten on which side of the limit the rate is."""
    for cases in looks(most):
        bounds = [binomial_bounds(hit, cases, 1 - ALPHA) for hit in range(cases + 1)]
        shown = np.array([high <= limit if rate < limit else low > limit for low, high in bounds])
        if binom.pmf(np.arange(cases + 1), cases, rate)[shown].sum() >= 0.9:
            return cases
    return None


@dataclass(frozen=True)
class Compared:
    """How often a comparison of two systems calls any of its rules surely different, and under how many of 20 rules."""

    cases: int
    rules: int
    rate: float
    worse: float
    alike: float
    any_sure: float
    each_sure: float


def compared(cases: int, rules: int, rate: float, worse: float, alike: float, times: int, seed: int = 0) -> Compared:
    """Simulated: the second system violates each rule in `worse` more of the cases. Rules hang together within a case,
    and the two systems do: with `alike`, a case has that share of its difficulty in common."""
    rng = np.random.default_rng(seed)
    names = [f"rule {number}" for number in range(rules)]
    sure = np.zeros(times)
    for number in range(times):
        hard = np.sqrt(alike) * rng.standard_normal((1, 1, cases))
        level = hard + np.sqrt(1 - alike) * rng.standard_normal((2, rules, cases))
        limits = np.quantile(rng.standard_normal(20_000), [1 - rate, 1 - rate - worse])
        hits = level > limits[:, None, None]
        table = differences(_pair(hits, names), {name: [name] for name in names})  # without medians, which take long
        sure[number] = int((table["p_corrected"] <= LEVEL).sum())
    return Compared(cases, rules, rate, worse, alike, float((sure > 0).mean()), float(sure.mean() / rules))


def _pair(hits: np.ndarray, names: Sequence[str]) -> Sides:
    ids = pl.Series([f"{number}" for number in range(hits.shape[2])])
    nothing = np.zeros(hits[0].shape, np.uint8)
    one, other = (Severities(tuple(names), ids, side.astype(np.float64), nothing, nothing, ("",)) for side in hits)
    return Sides(one, other, 0, {"all": names}, dict.fromkeys(names, 0.5), {})


def study() -> dict[str, object]:
    """All of it, as it is committed."""
    gates = gates_on_their_limit((25, 60, 100, 200, 300, 500, 1000), (0.02, 0.05, 0.1, 0.2, 0.5))
    worst = {
        f"{sure}, looked at {at}": round(max(wrong(one) for one in gates if (one.sure, one.looks) == (sure, at)), 5)
        for sure in ("upper", "lower")
        for at in ("never", "as run --until does", "after every case")
    }
    null = [compared(cases, 20, rate, 0.0, 0.5, 1000) for cases in (30, 100) for rate in (0.05, 0.2, 0.5)]
    power = [compared(cases, 20, 0.1, worse, 0.5, 200) for cases in (50, 100, 200) for worse in (0.1, 0.2)]
    clear = ((0.05, 0.0), (0.05, 0.01), (0.1, 0.02), (0.05, 0.1), (0.05, 0.2), (0.1, 0.3), (0.2, 0.25), (0.2, 0.15))
    return {
        "gates that are wrong, at most": worst,
        "gates whose truth lies on the limit": [asdict(one) for one in gates],
        "gates with a clear answer": clear_gates(2000, clear),
        "comparisons of equal systems": [asdict(one) for one in null],
        "comparisons of a worse system": [asdict(one) for one in power],
    }


def written(result: dict[str, object]) -> str:
    """JSON with one row a line."""
    parts = []
    for name, value in result.items():
        if isinstance(value, list):
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
            parts.append(f" {json.dumps(name)}: [\n{rows}\n ]")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the result beside this file")
    options = parser.parse_args(arguments)
    text = written(study())
    print(text, end="")
    if options.write:
        RESULT.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
