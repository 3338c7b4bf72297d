"""Where it breaks: planted differences are found, and chance is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from instar.analysis import described, slices
from instar.report.slice_words import slice_words
from instar.report.words import percent
from instar.stats import fisher, holm, rank_test


def run_of(fails: list[bool], **columns: Sequence[object]) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = [f"c{i:03}" for i in range(len(fails))]
    about = pl.DataFrame({"case": names, **columns})
    verdicts = pl.DataFrame({"case": names, "rule": ["r"] * len(fails), "severity": [float(f) for f in fails]})
    return about, verdicts


def test_a_planted_difference_is_found_and_chance_is_not() -> None:
    rng = np.random.default_rng(0)
    dark = rng.random(200) < 0.4
    fails = (rng.random(200) < np.where(dark, 0.7, 0.1)).tolist()
    light = np.where(dark, 0.2, 0.6) + rng.normal(0, 0.1, 200)
    about, verdicts = run_of(
        fails,
        brightness=light.tolist(),
        noise=rng.random(200).tolist(),
        place=np.where(dark, "yard", "hall").tolist(),
        name=[f"n{i}" for i in range(200)],
    )
    table = slices(about, verdicts, {"r": 0.5})
    sure = table.filter(pl.col("p_corrected") <= 0.05)
    assert set(sure["property"]) == {"brightness", "place"}
    number = table.filter(property="brightness").row(0, named=True)
    assert number["effect"] < 0.3
    yard = table.filter(property="place", value="yard").row(0, named=True)
    assert yard["cases"] == dark.sum()
    assert yard["failing"] == int((np.array(fails) & dark).sum())
    assert yard["effect"] == pytest.approx(yard["rate"] - yard["elsewhere"])
    assert yard["low"] < yard["rate"] < yard["high"]
    assert "name" not in set(table["property"]), "a column of names is no slice"


def test_questions_that_cannot_be_answered_are_not_asked() -> None:
    about, verdicts = run_of([True] * 3 + [False] * 30, size=list(range(33)), kind=["a"] * 30 + ["b"] * 3)
    assert slices(about, verdicts, {"r": 0.5}).is_empty()


@pytest.mark.parametrize("fails", [True, False])
def test_where_no_case_differs_nothing_fails_more_or_less_often(fails: bool) -> None:
    about, verdicts = run_of([fails] * 20, kind=["a"] * 10 + ["b"] * 10)
    assert slices(about, verdicts, {"r": 0.5}).is_empty()


def test_what_is_known_of_cases() -> None:
    attributes = [{"camera": "left", "age": 3, "tags": ["x"]}, {"camera": None, "age": 4.5}]
    cases = pl.DataFrame(
        {
            "case": ["a", "b"],
            "width": [640, 320],
            "height": [480, 480],
            "status": ["ok", "ok"],
            "properties": [{"brightness": 0.5, "contrast": 0.1}, {"brightness": 0.6, "contrast": 0.2}],
            "attributes": [json.dumps(one) for one in attributes],
        }
    )
    table = described(cases)
    assert table.columns == ["case", "pixels", "aspect", "brightness", "contrast", "camera", "age"]
    assert table["camera"].to_list() == ["left", None]
    assert table["age"].to_list() == [3.0, 4.5]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), first=st.integers(3, 40), second=st.integers(3, 40))
def test_rank_test_agrees_with_scipy(seed: int, first: int, second: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.round(rng.normal(size=first), 1), np.round(rng.normal(0.5, size=second), 1)
    effect, p = rank_test(a, b)
    theirs = reference.mannwhitneyu(b, a, method="asymptotic", use_continuity=False)
    assert effect == pytest.approx(theirs.statistic / (first * second))
    assert p == pytest.approx(theirs.pvalue, rel=1e-9)


def test_corrections() -> None:
    assert holm([]) == []
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.001, 0.2, 0.01]) == pytest.approx([0.003, 0.2, 0.02])
    assert fisher(8, 2, 1, 5) == pytest.approx(0.03496503, rel=1e-5)
    with pytest.raises(ValueError, match="both sides"):
        rank_test([], [1.0])


def test_a_number_that_most_cases_have_the_highest_value_of() -> None:
    """Nothing lies above the median then: the rate there would be that of no case."""
    cases, verdicts = run_of([True] * 10 + [False] * 20, people=[0] * 8 + [1] * 22)
    row = slices(cases, verdicts, {"r": 0.5}).row(0, named=True)
    assert (row["kind"], row["value"], row["cut"], row["cases"], row["failing"]) == ("from", None, 1, 22, 2)
    assert row["rate"] == pytest.approx(2 / 22)


KINDS: dict[str, list[Any]] = {
    "is": ["x"] * 15 + ["y"] * 15,
    "above": [0.75] * 15 + [0.25] * 15,
    "from": [3] * 16 + [1] * 14,
}
"""A column of each kind of slice, which holds the first cases."""


@pytest.mark.parametrize("more", [True, False], ids=["more", "less"])
@pytest.mark.parametrize("missing", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_slice_says_agrees_with_its_numbers(kind: str, missing: int, more: bool) -> None:
    """Those from 3 up failed less often, and the sentence said more: the text of the slice decided what it was."""
    fails = [i % 5 < (4 if (i < 15) == more else 1) for i in range(30)]
    cases, verdicts = run_of(fails + [True] * missing, column=KINDS[kind] + [None] * missing)
    table = slices(cases, verdicts, {"r": 0.5})
    row = table.filter((pl.col("kind") == kind) & (pl.col("value").is_null() | (pl.col("value") == "x"))).to_dicts()[0]
    assert (row["value"], row["cut"]) == (("x", None) if kind == "is" else (None, 0.5 if kind == "above" else 3))
    inside = [i for i in range(30) if i < (16 if kind == "from" else 15)]
    assert (row["cases"], row["failing"]) == (len(inside), sum(fails[i] for i in inside))
    assert (row["rate"] > row["elsewhere"]) is more is (row["effect"] > (0 if kind == "is" else 0.5))
    said = slice_words(row)
    assert [word in said for word in ("more often", "less often", "higher in", "lower in")] == [
        kind == "is" and more,
        kind == "is" and not more,
        kind != "is" and more,
        kind != "is" and not more,
    ]
    if kind == "is":
        assert said.index(percent(row["rate"])) < said.index(percent(row["elsewhere"]))
