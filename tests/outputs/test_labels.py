"""Labels: in order, stored and told without loss, wrong ones refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.image import Image
from instar.outputs.labels import Labels
from instar.warp import Warp

names = st.lists(st.text(min_size=1, max_size=8).filter(lambda t: t.isprintable()), unique=True, max_size=6)


@st.composite
def labels(draw: st.DrawFn) -> Labels:
    classes = draw(names)
    scores = draw(st.lists(st.floats(0, 1, width=32), min_size=len(classes), max_size=len(classes)))
    return Labels.from_scores(classes, scores)


@given(made=labels())
def test_they_are_stored_and_told_without_loss(made: Labels) -> None:
    for back in (Labels.from_row(made.row(), made.header()), Labels.from_json(made.to_json())):
        assert back.classes == made.classes and np.array_equal(back.scores, made.scores)


def test_the_likeliest_comes_first() -> None:
    made = Labels.from_scores(["a", "b", "c"], [0.2, 0.5, 0.3], top=2)
    assert made.classes == ("b", "c") and made.score_of("b") == pytest.approx(0.5) and made.score_of("a") == 0


def test_a_warp_changes_no_class() -> None:
    made = Labels.from_scores(["a"])
    assert made.warped(Warp.mirror((10, 10), "h")) is made


def test_confident() -> None:
    assert Labels.from_scores(["a", "b"], [0.9, 0.1]).confident(0.5).classes == ("a",)


@pytest.mark.parametrize(
    ("classes", "scores", "wrong"),
    [
        (["a", "a"], [0.5, 0.5], "there twice"),
        (["a"], [1.5], "from 0 to 1"),
        (["a"], [float("nan")], "from 0 to 1"),
        (["a", "b"], [0.5], "as many scores"),
    ],
)
def test_wrong_ones_are_refused(classes: list[str], scores: list[float], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        Labels.from_scores(classes, scores)


def test_a_function_may_return_scores_by_class() -> None:
    image = Image(np.zeros((4, 4, 3), np.uint8))
    assert Labels.accept({"cat": 0.1, "dog": 0.9}, image).classes == ("dog", "cat")
    with pytest.raises(TypeError, match="scores by class"):
        Labels.accept("cat", image)


def test_lists_are_taken_as_arrays() -> None:
    classes: Any = ["cat", "dog"]
    scores: Any = [0.25, 0.75]
    assert Labels(classes, scores).scores.tolist() == [0.25, 0.75]
