"""class_overlap: 1 − the mean IoU of the classes that are present, over the cells that are known on both sides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.segmentation import UNKNOWN, Segmentation
from instar.relations import Row
from instar.relations.pairing import DRAWS, paired, per_pair
from instar.relations.relation import Evidence, Relation
from instar.spelling import Parameter
from instar.warp import Warp

Cells = npt.NDArray[np.uint8]
MEASURES = {"worst": pl.String, "worst_iou": pl.Float64, "classes": pl.Int32, "pixel_accuracy": pl.Float64}
"""The class with the least overlap, and that overlap; how many classes are present; the share of cells that agree."""


def class_overlaps(expected: Cells, actual: Cells, count: int, least: float) -> dict[int, float]:
    """The IoU of every class that takes at least a share of the known cells on one of the two sides."""
    known = (expected != UNKNOWN) & (actual != UNKNOWN)
    pairs = np.bincount(expected[known].astype(np.int64) * count + actual[known], minlength=count * count)
    table = pairs.reshape(count, count)
    both, rows, columns = np.diag(table), table.sum(1), table.sum(0)
    present = np.flatnonzero(np.maximum(rows, columns) > least * max(int(known.sum()), 1))
    return {int(n): float(both[n] / (rows[n] + columns[n] - both[n])) for n in present}


def class_overlap(evidence: Evidence) -> pl.DataFrame:
    """1 − mIoU of the classes present: the source's cells are carried onto the grid of the follow-up's answer."""
    follow_ups = paired(evidence)
    sources = evidence.sources.to_dicts()
    rows = []
    for number, row in enumerate(follow_ups.iter_rows(named=True)):
        source = sources[row["source"]]
        expected = Segmentation.from_row(source, evidence.header)
        actual = Segmentation.from_row(row, evidence.header)
        warp = Warp(np.reshape(row["warp"], (3, 3)), expected.warp.target, actual.warp.target)
        carried = expected.warped(warp).onto(actual)
        rows.append({"row": number, "target": "whole", **_verdict(carried, actual, evidence.options["least"])})
    return per_pair(rows, follow_ups, MEASURES)


def _verdict(expected: Cells, actual: Segmentation, least: float) -> Row:
    overlaps = class_overlaps(expected, actual.cells, len(actual.names), least)
    if not overlaps:
        return {"severity": None, "reason": "nothing of the source is in the frame, or no class is known"}
    worst = min(overlaps, key=lambda number: overlaps[number])
    known = (expected != UNKNOWN) & (actual.cells != UNKNOWN)
    before, after = (float((cells[known] == worst).mean()) for cells in (expected, actual.cells))
    return {
        "severity": 1.0 - sum(overlaps.values()) / len(overlaps),
        "kind": "lost" if after <= least < before else "invented" if before <= least < after else None,
        "worst": actual.names[worst],
        "worst_iou": overlaps[worst],
        "classes": len(overlaps),
        "pixel_accuracy": float((expected[known] == actual.cells[known]).mean()),
    }


# fmt: off
RELATIONS: Mapping[str, Relation] = {
    "class_overlap": Relation(
        "class_overlap", "segmentation", class_overlap, unit="1 − mean IoU of the classes present", threshold=0.3,
        grid=(0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9), kinds=("lost", "invented"), measures=MEASURES,
        parameters=DRAWS,
        options=(
            Parameter(
                "least", "float", 0.005, low=0, high=1,
                help="a class that takes a smaller share of the cells in both images is not counted",
            ),
        ),
        help="The class of every cell moves as the image was moved.",
    ),
}
# fmt: on
