"""Geometry against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.warp import Warp, boxes_iou, inside, warp_pixels

sizes = st.tuples(st.integers(1, 60), st.integers(1, 60))
coordinates = st.floats(-200, 200, allow_nan=False)
points = st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=8)


@st.composite
def warps(draw: st.DrawFn, source: tuple[int, int] | None = None) -> Warp:
    size = source or draw(sizes)
    kind = draw(st.sampled_from(["identity", "mirror", "rotation", "rotate90", "resize", "scale", "shear"]))
    if kind == "mirror":
        return Warp.mirror(size, draw(st.sampled_from(["h", "v", "both"])))
    if kind == "rotation":
        return Warp.rotation(size, draw(st.floats(-360, 360)))
    if kind == "rotate90":
        return Warp.rotate90(size, draw(st.integers(-4, 4)))
    if kind == "resize":
        return Warp.resize(size, draw(sizes))
    if kind == "scale":
        return Warp.scale(size, draw(st.floats(0.2, 3)), draw(st.floats(0.2, 3)))
    if kind == "shear":
        return Warp.shear(size, draw(st.floats(-0.5, 0.5)), draw(st.floats(-0.5, 0.5)))
    return Warp.identity(size)


@given(st.data(), points)
def test_composition_is_one_after_the_other(data: st.DataObject, xy: list[tuple[float, float]]) -> None:
    first = data.draw(warps())
    second = data.draw(warps(first.target))
    np.testing.assert_allclose(first.then(second).points(xy), second.points(first.points(xy)), atol=1e-6)


@given(warps(), points)
def test_the_inverse_leads_back(warp: Warp, xy: list[tuple[float, float]]) -> None:
    np.testing.assert_allclose(warp.inverse.points(warp.points(xy)), xy, atol=1e-6)
    assert (warp.inverse.source, warp.inverse.target) == (warp.target, warp.source)


@given(st.data())
def test_mirrors_multiply(data: st.DataObject) -> None:
    first = data.draw(warps())
    second = data.draw(warps(first.target))
    assert first.then(second).mirrors == (first.mirrors != second.mirrors)


@given(sizes)
def test_only_one_axis_changes_handedness(size: tuple[int, int]) -> None:
    assert [Warp.mirror(size, axis).mirrors for axis in ("h", "v", "both")] == [True, True, False]
    assert not any(Warp.rotate90(size, quarters).mirrors for quarters in range(4))


@given(sizes, st.integers(-8, 8))
def test_whole_frames_stay_whole(size: tuple[int, int], quarters: int) -> None:
    width, height = size
    for warp in (Warp.rotate90(size, quarters), Warp.mirror(size, "both"), Warp.resize(size, (7, 9))):
        np.testing.assert_allclose(warp.boxes([0, 0, width, height]), [0, 0, *warp.target], atol=1e-9)


def test_positive_angles_turn_counter_clockwise_as_seen() -> None:
    turned = Warp.rotation((100, 100), 90).points([[100, 50]])
    np.testing.assert_allclose(turned, [[50, 0]], atol=1e-9)
    np.testing.assert_allclose(Warp.rotate90((100, 40), 1).points([[100, 20]]), [[20, 0]], atol=1e-9)


@given(warps(), st.lists(st.tuples(*[st.floats(0, 50)] * 4), min_size=1, max_size=4))
def test_boxes_hold_their_corners(warp: Warp, corners: list[tuple[float, float, float, float]]) -> None:
    boxes = np.array([[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in corners])
    for box, moved in zip(boxes, warp.boxes(boxes), strict=True):
        corner = np.array([[box[i], box[j]] for i in (0, 2) for j in (1, 3)])
        brute = np.array([warp.points([p])[0] for p in corner])
        np.testing.assert_allclose(moved, [*brute.min(0), *brute.max(0)], atol=1e-9)


@given(sizes, st.sampled_from(["h", "v", "both", 0, 1, 2, 3]), st.booleans())
def test_flips_and_quarter_turns_move_every_pixel_exactly(size: tuple[int, int], turn: str | int, grey: bool) -> None:
    width, height = size
    shape = (height, width) if grey else (height, width, 3)
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    warp = Warp.mirror(size, turn) if isinstance(turn, str) else Warp.rotate90(size, turn)  # type: ignore[arg-type]
    out = warp_pixels(pixels, warp)
    assert out.shape[:2] == warp.target[::-1]
    for i in range(height):
        for j in range(width):
            x, y = warp.points([j + 0.5, i + 0.5])
            assert np.array_equal(out[int(y), int(x)], pixels[i, j])


@settings(max_examples=60)
@given(st.tuples(st.integers(12, 40), st.integers(12, 40)), st.data())
def test_pixels_land_where_points_do(size: tuple[int, int], data: st.DataObject) -> None:
    """Bilinear resampling by the definition, pixel by pixel: this is where a half-pixel error would show."""
    warp = data.draw(
        st.one_of(
            st.floats(-180, 180).map(lambda a: Warp.rotation(size, a)),
            st.floats(-0.4, 0.4).map(lambda s: Warp.shear(size, s, 0)),
            st.tuples(st.floats(-3, 3), st.floats(-3, 3)).map(
                lambda t: Warp(np.array([[1, 0, t[0]], [0, 1, t[1]], [0, 0, 1.0]]), size, size)
            ),
        )
    )
    ramp = np.add.outer(np.arange(size[1]) * 2.0, np.arange(size[0]) * 3.0).astype(np.float32)
    out = warp_pixels(ramp, warp)
    back = warp.inverse
    for i in range(0, size[1], 3):
        for j in range(0, size[0], 3):
            x, y = back.points([j + 0.5, i + 0.5]) - 0.5
            if 0 <= x <= size[0] - 1 and 0 <= y <= size[1] - 1:
                assert out[i, j] == pytest.approx(3 * x + 2 * y, abs=0.25)


@given(st.tuples(st.integers(2, 30), st.integers(2, 30)), st.sampled_from([2, 3]))
def test_enlarging_keeps_the_centre_of_mass(size: tuple[int, int], factor: int) -> None:
    pixels = np.zeros((size[1], size[0]), np.float32)
    pixels[size[1] // 2, size[0] // 2] = 1
    warp = Warp.resize(size, (size[0] * factor, size[1] * factor))
    out = warp_pixels(pixels, warp, "nearest")
    rows, columns = np.nonzero(out)
    expected = warp.points([size[0] // 2 + 0.5, size[1] // 2 + 0.5])
    np.testing.assert_allclose([columns.mean() + 0.5, rows.mean() + 0.5], expected)


def test_area_resampling_is_the_mean_of_the_block() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    half = warp_pixels(pixels, Warp.resize((30, 20), (15, 10)), "area")
    brute = pixels.reshape(10, 2, 15, 2, 3).mean((1, 3))
    assert np.abs(half - brute).max() <= 0.5


def test_what_comes_from_outside_is_black() -> None:
    out = warp_pixels(np.full((50, 50), 255, np.uint8), Warp.rotation((50, 50), 45))
    assert out[0, 0] == 0 and out[25, 25] == 255


def test_a_projective_warp_divides() -> None:
    warp = Warp(np.array([[1, 0, 0], [0, 1, 0], [0.01, 0, 1]]), (100, 100), (100, 100))
    np.testing.assert_allclose(warp.points([[50, 30]]), [[50 / 1.5, 20]])
    assert math.isclose(warp.inverse.points(warp.points([[50, 30]]))[0, 0], 50)


@pytest.mark.parametrize(
    ("matrix", "message"), [(np.zeros((3, 3)), "singular"), (np.eye(2), "3×3"), (np.full((3, 3), np.nan), "finite")]
)
def test_bad_matrices_are_refused(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Warp(matrix, (10, 10), (10, 10))


def test_mismatched_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="starts at"):
        Warp.identity((10, 10)).then(Warp.identity((20, 10)))
    with pytest.raises(ValueError, match="the picture is 20×10"):
        warp_pixels(np.zeros((10, 20, 3), np.uint8), Warp.identity((10, 20)))


def test_the_frame_is_closed_and_nan_is_outside() -> None:
    assert inside(np.array([[0, 0], [10, 5], [10.01, 5], [np.nan, 1]]), (10, 5)).tolist() == [True, True, False, False]


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 4), min_size=1, max_size=4))
def test_iou_counts_cells(corners: list[tuple[int, int, int, int]]) -> None:
    boxes = [[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in corners]
    cells = [{(x, y) for x in range(b[0], b[2]) for y in range(b[1], b[3])} for b in boxes]
    brute = [[len(p & q) / len(p | q) if p | q else 0.0 for q in cells] for p in cells]
    np.testing.assert_allclose(boxes_iou(boxes, boxes), brute)
