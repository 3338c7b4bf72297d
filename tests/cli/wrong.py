"""Adapters with mistakes: coordinates from 0 to 1 instead of pixels, which many return, one that always raises, and
ones that are never sure, find nothing, or never answer."""

from __future__ import annotations

import time

import numpy as np

from instar import Detections
from tests.toys import rectangles


def normalised(pixels: np.ndarray) -> Detections:
    answer = rectangles(pixels)
    height, width = pixels.shape[:2]
    return Detections.from_xyxy(answer.boxes / [width, height, width, height], answer.labels, answer.scores)


def raising(pixels: np.ndarray) -> Detections:
    raise RuntimeError("no weights")


def faint(pixels: np.ndarray) -> Detections:
    answer = rectangles(pixels)
    return Detections.from_xyxy(answer.boxes, answer.labels, 0.3 * answer.scores)


def blind(pixels: np.ndarray) -> Detections:
    return Detections.from_xyxy([], [])


def hanging(pixels: np.ndarray) -> Detections:
    time.sleep(600)
    return blind(pixels)
