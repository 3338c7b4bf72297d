"""Survival curves: shares, intervals and medians of cases that break, or are lost before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from instar.stats import survival


def test_without_lost_cases_it_is_the_share_with_clopper_and_pearsons_interval() -> None:
    curve = survival([1, 2, 2, 3, 4, 4, 5, 6, 7, 8], [True] * 10, levels=range(9))
    assert curve.share.tolist() == pytest.approx([1, 0.9, 0.7, 0.6, 0.4, 0.3, 0.2, 0.1, 0])
    for share, low, high in zip(curve.share, curve.low, curve.high, strict=True):
        kept = round(10 * share)
        assert low == pytest.approx(beta.ppf(0.025, kept, 11 - kept) if kept else 0)
        assert high == pytest.approx(beta.ppf(0.975, kept + 1, 10 - kept) if kept < 10 else 1)


def test_lost_cases_count_as_far_as_they_were_seen() -> None:
    """The textbook's example: 6-mercaptopurine of Freireich and others (1963), by Kaplan and Meier."""
    weeks = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    lost = {3, 5, 7, 8, 11, 12, 13, 16, 17, 18, 19, 20}
    curve = survival(weeks, [number not in lost for number in range(21)], levels=[6, 7, 10, 13, 16, 22, 23, 35])
    assert curve.share.round(3).tolist() == [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448, 0.448]
    assert curve.at_risk.tolist() == [21, 17, 15, 12, 11, 7, 6, 1]
    assert curve.quantile(0.5)[0] == 23
    assert (curve.low < curve.share).all()
    assert (curve.share < curve.high).all()


def test_a_case_that_never_broke_is_unbroken_at_the_far_end() -> None:
    curve = survival([5] * 20, [False] * 20, levels=[0, 5])
    assert curve.share.tolist() == [1, 1]
    assert curve.low[1] == pytest.approx(0.025 ** (1 / 20))
    assert curve.quantile(0.5) == (math.inf, math.inf, math.inf)


def test_nothing_is_known_where_nobody_is_at_risk() -> None:
    curve = survival([1, 2, 2, 3], [True, False, False, False], levels=range(6))
    assert curve.share[:4].tolist() == [1, 0.75, 0.75, 0.75]
    assert np.isnan(curve.share[4:]).all()
    assert curve.quantile(0.25)[0] == 1
    assert math.isnan(curve.quantile(0.5)[0])
    all_broken = survival([1, 2], [True, True], levels=range(4))
    assert all_broken.share.tolist() == [1, 0.5, 0, 0]
    one_to_the_end = survival([1, 2, 5], [True, False, False], levels=range(6))
    assert one_to_the_end.quantile(0.5)[0] == math.inf


def test_quantiles_and_their_intervals_are_levels() -> None:
    curve = survival(np.repeat([1, 2, 3, 4], 25), [True] * 100, levels=range(5))
    assert curve.quantile(0.5) == (2, 2, 3)
    assert curve.quantile(0.25) == (1, 1, 2)
    assert curve.quantile(1.0)[0] == 4


def test_the_interval_of_a_median_has_the_level_at_which_the_curve_falls_below_one_half() -> None:
    """All break at one level, which is the median: no level's own interval holds one half there."""
    curve = survival([4] * 40, [True] * 40, levels=range(6))
    assert curve.quantile(0.5) == (4, 4, 4)
    assert not ((curve.low <= 0.5) & (curve.high >= 0.5)).any()
    # most break at one of three levels: the levels whose own intervals hold one half miss the median far too often
    rng, levels, times = np.random.default_rng(0), np.arange(6.0), 200
    right = short = 0
    for _ in range(times):
        drawn = survival(rng.choice([2, 3, 4], 30, p=[0.3, 0.4, 0.3]), [True] * 30, levels=levels)
        _, low, high = drawn.quantile(0.5)
        inside = levels[(drawn.low <= 0.5) & (drawn.high >= 0.5)]
        right += low <= 3 <= high
        short += 3 in inside
    assert right >= 0.95 * times > 0.8 * times > short


@pytest.mark.parametrize("lost", [0.0, 0.4])
@pytest.mark.parametrize("cases", [6, 10, 20])
def test_the_interval_of_a_median_covers_with_few_cases_and_with_lost_ones(cases: int, lost: float) -> None:
    rng, levels, times, median = np.random.default_rng(1), np.arange(13.0), 100, 4
    right = 0
    for _ in range(times):
        broke = np.ceil(rng.exponential(median / math.log(2), cases)).clip(1)
        last = np.where(rng.random(cases) < lost, rng.integers(0, 13, cases), 12)
        _, low, high = survival(np.minimum(broke, last), broke <= last, levels).quantile(0.5)
        right += low <= median <= (math.inf if math.isnan(high) else high)
    assert right >= 0.93 * times


def test_nothing_is_a_curve_of_nothing() -> None:
    assert len(survival([], []).share) == 0
    empty = survival([], [], levels=[0, 1])
    assert empty.low.tolist() == [0, 0]
    assert empty.high.tolist() == [1, 1]


def test_ends_and_their_states_belong_together() -> None:
    with pytest.raises(ValueError, match="every case has one end"):
        survival([1, 2], [True])
