"""Coloured squares on a ground that has the class's own pattern, and detectors that look at the one or the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

import instar
from instar.case import Case, read_input
from instar.datasets import Dataset, dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.repair import LABELS, Example, export
from tests.toys import COLOURS

SIZE = (64, 48)
RULES = (
    "erase(1) => presence(gone)+object_noise(0.5, 16) => presence(kept)+background_noise(16) => presence(kept)"
    "+background_noise(64) => presence(kept)"
)


def picture(seed: int) -> tuple[Image, Detections]:
    """Two squares with room between them."""
    rng = np.random.default_rng(seed)
    pixels = np.full((SIZE[1], SIZE[0], 3), 128, np.uint8)
    boxes, labels = [], []
    for number in range(2):
        side = int(rng.integers(12, 20))
        x, y = 32 * number + int(rng.integers(1, 31 - side)), int(rng.integers(1, SIZE[1] - side))
        labels.append(str(rng.choice(list(COLOURS))))
        pixels[y : y + side, x : x + side] = COLOURS[labels[-1]]
        boxes.append([x, y, x + side, y + side])
    return Image(pixels), Detections.from_xyxy(boxes, labels, ids=[f"{seed}-{n}" for n in range(2)])


def in_memory(count: int = 6, first: int = 0) -> Dataset:
    cases = []
    for seed in range(first, first + count):
        image, truth = picture(seed)
        cases.append(Case(f"{seed:03d}.png", input=image, truth=truth))
    return Dataset("squares", "", lambda: iter(cases), truth="detections")


def truth_of(case: Case) -> Detections:
    assert isinstance(case.truth, Detections)
    return case.truth


def pixels_of(case: Case) -> npt.NDArray[np.uint8]:
    image, _ = read_input(case)
    assert isinstance(image, Image)
    return image.pixels


def on_disk(folder: Path, count: int = 6, first: int = 0) -> Path:
    """The same as a COCO file."""
    made = (Example(f"{seed:03d}.png", picture(seed)[1], picture(seed)[0]) for seed in range(first, first + count))
    return export(folder, made) / LABELS


def found(pixels: np.ndarray) -> Detections:
    """Squares by their colour, noise or not: right about everything that the rules ask."""
    boxes, labels = [], []
    smooth = cv2.blur(pixels, (5, 5)).astype(int)
    for name, colour in COLOURS.items():
        near = (np.abs(smooth - colour).max(2) < 60).astype(np.uint8)
        _, _, stats, _ = cv2.connectedComponentsWithStats(near)
        for x, y, width, height, area in stats[1:]:
            if area >= 30:
                boxes.append([x - 1, y - 1, x + width + 1, y + height + 1])
                labels.append(name)
    return Detections.from_xyxy(np.array(boxes, float).reshape(-1, 4), labels, np.full(len(labels), 0.9))


def remembering(count: int = 6, first: int = 0) -> Callable[[np.ndarray], Detections]:
    """Knows the pictures by their background, and finds what was there as long as that is quiet."""
    known = [picture(seed) for seed in range(first, first + count)]

    def remembered(pixels: np.ndarray) -> Detections:
        quiet = (pixels == 128).all(2)
        if quiet.mean() < 0.3:
            return Detections.from_xyxy([], [])
        agreeing = [((image.pixels == 128).all(2) == quiet).mean() for image, _ in known]
        truth = known[int(np.argmax(agreeing))][1]
        return Detections.from_xyxy(truth.boxes, truth.labels, np.full(len(truth), 0.9))

    return remembered


def ran(system: Callable[[np.ndarray], Detections], data: Dataset | Path, out: Path, rules: str = RULES) -> instar.Run:
    return instar.run(system, rules, data, out=out, workers=0)


def truths(path: Path) -> Sequence[Detections]:
    return [case.truth for case in dataset(path).cases() if isinstance(case.truth, Detections)]
