"""Hands: how well a system finds them, what each test case of the suite costs, and what that is advice for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.engine import SOURCE, Judging, bound_rules, chunks, evidence
from instar.outputs.poses import Poses
from instar.relations import Evidence, Rule, pose_pairs
from instar.relations.accuracy import counted_pairs, reference_of
from instar.relations.over_cases import POOLED
from instar.skeleton import Skeleton
from instar.stats import ends, resamples, wilson
from instar.store import KEY, Store
from instar.transforms import transformation

__all__ = [
    "FINGERS",
    "GROUNDS",
    "GROUPS",
    "PURPOSES",
    "HandCounts",
    "TestCase",
    "as_test_case",
    "hand_comparison",
    "hand_counts",
    "hand_frames",
]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

GRID = tuple(round(0.02 * step, 2) for step in range(26))
"""The distances of a PCK curve, in sizes of the hand."""
FINGERS = {
    "thumb": "thumb",
    "index": "index_finger",
    "middle": "middle_finger",
    "ring": "ring_finger",
    "little": "pinky",
}
"""Fingers, and how the names of their landmarks begin."""
COMPLETED = {5: "thumb", 9: "index", 13: "middle", 17: "ring", 21: "little"}
"""The crucial points: which finger the first n landmarks complete."""
MEASURES = ("precision", "recall", "f1", "hand_precision", "hand_recall", "hand_f1", "error", "auc")
_ANSWERING = MEASURES[:3]
MARGIN = 0.05
"""A share that may be lost: the margin that `degradation` allows where nobody says otherwise."""
RESAMPLES = 1000
_COLUMNS = (*KEY, "status", "message", "width", "height", "warp", *Poses.columns)
_IDENTITY = np.eye(3).ravel().tolist()


# --- test cases ------------------------------------------------------------------------------------

GROUPS = {"occlusion": "a covered finger", "exposure": "exposure", "blur": "motion blur", "other": "other changes"}
"""The test cases that must cost next to nothing, by what they change."""
_OF_FAMILY = {"discs": "response", "finger_discs": "occlusion", "gamma": "exposure", "motion": "blur"}
_EXPOSURES = {5.0: "strong underexposure", 2.0: "underexposure", 0.5: "overexposure", 0.2: "strong overexposure"}
_DIRECTIONS = {90.0: "vertical", 0.0: "horizontal", 45.0: "diagonal"}


@dataclass(frozen=True, slots=True)
class TestCase:
    """What a follow-up of the suite is: its number in the paper where it has one, its name, what it changes."""

    __test__ = False  # not one of pytest's

    number: str
    name: str
    group: str
    covered: int = 0
    """How many landmarks lie under discs, from the wrist on: TC1."""
    darker: bool = False


@cache
def as_test_case(follow_up: str) -> TestCase:
    """What a follow-up is called; one that is not of the suite is called by its transformation.

    >>> as_test_case("gamma(5)").number, as_test_case("motion(20, 45)").name, as_test_case("greyscale").group
    ('TC7', 'diagonal motion blur', 'other')
    """
    if follow_up == SOURCE:
        return TestCase("", "baseline", SOURCE)
    steps = transformation(follow_up).steps
    family, values = steps[0].family.name, steps[0].values
    group = _OF_FAMILY.get(family, "other") if len(steps) == 1 else "other"
    number, name, covered = "", follow_up, 0
    if group == "response":
        covered = int(values["n"])
        number, name = "TC1", f"{covered} landmarks covered"
    elif group == "occlusion":
        number, name = f"TC{2 + list(FINGERS).index(values['finger'])}", f"{values['finger']} covered"
    elif group == "exposure" and values["gamma"] in _EXPOSURES:
        number, name = f"TC{7 + list(_EXPOSURES).index(values['gamma'])}", _EXPOSURES[values["gamma"]]
    elif group == "blur" and values["size"] == 20 and values["direction"] in _DIRECTIONS:
        number = f"TC{11 + list(_DIRECTIONS).index(values['direction'])}"
        name = f"{_DIRECTIONS[values['direction']]} motion blur"
    return TestCase(number, name, group, covered, group == "exposure" and values["gamma"] > 1)


# --- counting --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class HandCounts:
    """What was counted of every case, in its source and its follow-ups: what all measures are sums of.

    `cases` has a row per case, in the order of their ids: `case`, `hash`, `reference` (truth, or source: the system's
    own answer), `empty` (the reference has no hand) and `object`, the attribute of that name. `counts` is (cases,
    follow-ups, columns), `judged` (cases, follow-ups); the first of the `follow_ups` is the source.
    """

    system: str
    options: Mapping[str, Any]
    """The judging's: what is near, what overlaps, what a distance is divided by."""
    cases: pl.DataFrame
    follow_ups: tuple[str, ...]
    landmarks: tuple[str, ...]
    judged: Flags
    counts: npt.NDArray[np.float32]

    def only(self, cases: pl.Series) -> HandCounts:
        """The cases for which this is true."""
        take = cases.to_numpy()
        return replace(self, cases=self.cases.filter(cases), judged=self.judged[take], counts=self.counts[take])


def hand_counts(store: Store, objects: pl.DataFrame, **options: Any) -> HandCounts:
    """Count what a run found of its hands, in source and follow-ups, against the truth or the source's answer.

    `objects` has the column `object` of each `case`, where the dataset has that attribute. Options are those of a
    judging; hands, landmarks and distances are counted as the relation `accuracy` does.
    """
    manifest = store.manifest()
    bound = bound_rules(manifest.rules, manifest.system.kind)
    rules = {
        one.transformations[0].id: one
        for one in reversed(bound)
        if one.relation is not None and one.relation.relation.name == "accuracy"
    }
    if not rules or manifest.output is None:
        raise ValueError(
            f"{store.folder} has no rules about the accuracy of hands; `instar run mediapipe-hands "
            "hand-pose DATASET` makes such a run"
        )
    landmarks = _told_apart(Skeleton.from_dict(manifest.header["skeleton"]).landmarks)
    follow_ups = (SOURCE, *reversed(rules))
    found, settings = [], dict[str, Any]()
    for part in chunks(store):
        rows, cases = store.predictions(_COLUMNS, where=part), store.cases(where=part)
        for number, members in enumerate(_by_relation(list(rules.values()))):
            held, _ = evidence(members, rows, cases, manifest, Judging(options, manifest.options))
            settings = dict(held.options)
            counted = _source(held) if not number else held.follow_ups.clear()
            counted = pl.concat([counted, held.follow_ups], how="diagonal_relaxed")
            found += [_rows(held, counted, name, follow_ups, landmarks) for name in ("truth", "source")]
    keys = pl.concat([part for part, _ in found])
    told = store.cases(["case", "hash", *(["truth_scores"] if manifest.truth else [])])
    about = (
        keys.group_by("case")
        .agg(pl.col("reference").first())
        .join(told, on="case")
        .join(objects, on="case", how="left")
        .sort("case")
    )
    place = keys.join(about.with_row_index("at").select("case", "at"), on="case", maintain_order="left")
    counts = np.zeros((len(about), len(follow_ups), _width(len(landmarks))), np.float32)
    judged = np.zeros(counts.shape[:2], bool)
    where = place["at"].to_numpy(), place["follow_up"].to_numpy()
    np.add.at(counts, where, np.concatenate([values for _, values in found]))
    judged[where] = True
    hands = _of(counts[:, 0], len(landmarks)).hands
    empty = pl.Series(hands.sum(1) == 0)
    if manifest.truth:
        empty = pl.select(
            pl.when(about["reference"] == "truth").then(about["truth_scores"].list.len() == 0).otherwise(empty)
        ).to_series()
    about = about.select("case", "hash", "reference", "object", empty=empty)
    judged[(about["reference"] == "source").to_numpy() & (hands[:, 0] == 0)] = False
    return HandCounts(str(manifest.system.name), settings, about, follow_ups, landmarks, judged, counts)


OTHER = "other"


def _told_apart(landmarks: Sequence[str]) -> tuple[str, ...]:
    """The landmarks that are counted one by one: those of a hand, left and right alike, and all others together.

    A skeleton without hands has all of them.
    """
    names = [_bare(name) for name in landmarks]
    hand = [name for name in names if name == "wrist" or _of_finger(name)]
    return tuple(dict.fromkeys([*hand, *([OTHER] if len(hand) < len(names) else [])] if hand else names))


def _bare(landmark: str) -> str:
    """A landmark of a left or a right hand as one of a hand."""
    return landmark.rpartition(".")[2]


def _of_finger(landmark: str) -> str | None:
    return next((finger for finger, start in FINGERS.items() if landmark.startswith(start)), None)


def _source(held: Evidence) -> pl.DataFrame:
    """The source as a follow-up that changed nothing."""
    return held.sources.filter(pl.col("repeat") == 0).with_columns(
        follow_up=pl.lit(SOURCE), draw=pl.lit(0, pl.Int32), warp=pl.lit(_IDENTITY, pl.List(pl.Float64))
    )


def _by_relation(rules: Sequence[Rule]) -> list[list[Rule]]:
    groups: dict[str, list[Rule]] = {}
    for one in rules:
        assert one.relation is not None
        groups.setdefault(one.relation.id, []).append(one)
    return list(groups.values())


def _rows(
    held: Evidence, counted: pl.DataFrame, reference: str, follow_ups: Sequence[str], landmarks: Sequence[str]
) -> tuple[pl.DataFrame, npt.NDArray[np.float32]]:
    """The counts of each follow-up with a reference of this kind."""
    place = {name: number for number, name in enumerate(follow_ups)}
    schema = {"case": pl.String, "follow_up": pl.Int64, "reference": pl.String}
    compared = reference_of(held, counted, reference)
    if compared is None:
        return pl.DataFrame(schema=schema), np.zeros((0, _width(len(landmarks))), np.float32)
    pairs = pose_pairs(compared)
    columns = {name: number for number, name in enumerate(landmarks)}
    column = np.array([columns.get(_bare(name), len(columns) - 1) for name in pairs.bones.landmarks])
    values = np.zeros((pairs.follow_ups.height, _width(len(landmarks))), np.float32)
    into = _of(values, len(landmarks))
    for strayed in pairs.strayed():
        judged = strayed.told & ~np.isnan(strayed.distance) & ~np.isnan(strayed.length)[:, None]
        both = judged & np.isfinite(strayed.distance)
        near = both & (strayed.severity < pairs.options["within"])
        at = strayed.rows[:, None], column[strayed.landmarks][None]
        for kind, what in enumerate((near, both & ~near, judged & ~both)):
            np.add.at(into.marks[..., kind], at, what)
    alone = pairs.first < 0
    taken = np.concatenate([np.asarray(indices) for _, indices in pairs.chosen])
    shown = ~np.isnan(pairs.said.points[pairs.second[alone]][:, taken, 0])
    np.add.at(into.marks[..., 3], (pairs.rows[alone][:, None], column[taken][None]), shown)
    for strayed in replace(pairs, options={**pairs.options, "normaliser": "part"}).strayed():
        sized = strayed.told & ~np.isnan(strayed.distance) & ~np.isnan(strayed.length)[:, None]
        far = np.where(sized, strayed.severity, np.inf)
        np.add.at(into.within, strayed.rows, np.stack([(far <= t).sum(1) for t in GRID], 1))
        np.add.at(into.sized[:, 0], strayed.rows, sized.sum(1))
    sums = counted_pairs(pairs)
    for kind, name in enumerate(("hand_tp", "hand_fp", "hand_fn")):
        into.hands[:, kind] = sums[name]
    into.apart[:, 0], into.apart[:, 1] = sums["distance"], sums["near"]
    keys = pairs.follow_ups.select(
        "case", pl.col("follow_up").replace_strict(place, return_dtype=pl.Int64), reference=pl.lit(reference)
    )
    return keys, values


def _width(landmarks: int) -> int:
    return 4 * landmarks + 3 + 2 + 1 + len(GRID)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The columns of counts under their names."""

    marks: Floats
    """(…, landmarks, 4): right, wrong, missing, invented."""
    hands: Floats
    """Right, wrong and missing."""
    apart: Floats
    """The sum of the distances of landmarks that were found, and how many those are."""
    sized: Floats
    """Landmarks of hands whose size is known."""
    within: Floats
    """How many of those are within each distance of the grid."""

    def named(self) -> dict[str, Floats]:
        """By the names that the pooled measures have for them."""
        return {
            **_kinds(self.marks.sum(-2)),
            "hand_tp": self.hands[..., 0],
            "hand_fp": self.hands[..., 1],
            "hand_fn": self.hands[..., 2],
            "distance": self.apart[..., 0],
            "near": self.apart[..., 1],
        }


def _kinds(marks: Floats) -> dict[str, Floats]:
    return {"tp": marks[..., 0], "fp": marks[..., 1] + marks[..., 3], "fn": marks[..., 2]}


def _of(counts: npt.NDArray[Any], landmarks: int) -> _Columns:
    """Views, so that what is written to them is counted."""
    cuts = np.cumsum([4 * landmarks, 3, 2, 1])
    marks, hands, apart, sized, within = np.split(counts, cuts, -1)
    return _Columns(marks.reshape(*marks.shape[:-1], landmarks, 4), hands, apart, sized, within)


# --- measures --------------------------------------------------------------------------------------


def _ends(values: Floats) -> tuple[Floats, Floats]:
    """The 95 % intervals of numbers (1 + resamples, …), of which the first is the cases' own."""
    return ends(values[1:])


def _ratio(hits: Floats, every: Floats) -> Floats:
    return np.asarray(np.where(every > 0, hits / np.where(every > 0, every, 1.0), np.nan))


def _pooled(measure: str, named: Mapping[str, Floats]) -> Floats:
    """A measure of counts. No answer at all has no precision: as a perfect one it would lead astray."""
    asked, pooled = POOLED[measure]
    counts = [named[column] for column in asked]
    return np.asarray(np.where(np.sum(counts, 0) > 0, pooled(*counts), 1.0 if measure.endswith("f1") else np.nan))


def _measured(name: str, columns: _Columns) -> Floats:
    if name != "auc":
        return _pooled(name, columns.named())
    share = _ratio(columns.within, columns.sized)
    return np.asarray(((share[..., 1:] + share[..., :-1]) / 2).mean(-1))


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Counts (1 + resamples, follow-ups, columns) summed over the cases, and over each of a thousand resamples of them.

    `base` is the source's, of the cases that the follow-up was judged on. `covering` has the sums of the cases that
    were judged at every level of TC1; None where there are none.
    """

    held: HandCounts
    own: Floats
    base: Floats
    covering: _Sums | None = None

    def columns(self, which: Sequence[int], *, base: bool = False) -> _Columns:
        """Of some follow-ups together."""
        return _of((self.base if base else self.own)[:, list(which)].sum(1), len(self.held.landmarks))

    def values(self, measure: str, which: Sequence[int], *, base: bool = False) -> Floats:
        return _measured(measure, self.columns(which, base=base))

    def lost(self, measure: str, which: Sequence[int]) -> Floats:
        """What some follow-ups together lose of a measure; of an error, what they add."""
        apart = self.values(measure, which, base=True) - self.values(measure, which)
        return -apart if measure == "error" else apart

    def group(self, name: str) -> list[int]:
        return [number for number, one in enumerate(self.tests) if one.group == name]

    @property
    def tests(self) -> list[TestCase]:
        return [as_test_case(name) for name in self.held.follow_ups]

    @property
    def bounded(self) -> list[int]:
        """The test cases that must cost next to nothing."""
        return [number for name in GROUPS for number in self.group(name)]

    def judged(self, which: Sequence[int]) -> int:
        return int(self.held.judged[:, list(which)].any(1).sum())

    @property
    def levels(self) -> dict[int, int]:
        """The follow-ups of TC1 by how many landmarks they cover, the source first."""
        found = {0: 0}
        for number, one in enumerate(self.tests):
            if one.covered:
                found.setdefault(one.covered, number)
        return dict(sorted(found.items()))


def _summed(held: HandCounts, seed: int = 0) -> _Sums:
    count, follow_ups, wide = held.counts.shape
    own, base = np.zeros((2, 1 + RESAMPLES, follow_ups, wide))
    alike = (held.judged == held.judged[:, :1]).all(0)
    at = 0
    for weights in chain([np.ones((1, count))], resamples(count, times=RESAMPLES, seed=seed)):
        here = slice(at, at + len(weights))
        for number in range(follow_ups):
            judged = held.judged[:, number, None]
            own[here, number] = weights @ (held.counts[:, number] * judged)
            base[here, number] = own[here, 0] if alike[number] else weights @ (held.counts[:, 0] * judged)
        at += len(weights)
    return _Sums(held, own, base)


def _with_covering(held: HandCounts, seed: int = 0) -> _Sums:
    sums = _summed(held, seed)
    whole = held.judged[:, list(sums.levels.values())].all(1)
    if len(sums.levels) < 2 or not whole.any():
        return sums
    return replace(sums, covering=sums if whole.all() else _summed(held.only(pl.Series(whole)), seed))


def _numbers(values: Floats) -> list[dict[str, float | None]]:
    """Numbers (1 + resamples, n) with their intervals, as columns; null where there is nothing to divide by."""
    low, high = _ends(values)
    return [
        dict.fromkeys(_FLOATS) if np.isnan(value) else {"value": float(value), "low": float(a), "high": float(b)}
        for value, a, b in zip(values[0], low, high, strict=True)
    ]


def _number(values: Floats) -> dict[str, float | None]:
    return _numbers(values[:, None])[0]


_FLOATS = ("value", "low", "high")
_SCHEMA: dict[str, Any] = {
    "follow_up": pl.String,
    "test_case": pl.String,
    "name": pl.String,
    "group": pl.String,
    "measure": pl.String,
    "cases": pl.Int64,
    **dict.fromkeys((*_FLOATS, "baseline", "lost", "lost_low", "lost_high"), pl.Float64),
}


def hand_frames(held: HandCounts, *, objects: bool | None = False) -> dict[str, pl.DataFrame]:
    """Every measure of a run's hands with its 95 % interval over resampled cases, and what it advises.

    `objects` says which cases count besides `baselines`: False leaves out hands that hold an object, unless all do;
    True takes only those; None takes all. Where the dataset has no attribute `object`, all cases are hands without.

    * `baselines`: the source, for all hands and by the attribute `object`: Tables II and III;
    * `measures`: the source and each follow-up: precision, recall and F1 of landmarks and of hands (`hand_`), the mean
      `error` of the landmarks found, `auc` the area under the PCK curve (1 is perfect), and what is `lost` from
      the `baseline`, the source of the same cases, with its own interval;
    * `groups`: the same over the test cases that cover, expose and blur, and over source and all test cases;
    * `pck`: the share of landmarks within `t` sizes of the hand, per group;
    * `fingers` and `landmarks`: precision, recall, F1 and the share that is `right`, per follow-up and per group;
    * `response`: TC1, the measures with n landmarks covered, and what each step of n costs;
    * `crucial`: what a step that completes a finger costs more than any other, per step;
    * `advice`: sentences, each with the numbers that it follows from.
    """
    sums = _with_covering(_chosen(held, objects))
    return {
        "baselines": _baselines(held),
        "measures": _measures(sums),
        "groups": _groups(sums),
        "pck": _pck(sums),
        "fingers": _fingers(sums),
        "landmarks": _landmarks(sums),
        "response": _response(sums),
        "crucial": _crucial(sums),
        "advice": _advice_frame(_advised(sums)),
    }


def _chosen(held: HandCounts, objects: bool | None) -> HandCounts:
    known = held.cases["object"]
    if objects is None or (known.dtype != pl.Boolean and not objects):
        return held
    if known.dtype != pl.Boolean:
        raise ValueError(
            "no case says whether its hand holds an object: the dataset has no attribute `object` that is true or false"
        )
    holding = known.fill_null(False)
    if objects and not holding.any():
        raise ValueError("no hand holds an object: the attribute `object` is true in no case")
    return held if holding.all() else held.only(holding if objects else ~holding)


def _baselines(held: HandCounts) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    values = held.cases["object"]
    parts = {"all hands": held} if len(held.cases) else {}
    for value in values.drop_nulls().unique().sort():
        name = {False: "without objects", True: "with objects"}.get(value, f"object = {value}")
        parts[name] = held.only((values == value).fill_null(False))
    for name, part in parts.items():
        source = replace(part, follow_ups=part.follow_ups[:1], judged=part.judged[:, :1], counts=part.counts[:, :1])
        sums = _summed(source)
        rows += [
            {"hands": name, "measure": measure, "cases": sums.judged([0]), **_number(sums.values(measure, [0]))}
            for measure in MEASURES
        ]
    return pl.DataFrame(
        rows, schema={"hands": pl.String, "measure": pl.String, "cases": pl.Int64, **dict.fromkeys(_FLOATS, pl.Float64)}
    )


def _table(sums: _Sums, sets: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """Every measure of every set of follow-ups, with what it loses from the source of the same cases."""
    landmarks = len(sums.held.landmarks)
    own, base = (
        _of(np.stack([each[:, list(which)].sum(1) for which in sets.values()], 1), landmarks)
        for each in (sums.own, sums.base)
    )
    cases = [sums.judged(which) for which in sets.values()]
    rows: list[dict[str, Any]] = []
    for measure in MEASURES:
        value, first = (np.where(np.array(cases) > 0, _measured(measure, each), np.nan) for each in (own, base))
        lost = _numbers(value - first if measure == "error" else first - value)
        rows += [
            {
                "set": name,
                "measure": measure,
                "cases": count,
                **number,
                "baseline": None if np.isnan(start) else float(start),
                "lost": less["value"],
                "lost_low": less["low"],
                "lost_high": less["high"],
            }
            for name, count, number, start, less in zip(sets, cases, _numbers(value), first[0], lost, strict=True)
        ]
    return rows


def _measures(sums: _Sums) -> pl.DataFrame:
    each = {name: [number] for number, name in enumerate(sums.held.follow_ups)}
    known = {
        name: {"follow_up": name, "test_case": one.number, "name": one.name, "group": one.group}
        for name, one in zip(each, sums.tests, strict=True)
    }
    rows = [{**known[row.pop("set")], **row} for row in _table(sums, each)]
    order = pl.DataFrame({"follow_up": list(each)}, schema={"follow_up": pl.String})
    return order.join(pl.DataFrame(rows, schema=_SCHEMA), on="follow_up", maintain_order="left_right")


EVERY = "source and test cases"


def _sets(sums: _Sums) -> dict[str, list[int]]:
    """The source, the groups of test cases that there are, and all of these."""
    groups = {name: sums.group(name) for name in GROUPS if sums.group(name)}
    return {SOURCE: [0], **groups, EVERY: [0, *sums.bounded]}


def _groups(sums: _Sums) -> pl.DataFrame:
    rows = [{"group": row.pop("set"), **row} for row in _table(sums, _sets(sums))]
    return pl.DataFrame(
        rows, schema={name: kind for name, kind in _SCHEMA.items() if name not in ("follow_up", "test_case", "name")}
    )


def _pck(sums: _Sums) -> pl.DataFrame:
    rows = []
    for name, which in _sets(sums).items():
        columns = sums.columns(which)
        share = _ratio(columns.within, columns.sized)
        rows += [{"group": name, "t": t, **number} for t, number in zip(GRID, _numbers(share), strict=True)]
    return pl.DataFrame(rows, schema={"group": pl.String, "t": pl.Float64, **dict.fromkeys(_FLOATS, pl.Float64)})


def _parts(held: HandCounts) -> dict[str, list[int]]:
    """The landmarks of each finger, and the wrist."""
    fingers = {finger: [i for i, name in enumerate(held.landmarks) if _of_finger(name) == finger] for finger in FINGERS}
    wrist = [i for i, name in enumerate(held.landmarks) if name == "wrist"]
    return {name: places for name, places in {**fingers, "wrist": wrist}.items() if places}


def _right(marks: Floats) -> Floats:
    """The share of the reference's landmarks that are right."""
    return _ratio(marks[..., 0], marks[..., :3].sum(-1))


def _of_marks(sums: _Sums, parts: Mapping[str, Sequence[int]], head: str) -> pl.DataFrame:
    """The measures of some landmarks each, per follow-up and per group of them."""
    each = {name: [number] for number, name in enumerate(sums.held.follow_ups) if number}
    rows = []
    for name, which in {**_sets(sums), **each}.items():
        marks = sums.columns(which).marks
        own = np.stack([marks[..., list(places), :].sum(-2) for places in parts.values()], 1)
        named = _kinds(own)
        found = {measure: np.where(own.sum(-1) > 0, _pooled(measure, named), np.nan) for measure in _ANSWERING}
        found["right"] = _right(own)
        rows += [
            {"of": name, head: part, "measure": measure, **number}
            for measure, values in found.items()
            for part, number in zip(parts, _numbers(values), strict=True)
        ]
    return pl.DataFrame(
        rows, schema={"of": pl.String, head: pl.String, "measure": pl.String, **dict.fromkeys(_FLOATS, pl.Float64)}
    )


def _fingers(sums: _Sums) -> pl.DataFrame:
    return _of_marks(sums, _parts(sums.held), "finger")


def _landmarks(sums: _Sums) -> pl.DataFrame:
    return _of_marks(sums, {name: [i] for i, name in enumerate(sums.held.landmarks)}, "landmark")


# --- TC1 -------------------------------------------------------------------------------------------


def _response(sums: _Sums) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    mine = sums.covering
    for measure in _ANSWERING if mine is not None else ():
        assert mine is not None
        before: Floats | None = None
        for n, number in mine.levels.items():
            values = mine.values(measure, [number])
            step = dict.fromkeys(_FLOATS) if before is None else _number(before - values)
            known = mine.held.landmarks
            landmark = known[n - 1] if 0 < n <= len(known) and OTHER not in known else None
            rows.append(
                {
                    "n": n,
                    "landmark": landmark,
                    "completes": COMPLETED.get(n),
                    "measure": measure,
                    "cases": len(mine.held.cases),
                    **_number(values),
                    "lost": step["value"],
                    "lost_low": step["low"],
                    "lost_high": step["high"],
                }
            )
            before = values
    return pl.DataFrame(
        rows,
        schema={
            "n": pl.Int64,
            "landmark": pl.String,
            "completes": pl.String,
            "measure": pl.String,
            "cases": pl.Int64,
            **dict.fromkeys((*_FLOATS, "lost", "lost_low", "lost_high"), pl.Float64),
        },
    )


def _crucial(sums: _Sums) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    mine = sums.covering
    levels = {} if mine is None else mine.levels
    steps = [n for n in levels if n and n - 1 in levels]
    at = np.array([n in COMPLETED for n in steps], bool)
    for measure in ("recall", "f1") if at.any() and not at.all() else ():
        assert mine is not None
        values = {n: mine.values(measure, [number]) for n, number in levels.items()}
        lost = np.stack([values[n - 1] - values[n] for n in steps], 1)
        more = lost[:, at].mean(1) - lost[:, ~at].mean(1)
        rows.append(
            {
                "measure": measure,
                "cases": len(mine.held.cases),
                "completing": float(lost[0, at].mean()),
                "others": float(lost[0, ~at].mean()),
                **_number(more),
            }
        )
    return pl.DataFrame(
        rows,
        schema={
            "measure": pl.String,
            "cases": pl.Int64,
            **dict.fromkeys(("completing", "others", *_FLOATS), pl.Float64),
        },
    )


# --- advice ----------------------------------------------------------------------------------------

LEAST = 10
"""Cases below which nothing is said: intervals of fewer are too narrow to be trusted, or too wide to say anything."""
ENOUGH = 60
"""Cases below which nothing is called robust: what befalls one case in twenty may not be among fewer, and resampling
cannot know of what it has not seen."""
HIGH, LOW, FAR, NONE = 0.8, 0.5, 0.3, 0.2
"""A measure from here up is high, below here low; so much less is far less; so little is next to nothing."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence, the ground it stands on and the numbers that it follows from."""

    ground: str
    says: str
    because: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What advice is given for: a name, the condition in words, and the condition itself.

    Surely means: with the whole 95 % interval.
    """

    name: str
    when: str
    advice: Callable[[_Sums], list[Advice]]


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"


def _told(values: Floats) -> str:
    """A share with its interval: 50 % (25–75)."""
    low, high = _ends(values)
    return f"{_percent(values[0])} ({100 * low:.0f}–{100 * high:.0f})"


def _points(values: Floats, what: str = "points") -> str:
    """A difference of shares with its interval: 12 points (3 to 20)."""
    low, high = map(float, _ends(values))
    return f"{round(100 * values[0])}{what and f' {what}'} ({round(100 * low)} to {round(100 * high)})"


def _above(values: Floats, limit: float) -> bool:
    """Surely above."""
    return bool(_ends(values)[0] > limit)


def _below(values: Floats, limit: float) -> bool:
    """Surely below."""
    return bool(_ends(values)[1] < limit)


def _unlabelled(sums: _Sums) -> bool:
    """Whether answers are compared with nothing but the system's own answers to the source."""
    return set(sums.held.cases["reference"]) == {"source"}


def _few(sums: _Sums) -> list[Advice]:
    count = sums.judged([0])
    if count >= LEAST:
        return []
    told = f"; F1 {_told(sums.values('f1', [0]))}" if count else ""
    return [
        Advice(
            "few",
            f"Nothing can be said of it: advice takes at least {LEAST} cases, and differences of a few "
            "points take hundreds.",
            f"{count} cases were judged{told}",
        )
    ]


def _own(sums: _Sums) -> list[Advice]:
    if not _unlabelled(sums):
        return []
    return [
        Advice(
            "unlabelled",
            "Nothing is annotated: its answers are compared with its own answers to the source, "
            "and one that is wrong and steady looks good.",
            f"{sums.judged([0])} cases, none of them with a ground truth",
        )
    ]


def _uncovered(sums: _Sums) -> Floats | None:
    """What F1 loses where every landmark is covered; None where TC1 is not in the suite."""
    mine = sums.covering
    last = 0 if mine is None else max(mine.levels)
    return mine.lost("f1", [mine.levels[last]]) if mine is not None and last >= len(mine.held.landmarks) else None


def _looks(sums: _Sums) -> bool:
    """Whether covering every landmark may cost something."""
    lost = _uncovered(sums)
    return lost is None or not _below(lost, MARGIN)


def _unseeing(sums: _Sums) -> list[Advice]:
    lost, f1 = _uncovered(sums), sums.values("f1", [0])
    if lost is None or _looks(sums):
        return []
    because = f"covering every landmark costs {_points(lost, 'points of F1')}; F1 of the source {_told(f1)}"
    if not _unlabelled(sums) and _below(f1, LOW):
        return [
            Advice(
                "unseeing",
                "It does not look at the picture: covering the whole hand changes nothing, and most "
                "of its answers are wrong. It answers with something like the mean hand.",
                because,
            )
        ]
    return [
        Advice(
            "unseeing",
            "Covering the whole hand changes nothing: see whether it looks at the picture at all, "
            "or knows these pictures already.",
            because,
        )
    ]


def _precise(sums: _Sums) -> list[Advice]:
    precision, recall = (sums.values(name, [0, *sums.bounded]) for name in ("precision", "recall"))
    more = precision - recall
    if not _looks(sums) or np.isnan(more[0]):
        return []
    because = f"over source and test cases, precision {_told(precision)}, recall {_told(recall)}"
    if precision[0] >= HIGH and _above(more, MARGIN):
        says = (
            "When something changes it falls silent rather than strays."
            if _unlabelled(sums)
            else "Precise: it misses rather than guesses. Suited where a wrong answer is worse than none."
        )
        return [Advice("precise", says, f"{because}, {_points(more, 'points less')}")]
    if recall[0] >= HIGH and _above(-more, MARGIN):
        says = (
            "When something changes it strays rather than falls silent."
            if _unlabelled(sums)
            else "Sensitive: it guesses rather than misses. "
            + (
                "Suited where a missed hand is worse than a wrong one, and light and background are yours to choose."
                if precision[0] >= LOW
                else "Most of its answers are wrong, and none can be trusted."
            )
        )
        return [Advice("sensitive", says, f"{because}, {_points(-more, 'points more')}")]
    return []


def _finger(sums: _Sums) -> list[Advice]:
    marks, parts = sums.columns([0]).marks, _parts(sums.held)
    known = {name: marks[..., list(parts[name]), :].sum(-2) for name in FINGERS if name in parts}
    found = []
    for name, mine in known.items():
        what = name if name == "thumb" else f"{name} finger"
        rest = sum((other for finger, other in known.items() if finger != name), np.zeros_like(mine))
        own, theirs = _right(mine), _right(rest)
        if np.isnan(own[0]) and rest[0, :3].sum() and _unlabelled(sums):
            found.append(
                Advice(
                    "finger",
                    f"It ignores the {what}: no answer to a source has one.",
                    f"no landmark of the {what}, {rest[0, :3].sum():,.0f} of the others",
                )
            )
        elif not np.isnan(own[0] + theirs[0]) and _above(theirs - own, FAR):
            verb = "ignores" if _below(own, NONE) else "is weak at"
            found.append(
                Advice(
                    "finger",
                    f"It {verb} the {what}: do not trust it with gestures that need it.",
                    f"of the {what}'s landmarks {_told(own)} are right, of the other fingers' "
                    f"{_told(theirs)}, {_points(theirs - own, 'points more')}",
                )
            )
    return found


def _invents(sums: _Sums) -> list[Advice]:
    empty = sums.held.cases["empty"].to_numpy().astype(bool)
    wrong = _of(sums.held.counts, len(sums.held.landmarks)).hands[..., 1]
    answers = (wrong[empty] > 0).any(1)
    count, hits = len(answers), int(answers.sum())
    low, high = wilson(hits, count)
    if count < LEAST or low <= MARGIN:
        return []
    return [
        Advice(
            "invents",
            "It answers although nothing is there: do not take an answer for the presence of a hand.",
            f"it answers in {hits} of {count} cases without a hand, in the source or a follow-up: "
            f"{_percent(hits / count)} ({100 * low:.0f}–{100 * high:.0f})",
        )
    ]


def _dark(sums: _Sums) -> list[Advice]:
    lost = {
        one.name: sums.lost("hand_recall", [number])
        for number, one in enumerate(sums.tests)
        if one.darker and sums.judged([number]) >= LEAST
    }
    sure = {name: values for name, values in lost.items() if _above(values, MARGIN)}
    if not sure:
        return []
    return [
        Advice(
            "dark",
            "It loses dark hands: give it light, or take another system for dim rooms.",
            _costs(sure, "recall of hands"),
        )
    ]


def _costs(lost: Mapping[str, Floats], measure: str = "F1") -> str:
    """What some test cases cost, strongest first."""
    (name, values), *rest = sorted(lost.items(), key=lambda each: -each[1][0])
    return ", ".join(
        [
            f"{name} costs {_points(values, f'points of {measure}')}",
            *(f"{name} {_points(values, '')}" for name, values in rest),
        ]
    )


def _lost_by_group(sums: _Sums) -> dict[str, dict[str, Floats]]:
    """What F1 loses in each test case that must cost next to nothing, of those with enough cases."""
    found = {
        group: {
            sums.tests[number].name: sums.lost("f1", [number])
            for number in sums.group(group)
            if sums.judged([number]) >= LEAST
        }
        for group in GROUPS
    }
    return {group: lost for group, lost in found.items() if lost}


_WEAK = {
    "occlusion": "not where things, or other fingers, cover part of the hand",
    "exposure": "keep the light even, and the exposure of the camera under control",
    "blur": "not for gestures in fast motion",
    "other": "keep them away from it",
}
_ROBUST = {
    "occlusion": "suited for hands that hold things",
    "exposure": "suited where the light changes, as outdoors",
    "blur": "suited for gestures in fast motion, such as sign language",
    "other": "nothing to fear from them",
}


def _weak(sums: _Sums) -> list[Advice]:
    found = []
    for group, lost in _lost_by_group(sums).items():
        sure = {name: values for name, values in lost.items() if _above(values, MARGIN)}
        if sure:
            says = f"Weak against {GROUPS[group]}: {_WEAK[group]}."
            found.append((max(float(values[0]) for values in sure.values()), Advice("weak", says, _costs(sure))))
    return [advice for _, advice in sorted(found, key=lambda each: -each[0])]


def _robust(sums: _Sums) -> list[Advice]:
    if sums.judged([0]) < ENOUGH or not _looks(sums) or not _above(sums.values("f1", [0]), LOW):
        return []
    return [
        Advice("robust", f"Robust against {GROUPS[group]}: {_ROBUST[group]}.", _costs(lost))
        for group, lost in _lost_by_group(sums).items()
        if all(_below(values, MARGIN) for values in lost.values())
    ]


def _open(sums: _Sums) -> list[Advice]:
    if not _looks(sums):
        return []
    groups, told = [], dict[str, Floats]()
    for group, lost in _lost_by_group(sums).items():
        held = all(_below(values, MARGIN) for values in lost.values())
        if not any(_above(values, MARGIN) for values in lost.values()) and not (held and sums.judged([0]) >= ENOUGH):
            groups.append(GROUPS[group])
            name = max(lost, key=lambda each: float(_ends(lost[each])[1]))
            told[name] = lost[name]
    if not told:
        return []
    return [
        Advice(
            "open", f"{sums.judged([0])} cases do not tell what it has to fear from {_listed(groups)}.", _costs(told)
        )
    ]


GROUNDS = (
    Ground("few", "fewer than 10 cases were judged: then this is all that is said", _few),
    Ground("unlabelled", "no case has a ground truth", _own),
    Ground(
        "unseeing",
        "covering every landmark costs surely less than 5 points of F1; that it answers with the mean "
        "hand is said where its F1 against the truth is surely below 50 %",
        _unseeing,
    ),
    Ground(
        "precise, sensitive",
        "over source and test cases, precision (recall) is at least 80 % and surely more than "
        "5 points above recall (precision), and it is not unseeing",
        _precise,
    ),
    Ground(
        "finger",
        "of a finger's landmarks surely 30 points fewer are right than of the others', in the source; it "
        "is ignored where surely fewer than 20 % are, or where no answer has it",
        _finger,
    ),
    Ground("invents", "it answers in surely more than 5 % of at least 10 cases whose reference has no hand", _invents),
    Ground("dark", "a darker picture costs surely more than 5 points of the hands' recall", _dark),
    Ground("weak", "a test case costs surely more than 5 points of F1; strongest first", _weak),
    Ground(
        "robust",
        "every test case of a kind costs surely less than 5 points of an F1 that is surely above 50 %, in "
        "at least 60 cases, and it is not unseeing",
        _robust,
    ),
    Ground("open", "of a kind of test cases neither is sure", _open),
)
"""Why advice is given, in the order in which it is."""


def _advised(sums: _Sums) -> list[Advice]:
    first, *rest = GROUNDS
    return first.advice(sums) or [advice for ground in rest for advice in ground.advice(sums)]


def _advice_frame(advice: Sequence[Advice]) -> pl.DataFrame:
    return pl.DataFrame(
        [(one.ground, one.says, one.because) for one in advice],
        orient="row",
        schema=dict.fromkeys(("ground", "says", "because"), pl.String),
    )


# --- several systems -------------------------------------------------------------------------------

PURPOSES: dict[str, tuple[str, str, str]] = {
    "in general": ("In general", "f1", SOURCE),
    "fast motion": ("For gestures in fast motion", "f1", "blur"),
    "poor light": ("Where the light is poor or changes", "f1", "exposure"),
    "covered fingers": ("Where fingers are covered", "f1", "occlusion"),
    "no wrong answers": ("Where a wrong answer is worse than none", "precision", EVERY),
    "no missed hands": ("Where a missed hand is worse than a wrong answer", "hand_recall", EVERY),
}
"""What a system is chosen for: in words, the measure that decides, and in which source or follow-ups."""


POINT = 0.01
"""A run is better where it is so much better for certain: less is not worth a choice."""


def hand_comparison(runs: Mapping[str, HandCounts], *, objects: bool | None = False) -> dict[str, pl.DataFrame]:
    """Several systems beside each other, on what all of them were judged on: paired, since it is resampled together.

    Where they have no case in common, each has its own cases, and intervals of differences are those of independent
    samples. `objects` is that of `hand_frames`.

    * `baselines`, `measures`, `groups`: as of one run, with a column `run`;
    * `differences`: for each purpose how far the best run is above each other one;
    * `advice`: which one to prefer for what, and where there is no sure difference; then that of each run.
    """
    held = {name: _chosen(each, objects) for name, each in runs.items()}
    shared = _shared(list(held.values()))
    paired = bool(shared)
    held = dict(zip(held, shared, strict=True)) if paired else held
    sums = {name: _with_covering(each, 0 if paired else number) for number, (name, each) in enumerate(held.items())}
    blind = [name for name, each in sums.items() if not _looks(each)]
    differences = _differences(sums, blind, paired)
    own = [
        Advice(one.ground, f"{name}: {one.says}", one.because)
        for name, each in sums.items()
        for one in _advised(each)
        if one.ground != "unlabelled"
    ]

    def together(frame: Callable[[Any], pl.DataFrame], of: Mapping[str, Any]) -> pl.DataFrame:
        return pl.concat([frame(each).select(pl.lit(name).alias("run"), pl.all()) for name, each in of.items()])

    return {
        "baselines": together(_baselines, runs),
        "measures": together(_measures, sums),
        "groups": together(_groups, sums),
        "differences": differences,
        "advice": _advice_frame([*_preferred(sums, differences, blind, paired), *own]),
    }


def _shared(runs: Sequence[HandCounts]) -> list[HandCounts]:
    """The cases that all runs have, each judged where it was judged in all of them; nothing where there are none."""
    keys = runs[0].cases.select("case", "hash")
    for other in runs[1:]:
        keys = keys.join(other.cases.select("case", "hash"), on=["case", "hash"], how="semi")
    if keys.is_empty():
        return []
    mine = [each.only(each.cases["case"].is_in(keys["case"].implode())) for each in runs]
    both = [name for name in mine[0].follow_ups if all(name in each.follow_ups for each in mine)]
    columns = [[each.follow_ups.index(name) for name in both] for each in mine]
    judged = np.logical_and.reduce([each.judged[:, take] for each, take in zip(mine, columns, strict=True)])
    return [
        replace(each, follow_ups=tuple(both), judged=judged, counts=each.counts[:, take])
        for each, take in zip(mine, columns, strict=True)
    ]


def _differences(sums: Mapping[str, _Sums], blind: Sequence[str], paired: bool) -> pl.DataFrame:
    """The best of those that look at the picture, and how far it is above each other run."""
    rows = []
    sets = {name: _sets(each) for name, each in sums.items()}
    for purpose, (_, measure, where) in PURPOSES.items():
        if any(where not in mine for mine in sets.values()):
            continue
        values = {name: np.nan_to_num(each.values(measure, sets[name][where])) for name, each in sums.items()}
        best = max(values, key=lambda name: (name not in blind, float(values[name][0])))
        cases = min(each.judged(sets[name][where]) for name, each in sums.items())
        rows += [
            {
                "purpose": purpose,
                "measure": measure,
                "group": where,
                "best": best,
                "run": name,
                "best_value": float(values[best][0]),
                "run_value": float(own[0]),
                "cases": cases,
                "paired": paired,
                **_number(values[best] - own),
            }
            for name, own in values.items()
            if name != best
        ]
    return pl.DataFrame(
        rows,
        schema={
            **dict.fromkeys(("purpose", "measure", "group", "best", "run"), pl.String),
            "best_value": pl.Float64,
            "run_value": pl.Float64,
            "cases": pl.Int64,
            "paired": pl.Boolean,
            **dict.fromkeys(_FLOATS, pl.Float64),
        },
    )


def _preferred(
    sums: Mapping[str, _Sums], differences: pl.DataFrame, blind: Sequence[str], paired: bool
) -> list[Advice]:
    counts = {name: each.judged([0]) for name, each in sums.items()}
    told = f"cases that were judged: {', '.join(f'{name} {count}' for name, count in counts.items())}"
    if min(counts.values()) < LEAST:
        common = "cases in common" if paired else "cases"
        return [Advice("few", f"Nothing can be said of which is better: that takes at least {LEAST} {common}.", told)]
    found = []
    if not paired:
        found.append(
            Advice("unpaired", "These runs have no case in common: differences may be those of the pictures.", told)
        )
    steady = [name for name, each in sums.items() if _unlabelled(each)]
    if steady:
        found.append(
            Advice(
                "unlabelled",
                "Nothing is annotated: answers are compared with a system's own answers to "
                "the source, and one that is wrong and steady looks good.",
                f"without ground truth: {', '.join(steady)}",
            )
        )
    for (purpose,), mine in differences.group_by("purpose", maintain_order=True):
        words, measure, where = PURPOSES[str(purpose)]
        if not steady or where in GROUPS:
            found.append(_preference(mine.to_dicts(), words, measure, where, blind))
    return found


def _preference(
    rows: Sequence[Mapping[str, Any]], words: str, measure: str, where: str, blind: Sequence[str]
) -> Advice:
    best, value = rows[0]["best"], rows[0]["best_value"]
    named = {"f1": "F1", "hand_recall": "recall of hands"}.get(measure, measure)
    place = {SOURCE: "in the source", EVERY: "over source and test cases"}.get(where, f"under {GROUPS.get(where)}")
    because = f"{named} {place}: {best} {_percent(value)}; " + "; ".join(
        f"{row['run']} {_percent(row['run_value'])}, {round(100 * row['value'])} points less "
        f"({round(100 * row['low'])} to {round(100 * row['high'])})"
        for row in rows
    )
    if best in blind:
        return Advice("none", f"{words}, none is to be preferred: they do not look at the picture.", because)
    rest = [row for row in rows if row["run"] not in blind]
    beaten = [row["run"] for row in rest if row["low"] >= POINT]
    equal = [row["run"] for row in rest if row["low"] < POINT]
    unseeing = [row["run"] for row in rows if row["run"] in blind]
    left = f" {_listed(unseeing)} {'does' if len(unseeing) == 1 else 'do'} not look at the picture." if unseeing else ""
    if rest and not beaten:
        return Advice(
            "equal", f"{words}, there is no sure difference between {_listed([best, *equal])}.{left}", because
        )
    poor = "" if value >= LOW else ", though it is poor too"
    to = f" to {_listed(beaten)}" if beaten else ""
    also = f" {_listed(equal)} may be as good." if equal else ""
    return Advice("prefer", f"{words}, prefer {best}{to}{poor}.{also}{left}", because)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
