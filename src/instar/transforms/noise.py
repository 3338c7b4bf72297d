"""Noise: random follow-ups. Levels of one family share their random numbers."""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.levels import noise_table
from instar.spelling import Parameter, Scale
from instar.transforms.change import Change
from instar.transforms.family import Needs, TransformationFamily
from instar.transforms.region import BY, ONLY, RATIO, By, Cells, background, object_parts, part_words
from instar.transforms.words import counted
from instar.warp import Warp

Pixels = npt.NDArray[np.uint8]

_CHUNK = 1 << 15
"""Values drawn at a time: a multiple of the 4 that 64 random bits make, or the numbers would depend on it."""


def noise(pixels: Pixels, rng: np.random.Generator, *, sigma: float) -> Pixels:
    """By table: 16 random bits choose one of 65,536 quantiles, in a quarter of the time of drawing floats."""
    table = noise_table(sigma)
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


_SIGMA = Parameter(
    "sigma",
    "float",
    low=0,
    high=1000,
    ordered=True,
    shared=True,
    help="standard deviation in grey levels",
    scale=Scale(0, above=160, steps="square", beside=32),
)

# fmt: off
NOISE = TransformationFamily("noise", "noise", "photometric", noise, (_SIGMA,),
    help="Gaussian noise on the whole image.", random=True, words="noise of {sigma:grey level}", device="noise")
# fmt: on


def object_noise(
    image: Image, needs: Needs, rng: np.random.Generator, *, ratio: float, sigma: float, by: By, only: int
) -> tuple[Image, Change]:
    parts = object_parts(needs["objects"], image.size, ratio, by, only)
    place = parts.field.slices
    noisy, _ = NOISE.apply(image.part(place), {}, rng, {"sigma": sigma})
    return image.covered(cast(Image, noisy), parts.mask, place), Change(
        Warp.identity(image.size), regions=parts.boxes, facts={"ratio": ratio, "sigma": sigma, **parts.facts}
    )


def background_noise(
    image: Image, needs: Needs, rng: np.random.Generator, *, sigma: float, by: By
) -> tuple[Image, Change]:
    mask = background(needs["objects"], image.size, by)
    noisy, _ = NOISE.apply(image, {}, rng, {"sigma": sigma})
    width, height = image.size
    return image.covered(cast(Image, noisy), mask), Change(
        Warp.identity(image.size), regions=(Cells(0, 0, width, height).box,), facts={"sigma": sigma}
    )


def _object_noise_words(ratio: float, sigma: float, only: int) -> str:
    return f"noise of {counted(sigma, 'grey level')} on {part_words(ratio, only)}"


# fmt: off
FAMILIES = (
    NOISE,
    TransformationFamily("object_noise", "noise", "general", object_noise, (RATIO, _SIGMA, BY, ONLY),
        help="Gaussian noise on the centred part of every object, or of one.", needs=("objects",),
        random=True, words=_object_noise_words),
    TransformationFamily("background_noise", "noise", "general", background_noise, (_SIGMA, BY),
        help="Gaussian noise on everything outside all annotated objects.", needs=("objects",),
        random=True, words="noise of {sigma:grey level} on the background"),
)
# fmt: on
