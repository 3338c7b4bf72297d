"""MetaIC's reading of captions, against which of 2000 pairs the original reported."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from instar.tasks.meta_ic.language import paper_classes, read_paper
from tests.missing import shared

FILES = {"overlap-0": 888, "overlap-15": 887}
"""The golden files, and how many of their 1000 pairs the original reported."""

DIFFERENT: dict[tuple[str, int], str] = {}
"""Pairs that are judged otherwise than by the original, with the explanation. There is none."""

# The words on which a reading without a tagger fails: what the original took them for.
TURNING = [
    ("overlap-0", 18, "follow_up", "orange", None, "a colour: a large orange ball"),
    ("overlap-15", 18, "follow_up", "orange", None, "a colour: a large orange ball"),
    ("overlap-0", 449, "follow_up", "orange", None, "a colour: a large orange balloon"),
    ("overlap-15", 449, "follow_up", "orange", None, "a colour: a large orange balloon"),
    ("overlap-15", 598, "follow_up", "orange", None, "a colour: a large orange ball in the air"),
    ("overlap-0", 548, "follow_up", "remote", None, "an adjective: a remote control on a shelf"),
    ("overlap-0", 82, "source", "sheep", "many", "without an article: a group of sheep grazing"),
    ("overlap-0", 82, "follow_up", "sheep", "one", "with one: a person sitting on a sheep"),
    ("overlap-15", 82, "source", "sheep", "many", "without an article: a group of sheep grazing"),
    ("overlap-0", 772, "source", "sheep", "many", "without an article: walking with sheep"),
    ("overlap-15", 772, "follow_up", "sheep", "many", "without an article: a group of sheep"),
]


@cache
def pairs(name: str) -> dict[int, dict[str, Any]]:
    rows = [json.loads(line) for line in (shared("golden/meta-ic") / f"{name}.jsonl").read_text("utf-8").splitlines()]
    return {row["pair"]: row for row in rows}


def reported(pair: dict[str, Any]) -> bool:
    """MR1: exactly the inserted class is added. Where it holds, MR2: numbers stay, and the inserted one's is right."""
    source, follow_up, inserted = read_paper(pair["source"]), read_paper(pair["follow_up"]), pair["inserted"]
    if set(follow_up) != set(source) | {inserted}:
        return True
    expected = {**source, inserted: "many" if inserted in source else "one"}
    return follow_up != expected


@pytest.mark.parametrize("name", FILES)
def test_the_same_pairs_are_reported(name: str) -> None:
    found = {number: reported(pair) for number, pair in pairs(name).items()}
    other = {(name, number) for number, pair in pairs(name).items() if found[number] != pair["reported"]}
    assert other == {pair for pair in DIFFERENT if pair[0] == name}
    assert sum(found.values()) == FILES[name]


@pytest.mark.parametrize(("name", "number", "which", "word", "expected", "why"), TURNING)
def test_the_words_on_which_it_turns(
    name: str, number: int, which: str, word: str, expected: str | None, why: str
) -> None:
    assert read_paper(pairs(name)[number][which]).get(word) == expected, why


def test_the_sixty_classes_are_those_inserted() -> None:
    assert {pair["inserted"] for name in FILES for pair in pairs(name).values()} == set(paper_classes())
    assert len(paper_classes()) == 60


def test_what_the_paper_names_as_its_false_positives_stays() -> None:
    assert read_paper("a woman and a parrot") == {}
    assert read_paper("a pair of scissors") == {"scissors": "many"}
    assert read_paper("a teddy bear next to a traffic light") == {"bear": "one"}
    assert read_paper("a dog and a dog") == {"dog": "many"}
    assert read_paper("two people") == {"person": "many"}
