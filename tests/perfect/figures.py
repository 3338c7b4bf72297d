"""A person of seventeen landmarks between three coloured rectangles: exact under every affine map, quick to answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import instar
from instar import Poses
from instar.skeleton import skeleton
from tests.toys import _masks, write_scenes

Answer = Callable[[np.ndarray], Poses]

NAMES = skeleton("coco-17").landmarks
PLACE = {name: number for number, name in enumerate(NAMES)}
RULES = ("identity", "mirror(h)", "gamma(0.4)", "greyscale", "rotation(3)")


def _weights() -> np.ndarray:
    """Each landmark as a mixture of the rectangles at the left, in the middle and at the right of the person."""
    weights = np.zeros((17, 3))
    for number, name in enumerate(NAMES):
        side, _, joint = name.rpartition("_")
        depth = ("nose", "eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle").index(joint)
        one = (0.9 - 0.07 * depth, 0.2 + 0.05 * depth)
        here, middle = one if side else (0.15, 0.7)
        mixed = (here, middle, 1 - here - middle)
        weights[number] = mixed[::-1] if side == "left" else mixed
    return weights


WEIGHTS = _weights()


def centres(pixels: np.ndarray) -> np.ndarray | None:
    """The middles of the rectangles from left to right, exact under flips; None where one is missing."""
    places = [np.nonzero(mask) for _, mask in _masks(pixels)]
    if any(not len(rows) for rows, _ in places):
        return None
    return np.array(sorted((columns.mean() + 0.5, rows.mean() + 0.5) for rows, columns in places))


def is_mirrored(pixels: np.ndarray) -> bool:
    """Red is at the left and blue at the right of every scene."""
    places = [np.nonzero(mask)[1] for _, mask in _masks(pixels)]
    return all(map(len, places)) and bool(places[0].mean() > places[2].mean())


def points_of(pixels: np.ndarray) -> np.ndarray:
    middles = centres(pixels)
    return np.full((17, 2), np.nan) if middles is None else WEIGHTS @ middles


def pose(points: np.ndarray) -> Poses:
    return Poses.from_array([] if np.isnan(points).all() else points[None], skeleton="coco-17")


def perfect(pixels: np.ndarray) -> Poses:
    return pose(points_of(pixels))


def run_of(system: object, out: Path, *, cases: int = 24, rules: tuple[str, ...] = RULES) -> instar.Run:
    suite = instar.Suite("figures", tuple(map(instar.rule, rules)))
    images = write_scenes(out / "images", cases)
    return instar.run(system, suite, images, out=out / "run", workers=0, zones="none")  # type: ignore[arg-type]
