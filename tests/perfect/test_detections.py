"""Detectors that nothing is wrong with, each in its own way: the suite of their kind accuses none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.outputs.detections import Detections
from instar.report import findings
from tests.perfect.shapes import CENTRED, CUT, DISC, Look, Shape, detector, right, shapes_dataset
from tests.quality.words import accusations, against

SUITE = "detections"


def beyond_the_frame(seen: Look) -> Detections:
    """What is cut by the frame is guessed whole, and the box goes on beyond it."""
    low, high = seen.boxes[:, :2], seen.boxes[:, 2:]
    guessed = [np.where(low <= 0, low - 12, low), np.where(high >= seen.size, high + 12, high)]
    return seen.answer(np.concatenate(guessed, 1))


def in_any_order() -> Callable[[Look], Detections]:
    chance = np.random.default_rng(0)

    def shuffled(seen: Look) -> Detections:
        order = chance.permutation(len(seen.boxes))
        return seen.answer(seen.boxes[order], [seen.labels[number] for number in order])

    return shuffled


def with_weak_ghosts() -> Callable[[Look], Detections]:
    """Everything above a low floor, as we ask of adapters: a few boxes anywhere that score below 0.3."""
    chance = np.random.default_rng(0)

    def haunted(seen: Look) -> Detections:
        corners = chance.uniform(0, 0.6, (4, 2)) * seen.size
        ghosts = np.concatenate([corners, corners + 0.3 * seen.size], 1)
        scores = [*[0.9] * len(seen.boxes), *chance.uniform(0.05, 0.28, 4)]
        return seen.answer(np.vstack([seen.boxes, ghosts]), [*seen.labels, *[DISC] * 4], scores)

    return haunted


def with_wobbling_scores() -> Callable[[Look], Detections]:
    chance = np.random.default_rng(0)
    return lambda seen: seen.answer(scores=chance.uniform(0.4, 0.6, len(seen.boxes)))


def with_scores_about_the_confidence() -> Callable[[Look], Detections]:
    chance = np.random.default_rng(0)
    return lambda seen: seen.answer(scores=chance.choice([0.47, 0.52], len(seen.boxes)))


def with_a_guess_outside_the_frame(seen: Look) -> Detections:
    """Always reports something left of the image, below it and right of it."""
    width, height = seen.size
    guesses = [[-30, 20, -6, 44], [20, height + 4, 50, height + 40], [width, 10, width, 30]]
    return seen.answer(np.vstack([seen.boxes, guesses]), [*seen.labels, *[DISC] * 3])


def with_boxes_half_a_pixel_off() -> Callable[[Look], Detections]:
    chance = np.random.default_rng(0)
    return lambda seen: seen.answer(seen.boxes + chance.uniform(-0.5, 0.5, seen.boxes.shape))


def without_small_rests(seen: Look) -> Detections:
    """What the frame leaves less than eleven pixels of is nothing that anybody could name."""
    cut = (seen.boxes[:, :2] <= 0).any(1) | (seen.boxes[:, 2:] >= seen.size).any(1)
    return seen.answer(keep=~cut | ((seen.boxes[:, 2:] - seen.boxes[:, :2]).min(1) >= 11))


def with_masks(seen: Look) -> Detections:
    width, height = seen.size.astype(int)
    masks = np.zeros((len(seen.boxes), height, width), bool)
    for mask, (x0, y0, x1, y1) in zip(masks, seen.boxes.astype(int), strict=True):
        mask[y0:y1, x0:x1] = seen.mask[y0:y1, x0:x1] > 0
    return Detections.from_xyxy(seen.boxes, seen.labels, np.full(len(seen.boxes), 0.9), masks=masks)


FLAWLESS: dict[str, tuple[Callable[[Look], Detections], bool]] = {
    "right": (right, True),
    "boxes beyond the frame": (beyond_the_frame, True),
    "in any order": (in_any_order(), False),
    "with weak ghosts": (with_weak_ghosts(), False),
    "with wobbling scores": (with_wobbling_scores(), False),
    "with scores about the confidence": (with_scores_about_the_confidence(), False),
    "with a guess outside the frame": (with_a_guess_outside_the_frame, True),
    "boxes half a pixel off": (with_boxes_half_a_pixel_off(), False),
    "without small rests": (without_small_rests, True),
    "with masks": (with_masks, True),
}
"""Detectors, and whether the same image always has the same answer."""


@pytest.mark.parametrize("name", FLAWLESS)
@pytest.mark.parametrize("annotated", [False, True])
def test_a_flawless_detector_is_not_accused(name: str, annotated: bool, tmp_path: Path) -> None:
    answer, deterministic = FLAWLESS[name]
    system = detector(answer, deterministic=deterministic)
    run = instar.run(system, SUITE, shapes_dataset(annotated=annotated), out=tmp_path / "run", workers=0)
    limit = pl.col("rule").replace_strict(run.thresholds(), return_dtype=pl.Float64)
    bad = run.verdicts().filter((pl.col("severity") > 0) & (pl.col("severity") >= limit))
    assert bad.select("rule", "case", "target", "kind", "severity").rows() == []
    assert accusations(run) == []
    assert run.rates()["judged"].sum() > 0
    assert run.verdicts().filter(pl.col("status") == "error").is_empty()


@pytest.mark.parametrize("scenes", [CENTRED, CUT])
def test_nothing_is_held_against_it_whether_the_border_cuts_objects_or_not(
    scenes: tuple[tuple[Shape, ...], ...], tmp_path: Path
) -> None:
    run = instar.run(detector(right), SUITE, shapes_dataset(scenes), out=tmp_path / "run", workers=0)
    assert against(run) == []


def test_a_silent_detector_is_not_called_clean(tmp_path: Path) -> None:
    """It is useless, and no rule has anything to say about it."""
    system = detector(lambda seen: seen.answer(keep=np.zeros(len(seen.boxes), bool)))
    run = instar.run(system, SUITE, shapes_dataset(annotated=True), out=tmp_path / "run", workers=0)
    assert run.rates()["judged"].sum() == 0
    found_nothing = detector(lambda seen: seen.answer(keep=np.zeros(len(seen.boxes), bool)))
    run = instar.run(found_nothing, SUITE, shapes_dataset(annotated=False), out=tmp_path / "unlabelled", workers=0)
    reasons = run.unjudged().filter(pl.col("status") == "not applicable")["reason"].to_list()
    assert reasons and all("object in this image: it has 0" in reason for reason in reasons), reasons


def test_a_cut_off_that_hides_small_changes_of_score_is_named(tmp_path: Path) -> None:
    """A cut at the confidence makes a score of 0.47 look like a lost object."""
    chance, least = np.random.default_rng(0), {}
    for name, floor in (("cut at 0.5", 0.5), ("returned", 0.0)):

        def answer(seen: Look, floor: float = floor) -> Detections:
            scores = chance.choice([0.47, 0.51], len(seen.boxes))
            return seen.answer(scores=scores, keep=scores >= floor)

        system = detector(answer, deterministic=False)
        run = instar.run(system, SUITE, shapes_dataset(annotated=False), out=tmp_path / name, workers=0)
        least[name] = [one for one in findings(run) if one.code == "scores.cut_off"]
    assert least["returned"] == []
    (cut,) = least["cut at 0.5"]
    assert not cut.against and cut.figures["least_score"] == pytest.approx(0.51)
    assert cut.figures["nearby"] == cut.figures["lost"] > 0
