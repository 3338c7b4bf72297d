"""Segmentation: stored and told without loss, carried without resampling, wrong ones refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instar.image import Image
from instar.outputs.segmentation import CLASS_COLOURS, UNKNOWN, Segmentation
from instar.outputs.zones import Zones
from instar.report import draw_shapes
from instar.report.picture import ACCUSED
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


def test_each_class_is_tinted_in_its_colour_and_holes_in_that_of_what_fills_them() -> None:
    cells = np.zeros((80, 80), np.uint8)
    cells[10:70, 10:70], cells[30:50, 30:50] = 1, 2
    shapes = Segmentation.from_classes(cells, ("ground", "ring", "hole")).shapes()
    assert [(shape.text, shape.colour) for shape in shapes if shape.form == "polygon"] == [
        ("ground", CLASS_COLOURS[0]), ("ring", CLASS_COLOURS[1]), ("hole", CLASS_COLOURS[2]),
    ]  # fmt: skip
    drawn = draw_shapes(Image(np.full((80, 80, 3), 100, np.uint8)), [s for s in shapes if s.form == "polygon"])
    for place, colour in (((4, 75), CLASS_COLOURS[0]), ((20, 20), CLASS_COLOURS[1]), ((40, 40), CLASS_COLOURS[2])):
        np.testing.assert_allclose(drawn.pixels[place], 0.35 * np.array(colour) + 65, atol=2)


SEEN_WITHOUT = {
    "nothing": np.eye(3),
    "red": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "green": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "blue": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
"""How light is seen by eyes that lack one of the three cones (Machado, Oliveira and Fernandes, 2009)."""


@pytest.mark.parametrize("lacking", SEEN_WITHOUT)
def test_classes_are_told_apart_with_any_colour_vision(lacking: str) -> None:
    """From each other and from what marks the class of a verdict: 15 in CIELAB is far more than a just seen step."""
    light = (np.array([*CLASS_COLOURS, ACCUSED]) / 255) ** 2.2 @ SEEN_WITHOUT[lacking].T
    to_xyz = np.array([[0.434, 0.376, 0.190], [0.213, 0.715, 0.072], [0.018, 0.109, 0.873]])
    x, y, z = np.cbrt(np.clip(light, 0, 1) @ to_xyz.T).T
    colours = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)
    assert min(np.linalg.norm(a - b) for a, b in combinations(colours, 2)) > 15
