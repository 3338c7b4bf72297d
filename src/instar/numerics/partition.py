"""One tensor in several operands: its range is cut into pieces, so that x · sigmoid(x) is never far below 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from instar.numerics.domain import Call, Floats, Kind, Span, both
from instar.numerics.elementwise import ELEMENTWISE
from instar.numerics.trace import Book, evaluated

_PIECES = 24
"""A range is cut so often on each side of 0, and half as often evenly."""
_MOST_CELLS = 1 << 14
"""Parts of a tensor whose range is cut into pieces."""
_FARTHEST = 40
"""Records that are looked through for a shared one."""


def _elementwise_from(book: Book, number: int) -> set[int]:
    """The records that a tensor is made of element by element, itself among them; the nearest ones."""
    seen, waiting = {number}, [number]
    while waiting and len(seen) < _FARTHEST:
        record = book.records[waiting.pop(0)]
        if record.call.operator in ELEMENTWISE:
            more = [n for n in record.operands if n >= 0 and n not in seen]
            seen.update(more)
            waiting += more
    return seen


def in_pieces(book: Book, call: Call, numbers: Sequence[int], kind: Kind) -> Span | None:
    """If several operands are made of one tensor, element by element: its range is cut, and the results joined."""
    made = [_elementwise_from(book, number) for number in numbers if number >= 0]
    common = {n for i, one in enumerate(made) for n in one if any(n in other for other in made[:i])}
    common = {n for n in common if not book.records[n].value.span.constant}
    if not common:
        return None
    shared = max(common)
    value = book.records[shared].value
    if value.span.low.size > _MOST_CELLS:
        return None
    within = set().union(*made)
    rank = max(book.records[number].value.span.low.ndim for number in numbers if number >= 0)
    cells = (1,) * (rank - value.span.low.ndim) + value.span.low.shape
    cuts = _cuts(value.span.low.reshape(cells), value.span.high.reshape(cells), value.kind)
    known = {shared: Span(cuts[:-1], cuts[1:], value.span.nan)}

    def of(number: int) -> Span | None:
        if number < 0:
            return None
        if number not in known:
            record = book.records[number]
            span = record.value.span
            if number > shared and number in within and record.call.operator in ELEMENTWISE:
                span = both(span, evaluated(record.call, record.value.kind, [of(n) for n in record.operands]))
            known[number] = span
        return known[number]

    span = evaluated(call, kind, [of(number) for number in numbers])
    if span.low.ndim <= rank:
        return span
    return Span(span.low.min(0), span.high.max(0), span.nan)


def _cuts(low: Floats, high: Floats, kind: Kind) -> Floats:
    """Where the range of each part is cut: evenly, at 0, and ever finer towards it."""
    first, last = np.clip(low, kind.least, kind.most), np.clip(high, kind.least, kind.most)
    most = np.maximum(np.abs(first), np.abs(last))
    even = [first + (last - first) * share for share in np.linspace(0, 1, _PIECES // 2)]
    finest = np.maximum(np.log2(np.maximum(most, 1e-300)) + 20, 8)  # octaves down to a millionth
    fine = [sign * most * np.exp2(-finest * step / _PIECES) for step in range(_PIECES + 1) for sign in (-1, 1)]
    inner = np.clip(np.stack([*even, *fine, np.zeros_like(most)]), low, high)
    return np.sort(np.concatenate([inner, low[None], high[None]]), 0)
