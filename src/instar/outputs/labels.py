"""Labels: the classes of one image, the likeliest first, with their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.json_values import as_numbers, as_texts
from instar.outputs.arrays import floats, put
from instar.outputs.output import OutputDefaults, Row, Schema
from instar.outputs.sides import other_side
from instar.warp import Size, Warp


@dataclass(frozen=True, slots=True, eq=False)
class Labels(OutputDefaults):
    """What a classifier says of one image, or what a dataset says it shows.

    `classes` are different names, the likeliest first; `scores` (N,) are 0 to 1. A classifier of a thousand classes
    need not return them all: its best ten say enough.
    """

    classes: tuple[str, ...]
    scores: npt.NDArray[np.float32]

    kind: ClassVar[str] = "labels"
    relation: ClassVar[str | None] = "class_kept"
    suite: ClassVar[str | None] = "labels"
    placed: ClassVar[bool] = False
    accepts: ClassVar[tuple[type, ...]] = (dict,)
    json_fields: ClassVar[Mapping[str, bool]] = {"classes": True, "scores": False}
    columns: ClassVar[Schema] = {"classes": pl.List(pl.String), "scores": pl.List(pl.Float32)}

    def __post_init__(self) -> None:
        put(self, classes=tuple(str(name) for name in self.classes), scores=floats(self.scores, "scores"))
        if self.scores.shape != (len(self.classes),):
            raise ValueError(f"{len(self.classes)} classes need as many scores, got shape {self.scores.shape}")
        if not np.isfinite(self.scores).all() or ((self.scores < 0) | (self.scores > 1)).any():
            raise ValueError("a score is not a number from 0 to 1; give probabilities, e.g. the softmax of logits")
        if len(set(self.classes)) < len(self.classes):
            twice = next(name for name, count in Counter(self.classes).items() if count > 1)
            raise ValueError(f"classes are different names, and {twice!r} is there twice")

    @classmethod
    def from_scores(
        cls, classes: Sequence[str], scores: npt.ArrayLike | None = None, *, top: int | None = None
    ) -> Labels:
        """From classes and their scores in any order; no scores means 1 each. `top` keeps the best ones.

        >>> Labels.from_scores(["cat", "dog", "bus"], [0.1, 0.7, 0.2], top=2).classes
        ('dog', 'bus')
        """
        names = [str(name) for name in classes]
        values = np.ones(len(names), np.float32) if scores is None else floats(scores, "scores")
        if values.shape != (len(names),):
            raise ValueError(f"{len(names)} classes need as many scores, got shape {values.shape}")
        order = np.argsort(-values, kind="stable")[:top]
        return cls(tuple(names[int(place)] for place in order), values[order])

    def __len__(self) -> int:
        return len(self.classes)

    def warped(self, warp: Warp) -> Labels:
        """What an image shows stays what it is, wherever it is carried; in a mirror left and right are exchanged."""
        return self.mirrored(self.classes) if warp.mirrors else self

    def mirrored(self, names: Collection[str]) -> Labels:
        """What the mirrored image shows: of `turn left` and `turn right` the other one, where `names` has both."""
        exchanged = tuple(other_side(name, names) for name in self.classes)
        return self if exchanged == self.classes else Labels(exchanged, self.scores)

    def confident(self, confidence: float) -> Labels:
        keep = self.scores >= confidence
        names = [name for name, kept in zip(self.classes, keep, strict=True) if kept]
        return self if keep.all() else Labels.from_scores(names, self.scores[keep])

    def score_of(self, name: str) -> float:
        """The score of a class; 0 where it is not named."""
        return float(self.scores[self.classes.index(name)]) if name in self.classes else 0.0

    def says(self) -> str:
        best = zip(self.classes[:3], self.scores[:3], strict=True)
        return ", ".join(f"{name} ({score:.2f})" for name, score in best) or "no class"

    def sizes(self) -> Mapping[str, int]:
        return {"classes": len(self), "characters in a name": max(map(len, self.classes), default=0)}

    def to_json(self) -> dict[str, object]:
        return {"classes": list(self.classes), "scores": self.scores.tolist()}

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Labels:
        classes, scores = as_texts(fields["classes"], "classes"), fields.get("scores")
        if scores is None:
            return cls.from_scores(classes)
        return cls.from_scores(classes, as_numbers(scores, "scores", (len(classes),), "a number for each class"))

    def row(self) -> Row:
        return {"classes": list(self.classes), "scores": self.scores}

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Labels:
        return cls.from_scores(list(row["classes"] or ()), np.asarray(row["scores"], np.float32))

    @classmethod
    def stored_bytes(cls, header: Row) -> pl.Expr:
        return pl.col("scores").list.len().cast(pl.Int64).fill_null(0) * 36

    @classmethod
    def accept(cls, answer: object, input: Input) -> Labels:
        """An instance, or scores by class: `{"cat": 0.9, "dog": 0.1}`."""
        if isinstance(answer, cls):
            return answer
        if isinstance(answer, dict):
            return cls.from_scores(list(answer), list(answer.values()))
        raise TypeError(f"expected Labels (see Labels.from_scores) or scores by class, got {type(answer).__name__}")


OUTPUT = Labels
