"""What is known of one tensor because of another: this keeps right graphs quiet that intervals alone would blame.

Every tensor has a record of how it was made, and equal tensors share it. So `x − max(x)` is seen to be at most 0, its
exponentials to add up to at least 1, and `x / √(mean(x²) + ε)` to be no larger than √n.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from instar.numerics.affine import by_form
from instar.numerics.domain import Call, Floats, Kind, Span, Value, both, exactly
from instar.numerics.elementwise import ELEMENTWISE, RISING
from instar.numerics.partition import in_pieces
from instar.numerics.reductions import reduced_axes
from instar.numerics.trace import Book, Record, evaluated


def refined(book: Book, call: Call, operands: Sequence[Value | None], span: Span, kind: Kind) -> Span:
    """A result's span, with all that the records add."""
    numbers = [-1 if value is None else value.number for value in operands]
    if call.operator in ELEMENTWISE and len(numbers) > 1:
        span = both(span, in_pieces(book, call, numbers, kind))
        if call.operator in ("Add", "Sub"):
            span = both(span, by_form(book, numbers, -1.0 if call.operator == "Sub" else 1.0, span, kind))
        if call.operator == "Sub":
            span = _ordered(book, numbers, span)
        if call.operator in ("Div", "Mul"):
            span = _covered(book, call, numbers, span, kind)
    elif call.operator in ("ReduceSum", "ReduceMax", "ReduceMean"):
        span = _peaked(book, call, operands, span)
    return span


# --- order -----------------------------------------------------------------------------------------


def _values(book: Book, record: Record) -> list[Value | None]:
    return [book.records[n].value if n >= 0 else None for n in record.operands]


def _reduction(book: Book, number: int) -> tuple[str, int, tuple[int, ...]] | None:
    """Operator, operand and axes, of a reduction that lies beside its operand: with its axes kept, or put back."""
    record = book.records[number]
    back: list[int] | None = None
    if record.call.operator == "Expand":
        return _reduction(book, record.operands[0])
    if record.call.operator == "Unsqueeze":
        axes_operand = _values(book, record)[1] if len(record.operands) > 1 else None
        back = record.call.attributes.get("axes") or (axes_operand.whole() if axes_operand is not None else None)
        record = book.records[record.operands[0]]
    if not record.call.operator.startswith("Reduce"):
        return None
    axes = reduced_axes(record.call, _values(book, record))
    shape = book.records[record.operands[0]].value.shape
    kept = bool(record.call.attributes.get("keepdims", 1))
    if not axes or shape is None or kept != (back is None):
        return None
    if back is not None and sorted(axis % len(shape) for axis in back) != axes:
        return None
    return record.call.operator, record.operands[0], tuple(axes)


def _bounds(book: Book, number: int, reduction: str, choice: str) -> set[int]:
    """Tensors that are nowhere above (ReduceMax, Max) or nowhere below (ReduceMin, Min) this one."""
    record = book.records[number]
    if record.value.span.nan:  # what is the largest number and NaN?
        return set()
    reduced = _reduction(book, number)
    if reduced is not None and reduced[0] == reduction:
        return {reduced[1]}
    if record.call.operator == choice:
        return {n for n in record.operands if n >= 0}
    if choice == "Max" and record.call.operator in ("Relu", "Abs"):
        return {record.operands[0]}
    return set()


def _ordered(book: Book, numbers: Sequence[int], span: Span) -> Span:
    """x − max(x) ≤ 0 ≤ x − min(x), max(x) − min(x) and max(x) − x: rounding keeps order."""
    a, b = numbers
    above, below = ({number, *_bounds(book, number, "ReduceMax", "Max")} for number in (a, b))
    under, over = ({number, *_bounds(book, number, "ReduceMin", "Min")} for number in (a, b))
    low = np.maximum(span.low, 0) if above & over else span.low  # b ≤ some x ≤ a
    high = np.minimum(span.high, 0) if under & below else span.high
    return Span(low, high, span.nan)


def _peaked(book: Book, call: Call, operands: Sequence[Value | None], span: Span) -> Span:
    """Sums over numbers one of which is known to be large: Σ exp(x − max(x)) ≥ 1."""
    x, axes = operands[0], reduced_axes(call, operands)
    if x is None or not axes or x.shape is None:
        return span
    peak = _peak(book, x.number, tuple(axes))
    if peak is None or x.span.nan or (call.operator != "ReduceMax" and (x.span.low < 0).any()):
        return span
    if call.operator == "ReduceMean":
        sizes = [x.shape[axis] for axis in axes]
        peak = 0.0 if None in sizes else peak / float(np.prod([n or 1 for n in sizes])) * (1 - 1e-3)
    return Span(np.minimum(np.maximum(span.low, peak), span.high), span.high, span.nan)


def _peak(book: Book, number: int, axes: tuple[int, ...]) -> float | None:
    """A number that is reached somewhere along these axes, wherever one stands in the others."""
    record = book.records[number]
    operator, kind = record.call.operator, record.value.kind
    if operator == "Sub":
        reduced = _reduction(book, record.operands[1])
        return 0.0 if reduced == ("ReduceMax", record.operands[0], axes) else None
    if operator == "Softmax" and record.value.shape is not None and len(axes) == 1:
        size = record.value.shape[axes[0]]
        axis = record.call.attributes.get("axis", -1) % len(record.value.shape)
        return (1 - 1e-3) / size if size and axis == axes[0] and record.call.version >= 13 else None
    if operator in ("Mul", "Div") and _positive_number(book, record.operands[1]):
        spans = [book.records[record.operands[1]].value.span]
    elif operator in RISING and len(record.operands) == 1:
        spans = []
    else:
        return None
    inner = _peak(book, record.operands[0], axes)
    return None if inner is None else float(np.min(evaluated(record.call, kind, [exactly(inner), *spans]).low))


def _positive_number(book: Book, number: int) -> bool:
    span = book.records[number].value.span
    return span.constant and span.low.size == 1 and float(span.low.item()) > 0


# --- norms -----------------------------------------------------------------------------------------


def _covered(book: Book, call: Call, numbers: Sequence[int], span: Span, kind: Kind) -> Span:
    """x / ‖x‖, x / Σx, x / √(mean(x²) + ε): bounded by what the divisor is made of."""
    pairs = (
        [(numbers[0], numbers[1])]
        if call.operator == "Div"
        else [
            (a, book.records[b].operands[0])
            for a, b in (numbers, numbers[::-1])
            if book.records[b].call.operator == "Reciprocal"
        ]
    )
    for x, divisor in pairs:
        under = book.records[divisor].value.span
        if span.nan or not (under.low > 0).all():
            continue
        for (covered, way), factor in _covering(book, divisor, 8).items():
            if covered == x and way != "square":
                # Squares of very small numbers vanish, and roots do not bring them back.
                swallowed = np.sqrt(kind.tiny) / under.low if way == "root" else 0.0
                most = np.maximum(factor * 1.01, swallowed)
                span = both(span, Span(-most, most))
    return span


def _covering(book: Book, number: int, depth: int) -> dict[tuple[int, str], float]:
    """Tensors x that this one covers, with a factor: everywhere |x| ("itself", or as the "root" of a square) or x²
    ("square") is at most this one times the factor."""
    record = book.records[number]
    operator, operands = record.call.operator, record.operands
    factors: dict[tuple[int, str], float] = {}
    if not depth or record.value.span.nan:
        return factors
    reduction = _reduction(book, number)
    if reduction is not None:
        name, x, axes = reduction
        value = book.records[x].value
        sizes = [value.shape[axis] for axis in axes] if value.shape is not None else [None]
        if None in sizes:
            return factors
        count = float(np.prod([n or 1 for n in sizes]))
        slack = 1 + count * 2.0**-22  # long sums are rounded often
        if name in ("ReduceL1", "ReduceL2", "ReduceSumSquare"):
            factors[x, {"1": "itself", "2": "root"}.get(name[-1], "square")] = slack
        elif name in ("ReduceSum", "ReduceMax", "ReduceMean") and (value.span.low >= 0).all():
            factor = count * slack if name == "ReduceMean" else slack
            factors |= {key: factor * one for key, one in _covering(book, x, depth - 1).items()}
            factors[x, "itself"] = factor
    elif operator == "Abs":
        factors[operands[0], "itself"] = 1.0
    elif (operator == "Mul" and operands[0] == operands[1]) or (operator == "Pow" and _is(book, operands[1], 2)):
        factors[operands[0], "square"] = 1.0
    elif operator == "Sqrt" or (operator == "Pow" and _is(book, operands[1], 0.5)):
        factors |= {
            (x, "root"): float(np.sqrt(one))
            for (x, way), one in _covering(book, operands[0], depth - 1).items()
            if way == "square"
        }
    elif operator == "Max" or (
        operator == "Add" and not any((book.records[n].value.span.low < 0).any() for n in operands)
    ):
        for n in operands:
            factors |= _covering(book, n, depth - 1)
    elif operator == "Expand" or (
        operator == "Clip" and (len(operands) < 3 or operands[2] < 0) and "max" not in record.call.attributes
    ):
        factors |= _covering(book, operands[0], depth - 1)
    return factors


def _is(book: Book, number: int, wanted: float) -> bool:
    span = book.records[number].value.span
    return span.constant and bool((span.low == wanted).all())


# --- chosen by a comparison ------------------------------------------------------------------------


def chosen(book: Book, values: Sequence[Value | None]) -> list[Span | None]:
    """The spans of `Where(x > c, x, y)`: x only where it is above c, y = x only where it is not."""
    condition, *branches = values
    spans = [value.span if value is not None else None for value in values]
    if condition is None:
        return spans
    record = book.records[condition.number]
    operands_of = _values(book, record)
    for index, branch in enumerate(branches):
        if branch is None or not operands_of or operands_of[0] is None:
            continue
        if record.call.operator in ("IsNaN", "IsInf") and branch.number == operands_of[0].number and index == 1:
            span = branch.span
            spans[2] = (
                Span(span.low, span.high)
                if record.call.operator == "IsNaN"
                else Span(np.maximum(span.low, branch.kind.least), np.minimum(span.high, branch.kind.most), span.nan)
            )
        elif record.call.operator in _TESTS and operands_of[1] is not None:
            for place, other in ((0, operands_of[1]), (1, operands_of[0])):
                if branch.number == operands_of[place].number:  # type: ignore[union-attr]
                    rising, strict = _TESTS[record.call.operator]
                    wanted = rising == (place == 0) if index == 0 else rising != (place == 0)
                    spans[index + 1] = _side(branch, other.span, wanted, strict == (index == 0))
    return spans


_TESTS = {
    "Greater": (True, True),
    "GreaterOrEqual": (True, False),
    "Less": (False, True),
    "LessOrEqual": (False, False),
}


def _side(value: Value, limit: Span, above: bool, strict: bool) -> Span:
    """The numbers of a tensor above a limit, or below it."""
    span, kind = value.span, value.kind
    storage = np.dtype(kind.storage or "float64")

    def beyond(bound: Floats, towards: float) -> Floats:
        if not strict:
            return bound
        if not kind.real:
            return np.asarray(bound + np.sign(towards))
        return np.asarray(np.nextafter(bound.astype(storage), np.array(towards, storage)), np.float64)

    if above:
        return Span(np.minimum(np.maximum(span.low, beyond(limit.low, np.inf)), span.high), span.high, span.nan)
    return Span(span.low, np.maximum(np.minimum(span.high, beyond(limit.high, -np.inf)), span.low), span.nan)
