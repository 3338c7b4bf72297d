"""Noise: random follow-ups. Levels of one family share their random numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from instar.spelling import Parameter
from instar.transforms.family import Family

__all__ = ["FAMILIES"]

Pixels = npt.NDArray[np.uint8]


def noise(pixels: Pixels, rng: np.random.Generator, *, sigma: float) -> Pixels:
    """Gaussian noise on every channel, saturated."""
    drawn = rng.standard_normal(pixels.shape, dtype=np.float32)
    return np.asarray(np.clip(np.rint(pixels + sigma * drawn), 0, 255), dtype=np.uint8)


FAMILIES = (
    Family("noise", "noise", "photometric", noise,
           (Parameter("sigma", "float", low=0, high=1000, ordered=True, shared=True,
                      help="standard deviation in grey levels"),),
           help="Gaussian noise on the whole image.", random=True),
)
