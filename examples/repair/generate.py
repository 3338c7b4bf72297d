"""Images with a shortcut in them: in training, each class nearly always has a background of its own.

    python -m examples.repair.generate --out data --style a

writes the splits `train`, `free`, `val`, `shifted`, `unseen` and `unshifted`, each a folder that COCO's and YOLO's
readers understand. An image shows one or two small shapes, and their form alone is their class: cross, disc,
square, triangle. Colours, sizes and turns are random. Behind them is one of four textures of equal brightness and
colour, which are easier to tell than forms. In `train` and `unshifted` a shape lies on the texture of its class with
probability 0.95. In `val` and `shifted` the same textures lie behind any class, so that the shortcut misleads; in
`unseen` there are textures that no training image has, so that it leads nowhere. `free` is as large as `train` and
as free of the shortcut as `val`: what could be learned without it.

The styles `a` and `b` have the same classes on different textures. The shapes of `a` are even, those of `b` grainy,
so that what an erased object leaves behind looks more like an object there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from instar.image import Image
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.repair import LABELS, Example, export

CLASSES = ("cross", "disc", "square", "triangle")
SIDE = 64
OWN, CHANCE = 0.95, 0.25
SPLITS = {"train": OWN, "free": CHANCE, "val": CHANCE, "shifted": CHANCE, "unseen": CHANCE, "unshifted": OWN}
"""How often a shape lies on the texture of its class."""
FIRST = 50_000
"""Smaller seeds were used up while the images were designed."""
SEEN, UNSEEN = (0, 1, 2, 3), (4, 5, 6, 7)
"""Textures; of those that are seen, number i belongs to class i."""


@dataclass(frozen=True)
class Style:
    sides: tuple[float, float]
    wave: float
    turn: float
    grain: float


STYLES = {"a": Style((20, 30), 5.0, 0.0, 0.0), "b": Style((18, 28), 7.0, np.pi / 4, 40.0)}


def texture(kind: int, style: Style, rng: np.random.Generator) -> np.ndarray:
    """A grey texture about 0, of deviation 1: stripes across, checks, blobs, stripes along; and unseen ones: fine
    blobs, rings, a slope, or none."""
    wave = style.wave * rng.uniform(0.9, 1.1)
    y, x = np.mgrid[:SIDE, :SIDE] + rng.uniform(0, 50, (2, 1, 1))
    turn = style.turn + rng.normal(0, 0.1)
    u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    if kind == 0:
        plane = np.sin(2 * np.pi * u / wave)
    elif kind == 1:
        plane = np.sin(2 * np.pi * u / wave) * np.sin(2 * np.pi * v / wave)
    elif kind == 2:
        plane = cv2.GaussianBlur(rng.normal(size=(SIDE, SIDE)), (0, 0), wave / 2.5)
    elif kind == 3:
        plane = np.sin(2 * np.pi * v / wave)
    elif kind == 4:
        plane = cv2.GaussianBlur(rng.normal(size=(SIDE, SIDE)), (0, 0), 1.0)
    elif kind == 5:
        plane = np.sin(2 * np.pi * np.hypot(u - u.mean(), v - v.mean()) / wave)
    elif kind == 6:
        plane = u
    else:
        return np.zeros((SIDE, SIDE))
    return np.asarray((plane - plane.mean()) / plane.std())


def outline(kind: str, side: float, turn: float) -> np.ndarray:
    """A shape's corners about 0."""
    if kind == "disc":
        around = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        corners = np.stack([np.cos(around), np.sin(around)], 1)
    elif kind == "square":
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * 0.85
    elif kind == "triangle":
        around = np.array([-np.pi / 2, np.pi / 6, 5 * np.pi / 6])
        corners = np.stack([np.cos(around), np.sin(around)], 1) * 1.15
    else:
        arm = 0.36
        # fmt: off
        corners = np.array([[-arm, -1], [arm, -1], [arm, -arm], [1, -arm], [1, arm], [arm, arm], [arm, 1], [-arm, 1],
                            [-arm, arm], [-1, arm], [-1, -arm], [-arm, -arm]])
        # fmt: on
    return np.asarray(corners * side / 2 @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]))


def picture(
    own: float, style: Style, rng: np.random.Generator, grounds: tuple[int, ...] = SEEN
) -> tuple[Image, Detections]:
    """One or two shapes on a texture."""
    place = int(rng.integers(4))
    pixels = 118 + 24 * np.repeat(texture(grounds[place], style, rng)[..., None], 3, 2)
    taken = np.zeros((SIDE, SIDE), bool)
    boxes, labels, masks = [], [], []
    for _ in range(int(rng.integers(1, 3))):
        others = [number for number in range(4) if number != place]
        kind = CLASSES[place if rng.random() < own else int(rng.choice(others))]
        for _ in range(20):  # until it lies clear of the first
            side = rng.uniform(*style.sides)
            middle = rng.uniform(side * 0.65, SIDE - side * 0.65, 2)
            drawn = np.zeros((SIDE * 4, SIDE * 4), np.uint8)
            corners = outline(kind, side, rng.uniform(-0.5, 0.5)) + middle
            cv2.fillPoly(drawn, [np.rint(corners * 4).astype(np.int32)], 255)
            soft = cv2.resize(drawn, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
            room = cv2.dilate(soft, np.ones((9, 9), np.uint8)) > 0
            if not (taken & room).any():
                break
        else:
            continue
        taken |= room
        colour = 118 + rng.choice([-1, 1]) * rng.uniform(45, 80) + rng.uniform(-15, 15, 3)
        filling = colour + style.grain * rng.normal(size=(SIDE, SIDE, 1))
        pixels += (soft / 255)[..., None] * (filling - pixels)
        shape = soft >= 128
        rows, columns = np.nonzero(shape)
        boxes.append([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        labels.append(kind)
        masks.append(shape)
    pixels += rng.normal(0, 8, pixels.shape)
    return (
        Image(np.clip(np.rint(pixels), 0, 255).astype(np.uint8)),
        Detections.from_xyxy(boxes, labels, ids=[str(n) for n in range(len(boxes))], masks=masks),
    )


def split(name: str, style: Style, count: int, seed: int) -> Iterator[Example]:
    for number in range(count):
        image, truth = picture(
            SPLITS[name], style, np.random.default_rng([seed, number]), UNSEEN if name == "unseen" else SEEN
        )
        yield Example(f"{number:05d}.png", truth, image)


def generate(out: Path, style: str, counts: Mapping[str, int], seed: int = 0) -> dict[str, Path]:
    """The splits as COCO files, by name; what is there already is left alone."""
    files = {}
    for place, name in enumerate(SPLITS):
        if not (out / name).exists():
            number = FIRST + (seed * len(STYLES) + list(STYLES).index(style)) * len(SPLITS) + place
            export(out / name, split(name, STYLES[style], counts[name], number))
        files[name] = out / name / LABELS
    return files


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--style", choices=sorted(STYLES), default="a")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--images", type=int, default=600, help="in each split")
    arguments = parser.parse_args()
    counts = dict.fromkeys(SPLITS, arguments.images)
    for name, path in generate(arguments.out, arguments.style, counts, arguments.seed).items():
        print(name, path)
