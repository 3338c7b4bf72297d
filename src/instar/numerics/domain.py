"""What a tensor can hold: intervals over a partition of its elements, rounded outward as its number type rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
Shape = tuple[int | None, ...]
Fold = Callable[..., Floats]
"""`np.min` for lower bounds, `np.max` for upper ones."""

_MOST_CELLS = 1 << 15
"""A tensor that depends on an input is cut into so many parts at most."""


# --- number types ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """A number type. `unit` is the relative error of one rounding (0: whole numbers), `tiny` the least normal number:
    smaller results may be flushed to 0."""

    name: str
    least: float
    most: float
    unit: float = 0.0
    tiny: float = 0.0
    storage: str | None = None
    """numpy's name, where numpy can round to it."""

    @property
    def real(self) -> bool:
        return self.unit > 0


def _real(name: str, most: float, bits: int, tiny: float, storage: str | None) -> Kind:
    return Kind(name, -most, most, 2.0**-bits, tiny, storage)


def _whole(name: str) -> Kind:
    limits = np.iinfo(name)
    return Kind(name, float(limits.min), float(limits.max))


BOOL, INT64 = Kind("bool", 0, 1), _whole("int64")
OTHER = Kind("other", -np.inf, np.inf, 2.0**-2)
# fmt: off
KINDS: Mapping[int, Kind] = {
    1: _real("float32", float(np.finfo(np.float32).max), 24, float(np.finfo(np.float32).tiny), "float32"),
    2: _whole("uint8"), 3: _whole("int8"), 4: _whole("uint16"), 5: _whole("int16"), 6: _whole("int32"), 7: INT64,
    9: BOOL, 10: _real("float16", 65504.0, 11, 2.0**-14, "float16"),
    11: _real("float64", float(np.finfo(np.float64).max), 53, float(np.finfo(np.float64).tiny), "float64"),
    12: _whole("uint32"), 13: _whole("uint64"), 16: _real("bfloat16", 2.0**127 * (2 - 2.0**-7), 8, 2.0**-126, None),
    21: Kind("uint4", 0, 15), 22: Kind("int4", -8, 7),
}
# fmt: on
"""By ONNX's number of the type. Others (strings, complex numbers, 8-bit floats) are `OTHER`."""


# --- intervals -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Bounds of some numbers, ±∞ among them; `nan` says that some may be NaN as well."""

    low: Floats
    high: Floats
    nan: bool = False

    @property
    def infinite(self) -> bool:
        return bool(np.isinf(self.low).any() or np.isinf(self.high).any())

    @property
    def constant(self) -> bool:
        return not self.nan and (self.low is self.high or bool((self.low == self.high).all()))

    @property
    def size(self) -> Floats:
        """The largest absolute value."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def each(self, change: Callable[[Floats], Floats]) -> Span:
        """The same change of both bounds."""
        return Span(change(self.low), change(self.high), self.nan)

    def holds(self, number: float) -> npt.NDArray[np.bool_]:
        return (self.low <= number) & (self.high >= number)


def fit(span: Span, kind: Kind) -> Span:
    """The numbers of a type that results in this span are rounded to."""
    if not kind.real:  # whole numbers wrap around
        low, high = np.floor(span.low), np.ceil(span.high)
        wraps = (low < kind.least) | (high > kind.most)
        return Span(np.where(wraps, kind.least, low), np.where(wraps, kind.most, high), span.nan)
    low, high = _down(span.low, kind), -_down(-span.high, kind)
    low = np.where((low > 0) & (low < kind.tiny), 0.0, low)
    high = np.where((high < 0) & (high > -kind.tiny), 0.0, high)
    low = np.where(low < kind.least, -np.inf, np.minimum(low, kind.most))
    high = np.where(high > kind.most, np.inf, np.maximum(high, kind.least))
    return Span(low, high, span.nan)


def _down(bound: Floats, kind: Kind) -> Floats:
    if kind.storage is None:
        return bound - np.abs(bound) * 2 * kind.unit
    if kind.storage == "float64":
        return bound  # computed in the same type: rounding keeps order
    stored = bound.astype(kind.storage)
    below = np.nextafter(stored, np.array(-np.inf, kind.storage))
    return np.where(stored.astype(np.float64) > bound, below, stored).astype(np.float64)


def widened(span: Span, kind: Kind, scale: float | Floats = 0.0) -> Span:
    """Room for library functions, which err by a few units in the last place, of their result or of `scale`."""

    def room(bound: Floats) -> Floats:
        return np.where(np.isinf(bound), 0.0, 16 * kind.unit * np.abs(bound) + 8 * kind.unit * scale)

    return Span(span.low - room(span.low), span.high + room(span.high), span.nan)


def sign_kept(span: Span, wide: Span) -> Span:
    """What was widened, less what room for rounding added on the other side of 0."""
    return Span(
        np.where(span.low >= 0, np.maximum(wide.low, 0), wide.low),
        np.where(span.high <= 0, np.minimum(wide.high, 0), wide.high),
        wide.nan,
    )


def finite(span: Span, kind: Kind) -> Span:
    """What is left of a span if nothing in it is NaN or ±∞."""
    return Span(np.clip(span.low, kind.least, kind.most), np.clip(span.high, kind.least, kind.most))


def joined(spans: Sequence[Span]) -> Span:
    """All numbers of some spans."""
    return Span(
        reduce(np.minimum, [s.low for s in spans]),
        reduce(np.maximum, [s.high for s in spans]),
        any(s.nan for s in spans),
    )


def both(a: Span, b: Span | None) -> Span:
    """What lies in two spans of the same numbers."""
    if b is None:
        return a
    low, high = np.maximum(a.low, b.low), np.minimum(a.high, b.high)
    apart = low > high  # of nothing but NaN, both say what they like
    return Span(np.where(apart, a.low, low), np.where(apart, a.high, high), a.nan and b.nan)


def negated(a: Span) -> Span:
    return Span(-a.high, -a.low, a.nan)


def added(a: Span, b: Span) -> Span:
    low, high = a.low + b.low, a.high + b.high
    nan = a.nan or b.nan or _clash(a, b) or _clash(b, a)
    return Span(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high), nan)


def _clash(a: Span, b: Span) -> bool:
    return bool(((a.high == np.inf) & (b.low == -np.inf)).any())


def multiplied(a: Span, b: Span) -> Span:
    corners = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    if a.infinite or b.infinite:
        nan = a.nan or b.nan or bool((a.holds(0) & np.isinf(b.size)).any() or (b.holds(0) & np.isinf(a.size)).any())
        corners = [np.where(np.isnan(c), 0.0, c) for c in corners]
    else:
        nan = a.nan or b.nan
    return Span(reduce(np.minimum, corners), reduce(np.maximum, corners), nan)


def divided(a: Span, b: Span, signed: bool = True) -> Span:
    """Quotients. A divisor of 0 has either sign, and so have the quotients; unless `signed`, it has that of the other
    divisors."""
    zero = b.holds(0)
    low = np.where(b.low == 0, 0.0, b.low)
    high = np.where(b.high == 0, -0.0, b.high)
    corners = [p / q for p in (a.low, a.high) for q in (low, high)]
    nan = a.nan or b.nan or bool((zero & a.holds(0)).any() or (np.isinf(a.size) & np.isinf(b.size)).any())
    corners = [np.where(np.isnan(c), 0.0, c) for c in corners]  # 0/0 and ∞/∞, whose other neighbours are corners too
    both = zero & (signed | ((b.low < 0) & (b.high > 0)))
    return Span(
        np.where(both, -np.inf, reduce(np.minimum, corners)), np.where(both, np.inf, reduce(np.maximum, corners)), nan
    )


# --- tensors ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is known of a tensor.

    The arrays of `span` have the tensor's rank (none, where it is not known) and in each axis its size or 1: elements
    that share a number are one part of the partition. `taint` names what may have made it NaN or ±∞, and `usual` is
    what it holds if nothing was; `number` is its identity: tensors with one number are equal, element by element;
    `layers` counts the weighted sums between it and the inputs, −1 if it is made of constants alone.
    """

    kind: Kind
    shape: Shape | None
    span: Span
    taint: frozenset[int] = frozenset()
    number: int = -1
    layers: int = 0
    usual: Span | None = None

    def finite(self) -> Span:
        """What it holds if nothing made it NaN or ±∞."""
        return self.usual or finite(self.span, self.kind)

    def constant(self) -> Array | None:
        """Its elements, where they are known."""
        if self.shape is None or None in self.shape or not self.span.constant or self.span.infinite:
            return None
        return np.broadcast_to(self.span.low, tuple(n or 0 for n in self.shape))

    def whole(self) -> list[int] | None:
        """Its elements as whole numbers."""
        known = self.constant()
        return None if known is None else [int(v) for v in known.ravel()]


@dataclass(frozen=True, slots=True)
class Call:
    """A node: what it does, and what is known of its results without looking at its operands."""

    operator: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    version: int = 17
    results: int = 1
    kinds: Sequence[Kind] = ()
    shapes: Sequence[Shape | None] = ()


Operands = Sequence["Value | None"]
"""None: an operand that may be left out, and is."""
Result = tuple[Kind, "Shape | None", Span]
Transfer = Callable[[Call, Operands], list[Result]]


def optional(operands: Operands, index: int) -> Value | None:
    return operands[index] if len(operands) > index else None


def needed(operands: Operands, index: int) -> Value:
    """An operand that cannot be left out."""
    operand = optional(operands, index)
    if operand is None:
        raise ValueError(f"operand {index + 1} is missing")
    return operand


def inferred(call: Call, index: int = 0) -> Shape | None:
    """A result's shape as ONNX's own shape inference knows it."""
    return call.shapes[index] if len(call.shapes) > index else None


def along(vector: Value, axis: int, rank: int) -> Span:
    """A vector along one axis of so many."""
    span = sized(vector.span, (None,) if vector.shape is None else vector.shape)
    return span.each(lambda side: side.reshape([-1 if other == axis else 1 for other in range(rank)]))


def count_of(sizes: Sequence[int | None]) -> int | None:
    """How many elements there are; None where a size is not known."""
    return None if None in sizes else prod(n or 0 for n in sizes)


def exactly(number: float) -> Span:
    bound = np.array(float(number))
    return Span(bound, bound)


class NotKnown(Exception):
    """An operator, or a use of one, that is not analysed here; says what."""


def unbounded(kind: Kind) -> Span:
    """Anything."""
    if kind.real:
        return Span(np.array(-np.inf), np.array(np.inf), True)
    return Span(np.array(kind.least), np.array(kind.most))


def sized(span: Span, shape: Shape | None) -> Span:
    """Arrays of the shape's rank, in axes of unknown size 1."""
    if shape is None:
        return hull(span, None)
    cells = np.broadcast_shapes(span.low.shape, span.high.shape)
    if 0 in cells:  # no elements: any number stands for them
        return sized(exactly(0), shape)
    if len(cells) > len(shape):
        return sized(hull(span, None), shape)
    wanted = (1,) * (len(shape) - len(cells)) + cells
    low = np.broadcast_to(span.low, cells).reshape(wanted)
    high = low if span.low is span.high else np.broadcast_to(span.high, cells).reshape(wanted)
    folded = tuple(axis for axis, (n, size) in enumerate(zip(wanted, shape, strict=True)) if n not in (1, size))
    return hull(Span(low, high, span.nan), folded) if folded else Span(low, high, span.nan)


def hull(span: Span, axes: Sequence[int] | None) -> Span:
    """One part along these axes; `None`: one number for all."""
    if axes is None:
        return Span(np.asarray(np.min(span.low)), np.asarray(np.max(span.high)), span.nan)
    return Span(np.min(span.low, tuple(axes), keepdims=True), np.max(span.high, tuple(axes), keepdims=True), span.nan)


def capped(span: Span) -> Span:
    """A partition that is not too fine."""
    while span.low.size > _MOST_CELLS:
        span = hull(span, [int(np.argmax(span.low.shape))])
    return span


def broadcast(shapes: Sequence[Shape | None]) -> Shape | None:
    """The shape of an elementwise result."""
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max((len(shape) for shape in known), default=0)
    sizes: list[int | None] = []
    for axis in range(-rank, 0):
        there = {shape[axis] for shape in known if len(shape) >= -axis} - {1}
        if len(there - {None}) > 1:
            raise ValueError(f"shapes {known} do not go together")
        numbers = there - {None}
        sizes.append(next(iter(numbers)) if numbers else None if there else 1)
    return tuple(sizes)
