"""Severities as a matrix of rules and cases: all that rates, curves and coverage ask for, small enough for any run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.relations import NOTHING_FOUND as NOTHING_FOUND_REASON
from instar.stats import sequence_bounds, wilson

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Cells = tuple[npt.NDArray[np.generic], ...]

COLUMNS = ("case", "target", "rule", "severity", "kind", "status", "reason", "p")
"""What is read of verdicts."""
_DEFAULTS = {
    "target": pl.lit("whole").alias("target"),
    "kind": pl.lit(None, pl.String).alias("kind"),
    "reason": pl.lit(None, pl.String).alias("reason"),
    "p": pl.lit(None, pl.Float64).alias("p"),
    "status": pl.when(pl.col("severity").is_not_null())
    .then(pl.lit("ok"))
    .otherwise(pl.lit("not applicable"))
    .alias("status"),
}
BETWEEN = "\0"
"""Between the case and the target that a column is about."""
ABSENT, OK, NOTHING_FOUND, NOT_APPLICABLE, FAILED = range(5)
"""What became of a pair. Of several targets without a severity the last of these speaks for the pair."""


def has_nothing() -> pl.Expr:
    """Which verdicts have no severity because nothing was found in either input."""
    return (pl.col("reason") == NOTHING_FOUND_REASON).fill_null(False)


def shown_status() -> pl.Expr:
    """The status of verdicts, with *nothing found* for those in which there was nothing to compare."""
    empty = (pl.col("status") == "not applicable") & has_nothing()
    return pl.when(empty).then(pl.lit("nothing found")).otherwise("status").alias("status")


@dataclass(frozen=True, slots=True, eq=False)
class Severities:
    """Verdicts of a judging, one cell per rule and case: the worst over the case's targets.

    `severity` (rules, cases) is NaN where there is none; `status` says why (nothing found in either
    input, not applicable, failed, absent).
    `kind` indexes `kinds` and is 0 for no kind; `p` is that of the relation's test, NaN where there is none.
    `looked` says that what the answers were decided when to stop asking, rule by rule: then only intervals hold that
    hold at every look, and a case counts for several rules together only where it was asked about under all of them.
    A million cells take ten megabytes.
    """

    rules: tuple[str, ...]
    cases: pl.Series
    severity: Floats
    status: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    kinds: tuple[str, ...]
    p: Floats | None = None
    looked: bool = False

    def bounds(self, hits: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
        """The interval of a share of the cases."""
        return (sequence_bounds if self.looked else wilson)(hits, count, confidence)

    @property
    def of_case(self) -> npt.NDArray[np.int64] | None:
        """Which case each column is of, as a number, where columns are targets; None where each is a case itself."""
        if not self.cases.str.contains(BETWEEN, literal=True).any():
            return None
        owners = self.cases.str.split(BETWEEN).list.first()
        return np.asarray(owners.fill_null("").rank("dense").to_numpy(), np.int64) - 1

    def counted(self) -> Bools:
        """Which columns count for all these rules together."""
        judged = np.asarray((~np.isnan(self.severity)).any(0))
        return judged & (self.status != ABSENT).all(0) if self.looked else judged

    def only(self, rules: Sequence[str]) -> Severities:
        """Only these rules, in this order; those without verdicts are left out."""
        place = {rule: number for number, rule in enumerate(self.rules)}
        kept = [rule for rule in rules if rule in place]
        rows = np.array([place[rule] for rule in kept], np.int64)
        return self._taken(tuple(kept), self.cases, rows)

    def at(self, columns: pl.Series) -> Severities:
        """Only the columns for which this is true; what is over many cases has no case to ask for."""
        kept = columns.fill_null(False)
        return self._taken(self.rules, self.cases.filter(kept), (slice(None), kept.to_numpy()))

    def _taken(
        self, rules: tuple[str, ...], cases: pl.Series, at: npt.NDArray[np.int64] | tuple[slice, Bools]
    ) -> Severities:
        p = None if self.p is None else self.p[at]
        kept = self.severity[at], self.status[at], self.kind[at]
        return Severities(rules, cases, *kept, self.kinds, p, self.looked)

    @property
    def judged(self) -> int:
        """How many cells have a severity."""
        return int((~np.isnan(self.severity)).sum())

    def per_case(self) -> Severities:
        """Without the verdicts of rules over many cases, and without cases that have no severity under any rule."""
        cases = self.cases.is_not_null()
        there = (self.status[:, cases.to_numpy()] != ABSENT).any(1)
        kept = self.only([rule for rule, some in zip(self.rules, there, strict=True) if some])
        return kept.at(cases & pl.Series(kept.counted()))

    def violated(self, thresholds: Mapping[str, float], alphas: Mapping[str, float] | None = None) -> Bools:
        """Which cells violate their rule's threshold; where a rule has a level of significance its test decides."""
        limits = np.array([float(thresholds[rule]) for rule in self.rules]).reshape(-1, 1)
        hit = np.asarray((self.severity >= limits) & (self.severity > 0))  # false where it is NaN
        if alphas and self.p is not None:
            level = np.array([alphas.get(rule, np.nan) for rule in self.rules]).reshape(-1, 1)
            hit = np.where(~np.isnan(level) & ~np.isnan(self.p), self.p <= level, hit)
        return hit


Verdicts = pl.DataFrame | Severities
"""What the analyses take: a frame of verdicts, or the matrix made of it."""


def group_of(target: str = "target") -> pl.Expr:
    """The landmark group a target is about: what follows its subject's number; the target itself where nothing does."""
    return pl.col(target).str.split("/").list.last()


def severities(
    verdicts: Verdicts | Iterable[pl.DataFrame],
    *,
    rules: Sequence[str] | None = None,
    by: Literal["case", "target"] = "case",
    group: str | None = None,
) -> Severities:
    """Verdicts as a matrix, read frame by frame.

    By `target`, a column is one target of one case. With `group`, only targets of that landmark group count.
    """
    if isinstance(verdicts, Severities):
        return verdicts
    frames = [verdicts] if isinstance(verdicts, pl.DataFrame) else verdicts
    names = Numbers(rules or ())
    columns, kinds = Numbers(), Numbers([""])
    cells: list[Cells] = []
    tested = False
    for frame in frames:
        kept = frame.with_columns(default for name, default in _DEFAULTS.items() if name not in frame.columns)
        kept = kept if rules is None else kept.filter(pl.col("rule").is_in(list(rules)))
        if group is not None:  # where nobody was found, no part was
            nobody = (pl.col("target") == "whole") & has_nothing()
            kept = kept.filter((group_of() == group) | nobody | pl.col("case").is_null())
        key = kept["case"] if by == "case" else (kept["case"] + BETWEEN + kept["target"])
        row, column = names(kept["rule"]), columns(key)
        severity = kept["severity"].fill_null(np.nan).to_numpy().astype(np.float64)
        p = kept["p"].fill_null(np.nan).to_numpy().astype(np.float64)
        tested |= not bool(np.isnan(p).all())
        codes = {"ok": OK, "nothing found": NOTHING_FOUND, "not applicable": NOT_APPLICABLE}
        coded = kept.select(shown_status().replace_strict(codes, default=FAILED, return_dtype=pl.UInt8))
        status = coded.to_series().to_numpy()
        cells.append(_worst(row, column, severity, status, kinds(kept["kind"].fill_null("")).astype(np.uint8), p))
    return _filled(names.known, columns.known, kinds.known, cells, tested)


class Numbers:
    """Numbers for texts, in the order in which they come. Null is a text of its own."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.known: list[str | None] = list(known)
        self._place: dict[str | None, int] = {text: number for number, text in enumerate(known)}

    def __call__(self, texts: pl.Series) -> npt.NDArray[np.int64]:
        ends = texts.rle_id()
        if len(texts) and 4 * (int(ends[-1]) + 1) < len(texts):  # as of a case under all its rules
            runs = texts.rle().struct.unnest()
            return np.repeat(self._numbered(runs["value"]), runs["len"].to_numpy())
        return self._numbered(texts)

    def _numbered(self, texts: pl.Series) -> npt.NDArray[np.int64]:
        different = texts.unique(maintain_order=True)
        for text in different.to_list():
            if text not in self._place:
                self._place[text] = len(self.known)
                self.known.append(text)
        there = different.drop_nulls()
        local = texts.cast(pl.Enum(there)).to_physical().fill_null(len(there)).to_numpy()
        code = np.array([*(self._place[text] for text in there.to_list()), self._place.get(None, -1)], np.int64)
        return np.asarray(code[local])


def _worst(
    row: npt.NDArray[np.int64],
    column: npt.NDArray[np.int64],
    severity: Floats,
    status: npt.NDArray[np.uint8],
    kind: npt.NDArray[np.uint8],
    p: Floats,
) -> Cells:
    """One cell per rule and column: the first among its worst."""
    cells = row, column, severity, status, kind, p
    place = column * (row.max(initial=0) + 1) + row
    order = np.argsort(place, kind="stable")
    if not (np.diff(place[order]) == 0).any():
        return cells
    # what has no severity comes last, and what was found in neither image after all else; severities are ≥ 0
    rank = np.where(np.isnan(severity), 1.0 + FAILED - status, -severity)
    order = np.lexsort((rank, place))
    first = order[np.concatenate([[True], np.diff(place[order]) != 0])]
    return tuple(values[first] for values in cells)


def _filled(
    rules: list[str | None], columns: list[str | None], kinds: list[str | None], cells: list[Cells], tested: bool
) -> Severities:
    shape = len(rules), len(columns)
    severity, p = np.full(shape, np.nan), np.full(shape, np.nan) if tested else None
    status, kind = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
    while cells:
        row, column, worst, state, sort, tests = cells.pop(0)
        present = severity[row, column]
        bare = np.isnan(worst)
        better = np.where(bare, np.isnan(present) & (state > status[row, column]), ~(worst <= present))
        at = row[better], column[better]
        severity[at], status[at], kind[at] = worst[better], state[better], sort[better]
        if p is not None:
            p[at] = tests[better]
    return Severities(
        tuple(str(rule) for rule in rules),
        pl.Series("case", columns, pl.String),
        severity,
        status,
        kind,
        tuple(str(name) for name in kinds),
        p,
    )
