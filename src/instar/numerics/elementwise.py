"""Operators that work element by element: where their results lie, given where their operands do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import ge, gt

import numpy as np
import numpy.typing as npt

from instar.numerics.domain import (
    BOOL,
    KINDS,
    Call,
    Floats,
    Kind,
    NotKnown,
    Span,
    added,
    divided,
    exactly,
    finite,
    joined,
    multiplied,
    negated,
    widened,
)

Transfer = Callable[..., Span]
"""Of a call, the type it computes in, and a span per operand (None: not given)."""

Curve = Callable[[Call, Floats], Floats]


# --- one operand -----------------------------------------------------------------------------------


def _plain(function: Callable[[Floats], npt.ArrayLike]) -> Curve:
    return lambda call, x: np.asarray(function(x), np.float64)


def _rising(
    curve: Curve,
    start: float = -np.inf,
    end: float = np.inf,
    floor: float = -np.inf,
    ceiling: float = np.inf,
    scale: float = 0.0,
) -> Transfer:
    """A function that never falls, defined from `start` to `end`, with results from `floor` to `ceiling`.

    `scale` is the size of the numbers inside it: what is lost there is lost of small results too.
    """

    def transfer(call: Call, kind: Kind, x: Span) -> Span:
        nan = x.nan or bool((x.low < start).any() or (x.high > end).any())
        ends = Span(curve(call, np.clip(x.low, start, end)), curve(call, np.clip(x.high, start, end)), nan)
        span = ends if call.operator in EXACT else widened(ends, kind, scale)
        return Span(np.clip(span.low, floor, ceiling), np.clip(span.high, floor, ceiling), nan)

    return transfer


def _falling(transfer: Transfer) -> Transfer:
    """f(x) where the transfer is that of f(−x)."""
    return lambda call, kind, x: transfer(call, kind, negated(x))


def _valley(
    curve: Curve, bottom: Callable[[Call], float], scale: float = 0.0, floor: float = -np.inf, vanishes: bool = False
) -> Transfer:
    """A function that falls up to its bottom and rises from there. One that `vanishes` is computed as x · f(x) with an
    f that is 0 far below: −∞ · 0 is NaN."""

    def transfer(call: Call, kind: Kind, x: Span) -> Span:
        ends = curve(call, x.low), curve(call, x.high)
        least = curve(call, np.clip(np.asarray(bottom(call)), x.low, x.high))
        nan = x.nan or (vanishes and bool((x.low == -np.inf).any()))
        span = Span(least, np.maximum(*ends), nan)
        span = span if call.operator in EXACT else widened(span, kind, scale)
        return span.each(lambda side: np.maximum(side, floor))

    return transfer


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def _limit(x: Floats, factor: Floats) -> Floats:
    """x · factor, where the factor vanishes faster than x grows."""
    return np.where(factor == 0, 0.0, x * factor)


def _erf(x: Floats) -> Floats:
    from scipy.special import erf

    return np.asarray(erf(x), np.float64)


def _elu(alpha: float, gamma: float = 1.0) -> Curve:
    def curve(call: Call, x: Floats) -> Floats:
        height = call.attributes.get("alpha", alpha)
        steep = height if call.operator == "Celu" else 1.0
        return np.asarray(
            call.attributes.get("gamma", gamma) * np.where(x > 0, x, height * np.expm1(np.minimum(x, 0) / steep))
        )

    return curve


def _scaled_elu(transfer: Transfer) -> Transfer:
    """With a negative alpha it is no longer rising; nobody does that, and its results are bounded all the same."""

    def careful(call: Call, kind: Kind, x: Span) -> Span:
        if call.attributes.get("alpha", 1.0) > 0 and call.attributes.get("gamma", 1.0) > 0:
            return transfer(call, kind, x)
        most = abs(call.attributes.get("gamma", 1.0)) * np.maximum(x.size, abs(call.attributes.get("alpha", 1.0)))
        return widened(Span(-most, most, x.nan), kind)

    return careful


def _gelu(call: Call, x: Floats) -> Floats:
    if call.attributes.get("approximate", b"none") == b"tanh":
        inner = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
        return _limit(x, 0.5 * (1 + inner))
    return _limit(x, 0.5 * (1 + _erf(x / np.sqrt(2))))


def _bent(x: Span, slope: Span) -> Span:
    """x where it is positive, slope · x where it is negative."""
    right = Span(np.maximum(x.low, 0), np.maximum(x.high, 0), x.nan)
    left = multiplied(Span(np.minimum(x.low, 0), np.minimum(x.high, 0), x.nan), slope)
    crosses = (x.low < 0) & (x.high > 0)
    low = np.where(crosses, np.minimum(left.low, 0), np.where(x.high <= 0, left.low, right.low))
    high = np.where(crosses, np.maximum(left.high, right.high), np.where(x.high <= 0, left.high, right.high))
    return Span(low, high, x.nan or left.nan)


def _swish_bottom(call: Call) -> float:
    alpha = float(call.attributes.get("alpha", 1.0))
    if alpha <= 0:
        raise NotKnown("Swish with an alpha that is not positive")
    return -1.2784645 / alpha


def _softsign(call: Call, kind: Kind, x: Span) -> Span:
    """x / (1 + |x|), which is NaN for ±∞."""
    ends = widened(finite(x, kind).each(lambda side: side / (1 + np.abs(side))), kind)
    return Span(ends.low, ends.high, x.nan or x.infinite)


def _hard_sigmoid(call: Call, kind: Kind, x: Span) -> Span:
    alpha, beta = exactly(call.attributes.get("alpha", 0.2)), exactly(call.attributes.get("beta", 0.5))
    return widened(added(multiplied(x, alpha), beta), kind, 1.0).each(lambda side: np.clip(side, 0, 1))


def _cos(shift: float) -> Transfer:
    def transfer(call: Call, kind: Kind, x: Span) -> Span:
        low, high = np.clip(x.low, -1e6, 1e6), np.clip(x.high, -1e6, 1e6)

        def meets(where: float) -> npt.NDArray[np.bool_]:  # some where + 2πk in the interval, or just beside it
            turns = (low - where - 1e-6) / (2 * np.pi), (high - where + 1e-6) / (2 * np.pi)
            return (np.floor(turns[1]) >= np.ceil(turns[0])) | (x.size > 1e6)

        ends = np.cos(low - shift), np.cos(high - shift)
        span = widened(Span(np.minimum(*ends), np.maximum(*ends)), kind, 1.0)
        return Span(
            np.where(meets(shift + np.pi), -1.0, np.maximum(span.low, -1)),
            np.where(meets(shift), 1.0, np.minimum(span.high, 1)),
            x.nan or x.infinite,
        )

    return transfer


def _tan(call: Call, kind: Kind, x: Span) -> Span:
    branch = np.floor(x.low / np.pi + 0.5), np.floor(x.high / np.pi + 0.5)
    apart = (branch[0] != branch[1]) | (x.size > 1e6)
    ends = widened(Span(np.tan(x.low), np.tan(x.high)), kind)
    most = 1e20  # no float is as near to a pole as that
    return Span(np.where(apart, -most, ends.low), np.where(apart, most, ends.high), x.nan or x.infinite)


def _shrink(call: Call, kind: Kind, x: Span) -> Span:
    bias = abs(float(call.attributes.get("bias", 0.0)))
    return Span(np.minimum(x.low - bias, 0), np.maximum(x.high + bias, 0), x.nan)


def _cast(call: Call, kind: Kind, x: Span) -> Span:
    if kind is BOOL:
        return Span(np.where(x.holds(0), 0.0, 1.0), np.where((x.low == 0) & (x.high == 0) & (not x.nan), 0.0, 1.0))
    if kind.real:
        return x
    low, high = np.trunc(x.low), np.trunc(x.high)
    outside = (low < kind.least) | (high > kind.most) | x.nan  # what a runtime does then is its own business
    return Span(np.where(outside, kind.least, low), np.where(outside, kind.most, high))


# --- several operands ------------------------------------------------------------------------------


def _total(call: Call, kind: Kind, *spans: Span) -> Span:
    total = reduce(added, spans)
    if len(spans) < 3:
        return total
    wide = widened(total, kind, reduce(np.add, [s.size for s in spans]))
    positive = reduce(np.logical_and, [s.low >= 0 for s in spans])
    return Span(np.where(positive, np.maximum(wide.low, 0), wide.low), wide.high, wide.nan)


def _quotient(call: Call, kind: Kind, a: Span, b: Span) -> Span:
    if kind.real:
        return divided(a, b)
    zero = b.holds(0)
    left = Span(np.where(zero, np.minimum(b.low, -1), b.low), np.where(zero, -1.0, b.high))
    right = Span(np.where(zero, 1.0, b.low), np.where(zero, np.maximum(b.high, 1), b.high))
    quotient = joined([divided(a, left), divided(a, right)])
    return Span(np.trunc(quotient.low), np.trunc(quotient.high), quotient.nan or bool(zero.any()))


def _power(call: Call, kind: Kind, base: Span, exponent: Span) -> Span:
    one = float(exponent.low.flat[0])
    if exponent.constant and one.is_integer() and bool((exponent.low == one).all()):
        return _whole_power(kind, base, int(one))
    nan = base.nan or exponent.nan or bool((base.low < 0).any() and not _whole(exponent))
    positive = Span(np.maximum(base.low, 0), np.maximum(base.high, 0))
    power = _corner_powers(positive, exponent)
    if (base.low < 0).any():
        mirrored = _corner_powers(Span(np.maximum(-base.high, 0), np.maximum(-base.low, 0)), exponent)
        both = joined([power, mirrored, negated(mirrored)])
        power = Span(np.where(base.low < 0, both.low, power.low), np.where(base.low < 0, both.high, power.high))
    wide = widened(power, kind)
    low = np.where(base.low >= 0, np.maximum(wide.low, 0), wide.low)
    poles = base.holds(0) & (exponent.low < 0)  # and 0 has two signs
    return Span(np.where(poles, -np.inf, low), np.where(poles, np.inf, wide.high), nan)


def _whole(exponent: Span) -> bool:
    return exponent.constant and bool((exponent.low == np.round(exponent.low)).all())


def _corner_powers(base: Span, exponent: Span) -> Span:
    corners = [np.power(b, e) for b in (base.low, base.high) for e in (exponent.low, exponent.high)]
    corners.append(np.where((base.low <= 1) & (base.high >= 1) | exponent.holds(0), 1.0, corners[0]))
    corners = [np.where(np.isnan(c), 1.0, c) for c in corners]
    return Span(reduce(np.minimum, corners), reduce(np.maximum, corners))


def _whole_power(kind: Kind, base: Span, exponent: int) -> Span:
    if exponent < 0:
        return divided(exactly(1), _whole_power(kind, base, -exponent))
    power = base.each(lambda side: np.power(side, float(exponent)))
    if exponent % 2 == 0:
        least = np.where(base.holds(0), 0.0, np.minimum(power.low, power.high))
        power = Span(least, np.maximum(power.low, power.high), base.nan)
    if exponent <= 2:
        return power
    wide = widened(power, kind)
    return Span(np.where(power.low >= 0, np.maximum(wide.low, 0), wide.low), wide.high, base.nan)


def _remainder(call: Call, kind: Kind, a: Span, b: Span) -> Span:
    least, most = np.minimum(b.low, 0), np.maximum(b.high, 0)
    if call.attributes.get("fmod", 0):  # the sign is that of the dividend
        reach = np.minimum(a.size, b.size)
        least, most = np.where(a.low < 0, -reach, 0.0), np.where(a.high > 0, reach, 0.0)
    return Span(least, most, a.nan or b.nan or a.infinite or bool(b.holds(0).any()))


def _larger(call: Call, kind: Kind, *spans: Span) -> Span:
    """The larger of a number and NaN is either."""
    nan = any(s.nan for s in spans)
    return Span(
        reduce(np.minimum if nan else np.maximum, [s.low for s in spans]),
        reduce(np.maximum, [s.high for s in spans]),
        nan,
    )


def _smaller(call: Call, kind: Kind, *spans: Span) -> Span:
    return negated(_larger(call, kind, *map(negated, spans)))


def _clip(call: Call, kind: Kind, x: Span, least: Span | None = None, most: Span | None = None) -> Span:
    for name, combine, bound in (("min", _larger, least), ("max", _smaller, most)):
        if bound is None and name in call.attributes:
            bound = exactly(call.attributes[name])
        if bound is not None:
            x = combine(call, kind, x, bound)
    return x


def _where(call: Call, kind: Kind, chosen: Span, a: Span, b: Span) -> Span:
    always, never = chosen.low >= 1, chosen.high <= 0
    return Span(
        np.where(always, a.low, np.where(never, b.low, np.minimum(a.low, b.low))),
        np.where(always, a.high, np.where(never, b.high, np.maximum(a.high, b.high))),
        (a.nan and not bool(never.all())) or (b.nan and not bool(always.all())),
    )


def _truth(least: npt.ArrayLike, most: npt.ArrayLike, *spans: Span) -> Span:
    """A comparison with NaN is false."""
    least = np.asarray(least) & (not any(s.nan for s in spans))
    return Span(least.astype(np.float64), np.asarray(most).astype(np.float64))


def _compared(test: Callable[[Floats, Floats], npt.ArrayLike]) -> Transfer:
    return lambda call, kind, a, b: _truth(test(a.low, b.high), test(a.high, b.low), a, b)


def _equal(call: Call, kind: Kind, a: Span, b: Span) -> Span:
    same = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return _truth(same, (a.low <= b.high) & (b.low <= a.high), a, b)


def _swapped(transfer: Transfer) -> Transfer:
    return lambda call, kind, a, b: transfer(call, kind, b, a)


def _xor(call: Call, kind: Kind, a: Span, b: Span) -> Span:
    known = (a.low == a.high) & (b.low == b.high)
    return Span(np.where(known, np.abs(a.low - b.low), 0.0), np.where(known, np.abs(a.low - b.low), 1.0))


# --- the table -------------------------------------------------------------------------------------

COMPARISONS = {"Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"}
# fmt: off
EXACT = COMPARISONS | {
    "Relu", "Floor", "Ceil", "Round", "Sign", "Abs", "Neg", "Max", "Min", "Clip", "Where", "ThresholdedRelu",
}
# fmt: on
"""No rounding, so no room for it."""

_CURVES: Mapping[str, Transfer] = {
    "Exp": _rising(_plain(lambda x: np.exp(x)), floor=0),
    "Log": _rising(_plain(lambda x: np.log(x)), start=0, scale=1),
    "Sqrt": _rising(_plain(np.sqrt), start=0, floor=0),
    "Sigmoid": _rising(_plain(_sigmoid), floor=0, scale=1),  # onnxruntime's goes a little beyond 1, and so does tanh
    "Tanh": _rising(_plain(np.tanh), scale=1),
    "Erf": _rising(_plain(_erf), floor=-1, ceiling=1, scale=1),
    "Softplus": _rising(_plain(lambda x: np.logaddexp(0, x)), floor=0, scale=1),
    "Elu": _scaled_elu(_rising(_elu(1.0), scale=1)),
    "Celu": _scaled_elu(_rising(_elu(1.0), scale=1)),
    "Selu": _scaled_elu(_rising(_elu(1.67326319217681884765625, 1.05070102214813232421875), scale=2)),
    "Floor": _rising(_plain(np.floor)),
    "Ceil": _rising(_plain(np.ceil)),
    "Round": _rising(_plain(np.round)),
    "Sign": _rising(_plain(np.sign)),
    "Atan": _rising(_plain(np.arctan)),
    "Asinh": _rising(_plain(np.arcsinh), scale=1),
    "Sinh": _rising(_plain(lambda x: np.sinh(x)), scale=1),
    "Asin": _rising(_plain(np.arcsin), start=-1, end=1),
    "Acosh": _rising(_plain(np.arccosh), start=1, floor=0, scale=1),
    "Atanh": _rising(_plain(lambda x: np.arctanh(x)), start=-1, end=1, scale=1),
}
RISING = {"Relu", *_CURVES} - {"Elu", "Celu", "Selu"}
"""A larger operand never gives a smaller result."""

ELEMENTWISE: Mapping[str, Transfer] = {
    **_CURVES,
    "Neg": lambda call, kind, x: negated(x),
    "Relu": lambda call, kind, x: _larger(call, kind, x, exactly(0)),
    "Acos": _falling(_rising(_plain(lambda x: np.arccos(-x)), start=-1, end=1, floor=0, scale=1)),
    "Abs": _valley(_plain(np.abs), lambda call: 0.0),
    "Cosh": _valley(_plain(lambda x: np.cosh(x)), lambda call: 0.0, floor=1),
    "Gelu": _valley(_gelu, lambda call: -0.7517, scale=1, vanishes=True),
    "Swish": _valley(
        lambda call, x: _limit(x, _sigmoid(call.attributes.get("alpha", 1.0) * x)),
        _swish_bottom,
        scale=1,
        vanishes=True,
    ),
    "Mish": _valley(
        _plain(lambda x: _limit(x, np.tanh(np.logaddexp(0, x)))), lambda call: -1.1924, scale=4, vanishes=True
    ),
    "HardSwish": _valley(
        _plain(lambda x: _limit(x, np.clip(x / 6 + 0.5, 0, 1))), lambda call: -1.5, scale=4, vanishes=True
    ),
    "Softsign": _softsign,
    "LeakyRelu": lambda call, kind, x: _bent(x, exactly(call.attributes.get("alpha", 0.01))),
    "Shrink": _shrink,
    "ThresholdedRelu": lambda call, kind, x: Span(np.minimum(x.low, 0), np.maximum(x.high, 0), x.nan),
    "HardSigmoid": _hard_sigmoid,
    "Cos": _cos(0.0),
    "Sin": _cos(np.pi / 2),
    "Tan": _tan,
    "Reciprocal": lambda call, kind, x: divided(exactly(1), x),
    "Cast": _cast,
    "Add": _total,
    "Sum": _total,
    "Mean": lambda call, kind, *spans: divided(_total(call, kind, *spans), exactly(len(spans))),
    "Sub": lambda call, kind, a, b: added(a, negated(b)),
    "Mul": lambda call, kind, a, b: multiplied(a, b),
    "Div": _quotient,
    "Pow": _power,
    "Mod": _remainder,
    "Max": _larger,
    "Min": _smaller,
    "Clip": _clip,
    "Where": _where,
    "PRelu": lambda call, kind, x, slope: _bent(x, slope),
    "Greater": _compared(gt),
    "Less": _swapped(_compared(gt)),
    "GreaterOrEqual": _compared(ge),
    "LessOrEqual": _swapped(_compared(ge)),
    "Equal": _equal,
    "And": _smaller,
    "Or": _larger,
    "Xor": _xor,
    "Not": lambda call, kind, x: Span(1 - x.high, 1 - x.low),
    "IsNaN": lambda call, kind, x: Span(np.zeros_like(x.low), np.full_like(x.low, float(x.nan))),
    "IsInf": lambda call, kind, x: Span(np.zeros_like(x.low), np.isinf(x.size).astype(np.float64)),
}


def result_kind(call: Call, kinds: list[Kind | None]) -> Kind | None:
    """The type of a result; None: one that is not known here."""
    if call.operator in COMPARISONS:
        return BOOL
    if call.operator == "Cast":
        return KINDS.get(int(call.attributes["to"]))
    if call.operator == "Where":
        return kinds[1]
    return kinds[0]
