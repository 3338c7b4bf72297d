"""Flawless systems whose answers are few: none is told that nothing can be told from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instar
from instar import Case, Dataset, Detections, Image, Labels, declare
from instar.report.sentences import answers_findings
from tests.quality import painted


def two_classes(pixels: np.ndarray) -> Labels:
    """Names alone, without scores: half of the images have one answer, half another."""
    return Labels.from_scores(["disc" if painted.redness(pixels).sum() > 0 else "square"])


def with_ghosts(pixels: np.ndarray) -> Detections:
    """The sign, and a ghost of low score in every image."""
    x, y = np.array(painted.middle(pixels)) * pixels.shape[1::-1]
    return Detections.from_xyxy([[x - 9, y - 9, x + 9, y + 9], [0, 0, 9, 9]], ["sign", "sign"], [0.9, 0.1])


def discs_alone(pixels: np.ndarray) -> Detections:
    """Half of the images show nothing of what it looks for, and it says so."""
    square = painted.redness(pixels).sum() <= 0
    return Detections.from_xyxy(np.empty((0, 4)), []) if square else with_ghosts(pixels)


def two_at_once(pixels: np.ndarray) -> Labels:
    """Several things are there at once, as sure as each other: which of them comes first is chance."""
    x, y = painted.middle(pixels)
    shape = "disc" if painted.redness(pixels).sum() > 0 else "square"
    first = 0.96 if x > y else 0.98
    return Labels.from_scores([shape, "sky", "sea"], [first, 0.97, 0.02])


FLAWLESS: dict[str, tuple[str, Callable[[np.ndarray], Any]]] = {
    "two classes": ("labels", two_classes),
    "two things at once": ("labels", two_at_once),
    "ghosts of low score": ("detections", with_ghosts),
    "not in every image": ("detections", discs_alone),
}


@pytest.mark.parametrize("name", FLAWLESS)
def test_answers_that_tell_something_are_not_doubted(name: str, tmp_path: Path) -> None:
    kind, answer = FLAWLESS[name]
    cases = [Case(str(number), input=Image(painted.sign(number))) for number in range(4)]
    system = declare(kind=kind)(lambda pixels: answer(pixels))
    run = instar.run(
        system, "mirror(h) + gamma(2)", Dataset("signs", "", lambda: iter(cases)), out=tmp_path / "run", workers=0
    )
    assert not answers_findings(run.answers(), run.judged())
    assert not run.any_rule()["violated"]


def test_one_image_asked_often_may_well_have_one_answer(tmp_path: Path) -> None:
    """The same image under three names is one input: nobody expects different answers."""
    cases = [Case(str(number), input=Image(painted.sign(0))) for number in range(4)]
    system = declare(kind="labels")(lambda pixels: two_classes(pixels))
    run = instar.run(system, "gamma(2)", Dataset("signs", "", lambda: iter(cases)), out=tmp_path / "run", workers=0)
    assert not run.answers().alike
