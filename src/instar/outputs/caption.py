"""Caption: what an image shows, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.json_values import as_number, as_object, as_text, as_texts
from instar.outputs.detections import Detections
from instar.outputs.heat import HEAT_COLUMNS, HeatMap, heat_of
from instar.outputs.output import OutputDefaults, Row, Schema
from instar.shapes import Shape
from instar.warp import Size, Warp

_TEXT = "the text of a caption"


@dataclass(frozen=True, slots=True, eq=False)
class Caption(OutputDefaults):
    """What a captioner says of one image, or what people say of it (one caption a line).

    `score` is how sure it is. `attention` is where it looked. `detections` are those that the words were made of,
    for a captioner that has such; both are drawn beside the caption.
    """

    text: str
    score: float | None = None
    attention: HeatMap | None = None
    detections: Detections | None = None
    cells: npt.NDArray[np.float32] | None = None
    """Attention over the whole frame whose size is not known yet; `accept` makes it the attention."""

    kind: ClassVar[str] = "caption"
    relation: ClassVar[str | None] = "objects"
    recorded: ClassVar[tuple[str, ...]] = ("objects", "numbers")
    suite: ClassVar[str | None] = "captions"
    placed: ClassVar[bool] = False
    accepts: ClassVar[tuple[type, ...]] = (str,)
    json_fields: ClassVar[Mapping[str, bool]] = {"text": True, "score": False, "attention": False, "detections": False}
    columns: ClassVar[Schema] = {
        "caption": pl.String,
        "score": pl.Float32,
        **HEAT_COLUMNS,
        "detections_boxes": pl.List(pl.Float32),
        "detections_labels": pl.List(pl.String),
        "detections_scores": pl.List(pl.Float32),
    }
    apart: ClassVar[tuple[str, ...]] = ("map",)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        score: float | None = None,
        attention: npt.ArrayLike | None = None,
        detections: Detections | None = None,
    ) -> Caption:
        """From words, whose white space is put in order; `attention` (h, w) is spread over the whole frame. No words
        are an answer too: the captioner has nothing to say.

        >>> Caption.from_text(" a dog  on a bench\\n").text
        'a dog on a bench'
        """
        if score is not None and not math.isfinite(score):
            raise ValueError(f"the score of a caption is a finite number, not {score}")
        cells = None if attention is None else np.asarray(attention, np.float32)
        return cls(" ".join(text.split()), score, detections=detections, cells=cells)

    @classmethod
    def from_texts(cls, texts: list[str]) -> Caption:
        """Several captions of one image, as datasets have them.

        >>> Caption.from_texts(["a dog", "one dog"]).texts
        ('a dog', 'one dog')
        """
        if not texts:
            raise ValueError("there is no caption")
        if not all(text.strip() for text in texts):
            raise ValueError("the caption is empty")
        return cls("\n".join(" ".join(text.split()) for text in texts))

    @property
    def texts(self) -> tuple[str, ...]:
        """Its captions: one of a system, several of a dataset."""
        return tuple(self.text.split("\n"))

    def warped(self, warp: Warp) -> Caption:
        return replace(
            self,
            attention=None if self.attention is None else self.attention.warped(warp),
            detections=None if self.detections is None else self.detections.warped(warp),
        )

    def confident(self, confidence: float) -> Caption:
        return self if self.detections is None else replace(self, detections=self.detections.confident(confidence))

    def shapes(self, target: str | None = None) -> list[Shape]:
        """Where it looked and what the words were made of; the words themselves are what it `says`."""
        return ([] if self.attention is None else [self.attention.shape()]) + (
            [] if self.detections is None else self.detections.shapes()
        )

    def says(self) -> str:
        return self.text

    def sizes(self) -> Mapping[str, int]:
        return {
            "characters in the caption": len(self.text),
            **({} if self.attention is None else self.attention.sizes()),
            **({} if self.detections is None else self.detections.sizes()),
        }

    def to_json(self) -> dict[str, object]:
        return {
            "text": self.text if len(self.texts) == 1 else list(self.texts),
            "score": self.score,
            "attention": None if self.attention is None else self.attention.to_json(),
            "detections": None if self.detections is None else self.detections.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Caption:
        """From a text; as truth also from a list of texts."""
        text, score = fields["text"], fields.get("score")
        attention, detections = fields.get("attention"), fields.get("detections")
        several = truth and isinstance(text, list)
        texts = as_texts(text, _TEXT) if several else [as_text(text, _TEXT)]
        caption = cls.from_texts(texts) if truth else cls.from_text(texts[0])
        return cls(
            caption.text,
            None if score is None else as_number(score, "score"),
            None if attention is None else HeatMap.from_json(attention, "attention", frame),
            None
            if detections is None
            else Detections.from_json(as_object(detections, "detections", Detections.json_fields), frame),
        )

    def row(self) -> Row:
        boxes = {} if self.detections is None else self.detections.row()
        return {
            "caption": self.text,
            **({} if self.score is None else {"score": self.score}),
            **({} if self.attention is None else self.attention.row()),
            **{f"detections_{name}": boxes[name] for name in ("boxes", "labels", "scores") if boxes},
        }

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Caption:
        detections = None
        if row.get("detections_labels"):  # where nothing was detected, the words were made of nothing
            detections = Detections.from_xyxy(
                np.asarray(row["detections_boxes"], np.float32).reshape(-1, 4),
                list(row["detections_labels"]),
                np.asarray(row["detections_scores"], np.float32),
            )
        return cls(row["caption"], row.get("score"), heat_of(row), detections)

    @classmethod
    def accept(cls, answer: object, input: Input) -> Caption:
        if isinstance(answer, str):
            return cls.from_text(answer)
        if not isinstance(answer, cls):
            raise TypeError(f"expected a Caption (see Caption.from_text) or a string, got {type(answer).__name__}")
        if answer.cells is None:
            return answer
        height, width = answer.cells.shape if answer.cells.ndim == 2 else (1, 1)
        return replace(answer, cells=None, attention=HeatMap.of(answer.cells, Warp.resize((width, height), input.size)))


OUTPUT = Caption
