"""The legend says what is drawn, and left is told from right without colour vision."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import instar
from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.relations import relations, rule
from instar.relations.lengths import UNITS
from instar.report.chart import names_below, whole_names
from instar.report.lettering import Pixels
from instar.report.picture import ACCUSED, Annotated, legend, panel_picture, write_png
from instar.report.rebuild import load_pair, run_legend
from instar.report.words import ONE_SIDED, measured, severity_words, threshold_text
from instar.shapes import Shape
from instar.skeleton import skeleton
from instar.suites import Suite
from tests.toys import rectangles, scene, steady, write_scenes

GREY = Image(np.full((80, 80, 3), 128, np.uint8))
BOX = [Shape("boxes", np.array([[10.0, 10, 40, 40]]))]
HEAT = Shape("heat", np.array([[0.0, 0, 9, 9]]), heat=np.ones((3, 3), np.float32))
SIDES = ["left: blue, round", "right: orange, square"]
COUPLE = np.random.default_rng(1).uniform(10, 70, (2, 17, 2)).astype(np.float32)
PATH = [Shape("lines", np.array([[1.0, 1, 9, 9]])), HEAT]


def person(*, exchanged: bool = False) -> Poses:
    bones = skeleton("coco-17")
    points = np.random.default_rng(1).uniform(10, 70, (1, 17, 2))
    return Poses.from_array(points[:, bones.swap] if exchanged else points, skeleton=bones)


def words_of(source: Annotated, follow_up: Annotated) -> list[str]:
    return [entry.words for entry in legend(source, follow_up)]


def test_a_legend_of_skeletons_says_which_side_is_which() -> None:
    answer = person().shapes()
    assert words_of(Annotated(GREY, (), answer), Annotated(GREY, (), answer, answer)) == [
        "answer", "expected of the follow-up", "left: blue, round", "right: orange, square",
    ]  # fmt: skip
    assert words_of(Annotated(GREY, (), answer), Annotated(GREY, (), [], answer))[0] == "answer, none to the follow-up"


def test_a_legend_of_boxes_and_of_paths_shows_boxes_and_paths() -> None:
    """Answers look different on both sides; what is expected is named only where it is drawn."""
    boxes = legend(Annotated(GREY, (), BOX), Annotated(GREY, (), []))
    assert [entry.words for entry in boxes] == ["answer to the source", "answer to the follow-up: nothing"]
    past = [Shape("points", np.array([[5.0, 5]]), "the past", colour=(0, 0, 200))]
    paths = legend(Annotated(GREY, past, PATH), Annotated(GREY, past, PATH, PATH))
    assert [entry.words for entry in paths][1:] == [
        "expected of the follow-up", "answer to the follow-up", "how probable a place is", "probable places expected",
        "the past",
    ]  # fmt: skip
    assert [entry.words for entry in legend(Annotated(GREY, past, PATH), None)] == [
        "answer to the source", "how probable a place is", "the past",
    ]  # fmt: skip
    assert [entry.words for entry in legend(Annotated(GREY, past, PATH[:1]), None)] == [
        "answer to the source", "the past",
    ]  # fmt: skip
    assert not np.array_equal(boxes[0].swatch.pixels, paths[0].swatch.pixels)


def test_answers_in_words_have_no_legend() -> None:
    assert legend(Annotated(GREY, (), []), Annotated(GREY, (), [])) == []


@pytest.mark.parametrize("grey", [False, True])
def test_an_exchange_does_not_look_like_a_match(grey: bool) -> None:
    """All landmarks lie where they should, only under the other side's name: also without colours it must be seen."""
    expected = person().shapes()
    match, exchange = (
        panel_picture(Annotated(GREY, (), person(exchanged=other).shapes(), expected), side="follow-up").pixels
        for other in (False, True)
    )
    if grey:
        match, exchange = match.mean(-1, keepdims=True), exchange.mean(-1, keepdims=True)
    differs = (np.abs(match.astype(float) - exchange.astype(float)) > 40).any(-1)
    drawn = (np.abs(match.astype(float) - 128) > 40).any(-1)
    assert differs.sum() > (0.02 if grey else 0.3) * drawn.sum()


@pytest.mark.parametrize("unit", sorted({one.unit for one in relations().values()} | {*UNITS.values()}))
def test_units_read_as_english(unit: str) -> None:
    """After a number, after "in", and for one: no bracket, sign or second number stands where a noun should."""
    assert unit[0].isalpha() and not set("()×−=") & set(unit)
    one, half = measured(1.0, unit), measured(0.5, unit)
    assert half.startswith("0.5 ") and threshold_text(0.5, unit) == half
    assert unit.startswith("shares of ") or one.removeprefix("1 ") != unit or " lost" in unit


def test_infinity_is_said_in_words_with_its_kind() -> None:
    assert severity_words(float("inf"), "body lengths", "exchanged", "left and right change places") == (
        "∞, exchanged: left and right change places"
    )
    no_match = f"∞ ({ONE_SIDED})"
    assert threshold_text(float("inf"), "body lengths") == no_match


def test_the_legend_of_a_run_fits_what_its_pages_draw(tmp_path: Path) -> None:
    """Pages that drew dots of their own said nothing of left and right."""
    images = write_scenes(tmp_path / "images", 1)
    poses = instar.run(steady, Suite("s", (rule("mirror(h)"),)), images, out=tmp_path / "poses", workers=0)
    boxes = instar.run(rectangles, Suite("s", (rule("gamma(2)"),)), images, out=tmp_path / "boxes", workers=0)
    assert [entry.words for entry in run_legend(poses)] == ["answer", "expected of the follow-up", *SIDES]
    assert [entry.words for entry in run_legend(poses, alone=True)] == ["answer", *SIDES]
    assert [entry.words for entry in run_legend(boxes, alone=True)] == ["answer to the source"]
    assert run_legend(boxes)[0].address.startswith("data:image/png;base64,")
    write_png(images / "000.png", GREY)
    assert run_legend(poses) == [], "nothing can be drawn on an image that changed"


def couple(pixels: Pixels) -> Poses:
    return Poses.from_array(COUPLE, skeleton="coco-17", scores=[0.9, 0.6])


def test_one_of_several_is_named_where_it_is(tmp_path: Path) -> None:
    """Nobody can tell who "person 2" is from a list of numbers."""
    images = write_scenes(tmp_path / "images", 1)
    run = instar.run(couple, Suite("s", (rule("mirror(h)"),)), images, out=tmp_path / "run", workers=0)
    verdict = {"case": "000.png", "rule": "mirror(h) => poses", "target": "1", "severity": 1.0}
    pair = load_pair(run, verdict)
    (on_source,), (on_follow_up,) = pair.source.names, pair.follow_up.names
    (left, _), (right, foot) = COUPLE[1].min(0), COUPLE[1].max(0)
    assert on_source.text == on_follow_up.text == "person 2"
    assert on_source.xy[0] == pytest.approx([left, foot])
    assert on_follow_up.xy[0] == pytest.approx([pair.source.image.size[0] - right, foot]), "where it is expected"
    assert load_pair(run, {**verdict, "target": "whole"}).source.names == ()


def ghostly(pixels: Pixels) -> Detections:
    """Finds every rectangle, and in a dark image a weak one besides, which others cover."""
    sure = rectangles(pixels)
    if pixels.mean() > scene(0).pixels.mean() - 1:
        return sure
    ghost = [*sure.boxes.min(0)[:2] - 4, *sure.boxes.max(0)[2:] + 4]
    scores = [0.53, *sure.scores]
    return Detections.from_xyxy([ghost, *sure.boxes], ["ghost", *sure.labels], scores)


def fainter(pixels: Pixels) -> Detections:
    sure = rectangles(pixels)
    dark = pixels.mean() < scene(0).pixels.mean() - 1
    return Detections.from_xyxy(sure.boxes, sure.labels, np.full(len(sure), 0.21 if dark else 0.86))


def test_a_faint_object_is_drawn_although_it_does_not_count(tmp_path: Path) -> None:
    images = write_scenes(tmp_path / "images", 1)
    run = instar.run(fainter, Suite("s", (rule("gamma(1.5)"),)), images, out=tmp_path / "run", workers=0)
    verdict = run.worst(1).row(0, named=True)
    assert (verdict["kind"], verdict["source_score"]) == ("faint", pytest.approx(0.86))
    pair = load_pair(run, verdict)
    assert any(shape.text.endswith(" 0.21") for shape in pair.follow_up.actual)


def test_what_a_verdict_is_about_is_drawn_over_the_others(tmp_path: Path) -> None:
    """Nobody sees which of many boxes was invented if its line and its label lie below theirs."""
    images = write_scenes(tmp_path / "images", 1)
    run = instar.run(ghostly, Suite("s", (rule("gamma(1.5)"),)), images, out=tmp_path / "run", workers=0)
    verdicts = run.worst(10).filter(severity=1)
    (verdict,) = verdicts.iter_rows(named=True)
    assert (verdict["target"], verdict["kind"]) == ("whole", "invented")
    pair = load_pair(run, verdict)
    box, label = pair.follow_up.accused
    assert not pair.source.accused, "it is not in the source"
    assert label.text == "ghost 0.53" and label.xy[0] == pytest.approx(box.xy[0, :2])
    assert [entry.words for entry in legend(pair.source, pair.follow_up)][-1] == "what the verdict is about"
    assert run_legend(run)[-1].words == "what the verdict is about", "pages explain it, too"
    drawn = panel_picture(pair.follow_up, side="follow-up").pixels
    enlarged = drawn.shape[1] / pair.follow_up.image.size[0]
    x, y = (enlarged * box.xy[0, 2:]).astype(int)
    assert (drawn[y, x - 40] == ACCUSED).all() and (drawn[y - 40, x] == ACCUSED).all(), "both lines at its corner"


def test_one_of_several_objects_is_marked_on_both_sides(tmp_path: Path) -> None:
    images = write_scenes(tmp_path / "images", 1)
    run = instar.run(rectangles, Suite("s", (rule("mirror(h)"),)), images, out=tmp_path / "run", workers=0)
    known = run.store.predictions().filter(follow_up="source").row(0, named=True)
    boxes, width = np.reshape(known["boxes"], (-1, 4)), known["width"]
    verdict = {"case": "000.png", "rule": "mirror(h) => detections", "target": "1", "severity": 0.6}
    pair = load_pair(run, {**verdict, "source_score": 1.0, "follow_up_score": 1.0})
    x0, y0, x1, y1 = boxes[1]
    assert pair.source.accused[0].xy[0] == pytest.approx(boxes[1]), "all score 1: it is told by its place"
    assert pair.follow_up.accused[0].xy[0] == pytest.approx([width - x1, y0, width - x0, y1])
    assert not load_pair(run, {**verdict, "severity": 0.0, "source_score": 1.0}).source.accused, "it is not accused"


def test_a_legend_below_a_figure_has_as_many_columns_as_there_is_room_for() -> None:
    names = ["resolution", "motion", "stretch", "zone background", "gamma", "identity"]
    expression = str(names_below(names, 5, (75, 75))["columns"]["expr"])
    steps = [(int(need), int(columns)) for need, columns in re.findall(r"75\) < (\d+) \? (\d+)", expression)]
    assert [columns for _, columns in steps] == [1, 2, 3, 4] and expression.endswith(" : 5")
    needs = [need for need, _ in steps]
    assert needs == sorted(needs) and needs[0] > 2 * 7 * len("resolution")
    assert names_below(["any rule"], 5, (75, 75))["columns"] == {"expr": "1"}


@pytest.mark.parametrize("beside", [(75, 75), (141, 300)])
def test_names_in_legends_are_whole_and_fit(beside: tuple[int, int]) -> None:
    """Long names of runs are not cut, and broken between their words where that is possible."""
    names = ["yolox", "detector (trained-on-night-and-day-and-rain_v12)", "x" * 130]
    expression = str(whole_names(names, beside)["labelExpr"])
    narrow, wide = (json.loads(found) for found in re.findall(r"\{.*?\}", expression))
    for room, left, lines in ((345, beside[0], narrow), (470, beside[1], wide)):
        assert list(lines) == names and lines["yolox"] == ["yolox"]
        for name in names:
            assert "".join(lines[name]).replace(" ", "") == name.replace(" ", "")
            assert max(map(len, lines[name])) * 6.6 + 24 <= room - left
        assert all(line.endswith(("-", "_", "r", ")")) for line in lines[names[1]]), lines[names[1]]
