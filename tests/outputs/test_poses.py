"""Poses: landmarks per subject, carried, stored, drawn and checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from instar.image import Image
from instar.outputs.poses import PoseBatch, Poses
from instar.skeleton import skeleton
from instar.store import rows_frame
from instar.warp import Warp

BONES = skeleton("coco-17")
NAN = float("nan")


def two_people() -> Poses:
    points = np.stack([np.arange(34.0).reshape(17, 2), np.full((17, 2), 5.0)])
    points[0, 3] = NAN
    return Poses.from_array(points, skeleton=BONES, visibility=np.full((2, 17), 0.5), scores=[0.9, 0.3])


def stored(poses: Poses) -> Poses:
    """Written as a row and read back, with its header as a manifest keeps it."""
    row = rows_frame([poses.row()], Poses.columns).row(0, named=True)
    return Poses.from_row(row, json.loads(json.dumps(poses.header())))


def test_a_mirror_exchanges_left_and_right_exactly() -> None:
    poses, size = two_people(), (100, 50)
    mirrored = poses.warped(Warp.mirror(size, "h"))
    left, right = BONES.index("left_wrist"), BONES.index("right_wrist")
    x, y = poses.points[0, right]
    assert mirrored.points[0, left].tolist() == [100 - x, y]
    assert np.isnan(mirrored.points[0, BONES.index("right_ear")]).all(), "the absent left ear is the right one now"
    back = mirrored.warped(Warp.mirror(size, "h"))
    np.testing.assert_array_equal(back.points, poses.points)
    np.testing.assert_array_equal(back.visibility, poses.visibility)


def test_a_turn_and_both_mirrors_keep_left_and_right() -> None:
    poses = two_people()
    x, y = poses.points[0, 0]
    assert poses.warped(Warp.rotate90((100, 50), 2)).points[0, 0].tolist() == [100 - x, 50 - y]
    assert poses.warped(Warp.mirror((100, 50), "both")).points[0, 0].tolist() == [100 - x, 50 - y]


def test_stored_and_read_back() -> None:
    poses = two_people()
    back = stored(poses)
    for name in ("points", "visibility", "scores"):
        np.testing.assert_array_equal(getattr(back, name), getattr(poses, name))
    assert back.skeleton == BONES
    assert len(stored(Poses.from_array([], skeleton=BONES))) == 0


def test_many_rows_at_once_pass_over_those_without_anybody() -> None:
    nobody = Poses.from_array([], skeleton=BONES)
    frame = rows_frame([one.row() for one in (two_people(), nobody, two_people())], Poses.columns)
    batch = PoseBatch.from_frame(frame, 17)
    assert batch.counts.tolist() == [2, 0, 2] and batch.offsets.tolist() == [0, 2, 2, 4]
    subjects = Poses.subjects(frame, two_people().header())
    assert subjects["row"].to_list() == [0, 0, 2, 2]
    assert subjects.row(1, named=True) == {"row": 0, "x0": 5, "y0": 5, "x1": 5, "y1": 5, "score": pytest.approx(0.3)}
    assert isinstance(subjects, pl.DataFrame)


def test_confident_keeps_the_subjects_that_score_enough() -> None:
    poses = two_people()
    assert poses.confident(0.3) is poses
    assert poses.confident(0.5).scores.tolist() == [pytest.approx(0.9)]
    assert len(poses.confident(1)) == 0


def test_a_subject_of_which_nothing_is_present_was_not_found() -> None:
    assert len(Poses.from_array(np.full((1, 17, 2), NAN), skeleton=BONES)) == 0


def test_what_is_drawn_of_a_part() -> None:
    """Lines before landmarks before the score, of each person; of a part only what belongs to it."""
    whole = two_people().shapes()
    one = whole[: len(whole) // 2]
    forms = [shape.form for shape in one]
    assert forms == sorted(forms, key=["lines", "points", "text"].index) and {*forms} == {"lines", "points", "text"}
    assert sum(len(shape.xy) for shape in one if shape.form == "points") == 16
    hand = Poses.from_array(np.ones((1, 553, 2)), skeleton="mediapipe-holistic").shapes("0/left_hand")
    assert {shape.side for shape in hand if len(shape.xy)} == {"left"}
    assert sum(len(shape.xy) for shape in hand if shape.form == "points") == 21


def test_left_and_right_are_drawn_apart() -> None:
    """The landmarks of an exchanged answer lie where they should: only their sides tell that they are exchanged."""
    bones = skeleton("coco-17")
    points = np.arange(34.0).reshape(1, 17, 2)
    drawn = {(shape.form, shape.side): shape.xy for shape in Poses.from_array(points, skeleton=bones).shapes()}
    assert drawn["points", "middle"].tolist() == points[0, [bones.index("nose")]].tolist()
    assert points[0, bones.index("left_wrist")].tolist() in drawn["points", "left"].tolist()
    arm = [*points[0, bones.index("right_elbow")], *points[0, bones.index("right_wrist")]]
    shoulders = [*points[0, bones.index("left_shoulder")], *points[0, bones.index("right_shoulder")]]
    assert sorted(arm) in [sorted(ends) for ends in drawn["lines", "right"].tolist()]
    assert sorted(shoulders) in [sorted(ends) for ends in drawn["lines", "middle"].tolist()]
    assert {shape.side for shape in Poses.from_array(np.ones((1, 21, 2)), skeleton="hand-21").shapes()} == {None}


@pytest.mark.parametrize(
    ("points", "more", "why"),
    [
        (np.zeros((1, 16, 2)), {}, r"coco-17 are \(subjects, 17, 2 or 3\), got shape \(1, 16, 2\)"),
        (np.zeros((1, 17, 4)), {}, "2 or 3"),
        (np.full((1, 17, 2), np.inf), {}, "infinite"),
        (np.zeros((1, 17, 2)), {"scores": [1, 1]}, r"scores \(1,\), got"),
        (np.zeros((1, 17, 2)), {"visibility": [[1]]}, r"visibility must be \(1, 17\)"),
        (np.zeros((1, 17, 2)), {"scores": [NAN]}, "not a number"),
    ],
)
def test_bad_values_are_refused(points: np.ndarray, more: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Poses.from_array(points, skeleton=BONES, **more)  # type: ignore[arg-type]


def test_only_poses_are_accepted() -> None:
    image = Image.blank((4, 4))
    poses = two_people()
    assert Poses.accept(poses, image) is poses
    with pytest.raises(TypeError, match=r"expected Poses \(see Poses.from_array\), got ndarray"):
        Poses.accept(np.zeros((1, 17, 2)), image)


def test_scores_are_written_beside_subjects_unless_the_system_says_none() -> None:
    points = [[(10, 20), *[(30, 40)] * 16]] * 2
    texts = [shape.text for shape in Poses.from_array(points, skeleton="coco-17", scores=[1, 0.456]).shapes()]
    assert [text for text in texts if text] == ["1.00", "0.46"]
    assert not any(shape.form == "text" for shape in Poses.from_array(points, skeleton="coco-17").shapes())


def test_lists_and_the_name_of_a_skeleton_are_taken() -> None:
    lists: dict[str, Any] = {"points": [[[1, 2]] * 17], "visibility": [[1] * 17], "scores": [0.5]}
    made = Poses(**lists, skeleton="coco-17")  # type: ignore[arg-type]
    assert made.points.shape == (1, 17, 2) and made.skeleton.name == "coco-17"


@pytest.mark.parametrize(
    ("points", "scores", "words"),
    [
        ([[[1, 2]] * 18], [1], "17, 2"),
        ([[[1, 2]] * 17], [1, 1], "scores \\(1,\\)"),
        ([[[1, np.inf]] * 17], [1], "infinite"),
        ([[[1, 2]] * 17], [np.nan], "not a number"),
    ],
)
def test_a_pose_that_is_made_field_by_field_is_checked(points: Any, scores: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Poses(
            skeleton=skeleton("coco-17"),
            points=points,
            visibility=np.ones(np.shape(points)[:2], np.float32),
            scores=scores,
        )
