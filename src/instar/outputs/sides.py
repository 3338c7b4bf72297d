"""Names with a side in them: what a mirror makes of `left_arm` or `Turn right`."""

from __future__ import annotations

import re
from collections.abc import Collection

_SIDE = re.compile(r"(?<![a-z])(left|right)(?![a-z])", re.IGNORECASE)
_OTHER = {"left": "right", "right": "left", "Left": "Right", "Right": "Left", "LEFT": "RIGHT", "RIGHT": "LEFT"}


def other_side(name: str, names: Collection[str]) -> str:
    """The name with left and right exchanged, where that is one of the names too; else itself: a right whale is one.

    >>> other_side("left_arm", ["left_arm", "right_arm"]), other_side("right whale", ["right whale"])
    ('right_arm', 'right whale')
    """
    other = exchanged_sides(name)
    return other if other in names else name


def exchanged_sides(name: str) -> str:
    """The name with left and right exchanged, whether or not anything is called so."""
    return _SIDE.sub(lambda side: _OTHER.get(side[0], _OTHER[side[0].lower()]), name)
