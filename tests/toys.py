"""Toy systems and pictures whose right answers are known, for tests of everything around them."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import xxhash

from instar import Detections, Poses, System, declare
from instar.image import Image
from tests.clocks import hang

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (40, 60, 230)}


def scene(seed: int = 0, size: tuple[int, int] = (160, 120), objects: int = 3) -> Image:
    """Coloured rectangles that do not overlap on grey."""
    rng = np.random.default_rng(seed)
    width, height = size
    pixels = np.full((height, width, 3), 110, np.uint8)
    slot = width // max(objects, 1)
    for number in range(objects):
        x = number * slot + int(rng.integers(2, slot // 4))
        y = int(rng.integers(5, height // 2))
        w, h = int(rng.integers(slot // 3, slot // 2)), int(rng.integers(height // 6, height // 3))
        pixels[y : y + h, x : x + w] = list(COLOURS.values())[number % 3]
    return Image(pixels)


def write_scenes(folder: Path, count: int, size: tuple[int, int] = (160, 120)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        write_image(folder / f"{number:03d}.png", scene(number, size))
    return folder


def write_image(path: Path, image: Image) -> None:
    cv2.imwrite(str(path), cv2.cvtColor(image.pixels, cv2.COLOR_RGB2BGR))


def _masks(pixels: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Each colour's pixels, by which channel stands out."""
    red, green, blue = cv2.split(pixels)
    channels = {"red": (red, green, blue), "green": (green, red, blue), "blue": (blue, red, green)}
    return [
        (name, (np.asarray(cv2.subtract(own, cv2.max(one, other))) > 60).astype(np.uint8))
        for name, (own, one, other) in channels.items()
    ]


def rectangles(pixels: np.ndarray) -> Detections:
    """Finds several objects: every coloured rectangle, by colour."""
    boxes, labels = [], []
    for name, mask in _masks(pixels):
        count, _, stats, _ = cv2.connectedComponentsWithStats(mask)
        for x, y, w, h, area in stats[1:count]:
            if area >= 4:
                boxes.append([x, y, x + w, y + h])
                labels.append(name)
    return Detections.from_xyxy(np.array(boxes, float).reshape(-1, 4), labels)


def shy(pixels: np.ndarray) -> Detections:
    """Says nothing of most images: by the height of what is there, which mirrors and lighting leave as it is."""
    found = rectangles(pixels)
    return Detections.from_xyxy(np.empty((0, 4)), []) if round(float(found.boxes[:, 1].min())) % 2 else found


def _centres(pixels: np.ndarray) -> np.ndarray:
    """A face and shoulders of the three rectangles, from the image's left to its right: exact under flips."""
    points = np.full((17, 2), np.nan)
    found = [np.nonzero(mask) for _, mask in _masks(pixels)]
    middles = sorted((columns.mean() + 0.5, rows.mean() + 0.5) for rows, columns in found if len(rows))
    if len(middles) == 3:
        points[[2, 6]], points[0], points[[1, 5]] = middles
    return points


def _pose(points: np.ndarray) -> Poses:
    return Poses.from_array(points[None] if not np.isnan(points).all() else [], skeleton="coco-17")


def image_system(answer: Callable[[np.ndarray], object], kind: str, *, deterministic: bool = True) -> System:
    """A system of a function, and no adapter: what identifies its code is not looked for, which takes longer than the
    answers to a few images."""

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[object]:
        return [answer(image.pixels) for image in inputs]

    return System("answers", kind, predict, "0", deterministic=deterministic)


def steady(pixels: np.ndarray) -> Poses:
    return _pose(_centres(pixels))


def shaky(pixels: np.ndarray, seed: int) -> Poses:
    """Stochastic and seedable: the right answer with half a pixel of jitter."""
    return _pose(_centres(pixels) + np.random.default_rng(seed).normal(0, 0.5, (17, 2)))


@declare(kind="poses", deterministic=False)
def drifting(pixels: np.ndarray) -> Poses:
    """Stochastic, and nobody can seed it."""
    return _pose(_centres(pixels) + np.random.default_rng().normal(0, 0.5, (17, 2)))


def content(pixels: np.ndarray) -> str:
    return xxhash.xxh3_64_hexdigest(repr(pixels.shape).encode() + np.ascontiguousarray(pixels).tobytes())


def counting(pixels: np.ndarray) -> Poses:
    """Writes down every prediction in the file that $COUNT_FILE names, before it answers."""
    with Path(os.environ["COUNT_FILE"]).open("a") as file:
        file.write(content(pixels) + "\n")
    time.sleep(float(os.environ.get("COUNT_SLEEP", "0")))
    if Path(os.environ["COUNT_FILE"]).stat().st_size > 17 * int(os.environ.get("COUNT_MOST", "1000000")):
        time.sleep(3600)  # a test that kills this process comes in time
    return steady(pixels)


def _brightness(pixels: np.ndarray) -> float:
    return float(pixels.mean())


def moody(pixels: np.ndarray) -> Poses:
    """Raises, hangs, dies or answers rubbish, as the brightness of the picture (set by gamma) tells it to."""
    level = _brightness(pixels)
    if level < 20:
        ctypes.string_at(0)  # a segmentation fault, as native code has them
    if level < 40:
        hang(os.environ.get("HANGING", os.devnull))
    if level > 230:
        raise RuntimeError("too bright for me")
    if level > 200:
        return "a person, I guess"  # type: ignore[return-value]
    return steady(pixels)
