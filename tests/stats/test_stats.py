"""Intervals and correlations against scipy, and intervals against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from instar.stats import (
    binomial_bounds,
    bootstrap,
    clustered_share,
    greatest_interval,
    median_interval,
    pearson,
    resamples,
    spearman,
    wilson,
)


@given(
    st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.8, 0.9, 0.95, 0.99]),
)
def test_wilson_as_scipy_has_it(counts: tuple[int, int], confidence: float) -> None:
    hits, trials = counts
    expected = scipy.stats.binomtest(hits, trials).proportion_ci(confidence, method="wilson")
    low, high = wilson(hits, trials, confidence)
    assert low == pytest.approx(expected.low, abs=1e-9)
    assert high == pytest.approx(expected.high, abs=1e-9)
    assert low <= hits / trials <= high


def test_wilson_at_the_ends() -> None:
    assert wilson(0, 0) == (0, 1)
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == 1
    for hits, trials in ((11, 10), (-1, 10)):
        with pytest.raises(ValueError, match="between 0 and trials"):
            wilson(hits, trials)


VALUES = st.integers(-1000, 1000)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=40))
def test_correlations_as_scipy_has_them(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert pearson(x, y) == spearman(x, y) == 0
        return
    assert pearson(x, y) == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-9)
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-9)


def test_ties_take_their_mean_rank() -> None:
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(
        scipy.stats.spearmanr([1, 2, 2, 3], [1, 2, 3, 4]).statistic
    )
    with pytest.raises(ValueError, match="two equal lists"):
        pearson([1], [1])
    with pytest.raises(ValueError, match="two equal lists"):
        spearman([1, 2], [1, 2, 3])


def test_bootstrap_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for trial in range(200):
        low, high = bootstrap(
            rng.normal(3, 2, (60, 1)), lambda rows: float(rows.mean()), confidence=0.9, resamples=300, seed=trial
        )
        held += low <= 3 <= high
    assert 0.83 <= held / 200 <= 0.95


def test_bootstrap_is_repeatable_and_wider_with_more_confidence() -> None:
    rows = np.random.default_rng(1).normal(0, 1, (50, 2))

    def gap(sample: np.ndarray) -> float:
        return float(sample[:, 0].mean() - sample[:, 1].mean())

    assert bootstrap(rows, gap) == bootstrap(rows, gap)
    narrow, wide = bootstrap(rows, gap, confidence=0.5), bootstrap(rows, gap, confidence=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    with pytest.raises(ValueError, match="nothing to resample"):
        bootstrap([], gap)


@pytest.mark.parametrize("count", [6, 7, 8, 12, 20, 41])
def test_the_interval_of_a_median_covers_exactly_as_order_statistics_do(count: int) -> None:
    low, high = median_interval(range(count))
    outside = scipy.stats.binom.cdf(low, count, 0.5)  # as many values, or fewer, lie below the median
    assert low + high == count - 1
    assert outside <= 0.025 < scipy.stats.binom.cdf(low + 1, count, 0.5)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_few_values_exclude_nothing_of_their_median(count: int) -> None:
    assert median_interval(range(count)) == (-np.inf, np.inf)


def test_the_greatest_of_one_number_has_the_percentile_interval() -> None:
    rows = np.random.default_rng(2).normal(3, 2, (500, 1))
    drawn = np.concatenate(list(resamples(500))) @ rows / 500
    assert greatest_interval(drawn, 500) == pytest.approx(bootstrap(rows, lambda some: float(some.mean())), abs=0.01)


@pytest.mark.parametrize(("levels", "alike"), [(1, 0.0), (6, 0.3)])
def test_the_greatest_of_equal_numbers_is_seldom_thought_above_them(levels: int, alike: float) -> None:
    """The least favourable case: every level lies on its limit, and their sample means differ by chance."""
    rng = np.random.default_rng(3)
    above = below = 0
    for _ in range(200):
        cases = np.sqrt(alike) * rng.standard_normal((30, 1)) + np.sqrt(1 - alike) * rng.standard_normal((30, levels))
        weights = rng.multinomial(30, np.full(30, 1 / 30), size=400 * levels)
        low, high = greatest_interval(weights @ cases / 30, 30)
        above, below = above + (low > 0), below + (high < 0)
    assert above <= 11, "2.5 % of 200, and chance"
    assert below <= 11


def test_few_hits_do_not_hide_that_clusters_may_be_alike() -> None:
    """One hit in 30 clusters of 10: its share may be as large as if each cluster were worth few trials."""
    single = clustered_share([1] + [0] * 29, [10] * 30)
    assert single[1] > 1.5 * binomial_bounds(1, 300, 0.975)[1]
    assert clustered_share([0] * 30, [10] * 30)[1] == pytest.approx(binomial_bounds(0, 30, 0.975)[1])
    # a lone cluster is worth one trial
    assert clustered_share([5], [10])[1] > 0.99
    # many hits, one or two in each cluster: nearly as many independent trials
    many = clustered_share([1, 2] * 150, [10] * 300)
    assert many == pytest.approx(binomial_bounds(450, 3000, 0.975), abs=0.003)
