"""Does the same image get the same answer? And if not: is it chance, or does the system remember?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from instar.case import Input
from instar.outputs.forecast import Forecast
from instar.systems.check.examination import Answer, Examination, compared, difference
from instar.systems.check.results import Result, ok, problem, warning
from instar.transforms import transformation

ROUND = ("A", "A", "changed", "changed", "A", "B", "A", "B", "changed", "A")
"""Each image after itself, and after others."""


def repeats(examined: Examination) -> Result:
    examined.need_answers()
    pictures = [image for _, image in examined.images]
    again = [examined.one(image) for image in reversed(pictures)][::-1]
    third = [examined.one(image) for image in pictures]
    same = zip(examined.first * 2, again + third, strict=True)
    unlike = next(filter(None, (difference(a, b) for a, b in same)), "")
    system, what = examined.system, examined.system.takes
    settled = system.deterministic or system.seedable
    sequence = _sequence(examined) if settled else []
    contexts = _contexts(sequence)
    unlike = unlike or _unlike(contexts)
    examined.steady = not unlike
    if settled and unlike:
        if _remembers(contexts) or _moves_on(sequence):
            return problem(
                "determinism.remembers",
                f"it remembers: the same {what} is answered differently after another {what} ({unlike}), and alike "
                f"after the same one. Switch off tracking and smoothing from {what} to {what}, or make a new model for "
                "each",
                difference=unlike,
            )
        if system.deterministic:
            return problem(
                "determinism.differs",
                f"it counts as deterministic, as all that is not declared otherwise, but the same {what} was answered "
                f"differently: {unlike}. Switch off tracking from {what} to {what} and anything random; or declare it, "
                "a function with @declare(deterministic=False)",
                difference=unlike,
            )
        return problem(
            "determinism.seed_unused",
            f"the same {what} with the same seed was answered differently: {unlike}. Hand the seed to every random "
            "generator the model uses, or declare seedable=False",
            difference=unlike,
        )
    if system.deterministic:
        return ok("determinism.ok", f"the same {what} gets the same answer, whatever was asked before")
    other = [examined.one(image, seed) for seed in (1, 2) for image in pictures] if system.seedable else []
    varied = unlike or any(difference(a, b) for a, b in zip(examined.first * 2, other, strict=False))
    if not varied:
        return _never_varied(examined)
    if system.seedable:
        return ok("determinism.seeded", "answers differ from seed to seed and repeat with the same seed")
    return ok("determinism.stochastic", "answers differ from prediction to prediction, as declared")


def _never_varied(examined: Examination) -> Result:
    """What to say of a system that was declared stochastic, and is not: several futures claim to be drawn."""
    forecasts = [answer for _, _, answer in examined.answered if isinstance(answer, Forecast)]
    seeds = ", whatever the seed" if examined.system.seedable else ""
    if examined.system.seedable and any(len(answer) > 1 for answer in forecasts):
        return warning(
            "determinism.seed_ignored",
            f"it answers with several futures, and they never differ{seeds}: the seed is ignored. Hand it to every "
            "random generator the model uses, or declare deterministic=True",
        )
    return (ok if forecasts else warning)(
        "determinism.never_varied",
        f"declared stochastic, but three predictions never differed{seeds}: declare deterministic=True and repeats "
        "cost nothing",
    )


def _sequence(examined: Examination) -> list[tuple[str, Answer]]:
    """Answers to an image after itself and after others, twice over, in the order in which they were asked."""
    _, first, _ = next((one for one in examined.answered if one[2].marks()), examined.answered[0])
    others = [image for _, image in examined.images if image is not first]
    changes = {"A": "", "changed": "mirror(h)", "B": "" if others else "mirror(both)"}
    images: dict[str, Input] = {
        name: transformation(change)(first)[0] if change else first for name, change in changes.items()
    } | ({"B": others[0]} if others else {})
    called = {name: f"{examined.name_of(first)} after {change}" if change else "" for name, change in changes.items()}
    return [(name, examined.one(images[name], what=called[name])) for name in ROUND * 2]


def _contexts(sequence: Sequence[tuple[str, Answer]]) -> Mapping[tuple[str, str], list[Answer]]:
    """Answers to an image by what was asked before it."""
    answers: dict[tuple[str, str], list[Answer]] = {}
    for (before, _), (name, answer) in pairwise(sequence):
        answers.setdefault((before, name), []).append(answer)
    return answers


def _moves_on(sequence: Sequence[tuple[str, Answer]]) -> bool:
    """Whether an image that is repeated right away is answered alike, and mostly differently when it comes again after
    others: a tracker that gives new numbers never comes back to an answer."""
    at_once: list[float] = []
    later: list[float] = []
    for number, (name, answer) in enumerate(sequence):
        earlier = [n for n in range(number) if sequence[n][0] == name]
        if earlier:
            apart, _ = compared(sequence[earlier[-1]][1], answer)
            (at_once if earlier[-1] == number - 1 else later).append(apart)
    usual = float(np.median(later))
    worst = max(at_once)
    return usual > 0 and (worst < 0.3 * usual if np.isfinite(usual) else np.isfinite(worst))


def _unlike(contexts: Mapping[tuple[str, str], Sequence[Answer]]) -> str:
    """How any two answers to one image differ."""
    for name in ("A", "changed"):
        every = [answer for (_, current), some in contexts.items() if current == name for answer in some]
        for other in every[1:]:
            if words := difference(every[0], other):
                return words
    return ""


def _remembers(contexts: Mapping[tuple[str, str], Sequence[Answer]]) -> bool:
    """Whether answers differ by what was asked before, and hardly by themselves."""
    for name in ("A", "changed"):
        some = [answers for (_, current), answers in contexts.items() if current == name]
        within = [compared(answers[0], answer)[0] for answers in some for answer in answers[1:]]
        between = [compared(some[0][-1], answers[-1])[0] for answers in some[1:]]
        own, others = max(within, default=0.0), max(between, default=0.0)
        if others > 0 and (own < 0.3 * others if np.isfinite(others) else np.isfinite(own)):
            return True
    return False
