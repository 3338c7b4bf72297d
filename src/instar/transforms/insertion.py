"""Insertion: a cut-out object of a pool is pasted into the picture, over so much of what is there and no more.

How large it is and where it goes are decided for all intervals of overlap together, so that the levels of one draw
show the same object at the same size, moved away from the largest object along one ray.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.pool import Item, Pool, plain_label
from instar.spelling import Parameter, nearest
from instar.transforms.change import Change, Fact
from instar.transforms.family import Needs, NotApplicable, TransformationFamily
from instar.transforms.words import digits, percentage
from instar.warp import Size, Warp

Floats = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]
Span = tuple[float, float]
Shares = tuple[Floats, Floats]

TRIES = 512
"""Random positions looked at together: for the last interval, each with a size of its own, and off the ray."""
ROUNDS = 6
"""How often so many are tried for the last interval: about the 3,000 tries of the original."""
STARTS = 32
"""Of the positions found for the last interval, how many are tried."""
RAYS = 16
"""Of these, how many are tried with the ray alone, before intervals are searched for off it."""
ITEMS = 8
"""How many items are tried before nothing fits."""
_MOST_STEPS = 4096
SAME = "same"
"""The label that stands for the classes in the image: one more of a kind that is there."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the object goes for one interval, in whole pixels; the share of the largest object that it then covers;
    and whether that place lies on the ray."""

    box: tuple[int, int, int, int]
    overlap: float
    ray: bool


def spans_of(most: float, levels: int) -> tuple[Span, ...]:
    """The intervals of overlap, each without its lower end and with its upper one; the first is 0 alone.

    >>> spans_of(0.45, 4)
    ((-1.0, 0.0), (0.0, 0.15), (0.15, 0.3), (0.3, 0.45))
    """
    ends = [round(most * level / (levels - 1), 9) for level in range(levels)]
    return tuple(zip([-1.0, *ends], ends, strict=False))


def _level(overlap: float, most: float, levels: int, **_: object) -> int:
    ends = [high for _, high in spans_of(most, levels)]
    level = int(np.argmin([abs(overlap - end) for end in ends]))
    if abs(overlap - ends[level]) > 1e-6:
        raise ValueError(
            f"transformation insert: overlap={overlap:g} is not allowed; with most={most:g} and "
            f"levels={levels} it takes one of {', '.join(f'{end:g}' for end in ends)}"
        )
    return level


def insert(
    image: Image, needs: Needs, rng: np.random.Generator, *, overlap: float, label: str, most: float, levels: int
) -> tuple[Image, Change]:
    level = _level(overlap, most, levels)
    pool: Pool = needs["pool"]
    objects = needs["objects"]
    boxes = np.asarray(objects.boxes, np.float64)
    there = tuple(sorted({plain_label(each) for each in objects.labels})) if label == SAME else (label,)
    drawn = _drawn(boxes.tobytes(), image.size, pool, there, most, levels, int(rng.integers(2**62)))
    if isinstance(drawn, str):
        raise NotApplicable(drawn)
    item, placements = drawn
    placement, (low, high) = placements[level], spans_of(most, levels)[level]
    x0, y0, x1, y1 = placement.box
    facts: dict[str, Fact] = {
        "item": item.name,
        "overlap": placement.overlap,
        "low": max(low, 0.0),
        "high": high,
        "ray": placement.ray,
        "scale": (x1 - x0) / item.size[0],
        "share": (x1 - x0) * (y1 - y0) / (image.size[0] * image.size[1]),
    }
    if item.licence:
        facts["licence"] = item.licence
    return Image(paste(image.pixels, item.pixels, placement.box)), Change(
        Warp.identity(image.size),
        regions=((float(x0), float(y0), float(x1), float(y1)),),
        added=(item.label,),
        facts=facts,
    )


@lru_cache(maxsize=256)
def _drawn(
    boxes: bytes, frame: Size, pool: Pool, labels: tuple[str, ...], most: float, levels: int, seed: int
) -> tuple[Item, tuple[Placement, ...]] | str:
    """What `place` finds, or why it finds nothing: one search serves all levels of a draw."""
    items = [item for label in labels for item in pool.of(label)]
    if not items and len(labels) == 1:
        return f"the pool has no {labels[0]!r}{nearest(labels[0], pool.labels)}"
    if not items:
        return f"the pool has nothing of the classes in this image ({', '.join(labels) or 'there are none'})"
    try:
        return place(
            np.frombuffer(boxes).reshape(-1, 4), frame, items, np.random.default_rng(seed), spans_of(most, levels)
        )
    except NotApplicable as reason:
        return str(reason)


# --- where -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """The picture's objects as far as they are in the frame, the largest first."""

    boxes: Floats
    areas: Floats
    frame: Size

    @classmethod
    def of(cls, boxes: Floats, frame: Size) -> _Ground:
        boxes = np.clip(boxes.reshape(-1, 4), 0, [*frame, *frame])
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
        order = [number for number in np.argsort(-areas, kind="stable") if areas[number] > 0]
        if not order:
            raise NotApplicable("no objects in this image, and they say how large an inserted one is")
        return cls(boxes[order], areas[order], frame)

    def covered(self, x: Floats, y: Floats, width: Floats | float, height: Floats | float) -> Shares:
        """How much boxes at such places cover of the largest object, and of the object that they cover most of."""
        x0, y0, x1, y1 = self.boxes.T[:, :, None]
        across = np.minimum(x + width, x1) - np.maximum(x, x0)
        down = np.minimum(y + height, y1) - np.maximum(y, y0)
        shares = np.maximum(across, 0) * np.maximum(down, 0) / self.areas[:, None]
        return shares[0], shares.max(0)

    def sizes(self) -> Span:
        """The least and the largest area of an inserted object: near the mean of the objects, or well below it where
        one of them fills the picture."""
        whole = self.frame[0] * self.frame[1]
        weights = np.exp(self.areas / whole)
        usual = float((weights * self.areas).sum() / weights.sum())
        low, high = (0.8, 1.3) if self.areas[0] / whole < 0.4 else (0.1, 0.37)
        return low * usual, high * usual


def _meets(shares: Shares, span: Span) -> npt.NDArray[np.bool_]:
    """The largest object's share is in the interval, and nobody's is above it."""
    return np.asarray((shares[0] > span[0]) & (shares[1] <= span[1]))


def place(
    boxes: npt.ArrayLike, frame: Size, items: Sequence[Item], rng: np.random.Generator, spans: Sequence[Span]
) -> tuple[Item, tuple[Placement, ...]]:
    """An item and its placement for every interval, all of one size, among the objects' boxes (N, 4).

    Raises NotApplicable where nothing fits.

    A random size and position for the last interval come first; then positions on the ray from the centre of the
    largest object through it, as far as the frame goes. Where every ray misses an interval, it is searched for off the
    ray; failing that another item is tried.
    """
    ground = _Ground.of(np.asarray(boxes, np.float64), frame)
    largest = ground.sizes()[1] / ground.areas[0]
    if largest <= spans[-1][0]:
        raise NotApplicable(
            f"an object of the size of those in this image covers no more than {100 * spans[-1][0]:.0f} % of "
            "the largest one; a lower most= asks for less"
        )
    failed = len(spans) - 1
    for number in rng.permutation(len(items))[:ITEMS]:
        item, too_wide = items[number], math.inf
        starts = _starts(ground, item.size, rng, spans[-1])
        for size, start in starts[:RAYS]:
            placements, _ = _placed(ground, size, start, rng, spans, stray=False)
            if placements:
                return item, placements
        for size, start in starts:
            if size[0] >= too_wide:
                continue
            placements, failed = _placed(ground, size, start, rng, spans, stray=True)
            if placements:
                return item, placements
            if failed == 0:
                too_wide = size[0]  # where there is no free place for it, there is none for a larger one
    tried = f"{min(len(items), ITEMS)} object{'s' * (len(items) > 1)} of the pool"
    low, high = spans[failed]
    share = "no object" if failed == 0 else f"{100 * max(low, 0):.0f} to {100 * high:.0f} % of the largest object"
    raise NotApplicable(
        f"nothing fits: {tried} tried, and no place found that covers {share}"
        + (", and no more of any other" if failed else "")
    )


def _starts(ground: _Ground, item: Size, rng: np.random.Generator, span: Span) -> list[tuple[Size, tuple[int, int]]]:
    """Random sizes and positions for the last interval."""
    middle = (ground.boxes[0, :2] + ground.boxes[0, 2:]) / 2
    for _ in range(ROUNDS):
        scale = np.sqrt(rng.uniform(*ground.sizes(), TRIES) / (item[0] * item[1]))
        width, height = (np.maximum(np.rint(side * scale), 1) for side in item)
        x, y = _positions(ground, width, height, rng, touching=True)
        centred = (x + width / 2 == middle[0]) & (y + height / 2 == middle[1])  # no ray leads anywhere
        good = (
            (width <= ground.frame[0])
            & (height <= ground.frame[1])
            & ~centred
            & _meets(ground.covered(x, y, width, height), span)
        )
        if good.any():
            return [((int(width[i]), int(height[i])), (int(x[i]), int(y[i]))) for i in np.flatnonzero(good)[:STARTS]]
    return []


def _positions(
    ground: _Ground, width: Floats | float, height: Floats | float, rng: np.random.Generator, *, touching: bool
) -> tuple[Floats, Floats]:
    """Random whole-pixel positions in the frame; where the largest object is to be touched, only those that do."""
    chosen, places = rng.random((2, TRIES)), []
    for axis, side in enumerate((width, height)):
        low, high = np.zeros(TRIES), np.broadcast_to(ground.frame[axis] - np.asarray(side, np.float64), TRIES)
        if touching:
            low = np.maximum(low, np.floor(ground.boxes[0, axis]) + 1 - side)
            high = np.minimum(high, np.ceil(ground.boxes[0, axis + 2]) - 1)
        places.append(low + np.floor(chosen[axis] * (high - low + 1)))
    return places[0], places[1]


def _placed(
    ground: _Ground, size: Size, start: tuple[int, int], rng: np.random.Generator, spans: Sequence[Span], *, stray: bool
) -> tuple[tuple[Placement, ...], int]:
    """Placements for all intervals, on the ray or, where that misses one, off it; else none, and which has none."""
    on_ray = _ray(ground, size, start)
    seen = ground.covered(*on_ray, *size)
    placements: list[Placement] = []
    for level, span in enumerate(spans[:-1]):
        places, shares, ray = on_ray, seen, True
        good = np.flatnonzero(_meets(shares, span))
        if not len(good) and stray:
            places, ray = _positions(ground, *size, rng, touching=level > 0), False
            shares = ground.covered(*places, *size)
            good = np.flatnonzero(_meets(shares, span))
        if not len(good):
            return (), level
        one = good[rng.integers(len(good))]
        placements.append(_placement(places[0][one], places[1][one], size, shares[0][one], ray))
    last, _ = ground.covered(np.array([start[0]], np.float64), np.array([start[1]], np.float64), *size)
    return (*placements, _placement(*start, size, last[0], True)), -1


def _placement(x: float, y: float, size: Size, share: float, ray: bool) -> Placement:
    return Placement((int(x), int(y), int(x) + size[0], int(y) + size[1]), float(share), ray)


def _ray(ground: _Ground, size: Size, start: tuple[int, int]) -> tuple[Floats, Floats]:
    """The whole-pixel positions whose centres lie nearest to the ray from the largest object's centre through the
    start's, from where the box is in the frame to where it leaves it."""
    x0, y0, x1, y1 = ground.boxes[0]
    middle = np.array([x0 + x1, y0 + y1]) / 2
    half, frame = np.array(size) / 2, np.array(ground.frame, np.float64)
    way = np.array(start) + half - middle
    moving = way != 0
    ends = np.stack([half - middle, frame - half - middle])[:, moving] / way[moving]
    first, last = max(0.0, float(ends.min(0).max())), float(ends.max(0).min())
    steps = min(_MOST_STEPS, math.ceil((last - first) * np.abs(way).max()) + 1)
    centres = middle[:, None] + np.linspace(first, last, steps) * way[:, None]
    x, y = np.clip(np.rint(centres - half[:, None]), 0, (frame - np.array(size))[:, None])
    return x, y


# --- how -------------------------------------------------------------------------------------------


def paste(pixels: Pixels, item: Pixels, box: tuple[int, int, int, int]) -> Pixels:
    """The picture with an object (RGBA, straight alpha) resized into a box; its edge is about a pixel soft."""
    x0, y0, x1, y1 = box
    size = (x1 - x0, y1 - y0)
    # Alpha is multiplied in first: else the colour of transparent pixels would bleed into the edge.
    ready = cv2.cvtColor(item, cv2.COLOR_RGBA2mRGBA)
    smaller = size[0] <= item.shape[1]
    ready = cv2.resize(ready, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_LINEAR)
    ready = cv2.GaussianBlur(ready, (3, 3), 0.5, borderType=cv2.BORDER_CONSTANT)
    out = pixels.copy()
    through = cv2.cvtColor(cv2.bitwise_not(cv2.extractChannel(ready, 3)), cv2.COLOR_GRAY2RGB)
    kept = cv2.multiply(out[y0:y1, x0:x1], through, scale=1 / 255)
    out[y0:y1, x0:x1] = cv2.add(kept, cv2.cvtColor(ready, cv2.COLOR_RGBA2RGB))
    return out


def _insert_words(overlap: float, label: str, most: float, levels: int) -> str:
    names = {"any": "an object", SAME: "an object of a class that is there"}
    low, high = spans_of(most, levels)[_level(overlap, most, levels)]
    place = f"over {digits(100 * low)} to {percentage(high)} of the largest object" if low >= 0 else "beside the others"
    return f"{names.get(label, f'an object of class {label}')} pasted in {place}"


# fmt: off
FAMILIES = (
    TransformationFamily("insert", "insertion", "general", insert, (
        Parameter("overlap", "float", low=0, high=1, ordered=True, shared=True,
                  help="upper end of the interval in which the share of the largest object lies that is covered"),
        Parameter("label", "text", "any", help="only objects of this class; same: of a class that is in the image"),
        Parameter("most", "float", 0.45, low=0, open_low=True, high=1, help="upper end of the last interval"),
        Parameter("levels", "int", 4, low=2, high=100, help="how many intervals; the first is 0 alone"),
    ),
        help="An object of a pool pasted in, about as large as those in the image, over so much of the largest of "
        "them and no more of any other. Levels of one draw move the same object along one ray.",
        needs=("objects", "pool"), random=True, check=_level,
        words=_insert_words),
)
# fmt: on
