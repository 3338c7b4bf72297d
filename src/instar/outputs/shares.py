"""Answers in shares of the frame: the same one to images of different sizes, and coordinates that are no pixels."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from instar.outputs.output import Output
from instar.warp import Size

SMALLEST = 16
"""Pixels of the shorter side from which on nobody finds everything within the first two."""
FAR = 2.5
"""How far out of the frame, in shares of it, a guess at a hidden part may lie."""


def gist(answer: Output, size: Size) -> Hashable:
    """What an answer to an input of this size says in shares of the frame, rounded: equal for the same answer.

    Of a kind without places or facts nothing is left out.
    """
    if marks := answer.marks():
        return tuple((mark.label, str(np.round(mark.places / size, 3)), round(mark.score, 3)) for mark in marks)
    if facts := answer.facts():
        return tuple((name, f"{fact:.3g}") for name, fact in facts.items())  # a small share is not none
    return tuple(
        (name, value.tobytes() if isinstance(value, np.ndarray) else repr(value))
        for name, value in answer.row().items()
    )


def normalised(places: npt.NDArray[np.floating]) -> bool:
    """Whether places (N, 2), in images no smaller than `SMALLEST`, look like shares of them. Zeros alone are none."""
    far = np.abs(places[np.isfinite(places).all(1)])
    return bool(len(far) > 1 and 0 < far.max() <= FAR and np.median(far) <= 1)
