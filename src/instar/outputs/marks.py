"""Mark: where one subject or object of an answer is, whatever the output kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """One subject or object: its class, its places (K, 2) in pixels (NaN: absent), and how sure the system is.

    `scores` holds every number between 0 and 1 that the system gave for it: its own score, visibilities of landmarks.
    """

    label: str
    places: npt.NDArray[np.float64]
    score: float
    scores: npt.NDArray[np.float32]
