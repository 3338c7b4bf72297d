"""The rules that every way applies, and the follow-ups as OpenCV and albumentations make them.

The system under test costs nothing: it says the same pose of 33 landmarks of every image, one that looks the same in a
mirror, so that every rule holds. How far an answer is off is the median distance of its landmarks, in shoulder widths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Points = npt.NDArray[np.float32]
Maker = Callable[[Pixels], Pixels]
"""Makes a follow-up of an image."""

MIRROR = "mirror(h)"
BRIGHTNESS = {f"brightness(0, {factor})": factor for factor in (0.5, 0.6, 0.7, 0.85, 0.95, 1.1, 1.25, 1.5)}
GAMMA = {f"gamma({gamma})": gamma for gamma in (0.5, 0.7, 0.85, 1.2, 1.5, 1.8, 2.2)}
BLUR = {f"blur({sigma})": sigma for sigma in (0.5, 0.8, 1.2, 1.5)}
RULES = (MIRROR, *BRIGHTNESS, *GAMMA, *BLUR)
"""As Instar spells them."""

LEVELS = np.arange(256)
SKELETON = "mediapipe-pose-33"
PAIRS = ((1, 4), (2, 5), (3, 6), *((left, left + 1) for left in range(7, 33, 2)))
"""Left and right landmarks of the skeleton."""
SHOULDERS = [11, 12]


@cache
def pose(width: int, height: int) -> Points:
    """What the system says of an image of this size: every left landmark mirrors the right one."""
    points = np.full((33, 2), (width / 2, height / 2), np.float32)
    for number, (left, right) in enumerate(PAIRS):
        points[left] = (width * 0.6, height * (0.2 + number / 30))
        points[right] = (width * 0.4, height * (0.2 + number / 30))
    points.setflags(write=False)
    return points


def severities(rules: Sequence[str], sources: Points, follow_ups: Points, width: int) -> npt.NDArray[np.float64]:
    """How far answers about follow-ups (N, 33, 2) are from what those about their sources let expect."""
    expected = sources.astype(np.float64)
    mirrored = np.array([rule == MIRROR for rule in rules])
    if mirrored.any():
        expected[mirrored] = expected[mirrored][:, _swapped()] * (-1, 1) + (width, 0)
    shoulders = np.linalg.norm(sources[:, SHOULDERS[0]] - sources[:, SHOULDERS[1]], axis=1)
    far: npt.NDArray[np.float64] = np.median(np.linalg.norm(expected - follow_ups, axis=2), axis=1) / shoulders
    return far


@cache
def _swapped() -> npt.NDArray[np.intp]:
    order = np.arange(33)
    for left, right in PAIRS:
        order[[left, right]] = right, left
    return order


def opencv_makers() -> Mapping[str, Maker]:
    """What is pointwise goes through a table, as whoever writes a loop for speed would do it."""
    tables = {rule: factor * LEVELS for rule, factor in BRIGHTNESS.items()}
    tables |= {rule: 255 * (LEVELS / 255) ** gamma for rule, gamma in GAMMA.items()}
    makers: dict[str, Any] = {MIRROR: partial(cv2.flip, flipCode=1)}
    for rule, values in tables.items():
        makers[rule] = partial(cv2.LUT, lut=np.clip(np.rint(values), 0, 255).astype(np.uint8))
    for rule, sigma in BLUR.items():
        makers[rule] = partial(cv2.GaussianBlur, ksize=(0, 0), sigmaX=sigma)
    return makers


def albumentations_settings() -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    """The name of a transform and its parameters, by rule. Ranges of one value leave nothing to chance."""
    settings: dict[str, tuple[str, Mapping[str, Any]]] = {MIRROR: ("HorizontalFlip", {})}
    for rule, factor in BRIGHTNESS.items():
        limits = {"brightness_limit": (0, 0), "contrast_limit": (factor - 1, factor - 1)}
        settings[rule] = ("RandomBrightnessContrast", limits)
    for rule, gamma in GAMMA.items():
        settings[rule] = ("RandomGamma", {"gamma_limit": (100 * gamma, 100 * gamma)})
    for rule, sigma in BLUR.items():
        side = round(6 * sigma + 1) | 1  # as OpenCV chooses it
        settings[rule] = ("GaussianBlur", {"blur_limit": (side, side), "sigma_limit": (sigma, sigma)})
    return {rule: (name, {**parameters, "p": 1}) for rule, (name, parameters) in settings.items()}


def albumentations_makers() -> Mapping[str, Maker]:
    """Transforms without `Compose`, which would cost a few microseconds more."""
    library: Any = import_module("albumentations")
    return {
        rule: partial(_augmented, getattr(library, name)(**parameters))
        for rule, (name, parameters) in albumentations_settings().items()
    }


def _augmented(transform: Any, pixels: Pixels) -> Pixels:
    followed: Pixels = transform(image=pixels)["image"]
    return followed
