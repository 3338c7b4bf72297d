"""What readers of boxes and outlines share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instar.datasets.dataset import counted, shortened
from instar.datasets.masks import Mask, Runs, mask_from_polygons, mask_from_runs
from instar.outputs.detections import Detections
from instar.outputs.limits import LIMITS
from instar.warp import Size

Box = tuple[float, float, float, float]


@dataclass(slots=True)
class Thing:
    """One annotated object, in pixels; no larger than needed: a file of COCO has close to a million."""

    id: str
    label: str
    box: Box
    shape: Sequence[npt.ArrayLike] | Runs | None = None
    """Polygons, each x0, y0, x1, y1, … of its corners; or the runs of a mask."""

    def mask(self, size: Size) -> Mask:
        """Its pixels; without a shape its box is the best that is known."""
        if isinstance(self.shape, np.ndarray):
            return mask_from_runs(self.shape, size)
        x0, y0, x1, y1 = self.box
        return mask_from_polygons([[x0, y0, x1, y0, x1, y1, x0, y1]] if self.shape is None else self.shape, size)


class Left:
    """Objects left out (or other things annotated), by reason, with the places where they are written."""

    def __init__(self, what: str = "object") -> None:
        self.what = what
        self.reasons: dict[str, list[object]] = {}

    def __call__(self, reason: str, place: object) -> None:
        self.reasons.setdefault(reason, []).append(place)

    def notes(self) -> list[str]:
        return [
            f"{counted(len(places), self.what)} left out, {reason}: {shortened(places)}"
            for reason, places in self.reasons.items()
        ]


def within(box: Sequence[float], size: tuple[float, float]) -> Box | str:
    """The part of a box that lies in the frame; or why there is none, in words."""
    x0, y0, x1, y1 = box
    if x1 <= x0 or y1 <= y0:
        return "whose box has no area"
    cut = max(x0, 0.0), max(y0, 0.0), min(x1, size[0]), min(y1, size[1])
    return "outside of the picture" if cut[2] <= cut[0] or cut[3] <= cut[1] else cut


def truth_of(things: Iterable[Thing], size: Size | None, *, masks: bool) -> Detections:
    """Masks are drawn where an object has a shape; one without is its box. Masks that are more than an answer may hold
    are not drawn: thousands of objects in a large image."""
    things = list(things)
    drawn = None
    few = size is not None and len(things) * size[0] * size[1] <= LIMITS["pixels in all masks"]
    if masks and size and few and any(thing.shape is not None for thing in things):
        drawn = np.zeros((len(things), size[1], size[0]), bool)
        for mask, thing in zip(drawn, things, strict=True):
            mask[:] = thing.mask(size)
    return Detections.from_xyxy(
        [thing.box for thing in things],
        [thing.label for thing in things],
        ids=[thing.id for thing in things],
        masks=drawn,
    )
