"""Flawless classifiers: nothing that the suite `labels` asks is held against them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from instar import Labels
from tests.quality import painted as p
from tests.quality.test_label_faults import looks_left, right
from tests.quality.words import accusations, assert_shown

IMAGES = [p.sign(number) for number in range(6)]
Answer = Callable[[np.ndarray], object]
_rng = np.random.default_rng(0)


def in_random_order(pixels: np.ndarray) -> dict[str, float]:
    answer = right(pixels)
    order = _rng.permutation(len(answer.classes))
    return {answer.classes[place]: float(answer.scores[place]) for place in order}


def nearly_tied(pixels: np.ndarray) -> Labels:
    """Two words for one thing, which noise puts in another order."""
    best = right(pixels).classes[0]
    lead = 0.02 * np.random.default_rng(int(pixels.sum())).uniform(-1, 1)
    return Labels.from_scores([best, f"a {best}", "star"], [0.47 + lead, 0.47 - lead, 0.06])


def a_set_of_words(pixels: np.ndarray) -> Labels:
    """Without scores, in any order."""
    words = [right(pixels).classes[0], "sign", "outdoors"]
    return Labels.from_scores([words[place] for place in _rng.permutation(3)])


def which_way(pixels: np.ndarray) -> Labels:
    """The signs are called by the way they point, which a mirror exchanges."""
    return Labels.from_scores(["turn left", "turn right"], [0.9, 0.1] if looks_left(pixels) else [0.1, 0.9])


def less_sure_of_bad_images(pixels: np.ndarray) -> Labels:
    bad = any(seen(pixels) for seen in (p.soft, p.noisy, p.blocky, p.dark, p.bright, p.flat, p.small))
    return right(pixels, 0.6 if bad else 0.95)


def of_a_thousand(pixels: np.ndarray) -> Labels:
    """A flat softmax: no class has much of it, and the best one halves when the image is bad."""
    best = int(p.redness(pixels).sum() < 0)
    scores = np.full(50, 0.01)
    scores[best] = 0.08 if p.noisy(pixels) else 0.16
    return Labels.from_scores([f"class {number}" for number in range(50)], scores, top=10)


def one_word(pixels: np.ndarray) -> Labels:
    return Labels.from_scores(right(pixels).classes[:1])


def silent_without_colour(pixels: np.ndarray) -> Labels:
    """Half of the things it does not know, and says so of every change of them."""
    return right(pixels) if p.redness(pixels).sum() > 0 else Labels.from_scores([])


FLAWLESS: dict[str, Answer] = {
    "right": right,
    "in random order": in_random_order,
    "two words for one thing": nearly_tied,
    "a set of words without scores": a_set_of_words,
    "called by the way it points": which_way,
    "less sure of bad images": less_sure_of_bad_images,
    "one of a thousand": of_a_thousand,
    "one word": one_word,
    "silent about what it does not know": silent_without_colour,
}


@pytest.mark.parametrize("name", FLAWLESS)
def test_nothing_is_held_against_it(name: str, tmp_path: Path) -> None:
    run = p.run_of(FLAWLESS[name], "labels", IMAGES, tmp_path / "run")
    assert not p.violated(run)
    assert accusations(run) == []
    if name == "right":
        assert_shown(run)
    judged = run.verdicts()["severity"].is_not_null().mean()
    assert judged == (0.5 if name.startswith("silent") else 1.0)


def test_two_cases_are_too_few_to_say_that_it_never_looks(tmp_path: Path) -> None:
    """Of a few images that show the same, the same class is right."""
    run = p.run_of(right, "labels", [IMAGES[0], IMAGES[2]], tmp_path / "run", "mirror(h)")
    assert accusations(run) == []
