"""What readers of boxes and outlines share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instar.datasets.dataset import shortened
from instar.datasets.masks import mask_from_polygons
from instar.outputs.detections import Detections
from instar.warp import Size

Floats = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]


@dataclass(slots=True)
class Thing:
    """One annotated object, in pixels."""

    id: str
    label: str
    box: Box
    outline: Floats | None = None
    """x0, y0, x1, y1, … of its corners."""


class Left:
    """Objects left out (or other things annotated), by reason, with the places where they are written."""

    def __init__(self, what: str = "object") -> None:
        self.what = what
        self.reasons: dict[str, list[str]] = {}

    def __call__(self, reason: str, place: str) -> None:
        self.reasons.setdefault(reason, []).append(place)

    def notes(self) -> list[str]:
        return [
            f"{counted(len(places), self.what)} left out, {reason}: {shortened(places)}"
            for reason, places in self.reasons.items()
        ]


def counted(number: int, what: str) -> str:
    """`1 object`, `1,200 objects`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def within(box: Sequence[float], size: tuple[float, float]) -> Box | str:
    """The part of a box that lies in the frame; or why there is none, in words."""
    x0, y0, x1, y1 = box
    if x1 <= x0 or y1 <= y0:
        return "whose box has no area"
    cut = max(x0, 0.0), max(y0, 0.0), min(x1, size[0]), min(y1, size[1])
    return "outside of the picture" if cut[2] <= cut[0] or cut[3] <= cut[1] else cut


def truth_of(things: Iterable[Thing], size: Size | None, *, masks: bool) -> Detections:
    """Masks are drawn where an object has an outline; one without is its box."""
    things = list(things)
    drawn = None
    if masks and size and any(thing.outline is not None for thing in things):
        drawn = np.zeros((len(things), size[1], size[0]), bool)
        for mask, thing in zip(drawn, things, strict=True):
            x0, y0, x1, y1 = thing.box
            mask[:] = mask_from_polygons(
                [[x0, y0, x1, y0, x1, y1, x0, y1] if thing.outline is None else thing.outline], size
            )
    return Detections.from_xyxy(
        [thing.box for thing in things],
        [thing.label for thing in things],
        ids=[thing.id for thing in things],
        masks=drawn,
    )
