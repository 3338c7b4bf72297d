"""Captions of pairs with their words marked: what stayed, what is missing, what came, whose number is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from instar.engine import SOURCE, stored_judging
from instar.outputs.caption import Caption
from instar.relations import relations, rule
from instar.store import Manifest, Store
from instar.tasks.meta_ic.relations import Mark, compared_rows

__all__ = ["ROLES", "Segment", "Spoken", "caption_options", "segments", "spoken"]

ROLES = {
    "kept": "named in both",
    "added": "inserted, and named",
    "missing": "not named any more",
    "extra": "named, and not there before",
    "number": "another number",
    "wider": "may stand for it",
}
"""What the marks mean, in the order in which a legend has them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Some letters of a caption; `role` is empty for those between the marks, `why` says how they were read."""

    text: str
    role: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Both captions of a pair in segments, and what is wrong in sentences."""

    source: tuple[Segment, ...]
    follow_up: tuple[Segment, ...]
    sentences: tuple[str, ...]
    added: tuple[str, ...]
    size: tuple[int, int]
    """That of the follow-up."""


def segments(text: str, marks: Iterable[Mark]) -> tuple[Segment, ...]:
    """A text cut at its marks; where two overlap, the first has the letters."""
    found, place = [], 0
    for mark in marks:
        start = max(mark.start, place)
        if start >= mark.end:
            continue
        if start > place:
            found.append(Segment(text[place:start]))
        found.append(Segment(text[start : mark.end], mark.role, mark.why))
        place = mark.end
    return tuple([*found, Segment(text[place:])] if place < len(text) else found)


def caption_options(store: Store, manifest: Manifest, judging: str) -> dict[str, Any]:
    """How a judging understands captions."""
    own = {p.name: p.default for p in relations()["objects"].options}
    return {**own, **manifest.options, **stored_judging(store, judging).options}


def spoken(
    store: Store, manifest: Manifest, verdicts: Sequence[Mapping[str, Any]], judging: str
) -> list[Spoken | None]:
    """The captions of each verdict's pair; None for what has no captions, or no follow-up.

    A verdict has `case`, `rule`, and may have the `draw` that shows it.
    """
    if manifest.system.kind != Caption.kind:
        return [None] * len(verdicts)
    options = caption_options(store, manifest, judging)
    wanted = pl.col("case").is_in(list({verdict["case"] for verdict in verdicts}))
    rows = store.predictions(
        ["case", "follow_up", "draw", "caption", "added", "removed", "width", "height"],
        where=wanted & (pl.col("repeat") == 0) & (pl.col("status") == "ok"),
    )
    held = {(row["case"], row["follow_up"], row["draw"]): row for row in rows.iter_rows(named=True)}
    found: list[Spoken | None] = []
    for verdict in verdicts:
        (changed,) = rule(verdict["rule"]).transformations
        source = held.get((verdict["case"], SOURCE, 0))
        follow_up = held.get((verdict["case"], changed.id, verdict.get("draw") or 0))
        if source is None or follow_up is None:
            found.append(None)
            continue
        both = compared_rows(source, follow_up, options)
        found.append(
            Spoken(
                segments(source["caption"], both.source),
                segments(follow_up["caption"], both.follow_up),
                both.sentences,
                tuple(follow_up["added"] or ()),
                (follow_up["width"] or 0, follow_up["height"] or 0),
            )
        )
    return found
