"""Hands of a whole body, which are not judged by default: where they stray they are named all the same."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import instar
from instar import Poses, Skeleton
from instar.report import show_run
from tests.perfect.figures import PLACE, is_mirrored, points_of, run_of

BONES = Skeleton.from_dict(
    {
        "name": "whole-body",
        "include": ["coco-17", {"skeleton": "hand-21", "as": "left_hand"}, {"skeleton": "hand-21", "as": "right_hand"}],
        "pairs": [["left_hand", "right_hand"]],
        "default": "body",
    }
)
LEFT, RIGHT = slice(17, 38), slice(38, 59)
_FINGERS = np.stack([np.tile(np.linspace(-0.5, 0.5, 5), 4), np.repeat(np.linspace(0.3, 1.2, 4), 5)], 1)
_HAND = np.concatenate([np.zeros((1, 2)), _FINGERS]) * 14
"""A wrist, and five fingers of four landmarks above it."""


def whole_body(pixels: np.ndarray) -> np.ndarray:
    """The right answer: each hand is fixed to its wrist, and one is the mirror image of the other."""
    body = points_of(pixels)
    hands = [body[PLACE[f"{name}_wrist"]] + _HAND * way for name, way in (("left", (1, 1)), ("right", (-1, 1)))]
    return np.concatenate([body, *hands])


def exchanged_in_a_mirror(pixels: np.ndarray) -> np.ndarray:
    points = whole_body(pixels)
    if is_mirrored(pixels):
        points[LEFT], points[RIGHT] = points[RIGHT].copy(), points[LEFT].copy()
    return points


def fingers_reflected_in_a_mirror(pixels: np.ndarray) -> np.ndarray:
    """The little finger is where the thumb should be."""
    points = whole_body(pixels)
    if is_mirrored(pixels):
        for hand in (LEFT, RIGHT):
            points[hand, 0] = 2 * points[hand, 0][:1] - points[hand, 0]
    return points


def left_hand_lost_in_the_dark(pixels: np.ndarray) -> np.ndarray:
    points = whole_body(pixels)
    if pixels.mean() < 90:
        points[LEFT] = np.nan
    return points


@dataclass(frozen=True)
class Fault:
    points: Callable[[np.ndarray], np.ndarray]
    rule: str
    hands: frozenset[str]


_BOTH = frozenset({"left_hand", "right_hand"})
FAULTS = {
    "hands exchanged": Fault(exchanged_in_a_mirror, "mirror(h)", _BOTH),
    "fingers reflected": Fault(fingers_reflected_in_a_mirror, "mirror(h)", _BOTH),
    "a hand lost in the dark": Fault(left_hand_lost_in_the_dark, "gamma(2)", frozenset({"left_hand"})),
}


def ran(points: Callable[[np.ndarray], np.ndarray], folder: Path) -> instar.Run:
    @instar.declare(kind="poses")
    def answer(pixels: np.ndarray) -> Poses:
        places = points(pixels)
        return Poses.from_array([] if np.isnan(places[:17]).all() else places[None], skeleton=BONES)

    return run_of(answer, folder, cases=12, rules=("identity", "mirror(h)", "gamma(2)"))


@pytest.mark.parametrize("name", FAULTS)
def test_hands_that_stray_are_named(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    run = ran(fault.points, tmp_path)
    assert not run.any_rule()["violated"], "the body alone is judged"
    table = run.straying_parts()
    assert {part.partition(".")[0] for part in table["part"]} == fault.hands
    assert set(table["rule"]) == {f"{fault.rule} => poses"}
    printed = io.StringIO()
    show_run(Console(file=printed, width=1000), run)
    line = next(line for line in printed.getvalue().splitlines() if "beyond the threshold in" in line)
    assert all(f"landmarks of {hand.replace('_', ' ')}" in line for hand in fault.hands)


def test_right_hands_are_not_named(tmp_path: Path) -> None:
    assert ran(whole_body, tmp_path).straying_parts().is_empty()
