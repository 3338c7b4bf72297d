"""Affine forms: (c + w) − (c − w) is 2w, also when it was sliced, turned or put together on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from instar.numerics.domain import Floats, Kind, Span, added, fit, multiplied, sized
from instar.numerics.rearrange import MOVES, moving
from instar.numerics.trace import Book, Record

_DEEPEST = 12
_MOST_TERMS = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """Σ factor · tensor + constant, up to `error`, which is what rounding may have done to it."""

    terms: Mapping[int, Floats]
    constant: Floats
    error: Floats


def by_form(book: Book, numbers: Sequence[int], sign: float, span: Span, kind: Kind) -> Span | None:
    """A sum or difference, after what occurs in both operands has been taken together."""
    if not kind.real or span.nan or span.infinite or min(numbers) < 0:
        return None
    a, b = (_form(book, number, _DEEPEST) for number in numbers)
    if not a.terms.keys() & b.terms.keys():
        return None
    form = _sum(a, b, sign)
    total = Span(form.constant - form.error, form.constant + form.error)
    for number, factor in form.terms.items():
        total = added(total, multiplied(book.records[number].value.span, Span(factor, factor)))
    return None if total.nan or total.infinite else fit(total, kind)


def _sum(a: _Form, b: _Form, sign: float) -> _Form:
    terms = dict(a.terms)
    for number, factor in b.terms.items():
        terms[number] = terms[number] + sign * factor if number in terms else sign * factor
    return _Form(
        {number: factor for number, factor in terms.items() if factor.any()},
        a.constant + sign * b.constant,
        a.error + b.error,
    )


def _scaled(form: _Form, factor: Floats) -> _Form:
    return _Form(
        {number: one * factor for number, one in form.terms.items()},
        form.constant * factor,
        form.error * np.abs(factor),
    )


def _form(book: Book, number: int, depth: int) -> _Form:
    record = book.records[number]
    value, operator = record.value, record.call.operator
    zero = np.zeros(())
    alone = _Form({number: np.ones(())}, zero, zero)
    if value.span.constant:
        return _Form({}, value.span.low, zero)
    if not depth or not value.kind.real or value.span.nan or value.span.infinite:
        return alone
    form: _Form | None = None
    if operator in ("Add", "Sub"):
        a, b = (_form(book, n, depth - 1) for n in record.operands)
        form = _sum(a, b, -1.0 if operator == "Sub" else 1.0)
    elif operator == "Neg":
        form = _scaled(_form(book, record.operands[0], depth - 1), np.array(-1.0))
    elif operator in ("Mul", "Div"):
        left, right = (book.records[n].value for n in record.operands)
        if right.span.constant and (operator == "Mul" or right.span.low.all()):
            factor = right.span.low if operator == "Mul" else 1 / right.span.low
            form = _scaled(_form(book, left.number, depth - 1), factor)
        elif operator == "Mul" and left.span.constant:
            form = _scaled(_form(book, right.number, depth - 1), left.span.low)
    elif operator in MOVES and value.shape is not None:
        form = _moved(book, record, _form(book, record.operands[0], depth - 1))
    if form is None or not 0 < len(form.terms) <= _MOST_TERMS:
        return alone
    rounding = np.zeros(()) if operator in MOVES else value.span.size * 2 * value.kind.unit + value.kind.tiny
    return _Form(form.terms, form.constant, form.error + rounding)


def _moved(book: Book, record: Record, form: _Form) -> _Form | None:
    """The form of moved elements: the same move of each term."""
    first = book.records[record.operands[0]].value
    rest = [book.records[n].value if n >= 0 else None for n in record.operands[1:]]
    if first.shape is None or list(form.terms) == [first.number]:
        return None
    move = moving(record.call, first.shape, [first, *rest])
    if move is None:
        return None

    def carried(cells: Floats) -> Floats | None:
        full = sized(Span(cells, cells), first.shape)
        low, high = move[1](full.low, np.min), move[1](full.high, np.max)
        return low if np.array_equal(low, high) else None

    constant, error = carried(form.constant), carried(form.error)
    terms: dict[int, Floats] = {}
    for number, factor in form.terms.items():
        term, carried_factor = book.records[number].value, carried(factor)
        if term.shape != first.shape or carried_factor is None:
            return None
        terms[book.compute(record.call, [term, *rest])[0].number] = carried_factor
    return None if constant is None or error is None else _Form(terms, constant, error)
