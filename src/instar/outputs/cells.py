"""Cells: a number for every pixel, as PNG; in JSON that is base64."""

from __future__ import annotations

import struct
from base64 import b64encode

import cv2
import numpy as np
import numpy.typing as npt

from instar.json_values import as_png
from instar.reading import too_many_pixels
from instar.scene import decode_classes
from instar.warp import Size, Warp, warp_pixels

Cells = npt.NDArray[np.uint8]


def png_of_cells(cells: Cells) -> bytes:
    return cv2.imencode(".png", cells)[1].tobytes()


def carried_cells(cells: Cells, warp: Warp) -> Cells:
    """Cells carried by a warp, each place with the nearest one; what comes from outside is 255."""
    if warp.is_identity:
        return cells
    covered = warp_pixels(np.full_like(cells, 1), warp, "nearest")
    return np.where(covered > 0, warp_pixels(cells, warp, "nearest"), np.uint8(255))


def cells_to_json(cells: Cells) -> str:
    return b64encode(png_of_cells(cells)).decode("ascii")


def cells_from_json(value: object, what: str, whole: str, frame: Size | None) -> Cells:
    """Cells as large as the frame, from a PNG in base64; `whole` is what they are part of, in a message."""
    png = as_png(value, what)
    width, height = struct.unpack(">II", png[16:24].ljust(8, b"\0"))
    # said before it is decoded: a few bytes can claim to be gigabytes
    if frame is not None and (width, height) != frame:
        raise ValueError(f"the {whole} are {(width, height)}, the input is {frame}")
    if reason := too_many_pixels(width, height):
        raise ValueError(f"the {whole} are {reason}")
    try:
        return decode_classes(png)
    except cv2.error as error:
        raise ValueError(f"{what} cannot be decoded: {error.err}") from None
