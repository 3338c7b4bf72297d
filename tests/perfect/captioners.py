"""Captioners of a few lines that see all there is: every class is a hue, whatever the light."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.tasks.meta_ic.language import counted
from tests.toys import content, image_system

HUES = {"dog": 0, "cat": 60, "car": 120, "bus": 28, "traffic light": 150, "sheep": 90}
"""OpenCV's hues, of 180."""
SIZE = (160, 120)
GREY = 128

Captioner = Callable[[np.ndarray], str]


@dataclass(frozen=True)
class Seen:
    """One object: its class, the middle of it as a share of the frame, and its share of the frame."""

    label: str
    x: float
    y: float
    area: float


def colour(label: str) -> tuple[int, int, int]:
    pixel = np.array([[[HUES[label], 235, 220]]], np.uint8)
    r, g, b = (int(value) for value in cv2.cvtColor(pixel, cv2.COLOR_HSV2RGB)[0, 0])
    return r, g, b


_seen: dict[str, list[Seen]] = {}


def seen(pixels: np.ndarray) -> list[Seen]:
    """The objects of an image, class by class; remembered, since every captioner sees the same follow-ups."""
    key = content(pixels)
    if key not in _seen:
        _seen[key] = _looked_for(pixels)
    return list(_seen[key])


def _looked_for(pixels: np.ndarray) -> list[Seen]:
    height, width = pixels.shape[:2]
    hue, saturation, value = cv2.split(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2HSV))
    kernel = np.ones((3, 3), np.uint8)
    objects = []
    for label, own in HUES.items():
        apart = np.abs(hue.astype(int) - own)
        near = (np.minimum(apart, 180 - apart) <= 9) & (saturation > 110) & (value > 30)
        opened = cv2.morphologyEx(near.astype(np.uint8), cv2.MORPH_OPEN, kernel)
        count, _, stats, centres = cv2.connectedComponentsWithStats(opened)
        for number in range(1, count):
            area = stats[number, cv2.CC_STAT_AREA] / (height * width)
            if area > 0.0008:
                x, y = centres[number]
                objects.append(Seen(label, x / width, y / height, area))
    return objects


def counts(objects: list[Seen]) -> dict[str, int]:
    labels = [each.label for each in objects]
    return {label: labels.count(label) for label in dict.fromkeys(labels)}


def worded(objects: Mapping[str, int]) -> str:
    parts = [counted(count, label) for label, count in objects.items()]
    return " and ".join(parts) if parts else "an empty place"


def oracle(pixels: np.ndarray) -> str:
    return worded(counts(seen(pixels)))


def luck(pixels: np.ndarray) -> int:
    """A number that another image changes."""
    return zlib.crc32(np.ascontiguousarray(pixels).tobytes())


# --- flawless --------------------------------------------------------------------------------------


def with_synonyms(pixels: np.ndarray) -> str:
    text = oracle(pixels)
    words = {"dogs": "puppies", "dog": "puppy", "cats": "kittens", "cat": "kitten", "cars": "taxis", "car": "taxi"}
    for word, other in words.items() if luck(pixels) % 2 else ():
        text = text.replace(word, other)
    return text


def reordering(pixels: np.ndarray) -> str:
    parts = list(counts(seen(pixels)).items())
    shift = luck(pixels) % max(len(parts), 1)
    texts = [counted(count, label) for label, count in parts[shift:] + parts[:shift]]
    return f"there is {', '.join(texts[:-1])} next to {texts[-1]}" if len(texts) > 1 else worded(dict(parts))


def counting_in_words(pixels: np.ndarray) -> str:
    ways = ("two", "a couple of", "a pair of")
    return oracle(pixels).replace("two", ways[luck(pixels) % len(ways)])


def in_title_case(pixels: np.ndarray) -> str:
    text = oracle(pixels)
    return (text.title() + ".", text.upper(), f"A photo of {text}!")[luck(pixels) % 3]


def talkative(pixels: np.ndarray) -> str:
    return f"A picture showing {oracle(pixels)} in front of a plain wall, seen from {luck(pixels) % 9 + 2} steps away."


FLAWLESS: dict[str, Captioner] = {
    "an oracle": oracle,
    "an oracle with synonyms": with_synonyms,
    "an oracle that reorders": reordering,
    "an oracle that says a couple of": counting_in_words,
    "an oracle in title case and with full stops": in_title_case,
    "an oracle that talks much": talkative,
}


# --- images and objects to insert ------------------------------------------------------------------


def data(count: int = 6) -> Dataset:
    """Images of two things each: of one class, or of two."""

    def cases() -> Iterator[Case]:
        for seed in range(count):
            rng = np.random.default_rng(seed)
            pixels = np.full((SIZE[1], SIZE[0], 3), GREY, np.uint8)
            labels = ["dog", "dog"] if seed == 0 else [str(label) for label in rng.permutation(list(HUES)[:4])[:2]]
            boxes = []
            for place, label in enumerate(labels):
                side, x0 = int(rng.integers(18, 30)), 14 + place * 84
                y0 = int(rng.integers(8, SIZE[1] - side - 8))
                pixels[y0 : y0 + side, x0 : x0 + side] = colour(label)
                boxes.append([x0, y0, x0 + side, y0 + side])
            yield Case(str(seed), input=Image(pixels), truth=Detections.from_xyxy(boxes, labels))

    return Dataset("blocks", "", cases, truth="detections")


def write_pool(folder: Path) -> Path:
    """A cut-out of every class, with a grey rim so that two of a kind do not run together."""
    folder.mkdir(parents=True, exist_ok=True)
    for label in HUES:
        r, g, b = colour(label)
        cutout = np.zeros((60, 66, 4), np.uint8)
        cv2.ellipse(cutout, (33, 30), (32, 29), 0, 0, 360, (GREY, GREY, GREY, 255), -1)
        cv2.ellipse(cutout, (33, 30), (25, 22), 0, 0, 360, (b, g, r, 255), -1)
        cv2.imwrite(str(folder / f"{label.replace(' ', '_')}.png"), cutout)
    return folder


def ran(captioner: Captioner, out: Path, *, pool: Path | None, suite: str = "captions", count: int = 6) -> instar.Run:
    return instar.run(image_system(captioner, "caption"), suite, data(count), out=out, pool=pool, workers=0)
