"""Toy segmenters, and a detector that forgets."""

from __future__ import annotations

import ctypes

import numpy as np

from instar import Detections, Zones
from tests.toys import _masks, rectangles


def painted(pixels: np.ndarray) -> Zones:
    labels = np.zeros(pixels.shape[:2], np.uint8)
    for number, (_, mask) in enumerate(_masks(pixels), start=1):
        labels[mask > 0] = number
    return Zones(labels, {"background": (0,), "red": (1,), "green": (2,), "blue": (3,), "empty": (9,)})


def fragile(pixels: np.ndarray) -> Zones:
    """Kills its process on every other picture, as the sizes of their red rectangles fall."""
    zones = painted(pixels)
    if np.count_nonzero(zones.labels == 1) % 2:
        ctypes.string_at(0)
    return zones


def talkative(pixels: np.ndarray) -> Detections:
    """Ten thousand boxes: an answer larger than a pipe."""
    boxes = np.tile([[0, 0, 9, 9]], (10_000, 1)) + np.arange(10_000)[:, None] % 500
    return Detections.from_xyxy(boxes, ["dust"] * 10_000, np.zeros(10_000))


def striped(pixels: np.ndarray) -> Zones:
    labels = np.zeros(pixels.shape[:2], np.uint8)
    labels[::2] = 1
    return Zones(labels, {"red": (1,)})


def forgetful(pixels: np.ndarray) -> Detections:
    """Misses what is red on the right half, and sees a ghost in the dark."""
    found = rectangles(pixels)
    keep = [
        i
        for i, (box, label) in enumerate(zip(found.boxes, found.labels, strict=True))
        if not (label == "red" and box[0] > pixels.shape[1] / 2)
    ]
    boxes, labels = [found.boxes[i] for i in keep], [found.labels[i] for i in keep]
    if pixels[0, 0, 0] < 80:
        boxes, labels = [*boxes, [0, 0, 9, 9]], [*labels, "ghost"]
    return Detections.from_xyxy(np.array(boxes).reshape(-1, 4), labels)
