"""What one mutation of an image with objects costs: erased, noise on them, noise around them, by box and by mask.

    python benchmarks/mutation.py [--repeats 200]

Prints the median and the 95th percentile of every kind, on an image of 640×480 with 8 objects, in processor time: a
mutation waits for nothing, and what else runs on the machine does not count. The last line is one JSON object, with
the median by the clock as well.
"""

from __future__ import annotations

import argparse
import json
import time

import cv2
import numpy as np

from instar.image import Image
from instar.outputs.detections import Detections
from instar.transforms import transformation

SIZE, OBJECTS = (640, 480), 8
MUTATIONS = (
    "erase(0.9)",
    "erase(0.9, by=mask)",
    "object_noise(0.9, 16)",
    "object_noise(0.9, 16, by=mask)",
    "background_noise(16)",
    "background_noise(16, by=mask)",
)
WARM_UP = 10
TARGET = 5.0
"""Milliseconds that each may take."""


def scene() -> tuple[Image, Detections]:
    """A picture with objects all over it, from a twentieth to a half of its sides, each with an ellipse as its mask."""
    rng = np.random.default_rng(0)
    width, height = SIZE
    boxes, masks = [], np.zeros((OBJECTS, height, width), np.uint8)
    for mask, share in zip(masks, np.linspace(0.05, 0.5, OBJECTS), strict=True):
        wide, high = share * width, share * height
        x, y = rng.uniform(0, width - wide), rng.uniform(0, height - high)
        boxes.append([x, y, x + wide, y + high])
        centre, axes = (round(x + wide / 2), round(y + high / 2)), (round(wide / 2), round(high / 2))
        cv2.ellipse(mask, centre, axes, 0, 0, 360, (1,), -1)
    pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image(pixels), Detections.from_xyxy(boxes, ["thing"] * OBJECTS, masks=masks.astype(bool))


def measured(repeats: int) -> dict[str, dict[str, float]]:
    image, objects = scene()
    found = {}
    for text in MUTATIONS:
        change = transformation(text)
        taken = []
        for seed in range(repeats + WARM_UP):
            begun = time.thread_time(), time.perf_counter()
            change(image, needs={"objects": objects}, seed=seed)
            taken.append((time.thread_time() - begun[0], time.perf_counter() - begun[1]))
        busy, clock = 1000 * np.array(taken[WARM_UP:]).T
        found[text] = {
            "median_ms": round(float(np.median(busy)), 3),
            "p95_ms": round(float(np.quantile(busy, 0.95)), 3),
            "clock_median_ms": round(float(np.median(clock)), 3),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    repeats = parser.parse_args().repeats
    cv2.setNumThreads(1)  # as in a worker
    found = measured(repeats)
    for text, took in found.items():
        print(f"{text:<34}{took['median_ms']:8.2f} ms, 95 % within {took['p95_ms']:.2f} ms")
    met = all(took["median_ms"] <= TARGET for took in found.values())
    print(
        json.dumps(
            {
                "benchmark": "mutation",
                "size": list(SIZE),
                "objects": OBJECTS,
                "repeats": repeats,
                "target_ms": TARGET,
                "met": met,
                "mutations": found,
            }
        )
    )


if __name__ == "__main__":
    main()
