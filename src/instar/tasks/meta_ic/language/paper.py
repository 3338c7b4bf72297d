"""A caption as MetaIC reads it, for its published figures: no synonyms, no counting, class names of one word.

What the paper names as its own false positives is kept here: a woman is no person, a parrot no bird, "a pair of
scissors" is plural, and 20 of COCO's classes are never seen. `read_caption` mends all of it.
"""

from __future__ import annotations

from typing import Literal

from instar.tasks.meta_ic.language.nouns import plural
from instar.tasks.meta_ic.language.splitting import split
from instar.tasks.meta_ic.language.vocabulary import coco

__all__ = ["PAPER_CLASSES", "read_paper"]

PAPER_CLASSES = (
    "airplane",
    "apple",
    "backpack",
    "banana",
    "bear",
    "bed",
    "bench",
    "bicycle",
    "bird",
    "boat",
    "book",
    "bottle",
    "bowl",
    "broccoli",
    "bus",
    "cake",
    "car",
    "carrot",
    "cat",
    "chair",
    "clock",
    "couch",
    "cow",
    "cup",
    "dog",
    "elephant",
    "fork",
    "frisbee",
    "giraffe",
    "handbag",
    "horse",
    "keyboard",
    "kite",
    "laptop",
    "microwave",
    "motorcycle",
    "orange",
    "oven",
    "person",
    "pizza",
    "refrigerator",
    "remote",
    "sandwich",
    "scissors",
    "sheep",
    "sink",
    "skateboard",
    "snowboard",
    "spoon",
    "suitcase",
    "surfboard",
    "tie",
    "toaster",
    "toilet",
    "toothbrush",
    "train",
    "truck",
    "umbrella",
    "vase",
    "zebra",
)
"""The 60: of COCO's 65 names of one word, without donut, knife, mouse, skis and tv."""

_FORMS: dict[str, str] = {form: name for name in PAPER_CLASSES for form in (plural(name), name)}


def read_paper(text: str) -> dict[str, Literal["one", "many"]]:
    """The classes named by a noun of exactly that spelling; one seen twice is many.

    >>> read_paper("a man with two dogs and a dog next to an orange ball"), read_paper("a pair of scissors")
    ({'dog': 'many'}, {'scissors': 'many'})
    """
    words = split(text).lower
    tags = coco().tagger.tag(words)
    found: dict[str, Literal["one", "many"]] = {}
    for word, tag in zip(words, tags, strict=True):
        name = _FORMS.get(word)
        if name is not None and tag in ("noun", "plural"):
            found[name] = "one" if tag == "noun" and name not in found else "many"
    return found
