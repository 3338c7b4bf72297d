"""Answers from which nothing can be told: nothing found that counts, the same answer to every input, and near ties."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from instar.engine import DEFAULT, SOURCE, SOURCE_ANSWERED
from instar.outputs import Output, output_kind
from instar.outputs.marks import Mark, found_twice, often_twice
from instar.outputs.output import UNPLACED
from instar.outputs.shares import SMALLEST, gist, normalised
from instar.store import of_cases
from instar.transforms import named_transformation

if TYPE_CHECKING:
    from instar.analysis.run import Run

FEWEST = 3
"""Different inputs of which nobody expects the same answer."""
CASES = 50
"""How many cases are compared where the first ones have the same answer."""
TIES = 0.75
"""The share of near ties from which on a run says nothing. It is high: where two labels are all there are, an image
that shows both is a tie as well."""
LEAST_SCORE, MOST_SCORE = -0.5, 2.0
"""Scores beyond these are none from 0 to 1: percent and logits go far beyond, a heat map overshoots by a little."""


Idle = Literal["silent", "alike", "undecided"]
"""What answers are from which nothing can be told: none that counts, one to every input, or near ties."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a run's answers leave to be judged.

    Of the `sources` that were answered, nothing counts in `empty`; `confidence` is the score from which on something
    counts, None where nothing has one, and `highest_of_empty` the best score in those sources, None where they have
    none. `silent`: no input at all has an answer that counts. `alike` is how many inputs were compared where all have
    one answer, else 0: the very same, or the same in shares of the frame; `words` is what it says, None where it says
    nothing in words. `normalised`: the coordinates look like shares of the frame, not like pixels. Of the `forgivable`
    pairs, those of relations that know near ties, `forgiven` are such: the judging's options forgive nearly any other
    answer there. `keeps`: a pair in which nothing is found on either side counts as kept. `unscaled`: the lowest and
    the highest score, where the judging asks for scores from 0 to 1 and these are none. `unplaced`: how many sources
    were answered with something that is there and has no place. Of the `marks` that were looked at, `twice` lie on
    another one of the same class. `least_score` is the lowest score that the system returned.
    """

    sources: int
    empty: int
    silent: bool
    confidence: float | None = None
    highest_of_empty: float | None = None
    alike: int = 0
    words: str | None = None
    normalised: bool = False
    forgiven: int = 0
    forgivable: int = 0
    keeps: bool = False
    unscaled: tuple[float, float] | None = None
    unplaced: int = 0
    marks: int = 0
    twice: int = 0
    least_score: float | None = None

    @property
    def doubled(self) -> bool:
        """Whether so much is found twice that nothing suppresses it."""
        return often_twice(self.twice, self.marks)

    @property
    def undecided(self) -> bool:
        """Whether so many pairs are near ties that rules which are kept say nothing."""
        return bool(self.forgiven) and self.forgiven >= TIES * self.forgivable


def answers_of(run: Run, judging: str = DEFAULT) -> Answers:
    """What can be told from the answers alone, before anything is judged."""
    confidence = _confidence(run, judging)
    counts = run.store.predictions(query=lambda rows: _counted(run, rows, confidence))
    total = dict(counts.select("source", "answers").iter_rows())
    empty = dict(counts.select("source", "empty").iter_rows())
    highest = counts.filter("source")["highest"].max()
    unplaced = dict(counts.select("source", "unplaced").iter_rows())
    silent = bool(total) and empty == total
    inputs, words = (0, None) if silent else _alike(run)
    marks = _marks(run)
    sure = [[mark for mark in some if mark.score >= (confidence or -np.inf)] for some in marks]
    return Answers(
        total.get(True, 0),
        empty.get(True, 0),
        silent,
        confidence,
        None if highest is None else float(highest),  # type: ignore[arg-type]
        inputs,
        words,
        _normalised(marks),
        *_forgiven(run, judging),
        _keeps(run, judging),
        _unscaled(counts) if confidence else None,
        unplaced.get(True, 0),
        sum(map(len, sure)),
        sum(map(found_twice, sure)),
        counts["least_score"].min(),  # type: ignore[arg-type]
    )


def found_in_sources(run: Run, judging: str = DEFAULT) -> pl.DataFrame | None:
    """How many subjects or objects count as found in the unchanged input of each case; None of a kind without any."""
    kind = output_kind(run.manifest.system.kind)
    if not kind.has_marks or "scores" not in kind.columns:
        return None
    confidence = _confidence(run, judging)
    counts = pl.element() >= (-np.inf if confidence is None else confidence)
    count = pl.col("scores").list.eval(counts).list.sum().fill_null(0).cast(pl.Int64)

    def read() -> pl.DataFrame:
        return run.store.predictions(query=lambda rows: rows.filter(SOURCE_ANSWERED).select("case", found=count))

    return run.cached(("found in sources", judging), read)


def output_of(run: Run, case: str, follow_up: str, draw: int, repeat: int) -> Output:
    """The stored answer to one input; LookupError, with the reason, where there is none."""
    name = SOURCE if follow_up == SOURCE else named_transformation(follow_up).id
    keys = {"case": case, "follow_up": name, "draw": draw, "repeat": repeat}
    here = pl.all_horizontal(pl.col(key) == value for key, value in keys.items())
    rows = run.store.whole(run.store.predictions(where=here, again=repeat > 0))
    prediction = f"{name} of {case!r}, draw {draw}, repeat {repeat}"
    if rows.is_empty():
        raise LookupError(
            f"{run.folder} holds no prediction of {prediction}; `predictions()` lists those that it holds"
        )
    row = rows.row(0, named=True)
    if row["status"] != "ok":
        raise LookupError(f"{prediction} has no answer: {row['status']}: {row['message']}")
    return output_kind(run.manifest.system.kind).from_row(row, run.manifest.header)


def idle(run: Run, threshold: float | None = None, *, judging: str = DEFAULT) -> Idle | None:
    """Why answers that violate no rule show nothing; None where they do, or where a rule is violated."""
    answers = run.answers(judging)
    if answers.silent:
        return "silent"
    if run.any_rule(threshold, judging=judging)["violated"] or run.over_cases(judging)["severity"].sum():
        return None
    return "alike" if answers.alike else "undecided" if answers.undecided else None


def _forgiven(run: Run, judging: str) -> tuple[int, int]:
    """How many judged pairs of the rules that change something are near ties, of relations that know such."""
    bound = [one.relation.relation for one in run.bound_rules()]
    measures = {relation.name: relation.forgiven for relation in bound if relation.forgiven}
    if not measures or not run.severities(judging).judged:
        return 0, 0
    forgiven = judged = 0
    for relation, measure in measures.items():
        changed = pl.col("rule").is_in(run.changing_rules(relation)) & pl.col("severity").is_not_null()
        for part in run.store.verdict_parts(judging, ["rule", "severity", measure]):
            pairs = part.filter(changed)
            judged += pairs.height
            forgiven += int(pairs[measure].sum()) if measure in pairs.columns else 0
    return forgiven, judged


def _confidence(run: Run, judging: str) -> float | None:
    """The lowest confidence of the run's relations, under which nothing counts for any of them."""
    options = (run.judging(judging).of(one.relation.relation) for one in run.bound_rules())
    return min((float(each["confidence"]) for each in options if "confidence" in each), default=None)


def _keeps(run: Run, judging: str) -> bool:
    """Whether a relation of the run is judged so that finding nothing on either side is no gap, but kept."""
    return any(run.judging(judging).of(one.relation.relation).get("empty") == "keep" for one in run.bound_rules())


def _counted(run: Run, rows: pl.LazyFrame, confidence: float | None) -> pl.LazyFrame:
    """How many sources and how many follow-ups were answered, and in how many nothing counts."""
    columns = output_kind(run.manifest.system.kind).columns
    none = pl.lit(None, pl.Float32)
    best, least = (pl.col("scores").list.max(), pl.col("scores").list.min()) if "scores" in columns else (none, none)
    if "scores" in columns:
        counts = best >= (-np.inf if confidence is None else confidence)
    else:
        counts = pl.any_horizontal(_filled(name, kind) for name, kind in columns.items())
    counts = counts.fill_null(False)
    answered = rows.filter(pl.col("status") == "ok")
    return answered.group_by(source=pl.col("follow_up") == SOURCE).agg(
        answers=pl.len(),
        empty=(~counts).sum(),
        highest=best.filter(~counts).max(),
        least_score=least.min(),
        most_score=best.max(),
        unplaced=(pl.col("message") == UNPLACED).sum(),
    )


def _unscaled(counts: pl.DataFrame) -> tuple[float, float] | None:
    """The lowest and the highest score of a run, where they cannot be meant to lie between 0 and 1."""
    low, high = counts["least_score"].min(), counts["most_score"].max()
    if low is None or high is None or (low >= LEAST_SCORE and high <= MOST_SCORE):  # type: ignore[operator]
        return None
    return float(low), float(high)  # type: ignore[arg-type]


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
    fine = (pl.col("status") == "ok") & of_cases(cases)
    rows = run.store.whole(run.store.predictions(["case", "status", "width", "height", *kind.columns], where=fine))
    if rows["case"].n_unique() < FEWEST:
        return 0, None
    first: Output | None = None
    exact, relative = set[str](), set[Hashable]()
    for row in rows.iter_rows(named=True):
        answer = kind.from_row(row, manifest.header)
        first = first or answer
        exact.add(repr([row[name] for name in kind.columns]))
        relative.add(gist(answer, (row["width"] or 1, row["height"] or 1)))
        if len(exact) > 1 and len(relative) > 1:
            return 0, None
    return rows.height, first.says() if first else None


def _marks(run: Run) -> list[list[Mark]]:
    """What has a place in the sources of some cases, of a size that tells."""
    kind = output_kind(run.manifest.system.kind)
    if not kind.has_marks:
        return []
    fine = (pl.col("status") == "ok") & (pl.col("follow_up") == SOURCE)
    large = pl.min_horizontal("width", "height") >= SMALLEST
    rows = run.store.predictions(query=lambda every: every.filter(fine & large).select(*kind.columns).head(CASES))
    answers = (kind.from_row(row, run.manifest.header) for row in run.store.whole(rows).iter_rows(named=True))
    return [[mark for mark in answer.marks() if np.isfinite(mark.places).any()] for answer in answers]


def _normalised(marks: list[list[Mark]]) -> bool:
    """Whether what was found lies in shares of the frame."""
    places = [mark.places for some in marks for mark in some]
    return bool(places) and normalised(np.concatenate(places))
