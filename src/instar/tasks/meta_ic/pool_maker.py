"""Making a pool: whole objects cut out of images, by a dataset's masks or by a segmenter's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import cv2
import numpy as np
import numpy.typing as npt

from instar.case import Case, read_input
from instar.datasets import Dataset
from instar.engine.needs import SURE
from instar.image import Image
from instar.outputs.detections import Detections
from instar.pool import (
    Item,
    Pool,
    abandon_pool,
    begin_pool,
    check_new,
    plain_label,
    read_pool,
    write_item,
    write_listing,
)
from instar.systems import System

Mask = npt.NDArray[np.uint8]

LEAST_SHARE, LEAST_PIXELS = 0.01, 4096
"""Of the image, and 64×64: what is smaller shows too little to be enlarged."""
BORDER = 2
"""Pixels from the image's border within which an object counts as cut off by it."""
ONE_PIECE = 0.95
"""The share of an object's pixels that its largest piece has at least; the crumbs are left out."""
HOLES = 0.15
"""The largest share of what an outline encloses that may be holes."""
SOLID = 0.4
"""The least share of its convex hull that an object fills: a giraffe has half, torn masks have less."""
TOUCHED = 0.1
"""The share of its outline along which an object meets another from which one of them may hide part of the other."""
BITE = 0.03
"""The share of an object that must be missing within its convex hull to be a bite."""


@dataclass(frozen=True, slots=True)
class PoolProgress:
    """Cases looked at, and objects kept so far."""

    cases: int
    kept: int


@dataclass(frozen=True, slots=True)
class MadePool:
    """The pool, and what became of every object: kept by class and by licence, rejected by reason; and the cases that
    could not be read or answered, with why."""

    pool: Pool
    kept: Mapping[str, int]
    licences: Mapping[str, int]
    rejected: Mapping[str, int]
    failed: Mapping[str, str]


@dataclass(slots=True)
class _Count:
    kept: Counter[str] = field(default_factory=Counter)
    licences: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)


def make_pool(
    dataset: Dataset,
    out: str | Path,
    *,
    segmenter: System | None = None,
    labels: Collection[str] = (),
    most: int | None = None,
    limit: int | None = None,
    on_progress: Callable[[PoolProgress], None] | None = None,
) -> MadePool:
    """Cut the whole objects out of a dataset's images, and write them to a folder that is new or empty.

    Args:
        dataset: images with masks in their ground truth; any images where there is a segmenter.
        out: the folder.
        segmenter: a system that answers with detections that have masks; those with a score of 0.5 and more count.
        labels: only these classes; all by default.
        most: at most this many objects of a class, the first ones.
        limit: only this many cases, the first ones.
    """
    folder, labels = Path(out), [plain_label(label) for label in labels]
    check_new(folder)
    if segmenter is None and dataset.truth != Detections.kind:
        raise ValueError(
            f"{dataset.name} has {dataset.truth or 'no'} ground truth, and objects are cut out by masks; "
            "take a dataset with instances, or give a segmenter"
        )
    if segmenter is not None and segmenter.kind != Detections.kind:
        raise ValueError(
            f"{segmenter.name} answers with {segmenter.kind}; a segmenter of objects answers with "
            "detections that have masks"
        )
    begin_pool(folder)
    count, lines = _Count(), []
    for number, case in enumerate(dataset.cases(), 1):
        for item in _items(case, segmenter, labels, most, count):
            lines.append(write_item(folder, item))
            count.kept[item.label] += 1
            count.licences[item.licence or "not told"] += 1
        if on_progress is not None:
            on_progress(PoolProgress(number, len(lines)))
        if number == limit or (labels and most and all(count.kept[label] >= most for label in labels)):
            break
    if not lines:
        abandon_pool(folder)
        why = "; ".join(f"{n:,} {reason}" for reason, n in count.rejected.most_common())
        failed = "; ".join(f"{case}: {reason}" for case, reason in list(count.failed.items())[:3])
        raise ValueError(
            f"no whole object was found in {dataset.name}" + "".join(f" ({text})" for text in (why, failed) if text)
        )
    write_listing(folder, lines)
    return MadePool(
        read_pool(folder),
        dict(sorted(count.kept.items())),
        dict(count.licences.most_common()),
        dict(count.rejected.most_common()),
        count.failed,
    )


def _items(
    case: Case, segmenter: System | None, labels: Collection[str], most: int | None, count: _Count
) -> Iterator[Item]:
    try:
        image, _ = read_input(case)
        if not isinstance(image, Image):
            raise ValueError(f"it is a {image.kind}, not an image")
        objects = case.truth if segmenter is None else segmenter.answer([image], [0])[0]
        if isinstance(objects, Exception):
            raise objects
    except Exception as error:  # a system may raise anything
        count.failed[case.id] = f"{type(error).__name__}: {error}"
        return
    if not isinstance(objects, Detections):
        return
    if segmenter is not None:
        objects = objects.confident(SURE)
    crowds = case.attributes.get("crowds", 0) if segmenter is None else 0
    count.rejected.update({"crowds": crowds} if crowds else {})
    masks = objects.masks
    if masks is None or masks.shape[1:] != image.pixels.shape[:2]:
        count.rejected.update({"without a mask of the image's size": len(objects)} if len(objects) else {})
        return
    for number, label in enumerate(map(plain_label, objects.labels)):
        if labels and label not in labels:
            continue
        if most is not None and count.kept[label] >= most:
            count.rejected["more than enough of their class"] += 1
            continue
        shape = _whole(masks[number])
        fault = shape if isinstance(shape, str) else _hidden(shape, number, objects)
        if fault:
            count.rejected[fault] += 1
            continue
        assert not isinstance(shape, str)
        own = objects.ids[number] if objects.ids else str(number)
        yield Item.from_pixels(
            label,
            _cut_out(image.pixels, shape),
            name=f"{PurePosixPath(case.id).stem}-{own}",
            licence=str(case.attributes.get("licence", "")),
            source=f"{case.id}#{own}",
        )


def _whole(drawn: npt.NDArray[np.bool_]) -> Mask | str:
    """The mask of an object that is all there, less its crumbs; or what it lacks."""
    mask = drawn.astype(np.uint8)
    area = cv2.countNonZero(mask)
    if area < max(LEAST_PIXELS, LEAST_SHARE * mask.size):
        return "too small"
    x, y, width, height = cv2.boundingRect(mask)
    if min(x, y, mask.shape[1] - x - width, mask.shape[0] - y - height) < BORDER:
        return "cut off by the border"
    if area == width * height:
        return "boxes, not masks"
    _, pieces, stats, _ = cv2.connectedComponentsWithStats(mask)
    largest = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
    area = int(stats[largest, cv2.CC_STAT_AREA])
    if area < ONE_PIECE * stats[1:, cv2.CC_STAT_AREA].sum():
        return "in pieces"
    mask = (pieces == largest).astype(np.uint8)
    (outline, *_), _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = cv2.countNonZero(cv2.drawContours(np.zeros_like(mask), [outline], -1, [1], cv2.FILLED))
    if area < (1 - HOLES) * filled:
        return "full of holes"
    return mask if area >= SOLID * cv2.countNonZero(_hull(mask)) else "ragged"


def _hull(mask: Mask) -> Mask:
    corners = cv2.convexHull(cv2.findNonZero(mask))
    return np.asarray(cv2.fillConvexPoly(np.zeros_like(mask), corners, [1]), np.uint8)


def _hidden(mask: Mask, number: int, objects: Detections) -> str:
    """Whether something in front of an object hides part of it, as far as masks tell: they meet along its outline."""
    assert objects.masks is not None
    outline = np.asarray(mask - cv2.erode(mask, np.ones((3, 3), np.uint8)), np.uint8)
    length = cv2.countNonZero(outline)
    for other, shape in enumerate(objects.masks):
        if other == number:
            continue
        near = np.asarray(cv2.dilate(shape.astype(np.uint8), np.ones((5, 5), np.uint8)), np.uint8)
        if cv2.countNonZero(outline & near) >= TOUCHED * length and _in_front(
            shape.astype(np.uint8), mask, bool(objects.boxes[other, 3] > objects.boxes[number, 3])
        ):
            return "hidden in part"
    return ""


def _in_front(one: Mask, other: Mask, lower: bool) -> bool:
    """Which of two that meet is in front: the one that takes a bite out of the other, else the lower one."""
    bitten, biting = (cv2.countNonZero(_hull(whole) & part) for whole, part in ((other, one), (one, other)))
    return bitten > biting if max(bitten, biting) >= BITE * cv2.countNonZero(other) else lower


def _cut_out(pixels: npt.NDArray[np.uint8], mask: Mask) -> npt.NDArray[np.uint8]:
    """RGBA. The edge is soft over a pixel, inwards: outside of the mask the image shows something else."""
    x, y, width, height = cv2.boundingRect(mask)
    here = np.s_[y : y + height, x : x + width]
    alpha = cv2.blur(mask[here] * np.uint8(255), (3, 3), borderType=cv2.BORDER_CONSTANT) * mask[here]
    return np.dstack([pixels[here], alpha])
