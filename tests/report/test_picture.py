from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from instar.image import Image, read_image
from instar.outputs.detections import Detections
from instar.outputs.labels import Labels
from instar.outputs.output import OutputDefaults
from instar.outputs.poses import Poses
from instar.report import Annotated, contact_sheet, draw_shapes, pair_picture, write_png
from instar.report.drawing import ORANGE
from instar.report.lettering import plain_text, wrapped, written
from instar.report.picture import panel_picture
from instar.report.rebuild import is_silent
from instar.shapes import Shape


class Undrawn(OutputDefaults):
    """What a plug-in may bring: a kind with nothing to draw."""


def grey(width: int, height: int, value: int = 128) -> Image:
    return Image(np.full((height, width, 3), value, np.uint8))


def touched(drawn: Image, plain: Image) -> np.ndarray:
    return np.asarray(np.abs(drawn.pixels.astype(int) - plain.pixels).sum(2) > 0)


def every_form(nan: float = 5.0) -> list[Shape]:
    return [
        Shape("points", np.array([[nan, 5.0], [9.0, 4.0]])),
        Shape("lines", np.array([[1.0, 1, nan, 8], [2, 2, 9, 3]])),
        Shape("boxes", np.array([[1.0, 1, 8, nan], [2, 2, 5, 5]])),
        Shape("polygon", np.array([[1.0, 1], [8, nan], [4, 9], [7, 2]])),
        Shape("text", np.array([[nan, 3.0]]), "dog 0.91"),
        Shape("heat", np.array([[0.0, 0, 10, nan]]), "skin", heat=np.array([[0, 1], [nan, 0.5]], np.float32)),
    ]


@pytest.mark.parametrize("scale", [1, 2, 3.5])
@pytest.mark.parametrize("place", [(20.0, 15.0), (20.5, 15.5), (7.25, 31.75)])
def test_a_point_is_drawn_where_it_is(place: tuple[float, float], scale: float) -> None:
    plain = grey(60, 50)
    drawn = draw_shapes(plain, [Shape("points", np.array([place]))], scale=scale)
    base = draw_shapes(plain, [], scale=scale)
    weight = np.abs(drawn.pixels.astype(float) - base.pixels).sum(2)
    rows, columns = np.indices(weight.shape) + 0.5
    found = np.array([(columns * weight).sum(), (rows * weight).sum()]) / weight.sum()
    np.testing.assert_allclose(found / scale, place, atol=0.15)


def test_a_box_is_drawn_where_it_is() -> None:
    plain = grey(60, 50)
    drawn = draw_shapes(plain, [Shape("boxes", np.array([[10.0, 20, 40, 30]]))])
    rows, columns = np.nonzero(touched(drawn, plain))
    assert (columns.min() + columns.max() + 1) / 2 == pytest.approx(25, abs=0.5)
    assert (rows.min() + rows.max() + 1) / 2 == pytest.approx(25, abs=0.5)


def test_the_image_itself_stays_as_it_was() -> None:
    image = grey(30, 30)
    draw_shapes(image, every_form())
    assert (image.pixels == 128).all()


@pytest.mark.parametrize("style", ["filled", "hollow"])
@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (12, 10), (640, 480)])
@pytest.mark.parametrize("nan", [5.0, float("nan"), 1e9, -1e30, float("inf")])
def test_every_form_on_every_size(size: tuple[int, int], style: str, nan: float) -> None:
    image = grey(*size)
    drawn = draw_shapes(image, every_form(nan), style=style)  # type: ignore[arg-type]
    assert drawn.size == size


@pytest.mark.parametrize("form", ["points", "lines", "boxes", "polygon", "text", "heat"])
def test_empty_shapes_draw_nothing(form: str) -> None:
    width = 4 if form in ("lines", "boxes", "heat") else 2
    image = grey(20, 20)
    shape = Shape(form, np.zeros((0, width)), "x")  # type: ignore[arg-type]
    assert not touched(draw_shapes(image, [shape]), image).any()


def test_a_line_between_places_far_outside_crosses_the_frame_where_it_should() -> None:
    plain = grey(100, 100)
    drawn = draw_shapes(plain, [Shape("lines", np.array([[-99950.0, -99950, 100050, 100050]]))])
    rows, columns = np.nonzero(touched(drawn, plain))
    assert len(rows) > 90
    assert np.abs(rows - columns).max() <= 4


def test_points_outside_the_frame_leave_it_alone() -> None:
    plain = grey(50, 50)
    drawn = draw_shapes(plain, [Shape("points", np.array([[500.0, 20], [-80, -1e7]]))])
    assert not touched(drawn, plain).any()


def test_a_colour_given_wins_over_the_shapes_own() -> None:
    shape = Shape("points", np.array([[25.0, 25]]), colour=(1, 2, 3))
    image = grey(50, 50)
    assert tuple(draw_shapes(image, [shape]).pixels[25, 25]) == (1, 2, 3)
    assert tuple(draw_shapes(image, [shape], colour=(9, 8, 7)).pixels[25, 25]) == (9, 8, 7)
    bare = Shape("points", np.array([[25.0, 25]]))
    assert tuple(draw_shapes(image, [bare]).pixels[25, 25]) == ORANGE


@pytest.mark.parametrize("value", [0, 128, 255])
def test_marks_are_seen_on_any_background(value: int) -> None:
    plain = grey(200, 200, value)
    for style in ("filled", "hollow"):
        for form, xy in (
            ("points", [[100.0, 100]]),
            ("lines", [[20.0, 20, 180, 180]]),
            ("boxes", [[50.0, 50, 90, 90]]),
        ):
            drawn = draw_shapes(plain, [Shape(form, np.array(xy))], style=style)  # type: ignore[arg-type]
            assert np.abs(drawn.pixels.astype(int) - value).max() > 90


def test_expected_is_seen_where_actual_covers_it() -> None:
    shapes = [Shape("points", np.array([[100.0, 100]])), Shape("lines", np.array([[20.0, 100, 480, 100]]))]
    both = draw_shapes(draw_shapes(grey(500, 200), shapes, style="hollow", colour=(255, 255, 255)), shapes)
    bright = np.asarray((both.pixels > 150).all(2))
    assert bright[90:110, 200:400].any(0).all()
    assert (both.pixels[85:97, 95:105] > 160).all(2).any()


def test_points_in_a_crowd_are_smaller() -> None:
    alone = np.array([[300.0, 60], [500, 60], [300, 400], [500, 400]])
    crowd = np.random.default_rng(0).uniform(50, 90, (400, 2))
    image = grey(600, 450)
    changed = touched(draw_shapes(image, [Shape("points", np.concatenate([alone, crowd]))]), image)
    assert changed[45:75, 285:315].sum() > 50
    assert changed[40:100, 40:100].mean() < 0.9


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf")])
def test_scale_must_make_sense(scale: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        draw_shapes(grey(3, 3), [], scale=scale)


def test_style_must_be_known() -> None:
    with pytest.raises(ValueError, match="filled or hollow"):
        draw_shapes(grey(3, 3), [], style="dotted")  # type: ignore[arg-type]


# --- text


def test_signs_that_the_font_lacks() -> None:
    assert plain_text("severity ∞, 3 × 4 => naïve Łódź … 日") == "severity infinite, 3 x 4 => naive Lodz ... ?"
    assert plain_text("e\u0301") == "e"


@pytest.mark.parametrize("width", [60, 120, 220])
def test_wrapping_loses_nothing_and_fits(width: int) -> None:
    text = "filtered(colour_channels((0.45, 1, 1.2)), skin) | a_very_long_word_without_any_breaks" + "x" * 60
    lines = wrapped(text, 10.0, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(written(line, 10.0).shape[1] <= width for line in lines)


def test_empty_text_has_no_lines() -> None:
    assert wrapped("  ", 10.0, 100) == []


# --- sheets and pairs


def test_a_sheet_has_room_for_all_pictures_and_captions() -> None:
    tiles = [(grey(50 + 10 * n, 80), f"gamma({n})") for n in range(5)]
    sheet = contact_sheet(tiles, columns=2, tile=100)
    assert 200 < sheet.size[0] < 240
    assert sheet.size[1] > 3 * 100
    longer = contact_sheet([(image, name * 12) for image, name in tiles], columns=2, tile=100)
    assert longer.size[0] == sheet.size[0]
    assert longer.size[1] > sheet.size[1]


def test_a_sheet_keeps_proportions() -> None:
    sheet = contact_sheet([(Image(np.full((40, 80, 3), (255, 0, 0), np.uint8)), "")], tile=120)
    rows, columns = np.nonzero((sheet.pixels == (255, 0, 0)).all(2))
    assert (int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1) == (120, 60)


def test_a_sheet_needs_pictures() -> None:
    with pytest.raises(ValueError, match="at least one"):
        contact_sheet([])
    with pytest.raises(ValueError, match="columns=0"):
        contact_sheet([(grey(3, 3), "x")], columns=0)


@pytest.mark.parametrize("source", [(1, 1), (80, 160), (640, 480), (4000, 3000), (3, 2000)])
@pytest.mark.parametrize("follow_up", [(1, 1), (640, 480)])
def test_pairs_of_any_sizes(source: tuple[int, int], follow_up: tuple[int, int]) -> None:
    pose = Poses.from_array(np.random.default_rng(0).uniform(0, 100, (1, 17, 2)), skeleton="coco-17")
    found = Detections.from_xyxy([[1, 2, 30, 40]], ["dog"])
    pair = pair_picture(
        Annotated(grey(*source), [], pose.shapes()),
        Annotated(grey(*follow_up), [], [], found.shapes()),
        title="mirror(h) => poses, severity ∞",
        lines=["Übung/日本.png", ""],
    )
    assert 500 < pair.size[0] < 1700
    assert 60 < pair.size[1] < 1200


def test_a_pair_shows_both_at_the_same_scale() -> None:
    red = Image(np.full((200, 300, 3), (255, 0, 0), np.uint8))
    blue = Image(np.full((300, 200, 3), (0, 0, 255), np.uint8))
    pair = pair_picture(Annotated(red, [], []), Annotated(blue, [], []), title="rotate90(1)")
    sizes = []
    for colour in ((255, 0, 0), (0, 0, 255)):
        rows, columns = np.nonzero((pair.pixels == colour).all(2))
        sizes.append((np.ptp(columns) + 1, np.ptp(rows) + 1))
    assert sizes[0] == sizes[1][::-1]


def test_a_small_picture_is_enlarged_before_it_is_drawn_on() -> None:
    pair = pair_picture(Annotated(grey(60, 150), [], []), Annotated(grey(60, 150), [], []), title="t")
    assert pair.size[1] > 600


# --- files


def test_png_is_written_whole_under_any_name(tmp_path: os.PathLike[str]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    path = os.path.join(tmp_path, "Übung ∞ 日本.png")  # noqa: PTH118
    write_png(path, Image(pixels))
    np.testing.assert_array_equal(read_image(path).pixels, pixels)
    write_png(path, grey(4, 4))
    assert read_image(path).size == (4, 4)
    assert len(os.listdir(tmp_path)) == 1  # noqa: PTH208


def test_a_png_that_cannot_be_written_leaves_nothing(tmp_path: os.PathLike[str]) -> None:
    target = os.path.join(tmp_path, "taken.png")  # noqa: PTH118
    os.mkdir(target)  # noqa: PTH102
    with pytest.raises(OSError, match=r"taken\.png"):
        write_png(target, grey(2, 2))
    assert os.listdir(tmp_path) == ["taken.png"]  # noqa: PTH208


def test_a_picture_whose_answer_found_nothing_says_so() -> None:
    image = grey(200, 150)
    silent, drawn = (
        panel_picture(Annotated(image, (), (), silent=silent), side="follow-up", wide=200, high=150)
        for silent in (True, False)
    )
    places = np.argwhere(touched(silent, drawn))
    assert len(places) and places.max(0)[0] < 40, "the words stand in the corner, and leave the rest in sight"


NO_BOX, BOX = (np.empty((0, 4), np.float32), np.empty(0, np.float32)), np.array([[1, 1, 5, 5]], np.float32)
DOG = Detections(BOX, ("dog",), np.array([0.9], np.float32))


@pytest.mark.parametrize(
    ("answer", "other", "silent"),
    [
        (Detections(NO_BOX[0], (), NO_BOX[1]), None, True),
        (DOG, None, False),
        (Labels((), NO_BOX[1]), None, False),  # it says in words that it has no class
        (Undrawn(), Undrawn(), False),  # of a plug-in's kind that is never drawn nothing is known
        (Undrawn(), DOG, True),
    ],
)
def test_only_an_answer_that_could_be_drawn_is_silent(answer: Any, other: Any, silent: bool) -> None:
    assert is_silent(answer, other) is silent
