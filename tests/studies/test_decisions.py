"""Decisions are wrong no more often than they say, also by looking; and looking saves cases where the answer is clear.

The long version is `python -m studies.decisions`, whose result is `studies/decisions.json`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import Any

import pytest

from studies.decisions import ALPHA, RESULT, Looks, Sure, compared, fixed_size, gate, gates_on_their_limit, wrong


@cache
def committed() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(RESULT.read_text("utf-8"))
    return result


def test_gates_whose_truth_lies_on_the_limit_are_wrong_no_more_often_than_they_say() -> None:
    for one in gates_on_their_limit((25, 60), (0.05, 0.2)):
        assert wrong(one) <= ALPHA, one


def test_so_it_was_for_all_sizes_and_limits_of_the_study() -> None:
    for how, share in committed()["gates that are wrong, at most"].items():
        assert share <= ALPHA, how
    assert all(row["any_sure"] <= ALPHA for row in committed()["comparisons of equal systems"])


@pytest.mark.parametrize("sure", ["upper", "lower"])
def test_the_committed_figures_are_those_of_today(sure: Sure) -> None:
    at: Looks = "as run --until does"
    rows = committed()["gates whose truth lies on the limit"]
    assert json.loads(json.dumps(asdict(gate(0.1, 0.1, 60, sure, at)))) in rows


def test_a_clear_answer_comes_sooner_by_looking_than_by_a_sample_of_fixed_size() -> None:
    """A limit of 5 %, and 20 % of the cases violate it: half of the gates are decided after fewer cases."""
    row = next(row for row in committed()["gates with a clear answer"] if (row["limit"], row["rate"]) == (0.05, 0.2))
    assert row["early"] > 0.999
    assert row["median"] <= row["fixed"]
    assert fixed_size(0.05, 0.2, 200) == row["fixed"]


def test_equal_systems_are_seldom_called_different_and_a_worse_one_is_found() -> None:
    assert compared(30, 20, 0.5, 0.0, 0.5, 100, seed=1).any_sure <= ALPHA + 0.05
    assert compared(100, 5, 0.1, 0.3, 0.5, 10).each_sure > 0.9
    worse = {(row["cases"], row["worse"]): row["any_sure"] for row in committed()["comparisons of a worse system"]}
    assert worse[200, 0.2] > 0.95
