"""Rules whose condition never occurs are reported: there, models that miss what the border cuts pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import instar
from instar import Poses
from instar.report import Finding
from instar.warp import Warp
from tests.perfect import hands
from tests.perfect.scenes import ZONES, Scene, corner_person, one_person, system_of
from tests.perfect.scenes import View as PoseView
from tests.perfect.shapes import CENTRED, CUT, SCENES, Look, Shape, detector, right, shapes_dataset
from tests.quality.words import assert_shown_and_reported, said

ABSENT = "rule.condition_absent"


def of_code(run: instar.Run, code: str) -> dict[str, Finding]:
    """The findings with a code, by their rule without its relation."""
    return {str(each.figures["rule"]).partition(" =>")[0]: each for each in said(run) if each.code == code}


def counted(run: instar.Run) -> dict[str, tuple[int, int]]:
    """The cases that met the condition and those judged, of the rules with too few."""
    absent = of_code(run, ABSENT)
    assert not any(each.against for each in absent.values())
    assert {each.figures["condition"] for each in absent.values()} <= {"cut"}
    return {rule: (each.figures["met"], each.figures["judged"]) for rule, each in absent.items()}


def violated(run: instar.Run) -> set[str]:
    return set(of_code(run, "rule.violated"))


BOX_CROP = "crop(0.8, at=top_left)"


def missing_what_is_cut(seen: Look) -> instar.Detections:
    inside = (seen.boxes > 0) & (seen.boxes < np.tile(seen.size, 2))
    return seen.answer(keep=np.asarray(inside.all(1)))


def detected(
    answer: Callable[[Look], instar.Detections], scenes: tuple[tuple[Shape, ...], ...], folder: Path
) -> instar.Run:
    return instar.run(detector(answer), "detections", shapes_dataset(scenes), out=folder / "run", workers=0)


def test_a_detector_of_whole_objects_alone_passes_a_crop_that_cuts_none(tmp_path: Path) -> None:
    run = detected(missing_what_is_cut, CENTRED, tmp_path)
    assert violated(run) == set()
    assert counted(run) == {BOX_CROP: (0, 4)}
    assert_shown_and_reported(run)


def test_it_fails_a_crop_that_cuts_some(tmp_path: Path) -> None:
    run = detected(missing_what_is_cut, CUT, tmp_path)
    assert BOX_CROP in violated(run)
    assert counted(run) == {}


@pytest.mark.parametrize(("cut", "absent"), [(2, {BOX_CROP: (2, 4)}), (3, {})])
def test_two_cases_are_too_few(cut: int, absent: dict[str, tuple[int, int]], tmp_path: Path) -> None:
    assert counted(detected(right, (*CUT[:cut], *CENTRED[cut:]), tmp_path)) == absent


def test_three_cases_are_too_few_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("instar.analysis.conditions.LEAST_SHARE", 0.8)
    assert counted(detected(right, (*CUT[:3], CENTRED[3]), tmp_path)) == {BOX_CROP: (3, 4)}


def test_an_object_that_leaves_the_frame_is_not_judged_and_does_not_count(tmp_path: Path) -> None:
    assert counted(detected(right, SCENES, tmp_path)) == {BOX_CROP: (0, len(SCENES))}


def test_a_rule_that_the_user_names_has_no_condition(tmp_path: Path) -> None:
    run = instar.run(detector(right), BOX_CROP, shapes_dataset(CENTRED), out=tmp_path / "run", workers=0)
    assert counted(run) == {}


def missing_who_is_cut(view: PoseView) -> Poses:
    out = ((view.points < 0) | (view.points > np.array(view.size))).any((1, 2))
    return view.answer(view.points[~out])


@pytest.mark.parametrize(("scene", "cut"), [(one_person, False), (corner_person, True)])
def test_a_pose_estimator_of_whole_people_alone(scene: Callable[[], Scene], cut: bool, tmp_path: Path) -> None:
    made = scene()
    system = system_of(made, missing_who_is_cut)
    run = instar.run(system, "poses", made.dataset, out=tmp_path / "run", workers=0, zones=ZONES)
    assert ("crop(0.9)" in violated(run)) is cut
    assert counted(run).get("crop(0.9)") == (None if cut else (0, 1))


HAND_CROP = "crop(0.85, at=bottom_right)"


def missing_cut_hands(view: hands.View) -> Poses:
    out = ((view.points < 0) | (view.points > np.array(view.size))).any((1, 2))
    return view.answer(view.points[~out])


def test_a_hand_model_of_whole_hands_alone_passes_a_crop_that_cuts_none(tmp_path: Path) -> None:
    run = hands.ran(missing_cut_hands, tmp_path / "run", annotated=False)
    assert HAND_CROP not in violated(run)
    assert counted(run) == {HAND_CROP: (0, hands.COUNT)}


def test_it_fails_a_crop_that_cuts_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = []
    for image, points in hands.HANDS:
        x = 4 - round(points[..., 0].min())
        warp = Warp(np.array([[1.0, 0, x], [0, 1, 0], [0, 0, 1]]), image.size, image.size)
        moved.append((image.warped(warp), points + np.array([x, 0])))
    monkeypatch.setattr(hands, "HANDS", moved)
    run = hands.ran(missing_cut_hands, tmp_path / "run", f"hands + {HAND_CROP}", annotated=False)
    assert HAND_CROP in violated(run)
    assert counted(run) == {}
