"""Tables of grey levels and kernels of filters: what a rule needs once, whatever the image and wherever it lies.

`transforms` changes pixels by these with OpenCV, `tensors` on the device of a system that takes tensors.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

LEVELS = np.arange(256, dtype=np.float64)
LEVELS.setflags(write=False)


_KEPT = 256
"""So many tables are kept: a suite asks for the same of every image, and to make one takes as long as to use it."""


def _table(values: Floats) -> Table:
    """Rounded and saturated: what is pointwise has 256 answers."""
    return _fixed(np.clip(np.rint(values), 0, 255).astype(np.uint8))


def _fixed(table: Table) -> Table:
    """A table that is kept, and that nobody changes."""
    table.setflags(write=False)
    return table


@lru_cache(maxsize=_KEPT)
def gamma_table(gamma: float) -> Table:
    return _table(255.0 * (LEVELS / 255.0) ** gamma)


@lru_cache(maxsize=_KEPT)
def brightness_table(add: float, multiply: float, overflow: str) -> Table:
    values = add + multiply * LEVELS
    return _table(np.abs(values) if overflow == "absolute" else values)


@lru_cache(maxsize=_KEPT)
def contrast_table(factor: float) -> Table:
    return _table(127.5 + factor * (LEVELS - 127.5))


@lru_cache(maxsize=_KEPT)
def channel_table(factors: tuple[float, float, float], overflow: str) -> Table:
    """(256, 3): every channel has a factor of its own."""
    values = LEVELS[:, None] * factors
    if overflow == "wrap":
        return _fixed((np.floor(values).astype(np.int64) & 255).astype(np.uint8))
    return _table(values)


@cache
def _quantiles() -> Floats:
    """The standard normal distribution at the middles of 65,536 equal shares, up to ±4.3 σ."""
    normal = NormalDist()
    upper = np.array([normal.inv_cdf((i + 0.5) / 65536) for i in range(32768, 65536)])
    return np.concatenate([-upper[::-1], upper])


@lru_cache(maxsize=16)
def noise_table(sigma: float) -> npt.NDArray[np.int16]:
    """What 16 random bits add to a grey level."""
    table = np.clip(np.rint(sigma * _quantiles()), -255, 255).astype(np.int16)
    table.setflags(write=False)
    return table


def motion_kernel(size: int, direction: float, kernel: str) -> Floats:
    if kernel == "centred":
        return line_kernel(size, direction)
    return _square_kernel(size, direction) if kernel == "square" else _unnormalised_kernel(size, direction)


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
    import cv2

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
