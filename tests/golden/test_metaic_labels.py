"""Precision and recall on the 300 golden pairs that were labelled by reading, before the relations were written."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from instar.tasks.meta_ic.comparison import compared
from tests.missing import shared

SECOND = [
    json.loads(line) for line in (Path(__file__).parent / "metaic_labels_2.jsonl").read_text("utf-8").splitlines()
]
LABELS = [json.loads(line) for line in (Path(__file__).parent / "metaic_labels.jsonl").read_text("utf-8").splitlines()]


def golden() -> dict[tuple[str, int], dict[str, Any]]:
    folder = shared("golden") / "meta-ic"
    return {
        (name, row["pair"]): row
        for name in ("overlap-0", "overlap-15")
        for row in map(json.loads, (folder / f"{name}.jsonl").read_text("utf-8").splitlines())
    }


def scores(reader: str, labels: list[dict[str, Any]] = LABELS) -> tuple[float, float, list[tuple[str, int]]]:
    pairs = golden()
    hits, alarms, errors, wrong = 0, 0, 0, []
    for label in labels:
        if label["label"] == "undecidable":
            continue
        key = label["file"], label["pair"]
        row = pairs[key]
        found = compared(row["source"], row["follow_up"], [row["inserted"]], reader=reader)
        reported, error = bool(found.missing or found.extra or found.numbers), label["label"] == "error"
        hits, alarms, errors = hits + (reported and error), alarms + reported, errors + error
        if reported and not error:
            wrong.append(key)
    return hits / alarms, hits / errors, wrong


def test_the_sample_is_the_one_that_its_seed_draws() -> None:
    everything = sorted((name, row["pair"]) for (name, _), row in golden().items())
    drawn = random.Random(20261115).sample(everything, 300)
    assert [(label["file"], label["pair"]) for label in LABELS] == drawn
    assert {label["label"] for label in LABELS} == {"error", "no error", "undecidable"}


def test_the_second_sample_was_drawn_of_the_rest() -> None:
    first = {(label["file"], label["pair"]) for label in LABELS}
    drawn = random.Random(20261417).sample(sorted(golden().keys() - first), 160)
    assert [(label["file"], label["pair"]) for label in SECOND] == drawn


def test_the_second_sample_at_the_first_look() -> None:
    precision, recall, wrong = scores("words", SECOND)
    assert (precision, wrong) == (1, [])
    assert recall == pytest.approx(137 / 138)
    assert scores("paper", SECOND)[0] == pytest.approx(137 / 140)


def test_precision_is_above_the_papers_and_recall_no_worse() -> None:
    ours, found, wrong = scores("words")
    paper, theirs, _ = scores("paper")
    assert paper == pytest.approx(0.984, abs=0.001)
    assert theirs == pytest.approx(0.996, abs=0.001)
    assert ours > paper, wrong
    assert found >= 0.9 * theirs
    assert not wrong


@pytest.mark.parametrize(
    ("source", "follow_up", "inserted"),
    [
        ("a bench in a garden", "a parrot on a bench", "bird"),
        ("a woman with an umbrella", "a person with an umbrella and a dog", "dog"),
        ("an airplane in the sky", "a plane in the sky and a kite", "kite"),
        ("a desk", "a pair of scissors on a desk", "scissors"),
        ("two sheep in a field", "a herd of sheep in a field and a cow", "cow"),
        ("a man with an orange ball", "a man with an orange ball and a cat", "cat"),
        ("a kitchen", "a kitchen with a microwave oven", "microwave"),
        ("a group of people", "several people and a truck", "truck"),
        ("a child with a teddy bear", "a kid with a teddy bear and a remote control", "remote"),
    ],
)
def test_the_false_positives_that_the_paper_names_are_gone(source: str, follow_up: str, inserted: str) -> None:
    assert compared(source, follow_up, [inserted]).sentences == {"objects": (), "numbers": ()}


def test_wider_words_are_not_held_against_a_caption() -> None:
    found = compared("a field", "an animal in a field", ["dog"])
    assert (found.missing, found.vague) == ((), ("dog",))
