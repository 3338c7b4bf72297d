"""Classes that stray more often than others: named where that is sure, and hardly ever by chance."""

from __future__ import annotations

import numpy as np
import polars as pl

from instar.analysis.classes import FRAME, straying_classes
from instar.stats import fisher, fisher_excess

RULE = "mirror(h) => detections"


def frame(strayed: dict[str, list[bool]]) -> pl.DataFrame:
    rows = [
        {"rule": RULE, "case": str(number), "class": name, "severity": float(hit), "kind": "lost" if hit else None}
        for name, hits in strayed.items()
        for number, hit in enumerate(hits)
    ]
    return pl.DataFrame(rows, schema=FRAME)


def test_a_class_is_named_with_both_shares_under_the_rule_and_under_any() -> None:
    table = straying_classes(frame({"cat": [False] * 19 + [True], "bicycle": [True] * 8 + [False] * 12}), {RULE: 0.5})
    assert table.select("rule", "class", "judged", "strayed", "rate", "others", "kind").rows() == [
        (None, "bicycle", 20, 8, 0.4, 0.05, "lost"),
        (RULE, "bicycle", 20, 8, 0.4, 0.05, "lost"),
    ]
    assert (table["low"] < 0.4).all() and (table["high"] > 0.4).all()


def test_too_few_cases_and_small_differences_name_nobody() -> None:
    few = {"cat": [False] * 100, "bicycle": [True] * 4}
    assert straying_classes(frame(few), {RULE: 0.5}).is_empty(), "four cases are not enough"
    small = {"cat": [False] * 9600 + [True] * 400, "bicycle": [False] * 9300 + [True] * 700}
    assert straying_classes(frame(small), {RULE: 0.5}).is_empty(), "3 % more is less than 5 %"
    assert straying_classes(frame({}), {RULE: 0.5}).is_empty(), "nothing was judged"


def test_where_most_classes_stray_none_is_the_odd_one() -> None:
    strayed = {"ground": [False] * 20, "cat": [True] * 20, "dog": [True] * 20, "bus": [True] * 20}
    assert straying_classes(frame(strayed), {RULE: 0.5}).is_empty()


def test_chance_alone_names_a_class_in_five_percent_of_runs_at_most() -> None:
    rng, runs = np.random.default_rng(0), 200
    made = ({name: (rng.random(15) < 0.3).tolist() for name in "abcdefgh"} for _ in range(runs))
    assert sum(not straying_classes(frame(one), {RULE: 0.5}).is_empty() for one in made) <= 0.05 * runs


def test_the_one_sided_test_is_half_of_the_other_where_groups_are_equal() -> None:
    assert np.isclose(2 * fisher_excess(7, 10, 2, 10), fisher(7, 3, 2, 8))
