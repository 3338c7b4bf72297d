"""Instar's own suite of captions. MetaIC: an object is inserted, and the caption gains just that. And DeepTest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from instar.suites import Suite, listed_suite

OVERLAPS = (0, 0.15, 0.3, 0.45)
"""How much of the largest object the inserted one covers at most; the intervals below each are the paper's four."""

PAPER_JUDGING = {"reader": "paper", "numbers": "agreed", "empty": "keep"}
"""60 classes by their exact word; numbers are looked at only where the objects agree."""
PAPER_65 = {**PAPER_JUDGING, "reader": "paper65"}
"""The same with 65 classes, as the code for other captioners has it."""

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


NEW, ONE_MORE, DARK, BRIGHT = "insert(0, any, 0.15, 2)", "insert(0, same, 0.15, 2)", "brightness(0, 0.4)", "gamma(0.4)"
CAPTIONS = {
    "identity => objects": "captions that differ for the same image; kept because only that tells chance, and a "
    "memory of the image before",
    f"{NEW} => objects(3)": "captions that do not name what is new, or not all that they named before",
    f"{NEW} => numbers(3)": "captions that count wrong where what is new is one, and nothing else becomes more",
    f"{ONE_MORE} => numbers": "captions that count wrong where one more of a kind that is there makes many; kept "
    "because the others insert one more of a kind by chance alone",
    "mirror(h) => objects": "captions that do not name what is there on both sides of the image",
    "pad(0.25) => objects": "captions that name only what is in the middle or fills the frame",
    "resolution(0.5) => objects": "captions that name something else in a small image",
    f"{DARK} => objects": "captions that name something else in the dark, or fall silent there",
    f"{DARK} => numbers": "captions that count otherwise in the dark",
    f"{BRIGHT} => objects": "captions that name something else in bright light",
    "blur(2) => objects": "captions that name something else out of focus",
    "jpeg(50) => objects": "captions that name something else after compression",
}
"""Instar's own suite, and what each rule is for: the smallest set that sees every seeded fault of
`tests/quality`, and what a purpose says is kept beside it (`studies.suites`). Rules that
insert need a pool; without one they are not applicable, and the others say what they can.

One interval of overlap, nothing covered: more images can be judged than with four, and nothing hides what was there.
The changes of light lose nothing: no grey level is clipped. To the letter nothing is asked: a caption may be reworded.
"""

INSERTED = tuple(f"insert({overlap:g}) => {relation}" for overlap in OVERLAPS for relation in ("objects", "numbers"))

SUITES: Mapping[str, Callable[[], Suite]] = {
    name: partial(
        listed_suite, name, tuple(rules), help, "caption", panels=("captions",), options=options, purposes=purposes
    )
    for name, rules, help, options, purposes in (
        ("captions", CAPTIONS, "Instar's own: inserted objects, light, focus, size, compression.", {}, CAPTIONS),
        ("meta-ic", INSERTED, "MetaIC: an object is inserted, at four intervals of overlap.", {}, {}),
        ("meta-ic@paper", INSERTED, "MetaIC, as the original's code for a commercial captioner.", PAPER_JUDGING, {}),
        ("meta-ic@paper/65", INSERTED, "MetaIC, as the original's code for other captioners.", PAPER_65, {}),
        ("deeptest", DEEPTEST, "DeepTest's blur, brightness, contrast and shear on captions.", {}, {}),
    )
}
