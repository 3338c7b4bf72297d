"""Operators that make one number of many: reductions, pooling, softmax and normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log, prod, sqrt

import numpy as np
import numpy.typing as npt

from instar.numerics.domain import (
    INT64,
    KINDS,
    Call,
    Kind,
    NotKnown,
    Operands,
    Result,
    Shape,
    Span,
    Transfer,
    added,
    along,
    count_of,
    divided,
    exactly,
    hull,
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
from instar.numerics.elementwise import ELEMENTWISE
from instar.numerics.linear import lost, padded, per_channel, slid

Floats = npt.NDArray[np.float64]
Reduce = Callable[[Span, Sequence[int], int | None, Kind], Span]
"""Of parts, axes, the number of elements along these (None: not known) and a type: one part along the axes."""


# --- reductions ------------------------------------------------------------------------------------


def reduced_axes(call: Call, operands: Operands) -> list[int] | None:
    """The axes that a reduction goes over; None where they are not known."""
    x, axes_operand = needed(operands, 0), optional(operands, 1)
    if x.shape is None:
        return None
    axes = call.attributes.get("axes")
    if axes is None and axes_operand is not None:
        axes = axes_operand.whole()
        if axes is None:
            return None
    if not axes:
        return [] if call.attributes.get("noop_with_empty_axes", 0) else list(range(len(x.shape)))
    return sorted(axis % len(x.shape) for axis in axes)


def _reduced(function: Reduce) -> Transfer:
    def transfer(call: Call, operands: Operands) -> list[Result]:
        x, axes = needed(operands, 0), reduced_axes(call, operands)
        keep = call.attributes.get("keepdims", 1)
        if x.shape is None or axes is None:
            span = function(_row(x.span), [0], None, x.kind)
            return [(x.kind, (None,) * len(x.shape) if x.shape is not None and keep else None, span)]
        count = count_of([x.shape[axis] for axis in axes])
        if count == 0:
            raise NotKnown("a reduction of nothing")
        span = function(sized(x.span, x.shape), axes, count, x.kind)
        if keep:
            return [(x.kind, tuple(1 if axis in axes else n for axis, n in enumerate(x.shape)), span)]
        shape = tuple(n for axis, n in enumerate(x.shape) if axis not in axes)
        return [(x.kind, shape, span.each(lambda side: side.squeeze(tuple(axes))))]

    return transfer


def _row(span: Span) -> Span:
    """All numbers of a span as one part along one axis."""
    return hull(span, None).each(lambda side: side.reshape(1))


def _total(span: Span, axes: Sequence[int], count: int | None, kind: Kind) -> Span:
    """A sum. One of numbers that are never negative is never below the largest of them, however it is rounded."""
    along = tuple(axes)
    if count is None:
        one = hull(span, axes)
        return Span(np.where(one.low < 0, -np.inf, one.low), np.where(one.high > 0, np.inf, one.high), span.nan)
    times = count / max(prod(span.low.shape[axis] for axis in axes), 1)
    low, high, size = (times * side.sum(along, keepdims=True) for side in (span.low, span.high, span.size))
    least, most = span.low.min(along, keepdims=True), span.high.max(along, keepdims=True)
    below, above = (_room(times * np.abs(side), along, count, kind) for side in (span.low, span.high))
    over = size > max(kind.most, KINDS[1].most) if kind.real else np.zeros(size.shape, bool)
    up, down = over & (most > 0), over & (least < 0)
    total = Span(
        np.where(down, -np.inf, low - below), np.where(up, np.inf, high + above), span.nan or bool((up & down).any())
    )
    return Span(
        np.where(least >= 0, np.maximum(total.low, span.low.max(along, keepdims=True)), total.low),
        np.where(most <= 0, np.minimum(total.high, span.high.min(along, keepdims=True)), total.high),
        total.nan,
    )


def _room(ends: Floats, axes: tuple[int, ...], count: int, kind: Kind) -> Floats:
    """What rounding can take from a sum below the sum of all lower ends, or add to that of all upper ends.

    Rounding keeps order: larger terms, added in the same order, have no smaller sum. So the ends alone say how far it
    is off, and it is not where they are whole numbers that the type can count up to.
    """
    size = ends.sum(axes, keepdims=True)
    whole = (ends == np.rint(ends)).all(axes, keepdims=True) & _countable(size, kind)
    return np.where(whole | np.isinf(size) | (not axes), 0.0, lost(size, count, kind))


def _countable(numbers: Floats, kind: Kind) -> npt.NDArray[np.bool_]:
    """Which numbers are whole, and so small that the type has them and all between them and 0."""
    return np.asarray((numbers == np.rint(numbers)) & (np.abs(numbers) * kind.unit <= 1))


def _mean(span: Span, axes: Sequence[int], count: int | None, kind: Kind) -> Span:
    if count is None:
        return _rounded_mean(hull(span, axes), kind)
    quotient = divided(_total(span, axes, count, kind), exactly(max(count, 1)))
    room = [
        np.where(_countable(end, kind) | np.isinf(end), 0.0, 2 * kind.unit * np.abs(end))
        for end in (quotient.low, quotient.high)
    ]
    return Span(quotient.low - room[0], quotient.high + room[1], quotient.nan)


def _rounded_mean(span: Span, kind: Kind, count: int = 1 << 40) -> Span:
    """Of so many numbers that all lie in the span."""
    room = np.where(np.isinf(span.size), 0.0, np.minimum(lost(span.size, count, kind), span.size))
    return sign_kept(span, Span(span.low - room, span.high + room, span.nan or span.infinite))


def _largest(span: Span, axes: Sequence[int], count: int | None, kind: Kind) -> Span:
    """The largest of some numbers and NaN is any of them."""
    least = span.low.min(tuple(axes), keepdims=True) if span.nan else span.low.max(tuple(axes), keepdims=True)
    return Span(least, span.high.max(tuple(axes), keepdims=True), span.nan)


def _least(span: Span, axes: Sequence[int], count: int | None, kind: Kind) -> Span:
    return negated(_largest(negated(span), axes, count, kind))


def _product(span: Span, axes: Sequence[int], count: int | None, kind: Kind) -> Span:
    if count is None:
        return unbounded(kind)
    times = count / max(prod(span.low.shape[axis] for axis in axes), 1)
    low, high, size = (
        np.power(side.prod(tuple(axes), keepdims=True), times)
        for side in (np.maximum(span.low, 0), np.maximum(span.high, 0), span.size)
    )
    positive = span.low.min(tuple(axes), keepdims=True) >= 0
    product = Span(np.where(positive, low, -size), np.where(positive, high, size), span.nan or span.infinite)
    wide = Span(product.low - lost(size, count, kind), product.high + lost(size, count, kind), product.nan)
    return Span(np.where(positive, np.maximum(wide.low, 0), wide.low), wide.high, wide.nan)


def _of(operator: str, function: Reduce) -> Reduce:
    """Reduce what an elementwise operator makes of the elements."""
    return lambda span, axes, count, kind: function(_made(operator, kind, span), axes, count, kind)


def _then(function: Reduce, operator: str) -> Reduce:
    return lambda span, axes, count, kind: _made(operator, kind, function(span, axes, count, kind))


def _squares(function: Reduce) -> Reduce:
    return lambda span, axes, count, kind: function(_made("Pow", kind, span, exactly(2)), axes, count, kind)


def _made(operator: str, kind: Kind, *spans: Span) -> Span:
    return ELEMENTWISE[operator](Call(operator), kind, *spans)


def _log_sum_exp(span: Span, axes: Sequence[int], count: int | None, kind: Kind) -> Span:
    """Runtimes subtract the largest element first."""
    largest = _largest(span, axes, count, kind)
    more = 44.0 if count is None else log(max(count, 1))
    return widened(Span(largest.low, largest.high + more, span.nan or span.infinite), kind, largest.size + more)


# --- along one axis --------------------------------------------------------------------------------


def _axis(call: Call, shape: Shape, usual: int) -> int:
    return int(call.attributes.get("axis", usual)) % max(len(shape), 1)


def _softmax(call: Call, operands: Operands) -> list[Result]:
    """The operators themselves are stable. What is far below the largest element is 0, and log 0 is avoided."""
    x = needed(operands, 0)
    bad = x.span.nan or x.span.infinite
    if x.shape is None:
        axes, span, count = [0], _row(x.span), None
    else:
        axis = _axis(call, x.shape, -1 if call.version >= 13 else 1)
        axes = [axis] if call.version >= 13 else list(range(axis, len(x.shape)))  # once the rest was flattened
        span, count = sized(x.span, x.shape), count_of([x.shape[axis] for axis in axes])
    most = span.high.max(tuple(axes), keepdims=True)
    number = float(count or 1e12)
    if call.operator == "LogSoftmax":
        gap = span.low - most - log(number)
        return [(x.kind, x.shape, widened(Span(gap, np.zeros_like(gap), bad), x.kind, span.size))]
    low = np.exp(span.low - most) / number
    low = np.zeros_like(low) if bad else low * (1 - 1e-3)
    return [(x.kind, x.shape, Span(low, np.full_like(low, 1 + 16 * x.kind.unit), bad))]


def _position(call: Call, operands: Operands) -> list[Result]:
    """ArgMax and ArgMin."""
    x = needed(operands, 0)
    if x.shape is None:
        return [(INT64, None, Span(np.array(0.0), np.array(INT64.most)))]
    axis = _axis(call, x.shape, 0)
    size = x.shape[axis]
    kept = (1,) if call.attributes.get("keepdims", 1) else ()
    last = INT64.most if size is None else max(size - 1.0, 0.0)
    return [(INT64, (*x.shape[:axis], *kept, *x.shape[axis + 1 :]), Span(np.array(0.0), np.array(last)))]


def _top(call: Call, operands: Operands) -> list[Result]:
    x, k = needed(operands, 0), optional(operands, 1)
    number = k.whole() if k is not None else [int(call.attributes.get("k", 0))]
    if x.shape is None:
        return [(x.kind, None, hull(x.span, None)), (INT64, None, unbounded(INT64))]
    axis = _axis(call, x.shape, -1)
    shape = (*x.shape[:axis], number[0] if number else None, *x.shape[axis + 1 :])
    place = Span(np.array(0.0), np.array(float((x.shape[axis] or 1 << 53) - 1)))
    return [(x.kind, shape, hull(sized(x.span, x.shape), [axis])), (INT64, shape, place)]


def _running_sum(call: Call, operands: Operands) -> list[Result]:
    x, axis_operand = needed(operands, 0), optional(operands, 1)
    axis = axis_operand.whole() if axis_operand is not None else None
    if x.shape is None or axis is None:
        return [(x.kind, x.shape, _total(_row(joined([x.span, exactly(0)])), [0], None, x.kind))]
    some = joined([sized(x.span, x.shape), exactly(0)])
    return [(x.kind, x.shape, _total(some, [axis[0] % len(x.shape)], x.shape[axis[0]], x.kind))]


# --- pooling ---------------------------------------------------------------------------------------


def _max_pool(call: Call, operands: Operands) -> list[Result]:
    x = needed(operands, 0)
    shape = slid(call, x.shape, x.shape[1] if x.shape else None, call.attributes["kernel_shape"])
    return [(x.kind, shape, per_channel(x)), (INT64, shape, unbounded(INT64))]


def _average_pool(call: Call, operands: Operands) -> list[Result]:
    x, kernel = needed(operands, 0), call.attributes["kernel_shape"]
    shape = slid(call, x.shape, x.shape[1] if x.shape else None, kernel)
    seen = per_channel(x)
    if padded(call) or call.attributes.get("ceil_mode", 0):
        seen = joined([seen, exactly(0)])
    return [(x.kind, shape, _rounded_mean(seen, x.kind, prod(kernel)))]


def _global_pool(call: Call, operands: Operands) -> list[Result]:
    x = needed(operands, 0)
    shape = x.shape and (*x.shape[:2], *[1] * (len(x.shape) - 2))
    if call.operator == "GlobalMaxPool":
        return [(x.kind, shape, per_channel(x))]
    count = count_of(x.shape[2:]) if x.shape else None
    return [(x.kind, shape, _rounded_mean(per_channel(x), x.kind, count or 1 << 40))]


# --- normalisation ---------------------------------------------------------------------------------


def _batch_norm(call: Call, operands: Operands) -> list[Result]:
    if call.attributes.get("training_mode", 0) or call.results > 1:
        raise NotKnown("BatchNormalization in training mode")
    x = needed(operands, 0)
    rank = len(x.shape) if x.shape is not None else 4
    scale, bias, mean, variance = (along(needed(operands, index), min(1, rank - 1), rank) for index in (1, 2, 3, 4))
    spread = _made("Sqrt", x.kind, added(variance, exactly(call.attributes.get("epsilon", 1e-5))))
    factor = divided(scale, spread)
    span = added(multiplied(added(x.span, negated(mean)), factor), bias)
    size = (x.span.size + mean.size) * factor.size + bias.size
    return [(x.kind, x.shape, widened(span, x.kind, np.where(np.isfinite(size), size, 0.0)))]


def _normalised(span: Span, count: int | None, epsilon: float, kind: Kind, centred: bool) -> Span:
    """(x − mean) / √(variance + ε), or x / √(mean square + ε): of n numbers none is beyond √n."""
    reach = span.high - span.low if centred else span.size
    most = np.full_like(reach, sqrt(count) if count else np.inf)
    if epsilon > 0:
        most = np.minimum(most, reach / sqrt(epsilon))
    squares = reach * reach * (count or 1)
    nan = span.nan or span.infinite or epsilon <= 0 or bool((squares > max(kind.most, KINDS[1].most)).any())
    return widened(Span(-most, most, nan), kind, most)


def _instance_norm(call: Call, operands: Operands) -> list[Result]:
    x = needed(operands, 0)
    if x.shape is None:
        raise NotKnown(f"{call.operator} of a tensor of unknown rank")
    epsilon, rank, sides = call.attributes.get("epsilon", 1e-5), len(x.shape), x.shape[2:]
    channel_spans = per_channel(x)
    if call.operator == "GroupNormalization":
        if call.version < 21:  # the scale is one per group, then
            raise NotKnown("GroupNormalization before operator set 21")
        channels = x.shape[1]
        sides = (*sides, None if channels is None else channels // call.attributes["num_groups"])
        channel_spans = hull(channel_spans, [1])
    unit = _normalised(channel_spans, count_of(sides), epsilon, x.kind, True)
    scale, bias = (along(needed(operands, index), 1, rank) for index in (1, 2))
    return [(x.kind, x.shape, widened(added(multiplied(unit, scale), bias), x.kind, bias.size))]


def _layer_norm(call: Call, operands: Operands) -> list[Result]:
    x, scale, bias = needed(operands, 0), needed(operands, 1), optional(operands, 2)
    if x.shape is None:
        raise NotKnown(f"{call.operator} of a tensor of unknown rank")
    axes = range(_axis(call, x.shape, -1), len(x.shape))
    span, epsilon = hull(sized(x.span, x.shape), axes), call.attributes.get("epsilon", 1e-5)
    centred = call.operator == "LayerNormalization"
    unit = _normalised(span, count_of([x.shape[axis] for axis in axes]), epsilon, x.kind, centred)
    scaled = multiplied(unit, scale.span)
    if bias is not None:
        scaled = widened(added(scaled, bias.span), x.kind, bias.span.size)
    some = (*x.shape[: axes[0]], *[1] * len(axes))
    most = np.inf if epsilon <= 0 else 1.001 / sqrt(epsilon)
    return [
        (x.kind, x.shape, scaled),
        (x.kind, some, _rounded_mean(span, x.kind)),
        (x.kind, some, Span(np.array(0.0), np.array(most))),
    ]


def _mean_variance_norm(call: Call, operands: Operands) -> list[Result]:
    """No ε: a constant image divides by 0."""
    x = needed(operands, 0)
    if x.shape is None:
        raise NotKnown(f"{call.operator} of a tensor of unknown rank")
    axes = [axis % len(x.shape) for axis in call.attributes.get("axes", (0, 2, 3))]
    span = hull(sized(x.span, x.shape), axes)
    return [(x.kind, x.shape, _normalised(span, count_of([x.shape[axis] for axis in axes]), 0.0, x.kind, True))]


def _lp_norm(call: Call, operands: Operands) -> list[Result]:
    """x / ‖x‖, and 0 for nothing but zeros."""
    x = needed(operands, 0)
    over = bool((x.span.size**2 > x.kind.most).any())
    most = 1 + 64 * x.kind.unit
    return [(x.kind, x.shape, Span(np.array(-most), np.array(most), x.span.nan or x.span.infinite or over))]


def _local_response(call: Call, operands: Operands) -> list[Result]:
    x = needed(operands, 0)
    alpha, beta, bias = (
        float(call.attributes.get(name, usual)) for name, usual in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    if alpha < 0 or beta < 0:
        raise NotKnown("LRN with a negative alpha or beta")
    most = np.asarray(bias + alpha * np.max(x.span.size) ** 2)
    divisor = _made("Pow", x.kind, Span(np.array(bias), most), exactly(beta))
    over = bool((x.span.size**2 > x.kind.most).any())
    span = widened(divided(x.span, divisor), x.kind)
    return [(x.kind, x.shape, Span(span.low, span.high, span.nan or over))]


# fmt: off
REDUCTIONS: Mapping[str, Transfer] = {
    "ReduceSum": _reduced(_total), "ReduceMean": _reduced(_mean), "ReduceMax": _reduced(_largest),
    "ReduceMin": _reduced(_least), "ReduceProd": _reduced(_product), "ReduceL1": _reduced(_of("Abs", _total)),
    "ReduceL2": _reduced(_then(_squares(_total), "Sqrt")), "ReduceSumSquare": _reduced(_squares(_total)),
    "ReduceLogSum": _reduced(_then(_total, "Log")), "ReduceLogSumExp": _reduced(_log_sum_exp), "Softmax": _softmax,
    "LogSoftmax": _softmax, "ArgMax": _position, "ArgMin": _position, "TopK": _top, "CumSum": _running_sum,
    "MaxPool": _max_pool, "AveragePool": _average_pool, "GlobalAveragePool": _global_pool,
    "GlobalMaxPool": _global_pool, "BatchNormalization": _batch_norm, "InstanceNormalization": _instance_norm,
    "GroupNormalization": _instance_norm, "LayerNormalization": _layer_norm, "RMSNormalization": _layer_norm,
    "MeanVarianceNormalization": _mean_variance_norm, "LpNormalization": _lp_norm, "LRN": _local_response,
}
# fmt: on
