"""Grids: the levels of a family from no change to its far ends, for a search for the level that breaks an answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from instar.registry import Lookup, NotLoaded, known_object, loaded_object
from instar.relations import BoundRelation, Rule, meant_relation, named_rule, rule
from instar.spelling import REQUIRED, Call, Parameter, Scale, Value, bind, parse_call, parse_chain, spell, spell_value
from instar.suites.suite import Suite, joined
from instar.transforms import TransformationFamily, called_family, chain, families
from instar.transforms.family import UnloadedFamily

STEPS, RAYS = 40, 1
"""How many levels each way has, and how many directions there are between two families."""
SPELLED = (
    Parameter("family", "text"),
    Parameter("steps", "int", STEPS, low=4, high=1000),
    Parameter("rays", "int", RAYS, low=0, high=9),
)
PANEL = "limits"
"""The panel that shows what a search found."""
_DIGITS = 3
"""A level is rounded to so many digits that count: 2.24 is a level that people can write."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One searched parameter and what it means to turn it: `short` names it where there is little room."""

    name: str
    neutral: float
    steps: str

    @property
    def short(self) -> str:
        return self.name.split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class Level:
    """A place on a ray: the values of its axes, and the rule that asks about it."""

    values: tuple[float, ...]
    rule: Rule


@dataclass(frozen=True, slots=True, eq=False)
class Ray:
    """One way away from the unchanged input, by its levels from the least change on.

    `ends` are the far ends of the axes, None where an axis stays neutral; `slant` is how far each goes, in shares.
    """

    axes: tuple[Axis, ...]
    ends: tuple[float | None, ...]
    slant: tuple[float, ...]
    levels: tuple[Level, ...]

    @property
    def name(self) -> str:
        """What is turned, and which way.

        >>> [ray.name for ray in Grid.of("gamma | rotation").rays][:2]
        ['gamma below 1', 'gamma above 1']
        """
        parts = [
            f"{axis.name} {'below' if end < axis.neutral else 'above'} {axis.neutral:g}"
            for axis, end in zip(self.axes, self.ends, strict=True)
            if end is not None
        ]
        slant = [share for share in self.slant if share]
        apart = f" ({slant[0]:.2g} : {slant[1]:.2g})" if len(slant) > 1 and len(set(slant)) > 1 else ""
        return f"{', '.join(parts)}{apart}"

    @property
    def moving(self) -> tuple[int, ...]:
        """The places of the axes that are turned."""
        return tuple(place for place, end in enumerate(self.ends) if end is not None)


@dataclass(frozen=True)
class Grid:
    """All levels of a family, or of two with their frontier: `family` is how the user spells it.

    >>> grid = Grid.of("gamma", steps=4)
    >>> [level.values[0] for level in grid.rays[1].levels]
    [1.78, 3.16, 5.62, 10.0]
    """

    family: str
    steps: int
    between: int
    rays: tuple[Ray, ...]
    unchanged: Rule
    """The rule that changes nothing: what it violates was broken before."""

    @staticmethod
    def of(family: str, *, steps: int = STEPS, rays: int = RAYS, lookup: Lookup = loaded_object) -> Grid:
        """A grid as the user spells its family: `gamma`, `brightness(add=0)`, `blur => poses`, `gamma | rotation`."""
        chosen = dict(bind(Call("boundary", (family,), (("steps", steps), ("rays", rays))), SPELLED, what="search"))
        chains, written = parse_chain(family, what="family")
        if len(chains) != 1:
            raise ValueError(f"{family!r} is a list of levels; a search makes its levels itself: give the family alone")
        made = rule if lookup is loaded_object else named_rule
        relation = meant_relation(written, (call.name for call in chains[0]))
        if relation is not None:
            _refuse_without_limit(relation, chains[0])
        relation_text = f" => {relation.id}" if relation else ""
        calls = [_opened(call, lookup) for call in chains[0]]
        open_steps = _open_steps(calls, lookup)
        unchanged = made(f"identity{relation_text}")
        ways = _two_families(open_steps, rays) if len(open_steps) > 1 else _one_family(open_steps[0])
        rays_made = []
        for steered, axes, ends, slant in ways:
            levels = tuple(
                Level(values, made(f"{chain(turned, lookup).id}{relation_text}"))
                for values, turned in _levels(calls, steered, ends, slant, steps)
            )
            if levels:
                rays_made.append(Ray(axes, ends, slant, levels))
        return Grid(family, int(str(chosen["steps"])), int(str(chosen["rays"])), tuple(rays_made), unchanged)

    @cached_property
    def name(self) -> str:
        """How a run spells the search, so that its levels can be had from there again."""
        return spell("boundary", {"family": self.family, "steps": self.steps, "rays": self.between}, SPELLED)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule of the grid once, the unchanged one first."""
        return tuple(dict.fromkeys([self.unchanged, *(level.rule for ray in self.rays for level in ray.levels)]))

    @property
    def frontier(self) -> bool:
        """Whether it is of two families."""
        return any(len(ray.axes) > 1 for ray in self.rays)


def suite_of(grids: Sequence[Grid], threshold: float | None = None) -> Suite:
    """What a run of these grids asks. `threshold` is the severity from which on an answer counts as broken."""
    named = joined([Suite(grid.name, grid.rules) for grid in grids], name=" + ".join(grid.name for grid in grids))
    limits = {} if threshold is None else {one.id: threshold for one in named.rules}
    return Suite(named.name, named.rules, thresholds=limits, panels=(PANEL,))


def grids_of(pieces: Iterable[str]) -> Iterator[Grid]:
    """The grids among the suites of a run, as its manifest spells them. Code that it names is not loaded; a grid of a
    family that was not, or that nobody knows here, is left out."""
    for text in pieces:
        if is_search(text):
            with suppress(KeyError, TypeError, ValueError):
                values = bind(parse_call(text), SPELLED, what="search")
                steps, rays = (int(str(values[name])) for name in ("steps", "rays"))
                yield Grid.of(str(values["family"]), steps=steps, rays=rays, lookup=known_object)


def is_search(suite: str) -> bool:
    """Whether a suite of a run is a grid that was searched."""
    return suite.startswith("boundary(")


def spell_call(call: Call) -> str:
    """A call as it is written."""
    return spell_value(call)


def can_be_searched(family: TransformationFamily) -> bool:
    """Whether it has a parameter to search, and means a relation that has limits."""
    relation = meant_relation(None, [family.name])
    return bool(_searchable(family)) and not (relation and relation.relation.responds)


def _refuse_without_limit(relation: BoundRelation, calls: Sequence[Call]) -> None:
    """Raise where no smallest change breaks an answer by this relation."""
    if relation.relation.over == "cases":
        raise ValueError(
            f"{relation.id} is judged over many cases, and a limit is each case's own; give a relation that is judged "
            "for each case, or leave it out"
        )
    if relation.relation.responds:
        spelled = f"{' | '.join(map(spell_call, calls))} => {relation.id}"
        raise ValueError(
            f"{spelled} has no limit to search: by {relation.id} answers must change with the input, so that it judges "
            "nothing where nothing is changed, and a larger change need not be harder to answer than a smaller one. "
            f'Ask it at values of your choice: instar run SYSTEM "{spelled}" DATASET'
        )


# --- which parameters are searched, and which way ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Open:
    """A step with parameters to be searched, and those that it keeps. `path` is its place in the chain; inside another
    step that step's place comes before it, and `within` says what that step does besides (`skin`)."""

    path: tuple[int, ...]
    family: TransformationFamily
    fixed: Mapping[str, Value]
    searched: tuple[Parameter, ...]
    within: str


_Way = tuple[tuple[tuple[_Open, Parameter], ...], tuple[Axis, ...], tuple[float | None, ...], tuple[float, ...]]


def _searchable(family: TransformationFamily) -> list[Parameter]:
    return [one for one in family.parameters if one.ordered and one.scale is not None]


def _family(call: Call, lookup: Lookup) -> TransformationFamily:
    family = called_family(call, lookup)
    if isinstance(family, UnloadedFamily):
        raise NotLoaded(family.help)
    return family


def _values(call: Call, family: TransformationFamily) -> dict[str, Value]:
    """What a call gives, by name."""
    return dict(zip((one.name for one in family.parameters), call.args, strict=False)) | dict(call.kwargs)


def _opened(call: Call, lookup: Lookup) -> Call:
    """A call that has transformations inside it with all values by name, these as chains; any other as it is."""
    family = _family(call, lookup)
    inside = [one for one in family.parameters if one.kind == "transformation"]
    if not inside:
        return call
    if len(call.args) > len(family.parameters):
        bind(call, family.parameters, what="transformation")  # which says how many there are
    values = _values(call, family)
    for one in inside:
        if one.name in values:
            chained = one.check(values[one.name], f"transformation {call.name}")
            values[one.name] = tuple(_opened(step, lookup) for step in chained)  # type: ignore[union-attr, arg-type]
    return Call(call.name, (), tuple(values.items()))


def _is_chain(value: Value) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(one, Call) for one in value)


def _open_steps(calls: Sequence[Call], lookup: Lookup) -> list[_Open]:
    """The steps that have a parameter to search; the error that says what can be searched where none has."""
    open_steps = list(_open_in(calls, lookup))
    if not open_steps:
        spelled = " | ".join(spell_call(call) for call in calls)
        raise ValueError(f"{spelled}: every value is given, and none is left to search; leave one out: gamma")
    if len(open_steps) > 2:
        raise ValueError(
            f"a frontier is of two families, and {len(open_steps)} are open; give the values of the others"
        )
    return open_steps


def _open_in(
    calls: Sequence[Call], lookup: Lookup, path: tuple[int, ...] = (), within: str = "", *, alone: bool = True
) -> Iterator[_Open]:
    """The open steps of a chain and of what stands inside its steps. A step that is `alone` must be open."""
    for place, call in enumerate(calls):
        family = _family(call, lookup)
        fixed, here, only = _values(call, family), (*path, place), alone and len(calls) == 1
        searched = tuple(one for one in _searchable(family) if one.name not in fixed)
        inside = [value for value in fixed.values() if _is_chain(value)]
        if searched:
            yield _Open(here, family, fixed, searched, within)
        for chained in inside:
            beside = " ".join(spell_value(value) for value in fixed.values() if value is not chained)
            yield from _open_in(chained, lookup, here, beside or family.name, alone=only)  # type: ignore[arg-type]
        missing = any(p.default is REQUIRED and p.name not in fixed for p in family.parameters)
        if not searched and not inside and (only or missing):
            raise ValueError(_unsearchable(family, fixed))


def _unsearchable(family: TransformationFamily, fixed: Mapping[str, Value]) -> str:
    own = _searchable(family)
    if own:
        names = " and ".join(one.name for one in own)
        return f"{family.name}: {names} {'is' if len(own) == 1 else 'are'} given, and nothing is left to search"
    if unscaled := [one.name for one in family.parameters if one.ordered]:
        why = (
            f"its parameter {unscaled[0]} has an order, but nothing says which value changes nothing and how far to "
            "go: whoever wrote the family declares Parameter(…, ordered=True, scale=Scale(neutral, below, above))"
        )
    else:
        why = "it has no parameter that goes from weak to strong"
    can = {name: one.room for name, one in families().items() if can_be_searched(one)}
    near = [name for name, room in can.items() if room == family.room]
    others = [name for name in can if name not in near]
    alike = f" Of the same kind ({family.room}) can be searched: {', '.join(near)}; others:" if near else " There are:"
    return f"{family.name} cannot be searched: {why}.{alike} {', '.join(others)}"


def _scale(parameter: Parameter) -> Scale:
    assert parameter.scale is not None
    return parameter.scale


def _ends(parameter: Parameter) -> list[float]:
    return [end for end in (_scale(parameter).below, _scale(parameter).above) if end is not None]


def _axis(step: _Open, parameter: Parameter) -> Axis:
    own = _scale(parameter)
    name = parameter.name if parameter.name == step.family.name else f"{step.family.name} {parameter.name}"
    return Axis(f"{name} in {step.within}" if step.within else name, own.neutral, own.steps)


def _one_family(step: _Open) -> Iterator[_Way]:
    """Each of its parameters for itself, both ways where it has two."""
    for parameter in step.searched:
        for end in _ends(parameter):
            yield ((step, parameter),), (_axis(step, parameter),), (end,), (1.0,)


def _two_families(steps: Sequence[_Open], between: int) -> Iterator[_Way]:
    """Along each axis, and between them: each way of the one with each way of the other, at even angles."""
    for step in steps:
        if len(step.searched) > 1:
            names = [one.name for one in step.searched]
            example = f"{step.family.name}({names[0]}={_scale(step.searched[0]).neutral:g})"
            raise ValueError(
                f"{step.family.name} has {len(names)} parameters to search ({', '.join(names)}); in a frontier it has "
                f"one: give the others, e.g. {example}"
            )
    steered = tuple((step, step.searched[0]) for step in steps)
    axes = tuple(_axis(step, parameter) for step, parameter in steered)
    first, second = (_ends(parameter) for _, parameter in steered)
    for end in first:
        yield steered, axes, (end, None), (1.0, 0.0)
    for end in second:
        yield steered, axes, (None, end), (0.0, 1.0)
    for one, other in product(first, second):
        for number in range(1, between + 1):
            angle = number * math.pi / 2 / (between + 1)
            longest = max(math.cos(angle), math.sin(angle))
            slant = round(math.cos(angle) / longest, 6), round(math.sin(angle) / longest, 6)
            yield steered, axes, (one, other), slant


def _levels(
    calls: Sequence[Call],
    steered: Sequence[tuple[_Open, Parameter]],
    ends: Sequence[float | None],
    slant: Sequence[float],
    steps: int,
) -> Iterator[tuple[tuple[float, ...], tuple[Call, ...]]]:
    """The levels of a ray, each once: values, and the chain with them. What stays neutral is left out of it."""
    before: tuple[float, ...] = tuple(_scale(parameter).neutral for _, parameter in steered)
    neutral = before
    for number in range(1, steps + 1):
        values = tuple(
            _scale(parameter).neutral if end is None else _rounded(parameter, end, share * number / steps)
            for (_, parameter), end, share in zip(steered, ends, slant, strict=True)
        )
        if values in (before, neutral):
            continue
        before = values
        turned = {
            step.path: None if value == _scale(parameter).neutral else _call(step, parameter, value)
            for (step, parameter), value in zip(steered, values, strict=True)
        }
        yield values, tuple(_turned(calls, turned))


def _turned(
    calls: Sequence[Call], turned: Mapping[tuple[int, ...], Call | None], path: tuple[int, ...] = ()
) -> Iterator[Call]:
    """A chain with some of its steps, or of those inside them, replaced. What is left with nothing inside goes too."""
    for place, call in enumerate(calls):
        here = (*path, place)
        if here in turned:
            if (step := turned[here]) is not None:
                yield step
        elif any(other[: len(here)] == here for other in turned):
            values = tuple(
                (name, tuple(_turned(value, turned, here)) if _is_chain(value) else value)  # type: ignore[arg-type]
                for name, value in call.kwargs
            )
            if all(value != () for _, value in values):
                yield Call(call.name, (), values)
        else:
            yield call


def _rounded(parameter: Parameter, end: float, share: float) -> float:
    """A value that people can read, of the parameter's kind and inside its range."""
    value = _scale(parameter).at(end, share)
    rounded = round(value) if parameter.kind == "int" else float(f"{value:.{_DIGITS}g}")
    return min(max(rounded, parameter.low), parameter.high)


def _call(step: _Open, searched: Parameter, value: float) -> Call:
    """The step at a value; other parameters that could be searched stay as they are beside it."""
    values: dict[str, Value] = {**step.fixed, searched.name: _plain(value)}
    for other in step.searched:
        if other is not searched and other.default is REQUIRED:
            own = _scale(other)
            values[other.name] = _plain(own.neutral if own.beside is None else own.beside)
    missing = [one for one in step.family.parameters if one.default is REQUIRED and one.name not in values]
    if missing:
        name, example = missing[0].name, missing[0].choices[0] if missing[0].choices else 0
        raise ValueError(
            f"{step.family.name} needs {name}, which is not searched ({missing[0].allowed}); give it, e.g. "
            f"{step.family.name}({name}={example})"
        )
    return Call(step.family.name, (), tuple(values.items()))


def _plain(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
