"""Segmentation: a class for every cell of a grid that covers the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.json_values import as_texts
from instar.outputs.cells import carried_cells, cells_from_json, cells_to_json, png_of_cells
from instar.outputs.output import OutputDefaults, Row, Schema
from instar.outputs.sides import other_side
from instar.outputs.zones import Zones
from instar.scene import decode_classes
from instar.shapes import Shape
from instar.warp import Size, Warp

Cells = npt.NDArray[np.uint8]
UNKNOWN = 255
"""The class of a cell of which nobody knows what it shows: it was carried in from outside the image."""
# fmt: off
CLASS_COLOURS = (
    (0, 114, 178), (213, 94, 0), (160, 215, 130), (204, 121, 167), (86, 180, 233), (210, 210, 214), (136, 34, 85),
    (68, 50, 160), (120, 70, 20),
)
# fmt: on
"""The colours of classes in their order, again from the first where there are more: told apart with any colour vision,
from each other and from the yellow of what a verdict is about."""


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation(OutputDefaults):
    """What a segmenter says of one image: `cells` (h, w) of uint8 are places in `names`, on the system's own grid.

    `warp` carries the grid, whose cells count as pixels, to the image. 255 is unknown.
    """

    cells: Cells
    names: tuple[str, ...]
    warp: Warp

    kind: ClassVar[str] = "segmentation"
    relation: ClassVar[str | None] = "class_overlap"
    suite: ClassVar[str | None] = "segmentation"
    json_fields: ClassVar[Mapping[str, bool]] = {"cells": True, "names": True}
    columns: ClassVar[Schema] = {"cells": pl.Binary, "grid_warp": pl.List(pl.Float64)}
    apart: ClassVar[tuple[str, ...]] = ("cells",)

    def __post_init__(self) -> None:
        if self.cells.ndim != 2 or self.cells.dtype != np.uint8 or 0 in self.cells.shape:
            raise ValueError(f"cells are a uint8 array (h, w), got {self.cells.dtype} {self.cells.shape}")
        if not self.names or len(set(self.names)) < len(self.names) or len(self.names) > UNKNOWN:
            raise ValueError(f"names are 1 to {UNKNOWN} different texts, got {', '.join(self.names) or 'none'}")
        known = self.cells[self.cells != UNKNOWN]
        if known.size and int(known.max()) >= len(self.names):
            raise ValueError(f"a cell is of class {int(known.max())}, and there are {len(self.names)} names")

    @classmethod
    def from_classes(cls, cells: npt.ArrayLike, names: Sequence[str], *, size: Size | None = None) -> Segmentation:
        """From a class map of any size that covers the whole image; `size` is the image's, the map's own if not given.

        >>> Segmentation.from_classes([[0, 1], [1, 1]], ["road", "car"], size=(20, 20)).share("car")
        0.75
        """
        array = np.ascontiguousarray(cells)
        whole = array.ndim == 2 and array.dtype.kind in "iu" and array.size > 0
        if not whole or array.min() < 0 or array.max() > UNKNOWN:
            raise ValueError(f"a class map is (h, w) of whole numbers from 0 to 255, got {array.dtype} {array.shape}")
        grid = (array.shape[1], array.shape[0])
        small = array.astype(np.uint8)
        small.setflags(write=False)
        return cls(small, tuple(str(name) for name in names), Warp.resize(grid, size or grid))

    def share(self, name: str) -> float:
        """How many of the known cells are of a class, 0 to 1."""
        known = self.cells != UNKNOWN
        return float((self.cells[known] == self.names.index(name)).mean()) if known.any() else 0.0

    def warped(self, warp: Warp) -> Segmentation:
        """Only the grid's place changes: nothing is resampled. A mirror exchanges classes of the left and the right."""
        cells = self.cells
        if warp.mirrors:
            numbers = [self.names.index(other_side(name, self.names)) for name in self.names]
            cells = np.array([*numbers, *range(len(numbers), 256)], np.uint8)[cells]
        return Segmentation(cells, self.names, self.warp.then(warp))

    def onto(self, other: Segmentation) -> Cells:
        """The classes at the cells of another grid: that of the nearest cell, unknown outside."""
        return carried_cells(self.cells, self.warp.then(other.warp.inverse))

    def shapes(self, target: str | None = None) -> list[Shape]:
        """The outlines of every class in its colour, or of the target's alone, with their names."""
        shapes: list[Shape] = []
        for name, colour in self.class_colours(self.header()).items():
            if target not in (None, "whole", name):
                continue
            rings = _rings((self.cells == self.names.index(name)).astype(np.uint8))
            if rings:
                xy = np.concatenate([each for ring in rings for each in (_GAP, ring)][1:])
                shapes.append(Shape("polygon", self.warp.points(xy), name, colour))
                shapes.append(Shape("text", self.warp.points(max(rings, key=len)[[0]]), name, colour))
        return shapes

    @classmethod
    def class_colours(cls, header: Row) -> Mapping[str, tuple[int, int, int]]:
        names = header.get("names", ())  # of a run in which nothing was answered nobody knows them
        return {name: CLASS_COLOURS[n % len(CLASS_COLOURS)] for n, name in enumerate(names)}

    def facts(self) -> Mapping[str, float]:
        return {name: self.share(name) for name in self.names}

    def sizes(self) -> Mapping[str, int]:
        return {"cells in the class map": self.cells.size, "characters in a name": max(map(len, self.names))}

    def to_json(self) -> dict[str, object]:
        return {"cells": cells_to_json(self.cells), "names": list(self.names)}

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Segmentation:
        """From a class map as a PNG in base64, on any grid that covers the image, and the names of its classes."""
        cells = cells_from_json(fields["cells"], "cells", cls.kind, None)
        return cls.from_classes(cells, as_texts(fields["names"], "names"), size=frame)

    def header(self) -> Row:
        return {"kind": self.kind, "names": list(self.names)}

    def row(self) -> Row:
        numbers = np.array([*self.warp.matrix.ravel(), *self.warp.target], np.float64)
        return {"cells": png_of_cells(self.cells), "grid_warp": numbers}

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Segmentation:
        cells = decode_classes(row["cells"])
        *matrix, width, height = row["grid_warp"]
        size = (cells.shape[1], cells.shape[0])
        warp = Warp(np.reshape(matrix, (3, 3)), size, (int(width), int(height)))
        return cls(cells, tuple(header["names"]), warp)

    @classmethod
    def accept(cls, answer: object, input: Input) -> Segmentation:
        """An instance, also one whose image size was not known, or the zones of a segmenter."""
        if isinstance(answer, Zones):
            return _of_zones(Zones.accept(answer, input))
        if not isinstance(answer, cls):
            raise TypeError(f"expected a Segmentation (see Segmentation.from_classes), got {type(answer).__name__}")
        if answer.warp.target == input.size:
            return answer
        return cls.from_classes(answer.cells, answer.names, size=input.size)


_GAP = np.full((1, 2), np.nan)


def _rings(mask: Cells) -> list[npt.NDArray[np.float64]]:
    """The outlines of what is in a mask, and of its holes."""
    outlines, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    return [outline.reshape(-1, 2).astype(np.float64) + 0.5 for outline in outlines if len(outline) > 2]


def _of_zones(zones: Zones) -> Segmentation:
    """Zones as classes: a value in several zones is of the one that covers fewest values; one in none is unknown."""
    names = tuple(zones.names)
    table = np.full(256, UNKNOWN, np.uint8)
    for name in sorted(names, key=lambda name: -len(zones.names[name])):
        table[list(zones.names[name])] = names.index(name)
    return Segmentation.from_classes(np.asarray(cv2.LUT(zones.labels, table)), names)


OUTPUT = Segmentation
