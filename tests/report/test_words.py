"""Numbers read alike in the report, the viewer and the terminal."""

from __future__ import annotations

import math
from io import StringIO

import polars as pl
import pytest
from markupsafe import Markup
from rich.console import Console

from instar.analysis.comparison import LEVEL
from instar.relations import relations
from instar.report.terminal import show_slices
from instar.report.words import kinds_text, landmark_words, p_text, p_words, percent, severity_text, threshold_text
from instar.viewer.app import _ENVIRONMENT


def test_a_small_share_is_never_nothing() -> None:
    assert percent(0.004) == "<1\u00a0%"
    assert Markup(_ENVIRONMENT.from_string("{{ 0.004 | percent }}").render()).unescape() == percent(0.004)
    row = {"property": "size", "kind": "is", "value": "large", "failing": 1, "cases": 250}
    row |= {"rate": 0.004, "low": 0.001, "high": 0.02}
    printed = StringIO()
    table = pl.DataFrame([{**row, "elsewhere": 0.998, "effect": -0.5, "p": 0.5, "p_corrected": 0.5}])
    show_slices(Console(file=printed, width=200), table, limits="a rule is violated from 0.2 on")
    assert percent(0.004) in printed.getvalue() and ">99" in printed.getvalue()


def value(text: str) -> float:
    """The number that somebody reads; a sign before it moves it by less than any digit."""
    sign, digits = (text[0], text[1:]) if text[0] in "<>" else ("", text)
    return float(digits.replace(",", "")) + {"<": -1e-12, ">": 1e-12, "": 0.0}[sign]


@pytest.mark.parametrize("threshold", [0.0, 1e-5, 0.01, 0.2, 0.2004, 1 / 3, 2 / 3, 1.0, 20.0, 999.6, 1000.0, 12345.6])
def test_a_severity_never_reads_as_on_the_other_side_of_its_threshold(threshold: float) -> None:
    """0.1997 was printed as 0.2 beside "violated from 0.2 up", and was not violated."""
    near = [threshold * (1 + sign * 10.0**-power) for sign in (-1, 1) for power in range(1, 16)]
    limit = value(threshold_text(threshold))
    for severity in (*near, threshold, math.nextafter(threshold, 0), math.nextafter(threshold, math.inf), 2e-7, 0.0):
        violated = severity >= threshold and severity > 0
        text = severity_text(severity, threshold)
        assert (value(text) >= limit and value(text) > 0) == violated, (severity, text)
        assert len(text) <= 12, text


def test_severities_away_from_a_threshold_have_three_digits() -> None:
    assert [severity_text(severity, 0.2) for severity in (0.123456, 0.3456, 0.0, math.inf)] == [
        "0.123",
        "0.346",
        "0",
        "∞",
    ]


COUNTED = {
    "class": "3 of another class",
    "side": "3 with the side not exchanged",
    "misclassification": "3 misclassifications",
    "omission": "3 omissions",
    "misclassification with omission": "3 misclassifications with omission",
    "language": "3 not in English",
    "number": "3 wrong numbers",
    "persists": "3 still found",
    "wrong way": "3 going the wrong way",
    "crossing": "3 crossing an obstacle",
    "past ignored": "3 with the past ignored",
    "past opposed": "3 with the past opposed",
}
"""How so many of a kind read that is no adjective. A kind that is new stands here, or among those that are."""
ADJECTIVES = {
    "lost", "invented", "partly lost", "partly invented", "exchanged", "doubled", "missing", "incorrect", "unfound",
    "silent", "faint", "confirmed", "inconclusive",
}  # fmt: skip


def test_every_count_of_a_kind_reads_as_english() -> None:
    for relation in relations().values():
        for kind in relation.kinds if relation.over == "case" else ():
            text = kinds_text([{"kind": kind, "count": 3}], relation.counted)
            assert text == COUNTED.get(kind, f"3 {kind}") and (kind in COUNTED or kind in ADJECTIVES), relation.name
    assert kinds_text([{"kind": "omission", "count": 1}], relations()["objects"].counted) == "1 omission"


def test_landmarks_are_read_without_underscores() -> None:
    assert landmark_words("left_hand") == "left hand"
    assert landmark_words("right_hand.index_finger_tip") == "index finger tip (right hand)"


@pytest.mark.parametrize("p", [0.0495, 0.05, math.nextafter(0.05, 1), 0.0502, 0.0549, 0.055])
def test_a_p_reads_as_sure_where_it_is_alone(p: float) -> None:
    for text in (p_text(p), p_words(p).removeprefix("p = ")):
        assert (float(text) <= LEVEL) == (p <= LEVEL)
