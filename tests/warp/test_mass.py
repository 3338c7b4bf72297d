"""Mass carried from grid to grid: exact where it can be, and never lost inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.outputs.heat import HeatMap
from instar.warp import Warp, carried_mass

sides = st.integers(1, 12)


@settings(deadline=None)
@given(
    size=st.tuples(sides, sides),
    target=st.tuples(sides, sides),
    quarters=st.integers(0, 3),
    mirrored=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_whole_frames_keep_their_mass(
    size: tuple[int, int], target: tuple[int, int], quarters: int, mirrored: bool, seed: int
) -> None:
    cells = np.random.default_rng(seed).random(size[::-1])
    turn = Warp.rotate90(size, quarters)
    turn = turn.then(Warp.mirror(turn.target, "h")) if mirrored else turn
    carried = carried_mass(cells, turn.then(Warp.resize(turn.target, target)))
    assert carried.shape == target[::-1]
    assert carried.sum() == pytest.approx(cells.sum(), rel=1e-12)
    expected = np.rot90(cells, quarters)[:, :: -1 if mirrored else 1]
    assert np.array_equal(carried_mass(cells, turn), expected)
    # the same, cell by cell: how much of each lies in each
    down = _overlap(expected.shape[0], target[1])
    across = _overlap(expected.shape[1], target[0])
    assert np.allclose(carried, down @ expected @ across.T, atol=1e-12)


def _overlap(count: int, cells: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    edges, others = np.linspace(0, cells, count + 1), np.arange(cells + 1.0)
    low = np.maximum(edges[:-1], others[:-1, None])
    high = np.minimum(edges[1:], others[1:, None])
    return np.asarray(np.clip(high - low, 0, None) / np.diff(edges))


def test_a_shift_by_half_a_cell_divides_it() -> None:
    cells = np.zeros((1, 4))
    cells[0, 1] = 1
    shift = Warp(np.array([[1, 0, 0.5], [0, 1, 0], [0, 0, 1.0]]), (4, 1), (4, 1))
    assert carried_mass(cells, shift).tolist() == [[0, 0.5, 0.5, 0]]


def test_what_falls_beside_is_missing() -> None:
    half = Warp(np.array([[1, 0, -2.0], [0, 1, 0], [0, 0, 1.0]]), (4, 1), (4, 1))
    assert carried_mass(np.ones((1, 4)), half).tolist() == [[1, 1, 0, 0]]


def test_a_rotation_keeps_about_as_much() -> None:
    y, x = np.mgrid[:60, :60] + 0.5
    cells = np.exp(-((x - 30) ** 2 + (y - 28) ** 2) / 40)
    carried = carried_mass(cells, Warp.rotation((60, 60), 30).then(Warp.scale((60, 60), 0.8, 0.8)))
    assert carried.sum() == pytest.approx(cells.sum(), rel=0.01)


@settings(deadline=None, max_examples=30)
@given(
    box=st.tuples(st.floats(-30, 50), st.floats(-30, 50), st.floats(2, 60), st.floats(2, 60)), seed=st.integers(0, 1000)
)
def test_the_share_of_a_cell_that_a_mask_covers(box: tuple[float, float, float, float], seed: int) -> None:
    """Against the same, looked at in many places of each cell."""
    mask = np.kron(np.random.default_rng(seed).random((8, 10)) > 0.5, np.ones((5, 5))) > 0
    x, y, wide, high = box
    warp = Warp(np.array([[wide / 6, 0, x], [0, high / 4, y], [0, 0, 1.0]]), (6, 4), (50, 40))
    share = HeatMap.of(np.ones((4, 6)), warp).share(mask)
    fine = (np.arange(60) + 0.5) / 60
    px = x + wide / 6 * (np.arange(6)[:, None] + fine).ravel()
    py = y + high / 4 * (np.arange(4)[:, None] + fine).ravel()
    inside = ((px >= 0) & (px < 50)) & ((py >= 0) & (py < 40))[:, None]
    looked = mask[py.astype(int).clip(0, 39)][:, px.astype(int).clip(0, 49)] & inside
    assert np.allclose(share, looked.reshape(4, 60, 6, 60).mean((1, 3)), atol=0.05)
