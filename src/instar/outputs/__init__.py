"""What systems say. Every kind of output can be warped, stored and drawn; a new kind is one file here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from instar.outputs.detections import Detections
from instar.outputs.poses import PoseBatch, Poses
from instar.outputs.shapes import Shape
from instar.outputs.zones import Zones
from instar.spelling import unknown
from instar.warp import Size, Warp

__all__ = ["KINDS", "Detections", "Output", "PoseBatch", "Poses", "Shape", "Zones", "output_kind"]


class Output(Protocol):
    """What every kind of output can do."""

    kind: ClassVar[str]
    columns: ClassVar[Mapping[str, Any]]
    """The Parquet columns of one stored output, with their polars types."""

    def warped(self, warp: Warp) -> Output: ...
    def shapes(self, target: str | None = None) -> list[Shape]:
        """What to draw of it; of a verdict's target alone where that is a part of the answer."""
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
    def accept(cls, answer: object, size: Size) -> Output:
        """An answer checked at the door; raises where it is not what this kind can be made of."""
        ...


KINDS: dict[str, type[Output]] = {kind.kind: kind for kind in (Detections, Poses, Zones)}


def output_kind(name: str) -> type[Output]:
    if name not in KINDS:
        raise unknown("output kind", name, KINDS)
    return KINDS[name]
