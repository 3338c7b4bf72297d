"""Which rule covers which, and how many rules one case violates."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from instar.analysis import coverage, default_bins, rates, violated_counts
from tests.analysis.frames import table, verdicts

INF = float("inf")
SEVERITIES = st.lists(
    st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.2, 0.5, INF]), st.floats(0, 1)), min_size=4, max_size=4),
    max_size=12,
)


def framed(rows: list[list[float | None]]) -> pl.DataFrame:
    return table({name: [row[number] for row in rows] for number, name in enumerate("rstu")})


def pairs(found: pl.DataFrame) -> dict[tuple[str, str], tuple[float | None, int, int]]:
    return {(of, by): (covered, both, fired) for of, by, covered, both, fired in found.iter_rows()}


def test_coverage_by_hand() -> None:
    frame = table({"wide": [1.0, 1.0, 1.0, 1.0, 0.0], "narrow": [1.0, 0.2, 0.1, 0.0, 0.0], "quiet": [0.0] * 5})
    found = pairs(coverage(frame, {"wide": 0.2, "narrow": 0.2, "quiet": 0.2}))
    assert len(found) == 9
    assert found["narrow", "wide"] == (1.0, 2, 2)
    assert found["wide", "narrow"] == (0.5, 2, 4)
    assert found["quiet", "wide"] == (1.0, 0, 0), "a rule that never fires is covered by all"
    assert found["wide", "quiet"] == (0.0, 0, 4)


def test_rules_come_in_the_order_of_their_thresholds() -> None:
    frame = table({"b": [1.0], "a": [1.0]})
    found = coverage(frame, {"a": 0.2, "absent": 0.2, "b": 0.2})
    assert found.select("of", "by").rows() == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert coverage(frame.clear(), {"a": 0.2}).height == 0


def test_only_cases_judged_under_both_count() -> None:
    frame = table({"r": [1.0, 1.0, 1.0, 0.0], "s": [1.0, 0.0, None, 1.0], "apart": [None] * 4})
    found = pairs(coverage(frame, dict.fromkeys(("r", "s", "apart"), 0.2)))
    assert found["r", "s"] == (0.5, 1, 2)
    assert found["r", "r"] == (1.0, 3, 3)
    assert found["r", "apart"] == (None, 0, 0), "nothing is known where nothing was judged under both"
    assert found["apart", "r"][0] == 1.0


def test_a_rule_that_fires_only_where_another_was_not_judged_is_not_covered_by_it() -> None:
    frame = table({"r": [1.0, 0.0, 0.0], "quiet": [None, 0.0, 0.0]})
    shares = pairs(coverage(frame, {"r": 0.2, "quiet": 0.2}))
    assert shares["r", "quiet"] == (None, 0, 0), "a rule that fires nowhere covers nothing"


def test_targets_count_by_case_and_thresholds_by_rule() -> None:
    frame = verdicts(
        [
            ("a", "0", "r", 0.1),
            ("a", "1", "r", 0.9),
            ("a", "0", "s", 0.4),
            ("b", "0", "r", 0.9),
            ("b", "0", "s", 0.0),
            (None, "whole", "over", 3.0),
        ]
    )
    assert pairs(coverage(frame, {"r": 0.5, "s": 0.3, "over": 0.1}))["r", "s"] == (0.5, 1, 2)
    assert pairs(coverage(frame, {"r": 0.5, "s": 0.5}))["r", "s"] == (0.0, 0, 2)
    assert "over" not in coverage(frame, {"r": 0.5, "over": 0.1})["of"]


@given(SEVERITIES, st.floats(0, 1.5))
def test_coverage_is_a_share_and_agrees_with_the_definition(rows: list[list[float | None]], threshold: float) -> None:
    found = pairs(coverage(framed(rows), dict.fromkeys("rstu", threshold)))
    for (of, by), (covered, both, fired) in found.items():
        i, j = "rstu".index(of), "rstu".index(by)
        shared = [(a, b) for row in rows if (a := row[i]) is not None and (b := row[j]) is not None]
        bad = [(a >= threshold and a > 0, b >= threshold and b > 0) for a, b in shared]
        assert fired == sum(a for a, _ in bad)
        assert both == sum(a and b for a, b in bad) == found[by, of][1]
        assert covered is None or 0 <= covered <= 1
        if of == by:
            assert covered == 1
        if fired:
            assert covered == both / fired


@given(SEVERITIES, st.lists(st.floats(0, 1.5), min_size=1, max_size=3, unique=True))
def test_counts_add_up(rows: list[list[float | None]], grid: list[float]) -> None:
    frame = framed(rows)
    judged = sum(any(value is not None for value in row) for row in rows)
    found = violated_counts(frame, grid)
    singles = violated_counts(frame, grid, [(number, number) for number in range(5)])
    for threshold in grid:
        assert found.filter(threshold=threshold)["cases"].sum() == judged
        one = singles.filter(threshold=threshold)
        pairs_violated = rates(frame, dict.fromkeys("rstu", threshold))["violated"].sum()
        assert (one["first"] * one["cases"]).sum() == pairs_violated


def test_counts_by_hand() -> None:
    frame = table({"r": [1.0, 0.2, 0.0, None], "s": [1.0, 0.0, 0.0, None], "t": [INF, 0.1, 0.0, None]})
    found = violated_counts(frame, (0.1, 0.2, INF))
    assert found.columns == ["threshold", "violated", "first", "last", "cases"]
    counts = {key[0]: part["cases"].to_list() for key, part in found.group_by("threshold")}
    assert counts == {0.1: [1, 0, 1, 1], 0.2: [1, 1, 0, 1], INF: [2, 1, 0, 0]}
    overlapping = violated_counts(frame, (0.1,), [(0, 2), (2, 3)])
    assert overlapping["cases"].to_list() == [2, 2]
    assert overlapping["violated"].to_list() == ["0–2", "2–3"]


@given(st.integers(0, 500))
def test_default_bins_hold_every_number_once(rules: int) -> None:
    bins = default_bins(rules)
    assert list(itertools.chain.from_iterable(range(a, b + 1) for a, b in bins)) == list(range(rules + 1))
    assert len(bins) <= 10


def test_a_large_run_is_counted() -> None:
    rules, cases = 122, 5_500
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "case": np.repeat([f"folder/{number:06d}.png" for number in range(cases)], rules),
            "rule": [f"rule({number})" for number in range(rules)] * cases,
            "severity": rng.exponential(0.1, rules * cases),
        }
    )
    assert coverage(frame, {f"rule({number})": 0.2 for number in range(rules)}).height == rules * rules
    assert violated_counts(frame, (0.05, 0.2, INF)).height == 30
