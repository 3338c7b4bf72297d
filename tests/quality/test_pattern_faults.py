"""Seeded faults that many rules show: the leading finding names what they have in common, and no correct or noisy model
gets one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instar
from instar import Case, Dataset, Image, Labels, Poses, Segmentation
from instar.analysis.pattern import leading_pattern, outstanding_rules
from instar.outputs.detections import Detections
from tests.perfect.shapes import BOX, SIZE, Look, painted
from tests.perfect.shapes import seen as look_at
from tests.quality import painted as p
from tests.quality.words import finding, said
from tests.toys import content, image_system

CASES = 24
RULES = (
    "identity+mirror(h)+shift(0.1, 0.1)+shift(-0.13, 0.07)+crop(0.8, top_left)+pad(0.2)+pad(0.25, left_right)"
    "+resolution(0.7)+gamma(0.5)+brightness(0, 0.4)+greyscale+motion(5, 0)+jpeg(40)+noise(4)"
)


@cache
def shapes(number: int) -> Image:
    """Two to eight boxes that do not touch each other."""
    rng = np.random.default_rng(number)
    found: list[tuple[str, int, int, int, int]] = []
    for _ in range(400):
        side = int(rng.integers(17, 32))
        x, y = int(rng.integers(3, SIZE[0] - side - 3)), int(rng.integers(3, SIZE[1] - side - 3))
        new = (BOX, x, y, x + side, y + side)
        if all(x > b[3] + 5 or b[1] > new[3] + 5 or y > b[4] + 5 or b[2] > new[4] + 5 for b in found):
            found.append(new)
        if len(found) == 2 + number % 7:
            break
    return painted(tuple(found))


def dataset(image: Callable[[int], Image | np.ndarray], cases: int = CASES) -> Dataset:
    made = [image(number) for number in range(cases)]
    inputs = [Case(str(n), input=one if isinstance(one, Image) else Image(one)) for n, one in enumerate(made)]
    return Dataset("painted", "", lambda: iter(inputs))


# --- detectors: what the right one sees, spoilt ------------------------------------------------------------------


def right(seen: Look) -> Detections:
    return seen.answer()


def _chance(seen: Look) -> np.random.Generator:
    return np.random.default_rng(int(content(seen.pixels), 16))


def hash_of_pixels(seen: Look) -> Detections:
    return seen.answer(seen.boxes + np.tile(_chance(seen).uniform(-14, 14, 2), 2))


def hash_drops(seen: Look) -> Detections:
    return seen.answer(keep=_chance(seen).random(len(seen.boxes)) < 0.5)


def only_the_images_it_knows(seen: Look) -> Detections:
    known = {content(shapes(number).pixels) for number in range(CASES)}
    return right(seen) if content(seen.pixels) in known else seen.answer(np.zeros((0, 4)), [])


def _middles(seen: Look) -> np.ndarray:
    return np.asarray((seen.boxes[:, :2] + seen.boxes[:, 2:]) / 2 / seen.size)


def misses_the_left_third(seen: Look) -> Detections:
    return seen.answer(keep=_middles(seen)[:, 0] > 1 / 3)


def misses_the_rim(seen: Look) -> Detections:
    return seen.answer(keep=np.asarray((np.abs(_middles(seen) - 0.5) < 0.33).all(1)))


def knows_colours(answer: Callable[[Look], Detections]) -> Callable[[Look], Detections]:
    """Nothing is found without colour: right of a model whose classes are colours."""
    return lambda seen: answer(seen) if np.ptp(seen.colour) > 10 else seen.answer(keep=np.zeros(len(seen.boxes), bool))


def drawn_to_the_middle(seen: Look) -> Detections:
    middle = np.tile(seen.size / 2, 2)
    return seen.answer(middle + (seen.boxes - middle) * 0.7)


def y_before_x(seen: Look) -> Detections:
    return seen.answer(seen.boxes[:, [1, 0, 3, 2]])


def grid(step: float) -> Callable[[Look], Detections]:
    def answer(seen: Look) -> Detections:
        cells = np.round(seen.boxes / step) * step
        return seen.answer(np.concatenate([cells[:, :2], np.maximum(cells[:, 2:], cells[:, :2] + step)], 1))

    return answer


def grid_of_the_frame(seen: Look) -> Detections:
    step = np.tile(seen.size / 10, 2)
    cells = np.round(seen.boxes / step) * step
    return seen.answer(np.concatenate([cells[:, :2], np.maximum(cells[:, 2:], cells[:, :2] + step[:2])], 1))


def lost_at_the_seam(axis: int) -> Callable[[Look], Detections]:
    def answer(seen: Look) -> Detections:
        line = seen.size[axis] / 2
        return seen.answer(keep=(seen.boxes[:, axis] > line) | (seen.boxes[:, axis + 2] < line))

    return answer


def split_at_the_seam(seen: Look) -> Detections:
    boxes, labels, line = [], [], seen.size[0] / 2
    for (x0, y0, x1, y1), label in zip(seen.boxes, seen.labels, strict=True):
        parts = [(x0, min(x1, line)), (max(x0, line), x1)] if x0 < line < x1 else [(x0, x1)]
        boxes += [[a, y0, b, y1] for a, b in parts]
        labels += [label] * len(parts)
    return seen.answer(np.array(boxes), labels)


def at_most_five(seen: Look) -> Detections:
    order = np.argsort(seen.boxes[:, 0])
    return seen.answer(keep=np.isin(np.arange(len(order)), order[:5]))


def the_five_largest(seen: Look) -> Detections:
    area = np.prod(seen.boxes[:, 2:] - seen.boxes[:, :2], 1)
    return seen.answer(keep=np.isin(np.arange(len(area)), np.argsort(-area)[:5]))


def letterbox_stays(seen: Look) -> Detections:
    return seen.answer(seen.boxes + np.tile((seen.size.max() - seen.size) / 2, 2))


def blind_in_the_light(seen: Look) -> Detections:
    return seen.answer(keep=np.full(len(seen.boxes), seen.ground < 70))


def blind_in_other_light(seen: Look) -> Detections:
    known = abs(seen.ground - 40) < 4 and abs(seen.colour - (235, 215, 160)).max() < 12
    return seen.answer(keep=np.full(len(seen.boxes), known))


def blind_without_detail(seen: Look) -> Detections:
    steps = np.abs(np.diff(seen.luma, axis=1))
    grain = float(((steps > 0.5) & (steps < 20)).mean())
    return seen.answer(keep=np.full(len(seen.boxes), seen.sharpness > 0.9 and grain < 0.01))


def jitter(pixels: float, seed: int = 0) -> Callable[[Look], Detections]:
    chance = np.random.default_rng(seed)
    return lambda seen: seen.answer(seen.boxes + np.tile(chance.normal(0, pixels, 2), 2))


def drops(share: float, seed: int = 0) -> Callable[[Look], Detections]:
    chance = np.random.default_rng(seed)
    return lambda seen: seen.answer(keep=chance.random(len(seen.boxes)) >= share)


def leans_on_the_image_before() -> Callable[[Look], Detections]:
    before = np.zeros((0, 4))

    def answer(seen: Look) -> Detections:
        nonlocal before
        smoothed = (seen.boxes + before) / 2 if before.shape == seen.boxes.shape else seen.boxes
        before = smoothed
        return seen.answer(smoothed)

    return answer


# --- poses: a person in every box, and what a careless model makes of them ------------------------------------------

_LEFT = [n for n in range(1, 17) if n % 2]


def _template() -> np.ndarray:
    """Points of a person who is the same from both sides, as shares of the box around them."""
    points = np.zeros((17, 2))
    points[0] = 0.5, 0.0
    for number in _LEFT:
        down, aside = number / 15, 0.5 - 0.02 * number
        points[number], points[number + 1] = (0.5 + aside, down), (0.5 - aside, down)
    return points


TEMPLATE = _template()


def people(seen: Look) -> np.ndarray:
    boxes = seen.boxes[:, None]
    return np.asarray(boxes[..., :2] + TEMPLATE * (boxes[..., 2:] - boxes[..., :2])).reshape(-1, 17, 2)


def _poses(points: np.ndarray) -> Poses:
    return Poses.from_array(points if len(points) else [], skeleton="coco-17")


def right_people(seen: Look) -> Poses:
    return _poses(people(seen))


def people_drift_to_the_middle(seen: Look) -> Poses:
    return _poses(seen.size / 2 + (people(seen) - seen.size / 2) * 0.5)


def people_by_a_hash(seen: Look) -> Poses:
    return _poses(people(seen) + _chance(seen).uniform(-40, 40, 2))


def people_on_a_grid(seen: Look) -> Poses:
    return _poses((np.floor(people(seen) / 16) + 0.5) * 16)


def people_lost_at_the_seam(seen: Look) -> Poses:
    points, line = people(seen), seen.size[0] / 2
    return _poses(points[(points[..., 0].min(1) > line) | (points[..., 0].max(1) < line)])


def five_people(seen: Look) -> Poses:
    points = people(seen)
    return _poses(points[np.argsort(points[:, 0, 0])[:5]])


def nervous_people(seed: int) -> Callable[[Look], Poses]:
    chance = np.random.default_rng(seed)
    return lambda seen: _poses(people(seen) + chance.normal(0, 4, 2))


# --- segmentation and labels ---------------------------------------------------------------------------------------


def _cells(found: np.ndarray) -> Segmentation:
    return Segmentation.from_classes(np.ascontiguousarray(found), ("ground", "red", "blue"))


def right_cells(pixels: np.ndarray) -> Segmentation:
    return _cells(p.cells(pixels))


def cells_by_a_hash(pixels: np.ndarray) -> Segmentation:
    return _cells(np.roll(p.cells(pixels), 20 + int(content(pixels), 16) % 60, 1))


def cells_only_on_the_left(pixels: np.ndarray) -> Segmentation:
    found = p.cells(pixels)
    found[:, int(0.66 * found.shape[1]) :] = 0
    return _cells(found)


def _label(disc: bool) -> Labels:
    return Labels.from_scores(("disc", "square"), [0.95, 0.05] if disc else [0.05, 0.95])


def right_label(pixels: np.ndarray) -> Labels:
    return _label(p.redness(pixels).sum() > 0)


def label_by_a_hash(pixels: np.ndarray) -> Labels:
    return _label(int(content(pixels), 16) % 2 == 0)


def label_by_the_place(pixels: np.ndarray) -> Labels:
    return _label(int(sum(p.middle(pixels)) * 25) % 2 == 0)


# --- what is said of them ------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Callable[[Look], Any], str, dict[str, Any]]] = {
    "pixels' hash moves boxes": (hash_of_pixels, "pattern.any_change", {}),
    "pixels' hash drops boxes": (hash_drops, "pattern.any_change", {}),
    "only the images it knows": (only_the_images_it_knows, "pattern.any_change", {}),
    "misses the left third": (misses_the_left_third, "pattern.position", {}),
    "misses the rim": (misses_the_rim, "pattern.position", {}),
    "misses the rim, knows colours": (knows_colours(misses_the_rim), "pattern.position", {"apart_from": "greyscale"}),
    "boxes drawn to the middle": (drawn_to_the_middle, "pattern.position", {}),
    "y before x": (y_before_x, "pattern.position", {}),
    "a grid of 16 pixels": (grid(16), "pattern.coarse_grid", {"unit": "pixels", "number": 16}),
    "a grid of 32 pixels": (grid(32), "pattern.coarse_grid", {"unit": "pixels", "number": 32}),
    "a grid of ten cells": (grid_of_the_frame, "pattern.coarse_grid", {"unit": "side", "number": 10}),
    "lost at a vertical seam": (lost_at_the_seam(0), "pattern.seam", {"lines": ["vertical"]}),
    "lost at a horizontal seam": (lost_at_the_seam(1), "pattern.seam", {"lines": ["horizontal"]}),
    "split at a seam": (split_at_the_seam, "pattern.seam", {"lines": ["vertical"]}),
    "the first five": (at_most_five, "pattern.most_objects", {"most": 5}),
    "the five largest": (the_five_largest, "pattern.most_objects", {"most": 5}),
    "blind in other light": (blind_in_other_light, "pattern.colour", {}),
    "blind without detail": (blind_without_detail, "pattern.detail", {}),
    "people drift to the middle": (people_drift_to_the_middle, "pattern.position", {}),
    "people by a hash": (people_by_a_hash, "pattern.any_change", {}),
    "people on a grid": (people_on_a_grid, "pattern.coarse_grid", {"unit": "pixels", "number": 16}),
    "people lost at a seam": (people_lost_at_the_seam, "pattern.seam", {"lines": ["vertical"]}),
    "five people": (five_people, "pattern.most_objects", {"most": 5}),
}
OF_PIXELS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "cells by a hash": (cells_by_a_hash, "pattern.any_change"),
    "cells only on the left": (cells_only_on_the_left, "pattern.position"),
    "a label by a hash": (label_by_a_hash, "pattern.any_change"),
    "a label by the place": (label_by_the_place, "pattern.position"),
}
NONE: dict[str, Callable[[], Callable[[Look], Any]]] = {
    "right": lambda: right,
    "right people": lambda: right_people,
    "only in the light": lambda: blind_in_the_light,
    "jitter of 1 pixel": lambda: jitter(1),
    "jitter of 4 pixels": lambda: jitter(4),
    "jitter of 10 pixels": lambda: jitter(10),
    "drops a tenth": lambda: drops(0.1),
    "drops half": lambda: drops(0.5),
    "nervous people": lambda: nervous_people(0),
}


def run_of(answer: Callable[[Look], Any], out: Path, cases: int = CASES, *, deterministic: bool = True) -> instar.Run:
    kind = answer(look_at(shapes(0).pixels)).kind
    system = image_system(lambda pixels: answer(look_at(pixels)), kind, deterministic=deterministic)
    return instar.run(system, RULES, dataset(shapes, cases), out=out / "run", workers=0)


def painted_run(answer: Callable[[np.ndarray], Any], out: Path) -> instar.Run:
    kind = answer(p.sign(0)).kind
    data = dataset(p.sign if kind == "labels" else p.street)
    return instar.run(image_system(answer, kind), kind, data, out=out / "run", workers=0)


def codes(run: instar.Run) -> list[str]:
    return [one.code for one in said(run) if one.code.startswith("pattern.")]


def test_a_letterbox_that_stays_is_named_by_its_rules(tmp_path: Path) -> None:
    """Only another aspect shows it: shifts and mirrors are kept, so that the rules that pad say more than a pattern."""
    run = run_of(letterbox_stays, tmp_path)
    assert not codes(run)
    assert outstanding_rules(run) == {rule for rule in run.manifest.rules if rule.startswith("pad(")}


@pytest.mark.parametrize("name", FAULTS)
def test_the_leading_finding_names_the_pattern(name: str, tmp_path: Path) -> None:
    answer, code, figures = FAULTS[name]
    run = run_of(answer, tmp_path)
    assert codes(run) == [code]
    leading = finding(run, code)
    assert (
        leading.against and leading.figures["p"] <= 0.005 and leading.figures["rate"] >= 3 * leading.figures["others"]
    )
    assert {key: leading.figures[key] for key in figures} == figures
    order = [one.code for one in said(run)]
    assert order.index(code) < order.index("rule.violated")


@pytest.mark.parametrize("name", OF_PIXELS)
def test_the_leading_finding_of_outputs_without_places(name: str, tmp_path: Path) -> None:
    answer, code = OF_PIXELS[name]
    assert codes(painted_run(answer, tmp_path)) == [code]


@pytest.mark.parametrize("name", NONE)
def test_correct_and_noisy_models_show_no_pattern(name: str, tmp_path: Path) -> None:
    run = run_of(NONE[name](), tmp_path, deterministic=name in ("right", "right people", "only in the light"))
    assert codes(run) == []


@pytest.mark.parametrize("answer", [right_cells, right_label])
def test_correct_outputs_without_places_show_no_pattern(answer: Callable[[np.ndarray], Any], tmp_path: Path) -> None:
    assert codes(painted_run(answer, tmp_path)) == []


def test_a_model_with_memory_is_told_by_the_order_alone(tmp_path: Path) -> None:
    run = run_of(leans_on_the_image_before(), tmp_path)
    assert codes(run) == [] and finding(run, "noise.memory").against


def test_a_few_images_show_no_pattern(tmp_path: Path) -> None:
    run = run_of(hash_of_pixels, tmp_path, 6)
    assert codes(run) == [] and finding(run, "rules.any").figures["rate"] == 1.0


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (blind_in_the_light, {"gamma(0.5)"}),
        (misses_the_left_third, {"mirror(h)"}),
        (letterbox_stays, {"pad(0.2)", "pad(0.25, sides=left_right)"}),
        (hash_drops, set()),
        (grid(16), set()),
        (lost_at_the_seam(0), set()),
        (at_most_five, set()),
        (blind_in_other_light, set()),
    ],
)
def test_a_rule_stands_out_if_it_is_violated_more_often_than_others(
    answer: Callable[[Look], Any], named: set[str], tmp_path: Path
) -> None:
    run = run_of(answer, tmp_path)
    found = outstanding_rules(run, pattern=leading_pattern(run))
    assert {rule.partition(" =>")[0] for rule in found} == named


@pytest.mark.parametrize(("cases", "named"), [(1, False), (CASES, True)])
def test_what_a_rule_looks_for_is_named_if_it_stands_out(cases: int, named: bool, tmp_path: Path) -> None:
    system = image_system(lambda pixels: blind_in_the_light(look_at(pixels)), "detections")
    run = instar.run(system, "detections", dataset(shapes, cases), out=tmp_path / "run", workers=0)
    violated = [one for one in said(run) if one.code == "rule.violated"]
    assert [one.figures["rule"].partition(" =>")[0] for one in violated] == ["gamma(0.5)"]
    assert [one.figures["purpose"] is not None for one in violated] == [named]
