"""Answers from which nothing can be told: nothing found that counts, and the same answer to every input."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from instar.engine import DEFAULT, SOURCE
from instar.outputs import Output, output_kind

if TYPE_CHECKING:
    from instar.analysis.run import Run

FEWEST = 3
"""Different inputs of which nobody expects the same answer."""
CASES = 50
"""How many cases are compared where the first ones have the same answer."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a run's answers leave to be judged.

    Of the `sources` that were answered, nothing counts in `empty`; `confidence` is the score from which on something
    counts, None where nothing has one, and `highest` the best score there, None where there is none. `silent`: no input
    at all has an answer that counts. `alike` is how many inputs were compared where all have one answer, else 0: the
    very same, or the same in shares of the frame; `words` is what it says, None where it says nothing in words.
    """

    sources: int
    empty: int
    silent: bool
    confidence: float | None = None
    highest: float | None = None
    alike: int = 0
    words: str | None = None


def answers_of(run: Run, judging: str = DEFAULT) -> Answers:
    """What can be told from the answers alone, before anything is judged."""
    confidence = _confidence(run, judging)
    counts = run.store.predictions(query=lambda rows: _counted(run, rows, confidence))
    total = dict(counts.select("source", "answers").iter_rows())
    empty = dict(counts.select("source", "empty").iter_rows())
    highest = counts.filter("source")["highest"].max()
    silent = bool(total) and empty == total
    inputs, words = (0, None) if silent else _alike(run)
    return Answers(
        total.get(True, 0),
        empty.get(True, 0),
        silent,
        confidence,
        None if highest is None else float(highest),  # type: ignore[arg-type]
        inputs,
        words,
    )


def _confidence(run: Run, judging: str) -> float | None:
    """The lowest confidence of the run's relations, under which nothing counts for any of them."""
    options = (run.judging(judging).of(one.relation.relation) for one in run.bound_rules())
    return min((float(each["confidence"]) for each in options if "confidence" in each), default=None)


def _counted(run: Run, rows: pl.LazyFrame, confidence: float | None) -> pl.LazyFrame:
    """How many sources and how many follow-ups were answered, and in how many nothing counts."""
    columns = output_kind(run.manifest.system.kind).columns
    best = pl.col("scores").list.max() if "scores" in columns else pl.lit(None, pl.Float32)
    if "scores" in columns:
        counts = best >= (-np.inf if confidence is None else confidence)
    else:
        counts = pl.any_horizontal(_filled(name, kind) for name, kind in columns.items())
    counts = counts.fill_null(False)
    answered = rows.filter(pl.col("status") == "ok")
    return answered.group_by(source=pl.col("follow_up") == SOURCE).agg(
        answers=pl.len(), empty=(~counts).sum(), highest=best.filter(~counts).max()
    )


def _filled(name: str, kind: pl.DataType | type[pl.DataType]) -> pl.Expr:
    """Whether a column of an answer holds anything."""
    if kind == pl.String:
        return pl.col(name).str.strip_chars().str.len_bytes() > 0
    return pl.col(name).list.len() > 0 if isinstance(kind, pl.List) else pl.col(name).is_not_null()


def _alike(run: Run) -> tuple[int, str | None]:
    """How many inputs of different cases were compared where all have one answer, and its words; 0 if they differ."""
    cases = run.cases().filter(pl.col("status") == "ok")
    names = cases.unique(pl.coalesce("hash", "case"), keep="first", maintain_order=True)["case"]
    if len(names) < FEWEST:
        return 0, None
    some = names.gather_every(max(1, len(names) // CASES))
    for chosen in (names.head(FEWEST), some):
        inputs, words = _same(run, chosen)
        if not inputs:
            return 0, None
    return inputs, words


def _same(run: Run, cases: pl.Series) -> tuple[int, str | None]:
    """The inputs of some cases and the words of their answer, where all of them have the same."""
    manifest = run.manifest
    kind = output_kind(manifest.system.kind)
    fine = (pl.col("status") == "ok") & pl.col("case").is_in(cases.implode())
    rows = run.store.whole(run.store.predictions(["case", "status", "width", "height", *kind.columns], where=fine))
    if rows["case"].n_unique() < FEWEST:
        return 0, None
    first: Output | None = None
    exact, relative = set[str](), set[Hashable]()
    for row in rows.iter_rows(named=True):
        answer = kind.from_row(row, manifest.header)
        first = first or answer
        exact.add(repr([row[name] for name in kind.columns]))
        relative.add(_gist(answer, (row["width"] or 1, row["height"] or 1)))
        if len(exact) > 1 and len(relative) > 1:
            return 0, None
    return rows.height, first.says() if first else None


def _gist(answer: Output, size: tuple[int, int]) -> Hashable:
    """What an answer says in shares of the frame, rounded; of a kind without places or facts nothing is left out."""
    if marks := answer.marks():
        return tuple((mark.label, str(np.round(mark.places / size, 3)), round(mark.score, 3)) for mark in marks)
    if facts := answer.facts():
        return tuple((name, round(fact, 3)) for name, fact in facts.items())
    return repr(answer.row())
