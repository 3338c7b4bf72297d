"""Severities of the parts that a verdict is made of, each for itself: what a median over landmarks hides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class PartSeverities:
    """How far named parts of some targets stray, in the unit of their relation.

    `keys` has the `case`, `follow_up`, `draw`, `repeat` and `target` of each row of `severity` (rows, names), which is
    ∞ for a part on one side only and NaN where there is nothing to judge. `twins` are the parts whose places they take
    in a mirror: themselves where they take nobody's.
    """

    names: tuple[str, ...]
    twins: tuple[str, ...]
    keys: pl.DataFrame
    severity: npt.NDArray[np.float64]


def hidden(places: npt.NDArray[np.float64], regions: pl.Series) -> npt.NDArray[np.bool_]:
    """Which places (rows, points, 2) of follow-ups lie in a region that their change touched, with boxes by row."""
    inside = np.zeros(places.shape[:2], bool)
    for row, sides in enumerate(regions.to_list()):
        for x0, y0, x1, y1 in np.reshape(sides or [], (-1, 4)):
            x, y = places[row, :, 0], places[row, :, 1]
            inside[row] |= (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
    return inside
