"""How much one answer may hold: more than any system has to say, and no more than can be judged."""

from __future__ import annotations

from collections.abc import Mapping

from instar.outputs.output import Output
from instar.scene import MOST_CELLS

LIMITS: Mapping[str, int] = {
    "subjects": 3_000,
    "landmarks of all subjects": 1_000_000,
    "objects": 30_000,
    "pixels in all masks": 1 << 31,
    "characters in the caption": 20_000,
    "classes": 50_000,
    "characters in a name": 1_000,
    "cells in the class map": MOST_CELLS,
    "cells in the probability map": 1 << 24,
    "futures": 2_000,
    "positions in all futures": 1_000_000,
}
"""What is counted of an output (its `sizes`), and the most that is stored of it. An answer beyond is an error."""


class TooMuch(ValueError):
    """An answer that holds more than is allowed; the message says how much, and how much is."""


def within_limits(answer: Output) -> Output:
    """The answer itself, or raises TooMuch."""
    for what, count in answer.sizes().items():
        if count > LIMITS[what]:
            raise TooMuch(f"the answer has {count:,} {what}, and at most {LIMITS[what]:,} are allowed")
    return answer
