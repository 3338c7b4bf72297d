"""MetaIC: an object is inserted, and the caption gains just that. And what it was compared with: DeepTest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from instar.suites import Suite, listed_suite

OVERLAPS = (0, 0.15, 0.3, 0.45)
"""How much of the largest object the inserted one covers at most; the intervals below each are the paper's four."""

PAPER_JUDGING = {"reader": "paper", "numbers": "agreed", "empty": "keep"}
"""60 classes by their exact word; numbers are looked at only where the objects agree."""

# fmt: off
_BASELINE = (
    "blur(1)", "blur(2)", "blur(3)", "brightness(20, 1)", "brightness(50, 1)", "brightness(80, 1)", "contrast(0.5)",
    "contrast(1.5)", "contrast(2)", "shear(0.1)", "shear(0.2)", "shear(0.3)",
)
# fmt: on
DEEPTEST = (
    "identity => objects",
    "identity => verbatim",
    *(f"{change} => {relation}" for change in _BASELINE for relation in ("objects", "verbatim")),
)
"""DeepTest's blur, brightness, contrast and shear: the caption names the same objects, or is the same to the letter."""


INSERTED = tuple(f"insert({overlap:g}) => {relation}" for overlap in OVERLAPS for relation in ("objects", "numbers"))

SUITES: Mapping[str, Callable[[], Suite]] = {
    name: partial(listed_suite, name, spellings, help, "caption", panels=("captions",), options=options)
    for name, spellings, help, options in (
        ("meta-ic", INSERTED, "MetaIC: an object is inserted, at four intervals of overlap.", {}),
        ("meta-ic@paper", INSERTED, "MetaIC, with captions understood as the original code does.", PAPER_JUDGING),
        ("deeptest", DEEPTEST, "DeepTest's blur, brightness, contrast and shear on captions.", {}),
    )
}
