"""Detections: boxes with a class and a score, and a mask where there is one."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.json_values import as_list, as_numbers, as_texts
from instar.outputs.arrays import floats, put
from instar.outputs.cells import cells_from_json, cells_to_json
from instar.outputs.marks import Mark
from instar.outputs.output import OutputDefaults, Row, Schema
from instar.outputs.subjects import subject_frame
from instar.shapes import Shape
from instar.warp import Size, Warp, warp_pixels


@dataclass(frozen=True, slots=True, eq=False)
class Detections(OutputDefaults):
    """What a detector says of one input, or what a dataset says is in it.

    `boxes` is (N, 4) as x0, y0, x1, y1 in pixels; `scores` are 0 to 1. `ids` are the dataset's annotation ids;
    `masks` (N, H, W) of bool are there where somebody drew them, a person or an instance segmenter.
    """

    boxes: npt.NDArray[np.float32]
    labels: tuple[str, ...]
    scores: npt.NDArray[np.float32]
    ids: tuple[str, ...] = ()
    masks: npt.NDArray[np.bool_] | None = None

    kind: ClassVar[str] = "detections"
    relation: ClassVar[str | None] = "detections"
    suite: ClassVar[str | None] = "detections"
    has_marks: ClassVar[bool] = True
    need: ClassVar[str | None] = "objects"
    # fmt: off
    json_fields: ClassVar[Mapping[str, bool]] = {
        "boxes": True, "labels": True, "scores": False, "ids": False, "masks": False,
    }
    # fmt: on
    columns: ClassVar[Schema] = {
        "boxes": pl.List(pl.Float32),
        "labels": pl.List(pl.String),
        "scores": pl.List(pl.Float32),
        "ids": pl.List(pl.String),
        "masks": pl.Binary,
    }

    def __post_init__(self) -> None:
        """What is no detection must not be taken for one that found nothing."""
        boxes = floats(self.boxes, "boxes")
        put(
            self,
            boxes=boxes.reshape(-1, 4) if boxes.size == 0 else boxes,
            labels=tuple(str(label) for label in self.labels),
            scores=floats(self.scores, "scores"),
            ids=tuple(self.ids),
            masks=None if self.masks is None else np.asarray(self.masks, bool),
        )
        count = len(self.boxes)
        if self.boxes.ndim != 2 or self.boxes.shape[1] != 4:
            raise ValueError(f"boxes are (N, 4) as x0, y0, x1, y1, got shape {self.boxes.shape}")
        if len(self.labels) != count or self.scores.shape != (count,) or (self.ids and len(self.ids) != count):
            raise ValueError(
                f"{count} boxes need as many labels, scores and ids, "
                f"got {len(self.labels)}, {self.scores.size} and {len(self.ids)}"
            )
        if not np.isfinite(self.boxes).all() or not np.isfinite(self.scores).all():
            raise ValueError("a box or a score is not a finite number")
        if (below := self.boxes[:, 2:] < self.boxes[:, :2]).any():
            corners = "If these are x1, y1, x0, y0, exchange the corners. " if below.all() else ""
            raise ValueError(
                "a box has x1 < x0 or y1 < y0; boxes are x0, y0, x1, y1. "
                f"{corners}Where a model gives x, y, width and height, add x to the width and y to the height; where "
                "its x and y are the middle of the box, take half of the width and height off them, and add it"
            )
        if len(set(self.ids)) != len(self.ids):
            twice = next(name for name, count in Counter(self.ids).items() if count > 1)
            raise ValueError(f"ids tell objects apart, and {twice!r} is that of several")
        if self.masks is not None and (self.masks.ndim != 3 or len(self.masks) != count):
            raise ValueError(f"masks are (N, H, W), one for each of the {count} boxes, got shape {self.masks.shape}")

    @classmethod
    def from_xyxy(
        cls,
        boxes: npt.ArrayLike,
        labels: Sequence[str],
        scores: npt.ArrayLike | None = None,
        *,
        ids: Sequence[str] = (),
        masks: npt.ArrayLike | None = None,
    ) -> Detections:
        """From corner coordinates in pixels; no scores means 1.

        >>> len(Detections.from_xyxy([[0, 0, 10, 20]], ["dog"], [0.9]))
        1
        """
        corners = floats(boxes, "boxes")
        sure = np.ones(len(corners), np.float32) if scores is None else floats(scores, "scores")
        return cls(corners, tuple(labels), sure, tuple(ids), None if masks is None else np.asarray(masks, bool))

    def __len__(self) -> int:
        return len(self.boxes)

    def warped(self, warp: Warp) -> Detections:
        masks = self.masks
        if masks is not None and len(masks):
            masks = np.stack([warp_pixels(m.astype(np.uint8), warp, "nearest").astype(bool) for m in masks])
        return Detections.from_xyxy(warp.boxes(self.boxes), self.labels, self.scores, ids=self.ids, masks=masks)

    def confident(self, confidence: float) -> Detections:
        keep = np.flatnonzero(self.scores >= confidence)
        if len(keep) == len(self):
            return self
        labels, ids = [self.labels[i] for i in keep], [self.ids[i] for i in keep] if self.ids else ()
        masks = None if self.masks is None else self.masks[keep]
        return Detections.from_xyxy(self.boxes[keep], labels, self.scores[keep], ids=ids, masks=masks)

    def shapes(self, target: str | None = None) -> list[Shape]:
        shapes = [Shape("boxes", self.boxes.astype(np.float64))]
        for mask in self.masks if self.masks is not None else ():
            outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
            shapes += [Shape("polygon", outline.reshape(-1, 2) + 0.5) for outline in outlines if len(outline) > 2]
        for box, label, score in zip(self.boxes, self.labels, self.scores, strict=True):
            shapes.append(Shape("text", box[None, :2].astype(np.float64), f"{label} {score:.2f}"))
        return shapes

    def marks(self) -> list[Mark]:
        return [
            Mark(label, box.reshape(2, 2).astype(np.float64), float(score), np.array([score]))
            for box, label, score in zip(self.boxes, self.labels, self.scores, strict=True)
        ]

    def inside(self, cells: npt.NDArray[np.bool_], options: Row) -> float:
        """Of the middle of each box, half as wide and half as high: there an object is, whatever its shape."""
        height, width = cells.shape
        shares = [0.0]
        for box, score in zip(self.boxes.astype(np.float64), self.scores, strict=True):
            middle, quarter = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 4
            x0, y0 = np.clip(np.floor(middle - quarter), 0, (width - 1, height - 1)).astype(int)
            x1, y1 = np.clip(np.ceil(middle + quarter), (x0 + 1, y0 + 1), (width, height)).astype(int)
            if score >= options.get("confidence", 0):
                shares.append(float(cells[y0:y1, x0:x1].mean()))
        return max(shares)

    def sizes(self) -> Mapping[str, int]:
        return {
            "objects": len(self),
            "pixels in all masks": 0 if self.masks is None else self.masks.size,
            "characters in a name": max(map(len, (*self.labels, *self.ids)), default=0),
        }

    def to_json(self) -> dict[str, object]:
        masks = None if self.masks is None else [cells_to_json(mask.astype(np.uint8) * 255) for mask in self.masks]
        return {
            "boxes": self.boxes.tolist(),
            "labels": list(self.labels),
            "scores": self.scores.tolist(),
            "ids": list(self.ids) or None,
            "masks": masks,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Detections:
        """From boxes and labels, and where they are there scores, ids and masks: PNGs in base64, 0 outside."""
        boxes = as_numbers(fields["boxes"], "boxes", (None, 4), "boxes [x0, y0, x1, y1] in pixels")
        scores, ids, masks = fields.get("scores"), fields.get("ids"), fields.get("masks")
        cells = [
            cells_from_json(mask, "a mask", "masks", frame) > 0
            for mask in ([] if masks is None else as_list(masks, "masks", "PNGs in base64, one for each box"))
        ]
        if any(mask.shape != cells[0].shape for mask in cells):
            raise ValueError("the masks are of different sizes")
        return cls.from_xyxy(
            boxes,
            as_texts(fields["labels"], "labels"),
            None if scores is None else as_numbers(scores, "scores", (len(boxes),), "a number for each box"),
            ids=() if ids is None else as_texts(ids, "ids"),
            masks=None if masks is None else cells or np.zeros((0, *(frame or (0, 0))[::-1])),
        )

    def row(self) -> Row:
        return {
            "boxes": self.boxes.ravel(),
            "labels": list(self.labels),
            "scores": self.scores,
            "ids": list(self.ids),
            "masks": None if self.masks is None else _packed(self.masks),
        }

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Detections:
        boxes = np.asarray(row["boxes"], np.float32).reshape(-1, 4)
        masks = _unpacked(row["masks"], len(boxes)) if row.get("masks") else None
        return cls.from_xyxy(
            boxes, list(row["labels"]), np.asarray(row["scores"], np.float32), ids=list(row["ids"]), masks=masks
        )

    @classmethod
    def accept(cls, answer: object, input: Input) -> Detections:
        if isinstance(answer, cls):
            if answer.masks is not None and answer.masks.shape[1:] != input.size[::-1]:
                height, width = answer.masks.shape[1:]
                raise ValueError(f"the masks are {width}×{height}, the image is {input.size[0]}×{input.size[1]}")
            return answer
        raise TypeError(f"expected Detections (see Detections.from_xyxy), got {type(answer).__name__}")

    @classmethod
    def stored_bytes(cls, header: Row) -> pl.Expr:
        masks = pl.col("masks").bin.size().cast(pl.Int64).fill_null(0)
        return pl.col("scores").list.len().cast(pl.Int64).fill_null(0) * 80 + masks

    @classmethod
    def subject(cls, header: Row) -> str:
        return "object"

    @classmethod
    def subjects(cls, rows: pl.DataFrame, header: Row) -> pl.DataFrame:
        """Every object with its box."""
        counts = rows["scores"].list.len().fill_null(0).to_numpy().astype(np.int64)
        full = rows.filter(pl.col("scores").list.len() > 0)  # an exploded empty list would be a null
        return subject_frame(
            counts, full["boxes"].explode().to_numpy().reshape(-1, 4), full["scores"].explode().to_numpy()
        )


def _packed(masks: npt.NDArray[np.bool_]) -> bytes:
    """Height and width, then the bits of all masks."""
    return np.array(masks.shape[1:], "<i4").tobytes() + zlib.compress(np.packbits(masks).tobytes(), 1)


def _unpacked(data: bytes, count: int) -> npt.NDArray[np.bool_]:
    height, width = np.frombuffer(data[:8], "<i4").tolist()
    bits = np.unpackbits(np.frombuffer(zlib.decompress(data[8:]), np.uint8), count=count * height * width)
    return bits.reshape(count, height, width).astype(bool)


OUTPUT = Detections
