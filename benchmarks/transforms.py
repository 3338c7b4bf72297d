"""What transformations cost at 720×480, and whether the way each is done beats the obvious one.

python -m benchmarks.transforms [--small] [--write]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import cv2
import numpy as np

from benchmarks.command import main
from benchmarks.figures import Figures, Row, best_seconds, short, size_words
from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.suites import suite
from instar.transforms import transformation
from instar.warp import Size

SUITE = "met-pose"
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


def measure(small: bool = False) -> Figures:
    cv2.setNumThreads(1)  # as in a worker
    size, repeats = ((180, 120), 1) if small else ((720, 480), 15)
    image, needs = _image(size), _needs(size)
    rules = [rule.transformations[0].id for rule in suite(SUITE).rules]
    milliseconds = {
        text: 1000 * best_seconds(partial(transformation(text), image, needs=needs, seed=1), repeats)
        for text in dict.fromkeys([*rules, *OTHERS])
    }
    return {
        "width": size[0],
        "height": size[1],
        "rules": len(rules),
        "rules_together_ms": sum(milliseconds[text] for text in rules),
        "ms": milliseconds,
        "ways_ms": {
            group: {way: 1000 * best_seconds(work, repeats) for way, work in ways.items()}
            for group, ways in _ways(image).items()
        },
    }


def rows(figures: Figures) -> list[Row]:
    ways = "; ".join(
        f"{group}: {', '.join(f'{way} {short(cost)} ms' for way, cost in costs.items())}"
        for group, costs in figures["ways_ms"].items()
    )
    return [
        Row(
            f"transformations at {size_words(figures)}",
            f"all {figures['rules']} rules of `{SUITE}` together {short(figures['rules_together_ms'], 3)} ms an image",
        ),
        Row(f"ways to do the same at {size_words(figures)}, the way taken first", ways),
    ]


def _image(size: Size) -> Image:
    rough = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    smooth = cv2.GaussianBlur(rough, (0, 0), 3)
    return Image(np.asarray(cv2.normalize(smooth, np.empty_like(rough), 0, 255, cv2.NORM_MINMAX), np.uint8))


def _needs(size: Size) -> dict[str, object]:
    """All that a transformation may need besides the image: zones, a hand's landmarks, objects."""
    coarse = np.random.default_rng(1).integers(0, 4, (8, 12), dtype=np.uint8)
    labels = np.asarray(cv2.resize(coarse, size, interpolation=cv2.INTER_NEAREST), np.uint8)
    spots = np.random.default_rng(2).uniform(0.05, 0.95, (21, 2)) * size
    boxes = np.array([[0.05, 0.1, 0.4, 0.8], [0.45, 0.2, 0.9, 0.6]]) * [*size, *size]
    return {
        "zones": Zones(labels, {"background": (0,), "hair": (1,), "skin": (2,), "clothes": (3,)}),
        "landmarks": Poses.from_array(spots, skeleton="hand-21"),
        "objects": Detections.from_xyxy(boxes, ["dog", "cat"]),
    }


def _ways(image: Image) -> dict[str, dict[str, Callable[[], object]]]:
    """Ways to do the same, in groups; the way taken comes first in each."""
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

    return {
        "noise": {
            "table of 65,536 quantiles": applied("noise(8)"),
            "numpy standard_normal": numpy_noise,
            "cv2.randn": opencv_noise,
        },
        "pointwise": {
            "StringZilla": applied("gamma(0.5)"),
            "cv2.LUT": lambda: cv2.LUT(pixels, table),
            "numpy take": lambda: table.take(pixels),
            "numpy power": lambda: (255 * (pixels / 255.0) ** 0.5).astype(np.uint8),
        },
        "a table for every channel": {
            "StringZilla, channel by channel": applied("colour_channels((0.9, 1.1, 1.1))"),
            "cv2.LUT": lambda: cv2.LUT(pixels, np.repeat(table, 3).reshape(1, 256, 3)),
        },
        "zone": {
            "cv2.copyTo": copied,
            "boolean index": indexed,
            "numpy where": lambda: np.where(mask[..., None] > 0, changed, pixels),
        },
        "hue": {"float, in chunks (off by ≤ 1)": applied("colour_wheel(90)"), "8-bit HSV (off by ≤ 5)": eight_bit_hue},
        "fill": {"by rows": applied("colour_fill((0, 0, 255))"), "by pixels": filled_by_pixel},
        "brightness": {
            "StringZilla": applied("brightness(20, 0.8)"),
            "cv2.convertScaleAbs (takes |v|)": lambda: cv2.convertScaleAbs(pixels, alpha=0.8, beta=20),
        },
    }


if __name__ == "__main__":
    main("transforms")
