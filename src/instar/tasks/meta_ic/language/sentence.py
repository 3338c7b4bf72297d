"""A caption as the reader sees it: words with their tags, and what stands around a place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from instar.tasks.meta_ic.language.splitting import Words
from instar.tasks.meta_ic.language.vocabulary import Entry, Vocabulary
from instar.tasks.meta_ic.language.word_lists import word_sets

REACH = 12
"""How many words back anything looks, so that no text takes long."""
NOUN_TAGS = ("noun", "plural")


@dataclass(frozen=True, slots=True)
class ReaderLists:
    """The lists of `reading.toml`, which says what each of them is."""

    measures: frozenset[str]
    paired: frozenset[str]
    portions: frozenset[str]
    pieces: frozenset[str]
    groups: frozenset[str]
    sided: frozenset[str]
    shaped: frozenset[str]
    side_by_side: frozenset[str]
    depictions: frozenset[str]
    activities: frozenset[str]
    sports: frozenset[str]
    goes: frozenset[str]
    plays: frozenset[str]
    games: frozenset[str]
    handled: frozenset[str]
    looks: frozenset[str]
    meant: frozenset[str]
    without: frozenset[str]
    free: frozenset[str]
    never: frozenset[str]
    not_only: frozenset[str]
    kin: frozenset[str]
    sexes: frozenset[str]
    pets: frozenset[str]
    other: frozenset[str]
    definite: frozenset[str]
    one: frozenset[str]
    many: frozenset[str]
    open: frozenset[str]
    stand_ins: frozenset[str]
    breaks: frozenset[str]
    one_acts: frozenset[str]
    many_act: frozenset[str]
    one_owns: frozenset[str]


@cache
def _reader_lists() -> ReaderLists:
    return ReaderLists(**word_sets("reading"))


class Phrase(NamedTuple):
    """What stands before a noun and belongs to it: from which word, its article, its numerals, what makes it many."""

    first: int
    determiner: str
    counts: tuple[str, ...]
    many: str


class Occurrence(NamedTuple):
    """Words of a caption, from `first` up to `end`, that may name a class, as they are written, and their phrase."""

    entry: Entry
    label: str
    first: int
    end: int
    wording: str
    phrase: Phrase


class Sentence:
    """The words of a caption with their tags. Places are indices of words."""

    __slots__ = ("lists", "lower", "size", "tags", "vocabulary", "words")

    def __init__(self, words: Words, tags: list[str], vocabulary: Vocabulary) -> None:
        self.words, self.tags, self.vocabulary = words, tags, vocabulary
        self.lower, self.size = words.lower, len(words.lower)
        self.lists = _reader_lists()

    def word(self, at: int) -> str:
        return self.lower[at] if 0 <= at < self.size else ""

    def tag(self, at: int) -> str:
        return self.tags[at] if 0 <= at < self.size else ""

    def before(self, first: int) -> Phrase:
        """The words before a noun that belong to it, back to its article."""
        lower, tags, joined = self.lower, self.tags, self.words.joined
        at, determiner, many = first, "", ""
        counts: list[str] = []
        while at and first - at < REACH:
            word, tag = lower[at - 1], tags[at - 1]
            if joined[at] or joined[at - 1] or tag in ("adjective", "noun") or word == "very":
                at -= 1
            elif tag == "number":
                if lower[at] not in self.lists.sided:
                    counts.append(word)
                at -= 1
            elif word in ("and", ",", "or") and at < first and tags[at] == self.tag(at - 2) == "adjective":
                at -= 1
            elif word == "and" and lower[at] in self.lists.sexes and self.word(at - 2) in self.lists.sexes:
                many = lower[at - 2]
                at -= 2
            elif tag == "determiner" or word in ("her", "'s", "'", "that"):
                determiner = word
                at -= 1
                if word in self.lists.one and at + 1 < first and self.word(at - 1) == "and" and self.another(at - 2):
                    many = "and"
                break
            else:
                break
        return Phrase(at, determiner, tuple(counts), many)

    def another(self, at: int) -> bool:
        """Whether 'a red' ends here, which shares its noun with 'and a blue bus'."""
        adjectives = 0
        while self.tag(at) == "adjective" and adjectives < REACH:
            adjectives += 1
            at -= 1
        return adjectives > 0 and self.word(at) in self.lists.one

    def living(self, word: str) -> bool:
        """Whether a word names people or animals."""
        groups = self.vocabulary.index.get(word)
        return groups is not None and len(groups[-1][0].words) == 1 and self.vocabulary.lives(groups[-1][0].label)

    def piece(self, label: str, after: str) -> bool:
        """A pizza slice: the food is there, as a part."""
        return after in self.lists.pieces and self.vocabulary.supers.get(label) == "food"
