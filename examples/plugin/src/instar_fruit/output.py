"""Count: how many fruits of each sort are in an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from instar import Input, OutputDefaults, Warp

__all__ = ["Count"]


@dataclass(frozen=True, slots=True)
class Count(OutputDefaults):
    """How many fruits of each sort there are."""

    numbers: Mapping[str, int]

    kind: ClassVar[str] = "count"
    relation: ClassVar[str | None] = "same_count"
    suite: ClassVar[str | None] = "fruit"
    placed: ClassVar[bool] = False
    json_fields: ClassVar[Mapping[str, bool]] = {"numbers": True}
    columns: ClassVar[Mapping[str, Any]] = {"sorts": pl.List(pl.String), "counts": pl.List(pl.Float32)}

    def warped(self, warp: Warp) -> Count:
        """A number has no place."""
        return self

    def says(self) -> str:
        return ", ".join(f"{number} × {sort}" for sort, number in self.numbers.items()) or "no fruit"

    def to_json(self) -> dict[str, object]:
        return {"numbers": dict(self.numbers)}

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: object = None, *, truth: bool = False) -> Count:
        return cls.accept(fields["numbers"], None)

    def row(self) -> dict[str, Any]:
        return {"sorts": list(self.numbers), "counts": np.array(list(self.numbers.values()), np.float32)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], header: Mapping[str, Any]) -> Count:
        return cls({sort: round(number) for sort, number in zip(row["sorts"], row["counts"], strict=True)})

    @classmethod
    def accept(cls, answer: object, input: Input | None) -> Count:
        if isinstance(answer, cls):
            return answer
        if isinstance(answer, dict) and all(isinstance(number, int) and number >= 0 for number in answer.values()):
            return cls({str(sort): number for sort, number in answer.items()})
        raise TypeError(f"expected a Count, or whole numbers by sort, got {answer!r}")
