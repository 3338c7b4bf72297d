"""Nouns of English: their plural and singular, their article, and a number of them in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from instar.tasks.meta_ic.language.word_lists import read_table, word_sets


@dataclass(frozen=True, slots=True)
class _Lists:
    """What `nouns.toml` has: numbers in words, plurals that follow no rule, nouns that are not counted one by one."""

    numbers: tuple[str, ...]
    irregular: Mapping[str, str]
    endings: Mapping[str, str]
    pairs: frozenset[str]
    pieces: frozenset[str]
    stuff: frozenset[str]


@cache
def _lists() -> _Lists:
    table, sets = read_table("nouns"), word_sets("nouns")
    return _Lists(
        tuple(table["numbers"].split()),
        {**table["irregular"], **{noun: noun for noun in table["unchanged"].split()}},
        table["endings"],
        sets["pairs"],
        sets["pieces"],
        sets["stuff"],
    )


_HEADED = re.compile(r"(.+?)( (?:at|for|from|in|of|on|to|with) .+)")
"""A glass of wine: the noun that is counted stands first."""

_SPELLED_AN = "AEFHILMNORSX"
"""Letters whose names begin with a vowel."""
_CONSONANT = re.compile(r"eu|ew|one\b|once\b|ouij|u(?:biq|fo\b|k(?:r|ul)|nanim|ni(?![dmn])|[rstv][aeiou])")
"""Written with a vowel, spoken with a consonant: a unicorn, a one-way street, a utensil; but an uneven road."""
_VOWEL = re.compile(r"[aeiou]|h(?:eir|onest|ono|ors d|our)|8|1[18]\b")
"""Spoken with a vowel: an hour, an 8-ball."""


def plural(noun: str) -> str:
    """More than one of them; what has no plural of its own stays as it is.

    >>> plural("wine glass"), plural("person"), plural("sheep"), plural("scissors"), plural("cup of tea")
    ('wine glasses', 'people', 'sheep', 'scissors', 'cups of tea')
    """
    before, word, after = _parted(noun)
    return before + _plural(word) + after


def singular(word: str) -> tuple[str, ...]:
    """The nouns that this may be more than one of; none if it is no plural. Which of them is a noun, a lexicon knows.

    >>> singular("knives"), singular("people"), singular("sheep"), singular("dog")
    (('knife', 'knive'), ('person',), ('sheep',), ())
    """
    before, last, after = _parted(word)
    low, lists = last.lower(), _lists()
    guesses = [_cased(noun, last) for noun, many in lists.irregular.items() if many == low]
    if low.endswith("ses") and not low.endswith("sses"):  # more houses, horses and vases than buses
        guesses.append(last[:-1])
    replaced = (
        *((many, end) for end, many in lists.endings.items()),
        ("ies", "y"),
        ("ves", "f"),
        ("ves", "fe"),
        ("es", ""),
        ("s", ""),
        ("", ""),
    )
    guesses += [_cased(last[: len(last) - len(many)] + end, last) for many, end in replaced if low.endswith(many)]
    nouns = [guess for guess in dict.fromkeys(guesses) if guess and last in (_plural(guess), _regular(guess))]
    return tuple(before + noun + after for noun in nouns)


def article(noun: str) -> str:
    """`a` or `an`, by the sound.

    >>> [f"{article(noun)} {noun}" for noun in ("umbrella", "unicorn", "hour", "SUV", "tv")]
    ['an umbrella', 'a unicorn', 'an hour', 'an SUV', 'a tv']
    """
    first = re.split(r"[\s\-]", noun, maxsplit=1)[0]
    low = noun.lower()
    if first.isalnum() and first[0].isalpha():
        short = first.isupper() and 2 <= len(first) <= 3
        if short or not re.search("[aeiouy]", first.lower()) or len(first) == 1:  # its letters are said one by one
            return "an" if first[0].upper() in _SPELLED_AN else "a"
    return "an" if _VOWEL.match(low) and not _CONSONANT.match(low) else "a"


def counted(number: int, noun: str) -> str:
    """A number of them, in words up to twelve.

    >>> counted(1, "orange"), counted(2, "knife"), counted(1, "scissors"), counted(3, "broccoli"), counted(14, "bird")
    ('an orange', 'two knives', 'a pair of scissors', 'three pieces of broccoli', '14 birds')
    """
    if number < 0:
        raise ValueError(f"there are {number} of {noun!r}; a number of things is 0 or more")
    word, lists = _parted(noun)[1].lower(), _lists()
    if word in lists.stuff:
        return f"some {noun}" if number else f"no {noun}"
    if number and (word in lists.pairs or word in lists.pieces):
        return counted(number, f"pair of {noun}" if word in lists.pairs else f"piece of {noun}")
    if number == 1:
        return f"{article(noun)} {noun}"
    return f"{lists.numbers[number] if number < len(lists.numbers) else number} {plural(noun)}"


def _parted(noun: str) -> tuple[str, str, str]:
    """What stands before the word that changes with the number, that word, and what stands after it."""
    headed = _HEADED.fullmatch(noun)
    head, after = headed.groups() if headed else (noun, "")
    before, space, word = head.rpartition(" ")
    return before + space, word, after


def _plural(word: str) -> str:
    low, lists = word.lower(), _lists()
    if low in lists.pairs or low in lists.pieces or low in lists.stuff:
        return word
    if low in lists.irregular:
        return _cased(lists.irregular[low], word)
    for end, many in lists.endings.items():
        if low.endswith(end):
            return word[: len(word) - len(end)] + (_cased(many, word) if low == end else many)
    return _regular(word)


def _regular(word: str) -> str:
    if word[-1:].isupper() or word[-1:].isdigit():  # two TVs
        return f"{word}s"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(?:s|x|z|ch|sh)$", word) else f"{word}s"


def _cased(word: str, like: str) -> str:
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
