"""Text in pictures: one line as coverage, lines that fit a width, blocks of lines on paper."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]
Pixels = npt.NDArray[np.uint8]
WHITE, DARK, PAPER = (255, 255, 255), (20, 20, 24), (250, 250, 250)

# fmt: off
_PLAIN = {
    "∞": "infinite", "×": "x", "–": "-", "—": "-", "−": "-", "·": "-", "…": "...", "→": "->", "⇒": "=>", "≥": ">=",
    "≤": "<=", "≠": "!=", "±": "+-", "°": " deg", "µ": "u", "γ": "gamma", "σ": "sigma", "θ": "theta", "ß": "ss",
    "‘": "'", "’": "'", "“": '"', "”": '"', "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "ł": "l", "Ł": "L", "\t": " ",
    "\n": " ",
}
# fmt: on


def plain_text(text: str) -> str:
    """Text in ASCII, all that OpenCV's fonts have: ∞ becomes infinite, é becomes e, what has no likeness a ?."""
    signs = []
    for sign in unicodedata.normalize("NFC", text):
        alike = _PLAIN.get(sign) or "".join(
            c for c in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(c)
        )
        signs.append(alike if alike.isascii() and alike.isprintable() and alike else "?")
    return "".join(signs)


_FONT = cv2.FONT_HERSHEY_SIMPLEX
_FINE = 4
_CAPITAL = 21.0  # height of a capital at font scale 1
_ABOVE, _BELOW = 1.2, 0.45  # room over the baseline and under it, in capitals


@lru_cache(maxsize=512)
def written(text: str, size: float, bold: bool = False) -> npt.NDArray[np.float32]:
    """Coverage 0 to 1 of one line of text whose capitals are `size` pixels high.

    Drawn large and reduced: the stroke fonts have whole-pixel widths only.
    """
    plain = plain_text(text)
    scale = size * _FINE / _CAPITAL
    stroke = max(1, round(size * _FINE * (0.17 if bold else 0.115)))
    wide = cv2.getTextSize(plain, _FONT, scale, stroke)[0][0] + 2 * stroke
    above, below = math.ceil(size * _ABOVE), math.ceil(size * _BELOW)
    fine = np.zeros(((above + below) * _FINE, max(1, math.ceil(wide / _FINE)) * _FINE), np.uint8)
    cv2.putText(fine, plain, (stroke, above * _FINE), _FONT, scale, (255,), stroke, cv2.LINE_AA)
    small = cv2.resize(fine, (fine.shape[1] // _FINE, above + below), interpolation=cv2.INTER_AREA)
    coverage = np.asarray(small / 255, np.float32)
    coverage.setflags(write=False)
    return coverage


def blend(canvas: Pixels, mask: npt.NDArray[np.float32], x: int, y: int, colour: Colour) -> None:
    part = canvas[y : y + mask.shape[0], x : x + mask.shape[1]]
    cover = mask[: part.shape[0], : part.shape[1], None]
    part[:] = np.rint(part * (1 - cover) + np.array(colour, np.float32) * cover)


def wrapped(text: str, size: float, width: int, bold: bool = False) -> list[str]:
    """Lines no wider than `width`, broken after spaces and signs, inside words only where one is too wide."""

    def fits(line: str) -> bool:
        return bool(written(line.rstrip(), size, bold).shape[1] <= width)

    lines, line = [], ""
    for piece in re.findall(r"[^\s,|(/_\\-]*[\s,|(/_\\-]?", " ".join(plain_text(text).split())):
        if line and not fits(line + piece):
            lines.append(line)
            line = ""
        line += piece
        while len(line) > 1 and not fits(line):
            kept = next((n for n in range(len(line) - 1, 1, -1) if fits(line[:n])), 1)
            lines.append(line[:kept])
            line = line[kept:]
    return [each.rstrip() for each in [*lines, line] if each.strip()]


def text_block(
    lines: Sequence[str],
    size: float,
    colour: Colour,
    *,
    bold: bool = False,
    width: int | None = None,
    centred: bool = False,
) -> Pixels:
    """Lines of text under each other on paper."""
    masks = [written(line, size, bold) for line in lines]
    step = round(size * (_ABOVE + _BELOW) * 1.08)
    wide = width or max((mask.shape[1] for mask in masks), default=1)
    block = np.full((max(1, step * len(masks)), wide, 3), PAPER, np.uint8)
    for number, mask in enumerate(masks):
        left = max(0, (wide - mask.shape[1]) // 2) if centred else 0
        blend(block, mask, left, number * step, colour)
    return block
