"""A tagger says which kind each word of a text is.

The embedded tagger knows lists of common words, endings and the words around; it needs no model.
Any other is a function from words to tags: `docs/captions.md` shows one around spaCy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from instar.tasks.meta_ic.language.lexicon import (
    ADJECTIVE,
    ADVERB,
    ED,
    ING,
    NOUN,
    PLAIN,
    PLURAL,
    THIRD,
    TaggerLists,
    add_kind,
    guessed_kinds,
    known_kinds,
    tagger_lists,
)

# fmt: off
Tag = Literal[
    "noun", "plural", "verb", "adjective", "adverb", "determiner", "number", "preposition", "conjunction", "pronoun",
    "other",
]
# fmt: on
TAGS: tuple[str, ...] = get_args(Tag)

Tagger: TypeAlias = Callable[[list[str]], Sequence[str]]
"""Takes the words of a text, punctuation among them, and returns a tag for each: one of `TAGS`.

`noun` is one in the singular, `plural` one in the plural; `verb` is any form of a verb, except where it stands before
a noun and describes it ("a parked car": `adjective`).
"""

_LAST_LATIN = "\u024f"
"""Words of other scripts are no nouns of English."""
_REACH = 12
"""How many words back anything looks, so that no text takes long."""


@dataclass(eq=False)
class EmbeddedTagger:
    """Tags by lists, endings and the words around; `nouns` and `plurals` are the words of a vocabulary.

    `animate` are those that do things, `people` among them: after them, a word that may be a verb is one.

    >>> EmbeddedTagger({"dog", "boy"}, {"dogs"}, {"dog", "boy"}, {"boy"})(["A", "boy", "dogs", "a", "dog"])
    ['determiner', 'noun', 'verb', 'determiner', 'noun']
    """

    nouns: Collection[str]
    plurals: Collection[str]
    animate: Collection[str]
    people: Collection[str]
    _lists: TaggerLists = field(init=False, repr=False)
    _known: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._lists, self._known = tagger_lists(), dict(known_kinds())
        add_kind(self._known, self.nouns, NOUN)
        add_kind(self._known, self.plurals, PLURAL)

    def __call__(self, words: list[str]) -> list[str]:
        return self.tag([word.lower().replace("’", "'") for word in words])

    def knows(self, word: str) -> bool:
        """Whether a word is in a list."""
        return word in self._known or word in self._lists.closed

    def guesses_noun(self, word: str) -> bool:
        """Whether a word is in no list, and does not end like a verb, an adjective or an adverb."""
        return not self.knows(word) and bool(guessed_kinds(word) & (NOUN | PLURAL))

    def is_third(self, word: str) -> bool:
        """Whether a verb goes with one: stands."""
        return bool(self._flags(word) & THIRD)

    def is_plain(self, word: str) -> bool:
        """Whether a verb goes with many: stand."""
        flags = self._flags(word)
        return bool(flags & PLAIN) and not flags & (ING | ED)

    def tag(self, words: list[str]) -> list[str]:
        """The same as a call, for words that are in small letters already."""
        tags: list[str] = []
        for at, word in enumerate(words):
            closed = self._lists.closed.get(word)
            if closed is not None:
                tags.append(closed)
            elif word[0].isdigit():
                tags.append("number")
            elif not word[0].isalpha() or word[0] > _LAST_LATIN:
                tags.append("other")
            else:
                tags.append(self._open(words, tags, at) if word.isalpha() else "noun")
        return tags

    def _flags(self, word: str) -> int:
        kinds = self._known.get(word)
        return guessed_kinds(word) if kinds is None else kinds

    def _names(self, word: str) -> bool:
        """Whether a word can go on with what an adjective began."""
        return (
            word not in self._lists.closed and word.isalpha() and bool(self._flags(word) & (NOUN | PLURAL | ADJECTIVE))
        )

    def _open(self, words: list[str], tags: list[str], at: int) -> str:
        """The tag of a word that is in no closed list."""
        flags = self._flags(words[at])
        if flags == NOUN:
            return "noun"
        before = tags[at - 1] if at else ""
        if flags == PLURAL:
            return "verb" if before == "noun" and self._after_one(words, tags, at) else "plural"
        if flags & (THIRD | PLAIN) and self._is_verb(words, tags, at, flags):
            return "verb"
        if flags & (ING | ED):
            return self._participle(words, at, flags, before)
        if flags & ADJECTIVE and (not flags & (NOUN | PLURAL) or self._describes(words, tags, at)):
            return "adjective"
        if flags & NOUN and flags & PLURAL:  # sheep
            first = self._start(words, tags, at)
            return "noun" if first and words[first - 1] in self._lists.one else "plural"
        if flags & (NOUN | PLURAL):
            return "noun" if flags & NOUN else "plural"
        return "adverb" if flags & ADVERB else "verb" if flags else "other"

    def _participle(self, words: list[str], at: int, flags: int, before: str) -> str:
        """A form in -ing or -ed: it describes a noun, is one (a crossing), or says what is done."""
        after = words[at + 1] if at + 1 < len(words) else ""
        compound = before == "noun" and words[at - 1] not in self.nouns and after not in self._lists.objects
        led = before in ("determiner", "adjective", "number")
        if flags & NOUN and (compound or led or not before or after in self._lists.after_activities):
            return "noun"
        if (led or before == "preposition") and self._names(after):
            return "adjective"
        return "adjective" if not before and flags & ED and self._names(after) else "verb"

    def _describes(self, words: list[str], tags: list[str], at: int) -> bool:
        """Whether what may be an adjective or a noun (orange, remote) is the adjective."""
        word, before, after = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
        if self._names(after):
            return not self._flags(after) & (ING | ED) or (at + 2 < len(words) and self._names(words[at + 2]))
        if word not in self._lists.colours:
            return at > 0 and tags[at - 1] in ("verb", "adverb")
        beside = {
            words[at - 2] if at > 1 and before in ("and", "or", ",") else before,
            words[at + 2] if at + 2 < len(words) and after in ("and", "or", ",") else "",
        }
        return bool(beside & self._lists.colours) or before in self._lists.coloured

    def _is_verb(self, words: list[str], tags: list[str], at: int, flags: int) -> bool:
        """Whether what may be a verb is one. What is no noun at all is."""
        before, word_before = (tags[at - 1], words[at - 1]) if at else ("", "")
        after = words[at + 1] if at + 1 < len(words) else ""
        if word_before == "to":
            return bool(flags & PLAIN) and (
                not flags & NOUN or after in self._lists.objects or (at > 1 and words[at - 2] in self._lists.willing)
            )
        if word_before in self._lists.subjects and not (word_before == "that" and (at < 2 or tags[at - 2] == "verb")):
            return True
        if word_before in self._lists.modals:
            return bool(flags & PLAIN)
        if not flags & (NOUN | PLURAL):
            return not flags & ADJECTIVE or before in ("noun", "plural", "pronoun", "adverb")
        if before == "noun" or (word_before in self.nouns and word_before in self.plurals):
            return self._goes_with(words, tags, at, flags, after)
        if before == "plural":
            return bool(flags & PLAIN) and after not in ("and", "or", ",")
        if before == "adverb":
            return at > 1 and tags[at - 2] in ("noun", "plural", "pronoun") and word_before not in ("back", "side")
        if before == "conjunction":
            return bool(flags & THIRD) and after in self._lists.objects and "verb" in tags[-_REACH:]
        return False

    def _after_one(self, words: list[str], tags: list[str], at: int) -> bool:
        """After 'a man': nothing in the plural goes on with it, so that what looks like one is a verb."""
        first = self._start(words, tags, at - 1)
        return (
            first > 0
            and words[first - 1] in self._lists.one
            and words[at - 1] in self.animate
            and words[at - 1] != "couple"
        )

    def _goes_with(self, words: list[str], tags: list[str], at: int, flags: int, after: str) -> bool:
        """After one noun: the verb that goes with it, or else the head of a compound."""
        noun, first = words[at - 1], self._start(words, tags, at - 1)
        determiner = words[first - 1] if first else ""
        if not flags & THIRD:
            if noun in self.plurals:  # sheep graze
                return after in self._lists.objects or (
                    words[at] in self._lists.plain and determiner not in self._lists.one
                )
            return noun in self.animate and (
                after in self._lists.objects
                or (
                    words[at] in self._lists.plain and (after in self._lists.closed or not after or noun in self.people)
                )
            )
        if noun == "couple":  # a couple skis past; a couple cups of coffee
            return after in self._lists.directions or after in self._lists.objects
        if determiner in self._lists.one or after in self._lists.objects:
            return True
        if noun in self._lists.before_nouns or "number" in tags[first : at - 1]:
            return not flags & PLURAL
        if noun in self.animate:
            return not flags & PLURAL or (
                words[at] not in self._lists.things and words[at] not in self._lists.rarely_verbs
            )
        if determiner not in self._lists.definite:
            return not flags & PLURAL
        # The sun sinks behind the hills, the tree bears ripe fruit; but the kitchen sinks, the train tracks are long.
        if noun in self._lists.compounding or any(word in self._lists.finite for word in words[at + 1 : at + 8]):
            return False
        if after in self._lists.closed or not after or self._flags(after) == PLURAL:
            return True
        return bool(self._flags(after) & ADJECTIVE) and at + 2 < len(words) and self._names(words[at + 2])

    def _start(self, words: list[str], tags: list[str], at: int) -> int:
        """Where the noun phrase that ends here begins, after its article."""
        last = at
        while at and last - at < _REACH and words[at - 1] not in self._lists.one:
            word, tag = words[at - 1], tags[at - 1]
            linked = (
                word in ("and", ",")
                and at < last
                and tags[at] == "adjective"
                and tags[at - 2 : at - 1] == ["adjective"]
            )
            if not linked and (tag not in ("noun", "adjective", "number", "adverb") or word == "not"):
                break
            at -= 1
        return at
