"""Forecasts and the scenes they are about: what is taken, what is refused, and what moving and storing does to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.image import Image
from instar.outputs.forecast import Forecast
from instar.outputs.heat import HeatMap, heat_of
from instar.scene import Scene, Track
from instar.stats import hellinger
from instar.store import rows_frame
from instar.transforms import Change
from instar.warp import Warp

NAMES = ("background", "pavement", "road")
SIZE = (60, 40)
STEPS = 3


def scene(**other: Any) -> Scene:
    held: dict[str, Any] = {
        "classes": np.ones(SIZE[::-1], np.uint8),
        "names": NAMES,
        "past": [[10, 20], [12, 20]],
        "steps": STEPS,
        **other,
    }
    return Scene(**held)


def walks(count: int = 4, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-10, 70, (count, STEPS, 2)).astype(np.float32)


# --- what a forecast is made of ----------------------------------------------------------------------


def test_one_path_is_a_set_of_one() -> None:
    path = [[1, 2], [3, 4], [5, 6]]
    assert Forecast.from_array(path).futures.tolist() == [path]
    assert len(Forecast.from_array(walks(7))) == 7
    assert Forecast.from_array(np.zeros((2, 1, 2))).futures.shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("futures", "message"),
    [
        (np.zeros(12), r"\(K, T, 2\).*got shape \(12,\)"),
        (np.zeros((20, 12, 3)), r"\(K, T, 2\).*got shape \(20, 12, 3\)"),
        (np.zeros((2, 20, 12, 2)), r"\(K, T, 2\)"),
        (np.zeros((0, 12, 2)), r"at least one path.*\(0, 12, 2\)"),
        (np.zeros((20, 0, 2)), "at least one path of one position"),
        ([], "at least one path"),
        ([[[0, 0], [np.nan, 1]], [[0, 0], [1, 1]], [[np.inf, 0], [0, 0]]], "2 of 3 futures .* not finite"),
    ],
)
def test_futures_that_are_none(futures: npt.ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecast.from_array(futures)


@pytest.mark.parametrize("box", [None, (0.0, 0.0, 60.0, 40.0)])
@pytest.mark.parametrize(
    ("probability", "message"),
    [
        ([[0.5, -0.1]], "finite numbers from 0 up"),
        ([[0.5, np.nan]], "finite numbers from 0 up"),
        ([[0.5, np.inf]], "finite numbers"),
        (np.zeros((4, 5)), "some of them are above 0"),
        (np.ones(5), r"\(h, w\).*\(5,\)"),
        (np.ones((1, 5, 6)), r"\(h, w\).*\(1, 5, 6\)"),
    ],
)
def test_probabilities_that_are_none(
    probability: npt.ArrayLike, message: str, box: tuple[float, float, float, float] | None
) -> None:
    with pytest.raises(ValueError, match=message):
        Forecast.accept(Forecast.from_array(walks(), probability, box=box), scene())


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((50, 50, 10, 10), r"box is \[50, 50, 10, 10\]; it takes x0, y0, x1, y1 with x0 < x1 and y0 < y1"),
        (np.array([0.0, 10, 20, 10]), "x0 < x1 and y0 < y1"),
        ((0, 0, np.inf, 10), "box holds a number that is too large"),
        ((0, np.nan, 10, 10), "box holds NaN"),
        ((0, 0, 10), "it takes x0, y0, x1, y1 in pixels"),
    ],
)
def test_boxes_that_are_none(box: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecast.from_array(walks(), np.ones((4, 5)), box=box)


def test_anything_proportional_to_a_probability_will_do() -> None:
    cells = np.arange(12.0).reshape(3, 4)
    for scale in (1e-6, 1, 1e9):
        heat = Forecast.accept(Forecast.from_array(walks(), scale * cells), scene()).heat
        assert heat is not None
        assert heat.cells == pytest.approx(cells / cells.sum(), rel=1e-6)


def placed(heat: HeatMap | None) -> list[float]:
    """The box that a map covers in the frame."""
    assert heat is not None
    assert heat.warp.target == SIZE
    return [float(side) for side in heat.warp.boxes([0, 0, *heat.size])]


def test_a_map_covers_the_whole_frame_or_its_box() -> None:
    cells = np.ones((4, 5))
    assert placed(Forecast.accept(Forecast.from_array(walks(), cells), scene()).heat) == [0, 0, 60, 40]
    box = (-5.0, 10.0, 15.0, 80.0)  # a box may leave the frame
    assert placed(Forecast.accept(Forecast.from_array(walks(), cells, box=box), scene()).heat) == list(box)


# --- what a system may answer ------------------------------------------------------------------------


def test_arrays_lists_and_forecasts_are_answers() -> None:
    for answer in (walks(), walks().tolist(), tuple(walks().tolist()), Forecast.from_array(walks())):
        assert np.array_equal(Forecast.accept(answer, scene()).futures, walks())


@pytest.mark.parametrize(
    ("answer", "message"),
    [("straight on", "expected a Forecast .* got str"), (None, "got NoneType"), ({"futures": []}, "got dict")],
)
def test_other_things_are_not(answer: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Forecast.accept(answer, scene())


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_as_many_positions_as_the_scene_asks_for(steps: int) -> None:
    with pytest.raises(ValueError, match=f"asks for 3 positions, its futures have {steps}"):
        Forecast.accept(np.zeros((5, steps, 2)), scene())


@pytest.mark.parametrize("futures", [np.full((2, STEPS, 2), np.nan, np.float32), np.zeros((0, STEPS, 2), np.float32)])
def test_a_forecast_made_without_from_array_is_checked_too(futures: npt.NDArray[np.float32]) -> None:
    with pytest.raises(ValueError):
        Forecast.accept(Forecast(futures), scene())


# --- storing -------------------------------------------------------------------------------------------


def stored(forecast: Forecast, folder: Path) -> Mapping[str, Any]:
    """Through Parquet and back, as one row among others."""
    schema = {**Change.columns, **Forecast.columns}
    other = Forecast.from_array(np.ones((1, 9, 2)))
    rows = [{**Change.none(SIZE).row(), **one.row()} for one in (other, forecast, other)]
    rows_frame(rows, schema).write_parquet(folder / "rows.parquet")
    return pl.read_parquet(folder / "rows.parquet").row(1, named=True)


@pytest.mark.parametrize("box", [None, (3.5, -2.0, 33.5, 18.0)])
def test_a_forecast_reads_back(box: tuple[float, float, float, float] | None, tmp_path: Path) -> None:
    cells = np.random.default_rng(1).random((7, 9)) + 0.01
    for probability in (None, cells):
        told = Forecast.accept(Forecast.from_array(walks(20), probability, box=box), scene())
        back = Forecast.from_row(stored(told, tmp_path), told.header())
        assert np.array_equal(back.futures, told.futures)
        if told.heat is None:
            assert back.heat is None
        else:
            assert back.heat is not None
            assert back.heat.warp == told.heat.warp
            assert back.heat.cells.sum() == pytest.approx(1, abs=1e-12)
            assert np.abs(back.heat.cells / told.heat.cells - 1).max() < 2**-9


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), sharp=st.floats(0, 40), cells=st.sampled_from([1, 16, 200]))
def test_what_storing_costs_is_below_what_relations_see(seed: int, sharp: float, cells: int) -> None:
    field = np.random.default_rng(seed).random((cells, cells)) ** sharp
    heat = HeatMap.of(field, Warp.resize((cells, cells), SIZE))
    back = heat_of(heat.row())
    assert back is not None
    assert hellinger(heat.cells, back.cells) < 2**-11
    assert (back.cells[heat.cells == 0] == 0).all()


# --- moving --------------------------------------------------------------------------------------------

WARPS = {
    "mirror h": Warp.mirror(SIZE, "h"),
    "mirror v": Warp.mirror(SIZE, "v"),
    "mirror both": Warp.mirror(SIZE, "both"),
    "a quarter": Warp.rotate90(SIZE, 1),
    "a half": Warp.rotate90(SIZE, 2),
    "three quarters": Warp.rotate90(SIZE, 3),
    "rescale": Warp.scale(SIZE, 0.8, 0.8),
    "rotation": Warp.rotation(SIZE, 30),
}
every = pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS.keys())
BOX = (6.0, 8.0, 46.0, 24.0)
HOT = (1, 7)


def hot() -> Forecast:
    """A map of cells of 4 × 4 pixels of which one, off the middle in both directions, is hot."""
    cells = np.full((4, 10), 0.01)
    cells[HOT] = 1
    return Forecast.accept(Forecast.from_array(walks(), cells, box=BOX), scene())


HOT_PLACE = (6 + 7.5 * 4, 8 + 1.5 * 4)


@every
def test_points_and_grid_move_together(warp: Warp) -> None:
    moved = hot().warped(warp)
    assert np.allclose(moved.futures, warp.points(hot().futures), atol=1e-4)
    heat = moved.heat
    assert heat is not None
    assert heat.warp.points([HOT[1] + 0.5, HOT[0] + 0.5]) == pytest.approx(warp.points(HOT_PLACE), abs=1e-9)
    assert heat.cells.sum() == pytest.approx(1)


@every
def test_heat_is_drawn_where_it_is(warp: Warp) -> None:
    shape = hot().warped(warp).shapes()[0]
    assert shape.form == "heat"
    assert shape.heat is not None
    (box,) = shape.xy
    assert box == pytest.approx(warp.boxes(BOX))
    row, column = np.unravel_index(shape.heat.argmax(), shape.heat.shape)
    cell = (box[2:] - box[:2]) / shape.heat.shape[::-1]
    found = box[:2] + (np.array([column, row]) + 0.5) * cell
    assert np.abs(found - warp.points(HOT_PLACE)).max() <= (cell.max() if warp is WARPS["rotation"] else 1e-9)


@settings(deadline=None)
@given(
    size=st.tuples(st.integers(1, 2000), st.integers(1, 2000)),
    axis=st.sampled_from(["h", "v", "both"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_mirrored_twice_is_as_before(size: tuple[int, int], axis: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_scene = scene(classes=np.zeros(size[::-1], np.uint8))
    told = Forecast.accept(Forecast.from_array(rng.uniform(0, size, (3, STEPS, 2)), rng.random((5, 7))), given_scene)
    warp = Warp.mirror(size, axis)
    twice = told.warped(warp).warped(warp)
    assert np.allclose(twice.futures, told.futures, atol=1e-3)
    assert told.heat is not None
    assert twice.heat is not None
    assert np.array_equal(twice.heat.onto(told.heat), told.heat.cells)


def test_the_mass_of_a_region_moves_with_it() -> None:
    mask = np.zeros(SIZE[::-1], bool)
    mask[10:22, 20:38] = True
    told = hot().heat
    assert told is not None
    for name in ("mirror h", "a quarter", "three quarters"):
        warp = WARPS[name]
        moved_mask = Change(Warp.identity(SIZE), mask=mask).then(Change(warp)).mask
        assert moved_mask is not None
        moved = told.warped(warp)
        assert (moved.cells * moved.share(moved_mask)).sum() == pytest.approx((told.cells * told.share(mask)).sum())


def test_the_medoid_is_the_path_in_the_middle() -> None:
    paths = np.array([0.0, 50, 2, 3, 1])[:, None, None] + np.zeros((5, STEPS, 2))
    assert Forecast.from_array(paths).medoid.tolist() == [[2, 2]] * STEPS
    assert Forecast.from_array(paths[:1]).medoid.tolist() == [[0, 0]] * STEPS


def test_a_path_of_one_position_can_be_drawn() -> None:
    lines, points = Forecast.from_array(np.full((4, 1, 2), 5.0)).shapes()
    assert (lines.form, len(lines.xy)) == ("lines", 0)
    assert (points.form, len(points.xy)) == ("points", 4)


# --- scenes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"past": []}, "the past is empty"),
        ({"past": [1.0, 2.0]}, r"\(P, 2\).*shape \(2,\)"),
        ({"past": [[1, 2, 3]]}, r"\(P, 2\)"),
        ({"past": [[1, 2], [3, np.nan], [np.inf, 1]]}, "position 1 of the past is not a number"),
        ({"classes": np.ones((4, 4))}, r"uint8 array \(H, W\), got float64 \(4, 4\)"),
        ({"classes": np.ones((4, 4, 3), np.uint8)}, r"got uint8 \(4, 4, 3\)"),
        ({"classes": np.ones((0, 4), np.uint8)}, r"got uint8 \(0, 4\)"),
        ({"classes": np.full((4, 4), 7, np.uint8)}, r"cells of class 7, the names end with 2 \(road\)"),
        ({"names": ("pavement", "background")}, "begin with 'background', got pavement, background"),
        ({"names": ()}, "begin with 'background'"),
        ({"names": ("background", "road", "road")}, "names are different"),
        ({"steps": 0}, "are positive, got 0"),
        ({"rate": 0}, "are positive"),
        ({"rate": float("nan")}, "are positive"),
        ({"metres_per_pixel": 0}, "are positive"),
        ({"metres_per_pixel": -0.1}, "and -0.1"),
    ],
)
def test_scenes_that_are_none(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scene(**wrong)


def test_one_position_is_a_past() -> None:
    assert scene(past=[[3, 4]]).position.tolist() == [3, 4]


def test_a_scene_cannot_be_written_to_and_leaves_what_it_was_given_alone() -> None:
    classes, past = np.ones((4, 4), np.uint8), np.ones((2, 2))
    made = scene(classes=classes, past=past)
    for array in (made.classes, made.past):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    classes[0], past[0] = 0, 0  # and they can still be written to
    assert made.past.tolist() == [[1, 1], [1, 1]]


def test_masks_of_classes() -> None:
    made = scene(classes=np.array([[0, 1, 2]], np.uint8))
    assert made.mask("road").tolist() == [[False, False, True]]
    assert made.mask("road", "background").tolist() == [[True, False, True]]
    assert not made.mask("water").any()
    assert not made.mask().any()


def test_the_edge_of_the_map_belongs_to_it() -> None:
    made = scene(past=[[0, 0], [60, 40], [60.01, 40], [-0.01, 5], [30, 20]])
    assert made.on_map().tolist() == [True, True, False, False, True]


def test_metres_stay_where_lengths_do() -> None:
    made = scene(metres_per_pixel=0.04)
    assert made.warped(Warp.rotate90(SIZE, 1)).metres_per_pixel == pytest.approx(0.04)
    assert made.warped(Warp.scale(SIZE, 2, 2)).metres_per_pixel == pytest.approx(0.02)
    assert made.warped(Warp.scale(SIZE, 2, 1)).metres_per_pixel is None
    assert scene().warped(Warp.mirror(SIZE, "h")).metres_per_pixel is None


def test_maps_of_another_shape_are_other_scenes() -> None:
    assert scene(classes=np.ones((30, 80), np.uint8)).content_hash() != scene().content_hash()


def test_content_decides_what_a_scene_is() -> None:
    assert scene().content_hash() == scene().content_hash()
    other: list[dict[str, Any]] = [
        {"past": [[10, 20], [12, 21]]},
        {"steps": 4},
        {"rate": 1.0},
        {"names": ("background", "road", "pavement")},
        {"metres_per_pixel": 1.0},
        {"classes": np.zeros(SIZE[::-1], np.uint8)},
    ]
    assert len({scene(**one).content_hash() for one in [{}, *other]}) == 7


def test_numbers_of_numpy_and_lists_of_names_will_do() -> None:
    made = scene(names=list(NAMES), steps=np.int64(3), rate=np.float32(2.5), metres_per_pixel=np.float32(0.5))
    assert Track.from_json(Track.of(made).json()) == Track.of(scene(metres_per_pixel=0.5))
    assert Image(made.picture()).size == SIZE


def test_a_track_without_a_map_lies_on_background() -> None:
    track = Track(((1.5, 2.0), (2.5, 2.25)), NAMES, 12, 1.0, 0.5, (30, 20))
    assert Track.from_json(track.json()) == track
    assert track.on(None).size == (30, 20)
    assert track.on(None).mask("background").all()
    with pytest.raises(ValueError, match="says how large its frame is"):
        Track(((1, 2),), NAMES, 12).on(None)
    assert Track.from_json(Track((), NAMES, 12).json()) == Track((), NAMES, 12)


def test_lists_are_taken_and_checked() -> None:
    futures: list[Any] = [[[[1, 2], [3, 4]]], [[[1, np.nan]]]]
    assert Forecast(futures[0]).futures.shape == (1, 2, 2)
    with pytest.raises(ValueError, match="finite"):
        Forecast(futures[1])
