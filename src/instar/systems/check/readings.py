"""What coordinates may mean, besides what they should: each reading is tried, and the one that fits is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from instar.outputs.marks import Mark
from instar.systems.check.examination import Examination, Floats, Skip, distances, percent, swapped_sides
from instar.warp import Size, Warp

PROBES = ("mirror(h)", "stretch(1, 0.6)", "pad(0.3, top_bottom)", "pad(0.3, left_right)")
"""Everything stays in the image, and what goes wrong on the way into a model and back goes wrong differently."""
ASTRAY = 0.03
"""A share of the image's size: answers that are off by less follow the image."""
BETTER = 0.35
"""Another reading is believed where it leaves at most this share of the error."""
FEWEST = 3
"""Pairs of images that must have been compared."""


@dataclass(frozen=True)
class Reading:
    """What places (K, 2) of an image of some size may be, how they are read then, and what to change."""

    words: str
    read: Callable[[Floats, Size], Floats]
    advice: str
    boxes: bool = False


def _margins(size: Size, side: int) -> Floats:
    return np.array([side - size[0], side - size[1]]) / 2


def _shares(size: Size, side: int) -> Floats:
    return np.array(size) / side


# fmt: off
ORDERS = (
    Reading("(y, x)", lambda at, size: at[:, ::-1], "Exchange the two"),
    Reading(
        "x multiplied by the height and y by the width", lambda at, size: at * size / np.array(size[::-1]),
        "Exchange the two factors: image.shape is (height, width, 3)",
    ),
    Reading(
        "x, y, width and height", lambda at, size: np.stack([at[0], at[0] + at[1]]),
        "A box is x0, y0, x1, y1: add x to the width and y to the height", boxes=True,
    ),
    Reading(
        "the middle of the box, its width and its height",
        lambda at, size: np.stack([at[0] - at[1] / 2, at[0] + at[1] / 2]),
        "A box is x0, y0, x1, y1: take half of the width and height off the middle, and add it", boxes=True,
    ),
    Reading(
        "boxes that begin in the middle of what they show", lambda at, size: at - (at[1] - at[0]) / 2,
        "The model's x and y are the middle of the box: x0 is x − width / 2 and x1 is x + width / 2, y likewise",
        boxes=True,
    ),
    Reading(
        "boxes whose middle is the upper left corner of what they show", lambda at, size: at + (at[1] - at[0]) / 2,
        "The model's x and y are the upper left corner: x0 is x and x1 is x + width, y likewise", boxes=True,
    ),
)
"""The order of the numbers."""
FRAMES = (
    Reading(
        "places in an image with margins (letterbox)", lambda at, size: at - _margins(size, max(size)),
        "Take the margins off before you scale back",
    ),
    Reading(
        "shares of a square in whose middle the image lies (letterbox)",
        lambda at, size: at / _shares(size, max(size)) - _margins(size, max(size)),
        "Multiply x and y by the longer side, and take the margins off",
    ),
    Reading(
        "shares of a square in whose corner the image lies (letterbox)",
        lambda at, size: at / _shares(size, max(size)),
        "Multiply x and y by the longer side, not by width and height",
    ),
    Reading(
        "margins that were never there (letterbox)",
        lambda at, size: (at + _margins(size, max(size))) * _shares(size, max(size)),
        "The image is stretched over the model's frame: multiply x by width and y by height, and take nothing off",
    ),
    Reading(
        "shares of the longer side", lambda at, size: at * _shares(size, max(size)),
        "The image is stretched over the model's frame: multiply x by the width and y by the height",
    ),
    Reading(
        "places in a square cut out of the middle", lambda at, size: at - _margins(size, min(size)),
        "Add what was cut off at the left and at the top",
    ),
    Reading(
        "shares of a square cut out of the middle",
        lambda at, size: at / _shares(size, min(size)) - _margins(size, min(size)),
        "Multiply x and y by the shorter side, and add what was cut off at the left and at the top",
    ),
)
"""The frame in which the numbers are counted."""
# fmt: on
AS_IS = Reading("pixels", lambda at, size: at, "")


def errors(examined: Examination, reading: Reading) -> dict[str, list[float]]:
    """How far answers to changed images are from where they should be, by probe, in shares of the image's size.

    Boxes that end at the frame are left out: more of an object may show where there is more room.
    Which side is left is another question: of both the better one counts.
    """
    shares: dict[str, list[float]] = {}
    for probe in PROBES:
        shares[probe] = []
        for before, after, warp in examined.followed(probe):
            sources, actual = examined.sure_marks(before), _read(examined.sure_marks(after), reading, warp.target)
            clear = [mark for mark in _read(sources, reading, warp.source) if not _cut(mark, warp.source)]
            ways = [_carried(clear, warp)]
            swap = swapped_sides(before)
            if swap is not None and warp.mirrors:
                ways.append([Mark(m.label, m.places[swap], m.score, m.scores) for m in ways[0]])
            off = [far for way in ways if len(far := distances(way, actual))]
            if off:
                shares[probe].append(min(float(np.median(far)) for far in off) / max(warp.target))
    return shares


def _read(marks: Sequence[Mark], reading: Reading, size: Size) -> list[Mark]:
    return [Mark(mark.label, reading.read(mark.places, size), mark.score, mark.scores) for mark in marks]


def _cut(mark: Mark, size: Size) -> bool:
    """Whether a box ends at the frame: whoever cuts boxes there shows more of the object where there is more room."""
    if len(mark.places) != 2:
        return False
    low, high = mark.places.min(0), mark.places.max(0)
    return bool((np.abs(low) < 1.5).any() or (np.abs(high - size) < 1.5).any())


def _carried(marks: Sequence[Mark], warp: Warp) -> list[Mark]:
    """Through a warp; the corners of a box stay its upper left and lower right."""
    moved = []
    for mark in marks:
        places = warp.points(mark.places)
        if len(places) == 2:
            places = np.stack([places.min(0), places.max(0)])
        moved.append(Mark(mark.label, places, mark.score, mark.scores))
    return moved


def fitting(examined: Examination, readings: Sequence[Reading]) -> tuple[float, list[tuple[Reading, float]]]:
    """How far answers are astray as they are, and the readings under which they are not, the best ones first."""
    own = errors(examined, AS_IS)
    every = np.array([error for some in own.values() for error in some])
    if len(every) < FEWEST:
        after = sum(bool(after.marks()) for probe in PROBES for _, after, _ in examined.followed(probe))
        if after < FEWEST:
            raise Skip(f"{'too little' if after else 'nothing'} was found in the changed images")
        raise Skip("what was found ends at the frame, or is not found again in the changed images")
    worst = max(float(np.median(some)) for some in own.values() if some)
    if worst < ASTRAY:
        return worst, []
    boxes = examined.boxes
    better = []
    for reading in readings:
        if reading.boxes and not boxes:
            continue
        other = errors(examined, reading)
        matched = [(a, b) for probe in PROBES for a, b in zip(own[probe], other[probe], strict=False)]
        left = max((float(np.median(some)) for some in other.values() if some), default=np.inf)
        agreed = np.mean([b <= a + 0.005 for a, b in matched]) if matched else 0.0
        if len(matched) >= FEWEST and left < BETTER * worst and agreed >= 0.8:
            better.append((reading, left))
    better.sort(key=lambda pair: pair[1])
    return worst, [(reading, left) for reading, left in better if left <= better[0][1] + 0.004]


def explained(what: str, worst: float, fits: Sequence[tuple[Reading, float]]) -> str:
    """The readings that fit in words, with what to change."""
    names = ", or ".join(reading.words for reading, _ in fits)
    advice = ". Or: ".join(reading.advice for reading, _ in fits)
    return (
        f"{what} look like {names}: in changed images they are up to {percent(worst)} of its size from where they "
        f"should be, read so only {percent(fits[0][1], 1)}. {advice}"
    )
