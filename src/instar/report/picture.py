"""Pictures: images with shapes on them, alone, in pairs and on contact sheets. Knows no task.

Shapes are in continuous pixel coordinates; OpenCV draws with pixel centres at integers. `_fixed` is where
one becomes the other.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.files import place_file
from instar.image import Image
from instar.shapes import Shape
from instar.warp import Warp, warp_pixels

__all__ = ["Panel", "contact_sheet", "draw_shapes", "encoded", "pair_picture", "panel_picture", "write_png"]

Colour = tuple[int, int, int]
Style = Literal["filled", "hollow"]
Floats = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]

# Okabe and Ito's colours, which people with any colour vision tell apart.
BLUE, ORANGE = (86, 180, 233), (240, 130, 0)
_PALETTE: tuple[Colour, ...] = (ORANGE, BLUE, (0, 158, 115), (204, 121, 167), (240, 228, 66), (0, 114, 178))
WHITE, DARK, PAPER, INK, FAINT = (255, 255, 255), (20, 20, 24), (250, 250, 250), (28, 28, 32), (105, 105, 112)

_SHIFT = 4
_FAR = float(1 << 24)


# --- shapes ----------------------------------------------------------------------------------------


def draw_shapes(
    image: Image, shapes: Sequence[Shape], *, style: Style = "filled", colour: Colour | None = None, scale: float = 1.0
) -> Image:
    """The image, enlarged by `scale`, with the shapes on it; sizes follow the picture's.

    `filled` is for what a system said, `hollow` for what was expected of it: wider, so that both are seen
    where they agree. `colour` wins over the shapes' own. What is not a number is left out.

    >>> grey = Image(np.full((20, 30, 3), 128, np.uint8))
    >>> draw_shapes(grey, [Shape("points", np.array([[15.0, 10.0]]))], scale=2).size
    (60, 40)
    """
    if style not in ("filled", "hollow"):
        raise ValueError(f"style is filled or hollow, got {style!r}")
    warp = _scaling(image, scale)
    canvas = _scaled(image, warp)
    _draw(canvas, shapes, warp, style, colour)
    return Image(canvas)


def _scaling(image: Image, scale: float) -> Warp:
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale is a number above 0, got {scale}")
    return Warp.scale(image.size, scale, scale)


def _scaled(image: Image, warp: Warp) -> Pixels:
    resampling: Literal["area", "linear"] = "area" if sum(warp.target) < sum(warp.source) else "linear"
    return np.array(warp_pixels(image.pixels, warp, resampling), dtype=np.uint8, order="C")


def _draw(
    canvas: Pixels, shapes: Sequence[Shape], warp: Warp, style: Style, colour: Colour | None, unit: float | None = None
) -> None:
    """Draw in place; `warp` leads from the shapes' coordinates to the canvas. A line is about `unit` wide."""
    unit = unit or max(1.0, math.sqrt(canvas.shape[0] * canvas.shape[1]) / 260)
    heats = 0
    for shape in shapes:
        paint = colour or shape.colour or (WHITE if style == "hollow" else ORANGE)
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
            points = points[np.isfinite(points).all(1)]
            if not len(points):
                continue
            if shape.form == "points":
                _points(canvas, points, style, paint, unit)
            elif shape.form == "polygon":
                _polygon(canvas, points, style, paint, unit)
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


def _points(canvas: Pixels, points: Floats, style: Style, colour: Colour, unit: float) -> None:
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
            cv2.circle(canvas, (x, y), round(ring * one), DARK, stroke + 2 * rim, cv2.LINE_AA, _SHIFT)
            cv2.circle(canvas, (x, y), round(ring * one), colour, stroke, cv2.LINE_AA, _SHIFT)
        else:
            # In a crowd there is no room for rings: a larger dot under a smaller one must do.
            radius *= 1.7 if style == "hollow" else 1.0
            edge = rim if radius > small else 0.4
            cv2.circle(canvas, (x, y), round((radius + edge) * one), DARK, -1, cv2.LINE_AA, _SHIFT)
            cv2.circle(canvas, (x, y), round(radius * one), colour, -1, cv2.LINE_AA, _SHIFT)


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
    places = [_fixed(corners)]
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
    mask = _written(text, size)
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
    _blend(canvas, mask, x + pad, y + pad, ink)


# --- text ------------------------------------------------------------------------------------------

_PLAIN = {
    "∞": "inf",
    "×": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "·": "-",
    "…": "...",
    "→": "->",
    "⇒": "=>",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "±": "+-",
    "°": " deg",
    "µ": "u",
    "γ": "gamma",
    "σ": "sigma",
    "θ": "theta",
    "ß": "ss",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "ø": "o",
    "Ø": "O",
    "æ": "ae",
    "Æ": "AE",
    "ł": "l",
    "Ł": "L",
    "\t": " ",
    "\n": " ",
}


def _plain(text: str) -> str:
    """Text in ASCII, all that OpenCV's fonts have: ∞ becomes inf, é becomes e, what has no likeness a ?."""
    found = []
    for sign in unicodedata.normalize("NFC", text):
        alike = _PLAIN.get(sign) or "".join(
            c for c in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(c)
        )
        found.append(alike if alike.isascii() and alike.isprintable() and alike else "?")
    return "".join(found)


_FONT = cv2.FONT_HERSHEY_SIMPLEX
_FINE = 4
_CAPITAL = 21.0  # height of a capital at font scale 1
_ABOVE, _BELOW = 1.2, 0.45  # room over the baseline and under it, in capitals


@lru_cache(maxsize=512)
def _written(text: str, size: float, bold: bool = False) -> npt.NDArray[np.float32]:
    """Coverage 0 to 1 of one line of text whose capitals are `size` pixels high.

    Drawn large and reduced: the stroke fonts have whole-pixel widths only.
    """
    plain = _plain(text)
    scale = size * _FINE / _CAPITAL
    stroke = _whole(size * _FINE * (0.17 if bold else 0.115))
    wide = cv2.getTextSize(plain, _FONT, scale, stroke)[0][0] + 2 * stroke
    above, below = math.ceil(size * _ABOVE), math.ceil(size * _BELOW)
    fine = np.zeros(((above + below) * _FINE, max(1, math.ceil(wide / _FINE)) * _FINE), np.uint8)
    cv2.putText(fine, plain, (stroke, above * _FINE), _FONT, scale, (255,), stroke, cv2.LINE_AA)
    small = cv2.resize(fine, (fine.shape[1] // _FINE, above + below), interpolation=cv2.INTER_AREA)
    coverage = np.asarray(small / 255, np.float32)
    coverage.setflags(write=False)
    return coverage


def _blend(canvas: Pixels, mask: npt.NDArray[np.float32], x: int, y: int, colour: Colour) -> None:
    part = canvas[y : y + mask.shape[0], x : x + mask.shape[1]]
    cover = mask[: part.shape[0], : part.shape[1], None]
    part[:] = np.rint(part * (1 - cover) + np.array(colour, np.float32) * cover)


def _wrapped(text: str, size: float, width: int, bold: bool = False) -> list[str]:
    """Lines no wider than `width`, broken after spaces and signs, inside words only where one is too wide."""

    def fits(line: str) -> bool:
        return bool(_written(line.rstrip(), size, bold).shape[1] <= width)

    lines, line = [], ""
    for piece in re.findall(r"[^\s,|(/_\\-]*[\s,|(/_\\-]?", " ".join(_plain(text).split())):
        if line and not fits(line + piece):
            lines.append(line)
            line = ""
        line += piece
        while len(line) > 1 and not fits(line):
            kept = next((n for n in range(len(line) - 1, 1, -1) if fits(line[:n])), 1)
            lines.append(line[:kept])
            line = line[kept:]
    return [each.rstrip() for each in [*lines, line] if each.strip()]


def _text_block(
    lines: Sequence[str],
    size: float,
    colour: Colour,
    *,
    bold: bool = False,
    width: int | None = None,
    centred: bool = False,
) -> Pixels:
    """Lines of text under each other on paper."""
    masks = [_written(line, size, bold) for line in lines]
    step = round(size * (_ABOVE + _BELOW) * 1.08)
    wide = width or max((mask.shape[1] for mask in masks), default=1)
    block = np.full((max(1, step * len(masks)), wide, 3), PAPER, np.uint8)
    for number, mask in enumerate(masks):
        left = max(0, (wide - mask.shape[1]) // 2) if centred else 0
        _blend(block, mask, left, number * step, colour)
    return block


# --- sheets and pairs ------------------------------------------------------------------------------


def contact_sheet(tiles: Sequence[tuple[Image, str]], *, columns: int | None = None, tile: int = 220) -> Image:
    """Pictures with their captions, in rows. Each fits a square of `tile` pixels, its proportions kept."""
    if not tiles:
        raise ValueError("a contact sheet needs at least one picture")
    if tile < 16 or (columns is not None and columns < 1):
        raise ValueError(f"tile is at least 16 and columns at least 1, got tile={tile}, columns={columns}")
    across = min(len(tiles), columns or max(1, round(math.sqrt(len(tiles) * 1.6))))
    gap, size = max(6, tile // 18), float(np.clip(tile / 22, 8, 16))
    captions = [_wrapped(caption, size, tile) for _, caption in tiles]
    rows: list[Pixels] = []
    for start in range(0, len(tiles), across):
        here = captions[start : start + across]
        blocks = [_text_block(lines, size, INK, width=tile, centred=True) for lines in here]
        tall = max(len(block) for block in blocks)
        row = np.full((tile + gap // 2 + tall, across * (tile + gap) + gap, 3), PAPER, np.uint8)
        for place, ((image, _), block) in enumerate(zip(tiles[start : start + across], blocks, strict=True)):
            left = gap + place * (tile + gap)
            shown = _scaled(image, _scaling(image, tile / max(image.size)))
            high, wide = shown.shape[:2]
            x, y = left + (tile - wide) // 2, (tile - high) // 2
            row[:tile, left : left + tile] = (228, 228, 230)
            row[y : y + high, x : x + wide] = shown
            row[tile + gap // 2 :][: len(block), left : left + tile] = block
        rows += [np.full((gap, row.shape[1], 3), PAPER, np.uint8), row]
    return Image(np.concatenate([*rows, np.full((gap, rows[0].shape[1], 3), PAPER, np.uint8)]))


_HIGH, _WIDE, _TIMES = 640, 760, 16
"""The most pixels a panel has, and how many times at most a small picture is enlarged."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One side of a pair: the picture, what belongs to the input itself, what was said, and what was expected."""

    image: Image
    own: Sequence[Shape]
    said: Sequence[Shape]
    expected: Sequence[Shape] = ()
    note: str = ""


def pair_picture(source: Panel, follow_up: Panel, *, title: str, lines: Sequence[str] = ()) -> Image:
    """Source and follow-up side by side: its answer left, what was expected (hollow) and said (filled) right.

    Both are shown at the same scale, unless the follow-up would then be less than half as large as it could
    be; its caption says so.
    """
    scale = min(_fitting(source.image), _fitting(follow_up.image))
    own = _fitting(follow_up.image)
    enlarged = own / scale if own >= 2 * scale else 1.0
    panels = [_drawn(source, scale, BLUE), _drawn(follow_up, scale * enlarged, ORANGE)]
    gap, size = 16, 9.0
    more = f", shown {enlarged:.3g} times larger than the source" if enlarged != 1 else ""
    notes = [
        f"{name}, {side.note or f'{side.image.size[0]} x {side.image.size[1]} px'}{said}"
        for name, side, said in (("source", source, ""), ("follow-up", follow_up, more))
    ]
    widths = [max(272, panel.shape[1]) for panel in panels]  # a narrow pair still has room for its words
    width = sum(widths) + gap
    stack = [_text_block(_wrapped(title, 11.5, width, True), 11.5, INK, bold=True, width=width)]
    high = max(panel.shape[0] for panel in panels)
    captions = [
        _text_block(_wrapped(note, size, w), size, FAINT, width=w) for note, w in zip(notes, widths, strict=True)
    ]
    tall = max(len(block) for block in captions)
    middle = np.full((tall + 4 + high, width, 3), PAPER, np.uint8)
    x = 0
    for panel, block, w in zip(panels, captions, widths, strict=True):
        middle[: len(block), x : x + w] = block
        middle[tall + 4 :][: panel.shape[0], x : x + panel.shape[1]] = panel
        x += w + gap
    stack.append(middle)
    entries: list[tuple[str, Style, Colour, Sequence[Shape]]] = [("the source's answer", "filled", BLUE, source.said)]
    if follow_up.expected:
        entries.append(("expected", "hollow", WHITE, follow_up.expected))
    stack.append(_legend([*entries, ("actual", "filled", ORANGE, follow_up.said)], size, width))
    wrapped = [part for line in lines for part in _wrapped(line, size, width)]
    if wrapped:
        stack.append(_text_block(wrapped, size, INK, width=width))
    page: list[Pixels] = []
    for block in stack:
        page += [np.full((gap * 3 // 4, width, 3), PAPER, np.uint8), block]
    body = np.concatenate([*page, np.full((gap * 3 // 4, width, 3), PAPER, np.uint8)])
    edge = np.full((len(body), gap, 3), PAPER, np.uint8)
    return Image(np.concatenate([edge, body, edge], axis=1))


def panel_picture(panel: Panel, *, side: Literal["source", "follow-up"], wide: int = _WIDE, high: int = _HIGH) -> Image:
    """One side of a pair alone, as large as fits."""
    scale = min(wide / panel.image.size[0], high / panel.image.size[1], _TIMES)
    return Image(_drawn(panel, scale, BLUE if side == "source" else ORANGE))


def _drawn(panel: Panel, scale: float, colour: Colour) -> Pixels:
    warp = _scaling(panel.image, scale)
    canvas = _scaled(panel.image, warp)
    for words in (False, True):  # lines of one side never cross out the words of the other
        _draw(canvas, [s for s in panel.expected if (s.form == "text") == words], warp, "hollow", WHITE)
        _draw(canvas, [s for s in panel.said if (s.form == "text") == words], warp, "filled", colour)
    _draw(canvas, panel.own, warp, "filled", None)
    return canvas


def _fitting(image: Image) -> float:
    return min(_WIDE / image.size[0], _HIGH / image.size[1], _TIMES)


def _legend(entries: Sequence[tuple[str, Style, Colour, Sequence[Shape]]], size: float, width: int) -> Pixels:
    """A sample of each style with its word; a side that has nothing to show says so."""
    rows: list[list[tuple[Pixels, Pixels]]] = [[]]
    used = 0
    for word, style, colour, shapes in entries:
        empty = not any(shape.xy.size and np.isfinite(shape.xy).any() for shape in shapes)
        text = _text_block([f"{word}: nothing" if empty else word], size, INK)
        swatch: Pixels = np.full((22, 44, 3), 150, np.uint8)
        sample = [Shape("lines", np.array([[10.0, 11, 34, 11]])), Shape("points", np.array([[10.0, 11], [34, 11]]))]
        _draw(swatch, sample, Warp.identity((44, 22)), style, colour, unit=1.5)
        need = 44 + 8 + text.shape[1] + 24
        if rows[-1] and used + need > width:
            rows.append([])
            used = 0
        rows[-1].append((swatch, text))
        used += need
    block = np.full((28 * len(rows), width, 3), PAPER, np.uint8)
    for number, row in enumerate(rows):
        x, y = 0, number * 28 + 3
        for swatch, text in row:
            block[y : y + 22, x : x + 44] = swatch
            place = block[y + (22 - len(text)) // 2 + 1 :, x + 52 : x + 52 + text.shape[1]]
            place[: len(text)] = text[: len(place), : place.shape[1]]
            x += 44 + 8 + text.shape[1] + 24
    return block


# --- files -----------------------------------------------------------------------------------------


def encoded(image: Image, kind: Literal["jpeg", "png", "webp"] = "jpeg", quality: int = 82) -> bytes:
    """The bytes of a picture file."""
    options = {"jpeg": [cv2.IMWRITE_JPEG_QUALITY, quality], "webp": [cv2.IMWRITE_WEBP_QUALITY, quality]}.get(kind, [])
    ok, data = cv2.imencode(f".{kind}", cv2.cvtColor(image.pixels, cv2.COLOR_RGB2BGR), options)
    if not ok:
        raise ValueError(f"OpenCV could not encode a picture of {image.size[0]}×{image.size[1]} as {kind}")
    return bytes(data.tobytes())


def write_png(path: str | Path, image: Image) -> None:
    """Write a PNG; the file is there whole or not at all."""
    place_file(Path(path), encoded(image, "png"))  # OpenCV's own writer cannot open every name that Python can
