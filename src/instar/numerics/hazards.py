"""Why a result can be NaN or ±∞, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instar.numerics.domain import Call, Kind, Span

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Danger:
    """`operand` by index, with the bounds of those of its parts that are to blame. `plain` says that nothing but sums
    and products of bounded numbers grows too large."""

    why: str
    operand: int
    low: float
    high: float
    plain: bool = False


Test = tuple[int, Callable[[Call, Span], "Mask | bool"], str]


def _zero(call: Call, x: Span) -> Mask:
    return x.holds(0)


def _negative(call: Call, x: Span) -> Mask:
    return x.low < 0


def _outside(call: Call, x: Span) -> Mask:
    return (x.low < -1) | (x.high > 1)


def _no_epsilon(usual: float) -> Callable[[Call, Span], bool]:
    return lambda call, x: float(call.attributes.get("epsilon", usual)) <= 0


_DIVIDES = "divides by a number that can be 0"
_NO_EPSILON = "has no epsilon: it divides by 0 where all numbers are equal"
_TESTS: Mapping[str, Sequence[Test]] = {
    "Div": [(1, _zero, _DIVIDES)],
    "Mod": [(1, _zero, _DIVIDES)],
    "Reciprocal": [(0, _zero, _DIVIDES)],
    "QuantizeLinear": [(1, _zero, "divides by a scale that can be 0")],
    "Log": [
        (0, _negative, "takes the logarithm of a number that can be negative"),
        (0, _zero, "takes the logarithm of a number that can be 0"),
    ],
    "ReduceLogSum": [(0, lambda call, x: x.low <= 0, "takes the logarithm of a sum that can be 0 or negative")],
    "Sqrt": [(0, _negative, "takes the square root of a number that can be negative")],
    "Asin": [(0, _outside, "takes the arcsine of a number that can be outside −1 to 1")],
    "Acos": [(0, _outside, "takes the arccosine of a number that can be outside −1 to 1")],
    "Acosh": [(0, lambda call, x: x.low < 1, "takes the inverse hyperbolic cosine of a number that can be below 1")],
    "Atanh": [
        (
            0,
            lambda call, x: (x.low <= -1) | (x.high >= 1),
            "takes the inverse hyperbolic tangent of a number that can be −1, 1 or beyond",
        )
    ],
    "BatchNormalization": [
        (
            4,
            lambda call, x: x.low + float(call.attributes.get("epsilon", 1e-5)) <= 0,
            "divides by the root of a variance that is not positive, its epsilon included",
        )
    ],
    "LayerNormalization": [(0, _no_epsilon(1e-5), _NO_EPSILON)],
    "RMSNormalization": [(0, _no_epsilon(1e-5), "has no epsilon: it divides by 0 where all numbers are 0")],
    "InstanceNormalization": [(0, _no_epsilon(1e-5), _NO_EPSILON)],
    "GroupNormalization": [(0, _no_epsilon(1e-5), _NO_EPSILON)],
    "MeanVarianceNormalization": [(0, lambda call, x: True, _NO_EPSILON)],
}
_STEEP = {"Exp", "Sinh", "Cosh"}


def danger(call: Call, spans: Sequence[Span | None], kind: Kind) -> Danger:
    """Why an operator with finite operands in these spans can give something that is not finite."""
    for index, test, why in _TESTS.get(call.operator, ()):
        span = spans[index] if index < len(spans) else None
        if span is None:
            continue
        guilty = np.broadcast_to(test(call, span), span.low.shape)
        if guilty.any():
            return _blamed(why, index, span, guilty)
    if call.operator == "Pow" and len(spans) > 1 and spans[0] is not None and spans[1] is not None:
        return _power(spans[0], spans[1], kind)
    if call.operator == "ConstantOfShape":
        return Danger("fills a tensor with a number that is not finite", 0, -np.inf, np.inf)
    present = [(index, span) for index, span in enumerate(spans) if span is not None]
    index, span = max(present, key=lambda one: float(np.max(one[1].size)))
    if call.operator in _STEEP:
        return _blamed(f"overflows {kind.name}", index, span, span.size >= np.log(kind.most))
    return _blamed(f"can exceed the largest {kind.name}, {kind.most:.3g}", index, span, np.array(True), plain=True)


def _blamed(why: str, index: int, span: Span, guilty: Mask | bool, plain: bool = False) -> Danger:
    mask = np.broadcast_to(guilty, span.low.shape)
    mask = mask if mask.any() else np.ones_like(mask)
    return Danger(why, index, float(span.low[mask].min()), float(span.high[mask].max()), plain)


def _power(base: Span, exponent: Span, kind: Kind) -> Danger:
    whole = exponent.constant and bool((exponent.low == np.round(exponent.low)).all())
    if (base.low < 0).any() and not whole:
        return _blamed("raises a number that can be negative to a power that is not whole", 0, base, base.low < 0)
    if base.holds(0).any() and (exponent.low < 0).any():
        return _blamed("raises a number that can be 0 to a negative power", 0, base, base.holds(0))
    small = whole and float(np.max(exponent.size)) <= 4
    return _blamed(f"can exceed the largest {kind.name}, {kind.most:.3g}", 0, base, np.array(True), plain=small)


def outcomes(span: Span, kind: Kind) -> tuple[str, ...]:
    """What a result can be besides a finite number."""
    if not kind.real:
        return ("undefined",)
    named = (("NaN", span.nan), ("−∞", bool((span.low == -np.inf).any())), ("+∞", bool((span.high == np.inf).any())))
    return tuple(name for name, there in named if there)
