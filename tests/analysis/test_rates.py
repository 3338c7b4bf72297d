"""Rates, curves and the worst cases, on frames small enough to count by hand."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from instar.analysis import any_rule, by_case, curve, rates, worst_pairs
from tests.analysis.frames import table, verdicts

INF = float("inf")


def test_a_case_is_as_bad_as_its_worst_target() -> None:
    found = by_case(
        verdicts(
            [
                ("a", "0", "r", 0.1),
                ("a", "1", "r", INF),
                ("a", "2", "r", None),
                ("b", "0", "r", None),
                ("b", "1", "r", None),
            ]
        )
    ).sort("case")
    assert found.select("case", "target", "severity").rows() == [("a", "1", INF), ("b", "0", None)]


def test_rates_count_what_was_judged() -> None:
    frame = table({"r": [0.0, 0.19, 0.2, INF, None], "quiet": [0.0, 0.0, None, None, None], "none": [None] * 5})
    found = {row["rule"]: row for row in rates(frame, {"r": 0.2, "quiet": 0.0, "none": 0.2}).to_dicts()}
    assert (found["r"]["judged"], found["r"]["violated"], found["r"]["rate"]) == (4, 2, 0.5)
    assert found["r"]["not_applicable"] == 1
    assert found["r"]["low"] < 0.5 < found["r"]["high"]
    assert found["r"]["worst"] == INF
    assert found["quiet"]["violated"] == 0, "severity 0 violates nothing, not even threshold 0"
    assert (found["none"]["rate"], found["none"]["low"], found["none"]["high"]) == (None, 0, 1)


def test_rates_of_targets_and_of_kinds() -> None:
    frame = verdicts([("a", "0", "r", 1.0), ("a", "1", "r", 0.0), ("b", "0", "r", 0.0)])
    assert rates(frame, {"r": 0.2})["judged"].item() == 2
    assert rates(frame, {"r": 0.2}, by="target")["judged"].item() == 3
    lost = frame.with_columns(kind=pl.when(pl.col("severity") > 0).then(pl.lit("lost")))
    assert rates(lost, {"r": 0.2}).select("lost", "invented").row(0) == (1, 0)
    assert rates(lost, {"r": 2.0})["lost"].item() == 0


def test_failed_pairs_are_counted_apart() -> None:
    frame = table({"r": [0.5, None]}).with_columns(
        status=pl.when(pl.col("severity").is_null()).then(pl.lit("timeout")).otherwise("status")
    )
    assert rates(frame, {"r": 0.2}).select("judged", "failed", "not_applicable").row(0) == (1, 1, 0)


def test_each_rule_has_its_own_threshold() -> None:
    frame = table({"r": [0.3, 0.0, 0.0], "s": [0.0, 0.3, 0.0]})
    assert any_rule(frame, {"r": 0.2, "s": 0.5})["violated"] == 1
    assert any_rule(frame, {"r": 0.2, "s": 0.3}) | {"low": 0, "high": 1} == {
        "judged": 3,
        "violated": 2,
        "rate": 2 / 3,
        "low": 0,
        "high": 1,
    }
    assert any_rule(frame, {"s": 0.3})["violated"] == 1, "rules without a threshold take no part"
    assert any_rule(frame.clear(), {"r": 0.2})["rate"] is None


def test_rules_over_many_cases_are_no_case() -> None:
    frame = pl.concat([table({"r": [0.0, 1.0]}), verdicts([(None, "whole", "over", 5.0)])])
    assert any_rule(frame, {"r": 0.2, "over": 0.2})["judged"] == 2
    assert worst_pairs(frame)["rule"].to_list() == ["r"]


def test_the_curve_falls() -> None:
    frame = table({"r": [0.1, 0.2, INF, 0.0], "s": [0.0, 0.3, 0.0, None]})
    found = curve(frame, (0.05, 0.2, 0.3, 1.0, INF))
    assert found["violated"].to_list() == [3, 2, 2, 1, 1]
    assert found["rate"].to_list() == [0.75, 0.5, 0.5, 0.25, 0.25]


def test_among_equals_every_case_has_its_turn() -> None:
    frame = table({"r": [INF, INF, 0.5], "s": [INF, INF, 0.0], "t": [INF, 0.1, 0.0]})
    found = worst_pairs(frame, 6)
    assert found["severity"].to_list() == [INF] * 5 + [0.5]
    assert sorted(found["case"][:2]) == ["c0", "c1"], "one case must not crowd out the other"
    assert sorted(found["case"][2:4]) == ["c0", "c1"]
    assert worst_pairs(frame, 100).height == 7, "what is right is not among the worst"


SEVERITY = st.one_of(st.none(), st.floats(0, 3), st.just(INF))


@given(st.lists(st.lists(SEVERITY, min_size=3, max_size=3), max_size=8), st.floats(0, 4))
def test_at_least_one_is_between_the_greatest_and_the_sum(rows: list[list[float | None]], threshold: float) -> None:
    frame = table({name: [row[number] for row in rows] for number, name in enumerate("rst")})
    limits = dict.fromkeys("rst", threshold)
    each = rates(frame, limits)["violated"].to_list()
    hits = any_rule(frame, limits)["violated"]
    assert max(each, default=0) <= hits <= sum(each)


def test_no_interval_excludes_its_rate() -> None:
    for hits in range(8):
        row = rates(table({"r": [1.0] * hits + [0.0] * (7 - hits)}), {"r": 0.2}).row(0, named=True)
        assert row["rate"] == hits / 7
        assert row["low"] <= row["rate"] <= row["high"]
