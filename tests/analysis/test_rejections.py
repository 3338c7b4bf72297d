"""How many tests of a run reject, beside chance: nobody flawless is accused, a small bias is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from instar.analysis.rejections import rejections
from instar.stats import binomial_excess, permutation_test

RULES = {f"r{number}": "turned" if number < 3 else "scaled" for number in range(6)}


def frame(p: np.ndarray, least: float | None = None, targets: int = 1) -> pl.DataFrame:
    """Verdicts from p (cases, rules)."""
    rows = [
        {"case": f"c{case}", "rule": f"r{rule}", "p": float(p[case, rule]), "p_least": least}
        for case in range(p.shape[0])
        for rule in range(p.shape[1])
        for _ in range(targets)
    ]
    return pl.DataFrame(rows, schema={"case": pl.String, "rule": pl.String, "p": pl.Float64, "p_least": pl.Float64})


def whole(table: pl.DataFrame) -> dict[str, Any]:
    return table.filter(pl.col("rule").is_null() & pl.col("family").is_null()).row(0, named=True)


def test_many_small_rejections_make_one_sure_verdict() -> None:
    p = np.full((52, 6), 0.03)
    p[:9] = 0.4
    table = rejections([frame(p)], RULES, ())
    verdict = whole(table)
    assert (verdict["tests"], verdict["rejected"]) == (312, 258) and verdict["p_corrected"] < 1e-9
    assert verdict["share"] == pytest.approx(258 / 312)
    assert table.filter(pl.col("rule").is_null())["family"].to_list() == ["turned", "scaled", None]
    rule = table.filter(rule="r0").row(0, named=True)
    assert rule["p"] == pytest.approx(float(binomial_excess(43, 52, 0.05)))
    assert rule["p_corrected"] == pytest.approx(6 * rule["p"])


def test_too_few_samples_are_told_apart_from_no_rejection() -> None:
    table = rejections([frame(np.full((10, 6), 0.2), least=0.17)], RULES, list(RULES))
    verdict = whole(table)
    assert (verdict["tests"], verdict["powerless"], verdict["share"]) == (0, 60, None)
    assert verdict["p_least"] == pytest.approx(0.17) and verdict["p_corrected"] is None
    assert whole(rejections([frame(np.full((10, 6), 0.2), least=0.17)], RULES, list(RULES), 0.2))["rejected"] == 60


def test_a_test_that_keeps_no_level_gives_no_verdict() -> None:
    assert rejections([frame(np.zeros((10, 6)))], RULES, list(RULES)).is_empty()


def test_several_targets_of_a_case_are_one_test() -> None:
    verdict = whole(rejections([frame(np.full((10, 6), 0.03), targets=2)], RULES, ()))
    assert (verdict["tests"], verdict["rejected"]) == (60, 0), "the least of two p counts twice"


def test_identity_has_a_row_of_its_own_and_no_share_in_the_others() -> None:
    table = rejections([frame(np.full((20, 6), 0.01))], {**RULES, "r0": "identity"}, ())
    assert whole(table)["tests"] == 100
    own = table.filter(family="identity").row(0, named=True)
    assert own["p_corrected"] == own["p"] < 1e-9


@pytest.mark.parametrize("shared", [False, True])
def test_a_flawless_stochastic_system_is_accused_as_rarely_as_the_level_says(shared: bool) -> None:
    """Every rule of a case is compared with the same source, or all rules have even the same p."""
    rng = np.random.default_rng(0)
    accused, runs = 0, 300
    for _ in range(runs):
        p = rng.random((20, 6))
        table = rejections([frame(np.repeat(p[:, :1], 6, 1) if shared else p)], RULES, ())
        accused += whole(table)["p_corrected"] <= 0.05
    assert binomial_excess(accused, runs, 0.05) > 0.01, f"{accused} of {runs}"


def test_tests_against_one_source_keep_the_level_too() -> None:
    """Permutation tests of runs that come from one distribution, several rules against the same source runs."""
    rng = np.random.default_rng(1)
    accused, runs = 0, 60
    for _ in range(runs):
        p = np.empty((12, 6))
        for case in range(12):
            values = rng.normal(size=4 + 4 * 6)
            for rule in range(6):
                sample = np.concatenate([values[:4], values[4 + 4 * rule : 8 + 4 * rule]])
                p[case, rule] = permutation_test(np.abs(np.subtract.outer(sample, sample)), 4)[1]
        accused += whole(rejections([frame(p, least=2 / 70)], RULES, list(RULES)))["p_corrected"] <= 0.05
    assert binomial_excess(accused, runs, 0.05) > 0.01, f"{accused} of {runs}"
