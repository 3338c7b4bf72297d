"""How much of a change a person sees: 1 − VIF, the share of an image's visual information that a follow-up lost."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.warp import Size, Warp

Floats = npt.NDArray[np.float32]

WINDOWS = (17, 9, 5, 3)
"""The sides of the Gaussian windows in pixels, one per scale; the images are half as large at each next scale."""
EYE_NOISE = 2.0
"""The variance, in grey levels squared, of what the eye itself adds: contrast far below it is seen by nobody."""
LONGEST = 640
"""Larger images are compared with their longer side so long: a person looks at a whole picture, not at its pixels."""
_TINY = 1e-10


def visual_change(source: Image, follow_up: Image, warp: Warp | None = None) -> float | None:
    """How much of a change a person sees, from 0 for nothing to 1 where nothing of the source is left.

    It is 1 − VIF, with VIF the visual information fidelity of Sheikh and Bovik in the pixel domain, on four scales of
    luma. A gain of contrast counts as the same loss: twice the contrast as half of it. VIF itself is above 1 there, and
    would call it no change at all. VIF looks at contrast: brightness that is added to every pixel alike, and colours
    of the same luma, count nothing.

    Images are compared pixel by pixel. A smaller or larger follow-up of the same frame is scaled to the source's size
    first. None: the pixels moved, as `warp`, from the source to the follow-up, says; without it, images of another
    shape have, and those of the same shape have not.

    >>> grey = Image(np.full((4, 4, 3), 128, np.uint8))
    >>> visual_change(grey, grey), visual_change(grey, Image.blank((4, 3)))
    (0.0, None)
    """
    if warp is not None and (warp.source != source.size or warp.target != follow_up.size):
        raise ValueError(
            f"the warp is from {warp.source} to {warp.target}, the images are {source.size} and {follow_up.size}"
        )
    if not (_same_shape(source.size, follow_up.size) if warp is None else keeps_frame(warp)):
        return None
    if np.array_equal(source.pixels, follow_up.pixels):
        return 0.0
    size = _compared_size(source.size)
    return 1 - _fidelity(_luma(source, size), _luma(follow_up, size))


def keeps_frame(warp: Warp) -> bool:
    """Whether every pixel stays where it was relative to the frame: the frame is scaled at the most."""
    whole = Warp.resize(warp.source, warp.target)
    return bool(np.allclose(warp.matrix, whole.matrix, rtol=1e-12, atol=1e-12))


def _same_shape(source: Size, follow_up: Size) -> bool:
    """Whether one size is the other one scaled, but for the rounding to whole pixels."""
    (width, height), (wide, high) = source, follow_up
    return abs(width * high - height * wide) <= max(width, height, wide, high) / 2 or source == follow_up


def _compared_size(size: Size) -> Size:
    scale = min(1.0, LONGEST / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _luma(image: Image, size: Size) -> Floats:
    """Luma (Rec. 601) less middle grey, which keeps the digits of 32 bits for differences."""
    luma = cv2.cvtColor(image.pixels, cv2.COLOR_RGB2GRAY).astype(np.float32) - np.float32(128)
    if image.size == size:
        return np.asarray(luma, np.float32)
    shrinks = size[0] <= image.size[0] and size[1] <= image.size[1]
    resampling = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(luma, size, interpolation=resampling), np.float32)


def _fidelity(source: Floats, follow_up: Floats) -> float:
    """VIF with gains counted as losses, 0 to 1. Of a source without any contrast nothing can be lost: then it is 1
    where the follow-up has none either, and 0 where it has."""
    kept = there = 0.0
    added = False
    for number, side in enumerate(WINDOWS):
        if number:
            source, follow_up = (_smoothed(luma, side)[::2, ::2] for luma in (source, follow_up))
        first, second, both = _variances(source, follow_up, side)
        gain = both / (first + np.float32(_TINY))
        rest = second - gain * both  # the variance of what does not come from the source
        lost = (both <= 0) | (first < _TINY) | (second < _TINY)
        gain[lost] = 0
        rest[lost] = second[lost]
        raised = gain > 1  # seen from the follow-up, the source has less contrast, and the rest is as much smaller
        rest[raised] /= gain[raised] ** 2
        gain[raised] = 1 / gain[raised]
        np.maximum(rest, _TINY, out=rest)
        kept += float(np.log1p(gain * gain * first / (rest + np.float32(EYE_NOISE))).sum(dtype=np.float64))
        there += float(np.log1p(first / np.float32(EYE_NOISE)).sum(dtype=np.float64))
        added = added or bool((second > _FLAT).any())
    if there <= _FLAT:
        return 0.0 if added else 1.0
    return min(max(kept / there, 0.0), 1.0)


_FLAT = 1e-2
"""A variance that rounding may leave of none."""


def _variances(source: Floats, follow_up: Floats, side: int) -> tuple[Floats, Floats, Floats]:
    """Of both images in every window, and their covariance."""
    first, second = _smoothed(source, side), _smoothed(follow_up, side)
    return (
        np.maximum(_smoothed(source * source, side) - first * first, 0),
        np.maximum(_smoothed(follow_up * follow_up, side) - second * second, 0),
        _smoothed(source * follow_up, side) - first * second,
    )


def _smoothed(luma: Floats, side: int) -> Floats:
    line = _window(side)
    return np.asarray(cv2.sepFilter2D(luma, cv2.CV_32F, line, line, borderType=cv2.BORDER_REFLECT_101), np.float32)


@lru_cache(maxsize=len(WINDOWS))
def _window(side: int) -> Floats:
    """One line of a Gaussian window; its standard deviation is a fifth of its side."""
    return np.asarray(cv2.getGaussianKernel(side, side / 5, cv2.CV_32F), np.float32)
