"""Presence: is an object found because of itself? Found or not must follow what was done to it, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.relations.relation import VERDICT_COLUMNS, Evidence, Relation
from instar.spelling import Parameter
from instar.warp import Warp, boxes_iou

__all__ = ["RELATIONS", "object_in"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

MEASURES: dict[str, Any] = {
    "label": pl.String,
    "found_source": pl.Boolean,
    "found": pl.Float64,
    "tries": pl.Int32,
    "draw": pl.Int32,
}
"""An object's class, whether it is found in the source, the share of the follow-ups in which it is, how many there
are, and the first draw that breaks the relation."""

_OUTSIDE = "no pixel of the object is in the picture"
_UNTOUCHED = "nothing of the object was changed"
_UNFOUND = "not found in the source: there is nothing to lose"


def presence(evidence: Evidence) -> pl.DataFrame:
    """The share of follow-ups of an object that break the relation: two of three are a majority.

    An object is found where a detection of its class overlaps its box enough. Objects are the annotated ones, with
    their ids; in a dataset without any, what the system found in the source, by its place there. A follow-up that
    changes one object alone is about that one.
    """
    follow = evidence.follow_ups.sort("case", "follow_up", "draw", "repeat", maintain_order=True)
    cases = {row["case"]: row for row in evidence.cases.iter_rows(named=True)}
    sources = {row["case"]: row for row in evidence.sources.filter(pl.col("repeat") == 0).iter_rows(named=True)}
    said = {label for rows in (evidence.sources, follow) for label in rows["labels"].explode().unique()}
    rows: list[dict[str, Any]] = []
    for (case,), mine in follow.group_by("case", maintain_order=True):
        if case in sources:
            rows += _case(
                str(case),
                cases.get(case, {}),
                sources[case],
                mine,
                said,
                evidence.parameters,
                float(evidence.options["confidence"]),
            )
    return pl.DataFrame(rows, schema={**VERDICT_COLUMNS, **MEASURES}, orient="row")


def _case(
    case: str,
    about: Mapping[str, Any],
    source: Mapping[str, Any],
    follow: pl.DataFrame,
    said: set[str],
    asked: Mapping[str, Any],
    confidence: float,
) -> Iterator[dict[str, Any]]:
    boxes, labels, ids = _objects(about, source, confidence)
    size = np.array([source["width"], source["height"]] * 2, np.float64)
    inside = np.ceil(np.clip(boxes, 0, size) - 0.5)  # whole pixels: those whose centres are in the box
    there = np.asarray((inside[:, 2:] > inside[:, :2]).all(1))
    iou = _overlap(asked)
    before = _found(boxes, labels, source, confidence, iou)
    for (name,), draws in follow.group_by("follow_up", maintain_order=True):
        tried = list(draws.iter_rows(named=True))
        after = np.array([_found(_carried(boxes, row), labels, row, confidence, iou) for row in tried])
        touched = {one for row in tried for one in row["removed"] or ()}
        facts = json.loads(tried[0]["facts"]) if tried[0]["facts"] else {}
        ratio, only = facts.get("ratio", 1.0), facts.get("object")
        for number, target in enumerate(ids):
            if only is not None and target != only:
                continue
            unknown = None if labels[number] in said else labels[number]
            reason = _not_asked(
                bool(there[number]), unknown, target in touched, bool(before[number]), float(ratio), asked
            )
            broken = np.asarray(after[:, number] if asked["effect"] == "gone" else after[:, number] != before[number])
            severity = None if reason else float(broken.mean())
            yield {
                "case": case,
                "follow_up": name,
                "target": target,
                "severity": severity,
                "reason": reason,
                "kind": _kind(str(asked["effect"]), bool(before[number])) if severity else None,
                "label": labels[number],
                "found_source": bool(before[number]),
                "found": float(after[:, number].mean()),
                "tries": len(tried),
                "draw": int(tried[int(broken.argmax())]["draw"]) if severity else None,
            }
        if not ids:
            yield {
                "case": case,
                "follow_up": name,
                "target": "whole",
                "severity": None,
                "kind": None,
                "reason": "no objects in this image",
                "label": None,
                "found_source": None,
                "found": None,
                "tries": len(tried),
                "draw": None,
            }


def _objects(
    about: Mapping[str, Any], source: Mapping[str, Any], confidence: float
) -> tuple[Floats, list[str], list[str]]:
    """The boxes, classes and ids of the objects that verdicts are about."""
    if about.get("truth_boxes") is not None:
        labels = list(about["truth_labels"])
        ids = list(about["truth_ids"] or ()) or [str(number) for number in range(len(labels))]
        return np.asarray(about["truth_boxes"], np.float64).reshape(-1, 4), labels, ids
    sure = np.flatnonzero(np.asarray(source["scores"], np.float64) >= confidence)
    boxes = np.asarray(source["boxes"], np.float64).reshape(-1, 4)[sure]
    return boxes, [source["labels"][number] for number in sure], [str(number) for number in sure]


def _carried(boxes: Floats, row: Mapping[str, Any]) -> Floats:
    warp = Warp(np.reshape(row["warp"], (3, 3)), (1, 1), (row["width"], row["height"]))
    return boxes if warp.is_identity or not len(boxes) else np.asarray(warp.boxes(boxes), np.float64)


def _overlap(asked: Mapping[str, Any]) -> float:
    """The least overlap with which an object is found."""
    iou = float(asked["iou"])
    return float(np.nextafter(iou, 2)) if asked["strict"] else iou


def _found(boxes: Floats, labels: list[str], answer: Mapping[str, Any], confidence: float, iou: float) -> Bools:
    """Which objects have a detection of their class that overlaps their box at least so much."""
    sure = np.asarray(answer["scores"], np.float64) >= confidence
    return np.asarray((_matching(boxes, labels, answer, iou) & sure).any(1))


def _matching(boxes: Floats, labels: list[str], answer: Mapping[str, Any], iou: float) -> Bools:
    """Which detections, whatever their score, are of which object's class and overlap its box at least so much."""
    if not len(boxes) or not len(answer["labels"]):
        return np.zeros((len(boxes), len(answer["labels"])), bool)
    overlap = boxes_iou(boxes, np.asarray(answer["boxes"], np.float64).reshape(-1, 4))
    same = np.asarray(labels, object)[:, None] == np.asarray(answer["labels"], object)[None]
    return np.asarray(same & (overlap >= iou))


def object_in(answer: Mapping[str, Any], target: str, evidence: Evidence) -> tuple[Floats, Bools]:
    """The box of an object of the evidence's only case in a prediction, and which detections there match it.

    They match by class and overlap, whatever their score. Raises `LookupError` where the case has no such object.
    """
    source = evidence.sources.row(0, named=True)
    boxes, labels, ids = _objects(evidence.cases.row(0, named=True), source, float(evidence.options["confidence"]))
    if target not in ids:
        raise LookupError(f"there is no object {target} in this case")
    at = ids.index(target)
    box = _carried(boxes[at : at + 1], answer)
    return box[0], _matching(box, labels[at : at + 1], answer, _overlap(evidence.parameters))[0]


def _not_asked(
    there: bool, unknown: str | None, touched: bool, found: bool, ratio: float, asked: Mapping[str, Any]
) -> str | None:
    """Why the relation says nothing about an object. That a class it does not know stays unfound proves nothing."""
    if not there:
        return _OUTSIDE
    if unknown is not None and asked["unfound"] == "leave":
        return f"the system never says {unknown!r} in this run: it may not know this class"
    if asked["effect"] == "kept":
        return None
    if not touched:
        return _UNTOUCHED
    if ratio < asked["least"]:
        return f"a right detector may find an object of which {ratio:g} is erased; claimed from {asked['least']:g} up"
    return _UNFOUND if not found and asked["unfound"] == "leave" else None


def _kind(effect: str, before: bool) -> str:
    if effect == "gone":
        return "persists"
    return "missing" if before else "incorrect"


RELATIONS: Mapping[str, Relation] = {
    relation.name: relation
    for relation in (
        Relation(
            "presence",
            "detections",
            presence,
            unit="shares of the follow-ups",
            threshold=2 / 3,
            grid=(1 / 3, 2 / 3, 1.0),
            kinds=("missing", "incorrect", "persists"),
            measures=MEASURES,
            mapping=False,
            own_needs=("objects",),
            parameters=(
                Parameter(
                    "effect",
                    "choice",
                    choices=("gone", "kept"),
                    help="gone: an object that is erased must not stay found; kept: found or not must not change",
                ),
                Parameter("iou", "float", 0.3, low=0, high=1, help="found from this overlap with the object's box up"),
                Parameter("strict", "bool", False, help="found above that overlap, not with it: the original's code"),
                Parameter(
                    "least",
                    "float",
                    0.9,
                    low=0,
                    high=1,
                    help="gone: claimed from this erased ratio up; below, `found` is measured and nothing judged",
                ),
                Parameter(
                    "unfound",
                    "choice",
                    "leave",
                    choices=("leave", "count"),
                    help="gone: objects not found in the source are left out, or counted as the original did",
                ),
                Parameter("draws", "int", 3, low=1, high=1000, help="follow-ups of a random transformation"),
                Parameter("repeats", "int", 1, low=1, high=1000, help="predictions of each by a stochastic system"),
            ),
            options=(Parameter("confidence", "float", 0.5, low=0, high=1, help="detections below this are not there"),),
            help="Whether an object is found follows what was done to it: erased, it is not found any more; "
            "with noise on "
            "it or on the background, nothing changes. ⚠ The paper's formulas for the two are inverted.",
        ),
    )
}
