"""A background that holds the subject is wrong: rules that change it say nothing of such a case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar import Detections, Poses, Zones
from instar.case import Case
from instar.image import Image
from instar.tasks.met_pose.landmarks import landmark_table
from tests.engine.zones import painted
from tests.toys import _masks, scene

PLACES = np.stack([np.arange(17) * 5.0 + 10.5, np.full(17, 30.5)], -1)
"""A landmark in every fifth column, from the tenth on."""
REASON = "the zone background holds more than 25 % of what the system found in the source: one of the two is wrong"
RULES = "identity + gamma(0.5) + colour_fill((0, 0, 255), background) + colour_wheel(90, background) | mirror(h)"


def seventeen(pixels: np.ndarray) -> Poses:
    """Finds somebody in bright images, and nobody where the background was painted blue."""
    answers = [] if pixels[0, 0, 2] == 255 and pixels[0, 0, 0] == 0 else [PLACES]
    return Poses.from_array(answers, skeleton="coco-17")


def split(pixels: np.ndarray) -> Zones:
    """The background begins at the left, and is as wide as the first pixel's red says."""
    labels = np.ones(pixels.shape[:2], np.uint8)
    labels[:, : int(pixels[0, 0, 0])] = 0
    labels[:3] = 2
    return Zones(labels, {"background": (0,), "skin": (1,), "person": (1, 2)})


def image(columns: int) -> Case:
    pixels = np.full((60, 120, 3), 90, np.uint8)
    pixels[..., 0] = columns
    return Case(str(columns), input=Image(pixels))


def ran(out: Path, rules: str | instar.Suite, *columns: int) -> instar.Run:
    data = instar.Dataset("columns", "", lambda: iter([image(c) for c in columns]))
    return instar.run(seventeen, rules, data, out=out, workers=0, zones="tests.engine.test_zone_share:split")


def statuses(run: instar.Run, judging: str = "default") -> dict[tuple[str, str], str]:
    rows = run.verdicts(judging).with_columns(name=pl.col("rule").str.split(" => ").list.first())
    return {(case, name): status for case, name, status in rows.select("case", "name", "status").iter_rows()}


FILL, WHEEL = "filtered(colour_fill((0, 0, 255)), background)", "filtered(colour_wheel(90), background) | mirror(h)"


def test_more_than_a_quarter_of_the_landmarks_in_the_background_is_a_wrong_background(tmp_path: Path) -> None:
    # 29 columns of background hold four of seventeen landmarks (24 %), 31 hold five (29 %)
    run = ran(tmp_path / "run", f"{RULES} + colour_fill((0, 0, 255), skin)", 29, 31)
    answers = statuses(run)
    assert {name for (case, name), status in answers.items() if case == "31" and status != "ok"} == {FILL, WHEEL}
    assert {status for (case, _), status in answers.items() if case == "29"} == {"ok"}
    assert run.verdicts().filter(case="31", status="not applicable")["reason"].unique().to_list() == [REASON]
    assert run.verdicts().filter(case="31", status="not applicable")["severity"].null_count() == 2
    row = run.rates().filter(rule=f"{FILL} => poses").row(0, named=True)
    assert (row["judged"], row["not_applicable"]) == (1, 1)


def test_another_share_is_another_judging_of_the_same_predictions(tmp_path: Path) -> None:
    run = ran(tmp_path / "run", RULES, 29, 31)
    before = run.store.state("predictions")
    strict, all_of_them = run.judge(zone_share=0.2), run.judge(zone_share=1.0)
    assert statuses(run, strict)["29", FILL] == statuses(run, strict)["31", FILL] == "not applicable"
    assert set(statuses(run, all_of_them).values()) == {"ok"}
    assert run.store.state("predictions") == before
    assert run.predictions()["status"].unique().to_list() == ["ok"]


def test_landmarks_that_the_judging_leaves_out_do_not_count(tmp_path: Path) -> None:
    run = ran(tmp_path / "run", RULES, 31)
    # the first five are the face; of the others none is in the background
    legs = run.judge(landmarks="left_knee, right_knee, left_ankle, right_ankle")
    assert set(statuses(run, legs).values()) == {"ok"}
    face = run.judge(landmarks="nose, left_eye")
    assert statuses(run, face)["31", FILL] == "not applicable"


def test_strays_of_landmarks_leave_wrong_zones_out_too(tmp_path: Path) -> None:
    run = ran(tmp_path / "run", "colour_fill((0, 0, 255), background)", 29, 31)
    assert landmark_table(run)["judged"].max() == 1


def test_the_paper_judged_them_all() -> None:
    assert instar.suite("met-pose@paper").options["zone_share"] == 1


def blind(pixels: np.ndarray) -> Zones:
    """Takes red for background."""
    labels = painted(pixels).labels.copy()
    labels[_masks(pixels)[0][1] > 0] = 0
    return Zones(labels, {"background": (0,), "person": (2, 3)})


@pytest.mark.parametrize(("zones", "status"), [("zones:painted", "ok"), ("test_zone_share:blind", "not applicable")])
def test_an_object_in_the_background(tmp_path: Path, zones: str, status: str) -> None:
    data = instar.Dataset("scenes", "", lambda: iter([Case("0", input=scene(0))]))
    rules = "colour_fill((90, 90, 90), background)"
    run = instar.run("tests.toys:rectangles", rules, data, out=tmp_path, workers=0, zones=f"tests.engine.{zones}")
    assert run.verdicts()["status"].unique().to_list() == [status]


def test_shares_are_exact() -> None:
    cells = np.zeros((60, 120), bool)
    cells[:, :31] = True
    poses = Poses.from_array([PLACES], skeleton="coco-17")
    assert poses.inside(cells, {}) == pytest.approx(5 / 17)
    hidden = Poses.from_array([PLACES], skeleton="coco-17", visibility=[[0.2] * 3 + [0.9] * 14])
    assert hidden.inside(cells, {"visibility": 0.5}) == pytest.approx(2 / 14)
    beyond = Poses.from_array([PLACES - (20, 0)], skeleton="coco-17")
    assert beyond.inside(cells, {}) == pytest.approx(7 / 15), "two are left of the frame"
    both = Poses.from_array([PLACES, PLACES - (15, 0)], skeleton="coco-17", scores=[0.9, 0.3])
    assert both.inside(cells, {"confidence": 0}) == pytest.approx(7 / 16)
    assert both.inside(cells, {"confidence": 0.5}) == pytest.approx(5 / 17)
    assert Poses.from_array([], skeleton="coco-17").inside(cells, {}) == 0
    # the middle of the first reaches from column 20 to 40, of which 11 are in it; the other is out of it
    boxes = Detections.from_xyxy([[10, 0, 50, 40], [80, 0, 110, 40]], ["a", "b"], [0.9, 0.2])
    assert boxes.inside(cells, {"confidence": 0.5}) == pytest.approx(11 / 20)
    assert Detections.from_xyxy([], []).inside(cells, {}) == 0
