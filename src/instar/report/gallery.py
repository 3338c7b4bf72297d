"""The worst pairs of a run as pictures that a page holds in itself."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.relations import MarkedPair
from instar.report.marks import marked_pairs
from instar.report.picture import Annotated, encoded, panel_picture
from instar.report.rebuild import CannotDraw, load_pair, load_source
from instar.report.section import Section
from instar.store import Row

WIDE = 420


@dataclass(frozen=True, slots=True, eq=False)
class PairShown:
    """A verdict with its pictures, as data addresses, or `why` they cannot be drawn.

    `last` is the place in the relation's grid of the highest threshold that it violates, −1 where there is none;
    `expects` says whether the follow-up shows what was expected; `marked` are answers in words, marked.
    """

    verdict: Row
    name: str
    last: int
    source: str
    follow_up: str
    notes: tuple[str, str]
    expects: bool
    why: str
    marked: MarkedPair | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A case that could not be judged: its picture, or `why` that cannot be drawn."""

    case: str
    reason: str
    picture: str
    why: str


def pairs_shown(
    run: Run,
    sections: Sequence[Section],
    count: int,
    *,
    threshold: float | None = None,
    judging: str = DEFAULT,
    dataset: Path | None = None,
) -> dict[str, list[PairShown]]:
    """The worst pairs of the run by relation, the rules in turn."""
    shown: dict[str, list[PairShown]] = {section.relation: [] for section in sections}
    owner = {one: section for section in sections for rules in section.families.values() for one in rules}
    worst = run.worst(count, threshold=threshold, judging=judging)
    verdicts = worst.filter(pl.col("rule").is_in(list(owner))).to_dicts()
    for verdict, marked in zip(verdicts, marked_pairs(run.store, verdicts, judging), strict=True):
        section = owner[verdict["rule"]]
        severity = verdict["severity"]
        last = sum(severity >= value and severity > 0 for value in section.grid) - 1
        source = follow_up = why = ""
        notes, expects = ("", ""), False
        try:
            pair = load_pair(run, verdict, judging=judging, dataset=dataset)
            source, follow_up = _address(pair.source, "source"), _address(pair.follow_up, "follow-up")
            notes, expects = (_size(pair.source), _size(pair.follow_up)), bool(pair.follow_up.expected)
        except CannotDraw as error:
            why = str(error)
        shown[section.relation].append(
            PairShown(verdict, section.names[verdict["rule"]], last, source, follow_up, notes, expects, why, marked)
        )
    return shown


def examples(
    run: Run, unjudged: pl.DataFrame, count: int, *, judging: str = DEFAULT, dataset: Path | None = None
) -> list[Example]:
    """A case for each of the most frequent reasons why pairs were not judged."""
    shown = []
    rows = unjudged.unique("case", keep="first", maintain_order=True).head(count)
    for row in rows.iter_rows(named=True):
        try:
            source = load_source(run, row["case"], judging=judging, dataset=dataset)
            picture, why = _address(source, "source"), ""
        except CannotDraw as error:
            picture, why = "", str(error)
        shown.append(Example(row["case"], row["reason"] or row["status"], picture, why))
    return shown


def _size(panel: Annotated) -> str:
    return panel.note.replace(" x ", " × ") or f"{panel.image.size[0]} × {panel.image.size[1]} px"


def _address(panel: Annotated, side: Literal["source", "follow-up"]) -> str:
    picture = panel_picture(panel, side=side, wide=WIDE, high=WIDE)
    return "data:image/webp;base64," + base64.b64encode(encoded(picture, "webp", 80)).decode("ascii")
