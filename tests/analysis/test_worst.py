"""The worst pairs: what is violated first, ∞ beside finite severities, rules, families and cases in turn."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import instar
from instar.analysis import severities, worst_in_turn
from tests.analysis.frames import table, verdicts
from tests.toys import steady, write_scenes

INF = float("inf")
SEVERITIES = st.lists(st.sampled_from([None, 0.0, 0.1, 0.2, 0.5, 1.0, INF]), min_size=4, max_size=4)


def chosen(columns: dict[str, list[float | None]], count: int, limit: float = 0.2) -> list[tuple[str, str, float]]:
    """The worst of a table with a rule per column and a case per row, as (case, rule, severity)."""
    return worst_in_turn(severities(table(columns)), count, dict.fromkeys(columns, limit)).drop("violated").rows()


@given(st.fixed_dictionaries({"r": SEVERITIES, "s": SEVERITIES, "t": SEVERITIES}), st.integers(0, 14))
def test_every_pair_that_strays_comes_once_and_the_violated_ones_before_the_others(
    columns: dict[str, list[float | None]], count: int
) -> None:
    rows = chosen(columns, count)
    strays = [value for values in columns.values() for value in values if value]
    violated = sum(value >= 0.2 for value in strays)
    assert len(rows) == min(count, len(strays)) == len({row[:2] for row in rows})
    assert [severity >= 0.2 for _, _, severity in rows] == [place < violated for place in range(len(rows))]
    assert rows == chosen(columns, 100)[:count], "asking for more does not change which come first"


def test_neither_more_pairs_nor_another_order_of_the_cases_changes_which_come_first() -> None:
    """Kinds are looked for further down a rule's list, and a merged run stores its cases in another order."""
    kinds = ["lost", "lost", "lost", "lost", "invented", None]
    frame = table({"r": [1.0] * 6, "s": [1.0] * 6}).with_columns(kind=pl.Series(kinds * 2))
    limits = {"r": 0.2, "s": 0.2}
    stored = frame.reverse().sort("rule", maintain_order=True)
    whole = worst_in_turn(severities(frame), 12, limits).rows()
    assert [worst_in_turn(severities(frame), count, limits).rows() for count in range(12)] == [
        whole[:count] for count in range(12)
    ]
    assert worst_in_turn(severities(stored), 12, limits).rows() == whole


def test_a_rule_that_loses_everything_is_no_wall_before_the_others() -> None:
    columns: dict[str, list[float | None]] = {"resolution(0.2)": [INF] * 4, "gamma(0.5)": [0.9, 0.3, 0.0, 0.0]}
    assert chosen(columns, 4) == [
        ("c0", "resolution(0.2)", INF),
        ("c0", "gamma(0.5)", 0.9),
        ("c1", "resolution(0.2)", INF),
        ("c1", "gamma(0.5)", 0.3),
    ]


def test_a_case_that_is_the_worst_of_every_rule_is_no_wall_before_the_others() -> None:
    rows = chosen({"r": [3.0, 2.0, 1.9], "s": [3.0, 2.0, 1.9], "t": [3.0, 0.4, 0.3]}, 3)
    assert rows == [("c0", "r", 3.0), ("c1", "s", 2.0), ("c0", "t", 3.0)], "what is less than half as bad waits"


def test_many_rules_of_one_family_are_no_wall_before_the_others() -> None:
    columns: dict[str, list[float | None]] = {f"rotation({angle})": [2.0 + angle, 1.9] for angle in range(30)}
    columns["greyscale"] = [0.3, 0.3]
    families = {rule: rule.partition("(")[0] for rule in columns}
    limits = dict.fromkeys(columns, 0.2)
    rules = worst_in_turn(severities(table(columns)), 31, limits, families=families)["rule"].to_list()
    assert rules[:2] == ["rotation(29)", "greyscale"]
    assert len(set(rules)) == 31, "every rule is shown once before one is shown twice"


def test_severities_count_in_units_of_their_threshold() -> None:
    matrix = severities(table({"r": [30.0], "s": [0.9]}))
    assert worst_in_turn(matrix, 1, {"r": 20.0, "s": 0.1})["rule"].to_list() == ["s"]


def test_where_a_test_decides_what_it_rejects_comes_first() -> None:
    matrix = severities(
        verdicts([("a", "whole", "r", 5.0), ("b", "whole", "r", 0.1)]).with_columns(p=pl.Series([0.3, 0.001]))
    )
    first = worst_in_turn(matrix, 2, {"r": 1.0}, alphas={"r": 0.05})
    assert first["case"].to_list() == ["b", "a"]
    assert worst_in_turn(matrix, 2, {"r": 1.0})["case"].to_list() == ["a", "b"]


def test_rules_over_many_cases_have_no_pairs() -> None:
    frame = pl.concat([table({"r": [0.0, 1.0]}), verdicts([(None, "whole", "over", 5.0)])])
    assert worst_in_turn(severities(frame), 10, {"r": 0.2, "over": 0.2})["rule"].to_list() == ["r"]


def test_a_run_is_asked_at_the_threshold_in_force(tmp_path: Path) -> None:
    """What strays by a part of a pixel is violated at a threshold of nearly 0, and waits for ∞ at any other."""
    run = instar.run(
        steady,
        "identity + greyscale + rotation(5)",
        write_scenes(tmp_path / "scenes", 2),
        out=tmp_path / "run",
        workers=0,
    )
    usual, strict = (run.worst(10, threshold=limit)["rule"].to_list() for limit in (None, 1e-9))
    assert usual == ["greyscale => poses"] * 2 + ["rotation(5) => poses"] * 2
    assert strict == ["greyscale => poses", "rotation(5) => poses"] * 2
    assert run.worst(3, rule="rotation(5)").height == 2
    assert run.worst(3, rule="identity").is_empty()
