"""Shapes: how inputs and outputs draw themselves. Pictures, pages and the viewer render shapes and know no task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

Side = Literal["left", "right", "middle"]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One thing to draw, in image coordinates.

    `xy` holds points (N, 2), line ends (N, 4), boxes (N, 4), the corners of one polygon (N, 2), where a text
    stands (1, 2), or the box that a heat map covers (1, 4). A polygon may have several rings, holes among them, with a
    row of NaN between each two. `colour` is RGB; None leaves it to the renderer. `side` is
    the subject's own, of points and lines that have one: left and right are drawn differently, `middle` is neither.
    """

    form: Literal["points", "lines", "boxes", "polygon", "text", "heat"]
    xy: npt.NDArray[np.float64]
    text: str = ""
    colour: tuple[int, int, int] | None = None
    heat: npt.NDArray[np.float32] | None = None
    side: Side | None = None

    def moved(self, x: float, y: float) -> Shape:
        """The same shape elsewhere."""
        return replace(self, xy=(self.xy.reshape(-1, 2) + np.array([x, y])).reshape(self.xy.shape))
