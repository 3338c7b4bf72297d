"""What transformations cost at 720×480, and whether the way each is done beats the obvious one.

    python benchmarks/transforms.py [--repeats 15]

Prints two tables and, as its last line, one JSON object of milliseconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

import cv2
import numpy as np

from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.suites import suite
from instar.transforms import transformation

SIZE = (720, 480)
OTHERS = (
    "noise(8)",
    "object_noise(0.5, 16)",
    "background_noise(8)",
    "erase(0.9)",
    "discs(21)",
    "finger_discs(thumb)",
    "contrast(0.7)",
    "shear(0.2)",
    "rotate90(1)",
    "rescale(0.7)",
    "colour_wheel(90)",
    "colour_fill((0, 0, 255))",
    "colour_channels((0.9, 1.1, 1.1))",
    "colour_channels((1, 1, 1), encoding=xyz)",
)


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """The best of several runs: the least disturbed."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return round(best * 1000, 3)


def picture() -> Image:
    rough = np.random.default_rng(0).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    smooth = cv2.GaussianBlur(rough, (0, 0), 3)
    return Image(np.asarray(cv2.normalize(smooth, np.empty_like(rough), 0, 255, cv2.NORM_MINMAX), np.uint8))


def needs() -> dict[str, object]:
    coarse = np.random.default_rng(1).integers(0, 4, (8, 12), dtype=np.uint8)
    labels = np.asarray(cv2.resize(coarse, SIZE, interpolation=cv2.INTER_NEAREST), np.uint8)
    spots = np.random.default_rng(2).uniform(20, 450, (21, 2))
    return {
        "zones": Zones(labels, {"background": (0,), "hair": (1,), "skin": (2,), "clothes": (3,)}),
        "truth": Poses.from_array(spots, skeleton="hand-21"),
        "objects": Detections.from_xyxy([[40, 60, 260, 400], [300, 100, 640, 300]], ["dog", "cat"]),
    }


def transformations(image: Image, repeats: int) -> dict[str, float]:
    given = needs()
    ids = [one.transformations[0].id for one in suite("met-pose").rules]
    measured = {}
    for text in dict.fromkeys([*ids, *OTHERS]):
        work = partial(transformation(text), image, needs=given, seed=1)
        measured[text] = milliseconds(work, repeats)
    return measured


def alternatives(image: Image, repeats: int) -> dict[str, dict[str, float]]:
    """The way taken comes first in each group."""
    pixels = image.pixels
    mask = np.where(pixels[..., 0] > 128, np.uint8(255), np.uint8(0))
    changed = 255 - pixels
    table = (255 * (np.arange(256) / 255) ** 0.5).astype(np.uint8)
    rng = np.random.default_rng(1)
    wide = np.empty(pixels.shape, np.float32)

    def applied(text: str) -> Callable[[], object]:
        return partial(transformation(text), image, seed=1)

    def copied() -> None:
        cv2.copyTo(changed, mask, pixels.copy())

    def indexed() -> None:
        out = pixels.copy()
        out[mask > 0] = changed[mask > 0]

    def numpy_noise() -> None:
        drawn = rng.standard_normal(pixels.shape, dtype=np.float32)
        np.clip(np.rint(pixels + 8 * drawn), 0, 255).astype(np.uint8)

    def opencv_noise() -> None:
        cv2.randn(wide, np.zeros(1), np.full(1, 8.0))
        cv2.add(pixels, wide, dtype=cv2.CV_8U)

    def eight_bit_hue() -> None:
        hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0].astype(np.uint16) + 45) % 180
        cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)

    def filled_by_pixel() -> None:
        out = np.empty_like(pixels)
        out[:] = (0, 0, 255)

    groups: dict[str, dict[str, Callable[[], object]]] = {
        "noise": {
            "table of 65,536 quantiles": applied("noise(8)"),
            "numpy standard_normal": numpy_noise,
            "cv2.randn": opencv_noise,
        },
        "pointwise": {
            "cv2.LUT": applied("gamma(0.5)"),
            "numpy take": lambda: table[pixels],
            "numpy power": lambda: (255 * (pixels / 255.0) ** 0.5).astype(np.uint8),
        },
        "zone": {
            "cv2.copyTo": copied,
            "boolean index": indexed,
            "numpy where": lambda: np.where(mask[..., None] > 0, changed, pixels),
        },
        "hue": {"float, in chunks (off by ≤ 1)": applied("colour_wheel(90)"), "8-bit HSV (off by ≤ 5)": eight_bit_hue},
        "fill": {"by rows": applied("colour_fill((0, 0, 255))"), "by pixels": filled_by_pixel},
        "brightness": {
            "cv2.LUT": applied("brightness(20, 0.8)"),
            "cv2.convertScaleAbs (takes |v|)": lambda: cv2.convertScaleAbs(pixels, alpha=0.8, beta=20),
        },
    }
    return {group: {way: milliseconds(work, repeats) for way, work in ways.items()} for group, ways in groups.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    cv2.setNumThreads(1)
    image = picture()
    times = transformations(image, repeats)
    ways = alternatives(image, repeats)
    for text, cost in times.items():
        print(f"{text:<60}{cost:9.3f} ms")
    for group, measured in ways.items():
        print(f"\n{group}")
        for way, cost in measured.items():
            print(f"  {way:<58}{cost:9.3f} ms")
    table = [times[one.transformations[0].id] for one in suite("met-pose").rules]
    print(
        json.dumps(
            {
                "size": list(SIZE),
                "met_pose_ms": round(sum(table), 1),
                "met_pose_mean_ms": round(sum(table) / len(table), 3),
                "ms": times,
                "ways_ms": ways,
            },
            ensure_ascii=False,
        )
    )


if __name__ == "__main__":
    main()
