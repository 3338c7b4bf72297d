"""Presence: is an object found because of itself? Found or not must follow what was done to it, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.relations import Row
from instar.relations.relation import VERDICT_COLUMNS, Evidence, Relation
from instar.spelling import Parameter
from instar.store import Schema
from instar.warp import Warp, boxes_iou

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

OUTCOMES = ("missing", "incorrect", "persists")
"""What an unreliable inference is: lost although nothing relevant changed, found only then, found although erased."""
MEASURES: Schema = {
    "label": pl.String,
    "found_source": pl.Boolean,
    "found": pl.Float64,
    "tries": pl.Int32,
    "draw": pl.Int32,
}
"""An object's class, whether it is found in the source, the share of the follow-ups in which it is, how many there
are, and the first draw that breaks the relation."""

_OUTSIDE = "no pixel of the object is in the image"
_UNTOUCHED = "nothing of the object was changed"
_UNFOUND = "not found in the source: there is nothing to lose"


@dataclass(frozen=True, slots=True, eq=False)
class _Objects:
    """The objects of a case that verdicts are about."""

    boxes: Floats
    labels: list[str]
    ids: list[str]

    def carried(self, row: Row) -> Floats:
        """Their boxes in a follow-up."""
        warp = Warp(np.reshape(row["warp"], (3, 3)), (1, 1), (row["width"], row["height"]))
        unmoved = warp.is_identity or not len(self.boxes)
        return self.boxes if unmoved else np.asarray(warp.boxes(self.boxes), np.float64)

    def inside(self, width: int, height: int) -> Bools:
        """Which have a whole pixel in the frame: one whose centre is in the box."""
        corners = np.ceil(np.clip(self.boxes, 0, np.array([width, height] * 2, np.float64)) - 0.5)
        return np.asarray((corners[:, 2:] > corners[:, :2]).all(1))


def presence(evidence: Evidence) -> pl.DataFrame:
    """The share of follow-ups of an object that break the relation: two of three are a majority.

    An object is found where a detection of its class overlaps its box enough. Objects are the annotated ones, with
    their ids; in a dataset without any, what the system found in the source, by its place there. A follow-up that
    changes one object alone is about that one.
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
    parameters, confidence = evidence.parameters, float(evidence.options["confidence"])
    effect, iou = str(parameters["effect"]), _least_overlap(parameters)
    inside = objects.inside(source["width"], source["height"])
    before = _is_found(objects.boxes, objects.labels, source, confidence, iou)
    for (name,), draws in follow_ups.group_by("follow_up", maintain_order=True):
        rows = list(draws.iter_rows(named=True))
        after = np.array([_is_found(objects.carried(row), objects.labels, row, confidence, iou) for row in rows])
        touched = {target for row in rows for target in row["removed"] or ()}
        facts = json.loads(rows[0]["facts"]) if rows[0]["facts"] else {}
        verdict = {"case": case, "follow_up": name, "tries": len(rows)}
        for number, (target, label) in enumerate(zip(objects.ids, objects.labels, strict=True)):
            if facts.get("object") not in (None, target):
                continue
            broken = np.asarray(after[:, number] if effect == "gone" else after[:, number] != before[number])
            reason = (
                (None if inside[number] else _OUTSIDE)
                or _unknown_class(label, known_labels, parameters)
                or _unclaimed(target in touched, bool(before[number]), float(facts.get("ratio", 1.0)), parameters)
            )
            severity = None if reason else float(broken.mean())
            kind = "persists" if effect == "gone" else "missing" if before[number] else "incorrect"
            yield {
                **verdict,
                "target": target,
                "severity": severity,
                "reason": reason,
                "kind": kind if severity else None,
                "label": label,
                "found_source": bool(before[number]),
                "found": float(after[:, number].mean()),
                "draw": int(rows[int(broken.argmax())]["draw"]) if severity else None,
            }
        if not objects.ids:
            yield {**verdict, "target": "whole", "reason": "no objects in this image"}


def _objects(case: Row, source: Row, confidence: float) -> _Objects:
    """The annotated objects of a case, else the confident detections in its source."""
    if case.get("truth_boxes") is not None:
        labels = list(case["truth_labels"])
        ids = list(case["truth_ids"] or ()) or [str(number) for number in range(len(labels))]
        return _Objects(np.asarray(case["truth_boxes"], np.float64).reshape(-1, 4), labels, ids)
    confident = np.flatnonzero(np.asarray(source["scores"], np.float64) >= confidence)
    boxes = np.asarray(source["boxes"], np.float64).reshape(-1, 4)[confident]
    return _Objects(boxes, [source["labels"][number] for number in confident], [str(number) for number in confident])


def _least_overlap(parameters: Row) -> float:
    """The least overlap with which an object is found."""
    iou = float(parameters["iou"])
    return float(np.nextafter(iou, 2)) if parameters["strict"] else iou


def _is_found(boxes: Floats, labels: list[str], answer: Row, confidence: float, iou: float) -> Bools:
    """Which objects have a detection of their class that overlaps their box at least so much."""
    confident = np.asarray(answer["scores"], np.float64) >= confidence
    return np.asarray((_matching(boxes, labels, answer, iou) & confident).any(1))


def _matching(boxes: Floats, labels: list[str], answer: Row, iou: float) -> Bools:
    """Which detections, whatever their score, are of which object's class and overlap its box at least so much."""
    if not len(boxes) or not len(answer["labels"]):
        return np.zeros((len(boxes), len(answer["labels"])), bool)
    overlap = boxes_iou(boxes, np.asarray(answer["boxes"], np.float64).reshape(-1, 4))
    same = np.asarray(labels, object)[:, None] == np.asarray(answer["labels"], object)[None]
    return np.asarray(same & (overlap >= iou))


def object_in(answer: Row, target: str, evidence: Evidence) -> tuple[Floats, Bools]:
    """The box of an object of the evidence's only case in a prediction, and which detections there match it.

    They match by class and overlap, whatever their score. Raises `LookupError` where the case has no such object.
    """
    source = evidence.sources.row(0, named=True)
    objects = _objects(evidence.cases.row(0, named=True), source, evidence.options["confidence"])
    if target not in objects.ids:
        raise LookupError(f"there is no object {target} in this case")
    number = objects.ids.index(target)
    box = objects.carried(answer)[number : number + 1]
    iou = _least_overlap(evidence.parameters)
    return box[0], _matching(box, objects.labels[number : number + 1], answer, iou)[0]


def _unknown_class(label: str, known_labels: set[str], parameters: Row) -> str | None:
    """That an object of a class which the system does not know stays unfound proves nothing."""
    if label in known_labels or parameters["unfound"] != "leave":
        return None
    return f"the system never says {label!r} in this run: it may not know this class"


def _unclaimed(touched: bool, before: bool, ratio: float, parameters: Row) -> str | None:
    """Why the relation claims nothing about an object that is erased."""
    if parameters["effect"] == "kept":
        return None
    if not touched:
        return _UNTOUCHED
    if ratio < parameters["least"]:
        least = parameters["least"]
        return f"a right detector may find an object of which {ratio:g} is erased; claimed from {least:g} up"
    return _UNFOUND if not before and parameters["unfound"] == "leave" else None


# fmt: off
PARAMETERS = (
    Parameter("effect", "choice", choices=("gone", "kept"),
              help="gone: an object that is erased must not stay found; kept: found or not must not change"),
    Parameter("iou", "float", 0.3, low=0, high=1, help="found from this overlap with the object's box up"),
    Parameter("strict", "bool", False, help="found above that overlap, not with it: the original's code"),
    Parameter("least", "float", 0.9, low=0, high=1,
              help="gone: claimed from this erased ratio up; below, `found` is measured and nothing is judged"),
    Parameter("unfound", "choice", "leave", choices=("leave", "count"),
              help="gone: objects not found in the source are left out, or counted as the original did"),
    Parameter("draws", "int", 3, low=1, high=1000, help="follow-ups of a random transformation"),
    Parameter("repeats", "int", 1, low=1, high=1000, help="predictions of each by a stochastic system"),
)

RELATIONS: Mapping[str, Relation] = {
    "presence": Relation(
        "presence", "detections", presence, unit="shares of the follow-ups", threshold=2 / 3, grid=(1 / 3, 2 / 3, 1.0),
        kinds=OUTCOMES, measures=MEASURES, mapping=False, own_needs=("objects",), parameters=PARAMETERS,
        options=(Parameter("confidence", "float", 0.5, low=0, high=1, help="detections below this are not there"),),
        help="Whether an object is found follows what was done to it: an erased object is not found any more; noise on "
        "an object or on the background changes nothing. ⚠ The paper's formulas for the two are inverted.",
    ),
}
# fmt: on
