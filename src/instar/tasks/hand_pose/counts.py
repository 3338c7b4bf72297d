"""What the measures of hand pose are sums of: landmarks and hands that are right, wrong or missing, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run, described
from instar.engine import DEFAULT, SOURCE, chunks, evidence
from instar.outputs.poses import Poses
from instar.relations import BoundRule, Evidence, Row, pose_pairs
from instar.relations.accuracy import counted_pairs, reference_of
from instar.skeleton import Skeleton
from instar.store import KEY
from instar.tasks.hand_pose.answers import FACTS, READINGS, exchanges_of, facts_of, joined_facts, readings_of, stays_of
from instar.tasks.hand_pose.follow_ups import TestCase, accuracy_rules, named_follow_ups

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.float32]

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
OTHER = "other"
"""Landmarks that are not those of a hand, counted together."""
_COLUMNS = (*KEY, "status", "message", "width", "height", "warp", *Poses.columns)
_IDENTITY = np.eye(3).ravel().tolist()


@dataclass(frozen=True, slots=True, eq=False)
class HandCounts:
    """What was counted of every case, in its source and its follow-ups: what all measures are sums of.

    `cases` has a row per case, in the order of their ids: `case`, `hash`, `reference` (truth, or source: the system's
    own answer), `empty` (the reference has no hand) and `object`, the attribute of that name. `counts` is (cases,
    test cases, columns), `judged` (cases, test cases); the first of the `test_cases` is the source.
    """

    options: Row
    """The judging's: what is near, what overlaps, what a distance is divided by."""
    cases: pl.DataFrame
    test_cases: tuple[TestCase, ...]
    landmarks: tuple[str, ...]
    judged: Flags
    counts: Counts
    facts: pl.DataFrame
    """What is known of each answer, by case and follow-up, before anything is counted: `answers.FACTS`."""
    readings: pl.DataFrame
    """How many landmarks of the sources are right if answers are read in other ways: `answers.READINGS`."""
    margin: float
    """How far below the confidence a score may fall before a rule of the run calls a hand lost; here it is missing."""

    @property
    def follow_ups(self) -> tuple[str, ...]:
        return tuple(each.follow_up for each in self.test_cases)

    def only(self, cases: pl.Series) -> HandCounts:
        """The cases for which this is true."""
        take, kept = cases.to_numpy(), self.cases.filter(cases)
        facts, readings = (each.join(kept, on="case", how="semi") for each in (self.facts, self.readings))
        judged, counts = self.judged[take], self.counts[take]
        return replace(self, cases=kept, judged=judged, counts=counts, facts=facts, readings=readings)

    def at(self, places: Sequence[int]) -> HandCounts:
        """Some of the test cases."""
        take = list(places)
        test_cases = tuple(self.test_cases[place] for place in take)
        return replace(self, test_cases=test_cases, judged=self.judged[:, take], counts=self.counts[:, take])


@dataclass(frozen=True, slots=True, eq=False)
class CountColumns:
    """The columns of counts under their names: views, so that what is written to them is counted."""

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

    @classmethod
    def of(cls, counts: npt.NDArray[np.floating], landmarks: int) -> CountColumns:
        marks, *others = np.split(counts, np.cumsum([4 * landmarks, 3, 2, 1]), -1)
        return cls(marks.reshape(*marks.shape[:-1], landmarks, 4), *others)

    @classmethod
    def empty(cls, rows: int, landmarks: int) -> tuple[Counts, CountColumns]:
        """Nothing counted yet: the counts, and their columns to write to."""
        counts = np.zeros((rows, 4 * landmarks + 3 + 2 + 1 + len(GRID)), np.float32)
        return counts, cls.of(counts, landmarks)


def hand_counts(run: Run, judging: str = DEFAULT) -> HandCounts:
    """Count what a run found of its hands, in source and follow-ups, against the truth or the source's answer.

    Hands, landmarks and distances are counted as the relation `accuracy` does: a hand whose score is below the
    confidence is missing, however little, as for whoever cuts there. `hand_comparison` takes the counts of
    several runs.
    """
    return run.cached(("hand counts", judging), lambda: _counted(run, judging))


def _counted(run: Run, judging: str) -> HandCounts:
    rules = accuracy_rules(run)
    manifest = run.manifest
    if rules and manifest.output is None:
        raise ValueError(f"not one input was answered in {run.folder}: there are no hands to count")
    if not rules:
        raise ValueError(
            f"{run.folder} has no rules about the accuracy of hands; `instar run mediapipe-hands "
            "hand-pose DATASET` makes such a run"
        )
    landmarks = _separate_landmarks(Skeleton.from_dict(manifest.header["skeleton"]).landmarks)
    test_cases = named_follow_ups(run, rules.values())
    groups: dict[str, list[BoundRule]] = {}
    for rule in rules.values():
        groups.setdefault(rule.relation.id, []).append(rule)
    options: Row = {}
    blocks: list[tuple[pl.DataFrame, Counts]] = []
    facts, readings = [pl.DataFrame(schema=FACTS)], [pl.DataFrame(schema=READINGS)]
    for piece in chunks(run.store):
        rows, cases = piece.predictions(_COLUMNS), piece.cases()
        for number, members in enumerate(groups.values()):
            whole, _ = evidence(members, rows, cases, manifest, run.judging(judging))
            follow_ups = whole.follow_ups if number else _with_source(whole)
            blocks += [_block(whole, follow_ups, name, test_cases, landmarks) for name in ("truth", "source")]
            options = whole.options
            known = facts_of(whole, follow_ups), stays_of(whole), exchanges_of(whole, follow_ups)
            facts.append(joined_facts(known).cast(FACTS))  # type: ignore[arg-type]
            readings += [] if number else [readings_of(whole, follow_ups.filter(pl.col("follow_up") == SOURCE))]
    keys = pl.concat([keys for keys, _ in blocks])
    cases = _cases(run, keys)
    counts, judged = _placed(keys, np.concatenate([values for _, values in blocks]), cases, len(test_cases))
    hands = CountColumns.of(counts[:, 0], len(landmarks)).hands
    judged[(cases["reference"] == "source").to_numpy() & (hands[:, 0] == 0)] = False
    cases = cases.with_columns(empty=pl.col("empty").fill_null(pl.Series(hands.sum(1) == 0)))
    known_facts, known_readings, margin = pl.concat(facts), pl.concat(readings), _margin(run, judging)
    return HandCounts(options, cases, test_cases, landmarks, judged, counts, known_facts, known_readings, margin)


def _margin(run: Run, judging: str) -> float:
    """The margin of score that the run's own rules about poses allow; 0 where they allow none."""
    relations = {rule.relation.relation.name: rule.relation.relation for rule in run.bound_rules()}
    options = (run.judging(judging).of(each) for each in relations.values() if each.output == "poses")
    return max((float(each.get("margin", 0.0)) for each in options), default=0.0)


def _cases(run: Run, keys: pl.DataFrame) -> pl.DataFrame:
    """The cases that were counted, and what they are compared with; `empty` is null where that is no truth."""
    truth = pl.col("truth_scores").list.len() == 0 if run.manifest.truth else pl.lit(None, pl.Boolean)
    facts = run.store.cases(["case", "hash", *(["truth_scores"] if run.manifest.truth else [])])
    known = described(run.cases())
    objects = known.select("case", "object" if "object" in known.columns else pl.lit(None).alias("object"))
    return (
        keys.group_by("case")
        .agg(pl.col("reference").first())
        .join(facts, on="case")
        .join(objects, on="case", how="left")
        .sort("case")
        .select("case", "hash", "reference", "object", empty=pl.when(pl.col("reference") == "truth").then(truth))
    )


def _placed(keys: pl.DataFrame, values: Counts, cases: pl.DataFrame, test_cases: int) -> tuple[Counts, Flags]:
    """The counts of every case and test case, and which of these there are."""
    where = keys.join(cases.with_row_index("at").select("case", "at"), on="case", maintain_order="left")
    places = where["at"].to_numpy(), where["follow_up"].to_numpy()
    counts = np.zeros((len(cases), test_cases, values.shape[1]), np.float32)
    judged = np.zeros(counts.shape[:2], bool)
    np.add.at(counts, places, values)
    judged[places] = True
    return counts, judged


def _separate_landmarks(landmarks: Sequence[str]) -> tuple[str, ...]:
    """The landmarks that are counted one by one: those of a hand, left and right alike, and all others together.

    A skeleton without hands has all of them.
    """
    names = [_bare(name) for name in landmarks]
    of_hand = [name for name in names if name == "wrist" or finger_of(name)]
    others = [OTHER] if len(of_hand) < len(names) else []
    return tuple(dict.fromkeys([*of_hand, *others] if of_hand else names))


def _bare(landmark: str) -> str:
    """A landmark of a left or a right hand as one of a hand."""
    return landmark.rpartition(".")[2]


def finger_of(landmark: str) -> str | None:
    """The finger that a landmark belongs to; None for the wrist and what is not of a hand."""
    return next((finger for finger, start in FINGERS.items() if landmark.startswith(start)), None)


def _with_source(whole: Evidence) -> pl.DataFrame:
    """The follow-ups, and before them the source as one that changed nothing."""
    source = whole.sources.filter(pl.col("repeat") == 0).with_columns(
        follow_up=pl.lit(SOURCE), draw=pl.lit(0, pl.Int32), warp=pl.lit(_IDENTITY, pl.List(pl.Float64))
    )
    return pl.concat([source, whole.follow_ups], how="diagonal_relaxed")


def _block(
    whole: Evidence, follow_ups: pl.DataFrame, reference: str, test_cases: Sequence[TestCase], landmarks: Sequence[str]
) -> tuple[pl.DataFrame, Counts]:
    """The counts of each follow-up with a reference of this kind."""
    compared = reference_of(whole, follow_ups, reference)
    if compared is None:
        schema = {"case": pl.String, "follow_up": pl.Int64, "reference": pl.String}
        return pl.DataFrame(schema=schema), CountColumns.empty(0, len(landmarks))[0]
    pairs = pose_pairs(compared)
    numbers = {name: number for number, name in enumerate(landmarks)}
    column = np.array([numbers.get(_bare(name), len(numbers) - 1) for name in pairs.bones.landmarks])
    counts, into = CountColumns.empty(pairs.follow_ups.height, len(landmarks))
    for errors in pairs.errors():
        judged = errors.comparable
        both = judged & np.isfinite(errors.distance)
        near = both & (errors.severity < pairs.options["within"])
        at = errors.rows[:, None], column[errors.landmarks][None]
        for kind, flags in enumerate((near, both & ~near, judged & ~both)):
            np.add.at(into.marks[..., kind], at, flags)
    rows, shown = pairs.invented()
    np.add.at(into.marks[..., 3], (rows[:, None], column[pairs.landmarks][None]), shown)
    for errors in replace(pairs, options={**pairs.options, "normaliser": "part"}).errors():
        sized = errors.comparable
        distance = np.where(sized, errors.severity, np.inf)
        np.add.at(into.within, errors.rows, np.stack([(distance <= t).sum(1) for t in GRID], 1))
        np.add.at(into.sized[:, 0], errors.rows, sized.sum(1))
    sums = counted_pairs(pairs)
    for kind, name in enumerate(("hand_tp", "hand_fp", "hand_fn")):
        into.hands[:, kind] = sums[name]
    into.apart[:, 0], into.apart[:, 1] = sums["distance"], sums["near"]
    places = {each.follow_up: place for place, each in enumerate(test_cases)}
    numbered = pl.col("follow_up").replace_strict(places, return_dtype=pl.Int64)
    return pairs.follow_ups.select("case", numbered, reference=pl.lit(reference)), counts
