"""Colour: what a system should not rely on. Every point stays where it was."""

from __future__ import annotations

from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.spelling import Parameter
from instar.transforms.family import TransformationFamily
from instar.transforms.words import percentage

Pixels = npt.NDArray[np.uint8]

_CHUNK = 1 << 15
"""Pixels worked on at a time as floating point: in the cache, and without a float copy of a large image."""


def greyscale(pixels: Pixels) -> Pixels:
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB), dtype=np.uint8)


def colour_wheel(pixels: Pixels, *, degrees: float) -> Pixels:
    """In floating point: OpenCV's 8-bit hue has steps of 2°, and even a turn by 0° moves some grey levels."""
    source = pixels.reshape(1, -1, 3)
    out = np.empty_like(source)
    turn = np.float32(degrees % 360)
    for start in range(0, source.shape[1], _CHUNK):
        piece = slice(start, start + _CHUNK)
        unit = np.multiply(source[:, piece], np.float32(1 / 255), dtype=np.float32)
        cv2.cvtColor(unit, cv2.COLOR_RGB2HSV, dst=unit)
        hue = unit[..., 0]
        hue += turn
        hue[hue >= 360] -= 360
        cv2.cvtColor(unit, cv2.COLOR_HSV2RGB, dst=unit)
        cv2.convertScaleAbs(unit, dst=out[:, piece], alpha=255)
    return out.reshape(pixels.shape)


_ENCODED = {"bgr": cv2.COLOR_RGB2BGR, "xyz": cv2.COLOR_RGB2XYZ}


def colour_channels(
    pixels: Pixels,
    *,
    factors: tuple[float, float, float],
    encoding: Literal["rgb", "bgr", "xyz"],
    overflow: Literal["saturate", "wrap"],
) -> Pixels:
    encoded = pixels if encoding == "rgb" else cv2.cvtColor(pixels, _ENCODED[encoding])
    values = np.arange(256.0)[:, None] * factors
    if overflow == "wrap":
        table = (np.floor(values).astype(np.int64) & 255).astype(np.uint8)
    else:
        table = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(encoded, table.reshape(1, 256, 3)), dtype=np.uint8)


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
FAMILIES = (
    TransformationFamily("greyscale", "colour", "photometric", greyscale,
        help="Rec. 601 luma (0.299 R + 0.587 G + 0.114 B) in all three channels.", words="without colour"),
    TransformationFamily("colour_wheel", "colour", "photometric", colour_wheel,
        (Parameter("degrees", "float", low=-360, high=360, ordered=True, help="from red towards green"),),
        help="Hue rotated by degrees of the colour wheel.",
        words="hue turned by {degrees:°}"),
    TransformationFamily("colour_channels", "colour", "photometric", colour_channels, (
        Parameter("factors", "floats", low=0, high=255, length=3, help="one per channel of the encoding"),
        Parameter("encoding", "choice", "rgb", choices=("rgb", "bgr", "xyz"),
                  help="what the image is encoded as before, and not decoded from after"),
        Parameter("overflow", "choice", "saturate", choices=("saturate", "wrap"),
                  help="what becomes of values above 255"),
    ),
        help="Channels of an encoding times their factors, the result shown as if it were RGB.",
        words=_channel_words),
    TransformationFamily("colour_fill", "colour", "photometric", colour_fill,
        (Parameter("colour", "colour", help="(red, green, blue)"),),
        help="One colour everywhere; meant for a zone: filtered(colour_fill((0, 0, 255)), background).",
        words="filled with the colour {colour}"),
)
# fmt: on
