"""Parts that stray more often than the whole: named where that is sure, and not where it is anybody's noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from instar.analysis.parts import PartMatrix, straying_parts
from instar.stats import binomial_excess

LIMITS = {"identity": 0.2, "r": 0.2, "s": 0.2}


def matrix(severity: np.ndarray, *, identity: bool = True, noisy: bool = True) -> PartMatrix:
    """From severities (rules, cases, parts): a verdict is the median over its parts."""
    rules = ("identity", "r", "s") if identity else ("r", "s")
    count = severity.shape[2]
    names = tuple(f"p{number}" for number in range(count))
    whole = np.nanmedian(severity, 2)
    place = 0 if identity else None
    return PartMatrix(rules, names, tuple(range(count)), severity.astype(np.float32), whole, place, noisy)


def noise(rng: np.random.Generator, cases: int, parts: int = 17) -> np.ndarray:
    return np.abs(rng.normal(0, 0.1, (3, cases, parts)))


def test_a_part_that_strays_alone_is_named_with_its_numbers() -> None:
    severity = np.zeros((3, 40, 17))
    severity[1, :16, 4] = 1.0
    severity[1, :2] = 1.0
    table = straying_parts(matrix(severity), LIMITS)
    assert table.select("rule", "part", "judged", "strayed").rows() == [("r", "p4", 40, 16)]
    row = table.row(0, named=True)
    assert (row["rate"], row["whole"], row["unchanged"]) == (0.4, 0.05, 0.0)
    assert row["p"] == pytest.approx(0.5**14) and row["low"] < 0.4 < row["high"]


def test_a_part_that_strays_as_often_when_nothing_was_changed_is_noise() -> None:
    severity = np.zeros((3, 40, 17))
    severity[:, :16, 4] = 1.0
    assert straying_parts(matrix(severity), LIMITS).is_empty()
    mirrored = severity.copy()
    mirrored[1:, :, 5], mirrored[1:, :, 4] = severity[1:, :, 4], 0.0
    twins = list(range(17))
    twins[4], twins[5] = 5, 4
    made = replace(matrix(mirrored), twins=tuple(twins))
    assert straying_parts(made, LIMITS).is_empty(), "in a mirror the noise of one side is the other's"


def test_noise_that_nobody_measured_names_nobody() -> None:
    severity = np.zeros((2, 40, 17))
    severity[0, :16, 4] = 1.0
    assert straying_parts(matrix(severity, identity=False), LIMITS).is_empty()
    assert straying_parts(matrix(severity, identity=False, noisy=False), LIMITS).height == 1


def test_a_small_excess_is_not_named_however_sure_it_is() -> None:
    severity = np.zeros((3, 4000, 17))
    severity[1, :160, 4] = 1.0
    assert straying_parts(matrix(severity), LIMITS).is_empty(), "4 % is less than 5 %"


@pytest.mark.parametrize("cases", [20, 200])
def test_a_flawless_system_with_noise_is_accused_as_rarely_as_the_level_says(cases: int) -> None:
    """Single landmarks stray in 5 % of the pairs, whatever was changed, and their median never."""
    rng = np.random.default_rng(0)
    runs = 60
    accused = sum(straying_parts(matrix(noise(rng, cases)), LIMITS).height > 0 for _ in range(runs))
    assert binomial_excess(accused, runs, 0.05) > 0.01, f"{accused} of {runs}"


def test_what_is_not_judged_counts_nowhere() -> None:
    severity = np.zeros((3, 40, 17))
    severity[1, :, 4] = np.nan
    severity[1, :20, 4] = np.inf
    row = straying_parts(matrix(severity), LIMITS).row(0, named=True)
    assert (row["judged"], row["strayed"]) == (20, 20)
