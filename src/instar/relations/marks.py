"""Marks: words of an answer that a relation comments on, with the role that each plays and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """Some letters of a text, from `start` up to `end`: the role that they play, and why they were read so.

    A relation's `roles` say what its roles mean. Pages and the terminal have a style each for kept, added, missing,
    extra, number and wider; every other role is set in bold.
    """

    start: int
    end: int
    role: str
    why: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Some letters of a text; `role` is empty for those between the marks."""

    text: str
    role: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class MarkedPair:
    """The texts of both answers in segments, sentences that say what is wrong, and the classes that were added."""

    source: tuple[Segment, ...]
    follow_up: tuple[Segment, ...]
    sentences: tuple[str, ...]
    added: tuple[str, ...] = ()


def segments(text: str, marks: Iterable[Mark]) -> tuple[Segment, ...]:
    """A text cut at its marks; where two overlap, the first has the letters.

    >>> segments("a red bus", [Mark(2, 9, "missing", "")])
    (Segment(text='a ', role='', why=''), Segment(text='red bus', role='missing', why=''))
    """
    parts, place = [], 0
    for mark in marks:
        start = max(mark.start, place)
        if start >= mark.end:
            continue
        if start > place:
            parts.append(Segment(text[place:start]))
        parts.append(Segment(text[start : mark.end], mark.role, mark.why))
        place = mark.end
    return tuple([*parts, Segment(text[place:])] if place < len(text) else parts)
