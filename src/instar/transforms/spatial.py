"""Spatial transformations: nothing but their warps."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from instar.case import Input
from instar.spelling import Parameter, Scale
from instar.transforms.change import Change
from instar.transforms.family import Needs, TransformationFamily
from instar.transforms.words import digits, percentage
from instar.warp import Size, Warp

Corner = Literal["middle", "top_left", "top_right", "bottom_left", "bottom_right"]


def stretch(size: Size, *, height: float, width: float) -> Warp:
    return Warp.scale(size, width, height)


def rotation(
    source: Input, needs: Needs, rng: np.random.Generator, *, degrees: float, centre: Literal["middle", "swapped"]
) -> tuple[Input, Change]:
    """Not of spatial form, because `swapped` declares another warp than the one it applies."""
    width, height = source.size
    if centre == "middle":
        warp = Warp.rotation(source.size, degrees)
        return source.warped(warp), Change(warp)
    applied = Warp.rotation(source.size, degrees, (height / 2, width / 2))
    to_pixels = np.diag([width, height, 1.0])
    unit = Warp.rotation((1, 1), degrees).matrix
    declared = Warp(to_pixels @ unit @ np.linalg.inv(to_pixels), source.size, source.size)
    return source.warped(applied), Change(declared)


def rescale(size: Size, *, factor: float) -> Warp:
    return Warp.scale(size, factor, factor)


def shift(size: Size, *, x: float, y: float) -> Warp:
    return _moved(size, round(x * size[0]), round(y * size[1]), size)


def crop(size: Size, *, share: float, at: Corner) -> Warp:
    """Whole pixels, so that what stays is copied and not resampled."""
    kept = (max(1, round(share * size[0])), max(1, round(share * size[1])))
    left, top = (whole - part for whole, part in zip(size, kept, strict=True))
    places = {
        "middle": (left // 2, top // 2),
        "top_left": (0, 0),
        "top_right": (left, 0),
        "bottom_left": (0, top),
        "bottom_right": (left, top),
    }
    x, y = places[at]
    return _moved(size, -x, -y, kept)


def pad(size: Size, *, share: float, sides: Literal["all", "left_right", "top_bottom"]) -> Warp:
    x = 0 if sides == "top_bottom" else round(share * size[0])
    y = 0 if sides == "left_right" else round(share * size[1])
    return _moved(size, x, y, (size[0] + 2 * x, size[1] + 2 * y))


def _moved(size: Size, x: int, y: int, target: Size) -> Warp:
    return Warp(np.array([[1.0, 0, x], [0, 1, y], [0, 0, 1]]), size, target)


def _factor(name: str, help: str) -> Parameter:
    return Parameter(
        name, "float", low=0, open_low=True, high=4, ordered=True, help=help, scale=Scale(1, 0.1, 4, "log")
    )


# --- in words ---------------------------------------------------------------------------------------

_MIRRORED = {"h": "left to right", "v": "top to bottom", "both": "left to right and top to bottom"}
_BORDERS = {"all": "on all four sides", "left_right": "left and right", "top_bottom": "above and below"}


def _mirror_words(axis: str) -> str:
    return f"mirrored {_MIRRORED[axis]}"


def _rotate90_words(quarters: int) -> str:
    return f"{_rotation_words(90 * quarters)}, with its frame"


def _pad_words(share: float, sides: str) -> str:
    return f"black border of {percentage(share)} {_BORDERS[sides]}"


def _stretch_words(height: float, width: float) -> str:
    sides = {"height": height, "width": width}
    changed = {name: factor for name, factor in sides.items() if factor != 1} or sides
    return "stretched to " + " and ".join(f"{percentage(factor)} of the {name}" for name, factor in changed.items())


def _rotation_words(degrees: float) -> str:
    way = "" if abs(degrees) in (0, 180, 360) else " clockwise" if degrees < 0 else " counter-clockwise"
    return f"turned by {digits(abs(degrees))}°{way}"


def _shear_words(x: float, y: float) -> str:
    return _moved_words("sheared", x, y, "", "")


def _shift_words(x: float, y: float) -> str:
    return _moved_words("moved", x, y, " of the width", " of the height")


def _moved_words(verb: str, x: float, y: float, of_width: str, of_height: str) -> str:
    across = f"{percentage(abs(x))}{of_width} to the {'left' if x < 0 else 'right'}" if x or not y else ""
    down = f"{percentage(abs(y))}{of_height} {'up' if y < 0 else 'down'}" if y else ""
    return f"{verb} by {' and '.join(filter(None, (across, down)))}"


def _crop_words(share: float, at: str) -> str:
    place = "about the middle" if at == "middle" else f"at the {at.replace('_', ' ')}"
    return f"cropped to {percentage(share)} of both sides, {place}"


# fmt: off
FAMILIES = (
    TransformationFamily("identity", "spatial", "spatial", Warp.identity,
        help="Nothing changes; predicted anew, it measures the system's own noise.",
        words="nothing changed, answered again"),
    TransformationFamily("stretch", "spatial", "spatial", stretch,
        (_factor("height", "factor of the height"), _factor("width", "factor of the width")),
        help="Height and width times their factors, bilinear; the new sides are whole pixels.", words=_stretch_words),
    TransformationFamily("mirror", "spatial", "spatial", Warp.mirror,
        (Parameter("axis", "choice", choices=("h", "v", "both"), help="h exchanges left and right"),),
        help="Mirrored along one axis or both; h and v exchange left and right landmarks, both does not.",
        words=_mirror_words),
    TransformationFamily("rotation", "spatial", "general", rotation, (
        Parameter("degrees", "float", low=-360, high=360, ordered=True, help="counter-clockwise as seen",
                  scale=Scale(0, -180, 180)),
        Parameter("centre", "choice", "middle", choices=("middle", "swapped"),
                  help="middle of the frame, or as MET-POSE's code had it"),
    ),
        help="Rotated about the middle in pixel space, same frame, black border.",
        inputs=("image", "scene"), words=_rotation_words),
    TransformationFamily("rotate90", "spatial", "spatial", Warp.rotate90,
        (Parameter("quarters", "int", low=1, high=3, help="quarter turns, counter-clockwise as seen"),),
        help="Turned by quarters with the frame, without resampling.",
        words=_rotate90_words),
    TransformationFamily("rescale", "spatial", "spatial", rescale, (_factor("factor", "of both sides"),),
        help="The whole input smaller or larger, bilinear; resolution shrinks by area.",
        words="scaled to {factor:%} of both sides"),
    TransformationFamily("shear", "spatial", "spatial", Warp.shear, (
        Parameter("x", "float", low=-1, open_low=True, high=1, open_high=True, ordered=True,
                  help="pixels to the right per pixel below the middle", scale=Scale(0, -0.96, 0.96)),
        Parameter("y", "float", 0, low=-1, open_low=True, high=1, open_high=True, ordered=True,
                  help="pixels down per pixel right of the middle", scale=Scale(0, -0.96, 0.96)),
    ), help="Sheared about the middle, same frame, black border.", words=_shear_words),
    TransformationFamily("shift", "spatial", "spatial", shift, (
        Parameter("x", "float", low=-1, open_low=True, high=1, open_high=True, ordered=True,
                  help="to the right, as a share of the width", scale=Scale(0, -0.96, 0.96)),
        Parameter("y", "float", 0, low=-1, open_low=True, high=1, open_high=True, ordered=True,
                  help="down, as a share of the height", scale=Scale(0, -0.96, 0.96)),
    ), help="Moved by whole pixels, same frame, black border: a system that leans on the middle of the frame fails.",
        words=_shift_words),
    TransformationFamily("crop", "spatial", "spatial", crop, (
        Parameter("share", "float", low=0, open_low=True, high=1, ordered=True, help="of each side, which is kept",
                  scale=Scale(1, 0.04)),
        Parameter("at", "choice", "middle", choices=get_args(Corner), help="where the part that is kept lies"),
    ), help="A part of the input, cut out at whole pixels: the frame is smaller, nothing is resampled.",
        words=_crop_words),
    TransformationFamily("pad", "spatial", "spatial", pad, (
        Parameter("share", "float", low=0, open_low=True, high=1, ordered=True,
                  help="of the side, added as a black border on each of its two ends", scale=Scale(0, above=1)),
        Parameter("sides", "choice", "all", choices=("all", "left_right", "top_bottom"), help="which sides grow"),
    ), help="A black border around the input, as a letterbox has: the frame is larger, nothing is resampled.",
        words=_pad_words),
)
# fmt: on
