"""lean moves every pixel and says where to; speckle is random, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from instar import Parameter, TransformationFamily, Warp

__all__ = ["LEAN", "SPECKLE"]


def lean(size: tuple[int, int], *, share: float) -> Warp:
    """The image leans to the right: its top is moved by a share of its width. The frame stays."""
    width, height = size
    slope = share * width / height
    matrix = np.array([[1.0, -slope, slope * height / 2], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return Warp(matrix, size, size)


def speckle(pixels: npt.NDArray[np.uint8], rng: np.random.Generator, *, share: float) -> npt.NDArray[np.uint8]:
    """A share of the pixels becomes black or white."""
    changed = pixels.copy()
    chosen = rng.random(pixels.shape[:2]) < share
    changed[chosen] = rng.choice(np.array([0, 255], np.uint8), int(chosen.sum()))[:, None]
    return changed


LEAN = TransformationFamily(
    "lean",
    "spatial",
    "spatial",
    lean,
    (Parameter("share", "float", low=-0.5, high=0.5, help="how far the top moves, as a share of the width"),),
    help="The image leans to one side.",
    words="leaning by {share:%} of its width",
)
SPECKLE = TransformationFamily(
    "speckle",
    "noise",
    "photometric",
    speckle,
    (Parameter("share", "float", low=0, high=1, help="how many pixels are spoilt", shared=True),),
    help="Single pixels become black or white.",
    words="{share:%} of the pixels black or white",
    random=True,
)
