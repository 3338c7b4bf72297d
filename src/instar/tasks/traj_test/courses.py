"""Where futures lead: how far those of a follow-up turn aside and how much further they go, by number and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.analysis.rejections import LEVEL
from instar.relations import Rule, named_rule
from instar.report.finding import Finding
from instar.report.words import SPACE, count_of
from instar.stats import median_interval
from instar.tasks.traj_test.relations import COURSE_MEASURES

Floats = npt.NDArray[np.float64]

LEAST_CASES = 3
LEAST_TURN, LEAST_SHARE = 1.0, 0.02
"""Degrees, and the share of the way, below which nothing is said."""


def course_findings(run: Run, judging: str) -> Iterator[Finding]:
    """What a rule measured, of those that are violated or whose tests reject too often: to which side its futures turn,
    and how much too far or too short they go."""
    verdicts = run.verdicts(judging)
    if not set(COURSE_MEASURES) <= set(verdicts.columns):
        return
    names = dict(run.rules(judging).select("rule", "name").iter_rows())
    for text in _accused(run, judging):
        known = verdicts.filter((pl.col("rule") == text) & pl.col("turn").is_not_null() & (pl.col("reach") > 0))
        turns, shares = known["turn"].to_numpy(), (known["further"] / known["reach"]).to_numpy()
        yield from _turns(turns, named_rule(text), names[text])
        yield from _lengths(shares, names[text])


def _accused(run: Run, judging: str) -> list[str]:
    tests, rates = run.tests(LEVEL, judging=judging), run.rates(judging=judging)
    sure = tests.filter(pl.col("rule").is_not_null() & (pl.col("p_corrected") <= LEVEL))["rule"]
    wrong = {*rates.filter(pl.col("violated") > 0)["rule"], *sure}
    return [text for text in run.changing_rules("wvc") if text in wrong]


def _turns(turns: Floats, rule: Rule, name: str) -> Iterator[Finding]:
    """A bias to one side leads apart in a mirror: there it is half of what lies between source and follow-up."""
    mirrored = _mirrors(rule)
    typical = _typical(-turns / 2 if mirrored else turns, LEAST_TURN)
    if typical is None:
        return
    middle, low, high = typical
    side, (small, large) = "left" if middle > 0 else "right", sorted((abs(low), abs(high)))
    amount = f"turn by about {_digits(abs(middle))}° to the {side}"
    of = f"{_digits(small)}° to {_digits(large)}°, {count_of(len(turns), 'case')}"
    words = f"Under {name}, its futures {amount} of those of the source (95{SPACE}% interval {of})."
    if mirrored:
        words = f"Its futures {amount} (95{SPACE}% interval {of}), in the source and under {name} alike."
    figures = {"rule": name, "degrees": middle, "low": low, "high": high, "cases": len(turns)}
    yield Finding("trajectories.turn", words, True, figures)


def _lengths(shares: Floats, name: str) -> Iterator[Finding]:
    typical = _typical(shares, LEAST_SHARE)
    if typical is None:
        return
    middle, low, high = typical
    small, large = sorted((abs(low), abs(high)))
    side = "too far" if middle > 0 else "too short"
    words = (
        f"Under {name}, its futures go about {_digits(100 * abs(middle))}{SPACE}% {side}, beside those of the source "
        f"(95{SPACE}% interval {_digits(100 * small)} to {_digits(100 * large)}, {count_of(len(shares), 'case')})."
    )
    figures = {"rule": name, "share": middle, "low": low, "high": high, "cases": len(shares)}
    yield Finding("trajectories.length", words, True, figures)


def _typical(values: Floats, least: float) -> tuple[float, float, float] | None:
    """The median over cases and its interval, where that lies on one side of 0 and is not next to nothing."""
    if len(values) < LEAST_CASES:
        return None
    low, high = median_interval(values)
    middle = float(np.median(values))
    return (middle, low, high) if low * high > 0 and abs(middle) >= least else None


def _digits(value: float) -> str:
    """Two digits, as far as there are so many before the point."""
    return f"{value:.0f}" if value >= 10 or math.isclose(value, round(value)) else f"{value:.1f}"


def _mirrors(rule: Rule) -> bool:
    """Whether the change exchanges left and right."""
    steps = rule.transformations[0].steps
    return len([step for step in steps if step.family.name == "mirror" and step.values["axis"] != "both"]) % 2 == 1
