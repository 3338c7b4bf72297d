"""class_overlap: 1 − the IoU of the class that overlaps least, over the cells that are known on both sides."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.cells import carried_cells
from instar.outputs.segmentation import UNKNOWN, Segmentation
from instar.relations import Row
from instar.relations.pairing import DRAWS, paired, per_pair
from instar.relations.relation import NOTHING_FOUND, Evidence, Relation
from instar.spelling import Parameter
from instar.warp import Warp

Cells = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
MEASURES = {
    "worst": pl.String, "worst_iou": pl.Float64, "mean_iou": pl.Float64, "classes": pl.Int32,
    "present": pl.String, "by_class": pl.String, "pixel_accuracy": pl.Float64,
}  # fmt: skip
"""The class with the least overlap, and that overlap; the mean of all classes present, how many they are, and
which, with 1 − IoU of each; the share of cells that agree."""

MOST_EDGES = 0.75
"""In a map that is nearly all edges every class is near everywhere: nothing in it counts as a little off."""


def settled(carried: Segmentation, expected: Cells, actual: Segmentation, reach: tuple[int, int]) -> Cells:
    """The actual cells, those at an edge that is only a little off taken for what is expected of them.

    An edge is a little off where both classes of a cell lie within `reach` cells (across, down) on the other side.
    """
    cells = actual.cells
    kernel = np.ones((2 * reach[1] + 1, 2 * reach[0] + 1), np.uint8)
    if reach == (0, 0) or max(_near_edges(expected, kernel), _near_edges(cells, kernel)) > MOST_EDGES:
        return cells
    differ = expected != cells
    near = np.zeros(differ.shape, bool)
    for number in np.unique(expected[differ]):
        of_class = differ & (expected == number)
        near[of_class] = cv2.dilate((cells == number).astype(np.uint8), kernel)[of_class] > 0
    for number in np.unique(cells[near]):
        of_class = near & (cells == number)
        # also by the source's own grid: what is one cell wide there may fall between the cells of this one
        wide = np.asarray(cv2.dilate((carried.cells == number).astype(np.uint8), np.ones((3, 3))), np.uint8)
        there = carried_cells(wide, carried.warp.then(actual.warp.inverse)) == 1
        near[of_class] = (there | (cv2.dilate((expected == number).astype(np.uint8), kernel) > 0))[of_class]
    return np.where(near, expected, cells)


def _near_edges(cells: Cells, kernel: Cells) -> float:
    """The share of cells that have another class within reach."""
    return float((cv2.dilate(cells, kernel) != cv2.erode(cells, kernel)).mean())


def class_overlaps(expected: Cells, actual: Cells, count: int) -> dict[int, float]:
    """The IoU of every class that is on one of the two sides; all cells are known."""
    pairs = np.bincount(expected.astype(np.int64) * count + actual, minlength=count * count)
    table = pairs.reshape(count, count)
    both, either = np.diag(table), table.sum(1) + table.sum(0) - np.diag(table)
    return {int(n): float(both[n] / either[n]) for n in np.flatnonzero(either)}


def class_overlap(evidence: Evidence) -> pl.DataFrame:
    """The source's cells are carried onto the grid of the follow-up's answer and compared with it there."""
    follow_ups = paired(evidence)
    sources = evidence.sources.to_dicts()
    rows = []
    for number, row in enumerate(follow_ups.iter_rows(named=True)):
        source = Segmentation.from_row(sources[row["source"]], evidence.header)
        actual = Segmentation.from_row(row, evidence.header)
        warp = Warp(np.reshape(row["warp"], (3, 3)), source.warp.target, actual.warp.target)
        verdict = _verdict(source.warped(warp), actual, evidence.options["least"], evidence.options["slack"])
        rows.append({"row": number, "target": "whole", **verdict})
    return per_pair(rows, follow_ups, MEASURES)


def _verdict(carried: Segmentation, actual: Segmentation, least: float, slack: float) -> Row:
    expected = carried.onto(actual)
    frame = Segmentation(np.zeros_like(carried.cells), carried.names, carried.warp).onto(actual) != UNKNOWN
    before, after = frame & (expected != UNKNOWN), frame & (actual.cells != UNKNOWN)
    known = before & after
    if not before.any() and not after.any():
        return {"severity": None, "reason": NOTHING_FOUND if frame.any() else "nothing of the source is in the frame"}
    if 2 * known.sum() < max(before.sum(), after.sum()):
        return {"severity": float("inf"), "kind": "lost" if before.sum() > after.sum() else "invented"}
    flat = expected[known], settled(carried, expected, actual, _reach(carried, actual, slack))[known]
    shares = np.array([np.bincount(side[known], minlength=len(actual.names)) for side in (expected, actual.cells)])
    shares = shares / known.sum()
    counted = [
        n for n in np.flatnonzero(shares.max(0) > least).tolist() if _thick(carried.cells, n) or _thick(actual.cells, n)
    ]
    overlaps = {n: iou for n, iou in class_overlaps(*flat, len(actual.names)).items() if n in counted}
    if not overlaps:
        return {"severity": None, "reason": "every class is thinner than two cells of the grid, or hardly there"}
    worst = min(overlaps, key=lambda number: overlaps[number])
    return {
        "severity": 1.0 - overlaps[worst],
        "kind": _kind(float(shares[0, worst]), float(shares[1, worst]), least) if overlaps[worst] < 1 else None,
        "worst": actual.names[worst],
        "worst_iou": overlaps[worst],
        "mean_iou": sum(overlaps.values()) / len(overlaps),
        "classes": len(overlaps),
        "present": ", ".join(actual.names[number] for number in overlaps),
        "by_class": ", ".join(f"{1 - iou:.4g}" for iou in overlaps.values()),
        "pixel_accuracy": float((flat[0] == flat[1]).mean()),
    }


def _kind(before: float, after: float, least: float) -> str | None:
    return "lost" if after <= least < before else "invented" if before <= least < after else None


def _reach(carried: Segmentation, actual: Segmentation, slack: float) -> tuple[int, int]:
    """How many cells (across, down) an edge may be off: a share of the diagonal, at least one cell of each grid."""
    if slack == 0:
        return 0, 0
    scale = np.abs((carried.warp.then(actual.warp.inverse)).matrix[:2, :2]).max(1)
    cells = np.maximum(slack * np.hypot(*actual.cells.shape), np.maximum(1.0, scale))
    return round(float(cells[0])), round(float(cells[1]))


def _thick(cells: Cells, number: int) -> bool:
    """Whether a class is two cells wide somewhere: what is thinner may fall between the cells of another grid."""
    mask = (cells == number).astype(np.uint8)
    return bool(cv2.erode(mask, np.ones((2, 2), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0).any())


# fmt: off
RELATIONS: Mapping[str, Relation] = {
    "class_overlap": Relation(
        "class_overlap", "segmentation", class_overlap, unit="IoU lost by the worst class", threshold=0.3,
        grid=(0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9), kinds=("lost", "invented"), measures=MEASURES,
        meanings={
            "lost": "a class that the source shows is hardly there any more",
            "invented": "a class is there that the source hardly shows",
        },
        parameters=DRAWS, classes="present", by_class="by_class", title="classes of the cells",
        details=(
            "{worst} overlaps least, by {worst_iou} (IoU)", "all classes overlap by {mean_iou} on average (IoU)",
            "{pixel_accuracy:%} of the cells agree",
        ),
        options=(
            Parameter(
                "least", "float", 0.01, low=0, high=1,
                help="a class that takes a smaller share of the cells in both images is not counted",
            ),
            Parameter(
                "slack", "float", 0.008, low=0, high=1,
                help="how far an edge may be off, as a share of the diagonal, but at least one cell; 0: not at all",
            ),
        ),
        help="The class of every cell moves as the image was moved.",
    ),
}
# fmt: on
