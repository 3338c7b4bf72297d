"""Masks against the slow and obvious way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.datasets.masks import mask_from_polygons, mask_from_runs, runs_of


def slow_inside(polygon: list[tuple[float, float]], x: float, y: float) -> bool:
    inside = False
    for (x0, y0), (x1, y1) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if (y0 <= y) != (y1 <= y) and x >= x0 + (y - y0) * (x1 - x0) / (y1 - y0):
            inside = not inside
    return inside


def slow_runs(mask: np.ndarray) -> list[int]:
    runs, value = [0], False
    for pixel in mask.T.ravel():
        if pixel != value:
            runs.append(0)
            value = not value
        runs[-1] += 1
    return runs


def slow_compressed(runs: list[int]) -> str:
    text = ""
    for i, run in enumerate(runs):
        number = run - runs[i - 2] if i > 2 else run
        while True:
            bits, number = number & 31, number >> 5
            more = number != (-1 if bits & 16 else 0)
            text += chr((bits | 32 if more else bits) + 48)
            if not more:
                break
    return text


coordinates = st.integers(-12, 60).map(lambda quarter: quarter / 4)
corners = st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=8)
polygons = st.lists(corners, min_size=1, max_size=3)


@given(polygons)
def test_polygons(given_polygons: list[list[tuple[float, float]]]) -> None:
    mask = mask_from_polygons([np.ravel(p) for p in given_polygons], (11, 9))
    expected = [[any(slow_inside(p, j + 0.5, i + 0.5) for p in given_polygons) for j in range(11)] for i in range(9)]
    np.testing.assert_array_equal(mask, expected)


def test_a_box_covers_its_pixels() -> None:
    mask = mask_from_polygons([[2, 1, 5, 1, 5, 3, 2, 3]], (8, 6))
    expected = np.zeros((6, 8), bool)
    expected[1:3, 2:5] = True
    np.testing.assert_array_equal(mask, expected)


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_runs_plain_and_compressed(width: int, height: int, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=width * height, max_size=width * height))
    mask = np.array(bits).reshape(height, width)
    runs = slow_runs(mask)
    for counts in (runs, slow_compressed(runs), slow_compressed(runs).encode()):
        found = runs_of({"size": [height, width], "counts": counts}, (width, height))
        np.testing.assert_array_equal(mask_from_runs(found, (width, height)), mask)


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=30))
def test_long_runs_compressed(runs: list[int]) -> None:
    total = max(1, sum(runs))
    found = runs_of({"size": [total, 1], "counts": slow_compressed(runs if sum(runs) else [1])}, (1, total))
    assert found.tolist() == (runs if sum(runs) else [1])


@pytest.mark.parametrize(
    "rle",
    [
        {},
        {"size": [2, 3], "counts": None},
        {"size": [2, 3], "counts": [7]},
        {"size": [3, 2], "counts": [6]},
        {"size": [2, 3], "counts": [8, -2]},
        {"size": [2, 3], "counts": "\x7f"},
        {"size": [2, 3], "counts": "P"},
        {"size": [2, 3], "counts": ""},
        {"counts": [6]},
    ],
)
def test_runs_that_make_no_sense(rle: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        runs_of(rle, (3, 2))
