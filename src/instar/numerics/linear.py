"""Weighted sums: matrix products and convolutions. Bounds are exact with respect to known weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from instar.numerics.domain import (
    KINDS,
    Array,
    Call,
    Floats,
    Kind,
    Operands,
    Result,
    Shape,
    Span,
    Transfer,
    Value,
    added,
    broadcast,
    count_of,
    exactly,
    hull,
    inferred,
    joined,
    multiplied,
    needed,
    optional,
    sized,
)

_MOST_PRODUCTS = 1 << 22
"""Products that a sum of products may spell out one by one."""


# --- sums as computers do them ---------------------------------------------------------------------


def lost(size: Floats, count: float, kind: Kind) -> Floats:
    """What rounding can take from a sum of so many terms, in any order; `size` is that of all terms together.

    Sums of 16-bit numbers are taken to be accumulated in 32 bits, as runtimes do.
    """
    return np.where(size == 0, 0.0, size * np.expm1(min(count, 1e15) * np.log1p(min(kind.unit, 2.0**-24))))


def _summed(low: Floats, high: Floats, size: Floats, count: float, kind: Kind) -> Span:
    """A sum of finite terms. Where a partial sum may be ±∞, two of them may be NaN."""
    room = lost(size, count, kind)
    over = size > max(kind.most, KINDS[1].most)
    return Span(np.where(over, -np.inf, low - room), np.where(over, np.inf, high + room), bool(over.any()))


def _rounded(span: Span, kind: Kind) -> Span:
    """One more rounding."""
    room = [np.where(np.isinf(side), 0.0, 2 * kind.unit * np.abs(side)) for side in (span.low, span.high)]
    return Span(span.low - room[0], span.high + room[1], span.nan)


def _anything(cells: Sequence[int] = ()) -> Span:
    return Span(np.full(cells, -np.inf), np.full(cells, np.inf), True)


def _unsound(*spans: Span) -> bool:
    return any(span.nan or span.infinite for span in spans)


def _some_products(values: Sequence[Value], count: int | None) -> Span:
    """So many products, one element of each tensor in each; None: nobody knows how many."""
    one = hull(values[0].span, None)
    for value in values[1:]:
        one = multiplied(one, hull(value.span, None))
    if one.nan or one.infinite:
        return _anything()
    if count is None:
        return Span(np.where(one.low < 0, -np.inf, one.low), np.where(one.high > 0, np.inf, one.high))
    return _summed(count * one.low, count * one.high, count * one.size, count + len(values), values[0].kind)


# --- matrices --------------------------------------------------------------------------------------


def _dot(a: Span, b: Span, count: int, kind: Kind) -> Span:
    """Matrix product of parts: (…, m, k) by (…, k, n); k stands for `count` terms."""
    if _unsound(a, b):
        return _anything((1, 1))
    if b.constant and b.low.ndim == 2:
        k = max(a.low.shape[-1], b.low.shape[0])
        weights = np.broadcast_to(b.low, (k, b.low.shape[1])) * (count / k)
        up, down = np.maximum(weights, 0), np.minimum(weights, 0)
        low, high = (np.broadcast_to(side, (*side.shape[:-1], k)) for side in (a.low, a.high))
        size = np.maximum(np.abs(low), np.abs(high)) @ (up - down)
        return _summed(low @ up + high @ down, high @ up + low @ down, size, count, kind)
    while prod(np.broadcast_shapes((*a.low.shape, 1), (*b.low.shape[:-2], 1, *b.low.shape[-2:]))) > _MOST_PRODUCTS:
        largest = max((n, which, axis) for which, span in enumerate((a, b)) for axis, n in enumerate(span.low.shape))
        a, b = (hull(a, [largest[2]]), b) if largest[1] == 0 else (a, hull(b, [largest[2]]))
    times = count / max(a.low.shape[-1], b.low.shape[-2])
    terms = multiplied(
        Span(a.low[..., None] * times, a.high[..., None] * times), Span(b.low[..., None, :, :], b.high[..., None, :, :])
    )
    return _summed(terms.low.sum(-2), terms.high.sum(-2), terms.size.sum(-2), count, kind)


def _matmul(call: Call, operands: Operands) -> list[Result]:
    a, b = needed(operands, 0), needed(operands, 1)
    if a.shape is None or b.shape is None:
        return [(a.kind, inferred(call), _some_products([a, b], None))]
    left, right = (1,) * (len(a.shape) == 1) + a.shape, b.shape + (1,) * (len(b.shape) == 1)
    x, w = sized(a.span, a.shape), sized(b.span, b.shape)
    x = x.each(lambda side: side.reshape(1, -1)) if len(a.shape) == 1 else x
    w = w.each(lambda side: side.reshape(-1, 1)) if len(b.shape) == 1 else w
    count = left[-1] if left[-1] is not None else right[-2]
    product = _some_products([a, b], None) if count is None else _dot(x, w, count, a.kind)
    shape = (*(broadcast([left[:-2], right[:-2]]) or ()), left[-2], right[-1])
    product = sized(product, shape)
    dropped = [axis for axis, rank in ((-2, len(a.shape)), (-1, len(b.shape))) if rank == 1]
    shape = tuple(n for axis, n in zip(range(-len(shape), 0), shape, strict=True) if axis not in dropped)
    return [(a.kind, shape, product.each(lambda side: side.squeeze(tuple(dropped))))]


def _gemm(call: Call, operands: Operands) -> list[Result]:
    a, b, c = needed(operands, 0), needed(operands, 1), optional(operands, 2)
    sides: list[tuple[Shape, Span]] = []
    for value, turned in ((a, call.attributes.get("transA", 0)), (b, call.attributes.get("transB", 0))):
        shape = value.shape or (None, None)
        span = sized(value.span, shape)
        sides.append((shape[::-1], span.each(np.transpose)) if turned else (shape, span))
    (left, x), (right, w) = sides
    count = left[1] if left[1] is not None else right[0]
    product = _some_products([a, b], None) if count is None else _dot(x, w, count, a.kind)
    if (alpha := call.attributes.get("alpha", 1.0)) != 1:
        product = _rounded(multiplied(product, exactly(alpha)), a.kind)
    if c is not None:
        product = _rounded(added(product, multiplied(c.span, exactly(call.attributes.get("beta", 1.0)))), a.kind)
    return [(a.kind, (left[0], right[1]), product)]


def _einsum(call: Call, operands: Operands) -> list[Result]:
    """Every result is a sum of products, one element of each operand in each."""
    values = [value for value in operands if value is not None]
    terms, arrow, after = call.attributes["equation"].decode().replace(" ", "").partition("->")
    sizes: dict[str, int | None] = {}
    for term, value in zip(terms.split(","), values, strict=True):
        if "." in terms or not arrow or value.shape is None:
            return [(values[0].kind, inferred(call), _some_products(values, None))]
        for letter, size in zip(term, value.shape, strict=True):
            sizes[letter] = size if sizes.get(letter) in (None, 1) else sizes[letter]
    count = count_of([size for letter, size in sizes.items() if letter not in after])
    return [(values[0].kind, tuple(sizes[letter] for letter in after), _some_products(values, count))]


# --- convolution -----------------------------------------------------------------------------------


def per_channel(value: Value) -> Span:
    """One part per image and channel."""
    if value.shape is None:
        return hull(value.span, None)
    span = sized(value.span, value.shape)
    return hull(span, range(2, span.low.ndim))


def _channels(value: Value, count: int) -> Span:
    """Bounds of each channel, over all images: (channels,)."""
    span = per_channel(value)
    if span.low.ndim > 1:
        span = hull(span, [0])
    return span.each(lambda side: np.broadcast_to(side.reshape(-1), (count,)))


def padded(call: Call) -> bool:
    return any(call.attributes.get("pads", ())) or call.attributes.get("auto_pad", b"")[:4] == b"SAME"


def slid(call: Call, shape: Shape | None, channels: int | None, kernel: Sequence[int]) -> Shape | None:
    """The shape of what a sliding window gives."""
    if shape is None:
        return inferred(call)
    rank = len(kernel)
    strides = call.attributes.get("strides") or [1] * rank
    dilations = call.attributes.get("dilations") or [1] * rank
    pads = call.attributes.get("pads") or [0] * 2 * rank
    sides: list[int | None] = []
    for axis, size in enumerate(shape[2:]):
        if size is None:
            sides.append(None)
        elif call.attributes.get("auto_pad", b"")[:4] == b"SAME":
            sides.append(-(-size // strides[axis]))
        else:
            room = size + pads[axis] + pads[axis + rank] - dilations[axis] * (kernel[axis] - 1) - 1
            number = room // strides[axis] + 1
            partial = call.attributes.get("ceil_mode", 0) and room % strides[axis]
            if partial and number * strides[axis] < size + pads[axis]:
                number += 1
            sides.append(max(number, 0))
    return (shape[0], channels, *sides)


def _conv(call: Call, operands: Operands) -> list[Result]:
    x, weights, bias = needed(operands, 0), needed(operands, 1), optional(operands, 2)
    if weights.shape is None or None in weights.shape:
        return [(x.kind, inferred(call), _some_products([x, weights], None))]
    outputs, inputs, *kernel = (n or 0 for n in weights.shape)
    groups = call.attributes.get("group", 1)
    seen = _channels(x, inputs * groups)
    if padded(call):
        seen = joined([seen, exactly(0)])
    w = sized(weights.span, weights.shape).each(
        lambda side: np.broadcast_to(side, (outputs, inputs, *kernel)).reshape(outputs, inputs, -1)
    )
    span = _with_bias(_taps(seen, w, groups, x.kind), bias, x.kind, len(kernel))
    return [(x.kind, slid(call, x.shape, outputs, kernel), span)]


def _taps(seen: Span, weights: Span, groups: int, kind: Kind) -> Span:
    """Weighted sums over input channels and taps, with weights (outputs, inputs, taps): bounds per output channel."""
    outputs, inputs, taps = weights.low.shape
    if _unsound(seen, weights):
        return _anything((outputs,))
    group = np.repeat(np.arange(groups), outputs // groups)
    low, high = (side.reshape(groups, inputs)[group] for side in (seen.low, seen.high))
    if weights.constant:
        up, down = np.maximum(weights.low, 0).sum(2), np.minimum(weights.low, 0).sum(2)
        size = ((up - down) * np.maximum(np.abs(low), np.abs(high))).sum(1)
        return _summed((up * low + down * high).sum(1), (up * high + down * low).sum(1), size, inputs * taps, kind)
    terms = multiplied(Span(low[..., None], high[..., None]), weights)
    return _summed(terms.low.sum((1, 2)), terms.high.sum((1, 2)), terms.size.sum((1, 2)), inputs * taps, kind)


def _with_bias(span: Span, bias: Value | None, kind: Kind, rank: int) -> Span:
    if bias is not None:
        span = _rounded(added(span, sized(bias.span, (span.low.size,))), kind)
    return span.each(lambda side: side.reshape(1, -1, *[1] * rank))


def _conv_transpose(call: Call, operands: Operands) -> list[Result]:
    """Every output sees the taps of one phase of the strides, and fewer at the border."""
    x, weights, bias = needed(operands, 0), needed(operands, 1), optional(operands, 2)
    kernel_values = weights.constant()
    if kernel_values is None:
        return [(x.kind, inferred(call), _some_products([x, weights], None))]
    inputs, each, *kernel = kernel_values.shape
    groups, rank = call.attributes.get("group", 1), len(kernel)
    strides = call.attributes.get("strides") or [1] * rank
    dilations = call.attributes.get("dilations") or [1] * rank
    seen = joined([_channels(x, inputs), exactly(0)])
    phases = np.zeros(kernel, int)
    for axis in range(rank):
        along = (np.arange(kernel[axis]) * dilations[axis]) % strides[axis]
        phases = phases * strides[axis] + along.reshape([-1 if other == axis else 1 for other in range(rank)])
    turned: Array = kernel_values.reshape(groups, inputs // groups, each, -1).transpose(0, 2, 1, 3)
    turned = turned.reshape(groups * each, inputs // groups, -1)
    sums = [exactly(0)]
    for phase in np.unique(phases):
        taps = turned[..., phases.ravel() == phase]
        sums.append(_taps(seen, Span(taps, taps), groups, x.kind))
    return [(x.kind, inferred(call), _with_bias(joined(sums), bias, x.kind, rank))]


WEIGHTED: Mapping[str, Transfer] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
}
