"""What the embedded tagger knows of words, whatever stands around: the kinds that each of them may be.

The words are in `tagger.toml`; one that is in no list is guessed by its ending.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from instar.tasks.meta_ic.language.nouns import plural
from instar.tasks.meta_ic.language.word_lists import read_table, word_sets

NOUN, PLURAL, THIRD, PLAIN, ING, ED, ADJECTIVE, ADVERB = (1 << bit for bit in range(8))
"""What a word may be, as bits: noun, plural, verb with its -s, without it, in -ing, in -ed, adjective, adverb."""

_ADJECTIVE_ENDINGS = ("ful", "less", "ous", "able", "ible", "ish", "ive", "esque", "like", "colored", "coloured")
_NO_PLURAL_ENDINGS = ("ss", "us", "is")


@dataclass(frozen=True, slots=True)
class TaggerLists:
    """The lists of `tagger.toml`, which says what each of them is; `closed` are words of one kind, with their tag."""

    closed: dict[str, str]
    verbs: frozenset[str]
    also_nouns: frozenset[str]
    also_singular: frozenset[str]
    plain: frozenset[str]
    past: frozenset[str]
    nouns: frozenset[str]
    never_verbs: frozenset[str]
    adjectives: frozenset[str]
    colours: frozenset[str]
    willing: frozenset[str]
    modals: frozenset[str]
    one: frozenset[str]
    definite: frozenset[str]
    objects: frozenset[str]
    subjects: frozenset[str]
    finite: frozenset[str]
    directions: frozenset[str]
    after_activities: frozenset[str]
    coloured: frozenset[str]
    things: frozenset[str]
    rarely_verbs: frozenset[str]
    before_nouns: frozenset[str]
    compounding: frozenset[str]


@cache
def tagger_lists() -> TaggerLists:
    closed = read_table("tagger")["closed"]
    return TaggerLists({word: tag for tag, text in closed.items() for word in text.split()}, **word_sets("tagger"))


def add_kind(known: dict[str, int], words: Iterable[str], flag: int) -> None:
    for word in words:
        known[word] = known.get(word, 0) | flag


@cache
def known_kinds() -> dict[str, int]:
    """What the words of the lists may be."""
    lists = tagger_lists()
    known: dict[str, int] = {}
    add_kind(known, lists.adjectives, ADJECTIVE)
    add_kind(known, lists.verbs, PLAIN)
    add_kind(known, map(_third, lists.verbs), THIRD)
    add_kind(known, lists.past, ED)
    add_kind(known, lists.nouns | lists.also_nouns | lists.also_singular, NOUN)
    add_kind(known, {plural(word) for word in lists.nouns} - lists.nouns, PLURAL)
    add_kind(known, map(_third, lists.also_nouns), PLURAL)
    add_kind(known, (word for word in lists.nouns - lists.never_verbs if word.endswith("ing")), ING)
    return known


def _third(verb: str) -> str:
    """The verb after he or she."""
    if verb[-1] == "y" and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "z", "ch", "sh", "go")) else f"{verb}s"


def guessed_kinds(word: str) -> int:
    """What a word that is in no list may be, by its ending."""
    if len(word) > 3 and word.endswith("ed"):
        return ED
    if len(word) < 3:
        return 0
    if len(word) > 4:
        if word.endswith("ing"):
            return ING
        if word.endswith("ly"):
            return ADVERB
        if word.endswith(_ADJECTIVE_ENDINGS):
            return ADJECTIVE
    if len(word) > 3 and word[-1] == "s" and not word.endswith(_NO_PLURAL_ENDINGS):
        return PLURAL | THIRD
    return NOUN
