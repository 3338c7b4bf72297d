"""Output: the contract of what systems say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.outputs.marks import Mark
from instar.shapes import Shape
from instar.warp import Size, Warp

Row: TypeAlias = Mapping[str, Any]
"""Values by name: the columns of a stored row, the options of a judging, what all outputs of a run have in common."""
Schema: TypeAlias = Mapping[str, pl.DataType | type[pl.DataType]]
"""Columns, with their polars types."""

UNPLACED = "what is said to be there has no place: all its coordinates are NaN"
"""What is stored beside an answer that is sure of something and does not say where it is."""


class Output(Protocol):
    """What every kind of output can do."""

    kind: ClassVar[str]
    """Its name, in rules, tables and run folders."""
    answers: ClassVar[str]
    """The kind of input that it is an answer to."""
    relation: ClassVar[str | None]
    """Its own equivariance: the relation that a rule without `=>` means. None: every rule names its relation."""
    recorded: ClassVar[tuple[str, ...]]
    """The relations that recorded follow-ups are judged by when nobody names a suite; none: its own equivariance."""
    suite: ClassVar[str | None]
    """The suite for it when nobody names one."""
    has_marks: ClassVar[bool]
    """Whether it finds subjects or objects at places in the image."""
    need: ClassVar[str | None]
    """The need that an output of this kind meets: as ground truth, as a provider's answer, or as the source's
    answer."""
    placed: ClassVar[bool]
    """Whether it says where things are: then it can be judged only where it is known where the input was carried."""
    tested_as: ClassVar[str | None]
    """The kind that a system of this kind is tested as, which accepts its answers; None: as what it is."""
    accepts: ClassVar[tuple[type, ...]]
    """The plain Python types that a function may return for it, and that mean no other kind."""
    json_fields: ClassVar[Mapping[str, bool]]
    """The fields of its JSON form, and whether each must be there. The first one tells the kind from others."""
    columns: ClassVar[Schema]
    """The Parquet columns of one stored output, with their polars types."""
    apart: ClassVar[tuple[str, ...]]
    """Binary columns that are large and often equal: stored once, by the hash of their content."""

    def warped(self, warp: Warp) -> Self: ...
    def confident(self, confidence: float) -> Self:
        """Only what scores at least this; itself where nothing has a score."""
        ...

    def shapes(self, target: str | None = None) -> list[Shape]:
        """What to draw of it; of a verdict's target alone where that is a part of the answer."""
        ...

    def marks(self) -> list[Mark]:
        """Where each subject or object is; nothing for a kind that has no places (`has_marks` is False)."""
        ...

    def inside(self, cells: npt.NDArray[np.bool_], options: Row) -> float:
        """The largest share of one thing that was found, by a judging's options, which lies in these cells (H, W) of
        the image: of the landmarks of a subject, of the middle of a box. 0 for a kind without places."""
        ...

    def says(self) -> str | None:
        """What it says in words; None for a kind that is drawn."""
        ...

    def remark(self) -> str | None:
        """What is odd about it though it is an answer, and is stored beside it; None of most."""
        ...

    def facts(self) -> Mapping[str, float]:
        """Plain facts of it, to slice results by later."""
        ...

    def sizes(self) -> Mapping[str, int]:
        """How much it holds of what is limited: the names are those of `LIMITS` in `outputs/limits.py`."""
        ...

    def to_json(self) -> dict[str, object]:
        """Its JSON form: `from_json` makes the same output of it."""
        ...

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Self:
        """From its JSON form, as programs, services and tables say it; raises ValueError, saying what is wrong.

        Needed fields are there, others may be None. `frame` is the size of the input where it is known. As `truth`,
        a kind may take more: several captions of one image.
        """
        ...

    def header(self) -> Row:
        """What is the same for all outputs of a run; stored once, in its manifest."""
        ...

    def row(self) -> Row:
        """Its columns; numbers as arrays of their column's own type."""
        ...

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Self: ...
    @classmethod
    def accept(cls, answer: object, input: Input) -> Self:
        """An answer to an input, checked at the door; raises where it is not what this kind can be made of."""
        ...

    @classmethod
    def suite_of(cls, header: Row) -> str | None:
        """The suite for outputs with this header when nobody names one: `suite`, unless the header says otherwise."""
        ...

    @classmethod
    def subject(cls, header: Row) -> str:
        """What one of those things is called that verdicts are about, before its number: person, hand, object; empty
        for a kind whose verdicts are about the whole input."""
        ...

    @classmethod
    def class_colours(cls, header: Row) -> Mapping[str, tuple[int, int, int]]:
        """The colour in which each class is drawn, by name; nothing for a kind whose colours do not tell classes."""
        ...

    @classmethod
    def stored_bytes(cls, header: Row) -> pl.Expr:
        """About how many bytes a stored output has, from columns that are quick to read."""
        ...

    @classmethod
    def subjects(cls, rows: pl.DataFrame, header: Row) -> pl.DataFrame | None:
        """What many stored outputs found, one row each: the number of the output's `row`, the box `x0`, `y0`, `x1`,
        `y1` in pixels, and the `score`. None for a kind that does not find subjects.
        """
        ...


class OutputDefaults:
    """What most kinds of output have in common, to inherit from: drawn, without facts, subjects or a low score."""

    __slots__ = ()

    kind: ClassVar[str]
    answers: ClassVar[str] = "image"
    relation: ClassVar[str | None] = None
    recorded: ClassVar[tuple[str, ...]] = ()
    suite: ClassVar[str | None] = None
    need: ClassVar[str | None] = None
    placed: ClassVar[bool] = True
    has_marks: ClassVar[bool] = False
    tested_as: ClassVar[str | None] = None
    accepts: ClassVar[tuple[type, ...]] = ()
    columns: ClassVar[Schema] = {}
    apart: ClassVar[tuple[str, ...]] = ()

    def confident(self, confidence: float) -> Self:
        return self

    def shapes(self, target: str | None = None) -> list[Shape]:
        return []

    def marks(self) -> list[Mark]:
        return []

    def inside(self, cells: npt.NDArray[np.bool_], options: Row) -> float:
        return 0.0

    def says(self) -> str | None:
        return None

    def remark(self) -> str | None:
        return None

    def facts(self) -> Mapping[str, float]:
        return {}

    def sizes(self) -> Mapping[str, int]:
        return {}

    def header(self) -> Row:
        return {"kind": self.kind}

    @classmethod
    def suite_of(cls, header: Row) -> str | None:
        return cls.suite

    @classmethod
    def subject(cls, header: Row) -> str:
        return ""

    @classmethod
    def subjects(cls, rows: pl.DataFrame, header: Row) -> pl.DataFrame | None:
        return None

    @classmethod
    def class_colours(cls, header: Row) -> Mapping[str, tuple[int, int, int]]:
        return {}

    @classmethod
    def stored_bytes(cls, header: Row) -> pl.Expr:
        return pl.sum_horizontal(_bytes(name, kind) for name, kind in cls.columns.items() if name not in cls.apart)


def _bytes(name: str, kind: pl.DataType | type[pl.DataType]) -> pl.Expr:
    column = pl.col(name)
    if isinstance(kind, pl.List):
        size = column.list.len() * (32 if kind.inner == pl.String else 8)
    elif kind == pl.String:
        size = column.str.len_bytes()
    elif kind == pl.Binary:
        size = column.bin.size()
    else:
        return pl.lit(8, pl.Int64)
    return size.cast(pl.Int64).fill_null(0)
