"""A caption as MetaIC reads it, for its published figures: no synonyms, no counting, class names of one word.

What the paper names as its own false positives is kept here: a woman is no person, a parrot no bird, "a pair of
scissors" is plural, and 20 of COCO's classes are never seen (15 by its code for other captioners).
`read_caption` mends all of it.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from instar.tasks.meta_ic.language.nouns import plural
from instar.tasks.meta_ic.language.splitting import split
from instar.tasks.meta_ic.language.vocabulary import coco
from instar.tasks.meta_ic.language.word_lists import read_table


@cache
def paper_classes(count: int = 60) -> tuple[str, ...]:
    """The classes that MetaIC sees: 60 by its code for a commercial captioner, 65 by that for the others."""
    table = read_table("paper")
    unseen = table["unseen"].split() if count == 60 else ()
    return tuple(name for name in table["classes"].split() if name not in unseen)


@cache
def _forms(count: int) -> dict[str, str]:
    """The class of each word, in the singular and in the plural."""
    return {form: name for name in paper_classes(count) for form in (plural(name), name)}


def read_paper(text: str, count: int = 60) -> dict[str, Literal["one", "many"]]:
    """The classes named by a noun of exactly that spelling; one seen twice is many.

    >>> read_paper("a man with two dogs and a dog next to an orange ball"), read_paper("a pair of scissors")
    ({'dog': 'many'}, {'scissors': 'many'})
    """
    words = split(text).lower
    tags = coco().tagger.tag(words)
    numbers: dict[str, Literal["one", "many"]] = {}
    for word, tag in zip(words, tags, strict=True):
        name = _forms(count).get(word)
        if name is not None and tag in ("noun", "plural"):
            numbers[name] = "one" if tag == "noun" and name not in numbers else "many"
    return numbers
