"""Distances between sampled distributions, and tests of them, against references and by their properties."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from instar.stats import hellinger, permutation_test, wasserstein, wilcoxon, z_test
from tests.missing import module

sizes = st.tuples(st.integers(1, 8), st.integers(1, 5), st.integers(1, 6))


@settings(deadline=None, max_examples=60)
@given(shape=sizes, seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_w2_is_the_cheapest_of_all_matchings(shape: tuple[int, int, int], seed: int, scale: float) -> None:
    runs, count, size = shape[0], min(shape[1], 5), shape[2]
    rng = np.random.default_rng(seed)
    a, b = (scale * (5 + rng.normal(size=(runs, count, size))) for _ in range(2))
    found, plain = wasserstein(a, b), wasserstein(a, b, squared=False)
    for i, j in ((0, 0), (runs - 1, 0), (0, runs - 1)):
        gaps = [np.linalg.norm(a[i] - b[j][list(order)], axis=1) for order in permutations(range(count))]
        assert found[i, j] == pytest.approx(np.sqrt(min((gap**2).mean() for gap in gaps)), rel=1e-9, abs=1e-9 * scale)
        assert plain[i, j] == pytest.approx(min(gap.mean() for gap in gaps), rel=1e-9, abs=1e-9 * scale)


def test_w2_agrees_with_the_reference_library() -> None:
    ot = module("ot")
    rng = np.random.default_rng(1)
    even = np.full(20, 1 / 20)
    for shift, scale in ((0.0, 1.0), (900.0, 40.0), (0.0, 1e-3)):
        a, b = (shift + scale * rng.normal(size=(12, 20, 24)) for _ in range(2))
        theirs = [[np.sqrt(ot.emd2(even, even, ot.dist(one, other))) for other in b] for one in a]
        assert np.abs(wasserstein(a, b) - theirs).max() <= 1e-9 * max(1, scale)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 20))
def test_w2_is_a_distance(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (1000 + 10 * rng.normal(size=(1, count, 4)) for _ in range(3))
    shuffled = a[:, rng.permutation(count)]
    assert wasserstein(a, a) == 0
    assert wasserstein(a, shuffled) == 0
    assert wasserstein(a, b) == pytest.approx(wasserstein(b, a), rel=1e-9)
    assert wasserstein(a, c) <= wasserstein(a, b) + wasserstein(b, c) + 1e-9
    assert wasserstein(a, a + np.array([3.0, 0, 4, 0])) == pytest.approx(5)


def test_how_the_pairs_are_divided_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(30, 7, 3)), rng.normal(size=(9, 7, 3))
    whole = wasserstein(a, b)
    assert whole.shape == (30, 9)
    assert np.allclose(whole, [[wasserstein(x[None], y[None])[0, 0] for y in b] for x in a], rtol=1e-12)
    among = wasserstein(a)
    assert np.allclose(among, wasserstein(a, a), rtol=1e-9, atol=1e-12)
    assert np.array_equal(among, among.T)
    assert wasserstein(np.zeros((1, 3, 2))).tolist() == [[0]]


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cells=st.integers(1, 40))
def test_hellinger_lies_between_0_and_1(seed: int, cells: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(cells, 0.3)) for _ in range(2))
    apart = hellinger(p, q)
    assert 0 <= apart <= 1
    assert apart == pytest.approx(hellinger(q, p))
    assert apart == pytest.approx(np.sqrt(max(0.0, 1 - np.sqrt(p * q).sum())), abs=1e-7)
    assert hellinger(p, p) == 0
    assert hellinger(p, np.zeros(cells)) == pytest.approx(1)


def statistic(matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]], rest: tuple[int, ...]) -> float:
    """As it is defined, one choice at a time."""
    first = [i for i in range(len(matrix)) if i not in rest]

    def within(runs: list[int]) -> float:
        pairs = list(combinations(runs, 2))
        return float(np.mean([matrix[i, j] for i, j in pairs])) if pairs else 0.0

    return 2 * float(np.mean([matrix[i, j] for i in first for j in rest])) - within(first) - within(list(rest))


@settings(deadline=None, max_examples=40)
@given(first=st.integers(2, 5), rest=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_the_permutation_test_is_what_it_says(first: int, rest: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(first + rest, 2))
    matrix = np.linalg.norm(points[:, None] - points, axis=-1)
    ways = [statistic(matrix, way) for way in combinations(range(first + rest), rest)]
    real = statistic(matrix, tuple(range(first, first + rest)))
    seen, p, least = permutation_test(matrix, first)
    assert seen == pytest.approx(real, abs=1e-12)
    assert p == pytest.approx(np.mean(np.array(ways) >= real - 1e-9), abs=1e-12)
    assert least == pytest.approx(1 / len(ways))


def test_one_run_is_a_rank_test() -> None:
    points = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 30])
    matrix = np.abs(np.subtract.outer(points, points))
    assert permutation_test(matrix, 9)[1:] == (0.1, 0.1)
    order = [*range(8), 9, 8]  # now 30 is among the first; it and 0 are further from all than 8, and 1 as far
    assert permutation_test(matrix[np.ix_(order, order)], 9)[1] == 0.4


def test_runs_without_any_difference() -> None:
    assert permutation_test(np.zeros((7, 7)), 5)[:2] == (0, 1)
    with pytest.raises(ValueError, match="at least two runs and one to compare"):
        permutation_test(np.zeros((2, 2)), 1)


def test_many_runs_take_a_sample_of_the_ways() -> None:
    rng = np.random.default_rng(4)
    same, apart = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    apart[20:] += 3
    distances = [np.linalg.norm(x[:, None] - x, axis=-1) for x in (same, apart)]
    assert permutation_test(distances[0], 20)[1] > 0.01
    assert permutation_test(distances[1], 20)[1:] == (1 / 20_000, 1 / 20_000)


def test_a_changed_spread_is_seen_where_a_mean_distance_hardly_changes() -> None:
    rng = np.random.default_rng(5)
    runs = rng.normal(size=(25, 20, 2))
    runs[20:] *= 0.2
    assert permutation_test(wasserstein(runs), 20)[1] < 1e-4


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 60))
def test_wilcoxon_agrees_with_scipy(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = np.round(rng.normal(size=(2, count)), 1)  # with ties
    if (before == after).all():
        return
    # the stubs know "asymptotic" only together with keepdims
    theirs = reference.wilcoxon(  # type: ignore[call-overload]
        after, before, alternative="greater", method="asymptotic", correction=False
    )
    assert wilcoxon(before, after) == pytest.approx(theirs.pvalue, rel=1e-9)


def test_tests_without_anything_to_test() -> None:
    assert wilcoxon([1.0, 2], [1.0, 2]) == 1
    assert z_test(3.0, 3.0, 0.0) == 1
    assert z_test(3.1, 3.0, 0.0) == 0
    assert z_test(1.96, 0.0, 1.0) == pytest.approx(0.05, abs=1e-4)
