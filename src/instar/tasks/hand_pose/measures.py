"""Measures of hands with their intervals, per test case, group, finger and landmark; what test cases lose of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.engine import SOURCE
from instar.relations.over_cases import POOLED
from instar.stats import ends, resamples
from instar.tasks.hand_pose.counts import FINGERS, GRID, CountColumns, HandCounts, finger_of
from instar.tasks.hand_pose.follow_ups import GROUPS

Floats = npt.NDArray[np.float64]
Row = dict[str, object]

MEASURES = ("precision", "recall", "f1", "hand_precision", "hand_recall", "hand_f1", "error", "auc")
ANSWERING = MEASURES[:3]
"""The measures of landmarks that were answered, rightly or wrongly."""
MARGIN = 0.05
"""A share that may be lost: the margin that `degradation` allows where nobody says otherwise."""
RESAMPLES = 1000
EVERY = "source and test cases"
VALUE = ("value", "low", "high")
LOST = ("lost", "lost_low", "lost_high")


def _ratio(hits: Floats, every: Floats) -> Floats:
    return np.asarray(np.where(every > 0, hits / np.where(every > 0, every, 1.0), np.nan))


def _landmark_counts(marks: Floats) -> dict[str, Floats]:
    """Counts of landmarks (…, 4) by the names that the pooled measures have for them."""
    return {"tp": marks[..., 0], "fp": marks[..., 1] + marks[..., 3], "fn": marks[..., 2]}


def _pooled(measure: str, named: Mapping[str, Floats]) -> Floats:
    """A measure of counts. No answer at all has no precision: as a perfect one it would lead astray."""
    columns, measured = POOLED[measure]
    counts = [named[column] for column in columns]
    return np.asarray(np.where(np.sum(counts, 0) > 0, measured(*counts), 1.0 if measure.endswith("f1") else np.nan))


def _measures_of(columns: CountColumns) -> Callable[[str], Floats]:
    """Every measure of some counts by its name. Landmarks are summed once for all of them: that takes longest."""
    hands = {f"hand_{kind}": columns.hands[..., place] for place, kind in enumerate(("tp", "fp", "fn"))}
    apart = {"distance": columns.apart[..., 0], "near": columns.apart[..., 1]}
    counts = {**_landmark_counts(columns.marks.sum(-2)), **hands, **apart}

    def measured(name: str) -> Floats:
        if name == "auc":
            share = _ratio(columns.within, columns.sized)
            return np.asarray(((share[..., 1:] + share[..., :-1]) / 2).mean(-1))
        return _pooled(name, counts)

    return measured


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Counts (1 + resamples, test cases, columns) summed over the cases, and over each of a thousand resamples of them.

    `base` is the source's, of the cases that the test case was judged on. `covering` has the sums of the cases that
    were judged at every level of TC1; None where there are none.
    """

    counts: HandCounts
    own: Floats
    base: Floats
    covering: Sums | None = None
    _values: dict[tuple[str, tuple[int, ...], bool], Floats] = field(default_factory=dict, init=False, repr=False)

    def columns(self, which: Sequence[int], *, base: bool = False) -> CountColumns:
        """Of some test cases together."""
        return CountColumns.of((self.base if base else self.own)[:, list(which)].sum(1), len(self.counts.landmarks))

    def values(self, measure: str, which: Sequence[int], *, base: bool = False) -> Floats:
        """A measure of some test cases together, kept: advice asks for the same ones again and again."""
        key = (measure, tuple(which), base)
        if key not in self._values:
            self._values[key] = _measures_of(self.columns(which, base=base))(measure)
        return self._values[key]

    def lost(self, measure: str, which: Sequence[int]) -> Floats:
        """What some test cases together lose of a measure."""
        return self.values(measure, which, base=True) - self.values(measure, which)

    def part_lost(self, measure: str, which: Sequence[int]) -> Floats:
        """The same as a part of what there was to lose; NaN where there was nothing."""
        return _ratio(self.lost(measure, which), self.values(measure, which, base=True))

    def group(self, name: str) -> list[int]:
        return [place for place, each in enumerate(self.counts.test_cases) if each.group == name]

    @property
    def bounded(self) -> list[int]:
        """The test cases that must cost next to nothing."""
        return [place for name in GROUPS for place in self.group(name)]

    def judged(self, which: Sequence[int]) -> int:
        """How many cases were judged in any of these test cases."""
        return int(self.counts.judged[:, list(which)].any(1).sum())

    @property
    def levels(self) -> dict[int, int]:
        """The test cases of TC1 by how many landmarks they cover, the source first."""
        levels = {0: 0}
        for place, each in enumerate(self.counts.test_cases):
            if each.covered:
                levels.setdefault(each.covered, place)
        return dict(sorted(levels.items()))


def sums_of(counts: HandCounts, seed: int = 0) -> Sums:
    """The sums over all cases, and over those that were judged at every level of TC1."""
    sums = _summed(counts, seed)
    whole = counts.judged[:, list(sums.levels.values())].all(1)
    if len(sums.levels) < 2 or not whole.any():
        return sums
    return replace(sums, covering=sums if whole.all() else _summed(counts.only(pl.Series(whole)), seed))


def _summed(counts: HandCounts, seed: int = 0) -> Sums:
    count, test_cases, wide = counts.counts.shape
    own, base = np.zeros((2, 1 + RESAMPLES, test_cases, wide))
    alike = (counts.judged == counts.judged[:, :1]).all(0)
    at = 0
    for weights in chain([np.ones((1, count))], resamples(count, times=RESAMPLES, seed=seed)):
        here = slice(at, at + len(weights))
        for place in range(test_cases):
            judged = counts.judged[:, place, None]
            own[here, place] = weights @ (counts.counts[:, place] * judged)
            base[here, place] = own[here, 0] if alike[place] else weights @ (counts.counts[:, 0] * judged)
        at += len(weights)
    return Sums(counts, own, base)


def chosen_hands(counts: HandCounts, objects: bool | None) -> HandCounts:
    """All hands (None), those that hold an object (True), or those that do not, unless all do (False)."""
    known = counts.cases["object"]
    if objects is None or (known.dtype != pl.Boolean and not objects):
        return counts
    if known.dtype != pl.Boolean:
        raise ValueError(
            "no case says whether its hand holds an object: the dataset has no attribute `object` that is true or false"
        )
    holding = known.fill_null(False)
    if objects and not holding.any():
        raise ValueError("no hand holds an object: the attribute `object` is true in no case")
    return counts if holding.all() else counts.only(holding if objects else ~holding)


# --- frames ----------------------------------------------------------------------------------------


def interval_columns(values: Floats, names: Sequence[str] = VALUE) -> list[dict[str, float | None]]:
    """Numbers (1 + resamples, n) with their intervals, as columns; null where there is nothing to divide by."""
    low, high = ends(values[1:])
    return [
        dict.fromkeys(names) if np.isnan(row[0]) else dict(zip(names, map(float, row), strict=True))
        for row in zip(values[0], low, high, strict=True)
    ]


def baselines_frame(counts: HandCounts) -> pl.DataFrame:
    """Every measure of the source: of all hands, and by the attribute `object`."""
    rows: list[Row] = []
    values = counts.cases["object"]
    parts = {"all hands": counts} if len(counts.cases) else {}
    for value in values.drop_nulls().unique().sort():
        name = {False: "without objects", True: "with objects"}.get(value, f"object = {value}")
        parts[name] = counts.only((values == value).fill_null(False))
    for name, part in parts.items():
        sums = _summed(part.at([0]))
        columns = interval_columns(np.stack([sums.values(measure, [0]) for measure in MEASURES], 1))
        rows += [
            {"hands": name, "measure": measure, "cases": sums.judged([0]), **number}
            for measure, number in zip(MEASURES, columns, strict=True)
        ]
    schema = {"hands": pl.String, "measure": pl.String, "cases": pl.Int64, **dict.fromkeys(VALUE, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)


_MEASURED = {
    "group": pl.String,
    "measure": pl.String,
    "cases": pl.Int64,
    **dict.fromkeys((*VALUE, "baseline", *LOST), pl.Float64),
}


def _rows(sums: Sums, sets: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, Row]]:
    """Every measure of every set of test cases, with what it loses from the source of the same cases."""
    landmarks = len(sums.counts.landmarks)
    own, base = (
        CountColumns.of(np.stack([each[:, list(which)].sum(1) for which in sets.values()], 1), landmarks)
        for each in (sums.own, sums.base)
    )
    cases = [sums.judged(which) for which in sets.values()]
    sides = _measures_of(own), _measures_of(base)
    for measure in MEASURES:
        value, first = (np.where(np.array(cases) > 0, measured(measure), np.nan) for measured in sides)
        lost = interval_columns(value - first if measure == "error" else first - value, LOST)
        for name, count, number, start, loss in zip(sets, cases, interval_columns(value), first[0], lost, strict=True):
            baseline = None if np.isnan(start) else float(start)
            yield name, {"measure": measure, "cases": count, **number, "baseline": baseline, **loss}


def measures_frame(sums: Sums) -> pl.DataFrame:
    """Every measure of the source and of every test case."""
    known = {each.follow_up: each for each in sums.counts.test_cases}
    places = {name: [place] for place, name in enumerate(known)}
    rows = [
        {"follow_up": name, "title": known[name].title, "group": known[name].group, **row}
        for name, row in sorted(_rows(sums, places), key=lambda each: places[each[0]])
    ]
    return pl.DataFrame(rows, schema={"follow_up": pl.String, "title": pl.String, **_MEASURED})


def sets_of(sums: Sums) -> dict[str, list[int]]:
    """The source, the groups of test cases that there are, and all of these."""
    groups = {name: sums.group(name) for name in GROUPS if sums.group(name)}
    return {SOURCE: [0], **groups, EVERY: [0, *sums.bounded]}


def groups_frame(sums: Sums) -> pl.DataFrame:
    """Every measure of each group of test cases."""
    return pl.DataFrame([{"group": name, **row} for name, row in _rows(sums, sets_of(sums))], schema=_MEASURED)


def _pck_frame(sums: Sums) -> pl.DataFrame:
    """The share of landmarks within each distance of the grid, per group."""
    rows: list[Row] = []
    for name, which in sets_of(sums).items():
        columns = sums.columns(which)
        share = interval_columns(_ratio(columns.within, columns.sized))
        rows += [{"group": name, "t": t, **number} for t, number in zip(GRID, share, strict=True)]
    return pl.DataFrame(rows, schema={"group": pl.String, "t": pl.Float64, **dict.fromkeys(VALUE, pl.Float64)})


# --- finger by finger, landmark by landmark ------------------------------------------------------------


def parts_of(counts: HandCounts) -> dict[str, list[int]]:
    """The places of the landmarks of each finger, and of the wrist."""
    names = list(enumerate(counts.landmarks))
    fingers = {finger: [place for place, name in names if finger_of(name) == finger] for finger in FINGERS}
    wrist = [place for place, name in names if name == "wrist"]
    return {name: places for name, places in {**fingers, "wrist": wrist}.items() if places}


def right_share(marks: Floats) -> Floats:
    """The share of the reference's landmarks that are right."""
    return _ratio(marks[..., 0], marks[..., :3].sum(-1))


def _frame_by_landmarks(sums: Sums, parts: Mapping[str, Sequence[int]], head: str) -> pl.DataFrame:
    """The measures of some landmarks each, per group of test cases and per follow-up."""
    each = {name: [place] for place, name in enumerate(sums.counts.follow_ups) if place}
    rows: list[Row] = []
    for name, which in {**sets_of(sums), **each}.items():
        marks = sums.columns(which).marks
        own = np.stack([marks[..., list(places), :].sum(-2) for places in parts.values()], 1)
        named = _landmark_counts(own)
        measures = {measure: np.where(own.sum(-1) > 0, _pooled(measure, named), np.nan) for measure in ANSWERING}
        measures["right"] = right_share(own)
        rows += [
            {"of": name, head: part, "measure": measure, **number}
            for measure, values in measures.items()
            for part, number in zip(parts, interval_columns(values), strict=True)
        ]
    return pl.DataFrame(
        rows, schema={"of": pl.String, head: pl.String, "measure": pl.String, **dict.fromkeys(VALUE, pl.Float64)}
    )


def measure_frames(sums: Sums) -> dict[str, pl.DataFrame]:
    """All measures: per test case, per group, as PCK curves, finger by finger and landmark by landmark."""
    landmarks = {name: [place] for place, name in enumerate(sums.counts.landmarks)}
    return {
        "measures": measures_frame(sums),
        "groups": groups_frame(sums),
        "pck": _pck_frame(sums),
        "fingers": _frame_by_landmarks(sums, parts_of(sums.counts), "finger"),
        "landmarks": _frame_by_landmarks(sums, landmarks, "landmark"),
    }
