"""Caption: what a picture shows, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.outputs.detections import Detections
from instar.outputs.heat import HeatMap, heat_of
from instar.outputs.marks import Mark
from instar.shapes import Shape
from instar.warp import Warp

__all__ = ["OUTPUT", "Caption"]


@dataclass(frozen=True, slots=True, eq=False)
class Caption:
    """What a captioner says of one picture, or what a person said (one caption a line).

    `score` is how sure it is. `attention` is where it looked. `behind` are the detections that the words were made of,
    for a captioner that has such; both are drawn beside the caption.
    """

    text: str
    score: float | None = None
    attention: HeatMap | None = None
    behind: Detections | None = None
    cells: npt.NDArray[np.float32] | None = None
    """Attention over the whole frame whose size is not known yet; `accept` makes it the attention."""

    kind: ClassVar[str] = "caption"
    answers: ClassVar[str] = "image"
    relation: ClassVar[str | None] = "objects"
    suite: ClassVar[str | None] = "deeptest"
    has_marks: ClassVar[bool] = False
    need: ClassVar[str | None] = None
    columns: ClassVar[Mapping[str, Any]] = {
        "caption": pl.String,
        "score": pl.Float32,
        "map": pl.Binary,
        "map_size": pl.List(pl.Float32),
        "map_warp": pl.List(pl.Float64),
        "behind_boxes": pl.List(pl.Float32),
        "behind_labels": pl.List(pl.String),
        "behind_scores": pl.List(pl.Float32),
    }
    apart: ClassVar[tuple[str, ...]] = ("map",)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        score: float | None = None,
        attention: npt.ArrayLike | None = None,
        behind: Detections | None = None,
    ) -> Caption:
        """From words, whose white space is put in order; `attention` (h, w) is spread over the whole frame.

        >>> Caption.from_text(" a dog  on a bench\\n").text
        'a dog on a bench'
        """
        if score is not None and not math.isfinite(score):
            raise ValueError(f"the score of a caption is a finite number, not {score}")
        cells = None if attention is None else np.asarray(attention, np.float32)
        return cls(_worded(text), score, behind=behind, cells=cells)

    @classmethod
    def from_texts(cls, texts: list[str]) -> Caption:
        """Several captions of one picture, as datasets have them.

        >>> Caption.from_texts(["a dog", "one dog"]).said
        ('a dog', 'one dog')
        """
        if not texts:
            raise ValueError("there is no caption")
        return cls("\n".join(map(_worded, texts)))

    @property
    def said(self) -> tuple[str, ...]:
        """Its captions: one of a system, several of a dataset."""
        return tuple(self.text.split("\n"))

    def warped(self, warp: Warp) -> Caption:
        return replace(
            self,
            attention=None if self.attention is None else self.attention.warped(warp),
            behind=None if self.behind is None else self.behind.warped(warp),
        )

    def confident(self, confidence: float) -> Caption:
        return self if self.behind is None else replace(self, behind=self.behind.confident(confidence))

    def shapes(self, target: str | None = None) -> list[Shape]:
        """Where it looked and what stood behind the words; the words themselves are what it `says`."""
        return ([] if self.attention is None else [self.attention.shape()]) + (
            [] if self.behind is None else self.behind.shapes()
        )

    def marks(self) -> list[Mark]:
        return []

    def says(self) -> str:
        return self.text

    def facts(self) -> Mapping[str, float]:
        return {}

    def header(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = {"caption": self.text}
        if self.score is not None:
            row["score"] = self.score
        if self.attention is not None:
            row.update(
                map=self.attention.packed(),
                map_size=np.array(self.attention.size, np.float32),
                map_warp=self.attention.warp.matrix.ravel(),
            )
        if self.behind is not None:
            row.update(
                behind_boxes=self.behind.boxes.ravel(),
                behind_labels=list(self.behind.labels),
                behind_scores=self.behind.scores,
            )
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any], header: Mapping[str, Any]) -> Caption:
        behind = None
        if row.get("behind_labels"):  # where nothing was found, nothing stood behind the words
            behind = Detections.from_xyxy(
                np.asarray(row["behind_boxes"], np.float32).reshape(-1, 4),
                list(row["behind_labels"]),
                np.asarray(row["behind_scores"], np.float32),
            )
        return cls(row["caption"], row.get("score"), heat_of(row), behind)

    @classmethod
    def accept(cls, answer: object, given: Input) -> Caption:
        if isinstance(answer, str):
            return cls.from_text(answer)
        if not isinstance(answer, cls):
            raise TypeError(f"expected a Caption (see Caption.from_text) or a string, got {type(answer).__name__}")
        if answer.cells is None:
            return answer
        height, width = answer.cells.shape if answer.cells.ndim == 2 else (1, 1)
        return replace(answer, cells=None, attention=HeatMap.of(answer.cells, Warp.resize((width, height), given.size)))

    @classmethod
    def subjects(cls, rows: pl.DataFrame, header: Mapping[str, Any]) -> None:
        """Words have no place in the picture."""


def _worded(text: str) -> str:
    words = " ".join(text.split())
    if not words:
        raise ValueError("the caption is empty")
    return words


OUTPUT = Caption
