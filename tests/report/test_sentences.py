"""Sentences on a run read at once: the verb fits the number, a rule is said in words, and each way is counted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from instar.report.sentences import noise_words, rejected_rule_words, rule_words, violating
from tests.quality.words import plain

MEANINGS = {"lost": "found in the source alone", "invented": "found in the follow-up alone"}


@pytest.mark.parametrize(
    ("violated", "judged", "words"),
    [
        (0, 1, "0 of 1 case violates"),
        (1, 1, "1 of 1 case violates"),
        (1, 2, "1 of 2 cases violates"),
        (0, 2, "0 of 2 cases violate"),
        (1200, 2000, "1,200 of 2,000 cases violate"),
    ],
)
def test_the_verb_fits_the_number(violated: int, judged: int, words: str) -> None:
    assert violating({"violated": violated, "judged": judged}) == words


def row(violated: int, worst: float, **kinds: int) -> dict[str, Any]:
    name, words = "motion(11, 0)", "motion blur, 11 pixels, at 0°"
    counts = [{"kind": kind, "count": count} for kind, count in kinds.items()]
    return {"name": name, "words": words, "violated": violated, "judged": 9, "worst": worst, "kinds": counts}


@pytest.mark.parametrize(
    ("found", "ways"),
    {
        "by how far": (row(2, 0.31), "by up to 0.31 body lengths"),
        "all in one way": (row(2, math.inf, lost=2), "found in the source alone (lost)"),
        "a kind that nobody explains": (row(2, 1.0, upside_down=2), "upside_down"),
        "in several ways": (
            row(4, 0.31, lost=2, invented=1),
            "in 2 cases found in the source alone (lost), in 1 case found in the follow-up alone (invented), in 1 case "
            "by up to 0.31 body lengths",
        ),
        "how far, beside ∞": (
            row(3, math.inf, lost=2),
            "in 2 cases found in the source alone (lost), in 1 case found in both images, too far off",
        ),
        "∞ without a kind": (row(3, math.inf), "found in only one of the two images"),
    }.values(),
)
def test_a_violated_rule_is_said_in_words_with_every_way_counted(found: dict[str, Any], ways: str) -> None:
    start = f"{found['violated']} of 9 cases violate motion(11, 0) (motion blur, 11 pixels, at 0°): "
    assert rule_words(found, "body lengths", MEANINGS, None) == f"{start}{ways}."
    told = rule_words(found, "body lengths", MEANINGS, "blur along the image")
    assert told == f"{start}{ways}. This rule is about: blur along the image."


def test_a_test_rejects_and_tests_reject() -> None:
    one = {"share": 1.0, "tests": 1, "p_corrected": 0.04}
    assert "100 % of 1 test rejects (corrected p = 0.04)" in plain(rejected_rule_words(one, "mirror(h)", None))
    assert "100 % of 2 tests reject (" in plain(rejected_rule_words({**one, "tests": 2}, "mirror(h)", None))


def test_noise_names_its_relation_where_there_are_several() -> None:
    noise = {"noisy": 1, "judged": 6, "floor": 0.004}
    assert plain(noise_words(noise)).endswith("differ by a severity of at most 0.004.")
    assert plain(noise_words(noise, "wvc")).endswith("differ by a severity of at most 0.004 of wvc.")
