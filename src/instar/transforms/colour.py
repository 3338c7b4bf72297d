"""Colour: what a system should not rely on. Every point stays where it was."""

from __future__ import annotations

from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.levels import channel_table
from instar.spelling import Parameter, Scale
from instar.transforms.family import TransformationFamily
from instar.transforms.lookup import channels_looked_up
from instar.transforms.words import percentage

Pixels = npt.NDArray[np.uint8]

_CHUNK = 1 << 14
"""Pixels worked on at a time as floating point: in the cache, and without a float copy of a large image."""


_TOGETHER = 64
"""Whole numbers of so many pixels go through OpenCV: of a remainder it works out single pixels by other code, which
rounds otherwise, and a colour would become another one at the end of an image."""


def greyscale(pixels: Pixels) -> Pixels:
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB), dtype=np.uint8)


def colour_wheel(pixels: Pixels, *, degrees: float) -> Pixels:
    """In floating point: OpenCV's 8-bit hue has steps of 2°, and even a turn by 0° moves some grey levels."""
    source = pixels.reshape(1, -1, 3)
    out = np.empty_like(source)
    turn = np.float32(degrees % 360)
    unit = np.zeros((1, min(_CHUNK, -(-source.shape[1] // _TOGETHER) * _TOGETHER), 3), np.float32)
    for start in range(0, source.shape[1], _CHUNK):
        piece = source[:, start : start + _CHUNK]
        count = piece.shape[1]
        np.multiply(piece, np.float32(1 / 255), out=unit[:, :count])
        cv2.cvtColor(unit, cv2.COLOR_RGB2HSV, dst=unit)
        turned = unit[..., 0] + turn
        np.subtract(turned, (turned >= 360) * np.float32(360), out=unit[..., 0])
        cv2.cvtColor(unit, cv2.COLOR_HSV2RGB, dst=unit)
        cv2.convertScaleAbs(unit[:, :count], dst=out[:, start : start + count], alpha=255)
    return out.reshape(pixels.shape)


def colour_channels(
    pixels: Pixels,
    *,
    factors: tuple[float, float, float],
    encoding: Literal["rgb", "bgr", "xyz"],
    overflow: Literal["saturate", "wrap"],
) -> Pixels:
    encoded = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2XYZ), np.uint8) if encoding == "xyz" else pixels
    order = (2, 1, 0) if encoding == "bgr" else (0, 1, 2)
    return channels_looked_up(encoded, channel_table(factors, overflow), order)


def colour_fill(pixels: Pixels, *, colour: tuple[int, int, int]) -> Pixels:
    out = np.empty_like(pixels, order="C")
    out[0] = colour
    out[1:] = out[0]  # whole rows: filling pixel by pixel takes 50 times as long
    return out


_CHANNELS = {"rgb": ("red", "green", "blue"), "bgr": ("blue", "green", "red"), "xyz": ("X", "Y", "Z")}


def _channel_words(factors: tuple[float, float, float], encoding: str) -> str:
    names = _CHANNELS[encoding]
    changed = [f"{name} at {percentage(factor)}" for name, factor in zip(names, factors, strict=True) if factor != 1]
    shown = "" if encoding == "rgb" else f"{', '.join(names)} shown as red, green, blue"
    return ", ".join(filter(None, (shown, *changed))) or "all colours at 100 %"


# fmt: off
FILL = TransformationFamily("colour_fill", "colour", "photometric", colour_fill,
    (Parameter("colour", "colour", help="(red, green, blue)"),),
    help="One colour everywhere; meant for a zone: filtered(colour_fill((0, 0, 255)), background).",
    words="filled with the colour {colour}", pointwise=True, device="colour_fill")

FAMILIES = (
    TransformationFamily("greyscale", "colour", "photometric", greyscale,
        help="Rec. 601 luma (0.299 R + 0.587 G + 0.114 B) in all three channels.", words="without colour",
        pointwise=True, device="greyscale"),
    TransformationFamily("colour_wheel", "colour", "photometric", colour_wheel,
        (Parameter("degrees", "float", low=-360, high=360, ordered=True, help="from red towards green",
                   scale=Scale(0, -180, 180)),),
        help="Hue rotated by degrees of the colour wheel.",
        words="hue turned by {degrees:°}", pointwise=True, device="colour_wheel"),
    TransformationFamily("colour_channels", "colour", "photometric", colour_channels, (
        Parameter("factors", "floats", low=0, high=255, length=3, help="one per channel of the encoding"),
        Parameter("encoding", "choice", "rgb", choices=("rgb", "bgr", "xyz"),
                  help="what the image is encoded as before, and not decoded from after"),
        Parameter("overflow", "choice", "saturate", choices=("saturate", "wrap"),
                  help="what becomes of values above 255"),
    ),
        help="Channels of an encoding times their factors, the result shown as if it were RGB.",
        words=_channel_words, pointwise=True, device="colour_channels"),
    FILL,
)
# fmt: on
