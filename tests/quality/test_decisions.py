"""Statistics on which decisions rest hold what they say: intervals cover, and no true null is rejected too often."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln
from scipy.stats import binom

from instar.analysis import Severities
from instar.analysis.comparison import Sides, cautious_counts, severity_signs
from instar.report.compared import severities_findings
from instar.stats import (
    binomial_bounds,
    clustered_difference,
    holm,
    mcnemar,
    median_shift,
    paired_bound,
    paired_difference,
    quantile_bounds,
    sequence_bounds,
    sequence_quantile_bounds,
    swapped_sides,
    wilson,
)

ALPHA = 0.05


@pytest.mark.parametrize("trials", [5, 30, 200])
def test_a_bound_of_a_rate_is_wrong_no_more_often_than_it_says(trials: int) -> None:
    """Over every rate, exactly: the gate's upper end lies below the true rate with probability 5 % at the most."""
    bounds = [binomial_bounds(hits, trials) for hits in range(trials + 1)]
    for rate in np.linspace(0.001, 0.999, 97):
        chances = binom.pmf(np.arange(trials + 1), trials, rate)
        assert sum(chance for chance, (_, high) in zip(chances, bounds, strict=True) if high < rate) <= ALPHA
        assert sum(chance for chance, (low, _) in zip(chances, bounds, strict=True) if low > rate) <= ALPHA


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.1, 0.2])
def test_a_system_that_is_worse_by_the_margin_passes_no_more_often_than_one_time_in_twenty(margin: float) -> None:
    """Non-inferiority, exactly over all counts of 40 pairs and a grid of shares."""
    count = 40
    first, second = (each.ravel() for each in np.meshgrid(np.arange(count + 1), np.arange(count + 1)))
    kept = first + second <= count
    first, second = first[kept], second[kept]
    passed = np.array([paired_bound(int(a), int(b), count) for a, b in zip(first, second, strict=True)]) <= margin
    ways = gammaln(count + 1) - gammaln(first + 1) - gammaln(second + 1) - gammaln(count - first - second + 1)
    for share in np.linspace(1e-9, (1 - margin) / 2 - 1e-9, 25):
        rest = 1 - 2 * share - margin
        logarithms = (
            ways
            + first * math.log(share)
            + second * math.log(share + margin)
            + (count - first - second) * math.log(max(rest, 1e-12))
        )
        assert np.exp(logarithms[passed]).sum() <= ALPHA


def test_a_system_that_leaves_out_what_it_would_violate_passes_no_more_often() -> None:
    """Worse by the margin, and unjudged where it violates: a pair that only the baseline judged counts as violated."""
    rng, margin, passed = np.random.default_rng(11), 0.1, []
    limits, none = {"rule 0": 0.5}, dict[str, float]()
    for _ in range(600):
        case = rng.random((1, 60))
        first = (case < 0.2).astype(float)
        second = np.where((case < 0.2 + margin) & (rng.random((1, 60)) < 0.7), np.nan, case < 0.2 + margin)
        pair = Sides(_matrix(first), _matrix(second), 0, {}, limits, none)
        row = cautious_counts(pair, ["rule 0"])
        passed.append(paired_bound(row["first_only"], row["second_only"], row["cases"]) <= margin)
    assert np.mean(passed) <= ALPHA


def test_a_better_system_is_shown_to_be_no_worse() -> None:
    """Power: of 200 pairs, a system that repairs more than it breaks passes a margin of 5 points nearly always."""
    drawn = np.random.default_rng(0).multinomial(200, [0.06, 0.02, 0.92], size=300)
    passed = [paired_bound(int(first), int(second), 200) <= 0.05 for first, second, _ in drawn]
    assert np.mean(passed) > 0.95


def test_equal_systems_are_called_different_no_more_often_than_one_time_in_twenty() -> None:
    """A whole table of 20 rules, corrected: under a true null any sure difference is an error."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        both = rng.random((20, 60, 2)) < 0.2
        p = [mcnemar(int((a & ~b).sum()), int((b & ~a).sum())) for a, b in zip(both[..., 0], both[..., 1], strict=True)]
        wrong += min(holm(p)) <= ALPHA
    assert wrong / 400 <= ALPHA


def _matrix(severity: np.ndarray) -> Severities:
    none = np.zeros(severity.shape, np.uint8)
    rules = tuple(f"rule {number}" for number in range(len(severity)))
    return Severities(rules, pl.Series([f"{n}" for n in range(severity.shape[1])]), severity, none, none, ("",))


def test_severities_of_equal_systems_are_called_different_no_more_often_than_one_time_in_twenty() -> None:
    """A table of 20 rules of cases that are alike in both, with ties and with what was found on one side alone."""
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(200):
        case = rng.exponential(size=(20, 30, 1))
        sides = np.round(case * rng.lognormal(0, 0.5, (20, 30, 2)), 1)
        sides[rng.random(sides.shape) < 0.1] = math.inf
        signs = severity_signs(_matrix(sides[..., 0]), _matrix(sides[..., 1]))
        wrong += bool((signs["severity_p_corrected"] <= ALPHA).any())
    assert wrong / 200 <= ALPHA


def test_severities_that_fall_by_half_are_seen_where_no_rate_changes() -> None:
    rng = np.random.default_rng(8)
    first = rng.uniform(1.0, 2.0, (20, 20))
    second = first * rng.lognormal(0, 0.05, first.shape)
    second[4] = first[4] / 2
    signs = severity_signs(_matrix(first), _matrix(second))
    (finding,) = severities_findings(signs, ("v1", "v2"), {"rule 4": "resolution(0.2)"})
    assert finding.code == "compare.severities"
    assert finding.figures == {"rules": 20, "lower": ["rule 4"]}
    assert not severities_findings(signs.filter(pl.col("rule") != "rule 4"), ("v1", "v2"), {})


@pytest.mark.parametrize(("shared", "first", "second"), [(0.2, 0.05, 0.05), (0.05, 0.02, 0.1), (0.5, 0.1, 0.02)])
def test_the_interval_of_a_paired_difference_covers(shared: float, first: float, second: float) -> None:
    drawn = np.random.default_rng(2).multinomial(80, [shared, first, second, 1 - shared - first - second], size=2000)
    ends = [paired_difference(*map(int, counts)) for counts in drawn]
    assert np.mean([low <= second - first <= high for low, high in ends]) >= 0.94


def test_the_interval_of_a_shift_of_medians_covers() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(60):
        cases = rng.exponential(size=80)
        first, second = cases + rng.exponential(0.3, 80), cases + 0.4 + rng.exponential(0.3, 80)
        _, low, high = median_shift(first, second)
        covered += low <= 0.4 <= high
    assert covered / 60 >= 0.9


def _crowds(rng: np.random.Generator, cases: int, worse: float) -> np.ndarray:
    """Counts of cases with one to six targets whose fates hang together."""
    targets = rng.integers(1, 7, cases)
    base = rng.beta(0.5, 2.0, cases)
    rates = base, np.clip(base + worse, 0, 1)
    return np.stack([rng.binomial(targets, rates[0]), targets, rng.binomial(targets, rates[1]), targets], 1)


def test_targets_of_a_case_are_taken_together_in_tests_and_intervals() -> None:
    rng = np.random.default_rng(4)
    rejected = np.mean([swapped_sides(_crowds(rng, 40, 0.0), times=499) <= ALPHA for _ in range(300)])
    assert rejected <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / 300)
    counts = [_crowds(rng, 60, 0.0) for _ in range(200)]
    ends = [clustered_difference(each)[1:] for each in counts]
    assert np.mean([low <= 0 <= high for low, high in ends]) >= 0.94


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_a_bound_of_a_quantile_is_wrong_no_more_often_than_it_says(quantile: float) -> None:
    drawn = np.random.default_rng(5).random((2000, 50))
    ends = [quantile_bounds(each, quantile) for each in drawn]
    allowed = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / 2000)
    assert np.mean([high < quantile for _, high in ends]) <= allowed
    assert np.mean([low > quantile for low, _ in ends]) <= allowed


def _ever_excluded(rate: float, trials: int, bounds: Callable[[int, int], tuple[float, float]]) -> float:
    """The probability that the interval misses the true rate at one look or more, looking after every case: exactly."""
    chances, missed = np.ones(1), 0.0
    for trial in range(1, trials + 1):
        chances = np.append(chances * (1 - rate), 0.0) + np.append(0.0, chances * rate)
        ends = (bounds(hits, trial) for hits in range(trial + 1))
        outside = np.array([not low <= rate <= high for low, high in ends])
        missed += float(chances[outside].sum())
        chances[outside] = 0.0
    return missed


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_an_interval_that_is_looked_at_after_every_case_holds_at_all_of_them(rate: float) -> None:
    assert _ever_excluded(rate, 120, sequence_bounds) <= ALPHA


def test_the_interval_of_a_single_look_does_not_hold_at_all_of_them() -> None:
    """Why asking until sure has intervals of its own."""
    assert _ever_excluded(0.1, 120, wilson) > 3 * ALPHA


def test_bounds_of_a_quantile_hold_at_every_look() -> None:
    draws = np.random.default_rng(0).random((60, 200))
    looks = range(20, 201, 20)
    missed = [
        any(not low <= 0.9 <= high for low, high in (sequence_quantile_bounds(row[:n], 0.9) for n in looks))
        for row in draws
    ]
    assert np.mean(missed) <= ALPHA
    assert sequence_quantile_bounds(draws[0], 0.9)[1] < 1  # and say something


def test_stopping_when_sure_saves_cases_where_the_answer_is_clear() -> None:
    """A limit of 10 %: at 1 % and at 40 % a fraction of 2,000 cases decides, and never the wrong way."""
    rng = np.random.default_rng(0)
    for rate, most in ((0.01, 150), (0.4, 60)):
        ends = []
        for _ in range(40):
            hits = np.cumsum(rng.random(2000) < rate)
            ends.append(
                next(
                    (n, low > 0.1)
                    for n, (low, high) in ((n, sequence_bounds(int(hits[n - 1]), n)) for n in range(1, 2001))
                    if low > 0.1 or high <= 0.1
                )
            )
        assert np.median([end for end, _ in ends]) < most
        assert {failed for _, failed in ends} == {rate > 0.1}
