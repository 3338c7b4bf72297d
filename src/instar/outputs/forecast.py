"""Forecast: sampled futures of a person and, where a system has one, a probability over cells of the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.json_values import as_numbers, depth
from instar.outputs.arrays import floats, put
from instar.outputs.heat import HEAT_COLUMNS, Box, HeatMap, heat_of
from instar.outputs.output import OutputDefaults, Row, Schema
from instar.scene import Scene
from instar.shapes import Shape
from instar.warp import Size, Warp


@dataclass(frozen=True, slots=True, eq=False)
class Forecast(OutputDefaults):
    """What a trajectory predictor says of one scene, or what really happened (one future).

    `futures` (K, T, 2) are K sampled paths of T positions in pixels of the map; they may leave it. `heat` is the
    probability map, None where the system has none.
    """

    futures: npt.NDArray[np.float32]
    heat: HeatMap | None = None
    cells: npt.NDArray[np.float32] | None = None
    """A probability map over the whole frame whose size is not known yet; `accept` makes it the heat."""

    kind: ClassVar[str] = "forecast"
    answers: ClassVar[str] = "scene"
    relation: ClassVar[str | None] = "wvc"
    suite: ClassVar[str | None] = "forecasts"
    json_fields: ClassVar[Mapping[str, bool]] = {"futures": True, "map": False}
    columns: ClassVar[Schema] = {"futures": pl.List(pl.Float32), "samples": pl.Int32, **HEAT_COLUMNS}
    apart: ClassVar[tuple[str, ...]] = ("map",)

    def __post_init__(self) -> None:
        put(self, futures=_checked(self.futures))

    @classmethod
    def from_array(
        cls, futures: npt.ArrayLike, probability: npt.ArrayLike | None = None, *, box: Box | None = None
    ) -> Forecast:
        """From sampled paths (K, T, 2), or one (T, 2), in pixels; and what is proportional to a probability (h, w).

        `box` is the part of the frame that the probability map covers (x0, y0, x1, y1); the whole frame without it.

        >>> Forecast.from_array(np.zeros((20, 12, 2))).futures.shape
        (20, 12, 2)
        """
        array = floats(futures, "futures")
        if probability is None:
            return cls(array)
        cells = np.asarray(probability)
        if cells.ndim != 2 or 0 in cells.shape:
            raise ValueError(f"a probability map is (h, w), got shape {cells.shape}")
        if box is None:
            return cls(array, None, np.asarray(cells, np.float32))
        return cls(array, HeatMap.over_box(cells, box))  # the frame is filled in by `accept`

    def __len__(self) -> int:
        return len(self.futures)

    @property
    def medoid(self) -> npt.NDArray[np.float64]:
        """The future (T, 2) that is nearest to all others."""
        paths = self.futures.reshape(len(self.futures), -1).astype(np.float64)
        gaps = [np.linalg.norm(path - paths, axis=-1).sum() for path in paths]
        return np.asarray(self.futures[int(np.argmin(gaps))], np.float64)

    def warped(self, warp: Warp) -> Forecast:
        return Forecast(
            np.asarray(warp.points(self.futures), np.float32), None if self.heat is None else self.heat.warped(warp)
        )

    def shapes(self, target: str | None = None) -> list[Shape]:
        shapes = [] if self.heat is None else [self.heat.shape()]
        steps = self.futures.astype(np.float64)
        lines = np.concatenate([steps[:, :-1], steps[:, 1:]], 2).reshape(-1, 4)
        return [*shapes, Shape("lines", lines), Shape("points", steps[:, -1])]

    def sizes(self) -> Mapping[str, int]:
        heat = {} if self.heat is None else self.heat.sizes()
        return {"futures": len(self), "positions in all futures": self.futures.size // 2, **heat}

    def to_json(self) -> dict[str, object]:
        return {"futures": self.futures.tolist(), "map": None if self.heat is None else self.heat.to_json()}

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Forecast:
        """From paths, or one path, and where there is one the `map` of a probability."""
        one_path = depth(fields["futures"]) == 2
        shape = (None, 2) if one_path else (None, None, 2)
        futures = as_numbers(fields["futures"], "futures", shape, "paths, each a list of positions [x, y]")
        heat = fields.get("map")
        return cls(_checked(futures), None if heat is None else HeatMap.from_json(heat, "map", frame))

    def row(self) -> Row:
        heat = {} if self.heat is None else self.heat.row()
        return {"futures": self.futures.ravel(), "samples": len(self.futures), **heat}

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Forecast:
        futures = np.asarray(row["futures"], np.float32).reshape(row["samples"], -1, 2)
        return cls(futures, heat_of(row))

    @classmethod
    def accept(cls, answer: object, input: Input) -> Forecast:
        made = answer if isinstance(answer, cls) else None
        if made is None:
            if not isinstance(answer, np.ndarray | list | tuple):
                raise TypeError(
                    f"expected a Forecast (see Forecast.from_array) or futures (K, T, 2), got {type(answer).__name__}"
                )
            made = cls.from_array(answer)
        futures = _checked(made.futures)
        steps = futures.shape[1]
        if isinstance(input, Scene) and steps != input.steps:
            raise ValueError(f"the scene asks for {input.steps} positions, its futures have {steps}")
        heat = made.heat
        if made.cells is not None:
            height, width = made.cells.shape
            heat = HeatMap.of(made.cells, Warp.resize((width, height), input.size))
        elif heat is not None and heat.warp.target != input.size:
            heat = HeatMap(heat.cells, Warp(heat.warp.matrix, heat.warp.source, input.size))
        return cls(futures, heat)


def _checked(futures: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Futures (K, T, 2) of finite numbers; one path (T, 2) is a set of one."""
    array = floats(futures, "futures")
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] != 2 or 0 in array.shape:
        raise ValueError(
            f"futures are (K, T, 2) as x, y in pixels, with at least one path of one position; got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"{int((~np.isfinite(array).all((1, 2))).sum())} of {len(array)} futures have positions "
            "that are not finite numbers"
        )
    return array


@dataclass(frozen=True, slots=True)
class Paths:
    """The futures of many stored forecasts."""

    values: npt.NDArray[np.float64]
    starts: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Paths:
        lengths = frame["futures"].list.len().to_numpy().astype(np.int64)
        values = frame["futures"].explode().to_numpy() if lengths.sum() else np.zeros(0)
        return cls(
            values.astype(np.float64),
            np.concatenate([[0], np.cumsum(lengths)]),
            frame["samples"].to_numpy().astype(np.int64),
        )

    def __getitem__(self, row: int) -> npt.NDArray[np.float64]:
        """The futures (K, T, 2) of one row."""
        return self.values[self.starts[row] : self.starts[row + 1]].reshape(self.samples[row], -1, 2)


OUTPUT = Forecast
