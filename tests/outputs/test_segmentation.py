"""Segmentation: stored and told without loss, carried without resampling, wrong ones refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instar.image import Image
from instar.outputs.segmentation import UNKNOWN, Segmentation
from instar.outputs.zones import Zones
from instar.warp import Warp

grids = arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 2))


@given(cells=grids, width=st.integers(1, 50), height=st.integers(1, 50))
def test_it_is_stored_and_told_without_loss(cells: np.ndarray, width: int, height: int) -> None:
    made = Segmentation.from_classes(cells, ("a", "b", "c"), size=(width, height))
    stored = Segmentation.from_row(made.row(), made.header())
    told = Segmentation.from_json(made.to_json(), (width, height))
    for back in (stored, told):
        assert np.array_equal(back.cells, cells) and back.names == made.names
        assert back.warp.target == (width, height) and np.allclose(back.warp.matrix, made.warp.matrix)


def test_what_comes_from_outside_is_unknown() -> None:
    made = Segmentation.from_classes(np.zeros((4, 4), np.uint8), ("a",))
    moved = made.warped(Warp(np.array([[1.0, 0, 2], [0, 1, 0], [0, 0, 1]]), (4, 4), (4, 4)))
    assert moved.onto(made).tolist() == [[UNKNOWN, UNKNOWN, 0, 0]] * 4


def test_a_map_of_any_size_covers_the_image() -> None:
    image = Image(np.zeros((40, 60, 3), np.uint8))
    made = Segmentation.accept(Segmentation.from_classes([[0, 1]], ("a", "b")), image)
    assert made.warp.target == (60, 40) and made.share("b") == 0.5


def test_zones_become_classes() -> None:
    image = Image(np.zeros((1, 4, 3), np.uint8))
    zones = Zones(np.array([[0, 1, 2, 9]], np.uint8), {"body": (1, 2), "skin": (2,), "ground": (0,)})
    made = Segmentation.accept(zones, image)
    assert [made.names[n] if n != UNKNOWN else None for n in made.cells[0]] == ["ground", "body", "skin", None]


@pytest.mark.parametrize(
    ("cells", "names", "wrong"),
    [
        ([[3]], ("a",), "of class 3"),
        ([[0.5]], ("a",), "whole numbers"),
        ([[0]], (), "1 to 255 different texts"),
        ([0], ("a",), "whole numbers"),
        (np.zeros((0, 4), int), ("a",), "whole numbers"),
    ],
)
def test_wrong_ones_are_refused(cells: object, names: tuple[str, ...], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        Segmentation.from_classes(cells, names)  # type: ignore[arg-type]
