"""Presence: is an object found because of itself? Found or not must follow what was done to it, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.detections import Detections
from instar.relations import Row
from instar.relations.pairing import FAINT, MARGIN, ROUNDING
from instar.relations.relation import NOTHING_FOUND, VERDICT_COLUMNS, Evidence, Relation
from instar.spelling import Parameter
from instar.store import Schema
from instar.transforms.words import percentage
from instar.warp import Warp, boxes_iou, warp_pixels

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

OUTCOMES = ("missing", "faint", "incorrect", "persists", "unfound")
"""What an unreliable inference is: lost although nothing relevant changed, or found with a far lower score; found only
then, found although erased; and, where objects that the source does not show are counted as the original did, not found
before and after erasing."""
MEASURES: Schema = {
    "label": pl.String,
    "found_source": pl.Boolean,
    "found": pl.Float64,
    "tries": pl.Int32,
    "draw": pl.Int32,
    "score_source": pl.Float64,
    "score": pl.Float64,
}
"""An object's class, whether it is found in the source, the share of the follow-ups in which it is, how many there
are, the first draw that breaks the relation, and the highest score of what matches the object, in the source and, on
average, in the follow-ups; 0 where nothing does."""
COVERED = 0.1
"""The share of an object's box up to which a change of another object leaves it what it was."""

CLOSE = 0.2
"""Two objects explain a detection equally well if the squares of their overlaps with it differ by less."""

_OUTSIDE = "no pixel of the object is in the image"
_UNTOUCHED = "nothing of the object was changed"
ONLY_MEASURED = "a right detector may find an object of which"
"""How the reason begins why nothing is claimed of an object that was erased in part: a point of the response curve."""
UNFOUND = "not found in the source: there is nothing to lose"
_ALL_CHANGED = "every object was changed, so there are no others"
_NO_OBJECTS = "no objects in this image"
_NO_OTHERS = "the object that was changed is the only one in this image, so there are no others"
_NOT_COUNTED = "the object that was changed does not count: the system is less sure of it than the confidence asks"


@dataclass(frozen=True, slots=True, eq=False)
class _Objects:
    """The objects of a case that verdicts are about."""

    boxes: Floats
    labels: list[str]
    ids: list[str]
    masks: Bools | None

    def carried(self, row: Row) -> tuple[Floats, Bools | None]:
        """Their boxes and masks in a follow-up."""
        source = (1, 1) if self.masks is None else (self.masks.shape[2], self.masks.shape[1])
        warp = Warp(np.reshape(row["warp"], (3, 3)), source, (row["width"], row["height"]))
        if warp.is_identity or not len(self.boxes):
            return self.boxes, self.masks
        masks = self.masks
        if masks is not None:
            masks = np.stack([warp_pixels(each.astype(np.uint8), warp, "nearest").astype(bool) for each in masks])
        return np.asarray(warp.boxes(self.boxes), np.float64), masks

    def inside(self, width: int, height: int) -> Bools:
        """Which have a whole pixel in the frame: one whose centre is in the box."""
        corners = np.ceil(np.clip(self.boxes, 0, np.array([width, height] * 2, np.float64)) - 0.5)
        return np.asarray((corners[:, 2:] > corners[:, :2]).all(1))

    def concerned(self, effect: str, changed: str | None) -> list[int]:
        """Which of them a relation is about: where one alone was changed, that one, or all others."""
        others = effect == "others"
        return [n for n, one in enumerate(self.ids) if changed is None or (one == changed) is not others]

    def covered(self, row: Row) -> Floats:
        """The largest share of each one's box that a region of the change covers."""
        boxes, _ = self.carried(row)
        regions = np.asarray(row["regions"] or (), np.float64).reshape(-1, 4)
        low = np.maximum(boxes[:, None, :2], regions[None, :, :2])
        high = np.minimum(boxes[:, None, 2:], regions[None, :, 2:])
        shared = np.clip(high - low, 0, None).prod(-1)
        return np.asarray(
            (shared / np.maximum((boxes[:, 2:] - boxes[:, :2]).prod(-1), 1e-9)[:, None]).max(1, initial=0)
        )


def presence(evidence: Evidence) -> pl.DataFrame:
    """The share of follow-ups of an object that break the relation: two of three are a majority.

    An object is found where a detection of its class overlaps it enough: by mask where both have masks, else by box. A
    detection counts for one object alone, unless the rule shares it.
    Objects are the annotated ones, with their ids; in a dataset without any, what the system found in the source, by
    its place there. A follow-up that changes one object alone is about that one, or about all others.
    """
    follow_ups = evidence.follow_ups.sort("case", "follow_up", "draw", "repeat", maintain_order=True)
    cases = {row["case"]: row for row in evidence.cases.iter_rows(named=True)}
    sources = {row["case"]: row for row in evidence.sources.filter(pl.col("repeat") == 0).iter_rows(named=True)}
    known_labels = {label for rows in (evidence.sources, follow_ups) for label in rows["labels"].explode().unique()}
    verdicts: list[Row] = []
    for (case,), rows in follow_ups.group_by("case", maintain_order=True):
        if case in sources:
            objects = _objects(cases.get(case, {}), sources[case], evidence.options["confidence"])
            verdicts += _case_verdicts(evidence, str(case), objects, sources[case], rows, known_labels)
    return pl.DataFrame(verdicts, schema={**VERDICT_COLUMNS, **MEASURES}, orient="row")


def _case_verdicts(
    evidence: Evidence, case: str, objects: _Objects, source: Row, follow_ups: pl.DataFrame, known_labels: set[str]
) -> Iterator[Row]:
    parameters = evidence.parameters
    effect, confidence = str(parameters["effect"]), float(evidence.options["confidence"])
    inside = objects.inside(source["width"], source["height"])
    before = _best(_counting(objects, source, np.zeros(len(objects.ids), bool), evidence), source)
    at_best = _best(_matching(objects, source, parameters)[0], source)
    for (name,), draws in follow_ups.group_by("follow_up", maintain_order=True):
        rows = list(draws.iter_rows(named=True))
        after = np.array([_best(_counting(objects, row, before >= confidence, evidence), row) for row in rows])
        touched = {target for row in rows for target in row["removed"] or ()}
        facts = json.loads(rows[0]["facts"]) if rows[0]["facts"] else {}
        covered = objects.covered(rows[0]) if effect == "others" else np.zeros(len(objects.ids))
        verdict = {"case": case, "follow_up": name, "tries": len(rows)}
        concerned = objects.concerned(effect, facts.get("object"))
        for number in concerned:
            target, label = objects.ids[number], objects.labels[number]
            outcome = _outcome(evidence, before[number], at_best[number], after[:, number])
            reason = (
                (None if inside[number] else _OUTSIDE)
                or _unknown_class(label, known_labels, parameters)
                or _unclaimed(target in touched, outcome.before, float(facts.get("ratio", 1.0)), parameters)
                or (_unaffected(facts, covered[number]) if effect == "others" else None)
                or outcome.reason
            )
            severity = None if reason else float(outcome.broken.mean())
            yield {
                **verdict,
                "target": target,
                "severity": severity,
                "reason": reason,
                "kind": outcome.kind if severity else None,
                "label": label,
                "found_source": outcome.before,
                "found": float(outcome.after.mean()),
                "draw": int(rows[int(outcome.telling.argmax())]["draw"]) if severity else None,
                "score_source": float(before[number]),
                "score": float(after[:, number].mean()),
            }
        if not concerned:
            nobody = _NO_OTHERS if effect == "others" else _NOT_COUNTED
            yield {**verdict, "target": "whole", "reason": nobody if objects.ids else _NO_OBJECTS}


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """Whether an object is found before and after, which follow-ups break the relation and how, or why none can.

    `telling` are those of the follow-ups that break it which show `kind`.
    """

    before: bool
    after: Bools
    broken: Bools
    kind: str
    telling: Bools
    reason: str | None = None


def _outcome(evidence: Evidence, source: float, at_best: float, follow_ups: Floats) -> _Outcome:
    """What the highest scores of an object's detections say; `at_best` counts those of another object in the source.

    An object that is found in the source alone is missing if nothing matches it in the follow-up, and faint if its
    score fell by more than the margin; likewise one that is found in the follow-up alone. A score that wobbles about
    the confidence is neither. With a margin of 0 a score below the confidence is no match.
    """
    effect, confidence = str(evidence.parameters["effect"]), float(evidence.options["confidence"])
    margin = float(evidence.options["margin"])
    before, after = bool(source >= confidence), np.asarray(follow_ups >= confidence)
    if effect == "gone":
        counted = evidence.parameters["unfound"] == "count"
        broken = np.asarray(after == before) if counted else after
        return _Outcome(before, after, broken, "unfound" if counted and not before else "persists", broken)
    other = follow_ups if before else np.full(len(follow_ups), at_best)
    lost = np.asarray(other <= 0) if margin > 0 else np.ones(len(follow_ups), bool)
    crossed = ~after if before else after & (effect == "kept" and at_best < confidence)
    broken = np.asarray(crossed & (lost | (np.abs((source if before else follow_ups) - other) > margin + ROUNDING)))
    kind = "faint" if not (broken & lost).any() else "missing" if before else "incorrect"
    telling = broken if kind == "faint" else broken & lost
    empty = not before and effect == "kept" and not after.any() and evidence.options["empty"] == "leave"
    return _Outcome(before, after, broken, kind, telling, NOTHING_FOUND if empty else None)


def _objects(case: Row, source: Row, confidence: float) -> _Objects:
    """The annotated objects of a case, else the confident detections in its source."""
    if case.get("truth_boxes") is not None:
        fields = ("boxes", "labels", "ids", "masks")
        truth = Detections.from_row(
            {
                **{name: case.get(f"truth_{name}") for name in fields},
                "ids": (),
                "scores": [1.0] * len(case["truth_labels"]),
            },
            {},
        )
        ids = list(case["truth_ids"] or ()) or [str(number) for number in range(len(truth))]
        return _Objects(truth.boxes.astype(np.float64), list(truth.labels), ids, truth.masks)
    answer = Detections.from_row({**source, "ids": [str(number) for number in range(len(source["labels"]))]}, {})
    sure = answer.confident(confidence)
    return _Objects(sure.boxes.astype(np.float64), list(sure.labels), list(sure.ids), sure.masks)


def _best(counting: Bools, answer: Row) -> Floats:
    """The highest score among the detections that count for each object, 0 where none does."""
    return np.asarray(np.where(counting, np.asarray(answer["scores"], np.float64), 0.0).max(1, initial=0.0))


def _counting(objects: _Objects, answer: Row, found: Bools, evidence: Evidence) -> Bools:
    """Which detections, whatever their score, count for which object; `found` are the objects found in the source.

    If detections are not shared, the confident ones are assigned one to one by their overlap; of two objects that
    explain one equally well it is that of the object which should be there: one that was not erased, or that was found
    in the source. The others count for the object that they overlap most.
    """
    matching, overlap = _matching(objects, answer, evidence.parameters)
    if evidence.parameters["shared"] or not matching.any():
        return matching
    from scipy.optimize import linear_sum_assignment

    sure = np.asarray(answer["scores"]) >= evidence.options["confidence"]
    erased = np.isin(np.asarray(objects.ids, object), list(answer.get("removed") or ()))
    expected = ~erased & (found | erased.any())
    counting = matching & ~sure & (overlap >= np.where(matching, overlap, 0.0).max(0))
    gain = np.where(matching & sure, overlap**2 + CLOSE * expected[:, None] + np.finfo(np.float64).eps, 0.0)
    one, other = linear_sum_assignment(gain, maximize=True)
    counting[one, other] |= gain[one, other] > 0
    return np.asarray(counting)


def _matching(objects: _Objects, answer: Row, parameters: Row) -> tuple[Bools, Floats]:
    """Which detections, whatever their score, are of which object's class and overlap it enough, and how much they do.

    Boxes are cut at the frame on both sides: whether a system goes on beyond it is its own affair.
    """
    boxes, masks = objects.carried(answer)
    if not len(boxes) or not len(answer["labels"]):
        return (none := np.zeros((len(boxes), len(answer["labels"])))) > 0, none
    frame = np.array([answer["width"], answer["height"]] * 2, np.float64)
    places = np.asarray(answer["boxes"], np.float64).reshape(-1, 4)
    overlap = boxes_iou(np.clip(boxes, 0, frame), np.clip(places, 0, frame))
    same = np.asarray(objects.labels, object)[:, None] == np.asarray(answer["labels"], object)[None]
    if masks is not None and answer.get("masks"):
        cells = Detections.from_row({**answer, "ids": ()}, {}).masks
        if cells is not None and cells.shape[1:] == masks.shape[1:]:
            overlap = _masks_iou(masks, cells, same & (overlap > 0))
    least = float(parameters["iou"])
    enough = overlap > least if parameters["strict"] else overlap >= least
    return np.asarray(same & enough), overlap


def _masks_iou(masks: Bools, cells: Bools, candidates: Bools) -> Floats:
    """Intersection over union of the masks of the pairs that may match; 0 for all others."""
    overlap = np.zeros(candidates.shape)
    for one, other in np.argwhere(candidates):
        union = int((masks[one] | cells[other]).sum())
        overlap[one, other] = (masks[one] & cells[other]).sum() / union if union else 0.0
    return overlap


def object_in(answer: Row, target: str, evidence: Evidence) -> tuple[Floats, Bools]:
    """The box of an object of the evidence's only case in a prediction, and which detections there count for it.

    They count by class and overlap, whatever their score. Raises `LookupError` where the case has no such object.
    """
    source, confidence = evidence.sources.row(0, named=True), float(evidence.options["confidence"])
    objects = _objects(evidence.cases.row(0, named=True), source, confidence)
    if target not in objects.ids:
        raise LookupError(f"there is no object {target} in this case")
    number = objects.ids.index(target)
    before = _best(_counting(objects, source, np.zeros(len(objects.ids), bool), evidence), source)
    boxes, _ = objects.carried(answer)
    return boxes[number], _counting(objects, answer, before >= confidence, evidence)[number]


def _unknown_class(label: str, known_labels: set[str], parameters: Row) -> str | None:
    """That an object of a class which the system does not know stays unfound proves nothing."""
    if label in known_labels or parameters["unfound"] != "leave":
        return None
    return f"the system never says {label!r} in this run: it may not know this class"


def _unclaimed(touched: bool, before: bool, ratio: float, parameters: Row) -> str | None:
    """Why the relation claims nothing about an object, by what was done to it and whether it was found."""
    if parameters["effect"] == "kept":
        return None
    if parameters["effect"] == "gone" and not touched:
        return _UNTOUCHED
    if parameters["effect"] == "gone" and ratio < parameters["least"]:
        least = parameters["least"]
        return f"{ONLY_MEASURED} {ratio:g} is erased; judged from {least:g} up"
    return UNFOUND if not before and parameters["unfound"] == "leave" else None


def _unaffected(facts: Row, covered: float) -> str | None:
    """Why nothing is claimed of another object than the one that was changed."""
    if "object" not in facts:
        return _ALL_CHANGED
    if covered > COVERED:
        return (
            f"the change of the other object covers {percentage(round(covered, 2))} of this one, so that it may be "
            f"lost; judged up to {percentage(COVERED)}"
        )
    return None


_EFFECTS = {
    "gone": "what is erased must not be found",
    "kept": "every object that was found must be found again",
    "others": "the other objects must be found again",
}


# fmt: off
PARAMETERS = (
    Parameter("effect", "choice", choices=("gone", "kept", "others"),
              help="gone: an object that is erased must not stay found; kept: found or not must not change; others: "
                   "all but the one object that was changed must stay found"),
    Parameter("iou", "float", 0.3, low=0, high=1,
              help="found from this overlap with the object up: of masks where both have them, else of boxes"),
    Parameter("strict", "bool", False, help="found above that overlap, not with it: the original's code"),
    Parameter("least", "float", 0.9, low=0, high=1,
              help="gone: claimed from this erased ratio up; below, `found` is measured and nothing is judged"),
    Parameter("unfound", "choice", "leave", choices=("leave", "count"),
              help="gone: objects not found in the source are left out, or counted as the original did, for which an "
                   "answer that stays the same is a violation: found twice or not found twice"),
    Parameter("draws", "int", 3, low=1, high=1000, help="follow-ups of a random transformation"),
    Parameter("repeats", "int", 1, low=1, high=1000, help="predictions of each by a stochastic system"),
    Parameter("shared", "bool", False, help="a detection counts for every object that it overlaps enough, not for the "
              "one that it fits best: the original's code"),
)

RELATIONS: Mapping[str, Relation] = {
    "presence": Relation(
        "presence", "detections", presence, unit="shares of the follow-ups", threshold=2 / 3, grid=(1 / 3, 2 / 3, 1.0),
        meanings={
            "missing": "an object that should still be found is not", "faint": FAINT,
            "persists": "an erased object is still found",
            "incorrect": "an object is found in the follow-up alone", "unfound": "it is found neither before nor after",
        },
        counted={"persists": "still found"},
        kinds=OUTCOMES, measures=MEASURES, mapping=False, own_needs=("objects",), parameters=PARAMETERS,
        classes="label", words=lambda effect: _EFFECTS[effect], title="presence of objects",
        details=(
            "found in {found:%} of {tries:follow-up}",
            "its best score: {score_source} in the source, {score} on average in the follow-ups",
        ),
        options=(
            Parameter("confidence", "float", 0.5, low=0, high=1, help="detections below this are not there"),
            MARGIN,
            Parameter("empty", "choice", "leave", choices=("leave", "keep"),
                      help="an object found neither in the source nor in a follow-up is not judged, or keeps the "
                           "relation as in the original"),
        ),
        help="Whether an object is found follows what was done to it: an erased object is not found any more; noise on "
        "an object or on the background changes nothing; what happens to one object changes nothing of the others.",
    ),
}
# fmt: on
