"""Combinations of rules: several transformations one after the other, and their weaker forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, pairwise

from instar.relations import BoundRelation, BoundRule, Rule
from instar.spelling import Parameter, Scale
from instar.transforms import Transformation
from instar.transforms.family import Step

_DIGITS = 3
"""A weaker value is rounded to so many digits that count."""


@dataclass(frozen=True, slots=True, eq=False)
class Combinable:
    """The rules of a suite that can be combined, and why others are left out: sentences."""

    rules: tuple[Rule, ...]
    left_out: tuple[str, ...]


def combinable(rules: Sequence[Rule]) -> Combinable:
    """Those with the relation that most of them have, where that compares an answer with the source's."""
    changing = [one for one in rules if not _is_identity(one)]
    over_cases = [one for one in changing if one.relation and one.relation.relation.over == "cases"]
    rest = [one for one in changing if one not in over_cases]
    other_answer = [one for one in rest if one.relation and not one.relation.relation.mapping]
    by_relation: dict[str, list[Rule]] = {}
    for one in rest:
        if one not in other_answer:
            by_relation.setdefault(one.relation.id if one.relation else "", []).append(one)
    kept = max(by_relation.values(), key=len, default=[])
    others = [one for several in by_relation.values() for one in several if several is not kept]
    reasons = {
        "judged over many cases": over_cases,
        "about another answer than the source's, and nobody knows which one a combination should have": other_answer,
        "judged by another relation than most": others,
    }
    return Combinable(tuple(kept), tuple(_left_out(several, why) for why, several in reasons.items() if several))


def _is_identity(rule: Rule) -> bool:
    return all(step.family.name == "identity" for one in rule.transformations for step in one.steps)


def _left_out(rules: Sequence[Rule], why: str) -> str:
    lefts = list(dict.fromkeys(one.left for one in rules))  # several rules may judge one change
    names = ", ".join(lefts[:3]) + ", …" * (len(lefts) > 3)
    who = "A rule is" if len(rules) == 1 else f"{len(rules)} rules are"
    return f"{who} left out ({names}): {'it is' if len(rules) == 1 else 'they are'} {why}."


def sets_of(members: Sequence[BoundRule], most: int) -> list[tuple[int, ...]]:
    """Which members are combined, by number: pairs, and triples where `most` is 3. Two of one family undo each other or
    add up to one of them, and are no combination."""
    names = [{step.family.name for step in one.transformations[0].steps} for one in members]
    return [
        chosen
        for size in range(2, most + 1)
        for chosen in combinations(range(len(members)), size)
        if len(set().union(*(names[one] for one in chosen))) == sum(len(names[one]) for one in chosen)
    ]


def combined(members: Sequence[BoundRule]) -> BoundRule:
    """One rule: the transformations one after the other, in the order in which the suite has them."""
    steps = tuple(step for one in members for step in one.transformations[0].steps)
    return rule_of(steps, members[0].relation)


def rule_of(steps: tuple[Step, ...], relation: BoundRelation) -> BoundRule:
    changed = Transformation(steps)
    return BoundRule((changed,), relation, changed.id)


def parts_of(members: Sequence[BoundRule], steps: Sequence[Step], place: int) -> Iterator[tuple[Step, ...]]:
    """What some of these members do in a form of their combination, but not all: first the one whose step is at this
    place, then others together with it."""
    ends = list(accumulate(len(one.transformations[0].steps) for one in members))
    spans = [range(first, end) for first, end in pairwise((0, *ends))]
    for size in range(1, len(spans)):
        for chosen in combinations(spans, size):
            if any(place in span for span in chosen):
                yield tuple(steps[one] for span in chosen for one in span)


@dataclass(frozen=True, slots=True)
class Turn:
    """A parameter of a step, which can be turned back to where it changes nothing."""

    place: int
    name: str
    value: float


def turns(steps: Sequence[Step]) -> Iterator[Turn]:
    """The parameters of these steps, of those inside zones too, that are not where they change nothing."""
    for place, step in enumerate(steps):
        for parameter in _open_step(step).family.parameters:
            value = _open_step(step).values[parameter.name]
            if parameter.scale is not None and isinstance(value, int | float) and value != parameter.scale.neutral:
                yield Turn(place, parameter.name, float(value))


def turned(steps: tuple[Step, ...], turn: Turn, share: float) -> tuple[Step, ...] | None:
    """The steps with this parameter at a share of its way from where it changes nothing; None: there is no such value,
    or it changes nothing there."""
    step = steps[turn.place]
    inner = _open_step(step)
    (parameter,) = (one for one in inner.family.parameters if one.name == turn.name)
    value = _value(parameter, turn.value, share)
    if value is None:
        return None
    weaker = replace(inner, values={**inner.values, turn.name: value})
    if inner is not step:
        name, zoned = next((name, one) for name, one in step.values.items() if isinstance(one, Transformation))
        weaker = replace(step, values={**step.values, name: Transformation((weaker, *zoned.steps[1:]))})
    return (*steps[: turn.place], weaker, *steps[turn.place + 1 :])


def weakened(rule: BoundRule, share: float) -> BoundRule | None:
    """The rule with all its parameters at a share of their way; None where it has none, or no such value."""
    steps = rule.transformations[0].steps
    every = list(turns(steps))
    for turn in every:
        made = turned(steps, turn, share)
        if made is None:
            return None
        steps = made
    return rule_of(steps, rule.relation) if every else None


def _open_step(step: Step) -> Step:
    """The step itself, or the first one that it does inside a zone."""
    return step.inner[0].steps[0] if step.inner else step


def _value(parameter: Parameter, strong: float, share: float) -> int | float | None:
    scale = parameter.scale
    assert isinstance(scale, Scale)
    if scale.steps == "log" and min(strong, scale.neutral) <= 0:
        scale = replace(scale, steps="linear")
    value = scale.at(strong, share)
    rounded: float = round(value) if parameter.kind == "int" else float(f"{value:.{_DIGITS}g}")
    try:
        checked = parameter.check(rounded, "search")
    except ValueError:
        return None
    assert isinstance(checked, int | float)
    return None if checked in (scale.neutral, strong) else checked
