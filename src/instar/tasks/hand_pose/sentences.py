"""A sentence of advice, its numbers in words, and what counts as much, little or sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from instar.report.words import hundredths, rate_text
from instar.stats import ends, wilson
from instar.tasks.hand_pose.measures import Floats, Sums

LEAST = 10
"""Cases below which nothing is said: intervals of fewer are too narrow to be trusted, or too wide to say anything."""
ENOUGH = 60
"""Cases below which nothing is called robust: what befalls one case in twenty may not be among fewer, and resampling
cannot know of what it has not seen."""
SOME = 3
"""Cases that are enough for what is plain: no answer at all, or every landmark right once it is read otherwise."""
HIGH, LOW, FAR, NONE = 0.8, 0.5, 0.3, 0.2
"""A measure from here up is high, below here low; so much less is far less; so little is next to nothing."""


HARMLESS = frozenset({"few", "unlabelled", "precise", "sensitive", "robust", "open"})
"""Grounds of advice that do not speak against a system."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence, the name of the rule that it comes from, and the numbers that it follows from."""

    ground: str
    says: str
    because: str


class Loss(NamedTuple):
    """What a test case loses of a measure: as a part of what there was to lose, and in points of the baseline."""

    part: Floats
    points: Floats
    baseline: Floats


def loss_of(sums: Sums, measure: str, place: int) -> Loss:
    baseline = sums.values(measure, [place], base=True)
    points = sums.lost(measure, [place])
    return Loss(sums.part_lost(measure, [place]), points, baseline)


def is_above(values: Floats, limit: float) -> bool:
    """Surely above. A resample without a value (nothing was answered, or there to lose) speaks against it."""
    return bool(ends(np.nan_to_num(values[1:], nan=limit))[0] > limit)


def is_below(values: Floats, limit: float) -> bool:
    """Surely below. A resample without a value speaks against it."""
    return bool(ends(np.nan_to_num(values[1:], nan=limit))[1] < limit)


def share_text(values: Floats) -> str:
    """A share with its interval: 50 % (25–75)."""
    return rate_text(float(values[0]), *map(float, ends(values[1:])))


def hits_text(hits: int, count: int) -> str:
    """So many of so many, as a share with its interval."""
    return rate_text(hits / count, *wilson(hits, count))


def points_text(less: float, low: float, high: float) -> str:
    """How much less a share is than another one, or how much more, with the interval.

    >>> points_text(0.12, 0.03, 0.2), points_text(-0.01, -0.05, 0.02)
    ('12 points less (3 to 20)', '1 point more (-2 to 5)')
    """
    word = "less"
    if less < 0:
        less, low, high, word = -less, -high, -low, "more"
    amount = hundredths(less)
    unit = "point" if amount == "1" else "points"
    return f"{amount} {unit} {word} ({hundredths(low)} to {hundredths(high)})"


def points_of(less: Floats) -> str:
    """The same of a difference and its resamples."""
    return points_text(float(less[0]), *map(float, ends(less[1:])))


def costs_text(losses: Mapping[str, Loss], measure: str = "F1") -> str:
    """What some test cases cost of what there was to lose, strongest first: 47 of 72 points (22 to 76)."""
    ranked = sorted(losses.items(), key=lambda each: -each[1].points[0])
    texts = []
    for place, (title, loss) in enumerate(ranked):
        low, high = (hundredths(float(end)) for end in ends(loss.points[1:]))
        unit = "" if place else f" points of {measure}"
        amount = f"{hundredths(float(loss.points[0]))} of {hundredths(float(loss.baseline[0]))}{unit}"
        texts.append(f"{title} {'' if place else 'costs '}{amount} ({low} to {high})")
    return ", ".join(texts)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
