"""Sentences on a run read at once: the verb fits the number, a rule is said in words, and each way is counted."""

from __future__ import annotations

import math
from pathlib import Path
from string import Formatter
from typing import Any

import polars as pl
import pytest

import instar
from instar.analysis import Answers
from instar.analysis.rates import Judged
from instar.relations import Relation, relations
from instar.report.findings import findings
from instar.report.noise import noise_words
from instar.report.section import noise_of
from instar.report.sentences import (
    _extremes,
    _kinds,
    answers_findings,
    detail_words,
    over_cases_text,
    rejected_rule_finding,
    rule_finding,
    unjudged_findings,
    violating,
)
from instar.report.slice_words import slice_words
from instar.report.words import ONE_SIDED
from tests.engine.test_scenes import in_memory, people, system, walks
from tests.engine.test_scenes import run as ran
from tests.quality.words import plain
from tests.toys import write_scenes

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


def row(violated: int, worst: float | None, **kinds: int) -> dict[str, Any]:
    """A rule's rate; `worst` is that of the violations that are of no kind."""
    name, words = "motion(11, 0)", "motion blur, 11 pixels, at 0°"
    counts = [{"kind": kind, "count": count} for kind, count in kinds.items()]
    row = {"name": name, "words": words, "violated": violated, "judged": 9, "kinds": counts}
    return {**row, "threshold": 0.2, "worst": math.inf, "worst_without_kind": worst}


@pytest.mark.parametrize(
    ("rate", "ways"),
    {
        "by how far": (row(2, 0.31), "by up to 0.31 body lengths"),
        "all in one way": (row(2, None, lost=2), "found in the source alone (lost)"),
        "a kind that nobody explains": (row(2, None, upside_down=2), "upside_down"),
        "in several ways": (
            row(4, 0.31, lost=2, invented=1),
            "in 2 cases found in the source alone (lost), in 1 case found in the follow-up alone (invented), in 1 case "
            "by up to 0.31 body lengths",
        ),
        "how far, beside ∞": (
            row(3, 0.31, lost=2),
            "in 2 cases found in the source alone (lost), in 1 case by up to 0.31 body lengths",
        ),
        "∞ without a kind": (row(3, math.inf), ONE_SIDED),
    }.values(),
)
def test_a_violated_rule_is_said_in_words_with_every_way_counted(rate: dict[str, Any], ways: str) -> None:
    start = f"{rate['violated']} of 9 cases violate motion(11, 0) (motion blur, 11 pixels, at 0°): "
    assert rule_finding(rate, "body lengths", MEANINGS, None).words == f"{start}{ways}."
    sentence = rule_finding(rate, "body lengths", MEANINGS, "mistakes in blur along the image").words
    assert sentence == f"{start}{ways}. This rule looks for mistakes in blur along the image."


@pytest.mark.parametrize(
    ("violated", "words"),
    [
        ([1, 1], "Of the 2 violations, by kind: 2 lost."),
        ([1, 2], "Of the 3 violations, by kind: 2 lost; the other one strays by the threshold or more."),
        ([1, 5], "Of the 6 violations, by kind: 2 lost; the other 4 stray by the threshold or more."),
    ],
)
def test_violations_without_a_kind_are_counted_beside_those_with_one(violated: list[int], words: str) -> None:
    table = pl.DataFrame({"violated": violated, "kinds": [[{"kind": "lost", "count": 1}]] * 2})
    assert _kinds(table, {}) == [words]


def test_low_scores_are_told_only_of_images_in_which_nothing_was_found() -> None:
    """Four of the twelve images have scores that count."""
    judged = Judged(pairs=24, judged=8, nothing_found=16, not_applicable=0, failed=0, cases=12, empty=8)
    (low,) = answers_findings(Answers(12, 8, False, 0.5, 0.48), judged)
    assert low.words.startswith("In the images in which nothing was found, no score reaches the confidence of 0.5")
    assert low.code == "scores.low" and low.figures == {"highest": 0.48, "confidence": 0.5}
    (everywhere,) = answers_findings(Answers(12, 12, True, 0.5, 0.48), judged)
    assert everywhere.words.startswith("No score reaches") and everywhere.code == "scores.low"


def test_a_test_rejects_and_tests_reject() -> None:
    one = {"share": 1.0, "tests": 1, "p_corrected": 0.04}
    assert "100 % of 1 test rejects (corrected p = 0.04)" in plain(rejected_rule_finding(one, "mirror(h)", None).words)
    assert "100 % of 2 tests reject (" in plain(rejected_rule_finding({**one, "tests": 2}, "mirror(h)", None).words)


def test_noise_names_its_relation_where_there_are_several() -> None:
    noise = {"noisy": 1, "judged": 6, "floor": 0.004, "sources": 1, "repeats": 1}
    alone, one_of_several = (plain(noise_words(noise, "body lengths", relation)) for relation in (None, "wvc"))
    assert alone == (
        "The system has noise of its own: asked twice about the same unchanged input, it gave answers that stray "
        "from each other in 1 of 6 cases. In 95 % of the cases the severity between the two answers is at most 0.004 "
        "body lengths."
    )
    assert "in 1 of 6 cases, judged by wvc. In 95 %" in one_of_several


def test_a_system_that_varies_is_told_how_often_it_was_asked(tmp_path: Path) -> None:
    """A predictor with a seed differs each time, as it should: a severity of 0 does not mean the same answer."""

    run = ran(system(walks), in_memory(*people(3)), tmp_path / "run", "identity => wvc(sources=4, repeats=2)")
    (noise,) = noise_of(run).iter_rows(named=True)
    assert (noise["sources"], noise["repeats"]) == (4, 2)
    assert plain(noise_words({**noise, "noisy": 2, "floor": 0.5}, "times its own", "wvc")) == (
        "The system's answers to one input vary by chance, as it says of itself. It was asked 4 times about the source "
        "and 2 times about the same again: the severity between the two sets of answers is above 0 in 2 of 3 cases, "
        "judged by wvc, and in 95 % of the cases at most 0.5 times its own. So much may be chance."
    )
    assert not any("twice" in one.words or "deterministic" in one.words for one in findings(run))


@pytest.mark.parametrize(
    ("counts", "sentences"),
    {
        "one rule at each end": (
            [(4, 6), (2, 6), (1, 6)],
            [
                "The most violated rule is a: 4 of 6 cases violate it.",
                "The least violated rule is c: 1 of 6 cases violates it.",
            ],
        ),
        "several at the top": (
            [(4, 6), (4, 6), (1, 6)],
            [
                "The most violated rules are a and b: 4 of 6 cases violate each of them.",
                "The least violated rule is c: 1 of 6 cases violates it.",
            ],
        ),
        "many at the top": (
            [(4, 6)] * 5 + [(0, 6)] * 2,
            [
                "The most violated rules are a, b, c and 2 more: 4 of 6 cases violate each of them.",
                "2 rules are violated by no case.",
            ],
        ),
        "as often, of other numbers of cases": (
            [(2, 4), (3, 6), (1, 6)],
            [
                "The most violated rules are a and b: each is violated by 50 % of its cases.",
                "The least violated rule is c: 1 of 6 cases violates it.",
            ],
        ),
        "all alike": (
            [(1, 6), (1, 6)],
            ["No rule is violated more often than another: 1 of 6 cases violates each of them."],
        ),
        "none": ([(0, 6), (0, 5)], ["No rule is violated at this threshold."]),
    }.values(),
)  # fmt: skip
def test_rules_that_are_violated_as_often_are_all_named(counts: list[tuple[int, int]], sentences: list[str]) -> None:
    """At ties, to name one rule alone would call it worse than its like."""
    rows = [
        {"name": name, "violated": violated, "judged": judged, "rate": violated / judged}
        for name, (violated, judged) in zip("abcdefg", counts, strict=False)
    ]
    assert [plain(words) for words in _extremes(pl.DataFrame(rows))] == sentences


def test_an_image_with_an_answer_to_a_follow_up_alone_is_an_empty_source() -> None:
    """Twelve sources are empty; one of them has pairs all the same, since something is found in a follow-up."""
    judged = Judged(pairs=180, judged=36, nothing_found=143, not_applicable=1, failed=0, cases=15, empty=11)
    first, few = unjudged_findings(judged, Answers(15, 12, False))
    assert first.words == "The system found nothing in 12 of 15 source images."
    assert (first.code, few.code) == ("judged.seldom_found", "judged.few")


@pytest.mark.parametrize(
    ("relation", "measures", "words"),
    {
        "a person who is lost": (
            "poses",
            {"severity": math.inf, "compared": 33, "missing": 33, "worst": "nose", "length": 44.32},
            ["in one image alone: 33 of 33 landmarks", "a severity of 1 is 44.3 pixels here"],
        ),
        "a person who strays": (
            "poses",
            {"severity": 0.3, "compared": 33, "missing": 0, "worst": "left_hand.thumb_tip", "length": 44.32},
            ["thumb tip (left hand) strays furthest", "a severity of 1 is 44.3 pixels here"],
        ),
        "a box that moved": (
            "detections",
            {"severity": 0.5, "label": "dog", "iou": 0.50123, "lost": 0, "invented": 0, "doubled": 0},
            ["the two boxes overlap by 0.501 (IoU)"],
        ),
        "a class that is worst": (
            "class_overlap",
            {"severity": 0.4, "worst": "skin", "worst_iou": 0.6, "mean_iou": 0.8211, "pixel_accuracy": 0.97},
            [
                "skin overlaps least, by 0.6 (IoU)", "all classes overlap by 0.821 on average (IoU)",
                "97 % of the cells agree",
            ],
        ),
    }.values(),
)  # fmt: skip
def test_what_was_measured_is_said_in_words(relation: str, measures: dict[str, Any], words: list[str]) -> None:
    assert [plain(clause) for clause in detail_words(relations()[relation], measures)] == words


def test_what_a_classifier_named_is_said_in_words() -> None:
    measured = {"source_class": "bear", "class": "book", "first_class": "book", "undecided": False, "source_score": 0.7}
    assert detail_words(relations()["class_kept"], measured) == [
        "bear comes first in the source, book in the follow-up"
    ]


def test_measures_of_a_relation_without_words_are_shown_by_their_names() -> None:
    own = Relation(
        "mine", "poses", lambda evidence: evidence.cases, "steps", 1.0, (1.0,), measures={"left_over": pl.Float64}
    )
    assert detail_words(own, {"severity": 1.0, "left_over": 0.12345}) == ["left over 0.123"]


def test_every_place_in_details_is_a_measure() -> None:
    """A clause with a place that no verdict fills would never be said."""
    for relation in relations().values():
        places = {name for clause in relation.details for _, name, _, _ in Formatter().parse(clause) if name}
        assert places <= relation.measures.keys(), relation.name


def test_one_loss_has_one_interval() -> None:
    """In points and as a part of what there was, the same loss would have two intervals beside each other."""
    row = {"baseline": 0.589, "value": 0.22, "drop": 0.369, "low": 0.183, "high": 0.604, "cases": 13}
    part = {**row, "lost": 0.63, "lost_low": -0.02, "lost_high": 1.0}
    assert plain(over_cases_text(part)) == "0.589 → 0.220, 63 % of it lost (95 % interval: −2 to 100 %), 13 cases"
    assert plain(over_cases_text(row)) == "0.589 → 0.220, +0.369 lost (95 %: +0.183 to +0.604), 13 cases"


def test_a_slice_is_told_as_people_say_it() -> None:
    """`subject_y` grows downwards, and nobody has "a higher subjects"."""
    row = {"property": "subject_y", "kind": "above", "cut": 0.5, "effect": 0.7, "rate": 0.8, "elsewhere": 0.4}
    assert slice_words(row) == (
        "failing cases are those with subjects further down: a failing case has a higher distance of its subjects from "
        "the top than another case with probability 0.70"
    )
    assert "a lower number of subjects than" in slice_words({**row, "property": "subjects", "effect": 0.3})


def test_headings_are_words() -> None:
    """A name that rules are spelled with is no heading by itself, unless it is a word."""
    headings = {name: relation.heading for name, relation in relations().items()}
    assert not any("_" in heading for heading in headings.values())
    assert (headings["wvc"], headings["class_kept"]) == ("agreement of futures", "class of the image")
    assert headings["poses"] == "poses"


@pytest.mark.parametrize(("system", "rule"), [("steady", "at least one rule ("), ("shaky", "at least one rule that ")])
def test_the_headline_of_a_run_whose_identity_is_violated_says_that_it_counts_elsewhere(
    tmp_path: Path, system: str, rule: str
) -> None:
    photos = write_scenes(tmp_path / "photos", 3)
    run = instar.run(f"tests.toys:{system}", "gamma(0.9) + identity", photos, out=tmp_path / "run", workers=0)
    told = [one.words for one in findings(run, threshold=1e-6)]
    assert any(f" {rule}" in one for one in told), told
    assert any(" identity" in one for one in told if "violate" in one) == (system == "shaky")
