"""Every case has a verdict under every rule of every suite, or a row that says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import instar
from instar import Caption, Case, Dataset, Detections, Image, Labels, Poses, Segmentation, Suite
from instar.engine.judge import UNSAID
from instar.outputs.forecast import Forecast
from instar.relations import Rule, levels_of
from instar.scene import Scene
from instar.suites import suites
from tests.perfect.walker import Stroller, blocks, predictor
from tests.toys import _centres, _pose, rectangles, scene

SIZE = (64, 48)


def _images() -> Iterable[Case]:
    """Nothing, one thing alone, and several: with annotations and without."""
    for number, objects in enumerate((0, 1, 3)):
        image = scene(number, SIZE, objects)
        seen = rectangles(image.pixels)
        yield Case(f"{objects} labelled", input=image, truth=replace(seen, ids=tuple(map(str, range(len(seen))))))
        yield Case(f"{objects} unlabelled", input=Image(image.pixels // 2 * 2))


def _scenes() -> Iterable[Case]:
    """Somebody who walks among blocks, somebody who stands, and somebody who is about to leave the map."""
    (walks,) = blocks(1)
    yield Case("walks", input=walks)
    yield Case("stands", input=replace(walks, past=np.repeat(walks.past[-1:], 8, 0)))
    yield Case("leaves", input=replace(walks, past=np.array([[160.0 + 2 * step, 60.0] for step in range(8)])))


def _poses(pixels: np.ndarray) -> Poses:
    return _pose(_centres(pixels))


def _words(pixels: np.ndarray) -> Caption:
    names = {"red": "a dog", "green": "a cat", "blue": "a car"}
    return Caption(" and ".join(names[label] for label in rectangles(pixels).labels))


def _labels(pixels: np.ndarray) -> Labels:
    names = rectangles(pixels).labels
    return Labels.from_scores(list(dict.fromkeys(names)), [0.8 / (place + 1) for place in range(len(set(names)))])


def _cells(pixels: np.ndarray) -> Segmentation:
    apart = np.ptp(pixels.astype(int), axis=2) > 60
    cells = np.where(apart, 1 + pixels.argmax(2), 0).astype(np.uint8)
    return Segmentation.from_classes(cells, ("ground", "red", "green", "blue"))


def _stays(scene: Scene, seed: int) -> Forecast:
    return Forecast.from_array(np.broadcast_to(scene.position, (2, scene.steps, 2)))


def _declared(kind: str, answer: Callable[[np.ndarray], Any]) -> Any:
    return instar.declare(kind=kind)(lambda pixels: answer(pixels))


SYSTEMS: dict[str, tuple[Any, Any]] = {
    "poses": (_poses, lambda pixels: Poses.from_array([], skeleton="coco-17")),
    "detections": (rectangles, lambda pixels: Detections.from_xyxy(np.zeros((0, 4)), [])),
    "caption": (_words, lambda pixels: Caption("")),
    "labels": (_labels, lambda pixels: Labels.from_scores([], [])),
    "segmentation": (_cells, lambda pixels: Segmentation.from_classes(np.zeros((4, 4), np.uint8), ("ground",))),
    "forecast": (Stroller(futures=4), _stays),
}
"""One that finds something, and one that finds nothing or goes nowhere."""


def _kinds_of_rules(kind: str) -> tuple[Rule, ...]:
    """Of all suites of a kind, one rule for each relation over a case and each family of changes.

    Rules over all cases are made of those of their levels.
    """
    chosen: dict[object, Rule] = {}
    for one in (each.for_output(kind) for suite in suites().values() if suite.output == kind for each in suite.rules):
        per_case = one if one.relation.relation.over == "case" else levels_of(one, kind)[0]
        families = tuple(step.family.name for step in per_case.transformations[0].steps)
        chosen.setdefault((per_case.relation.id, families), per_case)
    return tuple(chosen.values())


@pytest.mark.filterwarnings("ignore::instar.api.NothingTold")
@pytest.mark.parametrize("which", [0, 1], ids=["finds", "finds nothing"])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_every_pair_ends_in_a_row_that_says_what_happened(kind: str, which: int, tmp_path: Path) -> None:
    answer, rules = SYSTEMS[kind][which], _kinds_of_rules(kind)
    cases = list(_scenes() if kind == "forecast" else _images())
    truth, inputs = ("detections", "image") if kind != "forecast" else (None, "scene")
    data = Dataset("some", "", lambda: iter(cases), truth=truth, inputs=inputs)
    system = predictor(answer) if kind == "forecast" else _declared(kind, answer)
    run = instar.run(system, Suite("some", rules, output=kind), data, out=tmp_path / "run", workers=0, zones="none")
    options = {tuple(suite.options.items()) for suite in suites().values() if suite.output == kind}
    known = {option.name for one in run.bound_rules() for option in one.relation.relation.options}
    for chosen in {(), *options, *({(("reference", "truth"),)} if "reference" in known else ())}:
        verdicts = run.verdicts(**{name: value for name, value in chosen if name in known})
        pairs = set(verdicts.drop_nulls("case").select("case", "rule").iter_rows())
        assert {(case.id, rule) for case in cases for rule in run.manifest.rules} - pairs == set(), chosen
        unjudged = verdicts.filter(pl.col("severity").is_null())
        assert unjudged["reason"].null_count() == 0 and UNSAID not in set(unjudged["reason"])
