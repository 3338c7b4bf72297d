"""Segmenters of painted images: one that is right on a grid of its own, and ones with a fault each."""

from __future__ import annotations

import cv2
import numpy as np

from instar.outputs.segmentation import Segmentation

NAMES = ("ground", "red", "blue")


def painted(number: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    pixels = np.full((160, 200, 3), 128, np.uint8)
    cv2.circle(pixels, (int(rng.integers(50, 80)), int(rng.integers(60, 100))), 30, (200, 60, 60), -1)
    x, y = int(rng.integers(120, 140)), int(rng.integers(40, 70))
    cv2.rectangle(pixels, (x, y), (x + 40, y + 60), (60, 70, 190), -1)
    return pixels


def _cells(pixels: np.ndarray) -> np.ndarray:
    """By hue: what light and blur leave alone."""
    colours = pixels.astype(int)
    red, blue = colours[..., 0] - colours[..., 2], colours[..., 2] - colours[..., 0]
    least = 0.3 * max(int(np.abs(red).max()), 1)
    return np.where(red > least, 1, np.where(blue > least, 2, 0)).astype(np.uint8)


def right(pixels: np.ndarray) -> Segmentation:
    """Its answers are on half the grid of the image."""
    cells = _cells(pixels)
    small = cv2.resize(cells, (pixels.shape[1] // 2, pixels.shape[0] // 2), interpolation=cv2.INTER_NEAREST)
    return Segmentation.from_classes(small, NAMES)


def blind_to_the_right(pixels: np.ndarray) -> Segmentation:
    """Sees nothing in the right third."""
    cells = _cells(pixels)
    cells[:, 2 * cells.shape[1] // 3 :] = 0
    return Segmentation.from_classes(cells, NAMES)


def blind_in_the_dark(pixels: np.ndarray) -> Segmentation:
    """Sees nothing red where it is dark."""
    cells = _cells(pixels)
    if pixels.mean() < 100:
        cells[cells == 1] = 0
    return Segmentation.from_classes(cells, NAMES)


def half_a_cell_off(pixels: np.ndarray) -> Segmentation:
    """Its map is shifted by eight pixels: a fault that only geometry shows."""
    return Segmentation.from_classes(np.roll(_cells(pixels), 8, axis=1), NAMES)
