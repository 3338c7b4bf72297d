"""Intervals and correlations against scipy, and intervals against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from instar.stats import bootstrap, pearson, spearman, wilson


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
