"""Regions: any photometric transformation inside a zone, and which pixels belong to an object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.zones import Zones, segmenter_words
from instar.spelling import Parameter, Scale
from instar.transforms.change import Change, Fact
from instar.transforms.family import Needs, NotApplicable, Transformation, TransformationFamily
from instar.transforms.words import ordinal, percentage
from instar.warp import Size, Warp

Mask = npt.NDArray[np.uint8]
By = Literal["box", "mask"]


AROUND = frozenset({"background"})
"""Zones that are what the subject is not: one that holds the subject is wrong."""


def zones_around(transformation: Transformation) -> frozenset[str]:
    """Which zones a transformation changes of those that should not hold the subject.

    >>> from instar.transforms import transformation
    >>> sorted(zones_around(transformation("filtered(greyscale, background) | mirror(h)")))
    ['background']
    """
    return AROUND & {step.values.get("zone") for step in transformation.steps}


def filtered(
    image: Image, needs: Needs, rng: np.random.Generator, *, inner: Transformation, zone: str
) -> tuple[Image, Change]:
    zones: Zones = needs["zones"]
    if zone not in zones.names:
        hint = f"; where no segmenter has it, {segmenter_words()}" if zone in ("skin", "hair", "clothes") else ""
        raise NotApplicable(f"the zones of this case have no {zone!r}, only {', '.join(zones.names)}{hint}")
    mask, share, cells = _zone(zones, zone)
    if share == 0:
        raise NotApplicable(f"no {zone} in this image")
    place = cells.slices if inner.pointwise and not image.deferred else None
    part, shape = (image, mask) if place is None else (image.part(place), mask[place])
    changed, _ = inner(part, seed=int(rng.integers(2**62)) if inner.random else 0)
    return image.covered(changed, shape, place), Change(
        Warp.identity(image.size), regions=(cells.box,), facts={"zone": zone, "share": round(share, 6)}
    )


@lru_cache(maxsize=4)
def _zone(zones: Zones, zone: str) -> tuple[Mask, float, Cells]:
    """Where a zone is, how much of the image it takes and which pixels enclose it: the same for many rules in a row."""
    mask = zones.mask(zone)
    x, y, width, height = cv2.boundingRect(mask)
    return mask, cv2.countNonZero(mask) / mask.size, Cells(x, y, x + width, y + height)


# --- objects ---------------------------------------------------------------------------------------

# fmt: off
RATIO = Parameter("ratio", "float", low=0, open_low=True, high=1, ordered=True, shared=True,
    help="area of the centred part, as a share of the object's", scale=Scale(0, above=1, beside=1))
# fmt: on
BY = Parameter("by", "choice", "box", choices=("box", "mask"), help="what an object covers: its box, or its mask")

# fmt: off
ONLY = Parameter("only", "int", -1, low=-1, high=9999,
    help="the number of one object, from 0, in the order of the annotation; -1 is all of them at once")
# fmt: on


def part_words(ratio: float, only: int) -> str:
    """Which part of which objects is changed.

    >>> part_words(0.1, -1), part_words(1, 0)
    ('the middle 10 % of every object', 'the 1st object')
    """
    objects = "every object" if only < 0 else f"the {ordinal(only + 1)} object"
    return objects if ratio == 1 else f"the middle {percentage(ratio)} of {objects}"


@dataclass(frozen=True, slots=True)
class Cells:
    """Whole pixels: columns x0 to x1 and rows y0 to y1, ends excluded."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def empty(self) -> bool:
        return self.x0 >= self.x1 or self.y0 >= self.y1

    @property
    def box(self) -> tuple[float, float, float, float]:
        return float(self.x0), float(self.y0), float(self.x1), float(self.y1)

    @property
    def slices(self) -> tuple[slice, slice]:
        return slice(self.y0, self.y1), slice(self.x0, self.x1)

    def within(self, outer: Cells) -> Cells:
        """The same pixels, counted from the corner of `outer`."""
        return Cells(self.x0 - outer.x0, self.y0 - outer.y0, self.x1 - outer.x0, self.y1 - outer.y0)


def cells_inside(box: npt.ArrayLike, size: Size) -> Cells:
    """The pixels of the frame whose centres lie in a box (x0, y0, x1, y1)."""
    sides = np.asarray(box, np.float64)
    x0, y0, x1, y1 = (min(max(math.ceil(side - 0.5), 0), end) for side, end in zip(sides, size * 2, strict=True))
    return Cells(x0, y0, x1, y1)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectParts:
    """The centred parts of all objects of a picture.

    `field` encloses the whole objects whatever the ratio: random numbers are drawn for all of it, so that
    every level puts the same ones into the same pixels. `mask` is 255 on the parts, counted from its corner.
    """

    field: Cells
    mask: Mask
    boxes: tuple[tuple[float, float, float, float], ...]
    ids: tuple[str, ...]

    facts: Mapping[str, Fact]
    """Which object alone it is about, where it is one."""


def object_parts(objects: Detections, size: Size, ratio: float, by: By, only: int) -> ObjectParts:
    """The part of every object, or of one, about its box's centre whose area is `ratio` of it.

    Objects out of sight are left out, and those of which the part holds no pixel.
    """
    masks = _masks(objects, size) if by == "mask" else None
    if only >= len(objects):
        raise NotApplicable(f"there is no {ordinal(only + 1)} object in this image: it has {len(objects)}")
    wholes = [
        (number, whole)
        for number, box in enumerate(objects.boxes)
        if only in (-1, number) and not (whole := cells_inside(box, size)).empty
    ]
    if not wholes:
        raise NotApplicable(
            "no objects in this image" if only < 0 else f"the {ordinal(only + 1)} object is out of sight"
        )
    corners = np.array([astuple(whole) for _, whole in wholes])
    field = Cells(*corners[:, :2].min(0).tolist(), *corners[:, 2:].max(0).tolist())
    mask = np.zeros((field.y1 - field.y0, field.x1 - field.x0), np.uint8)
    boxes, ids = [], []
    for number, whole in wholes:
        x0, y0, x1, y1 = objects.boxes[number].astype(np.float64)
        if masks is None:
            rest = (1 - math.sqrt(ratio)) / 2
            inset_x, inset_y = (x1 - x0) * rest, (y1 - y0) * rest
            part = cells_inside((x0 + inset_x, y0 + inset_y, x1 - inset_x, y1 - inset_y), size)
            if part.empty:
                continue
            mask[part.within(field).slices] = 255
        else:
            shape = masks[number][whole.slices]
            core = _core(shape, whole, (x0, y0, x1, y1), ratio)
            if core.empty:
                continue
            shape = shape[core.slices].view(np.uint8)
            place = mask[whole.within(field).slices][core.slices]
            place |= shape * np.uint8(255)
            left, top, width, height = cv2.boundingRect(shape)
            left, top = whole.x0 + core.x0 + left, whole.y0 + core.y0 + top
            part = Cells(left, top, left + width, top + height)
        boxes.append(part.box)
        ids.append(objects.ids[number] if objects.ids else str(number))
    if not boxes:
        raise NotApplicable(f"no object has a pixel in its centred part of {ratio:g}")
    return ObjectParts(field, mask, tuple(boxes), tuple(ids), {} if only < 0 else {"object": ids[0]})


def background(objects: Detections, size: Size, by: By) -> Mask:
    """255 outside all objects."""
    covered = np.zeros(size[::-1], bool)
    if by == "mask":
        for shape in _masks(objects, size):
            covered |= shape
    else:
        for box in objects.boxes:
            covered[cells_inside(box, size).slices] = True
    if covered.all():
        raise NotApplicable("the objects leave no background")
    return ~covered * np.uint8(255)


def _masks(objects: Detections, size: Size) -> npt.NDArray[np.bool_]:
    if objects.masks is None:
        raise NotApplicable("the objects of this case have no masks; by=box takes their boxes")
    height, width = objects.masks.shape[1:]
    if len(objects) and (width, height) != size:
        raise NotApplicable(
            f"the objects' masks are {width}×{height}, the image is {size[0]}×{size[1]}; by=box takes their boxes"
        )
    return objects.masks


def _core(shape: npt.NDArray[np.bool_], cells: Cells, box: tuple[float, float, float, float], ratio: float) -> Cells:
    """Where the share `ratio` of a mask's pixels is that are nearest to the box's centre, measured in boxes."""
    x0, y0, x1, y1 = box
    across = np.abs(np.arange(cells.x0, cells.x1) + 0.5 - (x0 + x1) / 2) / (x1 - x0)
    down = np.abs(np.arange(cells.y0, cells.y1) + 0.5 - (y0 + y1) / 2) / (y1 - y0)
    # the pixels within a distance are a rectangle: sums up to its corners say how many of them belong to the mask
    sums = cv2.integral(shape.view(np.uint8))
    wanted = round(ratio * int(sums[-1, -1]))
    if wanted == 0:
        return Cells(0, 0, 0, 0)
    limits = np.sort(np.concatenate([across, down]))
    (left, right), (top, bottom) = _within(across, limits), _within(down, limits)
    inside = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    at = int(np.searchsorted(inside, wanted))
    return Cells(int(left[at]), int(top[at]), int(right[at]), int(bottom[at]))


def _within(
    far: npt.NDArray[np.float64], limits: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """From where to where distances that fall and then rise are within each limit, ends excluded."""
    middle = int(far.argmin())
    return (
        middle - np.searchsorted(far[:middle][::-1], limits, "right"),
        middle + np.searchsorted(far[middle:], limits, "right"),
    )


# fmt: off
FAMILIES = (
    TransformationFamily("filtered", "region", "general", filtered, (
        Parameter("inner", "transformation", help="any photometric transformation"),
        Parameter("zone", "text", help="skin, hair, clothes, background, or a zone of your segmenter"),
    ),
        help="A photometric transformation, only inside a zone.", needs=("zones",),
        words="{inner}, only in the {zone} zone"),
)
# fmt: on
