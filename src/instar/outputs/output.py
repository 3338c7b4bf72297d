"""Output: the contract of what systems say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import polars as pl

from instar.case import Input
from instar.outputs.marks import Mark
from instar.shapes import Shape
from instar.warp import Warp

__all__ = ["Output"]


class Output(Protocol):
    """What every kind of output can do."""

    kind: ClassVar[str]
    """Its name, in rules, tables and run folders."""
    answers: ClassVar[str]
    """The kind of input that it is an answer to."""
    relation: ClassVar[str | None]
    """Its own equivariance: the relation that a rule without `=>` means. None: every rule names its relation."""
    suite: ClassVar[str | None]
    """The suite for it when nobody names one."""
    has_marks: ClassVar[bool]
    """Whether it finds subjects or objects at places in the image."""
    need: ClassVar[str | None]
    """The need that an output of this kind meets: as ground truth, as a provider's answer, or as the source's
    answer."""
    columns: ClassVar[Mapping[str, Any]]
    """The Parquet columns of one stored output, with their polars types."""
    apart: ClassVar[tuple[str, ...]]
    """Binary columns that are large and often equal: stored once, by the hash of their content."""

    def warped(self, warp: Warp) -> Output: ...
    def confident(self, confidence: float) -> Output:
        """Only what scores at least this; itself where nothing has a score."""
        ...

    def shapes(self, target: str | None = None) -> list[Shape]:
        """What to draw of it; of a verdict's target alone where that is a part of the answer."""
        ...

    def marks(self) -> list[Mark]:
        """Where each subject or object is; nothing for a kind that has no places (`has_marks` is False)."""
        ...

    def says(self) -> str | None:
        """What it says in words; None for a kind that is drawn."""
        ...

    def facts(self) -> Mapping[str, float]:
        """Plain facts of it, to slice results by later."""
        ...

    def header(self) -> dict[str, Any]:
        """What is the same for all outputs of a run; stored once, in its manifest."""
        ...

    def row(self) -> dict[str, Any]:
        """Its columns; numbers as arrays of their column's own type."""
        ...

    @classmethod
    def from_row(cls, row: Mapping[str, Any], header: Mapping[str, Any]) -> Output: ...
    @classmethod
    def accept(cls, answer: object, given: Input) -> Output:
        """An answer to a given input, checked at the door; raises where it is not what this kind can be made of."""
        ...

    @classmethod
    def subjects(cls, rows: pl.DataFrame, header: Mapping[str, Any]) -> pl.DataFrame | None:
        """What many stored outputs found, one row each: the number of the output's `row`, the box `x0`, `y0`, `x1`,
        `y1` in pixels, and the `score`. None for a kind that does not find subjects.
        """
        ...
