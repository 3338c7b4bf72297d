"""Detections: boxes move as the image was moved, and keep their class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Row
from instar.outputs.detections import Detections
from instar.relations.pairing import DRAWS, MARGIN, SHARE, paired, per_pair, projected
from instar.relations.relation import EMPTY, NOTHING_FOUND, ZONE_SHARE, Evidence, Relation
from instar.spelling import Parameter
from instar.warp import boxes_iou

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

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
    """1 − IoU per object, matched one to one; a lost, invented or doubled object is 1.

    Every object of the source that either image shows with confidence is a target of its own; what was invented or
    doubled belongs to the whole. What the other image shows may score less, by no more than the margin.
    """
    follow_ups = paired(evidence).drop("masks", strict=False)
    sources = evidence.sources.drop("masks", strict=False).to_dicts()
    rows: list[Row] = []
    for number, row in enumerate(follow_ups.iter_rows(named=True)):
        source = sources[row["source"]]
        source_objects = Detections.from_row(source, evidence.header)
        follow_up_objects = Detections.from_row(row, evidence.header)
        if reason := _too_many(source_objects, follow_up_objects, evidence.options):
            rows.append({"row": number, **_BLANK, "target": "whole", "severity": None, "reason": reason})
            continue
        scene = _Scene.of(source, row, source_objects, follow_up_objects, evidence.options)
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


def _too_many(source: Detections, follow_up: Detections, options: Row) -> str:
    """Why two answers cannot be compared; empty where they can."""
    least = float(options["confidence"]) - float(options["margin"])
    counts = [int((each.scores >= least).sum()) for each in (source, follow_up)]
    if counts[0] * counts[1] <= MOST_PAIRS:
        return ""
    return f"{counts[0]:,} and {counts[1]:,} objects that count are too many to match"


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """What was found in a source and in one follow-up of it, and which answers to which.

    Boxes are in the follow-up, cut where the source's frame ended: beyond it nobody saw anything, and some systems cut
    their boxes there while others do not. `share` is how much of each expected box is left.
    """

    numbers: npt.NDArray[np.int64]
    """The ordinals of `source` in the source output: targets are called by them, whatever the confidence."""
    source: Detections
    follow_up: Detections
    confidence: float
    least_share: float
    share: Floats
    overlap: Floats
    """IoU of every expected box with every actual one."""
    same: Flags
    """Which of them have the same class."""
    partner: dict[int, int]

    @classmethod
    def of(cls, source: Row, row: Row, before: Detections, after: Detections, options: Row) -> _Scene:
        confidence = float(options["confidence"])
        least = confidence - float(options["margin"])
        numbers = np.flatnonzero(before.scores >= least)
        before, after = before.confident(least), after.confident(least)
        matrix = np.reshape(row["warp"], (1, 3, 3))
        frame = _carried(matrix, np.array([[0.0, 0, source["width"], source["height"]]]))[0]
        frame = np.clip(frame, 0, np.tile((row["width"], row["height"]), 2))
        carried, seen = _carried(matrix, before.boxes), before.boxes.astype(np.float64)
        seen = _carried(matrix, np.clip(seen, 0, np.tile((source["width"], source["height"]), 2)))
        expected = _cut(carried, frame)
        share = np.divide(_areas(_cut(seen, frame)), _areas(seen), out=np.zeros(len(seen)), where=_areas(seen) > 0)
        overlap = boxes_iou(expected, _cut(after.boxes.astype(np.float64), frame))
        numbered = {label: number for number, label in enumerate(dict.fromkeys(before.labels + after.labels))}
        classes = [np.array([numbered[label] for label in each.labels], np.int64) for each in (before, after)]
        same = classes[0][:, None] == classes[1]
        partner = _partners(overlap, same, before.scores >= confidence, after.scores >= confidence)
        return cls(numbers, before, after, confidence, float(options["share"]), share, overlap, same, partner)

    def object_verdicts(self) -> list[Row]:
        """One for every object of the source that one side showed with confidence."""
        sure = {*np.flatnonzero(self.source.scores >= self.confidence).tolist()}
        sure |= {a for a, b in self.partner.items() if self.follow_up.scores[b] >= self.confidence}
        return [self._object(number) for number in sorted(sure)]

    def _object(self, number: int) -> Row:
        match = self.partner.get(number)
        own = {**_BLANK, "target": str(self.numbers[number]), "label": self.source.labels[number]}
        own["source_score"] = float(self.source.scores[number])
        if self.share[number] <= 0:
            nothing = _areas(self.source.boxes[[number]].astype(np.float64))[0] <= 0
            why = "its box has no area" if nothing else "the object was carried out of the frame"
            return {**own, "severity": None, "reason": why}
        if self.share[number] < self.least_share:
            why = f"less than {100 * self.least_share:.0f} % of the object stayed in the frame"
            return {**own, "severity": None, "reason": why}
        if match is None:
            return {**own, "severity": 1.0, "kind": "lost", "iou": 0.0, "lost": 1}
        overlap = float(self.overlap[number, match])
        own |= {"iou": overlap, "follow_up_score": float(self.follow_up.scores[match])}
        if self.same[number, match]:
            return {**own, "severity": 1.0 - overlap}
        return {**own, "severity": 1.0, "kind": "class"}

    def whole_verdicts(self) -> list[Row]:
        """What the follow-up shows with confidence and nothing in the source answers to, where there is any."""
        taken = set(self.partner.values())
        rest = (self.share > 0) & (self.share < self.least_share)  # nobody can tell what a small rest of something is
        excused = (self.overlap[rest] >= SAME_PLACE).any(0)
        sure = np.flatnonzero((self.follow_up.scores >= self.confidence) & ~excused)
        extra = [int(number) for number in sure if number not in taken]
        if not extra:
            return []
        doubled = sum(bool((self.same[:, n] & (self.overlap[:, n] >= SAME_PLACE)).any()) for n in extra)
        kind = "invented" if len(extra) > doubled else "doubled"
        counts = {"invented": len(extra) - doubled, "doubled": doubled}
        score = float(self.follow_up.scores[extra].max())
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


def _partners(overlap: Floats, same: Flags, source_sure: Flags, follow_up_sure: Flags) -> dict[int, int]:
    """Which follow-up object answers to each source object.

    Who is sure of one class in one place is matched first, then with whoever is faint there, then with another class
    there, and only then from afar with somebody sure: a faint object elsewhere neither takes a sure one's partner nor
    excuses one that is lost. Overlaps are squared, so that two poor matches never outweigh a good one.
    """
    from scipy.optimize import linear_sum_assignment

    both, either = source_sure[:, None] & follow_up_sure, source_sure[:, None] | follow_up_sure
    here = overlap >= SAME_PLACE
    free = overlap > 0
    partner: dict[int, int] = {}
    for allowed in (same & here & both, same & here & either, here & both, same & both):
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
        grid=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0), kinds=("lost", "invented", "class", "doubled"),
        meanings={
            "lost": "what is found in the source has no match in the follow-up",
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
