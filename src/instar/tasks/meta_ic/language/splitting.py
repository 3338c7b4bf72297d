"""A text split into words, with the place of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(r"w/o?(?=\s)|[^\W_]+(?:['’](?!s\b)[^\W_]+)*|['’]s\b|\S", re.IGNORECASE)
_APOSTROPHES = "'’‘`´"
_QUOTES = '"“”„«»'
_HYPHENS = "-‐‑"
_WRITTEN_OUT = {"w/": "with", "w/o": "without", "&": "and"}


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, in lists of equal length.

    `lower` are the words in small letters, `start` and `end` their places in the text, `joined` says that only a hyphen
    stands before a word, and `quoted` which word is the first between the quotation marks around it (-1: without).
    """

    raw: list[str]
    lower: list[str]
    start: list[int]
    end: list[int]
    joined: list[bool]
    quoted: list[int]


def split(text: str) -> Words:
    """The words of a text: the 's of a possessive is one of its own, and so is every mark but hyphens and quotes.

    >>> split("A dog's two-tone “hot dog”.").lower
    ['a', 'dog', "'s", 'two', 'tone', 'hot', 'dog', '.']
    """
    words = Words([], [], [], [], [], [])
    hyphen, quote = False, -1
    for match in _WORD.finditer(text):
        word = match[0]
        at, to = match.span()
        if len(word) == 1 and not word.isalnum():
            touching = bool(words.end) and words.end[-1] == at
            if word in _HYPHENS and touching and words.raw[-1][-1].isalnum() and text[to : to + 1].isalnum():
                hyphen = True
                continue
            if word in _QUOTES:
                quote = len(words.raw) if quote < 0 else -1
                continue
            if word in _APOSTROPHES and not (touching and words.lower[-1][-1] == "s"):  # else the dogs' bowls
                continue
        words.raw.append(word)
        small = word.lower().replace("’", "'")
        words.lower.append(_WRITTEN_OUT.get(small, small))
        words.start.append(at)
        words.end.append(to)
        words.joined.append(hyphen)
        words.quoted.append(quote)
        hyphen = False
    return words
