"""Rates and curves, on frames small enough to count by hand."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.analysis import any_rule, by_case, curve, judged_pairs, kind_counts, rates, severities
from instar.analysis.clusters import clustered
from instar.relations import NOTHING_FOUND
from instar.stats import binomial_bounds, wilson
from tests.analysis.frames import table, verdicts

INF = float("inf")
PARTS = (("a", "body", None), ("a", "hand", None), ("b", "body", 0.1), ("b", "hand", None))


def test_a_case_is_as_bad_as_its_worst_target() -> None:
    ranking = by_case(
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
    assert ranking.select("case", "target", "severity").rows() == [("a", "1", INF), ("b", "0", None)]


def test_rates_count_what_was_judged() -> None:
    frame = table({"r": [0.0, 0.19, 0.2, INF, None], "quiet": [0.0, 0.0, None, None, None], "none": [None] * 5})
    ranking = {row["rule"]: row for row in rates(frame, {"r": 0.2, "quiet": 0.0, "none": 0.2}).to_dicts()}
    assert (ranking["r"]["judged"], ranking["r"]["violated"], ranking["r"]["rate"]) == (4, 2, 0.5)
    assert ranking["r"]["not_applicable"] == 1
    assert ranking["r"]["low"] < 0.5 < ranking["r"]["high"]
    assert ranking["r"]["worst"] == INF
    assert ranking["quiet"]["violated"] == 0, "severity 0 violates nothing, not even threshold 0"
    assert (ranking["none"]["rate"], ranking["none"]["low"], ranking["none"]["high"]) == (None, 0, 1)


def test_rates_of_targets_and_of_kinds() -> None:
    frame = verdicts([("a", "0", "r", 1.0), ("a", "1", "r", 0.0), ("b", "0", "r", 0.0)])
    assert rates(frame, {"r": 0.2})["judged"].item() == 2
    assert rates(frame, {"r": 0.2}, by="target")["judged"].item() == 3
    lost = frame.with_columns(kind=pl.when(pl.col("severity") > 0).then(pl.lit("lost")))
    assert rates(lost, {"r": 0.2})["kinds"].to_list() == [[{"kind": "lost", "count": 1}]]
    assert rates(lost, {"r": 2.0})["kinds"].to_list() == [[]], "what is not violated has no kind to count"


def test_targets_of_a_case_are_no_independent_trials() -> None:
    """Eight tests of each of four cases: where all of a case go the same way, they tell as much as four."""
    severity = {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}
    rows = [(case, str(number), "r", severity[case]) for case in severity for number in range(8)]
    by_target = rates(verdicts(rows), {"r": 0.2}, by="target").row(0, named=True)
    assert (by_target["judged"], by_target["violated"]) == (32, 8)
    hits = pl.DataFrame({"rule": "r", "case": [row[0] for row in rows], "hit": [row[3] > 0 for row in rows]})
    ends = clustered(hits, "rule").select("low", "high").row(0)
    assert (by_target["low"], by_target["high"]) == pytest.approx(ends)
    assert by_target["low"] < wilson(8, 32)[0] and wilson(8, 32)[1] < by_target["high"]
    single = rates(verdicts([(case, "whole", "r", 0.0) for case in "abcd"]), {"r": 0.2}, by="target")
    one_each = binomial_bounds(0, 4, 0.975)
    assert single.select("low", "high").row(0) == pytest.approx(one_each), "one target in each is one trial each"


def test_kinds_are_counted_whatever_they_are_called() -> None:
    kinds = ["partly lost", "doubled", "doubled", None]
    frame = table({"r": [1.0] * 4}).with_columns(kind=pl.Series(kinds))
    counted = rates(frame, {"r": 0.2})
    assert counted["kinds"].to_list() == [[{"kind": "doubled", "count": 2}, {"kind": "partly lost", "count": 1}]]
    assert kind_counts(pl.concat([counted, counted])) == {"doubled": 4, "partly lost": 2}


def test_violations_of_no_kind_have_a_worst_of_their_own() -> None:
    """A lost object's severity is 1 here; it must not be told of the objects that were found and merely moved."""
    frame = table({"r": [1.0, 0.38, 0.31, 0.1], "lost alone": [1.0, 0.0, 0.0, None]})
    frame = frame.with_columns(kind=pl.when(pl.col("severity") == 1).then(pl.lit("lost")))
    counted = rates(frame, {"r": 0.2, "lost alone": 0.2})
    assert counted["worst"].to_list() == [1, 1]
    assert counted["worst_without_kind"].to_list() == [0.38, None]


def nothing_found(frame: pl.DataFrame, cases: Sequence[str]) -> pl.DataFrame:
    """The same verdicts, with nothing found in either image of these cases where there is no severity."""
    empty = pl.col("severity").is_null() & pl.col("case").is_in(list(cases))
    return frame.with_columns(reason=pl.when(empty).then(pl.lit(NOTHING_FOUND)))


def test_nothing_found_in_either_image_is_no_success_and_counted_for_itself() -> None:
    frame = nothing_found(table({"r": [0.5, 0.0, None, None, None]}), ["c2", "c3"])
    counted = rates(frame, {"r": 0.2}).row(0, named=True)
    assert (counted["judged"], counted["violated"], counted["rate"]) == (2, 1, 0.5)
    assert (counted["nothing_found"], counted["not_applicable"], counted["failed"]) == (2, 1, 0)
    whole = any_rule(frame, {"r": 0.2})
    assert (whole["judged"], whole["nothing_found"]) == (2, 2)
    assert judged_pairs(frame, ["r"]) == {
        "pairs": 5,
        "judged": 2,
        "nothing_found": 2,
        "not_applicable": 1,
        "failed": 0,
        "cases": 5,
        "empty": 2,
    }


def test_a_case_is_empty_only_where_nothing_of_it_was_judged() -> None:
    frame = nothing_found(table({"r": [None, None], "s": [1.0, None]}), ["c0", "c1"])
    counted = judged_pairs(frame, ["r", "s"])
    assert (counted["nothing_found"], counted["empty"]) == (3, 1), "in c0 something was invented under s"


def test_a_pair_is_empty_only_where_all_its_targets_are() -> None:
    rows = [
        ("a", "0/body", "r", None),
        ("a", "0/hand", "r", None),
        ("b", "0/body", "r", 0.1),
        ("b", "0/hand", "r", None),
    ]
    frame = verdicts(rows).with_columns(
        reason=pl.when(pl.col("target") == "0/hand").then(pl.lit(NOTHING_FOUND)).otherwise(pl.lit("out of the frame"))
    )
    for some in (frame, frame.reverse()):
        counted = rates(some, {"r": 0.2}).row(0, named=True)
        assert (counted["judged"], counted["nothing_found"], counted["not_applicable"]) == (1, 0, 1)
        assert by_case(some).filter(case="a")["target"].item() == "0/body"
    assert rates(severities(frame, group="hand"), {"r": 0.2})["nothing_found"].item() == 2


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
        "nothing_found": 0,
    }
    assert any_rule(frame, {"s": 0.3})["violated"] == 1, "rules without a threshold take no part"
    assert any_rule(frame.clear(), {"r": 0.2})["rate"] is None


def test_rules_over_many_cases_are_no_case() -> None:
    frame = pl.concat([table({"r": [0.0, 1.0]}), verdicts([(None, "whole", "over", 5.0)])])
    assert any_rule(frame, {"r": 0.2, "over": 0.2})["judged"] == 2


def test_the_curve_falls() -> None:
    frame = table({"r": [0.1, 0.2, INF, 0.0], "s": [0.0, 0.3, 0.0, None]})
    ranking = curve(frame, (0.05, 0.2, 0.3, 1.0, INF))
    assert ranking["violated"].to_list() == [3, 2, 2, 1, 1]
    assert ranking["rate"].to_list() == [0.75, 0.5, 0.5, 0.25, 0.25]


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
