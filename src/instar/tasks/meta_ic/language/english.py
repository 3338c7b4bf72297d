"""Whether a caption is English at all: of another language nothing can be read, and that must not look like silence."""

from __future__ import annotations

from functools import cache

from instar.tasks.meta_ic.language.lexicon import tagger_lists
from instar.tasks.meta_ic.language.splitting import split
from instar.tasks.meta_ic.language.vocabulary import coco
from instar.tasks.meta_ic.language.word_lists import word_sets

_LATIN = "\u024f"
_ENOUGH = 4
"""From how many words on a text without any known word is no English."""


@cache
def _foreign() -> frozenset[str]:
    return word_sets("english")["foreign"] - tagger_lists().closed.keys()


def is_english(text: str) -> bool:
    """Whether a text can be English: by its letters, and by its most common words.

    >>> is_english("a man on a bench"), is_english("un hombre en un banco"), is_english("一个人坐在长椅上")
    (True, False, False)
    >>> is_english("man riding horse"), is_english("mies istuu puiston penkillä")
    (True, False)
    """
    words = [word for word in split(text).lower if word.isalpha()]
    if not words:
        return True
    if sum(word[0] > _LATIN for word in words) * 2 > len(words):
        return False
    closed, foreign = tagger_lists().closed, _foreign()
    native, strange = sum(word in closed for word in words), sum(word in foreign for word in words)
    if strange > native:
        return False
    tagger, index = coco().tagger, coco().index
    return len(words) < _ENOUGH or bool(native) or any(word in index or tagger.knows(word) for word in words)
