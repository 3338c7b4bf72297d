"""Detections: boxes move as the image was moved, and keep their class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Row
from instar.outputs.detections import Detections
from instar.relations.pairing import DRAWS, paired, per_pair, projected
from instar.relations.relation import ZONE_SHARE, Evidence, Relation
from instar.spelling import Parameter
from instar.warp import boxes_iou

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MEASURES = {"iou": pl.Float64, "lost": pl.Int32, "invented": pl.Int32}


def detections(evidence: Evidence) -> pl.DataFrame:
    """1 − mean IoU over objects matched one to one; a lost or invented object counts as 0.

    Every source object is a target of its own; what was invented belongs to the whole.
    """
    follow_ups = paired(evidence).drop("masks", strict=False)
    sources = evidence.sources.drop("masks", strict=False).to_dicts()
    confidence = evidence.options["confidence"]
    rows: list[Row] = []
    for number, row in enumerate(follow_ups.iter_rows(named=True)):
        source = sources[row["source"]]
        source_objects = Detections.from_row(source, evidence.header).confident(confidence)
        follow_up_objects = Detections.from_row(row, evidence.header).confident(confidence)
        matrix = np.reshape(row["warp"], (1, 3, 3))
        size = (row["width"], row["height"])
        corners = source_objects.boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]].astype(np.float64).reshape(1, -1, 2)
        corners = projected(matrix, corners).reshape(-1, 4, 2)
        expected = np.concatenate([corners.min(1), corners.max(1)], -1)
        inner = np.clip(expected, 0, [*size, *size])
        gone = ((inner[:, 2:] - inner[:, :2]) <= 0).any(1)
        rows += _object_verdicts(number, source_objects, follow_up_objects, inner, gone)
    return per_pair(rows, follow_ups, MEASURES)


def _object_verdicts(row: int, source: Detections, follow_up: Detections, expected: Floats, gone: Flags) -> list[Row]:
    """The verdict of every source object, whose box is `expected` at a place in the frame unless it is `gone`."""
    from scipy.optimize import linear_sum_assignment

    iou = boxes_iou(expected, follow_up.boxes)
    same = np.array([[a == b for b in follow_up.labels] for a in source.labels], bool).reshape(iou.shape)
    # a right class is worth more than any overlap, so that a class error is named only where no match was right
    gain = np.where(iou > 0, iou + same, 0.0)
    gain[gone] = 0
    match = {int(a): int(b) for a, b in zip(*linear_sum_assignment(gain, maximize=True), strict=True) if gain[a, b] > 0}
    base: Row = {"row": row, "kind": None, "reason": None, "iou": None, "lost": 0, "invented": 0}
    verdicts: list[Row] = []
    for number in range(len(source)):
        own = {**base, "target": str(number)}
        overlap = float(iou[number, match[number]]) if number in match else 0.0
        if gone[number]:
            own |= {"severity": None, "reason": "the object was carried out of the frame"}
        elif number not in match:
            own |= {"severity": 1.0, "kind": "lost", "iou": 0.0, "lost": 1}
        elif not same[number, match[number]]:
            own |= {"severity": 1.0, "kind": "class", "iou": overlap}
        else:
            own |= {"severity": 1.0 - overlap, "iou": overlap}
        verdicts.append(own)
    extra = len(follow_up) - len(match)
    if extra or not len(source):
        whole = {"severity": 1.0, "kind": "invented"} if extra else {"severity": 0.0}
        verdicts.append({**base, "target": "whole", "invented": extra, **whole})
    return verdicts


# fmt: off
RELATIONS = (
    Relation(
        "detections", "detections", detections, unit="1 − IoU of the matched box", threshold=0.5,
        grid=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0), kinds=("lost", "invented", "class"), measures=MEASURES,
        parameters=DRAWS,
        options=(
            Parameter("confidence", "float", 0.5, low=0, high=1, help="detections below this are not there"),
            ZONE_SHARE,
        ),
        help="Boxes move as the image was moved, and keep their class.",
    ),
)
# fmt: on
