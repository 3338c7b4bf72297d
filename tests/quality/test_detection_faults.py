"""Seeded faults of detectors: the suite of their kind catches each, by a rule and in a word that fit it.

A faulty detector is the right one of `tests.perfect.shapes`, spoilt: it sees nothing but the pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

import cv2
import numpy as np
import polars as pl
import pytest

import instar
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.suite import PURPOSES
from tests.perfect.shapes import BOX, DISC, GROUND, KITE, Look, detector, look, right, shapes_dataset
from tests.quality.words import assert_checked, assert_shown_and_reported, finding, named_rules, said

SUITE = "detections"
RULES = [rule.id for rule in instar.suite(SUITE).rules]


# --- where the boxes are ---------------------------------------------------------------------------


def xywh(seen: Look) -> Detections:
    boxes = seen.boxes.copy()
    boxes[:, 2:] -= boxes[:, :2]
    return seen.answer(boxes)


def y_before_x(seen: Look) -> Detections:
    return seen.answer(seen.boxes[:, [1, 0, 3, 2]])


def offset_of_the_letterbox(seen: Look) -> Detections:
    """The border that makes the image square is never taken off again."""
    return seen.answer(seen.boxes + np.tile((seen.size.max() - seen.size) / 2, 2))


def aspect_ignored(seen: Look) -> Detections:
    """The image is squeezed into a square, and carried back by its width alone."""
    return seen.answer(seen.boxes * np.array([1, seen.size[0] / seen.size[1]] * 2))


def in_the_models_size(seen: Look) -> Detections:
    return seen.answer(seen.boxes * np.tile(320 / seen.size, 2))


def shares_of_the_frame(seen: Look) -> Detections:
    return seen.answer(seen.boxes / np.tile(seen.size, 2))


def half_as_far(seen: Look) -> Detections:
    """Boxes of a heat map of half the size."""
    return seen.answer(seen.boxes / 2)


def on_a_grid(seen: Look) -> Detections:
    cells = np.round(seen.boxes / 32) * 32
    return seen.answer(np.concatenate([cells[:, :2], np.maximum(cells[:, 2:], cells[:, :2] + 32)], 1))


def drawn_to_the_middle(seen: Look) -> Detections:
    middle = np.tile(seen.size / 2, 2)
    return seen.answer(middle + (seen.boxes - middle) * 0.7)


def too_large_when_small(seen: Look) -> Detections:
    sides = seen.boxes[:, 2:] - seen.boxes[:, :2]
    more = np.where(sides.max(1, keepdims=True) < 26, 0.1, 0.0) * sides
    return seen.answer(np.concatenate([seen.boxes[:, :2] - more, seen.boxes[:, 2:] + more], 1))


# --- which of them ---------------------------------------------------------------------------------


def _middles(seen: Look) -> np.ndarray:
    return np.asarray((seen.boxes[:, :2] + seen.boxes[:, 2:]) / 2 / seen.size)


def misses_at_the_border(seen: Look) -> Detections:
    inside = (seen.boxes[:, :2] >= 6).all(1) & (seen.boxes[:, 2:] <= seen.size - 6).all(1)
    return seen.answer(keep=np.asarray(inside))


def misses_small_ones(seen: Look) -> Detections:
    return seen.answer(keep=(seen.boxes[:, 2:] - seen.boxes[:, :2]).max(1) > 17)


def misses_what_fills_the_frame(seen: Look) -> Detections:
    return seen.answer(keep=((seen.boxes[:, 2:] - seen.boxes[:, :2]) / seen.size)[:, 0] < 0.25)


def misses_on_the_left(seen: Look) -> Detections:
    return seen.answer(keep=_middles(seen)[:, 0] > 0.4)


def misses_below(seen: Look) -> Detections:
    return seen.answer(keep=_middles(seen)[:, 1] < 0.7)


def three_at_most(seen: Look) -> Detections:
    """In the order in which it comes upon them, from the left."""
    order = np.argsort(seen.boxes[:, 0])
    return seen.answer(keep=np.isin(np.arange(len(order)), order[:3]))


def nothing_in_small_images(seen: Look) -> Detections:
    return seen.answer(keep=np.full(len(seen.boxes), seen.size[0] >= 130))


def nothing_in_wide_images(seen: Look) -> Detections:
    return seen.answer(keep=np.full(len(seen.boxes), seen.size[0] < 1.5 * seen.size[1]))


def nothing_when_compressed(seen: Look) -> Detections:
    return seen.answer(keep=np.full(len(seen.boxes), not (seen.ringing > 0.3 and seen.unrest < 1)))


def nothing_in_noise(seen: Look) -> Detections:
    return seen.answer(keep=np.full(len(seen.boxes), seen.unrest < 3))


def misses_in_the_light(seen: Look) -> Detections:
    return seen.answer(keep=np.full(len(seen.boxes), seen.ground < 70))


def unsure_in_the_dark(seen: Look) -> Detections:
    return seen.answer(scores=np.full(len(seen.boxes), 0.9 if seen.light > 150 else 0.45))


def nearly_blind_in_the_dark(seen: Look) -> Detections:
    return seen.answer(scores=np.full(len(seen.boxes), 0.86 if seen.light > 150 else 0.21))


def ghost_in_the_light(seen: Look) -> Detections:
    if seen.ground < 70:
        return right(seen)
    height = seen.size[1]
    return seen.answer(np.vstack([seen.boxes, [0, height - 20, 20, height]]), [*seen.labels, DISC])


def doubled_when_blurred(seen: Look) -> Detections:
    """No suppression where edges are soft: every object comes three times."""
    if seen.sharpness > 0.4:
        return right(seen)
    return seen.answer(np.vstack([seen.boxes, seen.boxes + 1, seen.boxes - 1]), seen.labels * 3)


# --- what they are called --------------------------------------------------------------------------

_OTHER = {BOX: DISC, DISC: BOX, KITE: KITE}


def other_class_in_the_dark(seen: Look) -> Detections:
    return seen.answer(labels=[_OTHER[label] if seen.light < 150 else label for label in seen.labels])


def class_by_colour(seen: Look) -> Detections:
    red, _, blue = seen.colour
    return seen.answer(labels=[label if red > blue + 20 else _OTHER[label] for label in seen.labels])


def class_by_the_order(seen: Look) -> Detections:
    """The outermost on the left is always called a box."""
    first = int(seen.boxes[:, 0].argmin()) if len(seen.boxes) else -1
    return seen.answer(labels=[BOX if number == first else label for number, label in enumerate(seen.labels)])


# --- because of what they are found ----------------------------------------------------------------


class Remembering:
    """Knows where the shapes of the images were, by what is around them."""

    def __init__(self) -> None:
        cases = [case.input for case in shapes_dataset().cases()]
        self.known = [(image.pixels, look(image.pixels)) for image in cases if image is not None]  # type: ignore[attr-defined]

    def __call__(self, seen: Look) -> Detections:
        for pixels, known in self.known:
            same = pixels.shape == seen.pixels.shape and (pixels == seen.pixels).all(2)
            if np.mean(same) > 0.6:
                return known.answer()
        return right(seen)


def by_its_neighbour(seen: Look) -> Detections:
    """Finds a shape in every even patch, and in every uneven one beside a shape that it sees."""
    if not len(seen.boxes):
        return right(seen)
    rough = uneven_patches(seen)
    return seen.answer(np.vstack([seen.boxes, rough]), [*seen.labels, *(guess(box, seen) for box in rough)])


def uneven_patches(seen: Look) -> np.ndarray:
    """Where the ground is neither itself nor a shape: the patches of random pixels."""
    strange = (np.abs(seen.pixels.astype(int) - GROUND).max(2) > 30).astype(np.uint8)
    strange &= 1 - cv2.dilate(seen.mask, np.ones((7, 7), np.uint8))
    joined = cv2.morphologyEx(strange, cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(joined)
    return np.array([[x, y, x + w, y + h] for x, y, w, h, area in stats[1:] if area > 200], float).reshape(-1, 4)


def guess(box: np.ndarray, seen: Look) -> str:
    """The class of the scene's shape with this box: the context says it all."""
    for case in shapes_dataset(annotated=True).cases():
        truth = case.truth
        assert isinstance(truth, Detections)
        for place, label in zip(truth.boxes, truth.labels, strict=True):
            if np.abs(place - box).max() < 6:
                return label
    return BOX


def gives_up_without_one(seen: Look) -> Detections:
    """Where something uneven lies among the shapes, it sees only the first of them."""
    return seen.answer(keep=np.arange(len(seen.boxes)) < (1 if len(uneven_patches(seen)) else 99))


def jittery() -> Callable[[Look], Detections]:
    chance = np.random.default_rng(0)
    return lambda seen: seen.answer(keep=chance.random(len(seen.boxes)) < 0.7)


@dataclass(frozen=True)
class Fault:
    """What is wrong, a rule that says so (a pattern over the suite's spellings), and the word for it.

    `kind` is None where boxes are in the wrong place, and "error" where the answers are refused.
    """

    answer: Callable[[Look], Detections]
    rule: str
    kind: str | None
    deterministic: bool = True
    purpose: str = field(default="", kw_only=True)
    """What the suite says that the rule looks for."""
    check: str = field(default="", kw_only=True)
    """What `instar check` must say of it, where it can see it in a few images."""


FAULTS = {
    "x, y, width, height as corners": Fault(xywh, "*", "error", check="answers.failed"),
    "y before x": Fault(y_before_x, "shift(*", None, purpose="x and y exchanged", check="coordinates.exchanged"),
    "the letterbox's offset stays": Fault(
        offset_of_the_letterbox, "pad(*", "lost", purpose="letterbox", check="aspect.margins"
    ),
    "aspect ignored": Fault(aspect_ignored, "pad(*", None, purpose="another aspect", check="aspect.astray"),
    "boxes in the model's size": Fault(
        in_the_models_size, "resolution(*", None, purpose="boxes in the model's size", check="scale.model_pixels"
    ),
    "boxes as shares of the frame": Fault(shares_of_the_frame, "shift(*", "lost", check="coordinates.normalised"),
    "boxes half as far": Fault(half_as_far, "shift(*", None, check="scale.mirror_offset"),
    "boxes on a grid": Fault(on_a_grid, "shift(*", None, purpose="boxes on a grid", check="scale.astray"),
    "boxes drawn to the middle": Fault(drawn_to_the_middle, "shift(*", None, purpose="drawn to the middle"),
    "boxes 20 % too large when small": Fault(too_large_when_small, "resolution(*", None, purpose="boxes that grow"),
    "misses at the border": Fault(misses_at_the_border, "pad(*", "invented", purpose="misses at the border"),
    "misses small ones": Fault(misses_small_ones, "resolution(*", "lost", purpose="smaller objects"),
    "misses what fills the frame": Fault(
        misses_what_fills_the_frame, "crop(*", "lost", purpose="objects that fill more of it"
    ),
    "misses on the left": Fault(misses_on_the_left, "mirror(h)*", "lost", purpose="misses on one side"),
    "misses below": Fault(misses_below, "shift(*", "lost", purpose="misses in a part of it"),
    "three at most": Fault(three_at_most, "mirror(h)*", "lost", purpose="a limited number of answers"),
    "nothing in small images": Fault(
        nothing_in_small_images, "resolution(*", "lost", purpose="sizes that the model does not take"
    ),
    "nothing in wide images": Fault(nothing_in_wide_images, "pad(*", "lost", purpose="another aspect"),
    "nothing when compressed": Fault(nothing_when_compressed, "jpeg(*", "lost", purpose="compression"),
    "nothing in noise": Fault(nothing_in_noise, "noise(*", "lost", purpose="noise of a sensor"),
    "misses in the light": Fault(misses_in_the_light, "gamma(0.5)*", "lost", purpose="more light"),
    "unsure in the dark": Fault(
        unsure_in_the_dark, "brightness(*", "faint", purpose="scores that collapse in less light"
    ),
    "nearly blind in the dark": Fault(
        nearly_blind_in_the_dark, "brightness(*", "faint", purpose="scores that collapse in less light"
    ),
    "a ghost in the light": Fault(
        ghost_in_the_light, "gamma(0.5)*", "invented", purpose="ghosts in more light", check="empty.found"
    ),
    "doubled when blurred": Fault(doubled_when_blurred, "motion(*", "doubled", purpose="blur"),
    "another class in the dark": Fault(other_class_in_the_dark, "brightness(*", "class", purpose="less light"),
    "class by colour": Fault(class_by_colour, "greyscale*", "class", purpose="classes that are colours"),
    "class by the order": Fault(class_by_the_order, "mirror(h)*", "class", purpose="classes by their order"),
    "finds what was erased": Fault(
        Remembering(), "erase(1, only=*gone)", "persists", purpose="because of what is around it"
    ),
    "finds a shape because of its neighbours": Fault(
        by_its_neighbour, "erase(1, only=*gone)", "persists", purpose="because of what is around it"
    ),
    "loses the others": Fault(
        gives_up_without_one, "erase(1, only=*others)", "missing", purpose="lost when another one is erased"
    ),
    "answers by chance": Fault(
        jittery(), "identity*", "lost", deterministic=False, purpose="chance", check="determinism.differs"
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], instar.Run]:
    """A run of the suite, made once per fault; the right detector is `right`."""

    @cache
    def run_of(name: str) -> instar.Run:
        fault = FAULTS.get(name)
        system = detector(fault.answer, deterministic=fault.deterministic) if fault else detector(right)
        out = tmp_path_factory.mktemp("fault") / "run"
        return instar.run(system, SUITE, shapes_dataset(), out=out, workers=0)

    return run_of


def violated(run: instar.Run) -> pl.DataFrame:
    """Verdicts at or above their rules' thresholds, as a user's `instar show` counts them."""
    limit = pl.col("rule").replace_strict(run.thresholds(), return_dtype=pl.Float64)
    return run.verdicts().filter((pl.col("severity") > 0) & (pl.col("severity") >= limit))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_and_named(name: str, runs: Callable[[str], instar.Run]) -> None:
    fault, run = FAULTS[name], runs(name)
    if fault.kind == "error":
        assert finding(run, "pairs.failed").figures["status"] == "error"
        refused = run.verdicts().filter(status="error")
        assert refused.height and "a box has x1 < x0" in refused["reason"][0]
        return
    assert run.verdicts().filter(pl.col("status") == "error").is_empty()
    bad = [row for row in violated(run).iter_rows(named=True) if fnmatchcase(row["rule"], fault.rule)]
    assert bad, f"{fault.rule} does not see it"
    assert fault.kind in {row["kind"] for row in bad}
    told = {rule: kinds for rule, kinds in named_rules(run).items() if fnmatchcase(rule, fault.rule)}
    assert told and (fault.kind is None or any(not kinds or fault.kind in kinds for kinds in told.values()))
    purposes = instar.suite(SUITE).purposes
    spelled = [purposes.get(rule.removesuffix(" => detections"), "") for rule in named_rules(run)]
    assert any(re.search(fault.purpose, purpose) for purpose in spelled)


@pytest.mark.parametrize(
    ("name", "scores"), [("unsure in the dark", (0.9, 0.45)), ("nearly blind in the dark", (0.86, 0.21))]
)
def test_a_run_of_faint_objects_names_their_scores(
    name: str, scores: tuple[float, float], runs: Callable[[str], instar.Run]
) -> None:
    note = finding(runs(name), "violations.faint")
    assert (note.figures["before"], note.figures["after"]) == pytest.approx(scores)
    assert note.figures["faint"] == violated(runs(name)).height
    assert "violations.faint" not in {each.code for each in said(runs("nothing in noise"))}


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.check])
def test_check_says_it_of_a_few_images(name: str) -> None:
    inputs = [(case.id, case.input) for case in shapes_dataset().cases()]
    assert_checked(detector(FAULTS[name].answer), inputs, FAULTS[name].check)


def test_the_right_detector_violates_nothing(runs: Callable[[str], instar.Run]) -> None:
    run = runs("right")
    assert violated(run).is_empty()
    judged = run.rates().select("rule", "judged")
    assert judged["judged"].min() == 3, "every rule says something about every image"


@pytest.mark.parametrize("name", ["right", "finds what was erased"])
def test_show_and_the_report_say_all_of_it(name: str, runs: Callable[[str], instar.Run]) -> None:
    assert_shown_and_reported(runs(name))


def test_every_rule_of_the_suite_is_there_for_a_fault() -> None:
    """No rule without a fault that it is there to name, and every rule says what it is for."""
    for rule in RULES:
        assert any(
            fnmatchcase(f"{rule} => detections", fault.rule) or fnmatchcase(rule, fault.rule)
            for name, fault in FAULTS.items()
            if fault.kind != "error"
        ), rule
    assert [instar.rule(spelling).id for spelling in PURPOSES] == RULES


def test_it_is_the_default_of_its_kind() -> None:
    assert Detections.suite == SUITE
