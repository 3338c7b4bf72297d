"""What one mutation of an image with objects costs: erased, noise on them, noise around them, by box and by mask.

    python -m benchmarks.mutation [--small] [--write]

Median and 95th percentile of every kind, on an image of 640×480 with 8 objects, in processor time: a mutation waits for
nothing, and what else runs on the machine does not count. The median by the clock is beside it.
"""

from __future__ import annotations

import time

import cv2
import numpy as np

from benchmarks.command import main
from benchmarks.figures import Figures, Row, short, size_words
from instar.image import Image
from instar.outputs.detections import Detections
from instar.transforms import transformation
from instar.warp import Size

OBJECTS = 8
MUTATIONS = {
    "erase(0.9)": "erased",
    "erase(0.9, by=mask)": "erased by mask",
    "object_noise(0.9, 16)": "noise on the objects",
    "object_noise(0.9, 16, by=mask)": "noise on them by mask",
    "background_noise(16)": "noise around them",
    "background_noise(16, by=mask)": "noise around them by mask",
}
WARM_UP = 10


def measure(small: bool = False) -> Figures:
    cv2.setNumThreads(1)  # as in a worker
    size, repeats = ((160, 120), 2) if small else ((640, 480), 200)
    image, objects = _scene(size)
    return {
        "width": size[0],
        "height": size[1],
        "objects": OBJECTS,
        "repeats": repeats,
        "mutations": {text: _mutation(text, image, objects, repeats) for text in MUTATIONS},
    }


def rows(figures: Figures) -> list[Row]:
    costs = {words: figures["mutations"][text] for text, words in MUTATIONS.items()}
    slowest = max(cost["p95_ms"] for cost in costs.values())
    medians = ", ".join(f"{words} {short(cost['median_ms'])} ms" for words, cost in costs.items())
    return [
        Row(
            f"one mutation of a {size_words(figures)} image with {figures['objects']} objects",
            f"processor time, medians of {figures['repeats']}: {medians}; 95 % of each within {short(slowest)} ms",
        )
    ]


def _scene(size: Size) -> tuple[Image, Detections]:
    """An image with objects all over it, from a twentieth to a half of its sides, each with an ellipse as its mask."""
    rng = np.random.default_rng(0)
    width, height = size
    boxes, masks = [], np.zeros((OBJECTS, height, width), np.uint8)
    for mask, share in zip(masks, np.linspace(0.05, 0.5, OBJECTS), strict=True):
        wide, high = share * width, share * height
        x, y = rng.uniform(0, width - wide), rng.uniform(0, height - high)
        boxes.append([x, y, x + wide, y + high])
        centre, axes = (round(x + wide / 2), round(y + high / 2)), (round(wide / 2), round(high / 2))
        cv2.ellipse(mask, centre, axes, 0, 0, 360, (1,), -1)
    pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image(pixels), Detections.from_xyxy(boxes, ["thing"] * OBJECTS, masks=masks.astype(bool))


def _mutation(text: str, image: Image, objects: Detections, repeats: int) -> Figures:
    change = transformation(text)
    times = []
    for seed in range(repeats + WARM_UP):
        begun = time.thread_time(), time.perf_counter()
        change(image, needs={"objects": objects}, seed=seed)
        times.append((time.thread_time() - begun[0], time.perf_counter() - begun[1]))
    busy, clock = 1000 * np.array(times[WARM_UP:]).T
    return {
        "median_ms": float(np.median(busy)),
        "p95_ms": float(np.quantile(busy, 0.95)),
        "clock_median_ms": float(np.median(clock)),
    }


if __name__ == "__main__":
    main("mutation")
