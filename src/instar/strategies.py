"""Strategies of hypothesis that draw transformations and rules, for property tests of a model of your own.

```python
from hypothesis import given, settings
from instar import severity
from instar.strategies import transformations

@settings(deadline=None)
@given(transformations("rotation", degrees=(-10, 10)))
def test_boxes_turn_with_the_image(asked):
    assert severity(asked, detect, photo) < 0.3
```

Nothing else of Instar needs hypothesis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

from instar.spelling import REQUIRED, Parameter, nearest, spell_value
from instar.suites import Suite, suite
from instar.transforms import TransformationFamily, family_named, transformation
from instar.trial import SeededRule

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError:
    raise ImportError("instar.strategies needs hypothesis, which is not installed: pip install hypothesis") from None

STEPS = 100
"""A range is drawn from so many values at the least: ones that can be read, and that shrink to the plainest."""
SEEDS = 2**31 - 1


def transformations(name: str, /, **ranges: object) -> SearchStrategy[SeededRule]:
    """Transformations of one family, spelled, with a seed where the family draws at random.

    A parameter is a range (low, high), a list of values, one value, or a strategy of your own. Those that are not named
    are drawn from all that the family allows, or stay at their default where they have one. Examples shrink towards the
    value that changes least.

    >>> from hypothesis import find
    >>> find(transformations("gamma", gamma=(0.5, 2)), lambda drawn: drawn.rule != "gamma(1)").rule
    'gamma(1.01)'
    """
    family = family_named(name)
    known = {parameter.name: parameter for parameter in family.parameters}
    for key in ranges:
        if key not in known:
            takes = ", ".join(known) or "none"
            raise ValueError(f"{name} has no parameter {key!r}{nearest(key, known)}; it takes {takes}")
    values = {
        key: _values(family, parameter, ranges.get(key, REQUIRED))
        for key, parameter in known.items()
        if key in ranges or parameter.default is REQUIRED
    }
    spelled = st.fixed_dictionaries(values).map(lambda drawn: _spelled(name, drawn))
    if family.check is not None:
        spelled = spelled.filter(_is_allowed)
    return st.builds(SeededRule, spelled.map(lambda text: transformation(text).id), _seeds(family.random))


def rules(named: str | Suite, /) -> SearchStrategy[SeededRule]:
    """The rules of a suite that change something and are judged on one case, with seeds. They shrink to the first."""
    chosen = suite(named) if isinstance(named, str) else named
    single = [
        rule
        for rule in chosen.rules
        if len(rule.transformations) == 1
        and (rule.relation is None or rule.relation.relation.over == "case")
        and rule.left != "identity"
    ]
    if not single:
        raise ValueError(f"{named} has no rule that changes something and is judged on one case")
    return st.one_of(
        [st.builds(SeededRule, st.just(rule.id), _seeds(rule.transformations[0].random)) for rule in single]
    )


def _seeds(random: bool) -> SearchStrategy[int]:
    return st.integers(0, SEEDS) if random else st.just(0)


def _spelled(name: str, values: Mapping[str, object]) -> str:
    inner = ", ".join(f"{key}={spell_value(value)}" for key, value in values.items())
    return f"{name}({inner})" if inner else name


def _is_allowed(text: str) -> bool:
    """Whether values that are allowed one by one are allowed together."""
    try:
        transformation(text)
    except ValueError:
        return False
    return True


def _values(family: TransformationFamily, parameter: Parameter, wanted: object) -> SearchStrategy[object]:
    """The values of one parameter: all that are allowed, or those that are wanted."""
    owner = family.name
    if isinstance(wanted, SearchStrategy):
        return wanted
    if isinstance(wanted, list):
        if not wanted:
            raise ValueError(f"{owner}: the list of values of {parameter.name} is empty")
        return st.sampled_from([parameter.check(value, owner) for value in wanted])
    numeric = parameter.kind in ("int", "float", "floats")
    if wanted is REQUIRED or (numeric and isinstance(wanted, tuple) and len(wanted) == 2):
        return _all(family, parameter, None if wanted is REQUIRED else cast("tuple[object, object]", wanted))
    return st.just(parameter.check(wanted, owner))


def _all(
    family: TransformationFamily, parameter: Parameter, ends: tuple[object, object] | None
) -> SearchStrategy[object]:
    kind = parameter.kind
    if kind == "choice":
        return st.sampled_from(parameter.choices)
    if kind == "bool":
        return st.booleans()
    if kind == "colour":
        return st.tuples(*[st.integers(0, 255)] * 3)
    if kind in ("text", "transformation"):
        raise ValueError(f"{family.name} needs {parameter.name}, which cannot be drawn: give one value, or a list")
    low, high = _range(family, parameter, ends)
    one = _numbers(low, high, _neutral(parameter, low, high), parameter)
    return st.tuples(*[one] * parameter.length) if kind == "floats" else one


def _range(
    family: TransformationFamily, parameter: Parameter, ends: tuple[object, object] | None
) -> tuple[float, float]:
    """The ends of what is drawn, which must be allowed; those that are open are left out later."""
    if ends is None:
        low, high = parameter.low, parameter.high
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"{family.name}: {parameter.name} has no range of its own; give one: {parameter.name}=(0, 1)"
            )
        return low, high
    for end in ends:
        if isinstance(end, bool) or not isinstance(end, int | float) or not parameter.low <= end <= parameter.high:
            raise ValueError(f"{family.name}: {parameter.name}={ends} is not allowed; it takes {parameter.allowed}")
    low, high = cast("tuple[float, float]", ends)
    if low > high:
        raise ValueError(f"{family.name}: the range {parameter.name}={ends} runs backwards; the lower end comes first")
    return low, high


def _neutral(parameter: Parameter, low: float, high: float) -> float:
    """The value of a range that changes least."""
    factors = 1.0 if parameter.kind == "floats" else 0.0  # several numbers are factors wherever there are such
    return min(max(factors if parameter.scale is None else parameter.scale.neutral, low), high)


def _numbers(low: float, high: float, neutral: float, parameter: Parameter) -> SearchStrategy[object]:
    """Numbers at even steps from the neutral one, and both ends; whole ones where the parameter takes no others."""
    whole = parameter.kind == "int"
    digits = 0 if whole else max(0, math.ceil(math.log10(STEPS / (high - low)))) if high > low else 0
    step = 10.0**-digits

    def number(steps: int) -> float:
        value = min(max(round(neutral + steps * step, digits + 6), low), high)
        return int(value) if whole else value

    first, last = math.floor((low - neutral) / step), math.ceil((high - neutral) / step)
    inside = st.integers(first, last).map(number)
    return inside.filter(
        lambda value: (
            not (parameter.open_low and value <= parameter.low)
            and not (parameter.open_high and value >= parameter.high)
        )
    )
