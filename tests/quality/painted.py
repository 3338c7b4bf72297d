"""Painted things for classifiers and segmenters: what is in an image, what happened to it, and how a fault is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np

import instar
from instar import Case, Dataset, Image, Run
from tests.toys import image_system

GROUND, RED, BLUE = (128, 128, 128), (196, 60, 60), (60, 70, 190)
WHITE = (236, 236, 236)
Pixels = np.ndarray


def sign(number: int) -> Pixels:
    """A red disc or a blue square near the middle, with a white spot at its left or right."""
    rng = np.random.default_rng(number)
    pixels = np.full((120, 160, 3), GROUND, np.uint8)
    x, y = int(rng.integers(70, 90)), int(rng.integers(52, 68))
    if number % 2:
        cv2.circle(pixels, (x, y), 26, RED, -1)
    else:
        cv2.rectangle(pixels, (x - 23, y - 23), (x + 23, y + 23), BLUE, -1)
    spot = x + (12 if number % 4 < 2 else -12)
    cv2.rectangle(pixels, (spot - 4, y - 4), (spot + 4, y + 4), WHITE, -1)
    return pixels


def street(number: int) -> Pixels:
    """A red disc at the left and a blue box at the right."""
    rng = np.random.default_rng(number)
    pixels = np.full((120, 160, 3), GROUND, np.uint8)
    cv2.circle(pixels, (int(rng.integers(44, 54)), int(rng.integers(50, 70))), 22, RED, -1)
    x, y = int(rng.integers(92, 104)), int(rng.integers(36, 46))
    cv2.rectangle(pixels, (x, y), (x + 30, y + 44), BLUE, -1)
    return pixels


# --- what a system may notice ----------------------------------------------------------------------


def redness(pixels: Pixels) -> np.ndarray:
    """Red above 0, blue below it: what light and blur leave alone. −1 to 1."""
    apart = pixels[..., 0].astype(float) - pixels[..., 2]
    return np.asarray(apart / max(float(np.abs(apart).max()), 40.0))


def cells(pixels: Pixels) -> np.ndarray:
    """The right class of every pixel: 0 ground, 1 red, 2 blue."""
    apart = redness(pixels)
    return np.where(apart > 0.4, 1, np.where(apart < -0.4, 2, 0)).astype(np.uint8)


def ground(pixels: Pixels) -> Pixels:
    """The grey pixels that are no margin."""
    low, high = _ends(pixels)
    return np.asarray(pixels[(high - low < 24) & (low > 20) & (high < 225)].astype(int))


def _ends(pixels: Pixels) -> tuple[Pixels, Pixels]:
    """The least and the largest of each pixel's three values; far faster by columns than along an axis of three."""
    red, green, blue = np.moveaxis(pixels, 2, 0).astype(np.int16)
    return np.minimum(np.minimum(red, green), blue), np.maximum(np.maximum(red, green), blue)


def light(pixels: Pixels) -> float:
    return float(np.median(ground(pixels)))


def dark(pixels: Pixels) -> bool:
    return light(pixels) < 110


def bright(pixels: Pixels) -> bool:
    return light(pixels) > 150


def flat(pixels: Pixels) -> bool:
    """Weak colours in the light of day."""
    low, high = _ends(pixels)
    return float((high - low).max()) < 115 and not dark(pixels) and not bright(pixels)


def noisy(pixels: Pixels) -> bool:
    grey = ground(pixels)
    return float(np.median(np.abs(grey - np.median(grey, axis=0)))) > 3


def soft(pixels: Pixels) -> bool:
    """Edges wider than a pixel or two, of an image of full size."""
    steps = np.abs(np.diff(pixels.astype(int), axis=1)).max(2)
    wide = pixels.shape[1] > 120 and float(np.percentile(steps, 99.8)) < 55
    return wide and not (flat(pixels) or dark(pixels) or blocky(pixels))


def blocky(pixels: Pixels) -> bool:
    """Faint rings about edges, and none of the noise of a sensor."""
    off = np.abs(ground(pixels) - np.median(ground(pixels), axis=0)).max(1)
    return bool(0.02 < float(((off > 1) & (off < 12)).mean()) < 0.4) and not noisy(pixels)


def small(pixels: Pixels) -> bool:
    return bool(pixels.shape[1] < 120 and pixels.shape[0] < 110)


def margins(pixels: Pixels) -> bool:
    """Black all along the top and the bottom: a letterbox."""
    return bool(pixels[:3].max() < 12 and pixels[-3:].max() < 12)


def middle(pixels: Pixels) -> tuple[float, float]:
    """The middle of what is coloured, in shares of the frame."""
    y, x = np.nonzero(cells(pixels))
    return (float(x.mean()) / pixels.shape[1], float(y.mean()) / pixels.shape[0]) if len(x) else (0.5, 0.5)


def share(pixels: Pixels) -> float:
    return float((cells(pixels) > 0).mean())


def narrow(pixels: Pixels) -> bool:
    y, x = np.nonzero(cells(pixels))
    return bool(np.ptp(x) < 0.9 * np.ptp(y))


def tilted(pixels: Pixels, number: int = 2) -> bool:
    """Whether the blue box is not upright."""
    spots = np.argwhere(cells(pixels) == number)[:, ::-1].astype(np.float32)
    if len(spots) < 50:
        return False
    angle = cv2.minAreaRect(spots)[2] % 90
    return bool(2.5 < angle < 87.5)


# --- how it is run ---------------------------------------------------------------------------------


def inputs_of(images: Sequence[Pixels]) -> list[tuple[str, Image]]:
    return [(f"{number}.png", Image(pixels)) for number, pixels in enumerate(images)]


def run_of(
    answer: Callable[[Pixels], object], kind: str, images: Sequence[Pixels], out: Path, rules: str | None = None
) -> Run:
    """A run of a function with the suite of its kind."""
    cases = [Case(name, input=image) for name, image in inputs_of(images)]
    data = Dataset("painted", "", lambda: iter(cases))
    return instar.run(image_system(answer, kind), rules or kind, data, out=out, workers=0)


def violated(run: Run) -> set[str]:
    """The transformations of the violated rules."""
    rates = run.rates()
    return {rule.split(" =>")[0] for rule, count in rates.select("rule", "violated").iter_rows() if count}
