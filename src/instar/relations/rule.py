"""Rules: `transformation => relation`. A rule is data, and its spelling is its id."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain as flatten

from instar.registry import Lookup, known_object, loaded_object
from instar.relations.registry import bound_relation, meant_relation, own_equivariance
from instar.relations.relation import BoundRelation
from instar.spelling import Call, Span, Value, bind, parse_chain, spell
from instar.transforms import Transformation, chain, families

_SHORT = 3
"""Levels of a rule over many cases that are all told in words; of more the first and the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A transformation (or an ordered list of them) and what must then hold.

    Without a relation it means the output kind's own equivariance, which `for_output` fills in.
    """

    transformations: tuple[Transformation, ...]
    relation: BoundRelation | None
    left: str

    @property
    def id(self) -> str:
        return f"{self.left} => {self.relation.id}" if self.relation else self.left

    def __str__(self) -> str:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def words(self) -> str:
        """What is done to the input and, where that is not the output's own equivariance, what must then hold.

        >>> rule("motion(1, 100) => degradation(f1)").words
        'motion blur, 1 pixel, at 100°: F1 may fall by at most 5 % of what it was'
        """
        levels = [one.words for one in self.transformations]
        change = "; ".join(levels) if len(levels) <= _SHORT else f"from {levels[0]} to {levels[-1]}"
        return ": ".join(filter(None, (change, self.relation.words if self.relation else "")))

    def for_output(self, output: str) -> BoundRule:
        """The same rule with its relation: its own, else the equivariance of this kind of output."""
        return BoundRule(self.transformations, self.relation or own_equivariance(output), self.left)


@dataclass(frozen=True, slots=True, eq=False)
class BoundRule(Rule):
    """A rule whose relation is filled in: what is predicted and judged."""

    relation: BoundRelation


def levels_of(over_cases: Rule, output: str) -> list[BoundRule]:
    """The ordinary rules whose verdicts a rule over many cases is judged from."""
    bound = over_cases.for_output(output).relation
    name = bound.relation.made_of.get(str(bound.values["measure"]))
    relation = own_equivariance(output) if name is None else bound_relation(Call(name))
    return [BoundRule((level,), relation, level.id) for level in over_cases.transformations]


def rule(text: str) -> Rule:
    """Parse a rule's spelling.

    >>> rule("mirror(axis=h) => poses").id
    'mirror(h) => poses'
    """
    return _parsed(text, loaded_object)


def named_rule(text: str) -> Rule:
    """The same of a text that stands in a file: functions that the user did not name are not loaded, and stay names."""
    return _parsed(text, known_object)


def _parsed(text: str, lookup: Lookup) -> Rule:
    chains, after = parse_chain(text)
    expanded = [_levels(calls, lookup) for calls in chains]
    transformations = tuple(flatten.from_iterable(levels for levels, _ in expanded))
    relation = meant_relation(after, (step.family.name for one in transformations for step in one.steps))
    left = ", ".join(spelled for _, spelled in expanded)
    left = f"[{left}]" if len(chains) > 1 else left
    over_cases = relation is not None and relation.relation.over == "cases"
    if len(transformations) > 1 and not over_cases:
        raise ValueError(f"rule {text!r}: a list of levels needs a relation over many cases, e.g. => correlation")
    return Rule(transformations, relation, left)


def _levels(calls: tuple[Call, ...], lookup: Lookup) -> tuple[tuple[Transformation, ...], str]:
    """A chain whose one range, if any, is written out: the transformations and their common spelling."""
    places = [(i, key) for i, call in enumerate(calls) for key, value in _arguments(call) if isinstance(value, Span)]
    if not places:
        one = chain(calls, lookup)
        return (one,), one.id
    if len(places) > 1:
        raise ValueError("a rule can have one range of levels, not several")
    (at, key), call = places[0], calls[places[0][0]]
    span = dict(_arguments(call))[key]
    assert isinstance(span, Span)
    family = families().get(call.name)
    levels = [
        chain((*calls[:at], _with(call, key, number), *calls[at + 1 :]), lookup)
        for number in range(span.first, span.last + 1)
    ]
    if family is None:
        raise ValueError(f"{call.name}: ranges of levels work with registered transformations")
    values: dict[str, Value] = dict(bind(_with(call, key, span.first), family.parameters, what="transformation"))
    name = family.parameters[key].name if isinstance(key, int) else key
    values[name] = span
    spelled = [step.spelled() for step in levels[0].steps]
    spelled[at] = spell(family.name, values, family.parameters)
    return tuple(levels), " | ".join(spelled)


def _arguments(call: Call) -> list[tuple[int | str, Value]]:
    return [*enumerate(call.args), *call.kwargs]


def _with(call: Call, key: int | str, value: Value) -> Call:
    args = tuple(value if i == key else v for i, v in enumerate(call.args))
    return Call(call.name, args, tuple((k, value if k == key else v) for k, v in call.kwargs))
