"""The equivariance of poses, worked out by hand."""

from __future__ import annotations

import math
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import instar
from instar import Poses
from instar.engine import judge
from instar.relations import relations
from instar.relations.relation import NOTHING_FOUND
from instar.report import show_run, write_report
from instar.skeleton import Skeleton, skeleton
from instar.suites import suite
from tests.relations.evidence import judged
from tests.toys import steady, write_scenes

SIZE = (400, 300)
COCO = skeleton("coco-17")
# fmt: off
UPRIGHT = np.array([
    (100, 40), (104, 36), (96, 36), (110, 40), (90, 40), (120, 70), (80, 70), (130, 100), (70, 100), (135, 130),
    (65, 130), (115, 130), (85, 130), (116, 180), (84, 180), (117, 230), (83, 230),
], float)
# fmt: on


def moved(points: np.ndarray, x: float, y: float) -> np.ndarray:
    return np.asarray(points + np.array([x, y]))


TRUNK = math.hypot(5, 60)
SIDE = moved(UPRIGHT * (0.05, 1), 95, 0)
"""The same person from the side: shoulders two pixels apart."""
INF = math.inf


def verdicts(source: Poses, *follow_ups: Poses, **more: Any) -> dict[str, dict[str, Any]]:
    """The verdicts by target of a source and the draws of one follow-up."""
    return judged(source, follow_ups, SIZE, _stored, **more)


def _stored(one: Poses) -> dict[str, Any]:
    return {name: values.tolist() for name, values in one.row().items()}


def people(*points: np.ndarray, bones: Skeleton = COCO, **more: Any) -> Poses:
    return Poses.from_array(np.array(points, float), skeleton=bones, **more)


def without(points: np.ndarray, *names: str) -> np.ndarray:
    points = points.copy()
    points[[i for _, chosen in COCO.select(",".join(names)) for i in chosen]] = np.nan
    return points


def shifted(x: float) -> np.ndarray:
    return np.array([[1.0, 0, x], [0, 1, 0], [0, 0, 1]])


# --- what one body length is -----------------------------------------------------------------------


def test_a_person_from_the_side_is_as_long_as_from_the_front() -> None:
    front, side = (verdicts(people(one), people(moved(one, 2, 0)))["0"] for one in (UPRIGHT, SIDE))
    assert front["length"] == pytest.approx(TRUNK) and side["length"] == pytest.approx(60, abs=0.1)
    assert front["severity"] == pytest.approx(2 / TRUNK) and side["severity"] == pytest.approx(2 / 60, abs=1e-3)
    published = verdicts(people(SIDE), people(moved(SIDE, 2, 0)), normaliser="part")["0"]
    assert published["severity"] == pytest.approx(1), "two pixels were a whole shoulder width"


@pytest.mark.parametrize(
    ("absent", "length"),
    [
        (("left_shoulder",), TRUNK),
        (("left_shoulder", "right_hip"), None),
        (("torso",), math.hypot(1, 50)),  # a limb: knee to ankle
    ],
)
def test_a_missing_shoulder_leaves_nobody_unjudged(absent: tuple[str, ...], length: float | None) -> None:
    source = without(UPRIGHT, *absent)
    judged = verdicts(people(source), people(moved(source, 30, 0)))["0"]
    assert judged["severity"] == pytest.approx(30 / judged["length"]) and judged["severity"] > 0.2
    box = np.linalg.norm(np.nanmax(source, 0) - np.nanmin(source, 0))
    assert judged["length"] == pytest.approx(max(length or 0, box / 4), rel=1e-5)
    assert verdicts(people(source), people(moved(source, 30, 0)), normaliser="part")["0"]["severity"] is None


def test_two_landmarks_are_enough() -> None:
    pair = np.full((17, 2), np.nan)
    pair[[0, 9]] = [(100, 40), (135, 130)]
    judged = verdicts(people(pair), people(moved(pair, 40, 0)))["0"]
    assert judged["length"] == pytest.approx(np.hypot(35, 90) / 4) and judged["severity"] > 1


def test_answers_in_one_place_are_judged() -> None:
    collapsed = np.tile(UPRIGHT.mean(0), (17, 1))
    assert verdicts(people(UPRIGHT), people(collapsed))["0"]["severity"] > 0.5
    back = verdicts(people(collapsed), people(UPRIGHT))["0"]
    assert back["length"] == pytest.approx(5) and back["severity"] > 5, "a hundredth of the diagonal"
    assert verdicts(people(collapsed), people(UPRIGHT), normaliser="part")["0"]["severity"] is None


def test_answers_that_are_always_in_one_place_are_not_called_clean() -> None:
    collapsed = np.tile(UPRIGHT.mean(0), (17, 1))
    judged = verdicts(people(collapsed), people(moved(collapsed, 50, 0)), matrix=shifted(50))["0"]
    assert (judged["severity"], judged["reason"]) == (None, "all landmarks lie in one place, in both images")
    one = np.full((17, 2), np.nan)
    one[0] = 100
    assert verdicts(people(one), people(one))["0"]["severity"] == 0, "a single landmark is where it is"


@pytest.mark.parametrize("name", ["hand-21", "face-mesh-478", "ap-10k", "mediapipe-holistic", "lsp-14", "flic-11"])
def test_every_skeleton_has_a_length_also_without_half_of_its_landmarks(name: str) -> None:
    bones = skeleton(name)
    rng = np.random.default_rng(0)
    points = rng.uniform(50, 250, (len(bones.landmarks), 2))
    for source in (points, np.where(rng.random((len(points), 1)) < 0.5, points, np.nan)):
        judged = verdicts(
            people(source, bones=bones), people(source + 50, bones=bones), landmarks="all", outside="keep"
        )
        assert len(judged) == len(bones.parts)
        for one in judged.values():
            assert one["length"] > 5 and 0 < one["severity"] < 10


def test_a_skeleton_of_one_s_own_needs_no_lengths(tmp_path: Path) -> None:
    path = tmp_path / "stick.toml"
    path.write_text('landmarks = ["top", "middle", "end"]')
    bones = skeleton(str(path))
    stick = np.array([(100, 40), (100, 80), (100, 140)], float)
    judged = verdicts(people(stick, bones=bones), people(moved(stick, 5, 0), bones=bones))["0"]
    assert judged["length"] == pytest.approx(25) and judged["severity"] == pytest.approx(0.2)


# --- scores ----------------------------------------------------------------------------------------

GHOST = moved(UPRIGHT, 200, 0)


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (0.52, 0.47, {"0": None}),
        (0.69, 0.495, {"0": None}),
        (0.65, 0.45, {"0": None}),
        (0.95, 0.72, {"0": None}),
        (0.90, 0.45, {"0": "faint"}),
        (0.86, 0.21, {"0": "faint"}),
        (0.55, 0.01, {"0": "faint"}),
        (0.45, 0.55, {"0": None}),
        (0.31, 0.95, {"0": "faint"}),
        (0.01, 0.95, {"0": "faint"}),
        (0.45, 0.45, {"whole": None}),
        (0.55, 0.55, {"0": None}),
    ],
)
def test_a_score_that_crosses_the_confidence_is_faint_if_it_changed_by_more_than_the_margin(
    before: float, after: float, kinds: dict[str, str | None]
) -> None:
    judged = verdicts(people(UPRIGHT, scores=[before]), people(UPRIGHT, scores=[after]))
    assert {name: one["kind"] for name, one in judged.items()} == kinds
    if "0" in judged:
        assert judged["0"]["source_score"] == pytest.approx(before)
    if before == after == 0.45:
        whole = judged["whole"]
        assert (whole["severity"], whole["reason"]) == (None, NOTHING_FOUND)
        assert (whole["source_score"], whole["follow_up_score"]) == pytest.approx((0.45, 0.45))


def test_faint_ghosts_are_nobody() -> None:
    ghosts = people(GHOST, UPRIGHT, scores=[0.2, 0.9])
    assert {name: one["severity"] for name, one in verdicts(ghosts, people(UPRIGHT)).items()} == {"1": 0}
    assert verdicts(people(UPRIGHT), ghosts)["0"]["severity"] == 0


def test_a_faint_ghost_is_no_excuse_for_who_was_lost_or_invented_elsewhere() -> None:
    lost = verdicts(people(UPRIGHT), people(GHOST, scores=[0.4]))
    assert {name: one["kind"] for name, one in lost.items()} == {"0": "lost"}
    invented = verdicts(people(UPRIGHT, moved(GHOST, 0, 30), scores=[0.9, 0.4]), people(UPRIGHT, GHOST - (60, 0)))
    assert {name: one["kind"] for name, one in invented.items()} == {"0": None, "whole": "invented"}


def test_the_only_person_of_both_images_who_strays_a_little_is_not_lost_for_a_fainter_score() -> None:
    """Her score crosses the confidence as she moves: how far she strays is what there is to say."""
    astray = moved(UPRIGHT, 0.35 * (UPRIGHT.max(0) - UPRIGHT.min(0))[1], 0)
    source = people(UPRIGHT, scores=[0.6])
    sure = verdicts(source, people(astray, scores=[0.6]))["0"]
    fainter = verdicts(source, people(astray, scores=[0.45]))["0"]
    assert (fainter["kind"], fainter["severity"]) == (sure["kind"], sure["severity"])
    assert 0 < fainter["severity"] < math.inf
    # with somebody else to be taken for, only who is near matches
    beside = moved(UPRIGHT, 400, 0)
    assert verdicts(people(UPRIGHT, beside), people(astray, beside, scores=[0.45, 0.9]))["0"]["kind"] == "lost"


def test_a_faint_person_is_infinitely_far_away_and_shows_all_landmarks() -> None:
    faint = verdicts(people(UPRIGHT, scores=[0.9]), people(UPRIGHT, scores=[0.45]))["0"]
    assert (faint["severity"], faint["kind"], faint["missing"]) == (INF, "faint", 0)
    assert (faint["source_score"], faint["follow_up_score"]) == pytest.approx((0.9, 0.45))
    strict = verdicts(people(UPRIGHT, scores=[0.52]), people(UPRIGHT, scores=[0.47]), margin=0)["0"]
    assert strict["kind"] == "lost", "without a margin, a score below the confidence does not count"


def test_a_ghost_takes_no_sure_one_s_partner() -> None:
    strayed = moved(UPRIGHT, 60, 0)
    judged = verdicts(people(UPRIGHT), people(UPRIGHT + 5, strayed, scores=[0.05, 0.9]))
    assert {name: one["kind"] for name, one in judged.items()} == {"0": None}
    assert judged["0"]["severity"] == pytest.approx(60 / TRUNK)


def test_neighbours_whose_scores_wobble_keep_who_they_are() -> None:
    """One falls below the confidence as another rises above it: nobody is taken for the other."""
    crowd = UPRIGHT, moved(UPRIGHT, 80, 0), moved(UPRIGHT, 160, 0)
    judged = verdicts(people(*crowd, scores=[0.9, 0.55, 0.45]), people(*crowd[::-1], scores=[0.55, 0.45, 0.9]))
    assert {name: one["severity"] for name, one in judged.items()} == {"0": 0, "1": 0, "2": 0}
    # also where the other one was not seen before at all: he is invented, and nobody else is lost
    judged = verdicts(people(*crowd[:2], scores=[0.9, 0.55]), people(*crowd[::-1], scores=[0.55, 0.45, 0.9]))
    assert {name: one["kind"] for name, one in judged.items()} == {"0": None, "1": None, "whole": "invented"}
    assert judged["1"]["severity"] == 0


def test_a_faint_copy_takes_nobody_s_place() -> None:
    judged = verdicts(people(UPRIGHT + 3, UPRIGHT, scores=[0.4, 0.9]), people(UPRIGHT + 3))
    assert set(judged) == {"1"} and judged["1"]["severity"] < 0.1


# --- kinds -----------------------------------------------------------------------------------------


def test_one_person_found_twice_is_doubled_and_a_stranger_is_invented() -> None:
    twice = verdicts(people(UPRIGHT, GHOST), people(UPRIGHT, GHOST, UPRIGHT + 3))["whole"]
    assert (twice["severity"], twice["kind"], twice["missing"]) == (INF, "doubled", 1)
    stranger = verdicts(people(UPRIGHT), people(UPRIGHT, moved(UPRIGHT, 100, 0)))["whole"]
    assert stranger["kind"] == "invented"


def test_a_pose_whose_legs_are_gone_is_partly_lost() -> None:
    legs = ("left_knee", "right_knee", "left_ankle", "right_ankle")
    judged = verdicts(people(UPRIGHT), people(without(UPRIGHT, *legs)))["0"]
    assert (judged["severity"], judged["kind"], judged["missing"]) == (INF, "partly lost", 4)
    back = verdicts(people(without(UPRIGHT, *legs)), people(UPRIGHT))["0"]
    assert (back["severity"], back["kind"]) == (INF, "partly invented")
    paper = verdicts(people(UPRIGHT), people(without(UPRIGHT, *legs)), partly=1.0)["0"]
    assert (paper["severity"], paper["kind"]) == (0, None), "the median over all landmarks"
    one = verdicts(people(UPRIGHT), people(without(UPRIGHT, "left_wrist")))["0"]
    assert (one["severity"], one["kind"]) == (0, None)


def test_left_and_right_exchanged_are_named_so() -> None:
    judged = verdicts(people(UPRIGHT), people(UPRIGHT[COCO.swap]))["0"]
    assert judged["severity"] > 0.2 and judged["kind"] == "exchanged"
    assert verdicts(people(UPRIGHT), people(moved(UPRIGHT, 30, 0)))["0"]["kind"] is None


# --- nothing, and what leaves the frame ------------------------------------------------------------


def test_nothing_found_twice_is_not_judged_and_zero_where_a_paper_counted_it() -> None:
    judged = verdicts(people(), people())["whole"]
    assert (judged["severity"], judged["reason"]) == (None, NOTHING_FOUND)
    assert verdicts(people(), people(), empty="keep")["whole"]["severity"] == 0
    assert verdicts(people(), people(UPRIGHT))["whole"]["kind"] == "invented"
    outvoted = verdicts(people(), people(), people(UPRIGHT), people())["whole"]
    assert (outvoted["severity"], outvoted["kind"]) == (0, None)


def test_a_part_that_nobody_shows_is_not_judged() -> None:
    bones = skeleton("mediapipe-holistic")
    points = np.full((len(bones.landmarks), 2), np.nan)
    points[:33] = np.random.default_rng(0).uniform(50, 250, (33, 2))
    judged = verdicts(people(points, bones=bones), people(points, bones=bones), landmarks="all")
    assert judged["0/body"]["severity"] == 0
    assert (judged["0/face"]["severity"], judged["0/face"]["reason"]) == (None, NOTHING_FOUND)


def test_of_whom_less_than_half_stays_in_the_frame_nothing_is_asked() -> None:
    for answer in (people(), people(moved(UPRIGHT, 310, 0))):
        judged = verdicts(people(UPRIGHT), answer, matrix=shifted(310))["0"]
        assert (judged["severity"], judged["kind"]) == (None, None)
        assert judged["reason"] == "less than 50 % of its landmarks stayed in the frame"
    assert verdicts(people(UPRIGHT), people(), matrix=shifted(290))["0"]["kind"] == "lost"


def test_landmarks_outside_the_source_are_neither_compared_nor_counted_among_those_that_stay() -> None:
    """As of a portrait, whose system also says where the legs are."""
    portrait = moved(UPRIGHT, 0, 220)
    assert ((portrait[:, 1] <= SIZE[1]).sum(), len(portrait)) == (7, 17)
    repeated = verdicts(people(portrait), people(portrait))["0"]
    assert (repeated["severity"], repeated["compared"]) == (0, 7)
    assert verdicts(people(portrait), people())["0"]["kind"] == "lost"
    into_view = np.array([[1.0, 0, 0], [0, 1, -220], [0, 0, 1]])
    carried = verdicts(people(portrait), people(UPRIGHT), matrix=into_view)["0"]
    assert (carried["severity"], carried["compared"]) == (0, 7)
    only_seen = np.where(portrait <= SIZE, portrait, np.nan)
    revealed = verdicts(people(only_seen), people(UPRIGHT), matrix=into_view)["0"]
    assert (revealed["severity"], revealed["missing"]) == (0, 0), "nobody could see them in the source"


def test_of_whom_every_landmark_is_outside_the_source_is_told_so() -> None:
    far = people(moved(UPRIGHT, 5000, 0))
    judged = verdicts(far, far)["0"]
    assert (judged["severity"], judged["reason"]) == (None, "every landmark lies outside the source's frame")


def test_paper_mode_has_none_of_it() -> None:
    paper: dict[str, Any] = dict(suite("met-pose@paper").options)
    faint = people(UPRIGHT, scores=[0.1])
    assert verdicts(faint, faint, **paper)["0"]["severity"] == 0
    assert verdicts(faint, people(), **paper)["0"]["kind"] == "lost"
    assert verdicts(people(), people(), **paper)["whole"]["severity"] == 0


def test_covered_landmarks_may_be_left_out_by_whoever_finds_the_rest() -> None:
    legs = (70.0, 150.0, 130.0, 240.0)
    seen = without(UPRIGHT, "left_knee", "right_knee", "left_ankle", "right_ankle")
    assert verdicts(people(UPRIGHT), people(seen), regions=legs)["0"]["severity"] == 0
    assert verdicts(people(UPRIGHT), people(seen), regions=(0.0, 0.0, 5.0, 5.0))["0"]["kind"] == "partly lost"
    assert verdicts(people(UPRIGHT), people(), regions=legs)["0"]["kind"] == "lost"
    assert verdicts(people(UPRIGHT), people(moved(UPRIGHT, 40, 0)), regions=legs)["0"]["severity"] > 0.5


@pytest.mark.parametrize(
    ("bones", "options", "unit"),
    [
        ("coco-17", {"normaliser": "body"}, "body lengths"),
        ("coco-17", {"normaliser": "part"}, "shoulder widths"),
        ("mediapipe-holistic", {"normaliser": "part", "landmarks": ""}, "shoulder widths"),
        ("mediapipe-holistic", {"normaliser": "part", "landmarks": "hands"}, "lengths of the part"),
        ("mediapipe-holistic", {"normaliser": "part", "landmarks": "all"}, "lengths of the part"),
        ("hand-21", {"normaliser": "part"}, "lengths of the part"),
        ("hand-21", {"normaliser": "box"}, "diagonals of the box"),
    ],
)
def test_severities_are_named_for_what_they_are_divided_by(bones: str, options: dict[str, str], unit: str) -> None:
    """Runs in shoulder widths said body lengths, which are longer."""
    header = {"skeleton": skeleton(bones).to_dict()}
    assert relations()["poses"].unit_under(options, header) == unit


def test_a_judging_in_shoulder_widths_says_so(tmp_path: Path) -> None:
    run = instar.run(steady, "mirror(h)", write_scenes(tmp_path / "photos", 2), out=tmp_path / "run", workers=0)
    published = judge(run.store, {"normaliser": "part"})
    assert run.units()["poses"] == "body lengths"
    assert run.units(published)["poses"] == "shoulder widths"
    shown = StringIO()
    show_run(Console(file=shown, width=300), instar.open_run(tmp_path / "run"), judging=published)
    assert "shoulder widths" in shown.getvalue() and "body lengths" not in shown.getvalue()
    (page,) = write_report([instar.open_run(tmp_path / "run")], tmp_path / "x.html", judging=published, images=0)
    assert "shoulder widths" in page.read_text("utf-8") and "body lengths" not in page.read_text("utf-8")
