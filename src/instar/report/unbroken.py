"""Lines of a page that never break inside a number: not before its unit, not at the dash of an interval."""

from __future__ import annotations

import re

from instar.report.words import SPACE

_TEXT = re.compile(r"<(script|style|title|option|textarea|pre|code|svg)\b.*?</\1>|<[^>]*>|([^<]+)", re.S)
"""What holds no lines of text, a tag, or text."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|°|(?:px|pixels?|points?|ms|s|min)\b)")
_DECIMAL = re.compile(r"((?<![\w.])[+−-]?\d[\d,]*\.\d+) (?=[A-Za-z])")
_RELATION = re.compile(r"(?<=\w) (=|&lt;|&gt;|≤|≥) (?=[+−-]?[\d.])|(?<=\d) (→) (?=\d)")
_RANGE = re.compile(r"(?<![\w–-])(?:\d{4}-\d\d-\d\d|[+−-]?[\d.]+–[+−-]?[\d.]*\d)(?![\w–-])")


def unbroken(page: str) -> str:
    """HTML in whose texts numbers stay beside their units, intervals and dates in one piece.

    What scripts, fields and code hold stays as it is, and so do attributes.

    >>> unbroken('<p title="5 %">5 % (3–9), 0.2 body lengths</p>').replace(SPACE, "_")
    '<p title="5 %">5_% (<span class="whole">3–9</span>), 0.2_body lengths</p>'
    >>> unbroken("<code>5 % 3</code> scores 0.63 → 0.15, p = 0.03, 12 cases").replace(SPACE, "_")
    '<code>5 % 3</code> scores 0.63_→_0.15, p_=_0.03, 12 cases'
    """
    return _TEXT.sub(lambda piece: piece[0] if piece[2] is None else _joined(piece[2]), page)


def _joined(text: str) -> str:
    if not any(sign.isdecimal() for sign in text):
        return text
    text = _DECIMAL.sub(rf"\1{SPACE}", _BEFORE_UNIT.sub(SPACE, text))
    text = _RELATION.sub(lambda sign: f"{SPACE}{sign[1] or sign[2]}{SPACE}", text)
    return _RANGE.sub(r'<span class="whole">\g<0></span>', text)
