"""Operators that put tensors together, make them from shapes and numbers, or change how numbers are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from instar.numerics.domain import (
    INT64,
    KINDS,
    OTHER,
    Call,
    Floats,
    Kind,
    NotKnown,
    Operands,
    Result,
    Shape,
    Span,
    Transfer,
    Value,
    added,
    along,
    count_of,
    divided,
    exactly,
    finite,
    hull,
    inferred,
    joined,
    multiplied,
    needed,
    negated,
    optional,
    sign_kept,
    sized,
    unbounded,
    widened,
)
from instar.numerics.linear import per_channel

_LONGEST = float(1 << 40)
"""A size that is not known is at least 1 and at most this."""


# --- from shapes and numbers -----------------------------------------------------------------------


def _shape(call: Call, operands: Operands) -> list[Result]:
    x = needed(operands, 0)
    if x.shape is None:
        return [(INT64, (None,), Span(np.array(0.0), np.array(_LONGEST)))]
    sizes = x.shape[slice(call.attributes.get("start", 0), call.attributes.get("end"))]
    least, most = (np.array([open if n is None else n for n in sizes], np.float64) for open in (1.0, _LONGEST))
    return [(INT64, (len(sizes),), Span(least, most))]


def _size(call: Call, operands: Operands) -> list[Result]:
    shape = needed(operands, 0).shape
    number = None if shape is None else count_of(shape)
    return [(INT64, (), Span(np.array(0.0), np.array(INT64.most)) if number is None else exactly(number))]


def _sizes(value: Value | None) -> Shape | None:
    """A shape that a tensor of whole numbers asks for."""
    if value is None or value.shape is None or None in value.shape:
        return None
    low, high = (np.broadcast_to(side, (value.shape[0] or 0,)) for side in (value.span.low, value.span.high))
    return tuple(int(a) if a == b else None for a, b in zip(low, high, strict=True))


def _filled(call: Call, operands: Operands) -> list[Result]:
    """ConstantOfShape. The reader has put its value where others have a number."""
    kind, number = call.attributes.get("value", (KINDS[1], 0.0))
    return [(kind, _sizes(needed(operands, 0)), exactly(number))]


def _range(call: Call, operands: Operands) -> list[Result]:
    start, limit, step = (needed(operands, index) for index in range(3))
    if all(value.span.constant for value in (start, limit, step)) and step.span.low.item():
        numbers = np.arange(start.span.low.item(), limit.span.low.item(), step.span.low.item(), dtype=np.float64)
        if numbers.size <= 1 << 20:
            return [(start.kind, (numbers.size,), Span(numbers, numbers))]
    ends = joined([start.span, limit.span])
    return [(start.kind, (None,), widened(ends, start.kind, ends.size) if start.kind.real else ends)]


def _eye(call: Call, operands: Operands) -> list[Result]:
    x = needed(operands, 0)
    return [(KINDS.get(call.attributes.get("dtype", 0), x.kind), x.shape, Span(np.array(0.0), np.array(1.0)))]


def _one_hot(call: Call, operands: Operands) -> list[Result]:
    return [(needed(operands, 2).kind, inferred(call), hull(needed(operands, 2).span, None))]


def _places(call: Call, operands: Operands) -> list[Result]:
    """NonZero and NonMaxSuppression: whole numbers, −1 for nothing."""
    return [(INT64, inferred(call), Span(np.array(-1.0), np.array(_LONGEST)))]


# --- from other tensors ----------------------------------------------------------------------------


def _concat(call: Call, operands: Operands) -> list[Result]:
    values = [value for value in operands if value is not None]
    spans, nan = [value.span for value in values], any(value.span.nan for value in values)
    if any(value.shape is None for value in values):
        whole = joined([hull(span, None) for span in spans])
        return [(values[0].kind, inferred(call), whole)]
    shapes = [value.shape or () for value in values]
    axis = call.attributes["axis"] % len(shapes[0])
    sizes = [shape[axis] for shape in shapes]
    total = None if None in sizes else sum(n or 0 for n in sizes)
    shape = tuple(
        total if place == axis else next((s[place] for s in shapes if s[place] is not None), None)
        for place in range(len(shapes[0]))
    )
    spans = [sized(span, each) for span, each in zip(spans, shapes, strict=True)]
    if total is None:
        return [(values[0].kind, shape, joined([hull(span, [axis]) for span in spans]))]
    parts = [int(np.max([span.low.shape[place] for span in spans])) for place in range(len(shape))]

    def laid(side: Callable[[Span], Floats]) -> Floats:
        return np.concatenate(
            [
                np.broadcast_to(side(span), (*parts[:axis], n or 0, *parts[axis + 1 :]))
                for span, n in zip(spans, sizes, strict=True)
            ],
            axis,
        )

    if prod(parts) // parts[axis] * total > 1 << 22:
        return [(values[0].kind, shape, joined([hull(span, [axis]) for span in spans]))]
    return [(values[0].kind, shape, Span(laid(lambda span: span.low), laid(lambda span: span.high), nan))]


def _pad(call: Call, operands: Operands) -> list[Result]:
    x, fill, where = needed(operands, 0), optional(operands, 2), optional(operands, 1)
    filled = fill.span if fill is not None else exactly(call.attributes.get("value", 0.0))
    constant = call.attributes.get("mode", b"constant") == b"constant"
    pads = call.attributes.get("pads") or (where.whole() if where is not None else None)
    if x.shape is None or pads is None or optional(operands, 3) is not None or len(pads) != 2 * len(x.shape):
        one = hull(x.span, None)
        return [(x.kind, inferred(call), joined([one, hull(filled, None)]) if constant else one)]
    rank = len(x.shape)
    span = hull(sized(x.span, x.shape), [axis for axis in range(rank) if pads[axis] or pads[axis + rank]])
    if constant and any(n > 0 for n in pads):
        span = joined([span, hull(filled, None)])
    shape = tuple(None if n is None else n + pads[axis] + pads[axis + rank] for axis, n in enumerate(x.shape))
    return [(x.kind, shape, span)]


def _resize(call: Call, operands: Operands) -> list[Result]:
    """Between neighbours; cubic interpolation goes beyond them, and places outside may be filled."""
    x = needed(operands, 0)
    shape = _resized(call, operands)
    same = x.shape is not None and shape is not None and len(x.shape) > 2 and x.shape[:2] == shape[:2]
    span = per_channel(x) if same else hull(x.span, None)
    mode = call.attributes.get("mode", b"nearest")
    if call.attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        span = joined([span, exactly(call.attributes.get("extrapolation_value", 0.0))])
    return [(x.kind, shape, span if mode == b"nearest" else _between(span, x.kind, mode == b"cubic"))]


def _between(span: Span, kind: Kind, cubic: bool) -> Span:
    """Weighted means, with negative weights too where they are cubic."""
    if span.nan or span.infinite:
        return Span(span.low, span.high, True)
    if cubic:
        return Span(-4 * span.size, 4 * span.size)
    return sign_kept(span, widened(span, kind))


def _resized(call: Call, operands: Operands) -> Shape | None:
    shape, guess = needed(operands, 0).shape, inferred(call)
    if shape is None or call.attributes.get("axes") or (guess is not None and None not in guess):
        return guess
    sizes, early = optional(operands, 3), call.operator == "Upsample" or call.version < 11
    factors = optional(operands, 1 if early else 2)
    if sizes is not None and (lengths := _sizes(sizes)) is not None and len(lengths) == len(shape):
        return tuple(shape[axis] if n is None and axis < 2 else n for axis, n in enumerate(lengths))
    times = factors.constant() if factors is not None else None
    if times is not None and times.size == len(shape):
        return tuple(
            n if f == 1 else None if n is None else int(np.floor(n * f))
            for n, f in zip(shape, times.ravel(), strict=True)
        )
    return guess


def _sampled(call: Call, operands: Operands) -> list[Result]:
    """GridSample and RoiAlign: between neighbours, 0 outside."""
    x, where = needed(operands, 0), needed(operands, 1).span
    span = _between(joined([hull(x.span, None), exactly(0)]), x.kind, b"cubic" in call.attributes.get("mode", b""))
    return [(x.kind, inferred(call), Span(span.low, span.high, span.nan or where.nan or where.infinite))]


def _triangle(call: Call, operands: Operands) -> list[Result]:
    x = needed(operands, 0)
    return [(x.kind, x.shape, joined([x.span, exactly(0)]))]


def _scattered(call: Call, operands: Operands) -> list[Result]:
    x, updates = needed(operands, 0), needed(operands, 2)
    if call.attributes.get("reduction", b"none") != b"none":
        raise NotKnown(f"{call.operator} with a reduction")
    return [(x.kind, x.shape, joined([hull(x.span, None), hull(updates.span, None)]))]


# --- quantised numbers -----------------------------------------------------------------------------


def _along(operands: Operands, index: int, call: Call) -> Span | None:
    """A scale or zero point: one number, or one per place of an axis."""
    x, operand = needed(operands, 0), optional(operands, index)
    if operand is None:
        return None
    if x.shape is None or operand.shape is None or len(operand.shape) != 1 or not x.shape:
        return hull(operand.span, None)
    rank = len(x.shape)
    return along(operand, call.attributes.get("axis", 1) % rank, rank)


def _dequantised(call: Call, operands: Operands) -> list[Result]:
    x, scale, zero = needed(operands, 0), _along(operands, 1, call), _along(operands, 2, call)
    assert scale is not None
    span = multiplied(x.span if zero is None else added(x.span, negated(zero)), scale)
    return [(needed(operands, 1).kind, x.shape, widened(span, KINDS[1]))]


def _quantised(call: Call, operands: Operands) -> list[Result]:
    """It saturates. Halves may be rounded either way, so one step of room."""
    x, scale, zero = needed(operands, 0), _along(operands, 1, call), _along(operands, 2, call)
    zero_point = optional(operands, 2)
    kind = zero_point.kind if zero_point is not None else KINDS.get(call.attributes.get("output_dtype", 0), KINDS[2])
    assert scale is not None
    if kind is OTHER or call.attributes.get("output_dtype", 2) not in KINDS:
        raise NotKnown("QuantizeLinear to a type that is not analysed")
    span = divided(x.span, scale)
    span = span if zero is None else added(span, zero)
    near = finite(Span(np.floor(span.low) - 1.0, np.ceil(span.high) + 1.0), kind)
    return [(kind, x.shape, Span(near.low, near.high, span.nan))]


def _stored(number: int | None) -> Transfer:
    """Results that are stored as whole numbers: they saturate, and are never NaN."""

    def transfer(call: Call, operands: Operands) -> list[Result]:
        kind = KINDS[6] if number is None else needed(operands, number).kind
        return [(kind, inferred(call), unbounded(kind))]

    return transfer


# fmt: off
MAKING: Mapping[str, Transfer] = {
    "Shape": _shape, "Size": _size, "ConstantOfShape": _filled, "Range": _range, "EyeLike": _eye, "OneHot": _one_hot,
    "NonZero": _places, "NonMaxSuppression": _places, "Concat": _concat, "Pad": _pad, "Resize": _resize,
    "Upsample": _resize, "GridSample": _sampled, "RoiAlign": _sampled, "Trilu": _triangle,
    "ScatterElements": _scattered, "ScatterND": _scattered, "Scatter": _scattered, "DequantizeLinear": _dequantised,
    "QuantizeLinear": _quantised, "QLinearConv": _stored(7), "QLinearMatMul": _stored(7), "ConvInteger": _stored(None),
    "MatMulInteger": _stored(None),
}
# fmt: on
