"""Shards: the cases of one plan are shared out among several runs, each with a folder of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import xxhash

_SPELLING = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_FOLDER = re.compile(r".*-([0-9]{1,9})-of-([0-9]{1,9})")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One of `total` runs among which the cases of a plan are shared out; they are numbered from 1.

    >>> [number for number in (1, 2, 3) if Shard(number, 3).holds("photos/1.jpg")]
    [3]
    """

    number: int
    total: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.total:
            numbers = f"they are numbered from 1 to {self.total}" if self.total else "the total is at least 1"
            raise ValueError(f"there is no shard {self}: {numbers}")

    @classmethod
    def parse(cls, spelling: str) -> Shard:
        """The shard that a user spelled as `3/64`."""
        numbers = _SPELLING.fullmatch(spelling.strip())
        if numbers is None:
            raise ValueError(f"{spelling!r} is no shard; give its number and how many there are: 3/64")
        return cls(int(numbers[1]), int(numbers[2]))

    @classmethod
    def of_folder(cls, folder: str | Path) -> Shard | None:
        """The shard that a folder is called after; None where its name is another one."""
        numbers = _FOLDER.fullmatch(Path(folder).name)
        number, total = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
        return cls(number, total) if 1 <= number <= total else None

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @property
    def words(self) -> str:
        return f"shard {self.number} of {self.total}"

    def holds(self, case: str) -> bool:
        """Whether a case is one of this shard's. Its id alone says so, and no other case does."""
        return bool(xxhash.xxh3_64_intdigest(case.encode()) % self.total == self.number - 1)

    def folder(self, out: str | Path) -> str | Path:
        """The run folder of this shard, where all of them go to `out`; `out` itself where that is its name already.

        >>> Shard(3, 64).folder("runs/first"), Shard(3, 64).folder("runs/first-03-of-64")
        ('runs/first-03-of-64', 'runs/first-03-of-64')
        """
        named = self.of_folder(out)
        if named is None:
            return type(out)(f"{str(out).rstrip('/')}-{self.number:0{len(str(self.total))}d}-of-{self.total}")
        if named != self:
            raise ValueError(
                f"{out} is called after {named.words}, and {self.words} was asked for; give shard {named}, or another "
                "folder"
            )
        return out


def shard_words(shards: tuple[Shard, ...]) -> str:
    """Shards of one total in words.

    >>> shard_words((Shard(3, 64),)), shard_words((Shard(3, 64), Shard(4, 64), Shard(9, 64)))
    ('shard 3 of 64', 'shards 3, 4 and 9 of 64')
    """
    *numbers, last = (str(shard.number) for shard in shards)
    if not numbers:
        return shards[0].words
    if len(numbers) > 8:
        numbers, last = numbers[:8], f"{len(numbers) - 7} more"
    return f"shards {', '.join(numbers)} and {last} of {shards[0].total}"
