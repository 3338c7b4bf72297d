"""bowls: painted bowls of fruit, with the true numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import cv2
import numpy as np

from instar import Case, Dataset, DatasetFamily, Image, Parameter
from instar_fruit.output import Count

__all__ = ["BOWLS", "COLOURS"]

COLOURS = {"apple": (200, 40, 40), "lime": (60, 170, 60), "plum": (90, 50, 140)}
PLACES = [(x, y) for y in (60, 110, 160) for x in (60, 120, 180, 240)]


def _bowl(number: int) -> Case:
    rng = np.random.default_rng(number)
    pixels = np.full((220, 300, 3), (235, 225, 205), np.uint8)
    numbers = dict.fromkeys(COLOURS, 0)
    for place in rng.permutation(len(PLACES))[: int(rng.integers(3, 9))]:
        sort = list(COLOURS)[int(rng.integers(len(COLOURS)))]
        numbers[sort] += 1
        cv2.circle(pixels, PLACES[int(place)], 18, COLOURS[sort], -1)
    return Case(f"bowl-{number}", input=Image(pixels), truth=Count(numbers))


def _cases(count: int) -> Iterator[Case]:
    return map(_bowl, range(count))


def _open(name: str, *, count: int) -> Dataset:
    return Dataset(name, "", partial(_cases, count), truth=Count.kind)


BOWLS = DatasetFamily("bowls", _open, (Parameter("count", "int", 12, low=1, high=10_000),), "painted bowls of fruit")
