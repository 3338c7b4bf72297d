"""The matrix of rules and cases says what the frame of verdicts says, in whatever pieces it comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import instar
from instar.analysis import any_rule, by_case, curve, group_rates, noise, rates, severities
from instar.analysis.rates import unjudged_pairs
from tests.analysis.frames import table, verdicts
from tests.toys import steady, write_scenes

INF = float("inf")
Row = tuple[str, str, str, float | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["whole", "0/body", "0/hand", "1/hand"]),
        st.sampled_from(["r", "s"]),
        st.sampled_from([None, 0.0, 0.1, 0.2, 1.0, INF]),
    ),
    max_size=30,
    unique_by=lambda row: row[:3],
)


def violated(threshold: float) -> pl.Expr:
    return (pl.col("severity") >= threshold) & (pl.col("severity") > 0)


@given(ROWS, st.integers(0, 30), st.sampled_from([0.0, 0.1, 0.2, INF]))
def test_the_matrix_agrees_with_the_frame(rows: list[Row], cut: int, limit: float) -> None:
    frame = verdicts(rows)
    held = severities([frame[:cut], frame[cut:]], rules=["r", "s"])
    worst = {(row["case"], row["rule"]): row for row in by_case(frame).iter_rows(named=True)}
    for number, rule in enumerate(held.rules):
        for place, case in enumerate(held.cases):
            row, cell = worst.get((case, rule)), held.severity[number, place]
            assert np.isnan(cell) if row is None or row["severity"] is None else cell == row["severity"]
    hits = by_case(frame).filter(violated(limit))
    found = rates(held, {"r": limit, "s": limit})
    assert found["violated"].to_list() == [hits.filter(rule=rule).height for rule in ("r", "s")]
    assert any_rule(held, {"r": limit, "s": limit})["violated"] == hits["case"].n_unique()
    assert curve(held, (limit,))["violated"].to_list() == [hits["case"].n_unique()]
    by_target = rates(severities(frame, rules=["r", "s"], by="target"), {"r": limit, "s": limit})
    assert by_target["violated"].sum() == frame.filter(violated(limit)).height
    hands = frame.filter(pl.col("target").str.ends_with("/hand"))
    assert rates(severities(frame, rules=["r", "s"], group="hand"), {"r": limit, "s": limit})["violated"].sum() == (
        by_case(hands).filter(violated(limit)).height
    )


def test_a_group_of_rules_fails_where_any_of_its_rules_does() -> None:
    frame = table({"a": [1.0, 0.0, 0.0, None], "b": [0.0, 1.0, 0.0, None], "c": [0.0, 0.0, 0.0, 1.0]})
    found = group_rates(frame, {"one": ["a"], "two": ["a", "b"], "none": []}, dict.fromkeys("abc", 0.2))
    assert found.select("group", "rules", "judged", "violated").rows() == [
        ("one", 1, 3, 1),
        ("two", 2, 3, 2),
        ("none", 0, 0, 0),
    ]
    assert found["rate"].to_list() == [1 / 3, 2 / 3, None]


def test_the_noise_floor_leaves_out_the_noisiest_twentieth() -> None:
    strays = [0.01 * number for number in range(20)]
    found = noise(table({"identity => r": strays, "other => r": [5.0] * 20}), {"r": "identity => r"})
    assert found.select("judged", "noisy", "floor", "worst").row(0) == pytest.approx((20, 19, 0.18, 0.19))
    quiet = noise(table({"identity => r": [0.0, 0.0]}), {"r": "identity => r"})
    assert quiet.select("noisy", "floor").row(0) == (0, 0.0)
    nothing = noise(table({"identity => r": [None]}), {"r": "identity => r", "s": "identity => s"})
    assert nothing["floor"].to_list() == [None, None]


def test_a_run_answers_by_family_and_by_landmark_group(tmp_path: Path) -> None:
    rules = ("identity", "mirror(h)", "gamma(0.5)", "gamma(1.5)", "greyscale")
    done = instar.run(
        steady,
        instar.Suite("s", tuple(map(instar.rule, rules))),
        write_scenes(tmp_path / "pictures", 4),
        out=tmp_path / "run",
        workers=0,
    )
    assert done.families() == {
        "mirror": ["mirror(h) => poses"],
        "greyscale": ["greyscale => poses"],
        "gamma": ["gamma(0.5) => poses", "gamma(1.5) => poses"],
    }
    found = {row["group"]: row["violated"] for row in done.family_rates().iter_rows(named=True)}
    assert found == {"mirror": 0, "gamma": 0, "greyscale": 4, "any rule": 4}
    curves = done.curves("poses")
    assert set(curves["group"]) == {"any rule", "identity", "mirror", "gamma", "greyscale"}
    assert curves.filter(group="greyscale")["violated"].to_list() == [4] * len(done.grids()["poses"])
    assert done.noise().select("noisy", "floor").row(0) == (0, 0.0)
    assert done.rules()["name"].to_list() == list(rules)
    with pytest.raises(KeyError, match="landmark group"):
        done.rates(group="tail")
    assert done.violated_counts("poses", grid=(0.2,))["cases"].to_list() == [0, 4, 0, 0, 0]
    assert done.coverage(0.2).height == 16
    assert done.panels() == ["violated-counts", "classic", "landmarks"]
    assert done.unjudged().is_empty()
    assert done.worst(2)["rule"].to_list() == ["greyscale => poses"] * 2


def test_the_pairs_of_one_case_are_taken_where_a_rule_is_over_many_cases_and_has_none() -> None:
    """Its verdicts have no case, so that asking which columns are of a case answers "unknown" there."""
    matrix = severities(table({"r": [0.1, 0.2, 0.3]}))
    picked = matrix.at(pl.Series([None, True, False], dtype=pl.Boolean))
    assert picked.cases.to_list() == ["c1"] and picked.severity.tolist() == [[0.2]]


def test_a_pair_that_is_not_judged_for_several_reasons_counts_once() -> None:
    """Each of its objects may have a reason of its own; the table of rates counts pairs."""
    rows = [("a", "covered"), ("a", "not found"), ("b", "not found"), ("c", "covered"), ("c", "not found")]
    verdicts = pl.DataFrame(
        [
            {"case": case, "rule": "r", "severity": None, "status": "not applicable", "reason": reason}
            for case, reason in rows
        ],
        schema_overrides={"severity": pl.Float64},
    )
    assert unjudged_pairs([verdicts], ["r"]).select("reason", "pairs").rows() == [("not found", 3)]
