"""Captions by kind of difficulty: the set on which the reading was tuned. How labels are made: README.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from instar.tasks.meta_ic.language import read_caption

HERE = Path(__file__).parent

WRONG: set[str] = set()
"""Captions known to be read wrong. One more or one less is a change of the reading, to be looked at."""


@dataclass(frozen=True)
class Labelled:
    kind: str
    caption: str
    objects: dict[str, str]

    @property
    def right(self) -> bool:
        """The classes and every number; an open number must be read as open."""
        return read_caption(self.caption).objects == self.objects

    @property
    def nearly_right(self) -> bool:
        """The same where an open number, on either side, goes with every other."""
        read = read_caption(self.caption).objects
        return read.keys() == self.objects.keys() and all(
            "any" in (number, self.objects[label]) or number == self.objects[label] for label, number in read.items()
        )


def difficult() -> list[Labelled]:
    rows = [json.loads(line) for line in (HERE / "difficult.jsonl").read_text("utf-8").splitlines()]
    return [Labelled(row["kind"], row["caption"], row["objects"]) for row in rows]


def score(captions: Iterable[Labelled]) -> tuple[float, str]:
    """The share of captions read right, and a table of it by kind with what was read wrong."""
    captions = list(captions)
    all_of, right = Counter(one.kind for one in captions), Counter(one.kind for one in captions if one.right)
    nearly = sum(one.nearly_right for one in captions)
    lines = [f"{right[kind]:>4} of {number:>3}  {kind}" for kind, number in all_of.items()]
    lines.append(f"{right.total():>4} of {len(captions):>3}  in all; {nearly} where an open number goes with any other")
    lines += [
        f"{one.caption!r}: {read_caption(one.caption).objects}, not {one.objects}" for one in captions if not one.right
    ]
    return right.total() / len(captions), "\n".join(lines)


def test_difficult_captions_are_read_right() -> None:
    share, table = score(difficult())
    assert share >= 0.98, table


def test_what_is_read_wrong_is_known() -> None:
    captions = difficult()
    assert {one.caption for one in captions if not one.right} == WRONG, score(captions)[1]
