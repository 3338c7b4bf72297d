"""What a caption names: mentions of classes, and the reading that they make up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Number = Literal["one", "many", "any"]
"""`any` where the words leave the number open: broccoli, a pair of scissors, every bed."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Words of a caption that name a class; `start` and `end` are their place in the text.

    `again` says that they name what was named before: "a man …, the man …". A wider word ("animal") has `classes`,
    those it may stand for, and itself as label. A word whose sense the words around decide ("bike") has `senses`: the
    classes that it may name, "" for none of them, first what it was taken for; `word` is that word in the singular.
    """

    label: str
    number: Number
    start: int
    end: int
    why: str
    again: bool = False
    classes: tuple[str, ...] = ()
    word: str = ""
    senses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a caption says: the mentions that count, those that do not, and the wider words. Each in order."""

    text: str
    mentions: tuple[Mention, ...]
    dismissed: tuple[Mention, ...]
    wider: tuple[Mention, ...]

    @property
    def objects(self) -> dict[str, Number]:
        """The classes named, each with its number over all its mentions.

        Two different ones are many. A number that is left open says nothing against one that is not.
        """
        numbers: dict[str, list[Number]] = {}
        for mention in self.mentions:
            if not mention.again:
                numbers.setdefault(mention.label, []).append(mention.number)
        return {label: _together(of) for label, of in numbers.items()}


def _together(numbers: list[Number]) -> Number:
    if "many" in numbers or numbers.count("one") > 1:
        return "many"
    return "one" if "one" in numbers else "any"
