"""Spatial transformations: nothing but their warps."""

from __future__ import annotations

from typing import Literal

from instar.spelling import Parameter
from instar.transforms.family import Family
from instar.warp import Size, Warp

__all__ = ["FAMILIES"]


def identity(size: Size) -> Warp:
    return Warp.identity(size)


def mirror(size: Size, *, axis: Literal["h", "v", "both"]) -> Warp:
    return Warp.mirror(size, axis)


FAMILIES = (
    Family("identity", "spatial", "spatial", identity,
           help="Nothing changes; predicted anew, it measures the system's own noise."),
    Family("mirror", "spatial", "spatial", mirror,
           (Parameter("axis", "choice", choices=("h", "v", "both"), help="h exchanges left and right"),),
           help="Mirrored along one axis or both; h and v exchange left and right landmarks, both does not."),
)
