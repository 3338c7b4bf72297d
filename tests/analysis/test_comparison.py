"""Two runs compared pair by pair: counts, intervals and tests of what both judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import instar
from instar.analysis import severities
from instar.analysis.comparison import Sides, differences, family_differences, flips, sides, target_differences
from instar.report.verdict import rules_finding
from instar.stats import clustered_difference, mcnemar, median_shift, paired_difference, swapped_sides
from tests.analysis.frames import table
from tests.toys import steady, write_scenes

Values = Mapping[str, Sequence[float | None]]


def pair(first: Values, second: Values, threshold: float = 0.5) -> Sides:
    matrices = severities(table(first)), severities(table(second))
    rules = list(first)
    return Sides(*matrices, 0, {"family": rules}, dict.fromkeys(rules, threshold), {})


def test_only_pairs_that_both_judged_count_and_each_case_is_its_own_control() -> None:
    rows = differences(pair({"a": [0.9, 0.9, 0.1, 0.1, None, 0.9]}, {"a": [0.9, 0.1, 0.9, 0.9, 0.9, None]})).row(
        0, named=True
    )
    assert [rows[name] for name in ("cases", "first", "second", "both", "first_only", "second_only")] == [
        4, 2, 3, 1, 1, 2,
    ]  # fmt: skip
    assert (rows["first_unjudged"], rows["second_unjudged"]) == (1, 1)
    assert rows["difference"] == 0.25
    assert (rows["low"], rows["high"]) == paired_difference(1, 1, 2, 0)
    assert rows["p"] == mcnemar(1, 2) == 1.0
    assert (rows["higher"], rows["lower"]) == (2, 1)


def test_p_is_corrected_for_all_rules_of_the_table() -> None:
    worse = [0.1] * 8, [0.9] * 8
    rows = differences(pair({"a": worse[0], "b": worse[0]}, {"a": worse[1], "b": worse[0]}))
    assert rows["p"].to_list() == [2 / 2**8, 1.0]
    assert rows["p_corrected"].to_list() == [4 / 2**8, 1.0]


def test_a_rule_without_a_common_case_asks_nothing_and_counts_in_no_correction() -> None:
    none = [None] * 8
    rows = differences(pair({"a": [0.1] * 8, "b": none}, {"a": [0.9] * 8, "b": none}))
    assert rows["p_corrected"].to_list() == [2 / 2**8, 1.0]
    finding = rules_finding(rows.with_columns(name="group").rename({"group": "rule"}), ("first", "second"))
    assert finding.code == "compare.worse" and finding.figures["rules"] == 1


def test_a_case_counts_once_in_its_family_and_only_by_rules_that_both_judged() -> None:
    # the second rule of case 0 was judged in the first run alone: it may not accuse that run
    first: Values = {"a": [0.1, 0.9, 0.1], "b": [0.9, 0.9, 0.1]}
    second: Values = {"a": [0.1, 0.1, 0.9], "b": [None, 0.1, 0.9]}
    family, every = family_differences(pair(first, second)).to_dicts()
    assert [family[name] for name in ("rules", "cases", "first", "second")] == [2, 3, 1, 1]
    assert every["group"] == "any rule"
    assert every["first"] == 1


def test_pairs_that_changed_are_listed_with_their_direction_the_largest_change_first() -> None:
    rows = flips(pair({"a": [0.1, 0.4, 0.9, 0.6]}, {"a": [0.6, math.inf, 0.1, 0.7]}))
    assert rows.select("case", "worse").rows() == [("c1", True), ("c0", True), ("c2", False)]


def test_medians_shift_by_what_was_added_and_infinity_has_a_place_but_no_size() -> None:
    rng = np.random.default_rng(3)
    before = rng.random(60)
    shift, low, high = median_shift(before, before + 0.25)
    assert shift == pytest.approx(0.25)
    assert (low, high) == pytest.approx((0.25, 0.25))
    lost = np.where(np.arange(60) < 40, math.inf, before)
    assert median_shift(before, lost)[0] == math.inf
    assert median_shift(lost, lost) == (0.0, 0.0, 0.0)


def test_few_cases_have_a_shift_without_an_interval() -> None:
    for count, there in ((5, False), (6, True)):
        columns = [number / 10 for number in range(count)]
        first: Values = {"a": columns}
        second: Values = {"a": [value + 0.1 for value in columns]}
        row = differences(pair(first, second)).row(0, named=True)
        assert row["shift"] == pytest.approx(0.1)
        assert (row["shift_low"] is not None, row["shift_high"] is not None) == (there, there)


def test_targets_of_one_case_are_no_independent_witnesses() -> None:
    # one case with 40 targets that all got worse is one witness, forty cases with one target are forty
    crowd = np.array([[0, 40, 40, 40], [0, 1, 0, 1], [0, 1, 0, 1]])
    single = np.tile([0, 1, 1, 1], (40, 1))
    assert swapped_sides(crowd) > 0.2
    assert swapped_sides(single) < 0.001
    difference, low, _ = clustered_difference(crowd)
    assert difference == pytest.approx(40 / 42)
    assert low < 0


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("data") / "photos", 3)


def test_a_run_compared_with_itself_differs_in_nothing(photos: Path, tmp_path: Path) -> None:
    run = instar.run(steady, "gamma(0.5)+mirror(h)", photos, out=tmp_path / "run", workers=0)
    shared = sides(run, run)
    assert shared.cases == 3
    assert differences(shared)["difference"].to_list() == [0.0, 0.0]
    assert flips(shared).is_empty()
    targets = target_differences(run, run, shared)
    assert targets["difference"].to_list() == [0.0, 0.0]
    assert targets["first_targets"].to_list() == targets["second_targets"].to_list()


def test_another_input_under_the_same_name_is_left_out_and_counted(photos: Path, tmp_path: Path) -> None:
    run = instar.run(steady, "gamma(0.5)", photos, out=tmp_path / "run", workers=0)
    others = write_scenes(tmp_path / "photos", 3)
    names = sorted(path.name for path in others.iterdir())
    (others / names[0]).write_bytes((others / names[1]).read_bytes())
    changed = instar.run(steady, "gamma(0.5)", others, out=tmp_path / "changed", workers=0)
    shared = sides(run, changed)
    assert (shared.cases, shared.replaced) == (2, 1)


def test_runs_that_share_nothing_say_what_they_lack(photos: Path, tmp_path: Path) -> None:
    run = instar.run(steady, "gamma(0.5)", photos, out=tmp_path / "run", workers=0)
    other_rule = instar.run(steady, "gamma(2)", photos, out=tmp_path / "rule", workers=0)
    with pytest.raises(ValueError, match=r"have no rule in common .*run one suite in both"):
        sides(run, other_rule)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in photos.iterdir():
        (elsewhere / f"other-{path.name}").write_bytes(path.read_bytes())
    other_cases = instar.run(steady, "gamma(0.5)", elsewhere, out=tmp_path / "cases", workers=0)
    with pytest.raises(ValueError, match=r"have no case in common .*run both on one dataset"):
        sides(run, other_cases)
