"""Bright shapes on a dark ground, and a detector that is exactly right about them: it looks at nothing but the pixels.

A shape's class is how much of its box it fills, so that neither light nor colour, size, place or stretching changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.systems import System
from tests.toys import content, image_system

SIZE = (160, 120)
GROUND, TINT = (36, 40, 52), (235, 215, 160)
BOX, DISC, KITE = "box", "disc", "kite"
Shape = tuple[str, int, int, int, int]
SCENES: tuple[tuple[Shape, ...], ...] = (
    ((BOX, 12, 14, 46, 42), (DISC, 66, 16, 98, 48), (KITE, 84, 58, 118, 92), (BOX, 132, 98, 150, 116)),
    ((KITE, 16, 58, 52, 92), (BOX, 54, 12, 86, 40), (DISC, 94, 20, 126, 52), (DISC, 72, 66, 94, 88)),
    ((BOX, 0, 60, 26, 90), (DISC, 40, 12, 70, 42), (BOX, 86, 52, 116, 84), (KITE, 130, 10, 156, 36)),
)
"""Class and corners; the last one's first shape touches the border."""


CENTRED: tuple[tuple[Shape, ...], ...] = tuple(
    ((BOX, 30 + 4 * number, 30, 62, 58), (DISC, 74, 28, 104, 58), (KITE, 60, 62, 92, 92)) for number in range(4)
)
"""Neither the crop nor the shift of the suite `detections` cuts anything of them."""
CUT = tuple((*shapes, (BOX, 114, 14 + 6 * number, 138, 44 + 6 * number)) for number, shapes in enumerate(CENTRED))
"""The same with a box of which the crop leaves 14 of 24 columns."""


def painted(shapes: tuple[Shape, ...]) -> Image:
    pixels = np.full((SIZE[1], SIZE[0], 3), GROUND, np.uint8)
    for kind, x0, y0, x1, y1 in shapes:
        if kind == BOX:
            pixels[y0:y1, x0:x1] = TINT
            continue
        across = (np.arange(SIZE[0]) + 0.5 - (x0 + x1) / 2) / ((x1 - x0) / 2)
        down = (np.arange(SIZE[1]) + 0.5 - (y0 + y1) / 2)[:, None] / ((y1 - y0) / 2)
        inside = across**2 + down**2 <= 1 if kind == DISC else np.abs(across) + np.abs(down) <= 1
        pixels[inside] = TINT
    return Image(pixels)


def shapes_dataset(scenes: tuple[tuple[Shape, ...], ...] = SCENES, *, annotated: bool = False) -> Dataset:
    cases = []
    for number, shapes in enumerate(scenes):
        truth = Detections.from_xyxy([shape[1:] for shape in shapes], [shape[0] for shape in shapes])
        cases.append(Case(str(number), input=painted(shapes), truth=truth if annotated else None))
    return Dataset("shapes", "", lambda: iter(cases), truth="detections" if annotated else None)


@dataclass(frozen=True, eq=False)
class Look:
    """What the right detector sees in an image: boxes and classes, and what a faulty one might notice besides."""

    pixels: np.ndarray
    boxes: np.ndarray
    labels: list[str]
    mask: np.ndarray
    ground: float
    light: float

    @property
    def size(self) -> np.ndarray:
        return np.array([self.pixels.shape[1], self.pixels.shape[0]], float)

    @property
    def luma(self) -> np.ndarray:
        return np.asarray(self.pixels @ np.array([0.299, 0.587, 0.114]))

    @property
    def sharpness(self) -> float:
        """The steepest step between neighbours, as a share of the contrast."""
        return float(np.abs(np.diff(self.luma, axis=1)).max() / max(self.light - self.ground, 1))

    @property
    def unrest(self) -> float:
        """How much pixels far from the shapes differ from their neighbours on the right."""
        far = cv2.dilate(self.mask, np.ones((21, 21), np.uint8)) == 0
        return float(np.abs(np.diff(self.luma, axis=1))[far[:, 1:]].mean())

    @property
    def ringing(self) -> float:
        """The same close to the shapes, where compression shows."""
        grown = [cv2.dilate(self.mask, np.ones((side, side), np.uint8)) for side in (9, 15)]
        near = (grown[1] > 0) & (grown[0] == 0)
        return float(np.abs(np.diff(self.luma, axis=1))[near[:, 1:]].mean()) if near.any() else 0.0

    @property
    def colour(self) -> np.ndarray:
        """The mean colour of the shapes."""
        inside = self.pixels[self.mask > 0]
        return np.asarray(inside.mean(0) if len(inside) else np.zeros(3))

    def answer(
        self,
        boxes: np.ndarray | None = None,
        labels: list[str] | None = None,
        scores: object = None,
        keep: np.ndarray | None = None,
    ) -> Detections:
        """The right answer, or another one; `keep` says which of them are given."""
        given = np.array(self.boxes if boxes is None else boxes, float).reshape(-1, 4)
        named = self.labels if labels is None else labels
        sure = np.full(len(given), 0.9) if scores is None else np.asarray(scores, float)
        kept = np.arange(len(given)) if keep is None else np.flatnonzero(keep)
        return Detections.from_xyxy(given[kept], [named[n] for n in kept], sure[kept])


def look(pixels: np.ndarray) -> Look:
    """Even patches that stand out from the ground."""
    luma = pixels @ np.array([0.299, 0.587, 0.114])
    smooth = cv2.blur(luma, (3, 3))
    ground, light = float(np.median(luma)), float(np.percentile(smooth, 99))
    contrast = light - ground
    mask = (smooth > ground + 0.5 * contrast).astype(np.uint8) if contrast > 10 else np.zeros(luma.shape, np.uint8)
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    _, marked, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=4)
    boxes, labels, clean = [], [], np.zeros_like(mask)
    for number, (x, y, width, height, area) in enumerate(stats[1:], start=1):
        own = (marked == number).astype(np.uint8)
        core = luma[cv2.erode(own, np.ones((3, 3), np.uint8)) > 0]
        if area < 20 or not len(core) or core.std() > 0.22 * (core.mean() - ground):
            continue
        clean[marked == number] = 1
        boxes.append([x, y, x + width, y + height])
        fill = area / (width * height)
        labels.append(BOX if fill > 0.845 else DISC if fill > 0.71 else KITE)
    return Look(pixels, np.array(boxes, float).reshape(-1, 4), labels, clean, ground, light)


_seen: dict[str, Look] = {}


def seen(pixels: np.ndarray) -> Look:
    """As `look`, remembered by what was looked at: every faulty system sees the same follow-ups."""
    key = content(pixels)
    if key not in _seen:
        _seen[key] = look(pixels)
    return _seen[key]


def detector(answer: Callable[[Look], Detections], *, deterministic: bool = True) -> System:
    """A system of what it makes of a look."""
    return image_system(lambda pixels: answer(seen(pixels)), "detections", deterministic=deterministic)


def right(seen: Look) -> Detections:
    return seen.answer()
