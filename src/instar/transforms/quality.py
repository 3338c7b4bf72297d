"""Image quality: what cameras and codecs do. Every point stays where it was, relative to the frame."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import bgr_to_rgb
from instar.spelling import Parameter
from instar.transforms.family import TransformationFamily
from instar.transforms.spatial import rescale
from instar.transforms.words import counted, digits, percentage

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

LEVELS = np.arange(256, dtype=np.float64)
LEVELS.setflags(write=False)


def _looked_up(pixels: Pixels, values: Floats) -> Pixels:
    """Every grey level replaced by its value, rounded and saturated: what is pointwise has 256 answers."""
    table = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(pixels, table), dtype=np.uint8)


def gamma(pixels: Pixels, *, gamma: float) -> Pixels:
    return _looked_up(pixels, 255.0 * (LEVELS / 255.0) ** gamma)


def brightness(pixels: Pixels, *, add: float, multiply: float, overflow: Literal["saturate", "absolute"]) -> Pixels:
    values = add + multiply * LEVELS
    return _looked_up(pixels, np.abs(values) if overflow == "absolute" else values)


def contrast(pixels: Pixels, *, factor: float) -> Pixels:
    return _looked_up(pixels, 127.5 + factor * (LEVELS - 127.5))


def bilateral(pixels: Pixels, *, strength: float, size: int) -> Pixels:
    return np.asarray(cv2.bilateralFilter(pixels, size, strength, strength), dtype=np.uint8)


def blur(pixels: Pixels, *, sigma: float) -> Pixels:
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101), np.uint8)


def jpeg(pixels: Pixels, *, quality: int) -> Pixels:
    """Encoded and decoded by OpenCV, with the chroma at half the resolution as most encoders have it."""
    bgr = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = bgr_to_rgb(cv2.imdecode(encoded, cv2.IMREAD_COLOR))
    assert decoded is not None  # it was encoded just now
    return decoded


def motion(
    pixels: Pixels, *, size: int, direction: float, kernel: Literal["centred", "unnormalised", "square"]
) -> Pixels:
    kernels: dict[str, Callable[[int, float], Floats]] = {
        "centred": line_kernel,
        "unnormalised": _unnormalised_kernel,
        "square": _square_kernel,
    }
    line = kernels[kernel](size, direction)
    return np.asarray(cv2.filter2D(pixels, -1, line), dtype=np.uint8)


@lru_cache(maxsize=64)
def line_kernel(size: int, direction: float) -> Floats:
    """The mean of `size` pictures, each a pixel further along the line; its centroid is its centre.

    Each step is split bilinearly between its four pixels, so that lines of even length and any direction are
    centred too. Sides are odd, as OpenCV anchors only those at their centre, and without empty border rows.
    """
    steps = np.arange(size) - (size - 1) / 2
    angle = math.radians(direction)
    # y runs down; rounding takes cos(90°) = 6e-17 for the zero that it is
    x, y = np.round(steps * math.cos(angle), 9), np.round(-steps * math.sin(angle), 9)
    reach_x, reach_y = math.ceil(np.abs(x).max()), math.ceil(np.abs(y).max())
    line = np.zeros((2 * reach_y + 1, 2 * reach_x + 1))
    left, top = np.floor(x).astype(np.intp), np.floor(y).astype(np.intp)
    for right, below in ((0, 0), (1, 0), (0, 1), (1, 1)):
        weight = np.abs(1 - right - (x - left)) * np.abs(1 - below - (y - top))
        used = weight > 0
        np.add.at(line, (top[used] + below + reach_y, left[used] + right + reach_x), weight[used])
    line /= line.sum()
    line.setflags(write=False)
    return line


def _unnormalised_kernel(size: int, direction: float) -> Floats:
    """A horizontal line turned by OpenCV about (size/2, size/2), half a pixel beside its centre.

    Parts of it leave the kernel (21 % of (5, 100), 56 % of (1, 40)): the picture darkens and shifts.
    """
    line = np.zeros((size, size))
    line[(size - 1) // 2] = 1 / size
    turn = cv2.getRotationMatrix2D((size / 2, size / 2), direction, 1)
    return np.asarray(cv2.warpAffine(line, turn, (size, size)), dtype=np.float64)


def _square_kernel(size: int, direction: float) -> Floats:
    """A row, a column or a diagonal of a square. OpenCV anchors one of even side beside its centre: the picture
    shifts by a pixel across the line and half a one along it.
    """
    line = np.zeros((size, size))
    middle, steps = np.full(size, (size - 1) // 2), np.arange(size)
    places = {0: (middle, steps), 90: (steps, middle), 45: (steps[::-1], steps), 135: (steps, steps)}
    line[places[int(direction)]] = 1 / size
    return line


def _has_square_kernel(kernel: str, direction: float, **_: object) -> None:
    if kernel == "square" and direction not in (0, 45, 90, 135):
        raise ValueError(
            f"transformation motion: kernel=square takes the directions 0, 45, 90 and 135, not {direction:g}"
        )


def _gamma_words(gamma: float) -> str:
    effect = "brighter, " if gamma < 1 else "darker, " if gamma > 1 else ""
    return f"{effect}gamma {digits(gamma)}"


def _brightness_words(add: float, multiply: float) -> str:
    factor = f"brightness at {percentage(multiply)}" if multiply != 1 or not add else "brightness"
    if not add:
        return factor
    return f"{factor} {'plus' if add > 0 else 'minus'} {counted(abs(add), 'grey level')}"


# fmt: off
FAMILIES = (
    TransformationFamily("resolution", "quality", "spatial", rescale, (
        Parameter("factor", "float", low=0, open_low=True, high=1, open_high=True, ordered=True, help="of both sides"),
    ), help="Fewer pixels by area resampling, not scaled back: the system sees a smaller image.", resampling="area",
        words="shrunk to {factor:%} of both sides"),
    TransformationFamily("gamma", "quality", "photometric", gamma, (
        Parameter("gamma", "float", low=0, open_low=True, high=100, ordered=True,
                  help="below 1 brightens, above 1 darkens"),
    ), help="Gamma correction: 255·(v/255)^γ.", words=_gamma_words),
    TransformationFamily("brightness", "quality", "photometric", brightness, (
        Parameter("add", "float", low=-255, high=255, ordered=True, help="grey levels added"),
        Parameter("multiply", "float", low=0, high=255, ordered=True, help="factor before adding"),
        Parameter("overflow", "choice", "saturate", choices=("saturate", "absolute"),
                  help="what becomes of values below 0"),
    ),
        help="add + multiply·v, saturated.", words=_brightness_words),
    TransformationFamily("contrast", "quality", "photometric", contrast,
        (Parameter("factor", "float", low=0, high=255, ordered=True, help="below 1 flattens"),),
        help="Differences from middle grey (127.5) times a factor, saturated.",
        words="contrast at {factor:%}"),
    TransformationFamily("bilateral", "quality", "photometric", bilateral, (
        Parameter("strength", "float", low=0, open_low=True, high=1000, ordered=True,
                  help="both sigmas: grey levels and pixels"),
        Parameter("size", "int", low=1, high=99, ordered=True,
                  help="diameter in pixels; an even one counts as the next odd one"),
    ), help="Bilateral filter: textures go, edges stay.",
        words="smoothed but for its edges, strength {strength}, over {size:pixel}"),
    TransformationFamily("blur", "quality", "photometric", blur, (
        Parameter("sigma", "float", low=0, open_low=True, high=100, ordered=True, help="standard deviation in pixels"),
    ), help="Gaussian blur: out of focus.", words="blurred by {sigma:pixel}"),
    TransformationFamily("jpeg", "quality", "photometric", jpeg, (
        Parameter("quality", "int", low=1, high=100, ordered=True, help="of the encoder: 100 is nearly lossless"),
    ), help="Compressed as a JPEG file and decoded again.", words="JPEG compression, quality {quality}"),
    TransformationFamily("motion", "quality", "photometric", motion, (
        Parameter("size", "int", low=1, high=999, ordered=True, help="length of the line in pixels"),
        Parameter("direction", "float", low=-360, high=360, help="degrees, counter-clockwise as seen; 0 is horizontal"),
        Parameter("kernel", "choice", "centred", choices=("centred", "unnormalised", "square"),
                  help="an exact line, or as MET-POSE's code had it"),
    ),
        help="Motion blur: a one-pixel-thick line through the kernel's exact centre, of sum 1.",
        check=_has_square_kernel, words="motion blur, {size:pixel}, at {direction:°}"),
)
# fmt: on
