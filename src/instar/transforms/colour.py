"""Colour: what a system should not rely on. Every point stays where it was."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from instar.spelling import Parameter
from instar.transforms.family import Family

__all__ = ["FAMILIES"]

Pixels = npt.NDArray[np.uint8]


def colour_wheel(pixels: Pixels, *, degrees: float) -> Pixels:
    """Hue rotated by degrees of the colour wheel. OpenCV's 8-bit hue counts half degrees: 0 to 179."""
    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV)
    table = np.arange(256, dtype=np.uint8)
    table[:180] = np.rint(np.arange(180) + degrees / 2).astype(np.int64) % 180
    cv2.LUT(hsv[..., 0], table, dst=hsv[..., 0])
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), dtype=np.uint8)


FAMILIES = (
    Family("colour_wheel", "colour", "photometric", colour_wheel,
           (Parameter("degrees", "float", low=-360, high=360, ordered=True, help="counter-clockwise on the wheel"),),
           help="Hue rotated by degrees of the colour wheel (not OpenCV's half degrees)."),
)
