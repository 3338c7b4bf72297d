"""Flawless hand systems: the suite `hands` accuses none of them, and the advice says nothing against them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import instar
from instar import Poses
from instar.skeleton import skeleton
from instar.suites import default_suite
from tests.perfect.hands import HANDS, TWO_HANDS, Answer, View, advice, ran
from tests.perfect.test_hand_pose import data, seeing
from tests.quality.words import accusations, assert_shown


def within_the_frame(view: View) -> Poses:
    """Leaves out what lies outside the image."""
    points = view.points.copy()
    points[~((points >= 0) & (points <= np.array(view.size))).all(-1)] = np.nan
    return view.answer(points)


def in_any_order(view: View) -> Poses:
    order = np.random.default_rng(len(view.follow_up)).permutation(len(view.points))
    return view.answer(view.points[order])


def with_faint_ghosts(view: View) -> Poses:
    """Adapters are asked for everything above a low floor: what nobody is sure of comes and goes."""
    rng = np.random.default_rng(len(view.follow_up) + (view.case or 0))
    ghosts = rng.uniform(0, min(view.size), (rng.integers(3), 21, 2))
    scores = [0.9] * len(view.points) + [0.2] * len(ghosts)
    return view.answer(np.concatenate([view.points, ghosts]), scores=scores)


def a_pixel_off(view: View) -> Poses:
    rng = np.random.default_rng(len(view.follow_up) + (view.case or 0))
    return view.answer(view.points + rng.normal(0, 0.5, view.points.shape))


def left_and_right(view: View) -> Poses:
    """Says which hand it is: all are right hands, and left ones in a mirror."""
    both = np.full((len(view.points), 42, 2), np.nan)
    side = slice(0, 21) if np.linalg.det(view.matrix) < 0 else slice(21, 42)
    both[:, side] = view.points
    return Poses.from_array(both, skeleton=TWO_HANDS)


FLAWLESS: dict[str, Answer] = {
    "exact": lambda view: view.answer(),
    "leaves out what is outside": within_the_frame,
    "in any order": in_any_order,
    "low-score ghosts": with_faint_ghosts,
    "half a pixel of noise": a_pixel_off,
    "left and right told apart": left_and_right,
}
HARMLESS = {"unlabelled", "open", "robust"}


@pytest.mark.parametrize(
    ("name", "annotated"),
    [(name, annotated) for name in FLAWLESS for annotated in (True, False) if not annotated or "right" not in name],
)
def test_nothing_is_said_against_it(name: str, annotated: bool, tmp_path: Path) -> None:
    """The truth does not say which hand it is: one that does is judged without."""
    run = ran(FLAWLESS[name], tmp_path / "run", annotated=annotated)
    rates = run.rates(judging=run.judge(confidence=0.5))
    assert rates["judged"].min() == len(HANDS), "and every rule was asked"
    assert rates.filter(rates["violated"] > 0)["rule"].to_list() == []
    assert advice(run).keys() <= HARMLESS
    assert accusations(run) == []
    if annotated and name == "exact":
        assert_shown(run)


def test_one_that_leaves_covered_landmarks_out(tmp_path: Path) -> None:
    """It loses what is covered, as TC1 asks; nothing but covered fingers is said to cost it anything."""
    run = instar.run(seeing, "hand-pose", data(), out=tmp_path / "run", workers=0)
    spoken = advice(run)
    assert spoken.keys() <= {*HARMLESS, "precise", "weak"}
    assert spoken.get("weak", "Weak against a covered finger").startswith("Weak against a covered finger")
    assert "Weak" not in spoken.get("weak", "")[5:]


def test_hands_are_asked_what_hands_are_asked(tmp_path: Path) -> None:
    run = ran(FLAWLESS["exact"], tmp_path / "run", "gamma(3)")
    assert default_suite("poses", run.manifest.header).name == "hands"
    assert TWO_HANDS.suite == "hands", "a skeleton made of hands alone is one of hands"
    assert skeleton("coco-17").suite is None and skeleton("mediapipe-holistic").suite is None
