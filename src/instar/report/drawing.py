"""Shapes drawn on images. Knows no task.

Shapes are in continuous pixel coordinates; OpenCV draws with pixel centres at integers. `_fixed` is where
one becomes the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.report.lettering import DARK, WHITE, Colour, Pixels, blend, written
from instar.shapes import Shape, Side
from instar.warp import Warp, warp_pixels

Style = Literal["filled", "hollow"]
Floats = npt.NDArray[np.float64]

# Okabe and Ito's colours, which people with any colour vision tell apart.
BLUE, ORANGE = (86, 180, 233), (240, 130, 0)
_PALETTE: tuple[Colour, ...] = (ORANGE, BLUE, (0, 158, 115), (204, 121, 167), (240, 228, 66), (0, 114, 178))

_SIDES: dict[Style, dict[Side, Colour]] = {
    "filled": {"left": (0, 120, 200), "right": (230, 100, 0), "middle": (190, 190, 196)},
    "hollow": {"left": (150, 210, 255), "right": (255, 205, 120), "middle": WHITE},
}
"""Blue is left and orange is right, deep where a system answered and pale where that was expected: an exchange is a
blue line in an orange band. Landmarks on the left are round, those on the right square."""

_SHIFT = 4
_FAR = float(1 << 24)


def draw_shapes(
    image: Image, shapes: Sequence[Shape], *, style: Style = "filled", colour: Colour | None = None, scale: float = 1.0
) -> Image:
    """The image, enlarged by `scale`, with the shapes on it; sizes follow the picture's.

    `filled` is for what a system answered, `hollow` for what was expected of it: wider, so that both are seen
    where they agree. `colour` wins over the shapes' own; shapes that have a side are in its colour. What is not a
    number is left out.

    >>> grey = Image(np.full((20, 30, 3), 128, np.uint8))
    >>> draw_shapes(grey, [Shape("points", np.array([[15.0, 10.0]]))], scale=2).size
    (60, 40)
    """
    if style not in ("filled", "hollow"):
        raise ValueError(f"style is filled or hollow, got {style!r}")
    warp = scaling(image, scale)
    canvas = scaled(image, warp)
    draw(canvas, shapes, warp, style, colour)
    return Image(canvas)


def scaling(image: Image, scale: float) -> Warp:
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale is a number above 0, got {scale}")
    return Warp.scale(image.size, scale, scale)


def scaled(image: Image, warp: Warp) -> Pixels:
    resampling: Literal["area", "linear"] = "area" if sum(warp.target) < sum(warp.source) else "linear"
    return np.array(warp_pixels(image.pixels, warp, resampling), dtype=np.uint8, order="C")


def line_width(canvas: Pixels) -> float:
    """Pixels that a line is wide on a picture of this size."""
    return max(1.0, math.sqrt(canvas.shape[0] * canvas.shape[1]) / 260)


def draw(
    canvas: Pixels, shapes: Sequence[Shape], warp: Warp, style: Style, colour: Colour | None, unit: float | None = None
) -> None:
    """Draw in place; `warp` leads from the shapes' coordinates to the canvas. A line is about `unit` wide."""
    unit = unit or line_width(canvas)
    heats = 0
    for shape in shapes:
        paint = colour or shape.colour or (WHITE if style == "hollow" else ORANGE)
        if shape.side is not None:
            paint = _SIDES[style][shape.side]
        xy = np.where(np.isfinite(shape.xy), shape.xy, np.nan).astype(np.float64)
        if shape.form == "heat":
            paint = colour or shape.colour or _PALETTE[heats % len(_PALETTE)]
            _heat(canvas, shape, warp.boxes(xy.reshape(-1, 4)), style, paint, unit)
            heats += 1
            continue
        if shape.form == "lines":
            ends = warp.points(xy.reshape(-1, 2, 2))
            _lines(canvas, ends[np.isfinite(ends).all((1, 2))], style, paint, unit)
        elif shape.form == "boxes":
            boxes = warp.boxes(xy.reshape(-1, 4))
            _boxes(canvas, boxes[np.isfinite(boxes).all(1)], style, paint, unit)
        else:
            points = warp.points(xy.reshape(-1, 2))
            if shape.form == "polygon":
                _polygon(canvas, points, style, paint, unit)
                continue
            points = points[np.isfinite(points).all(1)]
            if not len(points):
                continue
            if shape.form == "points":
                _points(canvas, points, style, paint, unit, square=shape.side == "right")
            else:
                _label(canvas, shape.text, points[0], style, paint, unit)


def _fixed(xy: Floats) -> npt.NDArray[np.int32]:
    """OpenCV's coordinates: pixel centres at integers, fixed point with `_SHIFT` bits of fraction."""
    return np.asarray(np.rint((np.clip(xy, -_FAR, _FAR) - 0.5) * (1 << _SHIFT)), dtype=np.int32)


def _whole(width: float) -> int:
    return max(1, round(width))


def _strokes(width: float, unit: float, style: Style, colour: Colour) -> tuple[tuple[Colour, int], ...]:
    """A line of any colour is seen on any ground by its dark rim; a hollow one also under a filled one."""
    rim = max(1.0, 0.4 * unit) if width > 1 else 0.5
    inner, outer = _whole(width), _whole(width + 2 * rim)
    if style == "hollow":
        inner = outer + 2 * _whole(0.35 * width)
        outer = inner + _whole(2 * rim)
    return (DARK, outer), (colour, inner)


def _lines(canvas: Pixels, ends: Floats, style: Style, colour: Colour, unit: float) -> None:
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    # Short lines are thinner, or hands and faces would drown in their own edges.
    widths = np.clip(lengths * 0.15, 0.5 * unit, 1.15 * unit)
    strokes = [_strokes(width, unit, style, colour) for width in widths.tolist()]
    places = _fixed(ends).tolist()
    for layer in (0, 1):
        for (a, b), stroke in zip(places, strokes, strict=True):
            paint, thickness = stroke[layer]
            cv2.line(canvas, a, b, paint, thickness, cv2.LINE_AA, _SHIFT)


def _points(canvas: Pixels, points: Floats, style: Style, colour: Colour, unit: float, *, square: bool = False) -> None:
    radii = _radii(points, unit)
    height, width = canvas.shape[:2]
    reach = 6 * unit
    near = ((points > -reach) & (points < (width + reach, height + reach))).all(1)
    rim = max(1, round(0.4 * unit))
    small = 0.75 * unit + 0.6
    one = 1 << _SHIFT
    for (x, y), radius in zip(_fixed(points[near]).tolist(), radii[near].tolist(), strict=True):
        if style == "hollow" and radius > small:
            ring = radius * 1.6 + 1.5 * rim
            stroke = _whole(min(0.9 * unit, radius * 0.6))
            _dot(canvas, x, y, round(ring * one), DARK, stroke + 2 * rim, square)
            _dot(canvas, x, y, round(ring * one), colour, stroke, square)
        else:
            # In a crowd there is no room for rings: a larger dot under a smaller one must do.
            radius *= 1.7 if style == "hollow" else 1.0
            edge = rim if radius > small else 0.4
            _dot(canvas, x, y, round((radius + edge) * one), DARK, -1, square)
            _dot(canvas, x, y, round(radius * one), colour, -1, square)


def _dot(canvas: Pixels, x: int, y: int, radius: int, colour: Colour, thickness: int, square: bool) -> None:
    """A landmark, in OpenCV's fixed-point numbers: round, or a square of about the same area."""
    if square:
        half = round(0.9 * radius)
        cv2.rectangle(canvas, (x - half, y - half), (x + half, y + half), colour, thickness, cv2.LINE_AA, _SHIFT)
    else:
        cv2.circle(canvas, (x, y), radius, colour, thickness, cv2.LINE_AA, _SHIFT)


def _radii(points: Floats, unit: float) -> Floats:
    """A radius per point: smaller where points crowd, as on a face or a hand."""
    most, least = 2.1 * unit, max(0.7, 0.35 * unit)
    count = len(points)
    if count < 2:
        return np.full(count, most)
    if count > 3000:
        return np.full(count, least)
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    rank = min(12, count - 1)  # not the nearest: a few landmarks close together are not a crowd
    return np.clip(min(0.3, 0.75 / rank) * np.partition(apart, rank, axis=1)[:, rank], least, most)


def _boxes(canvas: Pixels, boxes: Floats, style: Style, colour: Colour, unit: float) -> None:
    for box in _fixed(boxes).tolist():
        for paint, thickness in _strokes(1.2 * unit, unit, style, colour):
            cv2.rectangle(canvas, box[:2], box[2:], paint, thickness, cv2.LINE_AA, _SHIFT)


def _polygon(canvas: Pixels, corners: Floats, style: Style, colour: Colour, unit: float) -> None:
    gaps = np.flatnonzero(np.isnan(corners).all(1))
    rings = [ring[np.isfinite(ring).all(1)] for ring in np.split(corners, gaps)]
    places = [_fixed(ring) for ring in rings if len(ring)]
    if style == "filled" and len(corners) > 2:
        tinted = canvas.copy()
        cv2.fillPoly(tinted, places, colour, cv2.LINE_AA, _SHIFT)
        cv2.addWeighted(tinted, 0.35, canvas, 0.65, 0, canvas)
    for paint, thickness in _strokes(1.1 * unit, unit, style, colour):
        cv2.polylines(canvas, places, True, paint, thickness, cv2.LINE_AA, _SHIFT)


def _heat(canvas: Pixels, shape: Shape, boxes: Floats, style: Style, colour: Colour, unit: float) -> None:
    if shape.heat is None or not shape.heat.size or not len(boxes):
        return
    heat = np.nan_to_num(np.asarray(shape.heat, np.float32), nan=0, posinf=0, neginf=0).clip(0)
    box = boxes[0]
    rows, columns = heat.shape
    wide, high = (box[2] - box[0]) / columns, (box[3] - box[1]) / rows
    most = float(heat.max())
    if not np.isfinite(box).all() or min(wide, high) < 1e-5 or most == 0:
        return
    placed = Warp(
        np.array([[wide, 0, box[0]], [0, high, box[1]], [0, 0, 1]]), (columns, rows), (canvas.shape[1], canvas.shape[0])
    )
    share = warp_pixels(heat / most, placed)
    if style == "filled":
        cover = 0.55 * share[..., None]
        canvas[:] = np.rint(canvas * (1 - cover) + np.array(colour, np.float32) * cover)
    else:
        outlines, _ = cv2.findContours((share >= 0.5).astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
        for paint, width in ((DARK, 3 * unit), (colour, 1.5 * unit)):
            cv2.drawContours(canvas, outlines, -1, paint, _whole(width), cv2.LINE_AA)
    total = float(share.sum())
    if shape.text and total > 0:
        x = float(share.sum(0) @ (np.arange(share.shape[1]) + 0.5)) / total
        y = float(share.sum(1) @ (np.arange(share.shape[0]) + 0.5)) / total
        _label(canvas, shape.text, np.array([x, y]), style, colour, unit)


def _label(canvas: Pixels, text: str, at: Floats, style: Style, colour: Colour, unit: float) -> None:
    """A text on a plate of its colour, pushed into the frame: above its place, the hollow one below it."""
    size = max(7.0, 3.6 * unit)
    mask = written(text, size)
    pad = max(2, round(size * 0.3))
    high, wide = mask.shape[0] + 2 * pad, mask.shape[1] + 2 * pad
    height, width = canvas.shape[:2]
    room_above = at[1] - high >= 0
    row = (-1 if room_above else 0) + (1.4 if style == "hollow" else 0)
    x = round(float(np.clip(at[0], 0, max(0, width - wide))))
    y = round(float(np.clip(at[1] + row * high, 0, max(0, height - high))))
    plate = canvas[y : y + high, x : x + wide]
    plate[:] = colour
    bright = sum(c * w for c, w in zip(colour, (0.3, 0.59, 0.11), strict=True))
    ink = DARK if bright > 110 else WHITE
    if style == "hollow":
        cv2.rectangle(plate, (0, 0), (plate.shape[1] - 1, plate.shape[0] - 1), DARK, _whole(0.5 * unit))
    blend(canvas, mask, x + pad, y + pad, ink)
