"""Zones: a class for every pixel, as a segmenter or a dataset's masks give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.json_values import as_list, as_text, short
from instar.outputs.cells import carried_cells, cells_from_json, cells_to_json, png_of_cells
from instar.outputs.output import OutputDefaults, Row, Schema
from instar.scene import decode_classes
from instar.shapes import Shape
from instar.warp import Size, Warp


@dataclass(frozen=True, slots=True, eq=False)
class Zones(OutputDefaults):
    """Named zones of one image: `labels` (H, W) of uint8, and per zone name the label values it covers.

    A value in no zone belongs to none of them.
    """

    labels: npt.NDArray[np.uint8]
    names: Mapping[str, tuple[int, ...]]

    kind: ClassVar[str] = "zones"
    need: ClassVar[str | None] = "zones"
    tested_as: ClassVar[str | None] = "segmentation"
    json_fields: ClassVar[Mapping[str, bool]] = {"names": True, "labels": True}
    columns: ClassVar[Schema] = {"png": pl.Binary}

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        if labels.ndim != 2 or labels.dtype != np.uint8:
            raise ValueError(f"zone labels are a uint8 array (H, W), got {labels.dtype} {labels.shape}")
        labels = labels.view()
        labels.setflags(write=False)
        object.__setattr__(self, "labels", labels)

    @property
    def size(self) -> Size:
        return self.labels.shape[1], self.labels.shape[0]

    def mask(self, zone: str) -> npt.NDArray[np.uint8]:
        """The zone as 0 and 255."""
        table = np.zeros(256, np.uint8)
        table[list(self.names[zone])] = 255
        return np.asarray(cv2.LUT(self.labels, table), dtype=np.uint8)

    def shares(self) -> dict[str, float]:
        """How much of the image each zone takes, 0 to 1."""
        counts = cv2.calcHist([self.labels], [0], None, [256], [0, 256]).ravel()
        return {name: float(counts[list(values)].sum()) / self.labels.size for name, values in self.names.items()}

    def warped(self, warp: Warp) -> Zones:
        """Carried by a warp; what comes from outside the source is in no zone (255)."""
        return Zones(carried_cells(self.labels, warp), self.names)

    def shapes(self, target: str | None = None) -> list[Shape]:
        width, height = self.size
        return [
            Shape("heat", np.array([[0.0, 0, width, height]]), text=name, heat=(self.mask(name) > 0).astype(np.float32))
            for name in self.names
        ]

    def facts(self) -> Mapping[str, float]:
        return self.shares()

    def to_json(self) -> dict[str, object]:
        return {"names": self._listed_names(), "labels": cells_to_json(self.labels)}

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Zones:
        """From a PNG in base64, and the label values of each zone."""
        names = fields["names"]
        if not isinstance(names, dict):
            raise ValueError(
                f'names is {short(names)}; it takes the label values of each zone, as in {{"skin": [1, 2]}}'
            )
        labels = cells_from_json(fields["labels"], "labels", cls.kind, frame)
        return cls(labels, {as_text(name, "a zone's name"): _values(values, name) for name, values in names.items()})

    def header(self) -> Row:
        return {"kind": self.kind, "names": self._listed_names()}

    def _listed_names(self) -> dict[str, list[int]]:
        return {name: list(values) for name, values in self.names.items()}

    def row(self) -> Row:
        return {"png": png_of_cells(self.labels)}

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Zones:
        return cls(decode_classes(row["png"]), {name: tuple(v) for name, v in header["names"].items()})

    @classmethod
    def accept(cls, answer: object, input: Input) -> Zones:
        if not isinstance(answer, cls):
            raise TypeError(f"expected Zones, got {type(answer).__name__}")
        if answer.size != input.size:
            raise ValueError(f"the zones are {answer.size}, the image is {input.size}")
        return answer


def _values(value: object, zone: str) -> tuple[int, ...]:
    values = tuple(one for one in as_list(value, zone, "label values from 0 to 255") if type(one) is int)
    if len(values) != len(as_list(value, zone, "")) or not all(0 <= one <= 255 for one in values):
        raise ValueError(f"{zone} is {short(value)}; it takes a list of label values from 0 to 255")
    return values


def segmenter_words() -> str:
    """How to get the segmenter of all zones, and no step more than it takes here; with its verb."""
    pull = "`instar models pull selfie-multiclass`"
    return f"{pull} gets one" if find_spec("ai_edge_litert") else f"`pip install 'instar[litert]'` and {pull} get one"


OUTPUT = Zones
