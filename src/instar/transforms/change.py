"""Change: what a transformation did. All that relations know of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.warp import Size, Warp, warp_pixels

Fact = str | int | float | bool
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Change:
    """Where everything went, which regions were touched, which labels came or went, and plain facts.

    `regions` are boxes in the follow-up's coordinates, `mask` (H, W) are the cells of the follow-up that became
    something else; `added` and `removed` are class names or the annotation ids of objects.
    """

    warp: Warp
    regions: tuple[Box, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    mask: npt.NDArray[np.bool_] | None = None

    columns: ClassVar[Mapping[str, pl.DataType | type[pl.DataType]]] = {
        "width": pl.Int32,
        "height": pl.Int32,
        "warp": pl.List(pl.Float64),
        "regions": pl.List(pl.Float32),
        "added": pl.List(pl.String),
        "removed": pl.List(pl.String),
        "facts": pl.String,
        "mask": pl.Binary,
    }
    apart: ClassVar[tuple[str, ...]] = ("mask",)
    """Binary columns that are large and often equal: stored once, by the hash of their content."""

    @classmethod
    def none(cls, size: Size) -> Change:
        """Nothing changed in a picture of this size."""
        return _none(size)

    def then(self, after: Change) -> Change:
        """This change followed by another."""
        regions = self.regions
        if regions and not after.warp.is_identity:
            moved = after.warp.boxes(regions)
            regions = tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in moved)
        mask = self.mask
        if mask is not None and not after.warp.is_identity:
            mask = warp_pixels(mask.astype(np.uint8), after.warp, "nearest").astype(bool)
        if after.mask is not None:
            mask = after.mask if mask is None else mask | after.mask
        return Change(
            self.warp.then(after.warp),
            regions + after.regions,
            self.added + after.added,
            self.removed + after.removed,
            {**self.facts, **after.facts},
            mask,
        )

    def row(self) -> dict[str, object]:
        """As columns; what is empty is left out, and read back as empty."""
        width, height = self.warp.target
        row: dict[str, object] = {"width": width, "height": height, "warp": self.warp.matrix.ravel()}
        if self.regions:
            row["regions"] = [side for box in self.regions for side in box]
        if self.added:
            row["added"] = list(self.added)
        if self.removed:
            row["removed"] = list(self.removed)
        if self.facts:
            row["facts"] = json.dumps(dict(self.facts), ensure_ascii=False)
        if self.mask is not None:
            row["mask"] = zlib.compress(np.packbits(self.mask).tobytes(), 1)
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any], source: Size) -> Change:
        sides = [float(side) for side in row.get("regions") or ()]
        regions = tuple((a, b, c, d) for a, b, c, d in np.reshape(sides, (-1, 4)).tolist())
        warp = Warp(np.reshape(row["warp"], (3, 3)), source, (row["width"], row["height"]))
        facts = json.loads(row["facts"]) if row.get("facts") else {}
        return cls(warp, regions, tuple(row.get("added") or ()), tuple(row.get("removed") or ()), facts, mask_of(row))


@lru_cache(maxsize=1024)
def _none(size: Size) -> Change:
    """Most follow-ups stay where they were: one immutable change per size serves them all."""
    return Change(Warp.identity(size))


def mask_of(row: Mapping[str, Any]) -> npt.NDArray[np.bool_] | None:
    """The changed cells of a stored row; None where it has none."""
    if not row.get("mask"):
        return None
    width, height = row["width"], row["height"]
    bits = np.unpackbits(np.frombuffer(zlib.decompress(row["mask"]), np.uint8), count=width * height)
    return bits.reshape(height, width).astype(bool)
