"""Pictures: annotated images alone, in pairs and on contact sheets, and their files. Knows no task."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import cv2
import numpy as np

from instar.files import place_file
from instar.image import Image
from instar.report.drawing import BLUE, ORANGE, Style, draw, line_width, scaled, scaling
from instar.report.lettering import PAPER, WHITE, Colour, Pixels, text_block, wrapped
from instar.report.words import severity_text
from instar.shapes import Shape, Side
from instar.warp import Warp

INK, FAINT = (28, 28, 32), (105, 105, 112)
NOTHING_FOUND = "nothing found"
"""What stands on a picture whose answer is drawn, and has nothing to draw."""


def contact_sheet(
    tiles: Sequence[tuple[Image, str]],
    *,
    columns: int | None = None,
    tile: int = 220,
    legend: Sequence[LegendEntry] = (),
) -> Image:
    """Pictures with their captions, in rows, and what is drawn on them below. Each fits a square of `tile` pixels, its
    proportions kept."""
    if not tiles:
        raise ValueError("a contact sheet needs at least one picture")
    if tile < 16 or (columns is not None and columns < 1):
        raise ValueError(f"tile is at least 16 and columns at least 1, got tile={tile}, columns={columns}")
    across = min(len(tiles), columns or max(1, round(math.sqrt(len(tiles) * 1.6))))
    gap, size = max(6, tile // 18), float(np.clip(tile / 22, 8, 16))
    captions = [wrapped(caption, size, tile) for _, caption in tiles]
    rows: list[Pixels] = []
    for start in range(0, len(tiles), across):
        here = captions[start : start + across]
        blocks = [text_block(lines, size, INK, width=tile, centred=True) for lines in here]
        tall = max(len(block) for block in blocks)
        row = np.full((tile + gap // 2 + tall, across * (tile + gap) + gap, 3), PAPER, np.uint8)
        for place, ((image, _), block) in enumerate(zip(tiles[start : start + across], blocks, strict=True)):
            left = gap + place * (tile + gap)
            shown = scaled(image, scaling(image, tile / max(image.size)))
            high, wide = shown.shape[:2]
            x, y = left + (tile - wide) // 2, (tile - high) // 2
            row[:tile, left : left + tile] = (228, 228, 230)
            row[y : y + high, x : x + wide] = shown
            row[tile + gap // 2 :][: len(block), left : left + tile] = block
        rows += [np.full((gap, row.shape[1], 3), PAPER, np.uint8), row]
    if legend:
        block = _legend_block(legend, size, rows[0].shape[1] - 2 * gap)
        rows.append(np.pad(block, ((gap, 0), (gap, gap), (0, 0)), constant_values=PAPER[0]))
    return Image(np.concatenate([*rows, np.full((gap, rows[0].shape[1], 3), PAPER, np.uint8)]))


ACCUSED, THICK = (240, 228, 66), 1.8
"""The colour of what a verdict is about, which no answer has, and how many times thicker than others it is drawn."""
_HIGH, _WIDE, _TIMES = 640, 760, 16
"""The most pixels a panel has, and how many times at most a small picture is enlarged."""


@dataclass(frozen=True, slots=True, eq=False)
class Annotated:
    """One side of a pair: the image, what belongs to the input itself, and the actual and the expected answer.

    Of several in an answer, `accused` is the one that a verdict is about: drawn over the others, yellow and thick. Its
    `names` are written over all else, below its place. A `silent` answer is one that is drawn where it finds
    something, and found nothing: the picture says so.
    """

    image: Image
    own: Sequence[Shape]
    actual: Sequence[Shape]
    expected: Sequence[Shape] = ()
    note: str = ""
    names: Sequence[Shape] = ()
    accused: Sequence[Shape] = ()
    silent: bool = False


def pair_picture(source: Annotated, follow_up: Annotated, *, title: str, lines: Sequence[str] = ()) -> Image:
    """Source and follow-up side by side: its answer left, the expected (hollow) and the actual one (filled) right.

    Both are shown at the same scale, unless the follow-up would then be less than half as large as it could
    be; its caption says so.
    """
    scale = min(_fitting(source.image), _fitting(follow_up.image))
    own = _fitting(follow_up.image)
    enlarged = own / scale if own >= 2 * scale else 1.0
    panels = [_drawn(source, scale, BLUE), _drawn(follow_up, scale * enlarged, ORANGE)]
    gap, size = 16, 9.0
    more = f", shown {severity_text(enlarged)} times larger than the source" if enlarged != 1 else ""
    notes = [
        f"{name}, {side.note or f'{side.image.size[0]} x {side.image.size[1]} px'}{zoom}"
        for name, side, zoom in (("source", source, ""), ("follow-up", follow_up, more))
    ]
    widths = [max(272, panel.shape[1]) for panel in panels]  # a narrow pair still has room for its words
    width = sum(widths) + gap
    stack = [text_block(wrapped(title, 11.5, width, True), 11.5, INK, bold=True, width=width)]
    high = max(panel.shape[0] for panel in panels)
    captions = [text_block(wrapped(note, size, w), size, FAINT, width=w) for note, w in zip(notes, widths, strict=True)]
    tall = max(len(block) for block in captions)
    middle = np.full((tall + 4 + high, width, 3), PAPER, np.uint8)
    x = 0
    for panel, block, w in zip(panels, captions, widths, strict=True):
        middle[: len(block), x : x + w] = block
        middle[tall + 4 :][: panel.shape[0], x : x + panel.shape[1]] = panel
        x += w + gap
    stack.append(middle)
    if entries := legend(source, follow_up):
        stack.append(_legend_block(entries, size, width))
    below = [part for line in lines for part in wrapped(line, size, width)]
    if below:
        stack.append(text_block(below, size, INK, width=width))
    page: list[Pixels] = []
    for block in stack:
        page += [np.full((gap * 3 // 4, width, 3), PAPER, np.uint8), block]
    body = np.concatenate([*page, np.full((gap * 3 // 4, width, 3), PAPER, np.uint8)])
    edge = np.full((len(body), gap, 3), PAPER, np.uint8)
    return Image(np.concatenate([edge, body, edge], axis=1))


def panel_picture(
    panel: Annotated, *, side: Literal["source", "follow-up"], wide: int = _WIDE, high: int = _HIGH
) -> Image:
    """One side of a pair alone, as large as fits."""
    scale = min(wide / panel.image.size[0], high / panel.image.size[1], _TIMES)
    return Image(_drawn(panel, scale, BLUE if side == "source" else ORANGE))


def _drawn(panel: Annotated, scale: float, colour: Colour) -> Pixels:
    warp = scaling(panel.image, scale)
    canvas = scaled(panel.image, warp)
    sides: tuple[tuple[Sequence[Shape], Style, Colour], ...]
    sides = (panel.expected, "hollow", WHITE), (panel.actual, "filled", colour)
    for words in (False, True):  # lines of one side never cross out the words of the other
        for shapes, style, paint in sides:
            for shape in shapes:
                if (shape.form == "text") == words:
                    draw(canvas, [shape], warp, style, shape.colour or paint)
        if not words:  # around a class, whose own colour inside the yellow must not cover
            around = [s for s in panel.accused if s.form == "polygon"]
            draw(canvas, around, warp, "hollow", ACCUSED, 0.6 * line_width(canvas))
    lines = [s for s in panel.accused if s.form not in ("text", "polygon")]
    draw(canvas, lines, warp, "filled", ACCUSED, THICK * line_width(canvas))
    draw(canvas, [s for s in panel.accused if s.form == "text"], warp, "filled", ACCUSED)
    draw(canvas, panel.own, warp, "filled", None)
    draw(canvas, panel.names, warp, "hollow", None)
    if panel.silent:
        size = float(np.clip(canvas.shape[1] / 22, 7, 22))
        block = np.pad(text_block([NOTHING_FOUND], size, INK), ((2, 0), (4, 4), (0, 0)), constant_values=PAPER[0])
        corner = canvas[: len(block), : block.shape[1]]
        corner[:] = block[: corner.shape[0], : corner.shape[1]]
    return canvas


def _fitting(image: Image) -> float:
    return min(_WIDE / image.size[0], _HIGH / image.size[1], _TIMES)


# --- what the drawing means -------------------------------------------------------------------------

_SWATCH = (44, 22)
_SAMPLES: dict[str, tuple[Shape, ...]] = {
    "boxes": (Shape("boxes", np.array([[9.0, 5, 35, 17]])),),
    "polygon": (Shape("polygon", np.array([[8.0, 17], [14, 5], [36, 6], [33, 17]])),),
    "lines": (Shape("lines", np.array([[10.0, 11, 34, 11]])), Shape("points", np.array([[10.0, 11], [34, 11]]))),
    "heat": (Shape("heat", np.array([[4.0, 2, 40, 20]]), heat=np.outer(np.hanning(12), np.hanning(22)).astype("f4")),),
}
"""What stands for a drawing in a legend, by the first of its forms that is among these."""
_LEFT, _RIGHT = (
    (Shape("lines", np.array([[place, 11, 22, 11]]), side=side), Shape("points", np.array([[place, 11]]), side=side))
    for place, side in cast("tuple[tuple[float, Side], ...]", ((10.0, "left"), (34.0, "right")))
)


@dataclass(frozen=True, slots=True, eq=False)
class LegendEntry:
    """What something in a picture of a pair means, beside a small picture of it; `side` where it is drawn on one side
    alone."""

    swatch: Image
    words: str
    side: Literal["source", "follow-up"] | None = None

    @property
    def address(self) -> str:
        """The small picture as an address that a page holds in itself."""
        return data_address(self.swatch, "png")


def legend(
    source: Annotated, follow_up: Annotated | None, classes: Mapping[str, Colour] | None = None
) -> list[LegendEntry]:
    """What is drawn on a pair, or on a source alone, in the order in which a legend has it; nothing where nothing is.

    A side that has nothing to show says so. `classes` are those that have colours on a page of many pairs, where they
    are more than this pair's.
    """
    alone = follow_up is None
    follow_up = follow_up or Annotated(source.image, (), ())
    drawn = [*source.actual, *follow_up.actual, *follow_up.expected]
    if not any(map(_shown, drawn)):
        return []
    panels = {"source": source} if alone else {"source": source, "follow-up": follow_up}
    coloured = {shape.text: shape.colour for shape in drawn if shape.form == "polygon" and shape.colour}
    if any(shape.side is not None for shape in drawn):
        entries = _alike(panels, (*_LEFT, *_RIGHT), None)
        entries.append(LegendEntry(_swatch(_LEFT, "filled", None), "left: blue, round"))
        entries.append(LegendEntry(_swatch(_RIGHT, "filled", None), "right: orange, square"))
    elif coloured:
        entries = [*_alike(panels, _SAMPLES["polygon"], FAINT), *_classes(classes or coloured)]
    else:
        form = next(
            (form for form in _SAMPLES if any(shape.form == form and _shown(shape) for shape in drawn)), "lines"
        )
        answers: tuple[tuple[str, Literal["source", "follow-up"], Style, Colour, Sequence[Shape]], ...] = (
            ("answer to the source", "source", "filled", BLUE, source.actual),
            ("expected of the follow-up", "follow-up", "hollow", WHITE, follow_up.expected),
            ("answer to the follow-up", "follow-up", "filled", ORANGE, follow_up.actual),
        )
        entries = [
            LegendEntry(
                _swatch(_SAMPLES[form], style, colour), words if any(map(_shown, shapes)) else f"{words}: nothing", side
            )
            for words, side, style, colour, shapes in answers[: 1 if alone else None]
            if shapes or style == "filled"
        ]
        if form != "heat":
            entries += _tints(drawn, follow_up.expected, BLUE if alone else ORANGE)
    if source.accused or follow_up.accused:
        entries.append(box_entry("what the verdict is about", "filled", ACCUSED))
    named = {shape.text: shape for shape in (*source.own, *follow_up.own) if shape.text and shape.form != "text"}
    for words, shape in named.items():
        entries.append(LegendEntry(_swatch(_SAMPLES["lines"], "filled", shape.colour), words))
    return entries


def _tints(drawn: Sequence[Shape], expected: Sequence[Shape], colour: Colour) -> list[LegendEntry]:
    """What the maps mean that lie under other shapes."""
    tinted, outlined = (any(shape.form == "heat" and _shown(shape) for shape in shapes) for shapes in (drawn, expected))
    entries = [LegendEntry(_swatch(_SAMPLES["heat"], "filled", colour), "how probable a place is")] if tinted else []
    if outlined:
        entries.append(LegendEntry(_swatch(_SAMPLES["heat"], "hollow", WHITE), "probable places expected", "follow-up"))
    return entries


def box_entry(words: str, style: Style, colour: Colour) -> LegendEntry:
    """What a box of this colour means."""
    return LegendEntry(_swatch(_SAMPLES["boxes"], style, colour), words)


def _alike(panels: Mapping[str, Annotated], sample: Sequence[Shape], colour: Colour | None) -> list[LegendEntry]:
    """The legend where colours are those of sides or classes, and both answers look alike."""
    silent = [f"none to the {name}" for name, panel in panels.items() if not any(map(_shown, panel.actual))]
    entries = [LegendEntry(_swatch(sample, "filled", colour), ", ".join(["answer", *silent]))]
    if any(panel.expected for panel in panels.values()):
        entries.append(LegendEntry(_swatch(sample, "hollow", colour), "expected of the follow-up"))
    return entries


def _classes(colours: Mapping[str, Colour]) -> list[LegendEntry]:
    """Which class has which colour; of more classes than there are colours only that they have one each."""
    sample = _SAMPLES["polygon"]
    if len(set(colours.values())) < len(colours):
        return [LegendEntry(_swatch(sample, "filled", FAINT), "each class in one colour, with its name")]
    return [LegendEntry(_swatch(sample, "filled", colour), name) for name, colour in colours.items()]


def draws_nothing(shapes: Sequence[Shape]) -> bool:
    """Whether there is nothing to see of these."""
    return not any(map(_shown, shapes))


def _shown(shape: Shape) -> bool:
    return bool(shape.xy.size and np.isfinite(shape.xy).any())


def _swatch(sample: Sequence[Shape], style: Style, colour: Colour | None) -> Image:
    canvas: Pixels = np.full((*_SWATCH[::-1], 3), 150, np.uint8)
    draw(canvas, sample, Warp.identity(_SWATCH), style, colour, unit=1.5)
    return Image(canvas)


def _legend_block(entries: Sequence[LegendEntry], size: float, width: int) -> Pixels:
    """A legend in rows that fit the width."""
    wide, high = _SWATCH
    rows: list[list[tuple[Pixels, Pixels]]] = [[]]
    used = 0
    for entry in entries:
        text = text_block([entry.words], size, INK)
        need = wide + 8 + text.shape[1] + 24
        if rows[-1] and used + need > width:
            rows.append([])
            used = 0
        rows[-1].append((entry.swatch.pixels, text))
        used += need
    step = high + 6
    block = np.full((step * len(rows), width, 3), PAPER, np.uint8)
    for number, row in enumerate(rows):
        x, y = 0, number * step + 3
        for swatch, text in row:
            block[y : y + high, x : x + wide] = swatch
            place = block[y + (high - len(text)) // 2 + 1 :, x + wide + 8 : x + wide + 8 + text.shape[1]]
            place[: len(text)] = text[: len(place), : place.shape[1]]
            x += wide + 8 + text.shape[1] + 24
    return block


# --- files -----------------------------------------------------------------------------------------


def encoded(image: Image, kind: Literal["jpeg", "png", "webp"] = "jpeg", quality: int = 82) -> bytes:
    """The bytes of a picture file."""
    options = {"jpeg": [cv2.IMWRITE_JPEG_QUALITY, quality], "webp": [cv2.IMWRITE_WEBP_QUALITY, quality]}.get(kind, [])
    ok, data = cv2.imencode(f".{kind}", cv2.cvtColor(image.pixels, cv2.COLOR_RGB2BGR), options)
    if not ok:
        raise ValueError(f"OpenCV could not encode a picture of {image.size[0]}×{image.size[1]} as {kind}")
    return bytes(data.tobytes())


def data_address(image: Image, kind: Literal["png", "webp"]) -> str:
    """A picture as an address that a page holds in itself."""
    return f"data:image/{kind};base64,{b64encode(encoded(image, kind, 80)).decode('ascii')}"


def write_png(path: str | Path, image: Image) -> None:
    """Write a PNG; the file is there whole or not at all."""
    place_file(Path(path), encoded(image, "png"))  # OpenCV's own writer cannot open every name that Python can
