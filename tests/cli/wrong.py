"""An adapter with a mistake that many make: coordinates from 0 to 1 instead of pixels."""

from __future__ import annotations

import numpy as np

from instar import Detections
from tests.toys import rectangles


def normalised(pixels: np.ndarray) -> Detections:
    found = rectangles(pixels)
    height, width = pixels.shape[:2]
    return Detections.from_xyxy(found.boxes / [width, height, width, height], found.labels, found.scores)
