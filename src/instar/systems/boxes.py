"""What adapters of detectors share: an image in a network's frame, and its boxes out of it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs.detections import Detections
from instar.reading import file_text
from instar.spelling import Parameter
from instar.warp import Size, Warp, boxes_iou, warp_pixels

Fit = Literal["corner", "middle", "stretch"]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_AT_ONCE = 64
"""Boxes that are compared with each other in one go."""

# fmt: off
FLOOR = Parameter("floor", "float", 0.01, low=0, high=1,
    help="detections with a lower score are left out; whether one counts is chosen in the judging")
# fmt: on

# fmt: off
COCO = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow", "elephant",
    "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard",
    "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange", "broccoli",
    "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed", "dining table", "toilet",
    "tv", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator",
    "book", "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
)
# fmt: on
COCO_NUMBERS = tuple(n for n in range(1, 91) if n not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83))
"""The numbers these 80 have in COCO's own files, of 90: ten classes were planned and never annotated."""


def names_in(path: str, owner: str) -> tuple[str, ...]:
    """The classes of a text file, one a line in the order of their numbers."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"{owner}: there is no file of names {file}")
    try:
        names = tuple(line.strip() for line in file_text(file).strip().splitlines())
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{owner}: {file} is no text in UTF-8 ({error.reason}); it should hold a class per line"
        ) from None
    if not names:
        raise ValueError(f"{owner}: {file} is empty; it should hold a class per line")
    return names


# --- into the frame --------------------------------------------------------------------------------


def fitting(size: Size, target: Size, fit: Fit) -> tuple[Warp, Size]:
    """The map of a frame into a network's, and the size of the part it fills, in whole pixels.

    `stretch` fills everything. The others keep the sides' ratio: from the top-left `corner`, or in the `middle` with
    equal margins, so that a mirrored image is the mirrored frame, pixel for pixel.

    >>> warp, part = fitting((640, 480), (416, 416), "middle")
    >>> part, warp.points([[0.0, 0.0], [640.0, 480.0]]).tolist()
    ((416, 312), [[0.0, 52.0], [416.0, 364.0]])
    """
    if fit == "stretch":
        return Warp.resize(size, target), target
    scale = min(target[0] / size[0], target[1] / size[1])
    step = 2 if fit == "middle" else 1  # what is left over is halved
    margins = [
        step * min((side - 1) // step, max(0, round((side - n * scale) / step)))
        for n, side in zip(size, target, strict=True)
    ]
    part = target[0] - margins[0], target[1] - margins[1]
    left, top = (margin / 2 if fit == "middle" else 0.0 for margin in margins)
    return Warp(np.array([[part[0] / size[0], 0, left], [0, part[1] / size[1], top], [0, 0, 1]]), size, target), part


def fitted(image: Image, target: Size, fit: Fit, pad: int) -> tuple[npt.NDArray[np.uint8], Warp]:
    """The image in a network's frame, the rest filled with `pad`; and the map that took it there."""
    warp, part = fitting(image.size, target, fit)
    small = warp_pixels(image.pixels, Warp.resize(image.size, part))
    if part == target:
        return small, warp
    left, top = (round(shift) for shift in warp.matrix[:2, 2])
    frame = np.full((target[1], target[0], 3), pad, np.uint8)
    frame[top : top + part[1], left : left + part[0]] = small
    return frame, warp


# --- and out of it ---------------------------------------------------------------------------------


def carried_back(boxes: npt.ArrayLike, labels: Sequence[str], scores: npt.ArrayLike, warp: Warp) -> Detections:
    """Boxes (N, 4) of a network's frame in the image, cut at its edge; those beside the image are no detections."""
    corners = np.asarray(boxes, np.float64).reshape(-1, 4)
    if not np.isfinite(corners).all():
        raise ValueError("the model returned a box whose numbers are not finite")
    width, height = warp.source
    # an inside-out box would come back as a plain one
    sound = (corners[:, 2:] > corners[:, :2]).all(1)
    corners = np.clip(warp.inverse.boxes(corners), 0, [width, height, width, height])
    kept = np.flatnonzero(sound & (corners[:, 2:] > corners[:, :2]).all(1))
    return Detections.from_xyxy(corners[kept], [labels[int(i)] for i in kept], np.asarray(scores, np.float64)[kept])


def suppressed(boxes: Floats, classes: Indices, scores: Floats, overlap: float, most: int) -> Indices:
    """Which boxes stay, best first, at most so many: each takes away the weaker of its class that overlap it by more.

    Nothing here depends on weaker boxes, so a higher floor gives the same list, only shorter.
    """
    left = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(left) and len(kept) < most:
        # The best ones that are left are compared with each other, and with the rest only if they stay.
        some, left = left[:_AT_ONCE], left[_AT_ONCE:]
        stays = np.ones(len(some), bool)
        beats = _beats(boxes, classes, some, some, overlap)
        for i in range(len(some)):
            if stays[i]:
                stays[i + 1 :] &= ~beats[i, i + 1 :]
        kept += some[stays].tolist()
        left = left[~_beats(boxes, classes, some[stays], left, overlap).any(0)]
    return np.array(kept[:most], np.intp)


def _beats(boxes: Floats, classes: Indices, best: Indices, rest: Indices, overlap: float) -> npt.NDArray[np.bool_]:
    return np.asarray((boxes_iou(boxes[best], boxes[rest]) > overlap) & (classes[best, None] == classes[rest]))
