"""Flawless pose estimators of several habits: our own suite accuses none of them, and calls no silent one clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar import Poses
from instar.relations.relation import NOTHING_FOUND
from tests.perfect.scenes import ZONES, Scene, View, crowd, one_person, portrait, system_of, three_people, wide_person
from tests.quality.words import accusations, assert_accused


def _dice(view: View) -> np.random.Generator:
    """Chance that is the same for the same image, and another for every other."""
    return np.random.default_rng(int(view.pixels.astype(np.uint64).sum()))


def in_random_order(view: View) -> Poses:
    return view.answer(_dice(view).permutation(view.points))


def with_faint_ghosts(view: View) -> Poses:
    """As adapters are asked to: everything above a low floor, with its score. Ghosts come and go."""
    dice, points = _dice(view), view.points
    ghosts = [points[:1] + dice.uniform(-150, 150, 2) for _ in range(int(dice.integers(0, 4)))]
    scores = [*dice.uniform(0.8, 1, len(points)), *dice.uniform(0.02, 0.29, len(ghosts))]
    return view.answer(np.concatenate([*ghosts, points]), scores[::-1])


def with_faint_copies(view: View) -> Poses:
    """Everybody once more, nearly in the same place, at a score that nobody takes for sure: as without suppression."""
    points = view.points
    scores = _dice(view).uniform(0.2, 0.45, len(points)).tolist() + [0.9] * len(points)
    return view.answer(np.concatenate([points + 1, points]), scores)


def wobbles_about_the_confidence(view: View) -> Poses:
    return view.answer(scores=_dice(view).uniform(0.4, 0.6, len(view.points)).tolist())


def leaves_out_what_is_outside(view: View) -> Poses:
    points = view.points.copy()
    points[((points < 0) | (points > view.size)).any(-1)] = np.nan
    return view.answer(points)


def beyond_the_frame(view: View) -> Poses:
    """Says where landmarks are that nobody sees."""
    return view.answer()


def clipped_to_the_frame(view: View) -> Poses:
    return view.answer(view.points.clip(0, view.size))


def without_those_mostly_outside(view: View) -> Poses:
    """Says nothing of people of whom less than half is in the frame."""
    points = view.points
    inside = ((points >= 0) & (points <= view.size)).all(-1).mean(1)
    return view.answer(points[inside >= 0.5])


def within_a_pixel(view: View) -> Poses:
    return view.answer(view.points + _dice(view).uniform(-1, 1, view.points.shape))


def in_percent(view: View) -> Poses:
    """Scores on another scale."""
    return view.answer(scores=_dice(view).uniform(60, 100, len(view.points)).tolist())


@cache
def from_the_side() -> Scene:
    """The same person with a tenth of the width: shoulders five pixels apart."""
    scene = one_person()
    middle = scene.points.mean(1, keepdims=True)
    return replace(scene, name="side", points=(scene.points - middle) * (0.1, 1) + middle)


@cache
def without_a_shoulder() -> Scene:
    scene = one_person()
    points = scene.points.copy()
    points[:, [scene.bones.index("left_shoulder"), scene.bones.index("right_hip")]] = np.nan
    return replace(scene, name="shoulder", points=points)


@cache
def at_the_edge() -> Scene:
    """Somebody who is mostly carried out of the frame when it is shifted or cropped."""
    scene = one_person()
    return replace(scene, name="edge", points=np.concatenate([scene.points, scene.points + np.array([130.0, 0])]))


@dataclass(frozen=True)
class Habit:
    answer: Callable[[View], Poses]
    scene: Callable[[], Scene] = three_people
    least_judged: float = 1.0
    """The share of verdicts about subjects that must have been judged."""


FLAWLESS = {
    "people in a random order": Habit(in_random_order),
    "a crowd in a random order": Habit(in_random_order, crowd),
    "low-score ghosts": Habit(with_faint_ghosts),
    "low-score copies": Habit(with_faint_copies),
    "scores wobble about the confidence": Habit(wobbles_about_the_confidence),
    "scores of a crowd wobble": Habit(wobbles_about_the_confidence, crowd),
    "points outside the frame are left out": Habit(leaves_out_what_is_outside, wide_person),
    "points outside the frame are told": Habit(beyond_the_frame, wide_person),
    "points outside the frame are put on its edge": Habit(clipped_to_the_frame, wide_person),
    # of a portrait most landmarks are outside before anything is changed, and a border brings their places into view
    "a portrait, all joints are told": Habit(beyond_the_frame, portrait),
    "a portrait, joints are told where they are in the frame": Habit(leaves_out_what_is_outside, portrait),
    "people mostly outside are left out": Habit(without_those_mostly_outside, at_the_edge, 0.8),
    "a person from the side": Habit(within_a_pixel, from_the_side),
    "a person without a shoulder": Habit(within_a_pixel, without_a_shoulder),
}


def _run(habit: Habit, folder: Path) -> instar.Run:
    scene = habit.scene()
    return instar.run(system_of(scene, habit.answer), "poses", scene.dataset, out=folder, workers=0, zones=ZONES)


@pytest.mark.parametrize("name", FLAWLESS)
def test_a_flawless_system_is_not_accused(name: str, tmp_path: Path) -> None:
    habit = FLAWLESS[name]
    run = _run(habit, tmp_path / "run")
    verdicts = run.verdicts()
    assert accusations(run) == []
    bad = verdicts.filter(pl.col("severity") >= 0.2)
    assert bad.is_empty(), bad.select("rule", "target", "severity", "kind", "source_score", "follow_up_score").rows()
    subjects = verdicts.filter(pl.col("target") != "whole")
    assert len(subjects) and 1 - subjects["severity"].null_count() / len(subjects) >= habit.least_judged


def test_scores_in_percent_are_said_and_nothing_else(tmp_path: Path) -> None:
    run = _run(Habit(in_percent), tmp_path / "run")
    assert run.verdicts().filter(pl.col("severity") >= 0.2).is_empty()
    (words,) = accusations(run)
    assert words.startswith("The scores lie between") and "divide percent by 100" in words


def test_a_system_that_never_finds_anybody_is_not_called_clean(tmp_path: Path) -> None:
    run = _run(Habit(lambda view: view.answer(np.empty(0)), one_person), tmp_path / "run")
    verdicts = run.verdicts()
    assert verdicts["severity"].null_count() == len(verdicts) == len(instar.suite("poses").rules)
    assert set(verdicts["reason"]) == {NOTHING_FOUND}
    assert set(run.rates()["rate"]) == {None}
    assert_accused(run, "found nothing in 1 of 1 source image, so that nothing could be judged")


def test_one_whose_scores_are_all_low_is_not_called_clean_either_and_its_scores_are_told(tmp_path: Path) -> None:
    run = _run(Habit(lambda view: view.answer(scores=[0.2]), one_person), tmp_path / "run")
    verdicts = run.verdicts()
    assert set(verdicts["reason"]) == {NOTHING_FOUND}
    assert verdicts["source_score"].to_list() == pytest.approx([0.2] * len(verdicts))
    lower = run.verdicts(confidence=0.1)
    assert lower["severity"].null_count() == 0 and float(lower["severity"].max()) < 0.01  # type: ignore[arg-type]
