"""Severities of the parts that a verdict is made of, each for itself: what a median over landmarks hides."""

from __future__ import annotations

from dataclasses import dataclass, replace

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

    def by_follow_up(self) -> dict[str, PartSeverities]:
        """Those of each follow-up for themselves."""
        places = self.keys.with_row_index("row").group_by("follow_up", maintain_order=True).agg("row")
        return {
            name: replace(self, keys=self.keys[rows], severity=self.severity[rows]) for name, rows in places.iter_rows()
        }
