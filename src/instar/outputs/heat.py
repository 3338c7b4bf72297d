"""HeatMap: a probability over cells of the frame, on a grid of its own."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.json_values import as_numbers, as_object, short
from instar.outputs.output import Row, Schema
from instar.shapes import Shape
from instar.warp import Size, Warp, carried_mass, warp_pixels

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels."""
HEAT_COLUMNS: Schema = {"map": pl.Binary, "map_size": pl.List(pl.Float32), "map_warp": pl.List(pl.Float64)}
"""The columns of an output that may have a map."""


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """How probable it is that the person will be in each cell: `cells` (h, w) that sum to 1, on the system's own grid.

    `warp` carries the grid, whose cells count as pixels, to the frame.
    """

    cells: npt.NDArray[np.float64]
    warp: Warp

    @classmethod
    def of(cls, probability: npt.ArrayLike, warp: Warp) -> HeatMap:
        """Normalised, from anything proportional to a probability."""
        cells = np.array(probability, np.float64)
        if cells.ndim != 2 or 0 in cells.shape:
            raise ValueError(f"a probability map is (h, w), got shape {cells.shape}")
        if not np.isfinite(cells).all() or (cells < 0).any() or not cells.sum() > 0:
            raise ValueError("a probability map holds finite numbers from 0 up, and some of them are above 0")
        return cls(cells / cells.sum(), warp)

    @property
    def size(self) -> Size:
        return self.cells.shape[1], self.cells.shape[0]

    def warped(self, warp: Warp) -> HeatMap:
        """Only the grid's place changes: nothing is resampled."""
        return HeatMap(self.cells, self.warp.then(warp))

    def onto(self, other: HeatMap) -> npt.NDArray[np.float64]:
        """The mass that falls into each cell of another map's grid; what falls beside it is missing."""
        return carried_mass(self.cells, self.warp.then(other.warp.inverse))

    def share(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """How much of each cell is covered by a mask (H, W) of the frame, 0 to 1."""
        # only the part of the frame that the grid covers: a map may be a hundred times larger
        x0, y0, x1, y1 = self.warp.boxes([0, 0, *self.size])
        left, top = max(0, int(x0)), max(0, int(y0))
        part = mask[top : max(top, int(np.ceil(y1))), left : max(left, int(np.ceil(x1)))]
        if not part.any():
            return np.zeros(self.cells.shape)
        shift = np.array([[1.0, 0, left], [0, 1, top], [0, 0, 1]])
        back = Warp(self.warp.inverse.matrix @ shift, (part.shape[1], part.shape[0]), self.size)
        return np.clip(carried_mass(part, back) / abs(float(np.linalg.det(self.warp.matrix[:2, :2]))), 0, 1)

    def row(self) -> Row:
        """Its columns: √p as float16, compressed, and where the grid lies."""
        packed = zlib.compress(np.sqrt(self.cells).astype("<f2").tobytes(), 1)
        return {"map": packed, "map_size": np.array(self.size, np.float32), "map_warp": self.warp.matrix.ravel()}

    def sizes(self) -> Mapping[str, int]:
        return {"cells in the probability map": self.cells.size}

    def to_json(self) -> dict[str, object]:
        return {"probability": self.cells.tolist(), "warp": self.warp.matrix.tolist()}

    @classmethod
    def from_json(cls, value: object, what: str, frame: Size | None) -> HeatMap:
        """From numbers proportional to a probability, and the `box` or the `warp` that says where its cells lie."""
        fields = as_object(value, what, {"probability": True, "box": False, "warp": False})
        cells = as_numbers(fields["probability"], "probability", (None, None), "rows of equally many numbers")
        box = fields["box"]
        if fields["warp"] is not None:
            matrix = as_numbers(fields["warp"], "warp", (3, 3), "a matrix that carries the cells to the frame")
            return cls.of(cells, Warp(matrix, cells.shape[::-1], frame or (1, 1)))
        if box is None and frame is None:
            raise ValueError(
                f"{what} needs box, the part of the frame that it covers (x0, y0, x1, y1), where there is no width and "
                "height of the frame"
            )
        return cls.over_box(cells, [0, 0, *(frame or ())] if box is None else box, frame)

    @classmethod
    def over_box(cls, probability: npt.ArrayLike, box: object, frame: Size | None = None) -> HeatMap:
        """A map of a part of the frame (a `Box`); without a frame, of the smallest that holds it."""
        x0, y0, x1, y1 = as_numbers(box, "box", (4,), "x0, y0, x1, y1 in pixels").tolist()
        if x1 <= x0 or y1 <= y0:
            raise ValueError(f"box is {short(box)}; it takes x0, y0, x1, y1 with x0 < x1 and y0 < y1")
        height, width = np.shape(probability) if np.ndim(probability) == 2 else (1, 1)
        matrix = np.array([[(x1 - x0) / max(width, 1), 0, x0], [0, (y1 - y0) / max(height, 1), y0], [0, 0, 1]])
        return cls.of(probability, Warp(matrix, (width, height), frame or (max(1, round(x1)), max(1, round(y1)))))

    def shape(self) -> Shape:
        """Its heat over the box it covers in the frame."""
        x0, y0, x1, y1 = self.warp.boxes([0, 0, *self.size])
        linear = self.warp.matrix[:2, :2]
        sides = np.abs(linear) @ np.array(self.size, float) / np.sqrt(abs(np.linalg.det(linear)))
        wide, high = (max(1, round(side)) for side in sides)
        across = [wide / (x1 - x0), 0, -x0 * wide / (x1 - x0)]
        down = [0, high / (y1 - y0), -y0 * high / (y1 - y0)]
        box = Warp(np.array([across, down, [0, 0, 1]]), self.warp.target, (wide, high))
        heat = warp_pixels(self.cells.astype(np.float32), _snapped(self.warp.then(box)))
        strength = np.asarray(np.sqrt(heat / max(float(heat.max()), 1e-30)), np.float32)
        return Shape("heat", np.array([[x0, y0, x1, y1]]), heat=strength)


def _snapped(warp: Warp) -> Warp:
    """Rounding must not turn a flip into a resampling."""
    whole = np.rint(warp.matrix)
    return Warp(whole, warp.source, warp.target) if np.allclose(warp.matrix, whole, atol=1e-9) else warp


def heat_of(row: Row) -> HeatMap | None:
    """The probability map of a stored row; None where there is none."""
    if not row.get("map"):
        return None
    wide, high = (int(side) for side in row["map_size"])
    frame = (row.get("width") or 1, row.get("height") or 1)
    root = np.frombuffer(zlib.decompress(row["map"]), "<f2").astype(np.float64).reshape(high, wide)
    return HeatMap.of(root * root, Warp(np.reshape(row["map_warp"], (3, 3)), (wide, high), frame))
