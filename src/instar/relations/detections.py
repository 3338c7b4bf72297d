"""Detections: boxes move as the image was moved, and keep their class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Row
from instar.outputs.detections import Detections
from instar.relations.pairing import DRAWS, FAINT, MARGIN, ROUNDING, SHARE, paired, per_pair, projected
from instar.relations.relation import EMPTY, NOTHING_FOUND, ZONE_SHARE, Evidence, Relation
from instar.spelling import Parameter
from instar.warp import boxes_iou

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float32]

# fmt: off
MEASURES = {
    "label": pl.String, "iou": pl.Float64, "lost": pl.Int32, "invented": pl.Int32, "doubled": pl.Int32,
    "source_score": pl.Float64, "follow_up_score": pl.Float64,
}
# fmt: on
MOST_PAIRS = 9_000_000
"""Of objects that count in two answers, each with each: a few hundred megabytes, and seconds."""
SAME_PLACE = 0.5
"""The least overlap of what is taken for one object under two classes, or for one object found twice."""


def detections(evidence: Evidence) -> pl.DataFrame:
    """1 − IoU per object, matched one to one; a lost, faint, invented or doubled object is 1.

    Every object of the source that either image shows with confidence is a target of its own; what was invented or
    doubled belongs to the whole. An object is faint if it scores below the confidence in one of the images, and the two
    scores differ by more than the margin.
    """
    follow_ups = paired(evidence).drop("masks", strict=False)
    sources = evidence.sources.drop("masks", strict=False).to_dicts()
    rows: list[Row] = []
    for number, row in enumerate(follow_ups.iter_rows(named=True)):
        source = sources[row["source"]]
        source_objects = Detections.from_row(source, evidence.header)
        follow_up_objects = Detections.from_row(row, evidence.header)
        places = _Places.of(source, row, source_objects, follow_up_objects)
        numbers, shown = _counting(source_objects.scores, follow_up_objects.scores, places, evidence.options)
        if len(numbers) * len(shown) > MOST_PAIRS:
            reason = f"{len(numbers):,} and {len(shown):,} objects that count are too many to match"
            rows.append({"row": number, **_BLANK, "target": "whole", "severity": None, "reason": reason})
            continue
        scene = _Scene.of(source_objects, follow_up_objects, places, numbers, shown, evidence.options)
        verdicts = scene.object_verdicts() + scene.whole_verdicts()
        rows += [{"row": number, **verdict} for verdict in verdicts or [_peace(source_objects, follow_up_objects)]]
    judged = per_pair(rows, follow_ups, MEASURES)
    if evidence.options["empty"] == "keep":
        empty = pl.col("reason").eq_missing(NOTHING_FOUND)
        judged = judged.with_columns(
            severity=pl.when(empty).then(0.0).otherwise(pl.col("severity")),
            reason=pl.when(empty).then(None).otherwise(pl.col("reason")),
        )
    return judged


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where the objects of a source are expected in a follow-up, and where those of the follow-up are."""

    expected: Floats
    actual: Floats
    frame: Floats
    """The source's frame in the follow-up, as far as it is in the image."""
    share: Floats
    """How much of each expected box stays in that frame, of what was in the source's."""
    empty: Flags
    """Which boxes of the source have no area."""
    visible: Flags
    """Which of them have an area in the source's frame."""
    unseen: Flags
    """Which boxes of the follow-up have no area in its image."""

    @classmethod
    def of(cls, source: Row, row: Row, before: Detections, after: Detections) -> _Places:
        matrix = np.reshape(row["warp"], (1, 3, 3))
        whole, image = (np.array([0.0, 0, each["width"], each["height"]]) for each in (source, row))
        frame = _cut(_carried(matrix, whole[None]), image)[0]
        boxes, actual = before.boxes.astype(np.float64), after.boxes.astype(np.float64)
        visible = _areas(_cut(boxes, whole)) > 0
        seen = _carried(matrix, _cut(boxes, whole))
        share = np.divide(_areas(_cut(seen, frame)), _areas(seen), out=np.zeros(len(seen)), where=visible)
        unseen = _areas(_cut(actual, image)) <= 0
        return cls(_carried(matrix, boxes), actual, frame, share, _areas(boxes) <= 0, visible, unseen)

    def why_unjudged(self, source: int, least_share: float) -> str:
        """Why nothing is asked of an object of the source; empty if something is."""
        if self.empty[source]:
            return "its box has no area"
        if not self.visible[source]:
            return "its box lies outside the source's frame"
        if self.share[source] <= 0:
            return "the object was carried out of the frame"
        if self.share[source] < least_share:
            return f"less than {100 * least_share:.0f} % of the object stayed in the frame"
        return ""

    def overlaps(self, sources: Ints, follow_ups: Ints) -> Floats:
        """IoU of some expected boxes with some actual ones.

        Boxes are cut where the source's frame ended: the source shows nothing beyond it, and some systems cut their
        boxes there while others don't. Boxes of which nothing is left are compared whole, and match only in the same
        place.
        """
        expected, actual = self.expected[sources], self.actual[follow_ups]
        overlap = boxes_iou(_cut(expected, self.frame), _cut(actual, self.frame))
        gone = self.share[sources] <= 0
        whole = boxes_iou(expected[gone], actual)
        overlap[gone] = np.where(whole >= SAME_PLACE, whole, 0.0)
        return overlap


def _counting(before: Scores, after: Scores, places: _Places, options: Row) -> tuple[Ints, Ints]:
    """Return which objects of source and follow-up count: confident ones, and others that lie on a confident one.

    Others don't count with a margin of 0, or if there are too many to compare.
    """
    sure = [np.flatnonzero(scores >= options["confidence"]) for scores in (before, after)]
    faint = [np.flatnonzero(scores < options["confidence"]) for scores in (before, after)]
    if options["margin"] == 0 or max(len(sure[0]) * len(faint[1]), len(faint[0]) * len(sure[1])) > MOST_PAIRS:
        return sure[0], sure[1]
    faint[0] = faint[0][(places.overlaps(faint[0], sure[1]) >= SAME_PLACE).any(1)]
    faint[1] = faint[1][(places.overlaps(sure[0], faint[1]) >= SAME_PLACE).any(0)]
    numbers, shown = (np.sort(np.concatenate(both)) for both in zip(sure, faint, strict=True))
    return numbers, shown


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """What counts in a source and in one follow-up of it, and which answers to which."""

    numbers: Ints
    """The ordinals of the objects in the source output: targets are called by them, whatever the confidence."""
    labels: list[str]
    """Their classes."""
    scores: tuple[Scores, Scores]
    """The scores in the source and in the follow-up."""
    confidence: float
    unjudged: list[str]
    """Why nothing is asked of an object of the source; empty if something is."""
    rest: Flags
    """Objects of the source of which too little stayed in the frame to recognise it."""
    unseen: Flags
    overlap: Floats
    """IoU of every expected box with every actual one."""
    same: Flags
    """Which of them have the same class."""
    steady: Flags
    """Pairs of two confident objects, and of a confident one with another whose score is within the margin of its."""
    partner: dict[int, int]

    @classmethod
    def of(
        cls, before: Detections, after: Detections, places: _Places, numbers: Ints, shown: Ints, options: Row
    ) -> _Scene:
        labels = [before.labels[n] for n in numbers], [after.labels[n] for n in shown]
        scores = before.scores[numbers], after.scores[shown]
        ordinals = {label: number for number, label in enumerate(dict.fromkeys(labels[0] + labels[1]))}
        classes = [np.array([ordinals[label] for label in each], np.int64) for each in labels]
        same = classes[0][:, None] == classes[1]
        sure = [each >= options["confidence"] for each in scores]
        both, either = sure[0][:, None] & sure[1], sure[0][:, None] | sure[1]
        change = np.abs(np.subtract.outer(*scores))
        steady = both | (either & (change <= options["margin"] + ROUNDING))
        overlap = places.overlaps(numbers, shown)
        here = overlap >= SAME_PLACE
        stages = (same & here & both, same & here & steady, here & both, same & both, same & here & either)
        confidence, least_share = float(options["confidence"]), float(options["share"])
        unjudged = [places.why_unjudged(number, least_share) for number in numbers]
        rest = (places.share[numbers] > 0) & (places.share[numbers] < least_share)
        own = confidence, unjudged, rest, places.unseen[shown]
        return cls(numbers, labels[0], scores, *own, overlap, same, steady, _partners(overlap, stages))

    def object_verdicts(self) -> list[Row]:
        """One for every object of the source that one side showed with confidence."""
        sure = {*np.flatnonzero(self.scores[0] >= self.confidence).tolist()}
        sure |= {a for a, b in self.partner.items() if self.scores[1][b] >= self.confidence}
        return [self._object(number) for number in sorted(sure)]

    def _object(self, number: int) -> Row:
        match = self.partner.get(number)
        own = {**_BLANK, "target": str(self.numbers[number]), "label": self.labels[number]}
        own["source_score"] = float(self.scores[0][number])
        if self.unjudged[number]:
            return {**own, "severity": None, "reason": self.unjudged[number]}
        if match is None:
            return {**own, "severity": 1.0, "kind": "lost", "iou": 0.0, "lost": 1}
        overlap = float(self.overlap[number, match])
        own |= {"iou": overlap, "follow_up_score": float(self.scores[1][match])}
        if not self.same[number, match]:
            return {**own, "severity": 1.0, "kind": "class"}
        if not self.steady[number, match]:
            return {**own, "severity": 1.0, "kind": "faint"}
        return {**own, "severity": 1.0 - overlap}

    def whole_verdicts(self) -> list[Row]:
        """What the follow-up shows with confidence and nothing in the source answers to, where there is any."""
        taken = set(self.partner.values())
        excused = self.unseen | (self.overlap[self.rest] >= SAME_PLACE).any(0)
        sure = np.flatnonzero((self.scores[1] >= self.confidence) & ~excused)
        extra = [int(number) for number in sure if number not in taken]
        if not extra:
            return []
        doubled = sum(bool((self.same[:, n] & (self.overlap[:, n] >= SAME_PLACE)).any()) for n in extra)
        kind = "invented" if len(extra) > doubled else "doubled"
        counts = {"invented": len(extra) - doubled, "doubled": doubled}
        score = float(self.scores[1][extra].max())
        return [{**_BLANK, "target": "whole", "severity": 1.0, "kind": kind, **counts, "follow_up_score": score}]


_BLANK: Row = {
    **dict.fromkeys(("kind", "reason", "label", "iou", "source_score", "follow_up_score")),
    **dict.fromkeys(("lost", "invented", "doubled"), 0),
}


def _peace(source: Detections, follow_up: Detections) -> Row:
    """The verdict about two empty answers, with the best scores of what did not count."""
    best = [float(each.scores.max()) if len(each) else None for each in (source, follow_up)]
    scores = dict(zip(("source_score", "follow_up_score"), best, strict=True))
    return {**_BLANK, "target": "whole", "severity": None, "reason": NOTHING_FOUND, **scores}


def _partners(overlap: Floats, stages: Sequence[Flags]) -> dict[int, int]:
    """Which follow-up object answers to each source object: the pairs of one stage go before those of the next.

    First confident objects of one class in one place, then confident and nearly confident ones, then two of different
    classes there, then confident ones from afar, and last those whose score changed by more than the margin. So a faint
    object takes no confident one's partner, and a faint one elsewhere does not excuse one that is lost. Overlaps are
    squared, so that two poor matches never outweigh a good one.
    """
    from scipy.optimize import linear_sum_assignment

    free = overlap > 0
    partner: dict[int, int] = {}
    for allowed in stages:
        gain = np.where(allowed & free, overlap**2, 0.0)
        if not gain.any():
            continue
        for a, b in zip(*linear_sum_assignment(gain, maximize=True), strict=True):
            if gain[a, b] > 0:
                partner[int(a)] = int(b)
                free[a] = free[:, b] = False
    return partner


def _carried(matrix: Floats, boxes: npt.NDArray[np.floating]) -> Floats:
    """The boxes around the four moved corners of boxes."""
    corners = boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]].astype(np.float64).reshape(1, -1, 2)
    moved = projected(matrix, corners).reshape(-1, 4, 2)
    return np.concatenate([moved.min(1), moved.max(1)], -1)


def _cut(boxes: Floats, frame: Floats) -> Floats:
    return np.clip(boxes, np.tile(frame[:2], 2), np.tile(frame[2:], 2))


def _areas(boxes: Floats) -> Floats:
    return np.asarray(np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0, None), -1))


# fmt: off
RELATIONS = (
    Relation(
        "detections", "detections", detections, unit="IoU lost", threshold=0.5,
        grid=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0), kinds=("lost", "faint", "invented", "class", "doubled"),
        meanings={
            "lost": "what is found in the source has no match in the follow-up", "faint": FAINT,
            "invented": "what is found in the follow-up has no match in the source",
            "class": "the same place has another class", "doubled": "one object is found several times",
        },
        counted={"class": "of another class"},
        measures=MEASURES, parameters=DRAWS, classes="label",
        details=(
            "the two boxes overlap by {iou} (IoU)", "in the follow-up, with no match in the source: {invented:object}",
            "found several times: {doubled:object}",
        ),
        options=(
            Parameter("confidence", "float", 0.5, low=0, high=1, help="detections below this are not there"),
            MARGIN,
            SHARE,
            EMPTY,
            ZONE_SHARE,
        ),
        help="Boxes move as the image was moved, and keep their class.",
    ),
)
# fmt: on
