"""Mark: where one subject or object of an answer is, whatever the output kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instar.warp import boxes_iou

MOST = 1000
"""Marks of one answer that are compared, each with each."""
TWICE = 0.8
"""Boxes of one class that overlap by more are one object, found twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """One subject or object: its class, its places (K, 2) in pixels (NaN: absent), and how sure the system is.

    `scores` holds every number between 0 and 1 that the system gave for it: its own score, visibilities of landmarks.
    """

    label: str
    places: npt.NDArray[np.float64]
    score: float
    scores: npt.NDArray[np.float32]

    @property
    def box(self) -> list[float]:
        return [*np.nanmin(self.places, axis=0).tolist(), *np.nanmax(self.places, axis=0).tolist()]

    @property
    def spread(self) -> float:
        """How far the places are apart; a box without width or height has none."""
        sides = np.nanmax(self.places, axis=0) - np.nanmin(self.places, axis=0)
        return float(sides.min() if len(self.places) == 2 else sides.max())


def found_twice(marks: Sequence[Mark]) -> int:
    """How many of an answer's marks, each of which has a place, lie on another one of the same class."""
    marks = marks[:MOST]
    if len(marks) < 2:
        return 0
    boxes = np.array([mark.box for mark in marks])
    same = np.array([[one.label == other.label for other in marks] for one in marks])
    near = np.triu((boxes_iou(boxes, boxes) > TWICE) & same, 1)
    for i, j in zip(*np.nonzero(near), strict=True):
        near[i, j] = near[j, i] = _alike(marks[i], marks[j])
    return int(near.any(1).sum())


def often_twice(twice: int, every: int) -> bool:
    """Whether so many are found twice that nothing suppresses them: two cups may well stand in one place."""
    return twice > 2 and twice > 0.25 * every


def _alike(one: Mark, other: Mark) -> bool:
    """Whether two subjects are one: their landmarks, too, are hardly apart."""
    if len(one.places) == 2:
        return True
    apart = np.linalg.norm(one.places - other.places, axis=1)
    return bool(np.isfinite(apart).any() and np.nanmedian(apart) < 0.1 * max(one.spread, 1.0))
