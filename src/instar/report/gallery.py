"""The worst pairs of a run as pictures that a page holds in itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.relations import MarkedPair
from instar.report.marks import marked_pairs
from instar.report.picture import Annotated, data_address, panel_picture
from instar.report.rebuild import CannotDraw, load_pair, load_source
from instar.report.section import Section
from instar.report.targets import target_names
from instar.store import Row

WIDE = 420


@dataclass(frozen=True, slots=True, eq=False)
class PairShown:
    """A verdict with its pictures, as data addresses, or `why` they cannot be drawn.

    `target` is what it is about, by name; `last` is the place in the relation's grid of the highest threshold that it
    violates, −1 where there is none; `draws` says whether answers are drawn; `answers` are answers in words, `marked`
    the same with their words marked.
    """

    verdict: Row
    name: str
    target: str
    last: int
    source: str = ""
    follow_up: str = ""
    notes: tuple[str, str] = ("", "")
    draws: bool = False
    answers: tuple[str, ...] = ()
    why: str = ""
    marked: MarkedPair | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A case that could not be judged: its picture, or `why` that cannot be drawn; `draws` as of pairs."""

    case: str
    reason: str
    picture: str
    why: str
    draws: bool = False


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
    worst = run.worst(count, threshold=threshold, judging=judging).filter(pl.col("rule").is_in(list(owner)))
    verdicts, targets = worst.to_dicts(), target_names(run, worst, judging=judging)
    for verdict, target, marked in zip(verdicts, targets, marked_pairs(run.store, verdicts, judging), strict=True):
        section, severity = owner[verdict["rule"]], verdict["severity"]
        last = sum(severity >= value and severity > 0 for value in section.grid) - 1
        plain = PairShown(verdict, section.names[verdict["rule"]], target, last, marked=marked)
        shown[section.relation].append(drawn_pair(run, plain, judging, dataset))
    return shown


def drawn_pair(run: Run, plain: PairShown, judging: str, dataset: Path | None) -> PairShown:
    """With its pictures, or with why there are none."""
    try:
        pair = load_pair(run, plain.verdict, judging=judging, dataset=dataset)
    except CannotDraw as error:
        return replace(plain, why=str(error))
    return replace(
        plain,
        source=panel_address(pair.source, "source"),
        follow_up=panel_address(pair.follow_up, "follow-up"),
        notes=(size_words(pair.source), size_words(pair.follow_up)),
        draws=bool(pair.source.actual or pair.follow_up.actual),
        answers=pair.answers,
    )


def examples(
    run: Run, unjudged: pl.DataFrame, count: int, *, judging: str = DEFAULT, dataset: Path | None = None
) -> list[Example]:
    """A case for each of the most frequent reasons why pairs were not judged."""
    shown = []
    rows = unjudged.unique("case", keep="first", maintain_order=True).head(count)
    for row in rows.iter_rows(named=True):
        try:
            source, unsure = _counted_source(run, row["case"], judging, dataset)
            picture, why, draws = panel_address(source, "source"), "", bool(source.actual)
        except CannotDraw as error:
            picture, why, draws, unsure = "", str(error), False, ""
        shown.append(Example(row["case"], f"{row['reason'] or row['status']}{unsure}", picture, why, draws))
    return shown


def _counted_source(run: Run, case: str, judging: str, dataset: Path | None) -> tuple[Annotated, str]:
    """A source with what counts of the answer to it. Where that is nothing, with what is not sure enough, and these
    words."""
    counts, all_of_it = (
        load_source(run, case, judging=judging, dataset=dataset, counted=counted) for counted in (True, False)
    )
    if counts.silent and all_of_it.actual:
        return all_of_it, "; what is drawn is not sure enough to count"
    return counts, ""


def size_words(panel: Annotated) -> str:
    """How large an input is, or the part of it that is shown."""
    return panel.note.replace(" x ", " × ") or f"{panel.image.size[0]} × {panel.image.size[1]} px"


def panel_address(panel: Annotated, side: Literal["source", "follow-up"]) -> str:
    """One side of a pair as an address that a page holds in itself."""
    return data_address(panel_picture(panel, side=side, wide=WIDE, high=WIDE), "webp")
