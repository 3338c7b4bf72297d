"""fruit-counter: counts blobs of colour. It takes the colours literally, so that darker images hide fruit from it."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from instar import Image, Parameter, System, SystemFamily, fingerprint_of
from instar_fruit.datasets import COLOURS
from instar_fruit.output import Count

__all__ = ["FRUIT_COUNTER", "count_fruit"]


def count_fruit(pixels: np.ndarray, tolerance: int = 40) -> Count:
    """How many blobs of each colour there are; those smaller than 100 pixels are dirt."""
    numbers = {}
    for sort, colour in COLOURS.items():
        near = (np.abs(pixels.astype(int) - colour).max(-1) <= tolerance).astype(np.uint8)
        _, _, facts, _ = cv2.connectedComponentsWithStats(near)
        numbers[sort] = int((facts[1:, cv2.CC_STAT_AREA] >= 100).sum())
    return Count(numbers)


def _build(name: str, *, tolerance: int) -> System:
    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Count]:
        return [count_fruit(image.pixels, tolerance) for image in inputs]

    return System(name, Count.kind, predict, fingerprint_of("fruit-counter", 1, tolerance))


FRUIT_COUNTER = SystemFamily(
    "fruit-counter",
    Count.kind,
    _build,
    (Parameter("tolerance", "int", 40, low=0, high=255, help="how far a colour may be off"),),
    help="Counts blobs of colour.",
)
