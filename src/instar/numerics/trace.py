"""How each tensor was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from instar.numerics.domain import Call, Kind, Span, Value, fit
from instar.numerics.elementwise import ELEMENTWISE, EXACT


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """How a tensor was made. Operands by number, −1 for one that was left out."""

    call: Call
    operands: tuple[int, ...]
    value: Value


class Book(Protocol):
    """All records, by number. Operands have smaller numbers than results."""

    records: list[Record]

    def compute(self, call: Call, operands: Sequence[Value | None]) -> list[Value]: ...


def evaluated(call: Call, kind: Kind, spans: Sequence[Span | None]) -> Span:
    """An elementwise operator, rounded as its type rounds."""
    span = ELEMENTWISE[call.operator](call, kind, *spans)
    return span if call.operator in EXACT else fit(span, kind)
