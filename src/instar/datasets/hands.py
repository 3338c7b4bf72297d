"""What readers of hands share. All know the 21 landmarks of hand-21, in its order: from the wrist along each finger."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from instar.outputs.poses import Poses

Floats = npt.NDArray[np.float64]


def array_of(numbers: object, shape: tuple[int, ...]) -> Floats | None:
    """Nested lists of numbers as an array; None where they are something else."""
    try:
        array = np.array(numbers, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if array.shape == shape else None


def hands_of(points: npt.ArrayLike) -> Poses | None:
    """Hands (21, 2) or (hands, 21, 2) in pixels, NaN where a landmark is absent.

    Hands of which no landmark is known are left out; None where all are: a truth without hands would say that there
    are none.
    """
    hands: Floats = np.asarray(points, np.float64).reshape(-1, 21, 2)
    known = hands[~np.isnan(hands).all((1, 2))]
    return Poses.from_array(known, skeleton="hand-21") if len(known) else None
