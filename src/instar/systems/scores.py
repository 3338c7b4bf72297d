"""What to say where no score of a system counts or scores are none, and what to judge it with."""

from __future__ import annotations

import math
from collections.abc import Callable


def weak_words(highest: float, confidence: float, where: str = "") -> str:
    """That no score reaches the confidence, and what to do about it; `where` says in which images, if not in all.

    `highest` is the best score in those images. `check` and a run's findings both say this, and advise the same of the
    same images.
    """
    shown = f"{highest:.2g}"
    if float(shown) >= confidence:  # what does not reach it must not read as if it did
        shown = f"{math.floor(1000 * highest) / 1000:g}"
    advice = (
        f"If the scores of this system are that low, judge with `{advised_options(highest)}`"
        if highest > 0
        else "They look like logits: pass them through a sigmoid"
    )
    none, there = (f"{where}, no score", " there") if where else ("No score", "")
    return (
        f"{none} reaches the confidence of {confidence:g}, from which on something counts as found; the highest{there} "
        f"is {shown}. {advice}"
    )


def advised_scale(low: float, high: float) -> str:
    """What to do about scores that do not lie between 0 and 1.

    >>> advised_scale(1, 94.1), advised_scale(-3, 5)
    ('divide percent by 100', 'pass logits through a sigmoid, or clip')
    """
    fix = "pass logits through a sigmoid, or clip"
    if low >= 0 and 1.5 < high <= 100:
        fix = "divide percent by 100" if high > 20 else f"divide percent by 100, or {fix}"
    return fix


def scores_words(low: float, high: float) -> str:
    """Where scores lie.

    >>> scores_words(1, 94.1), scores_words(87, 87)
    ('The scores lie between 1 and 94.1', 'All scores are 87')
    """
    least, most = f"{low:.3g}", f"{high:.3g}"
    return f"All scores are {most}" if least == most else f"The scores lie between {least} and {most}"


def unscaled_words(low: float, high: float, confidence: float) -> str:
    """That scores are none from 0 to 1, which rules take them for, and what to do about it."""
    return (
        f"{scores_words(low, high)}, and not between 0 and 1. Rules count what scores at least "
        f"{confidence:g} as found, so that the rates say little. Change the adapter: {advised_scale(low, high)}."
    )


def advised_options(score: float) -> str:
    """The judging options for a system whose sure answers score about this: half of it counts, a fifth is the margin.

    These are the shares that the defaults have of a score of 1. They are rounded to the safe side, to figures such as
    0.1, 0.15 or 0.2: the confidence down, so that the answers still count, and the margin up, so that scores which
    wobble accuse nobody.

    >>> advised_options(0.495), advised_options(0.36)
    ('--set confidence=0.2 --set margin=0.1', '--set confidence=0.15 --set margin=0.08')
    """
    return f"--set confidence={_rounded(score / 2, math.floor):g} --set margin={_rounded(score / 5, math.ceil):g}"


def _rounded(value: float, whole: Callable[[float], int]) -> float:
    """A value to its first digit; between 1 and 2, where a digit is a large step, also to one and a half."""
    if value <= 0:
        return 0.0
    step = 10.0 ** math.floor(math.log10(value))
    if value < 2 * step:
        step /= 2
    return whole(round(value / step, 6)) * step
