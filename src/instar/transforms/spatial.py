"""Spatial transformations: nothing but their warps."""

from __future__ import annotations

from typing import Literal

import numpy as np

from instar.case import Input
from instar.spelling import Parameter
from instar.transforms.change import Change
from instar.transforms.family import Needs, TransformationFamily
from instar.warp import Size, Warp


def stretch(size: Size, *, height: float, width: float) -> Warp:
    return Warp.scale(size, width, height)


def rotation(
    source: Input, needs: Needs, rng: np.random.Generator, *, degrees: float, centre: Literal["middle", "swapped"]
) -> tuple[Input, Change]:
    """Not of spatial form, because `swapped` declares another warp than the one it applies."""
    width, height = source.size
    if centre == "middle":
        warp = Warp.rotation(source.size, degrees)
        return source.warped(warp), Change(warp)
    applied = Warp.rotation(source.size, degrees, (height / 2, width / 2))
    to_pixels = np.diag([width, height, 1.0])
    unit = Warp.rotation((1, 1), degrees).matrix
    declared = Warp(to_pixels @ unit @ np.linalg.inv(to_pixels), source.size, source.size)
    return source.warped(applied), Change(declared)


def rescale(size: Size, *, factor: float) -> Warp:
    return Warp.scale(size, factor, factor)


def _factor(name: str, help: str) -> Parameter:
    return Parameter(name, "float", low=0, open_low=True, high=4, ordered=True, help=help)


# fmt: off
FAMILIES = (
    TransformationFamily("identity", "spatial", "spatial", Warp.identity,
        help="Nothing changes; predicted anew, it measures the system's own noise."),
    TransformationFamily("stretch", "spatial", "spatial", stretch,
        (_factor("height", "factor of the height"), _factor("width", "factor of the width")),
        help="Height and width times their factors, bilinear; the new sides are whole pixels."),
    TransformationFamily("mirror", "spatial", "spatial", Warp.mirror,
        (Parameter("axis", "choice", choices=("h", "v", "both"), help="h exchanges left and right"),),
        help="Mirrored along one axis or both; h and v exchange left and right landmarks, both does not. ⚠ MET-POSE's "
             "code exchanged them for both and not for v: mirror(v) => poses(handedness=kept), mirror(both) => "
             "poses(handedness=swapped)."),
    TransformationFamily("rotation", "spatial", "general", rotation, (
        Parameter("degrees", "float", low=-360, high=360, ordered=True, help="counter-clockwise as seen"),
        Parameter("centre", "choice", "middle", choices=("middle", "swapped"),
                  help="middle of the frame, or as MET-POSE's code had it"),
    ),
        help="Rotated about the middle in pixel space, same frame, black border. ⚠ centre=swapped is MET-POSE's code: "
             "the image turns about (H/2, W/2), landmarks in 0–1 coordinates about (0.5, 0.5), so that a right system "
             "fails on every image that is not square.", inputs=("image", "scene")),
    TransformationFamily("rotate90", "spatial", "spatial", Warp.rotate90,
        (Parameter("quarters", "int", low=1, high=3, help="quarter turns, counter-clockwise as seen"),),
        help="Turned by quarters with the frame, without resampling."),
    TransformationFamily("rescale", "spatial", "spatial", rescale, (_factor("factor", "of both sides"),),
        help="The whole input smaller or larger, bilinear; resolution shrinks by area."),
    TransformationFamily("shear", "spatial", "spatial", Warp.shear, (
        Parameter("x", "float", low=-1, open_low=True, high=1, open_high=True, ordered=True,
                  help="pixels to the right per pixel below the middle"),
        Parameter("y", "float", 0, low=-1, open_low=True, high=1, open_high=True, ordered=True,
                  help="pixels down per pixel right of the middle"),
    ), help="Sheared about the middle, same frame, black border."),
)
# fmt: on
