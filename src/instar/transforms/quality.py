"""Image quality: what cameras and codecs do. Every point stays where it was."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from instar.spelling import Parameter
from instar.transforms.family import Family

__all__ = ["FAMILIES"]

Pixels = npt.NDArray[np.uint8]


def gamma(pixels: Pixels, *, gamma: float) -> Pixels:
    """255·(v/255)^γ, by table: pointwise operations have 256 answers."""
    table = np.rint(255.0 * (np.arange(256) / 255.0) ** gamma).astype(np.uint8)
    return np.asarray(cv2.LUT(pixels, table), dtype=np.uint8)


FAMILIES = (
    Family("gamma", "quality", "photometric", gamma,
           (Parameter("gamma", "float", low=0, open_low=True, high=100, ordered=True,
                      help="below 1 brightens, above 1 darkens"),),
           help="Gamma correction: 255·(v/255)^γ."),
)
