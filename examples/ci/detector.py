"""A tiny detector: it finds red, green and blue things. What it was `trained` to is in model.json."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np

from instar import Detections, declare

MODEL = json.loads(Path("model.json").read_text("utf-8"))


@declare(weights="model.json")
def detect(image: np.ndarray) -> Detections:
    """A box around every patch whose own colour stands out from the two others by so much."""
    channels = dict(zip(("red", "green", "blue"), cv2.split(image), strict=True))
    boxes, labels, scores = [], [], []
    for name, own in channels.items():
        first, second = (other for colour, other in channels.items() if colour != name)
        apart = cv2.subtract(own, cv2.max(first, second))
        count, _, stats, _ = cv2.connectedComponentsWithStats((apart > MODEL["apart"]).astype(np.uint8))
        for x, y, width, height, area in stats[1:count].tolist():
            if area >= MODEL["pixels"]:
                boxes.append([x, y, x + width, y + height])
                labels.append(name)
                scores.append(1.0)
    return Detections.from_xyxy(np.array(boxes, float).reshape(-1, 4), labels, np.array(scores))
