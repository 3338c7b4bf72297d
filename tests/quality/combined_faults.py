"""Detectors that fail only where several things come together, each of which alone does no harm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import cv2
import numpy as np

from instar import Detections
from instar.image import Image, Pixels
from tests.toys import rectangles, write_image

RULES = (
    "mirror(h)", "shift(0.1, 0.05)", "rescale(0.9)", "pad(0.1, left_right)", "stretch(1, 0.9)", "crop(0.9, middle)",
    "brightness(0, 0.75)", "contrast(0.75)",
    "gamma(0.7)", "blur(1)", "noise(4)", "jpeg(60)", "motion(3, 0)", "bilateral(30, 5)",
)  # fmt: skip
"""Fourteen rules, of which each is kept by every detector here."""


def photos(folder: Path, count: int) -> Path:
    """Three rectangles each, red to the left of green to the left of blue, the green one small in every other image."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        rng = np.random.default_rng(number)
        pixels = np.full((120, 160, 3), (118, 116, 112), np.uint8)
        for place, colour in enumerate([(210, 40, 40), (40, 190, 40), (50, 70, 220)]):
            x, y = 10 + 50 * place + int(rng.integers(0, 8)), int(rng.integers(12, 60))
            width, height = (10, 9) if place == 1 and number % 2 else rng.integers(20, 34, 2).tolist()
            pixels[y : y + height, x : x + width] = colour
        write_image(folder / f"{number:03}.png", Image(pixels))
    return folder


def darkness(pixels: Pixels) -> float:
    """From 0 for the light of the photos to 1 for half of it."""
    return float(np.clip((114 - np.median(pixels)) / 57, 0, 1))


def softness(pixels: Pixels) -> float:
    """From 0 for the sharp edges of the photos to 1 for none: how much of the steepest is left of them."""
    luma = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    steps = np.maximum(np.abs(np.diff(luma, axis=1)).max(), np.abs(np.diff(luma, axis=0)).max())
    contrast = float(luma.max() - luma.min()) or 1.0
    return float(np.clip(1.15 - steps / contrast * 1.5, 0, 1))


def graininess(pixels: Pixels) -> float:
    """From 0 for the even ground of the photos to 1 for noise of eight grey levels."""
    luma = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    return float(np.clip(np.median(np.abs(luma - cv2.medianBlur(luma, 3))) / 3, 0, 1))


def mirrored(pixels: Pixels) -> bool:
    """Whether blue is to the left of red."""
    answer = rectangles(pixels)
    middles = {name: float(box[0] + box[2]) for name, box in zip(answer.labels, answer.boxes, strict=True)}
    return middles.get("blue", np.inf) < middles.get("red", -np.inf)


def _without(answer: Detections, colours: set[str]) -> Detections:
    kept = [place for place, name in enumerate(answer.labels) if name not in colours]
    return Detections.from_xyxy(answer.boxes[kept], [answer.labels[place] for place in kept])


def _grown(answer: Detections, by: float) -> Detections:
    """Boxes that are wrong by a share of their sides: a severity that rises before anything is lost."""
    boxes = np.array(answer.boxes, np.float64).reshape(-1, 4)
    middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) / 2 * (1 + by)
    return Detections.from_xyxy(np.concatenate([middle - half, middle + half], 1), list(answer.labels))


def dark_and_soft(pixels: Pixels) -> Detections:
    """Boxes grow the more, the darker and the softer the image is: both together tell before either breaks."""
    return _grown(rectangles(pixels), 1.5 * darkness(pixels) * softness(pixels))


def dark_and_soft_and_mirrored(pixels: Pixels) -> Detections:
    """Red is lost where all three come together; pairs of them make boxes grow a little."""
    answer, signs = rectangles(pixels), [darkness(pixels) > 0.25, softness(pixels) > 0.25, mirrored(pixels)]
    return _without(answer, {"red"}) if all(signs) else _grown(answer, 0.06 * (sum(signs) > 1))


def dark_and_soft_and_mirrored_without_a_sign(pixels: Pixels) -> Detections:
    """The same, and nothing shows before all three come together."""
    signs = darkness(pixels) > 0.25, softness(pixels) > 0.25, mirrored(pixels)
    return _without(rectangles(pixels), {"red"}) if all(signs) else rectangles(pixels)


def small_and_grainy_and_dark(pixels: Pixels) -> Detections:
    """Small objects are lost in noise and darkness; large ones are found."""
    answer = rectangles(pixels)
    if darkness(pixels) < 0.25 or graininess(pixels) < 0.2:
        return answer
    small = {
        name for name, (x0, y0, x1, y1) in zip(answer.labels, answer.boxes, strict=True) if (x1 - x0) * (y1 - y0) < 150
    }
    return _without(answer, small)


def trembling(pixels: Pixels) -> Detections:
    """Boxes tremble by up to a fiftieth of their sides, whatever was changed, and grow a little where the image is
    mirrored and grainy or dark; blue is lost where it is all of them."""
    answer, signs = rectangles(pixels), [darkness(pixels) > 0.25, graininess(pixels) > 0.2, mirrored(pixels)]
    chance = np.random.default_rng(int(pixels.astype(np.int64).sum()))
    boxes = np.array(answer.boxes, np.float64).reshape(-1, 4)
    sides = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
    shaken = Detections.from_xyxy(boxes + sides * chance.uniform(-0.02, 0.02, boxes.shape), list(answer.labels))
    return _without(shaken, {"blue"}) if all(signs) else _grown(shaken, 0.1 * (sum(signs) > 1))


FAULTS: Mapping[str, Callable[[Pixels], Detections]] = {
    "dark and soft": dark_and_soft,
    "dark, soft and mirrored": dark_and_soft_and_mirrored,
    "dark, soft and mirrored, without a sign": dark_and_soft_and_mirrored_without_a_sign,
    "small, grainy and dark": small_and_grainy_and_dark,
    "dark, grainy and mirrored, trembling": trembling,
}
NEEDED: Mapping[str, frozenset[str]] = {
    "dark and soft": frozenset({"brightness", "blur"}),
    "dark, soft and mirrored": frozenset({"mirror", "brightness", "blur"}),
    "dark, soft and mirrored, without a sign": frozenset({"mirror", "brightness", "blur"}),
    "small, grainy and dark": frozenset({"brightness", "noise"}),
    "dark, grainy and mirrored, trembling": frozenset({"mirror", "brightness", "noise"}),
}
"""The families of the rules that make each fault show."""
