"""Noise: random follow-ups. Levels of one family share their random numbers."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.spelling import Parameter
from instar.transforms.change import Change
from instar.transforms.family import Needs, TransformationFamily
from instar.transforms.region import BY, ONLY, RATIO, By, Cells, background, object_parts, part_words
from instar.transforms.words import counted
from instar.warp import Warp

Pixels = npt.NDArray[np.uint8]

_CHUNK = 1 << 15
"""Values drawn at a time: a multiple of the 4 that 64 random bits make, or the numbers would depend on it."""


@cache
def _quantiles() -> npt.NDArray[np.float64]:
    """The standard normal distribution at the middles of 65,536 equal shares, up to ±4.3 σ."""
    normal = NormalDist()
    upper = np.array([normal.inv_cdf((i + 0.5) / 65536) for i in range(32768, 65536)])
    return np.concatenate([-upper[::-1], upper])


def noise(pixels: Pixels, rng: np.random.Generator, *, sigma: float) -> Pixels:
    """By table: 16 random bits choose one of 65,536 quantiles, in a quarter of the time of drawing floats."""
    table = np.clip(np.rint(sigma * _quantiles()), -255, 255).astype(np.int16)
    source = pixels.reshape(1, -1)
    out = np.empty_like(source)
    for start in range(0, source.shape[1], _CHUNK):
        piece = source[:, start : start + _CHUNK]
        # the bits that rng.integers(0, 65536, dtype=np.uint16) takes from a fresh generator, in half the time
        words = rng.bit_generator.random_raw(-(-piece.size // 4)).astype("<u8", copy=False)
        chosen = words.view("<u2")[None, : piece.size]
        drawn = table.take(chosen, mode="wrap")  # 16 bits are never out of bounds, and checking takes time
        cv2.add(piece, drawn, dst=out[:, start : start + _CHUNK], dtype=cv2.CV_8U)
    return out.reshape(pixels.shape)


def object_noise(
    image: Image, needs: Needs, rng: np.random.Generator, *, ratio: float, sigma: float, by: By, only: int
) -> tuple[Image, Change]:
    parts = object_parts(needs["objects"], image.size, ratio, by, only)
    pixels = image.pixels.copy()
    place = pixels[parts.field.slices]
    cv2.copyTo(noise(place, rng, sigma=sigma), parts.mask, place)
    return Image(pixels), Change(
        Warp.identity(image.size), regions=parts.boxes, facts={"ratio": ratio, "sigma": sigma, **parts.facts}
    )


def background_noise(
    image: Image, needs: Needs, rng: np.random.Generator, *, sigma: float, by: By
) -> tuple[Image, Change]:
    mask = background(needs["objects"], image.size, by)
    pixels = image.pixels.copy()
    cv2.copyTo(noise(image.pixels, rng, sigma=sigma), mask, pixels)
    width, height = image.size
    return Image(pixels), Change(
        Warp.identity(image.size), regions=(Cells(0, 0, width, height).box,), facts={"sigma": sigma}
    )


_SIGMA = Parameter(
    "sigma", "float", low=0, high=1000, ordered=True, shared=True, help="standard deviation in grey levels"
)


def _object_noise_words(ratio: float, sigma: float, only: int) -> str:
    return f"noise of {counted(sigma, 'grey level')} on {part_words(ratio, only)}"


# fmt: off
FAMILIES = (
    TransformationFamily("noise", "noise", "photometric", noise, (_SIGMA,), help="Gaussian noise on the whole image.",
        random=True, words="noise of {sigma:grey level}"),
    TransformationFamily("object_noise", "noise", "general", object_noise, (RATIO, _SIGMA, BY, ONLY),
        help="Gaussian noise on the centred part of every object, or of one.", needs=("objects",),
        random=True, words=_object_noise_words),
    TransformationFamily("background_noise", "noise", "general", background_noise, (_SIGMA, BY),
        help="Gaussian noise on everything outside all annotated objects.", needs=("objects",),
        random=True, words="noise of {sigma:grey level} on the background"),
)
# fmt: on
