"""Subjects: where what was found is, whatever it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.floating]


def subject_frame(counts: npt.NDArray[np.int64], boxes: Floats, scores: Floats) -> pl.DataFrame:
    """The subjects of many outputs, so many of each, one after another: `row`, `x0`, `y0`, `x1`, `y1`, `score`."""
    places = {name: boxes[:, number].astype(np.float64) for number, name in enumerate(("x0", "y0", "x1", "y1"))}
    return pl.DataFrame(
        {
            "row": np.repeat(np.arange(len(counts), dtype=np.uint32), counts),
            **places,
            "score": scores.astype(np.float64),
        }
    )
