"""A detector and a landmark system in a row: what the one finds, the other looks at closely."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Literal

import numpy as np

from instar.case import Input
from instar.image import Image
from instar.outputs import Output
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.skeleton import Skeleton
from instar.spelling import Parameter
from instar.systems.boxes import FLOOR
from instar.systems.system import System, SystemFamily, fingerprint_of
from instar.warp import Warp

_ADAPTER = "1"
"""Part of the fingerprint; changes when the same answers of both stages are put together otherwise."""

_ANY = "any"

Box = tuple[float, float, float, float]
Pad = Literal["black", "edge"]


class _StageFailed(RuntimeError):
    """A stage that raised, or answered with rubbish. Whether it crashed or took too long is its own to say."""

    def __init__(self, stage: System, error: Exception) -> None:
        super().__init__(f"{stage.name}: {type(error).__name__}: {error}")
        self.status = getattr(error, "status", None)


class DetectorFailed(_StageFailed):
    """The detector's fault; the landmark system was not asked."""


class LandmarksFailed(_StageFailed):
    """The landmark system's fault, on a crop of the detector's."""


def cropped(image: Image, box: Box, margin: float, pad: Pad) -> tuple[Image, Warp]:
    """The square about the middle of a box, `margin` times as large, and the map of the image into it.

    It ends at whole pixels, so that pixels are copied and the map is a shift; one side may be a pixel longer for it.
    A mirrored image has the mirrored crop. What lies beyond the image is black, or goes on as its edge.

    >>> image = Image(np.zeros((40, 60, 3), np.uint8))
    >>> crop, warp = cropped(image, (50, 10, 58, 14), 1.25, "black")
    >>> crop.size, warp.inverse.points([[0.0, 0.0], [10.0, 10.0]]).tolist()
    ((10, 10), [[49.0, 7.0], [59.0, 17.0]])
    """
    x0, y0, x1, y1 = box
    side = margin * max(x1 - x0, y1 - y0)
    (left, right), (top, bottom) = (  # rounded: 2.2 × 25 is a little more than 55, which would cost a pixel on one side
        (math.floor(round((low + high - side) / 2, 6)), math.ceil(round((low + high + side) / 2, 6)))
        for low, high in ((x0, x1), (y0, y1))
    )
    width, height = image.size
    part = image.pixels[max(top, 0) : min(bottom, height), max(left, 0) : min(right, width)]
    beyond = ((max(-top, 0), max(bottom - height, 0)), (max(-left, 0), max(right - width, 0)), (0, 0))
    crop = np.pad(part, beyond, mode="edge") if pad == "edge" else np.pad(part, beyond)
    return Image(crop), Warp(
        np.array([[1.0, 0, -left], [0, 1, -top], [0, 0, 1]]), image.size, (right - left, bottom - top)
    )


def _boxes(detections: Detections, image: Image, label: str, floor: float, most: int) -> list[tuple[Box, float]]:
    """What is looked at, the best first: boxes cut at the image's edge, with their scores."""
    width, height = image.size
    kept: list[tuple[Box, float]] = []
    for number in np.argsort(-detections.scores, kind="stable").tolist():
        x0, y0, x1, y1 = np.clip(
            detections.boxes[number].astype(np.float64), 0, [width, height, width, height]
        ).tolist()
        score = float(detections.scores[number])
        if label in (_ANY, detections.labels[number]) and score >= floor and x0 < x1 and y0 < y1:
            kept.append(((x0, y0, x1, y1), score))
    return kept[:most]


def _answered(stage: System, failed: type[_StageFailed], inputs: Sequence[Input], seeds: Sequence[int]) -> list[Output]:
    try:
        answers = stage.answer(inputs, seeds)
    except Exception as error:
        raise failed(stage, error) from error
    outputs: list[Output] = []
    for answer in answers:
        if isinstance(answer, Exception):
            raise failed(stage, answer) from answer
        outputs.append(answer)
    return outputs


def _opened(name: str, detector: str, landmarks: str) -> tuple[System, System, Skeleton, Callable[[], None]]:
    """Both stages, the skeleton that the second answers with, and what closes them."""
    from instar.systems import system  # which knows this family, too

    with ExitStack() as stages:
        finds = system(detector)
        stages.callback(finds.close)
        looks = system(landmarks)
        stages.callback(looks.close)
        for stage, kind in ((finds, Detections.kind), (looks, Poses.kind)):
            if stage.kind != kind:
                raise ValueError(
                    f"{name}: {stage.name} answers with {stage.kind}; a chain is a system that answers "
                    f"with {Detections.kind}, then one that answers with {Poses.kind}"
                )
        try:
            [nobody] = _answered(looks, LandmarksFailed, [Image(np.full((64, 64, 3), 127, np.uint8))], [0])
        except LandmarksFailed as error:
            raise ValueError(
                f"{name}: for the skeleton of images without a box the landmark system is asked once, "
                f"about an evenly grey image, and failed: {error}"
            ) from error
        close = stages.pop_all().close
    assert isinstance(nobody, Poses)
    return finds, looks, nobody.skeleton, close


def _chain(
    name: str, *, detector: str, landmarks: str, label: str, floor: float, most: int, each: int, margin: float, pad: Pad
) -> System:
    finds, looks, bones, close = _opened(name, detector, landmarks)

    def one(image: Image, detections: Output, seed: int) -> Poses:
        assert isinstance(detections, Detections)
        boxes = _boxes(detections, image, label, floor, most)
        crops = [cropped(image, box, margin, pad) for box, _ in boxes]
        answers = _answered(looks, LandmarksFailed, [crop for crop, _ in crops], [seed] * len(crops)) if crops else []
        points, seen, scores = [], [], []
        for answer, (_, warp), (_, score) in zip(answers, crops, boxes, strict=True):
            assert isinstance(answer, Poses)
            if answer.skeleton != bones:
                raise LandmarksFailed(
                    looks,
                    ValueError(f"it answers with skeleton {answer.skeleton.name}, and did with {bones.name} before"),
                )
            for best in np.argsort(-answer.scores, kind="stable")[:each].tolist():
                points.append(warp.inverse.points(answer.points[best]))
                seen.append(answer.visibility[best])
                scores.append(min(score, float(answer.scores[best])))
        return Poses.from_array(points, skeleton=bones, visibility=seen if points else None, scores=scores)

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Poses]:
        detections = _answered(finds, DetectorFailed, inputs, seeds)
        return [one(image, answer, seed) for image, answer, seed in zip(inputs, detections, seeds, strict=True)]

    fingerprint = fingerprint_of(
        "chain", _ADAPTER, label, floor, most, each, margin, pad, finds.fingerprint, looks.fingerprint
    )
    return System(
        name,
        Poses.kind,
        predict,
        fingerprint,
        deterministic=finds.deterministic and looks.deterministic,
        seedable=finds.seedable and looks.seedable,
        batch=finds.batch,
        close=close,
    )


# fmt: off
FAMILIES = (
    SystemFamily("chain", Poses.kind, _chain, (
        Parameter("detector", "text", help="a system that answers with detections; in quotes if it has parameters"),
        Parameter("landmarks", "text", help="a system that answers with poses, asked about each crop"),
        Parameter("label", "text", _ANY, help="the class whose boxes are cropped, e.g. hand; any: every box"),
        FLOOR,
        Parameter("most", "int", 2, low=1, high=1000, help="boxes that are cropped, the best first"),
        Parameter("each", "int", 1, low=1, high=1000,
                  help="subjects that count of each crop, the surest first; a box of a person holds two hands"),
        Parameter("margin", "float", 1.25, low=1, high=4,
                  help="side of the square crop, in lengths of the box's longer side"),
        Parameter("pad", "choice", "black", choices=("black", "edge"),
                  help="what a crop shows beyond the image: black, or the image's edge going on"),
    ), help="Crops what a detector finds, and asks a landmark system about each crop."),
)
# fmt: on
