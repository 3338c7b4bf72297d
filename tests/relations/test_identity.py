"""An output compared with itself is never a violation, whatever the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar import Detections, Poses
from instar.outputs import Output, output_kind
from instar.outputs.caption import Caption
from instar.outputs.forecast import Forecast
from instar.outputs.labels import Labels
from instar.outputs.segmentation import Segmentation
from instar.relations import Evidence, relations, rule
from instar.scene import Scene, Track
from instar.skeleton import skeleton
from instar.store import Schema, rows_frame
from instar.transforms import Change

SIZE = (60, 40)
SCENE = Scene(np.ones(SIZE[::-1], np.uint8), ("background", "pavement"), np.array([[10.0, 20], [12, 20]]), steps=4)
RELATIONS: Mapping[str, tuple[str, ...]] = {
    "poses": ("poses", "poses(handedness=kept)"),
    "accuracy": ("accuracy",),
    "detections": ("detections",),
    "presence": (
        "presence(gone)",
        "presence(kept)",
        "presence(others)",
        "presence(gone, strict=true, least=0, unfound=count, draws=1, shared=true)",
        "presence(kept, strict=true, draws=1, shared=true)",
    ),
    "class_kept": ("class_kept",),
    "class_overlap": ("class_overlap",),
    "objects": ("objects",),
    "numbers": ("numbers",),
    "verbatim": ("verbatim",),
    # as published (test=z), each run of the source is a target of its own, and differs from the other ones
    "wvc": ("wvc",),
    "hvc": ("hvc",),
    "direction": ("direction(increase)", "direction(decrease)", "direction(avoid)"),
    "follows": ("follows",),
}
"""Every relation over one case, in the ways in which rules spell it."""
TRUE = ("presence", "accuracy")
"""Relations that take ground truth."""
# fmt: off
OPTIONS: Mapping[str, tuple[object, ...]] = {
    "confidence": (0.5, 0.0, 0.3, 1.0), "margin": (0.2, 0.01, 0.5, 1.0), "visibility": (0.0, 0.5),
    "share": (0.5, 0.0, 1.0), "partly": (0.2, 1.0), "outside": ("leave", "keep"), "space": ("pixels", "normalised"),
    "aggregate": ("median", "max", "mean"), "landmarks": ("", "all"), "empty": ("leave", "keep"), "top": (1, 3),
    "normaliser": ("body", "part", "box", "image", "pixels"), "reference": ("auto", "source"),
    "slack": (0.008, 0.0), "least": (0.01, 0.0), "numbers": ("shared", "agreed"),
}
# fmt: on
SCORES = st.sampled_from([0.0, 0.01, 0.3, 0.31, 0.45, 0.4999999, 0.5, 0.5000001, 0.52, 0.69, 0.9, 1.0])


def test_every_relation_over_one_case_is_here() -> None:
    assert set(RELATIONS) == {name for name, each in relations().items() if each.over == "case"}


@st.composite
def detections(draw: st.DrawFn) -> Detections:
    corner, side = st.integers(-200, 200), st.sampled_from([0.0, 1e-6, 1.0, 7.5, 20.0, 60.0, 500.0])
    new = st.tuples(corner, corner, side, side).map(lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3]))
    boxes: list[tuple[float, float, float, float]] = []
    for _ in range(draw(st.integers(0, 9))):
        boxes.append(draw(st.one_of(new, st.sampled_from(boxes)) if boxes else new))
    count = len(boxes)
    labels = draw(st.lists(st.sampled_from(["sheep", "dog"]), min_size=count, max_size=count))
    scores = draw(st.lists(SCORES, min_size=count, max_size=count))
    masks = None
    if draw(st.booleans()):
        rng, share = np.random.default_rng(draw(st.integers(0, 9))), draw(st.sampled_from([0.0, 0.5, 1.0]))
        masks = rng.random((count, *SIZE[::-1])) < share
    return Detections.from_xyxy(np.reshape(boxes, (-1, 4)), labels, scores, masks=masks)


@st.composite
def poses(draw: st.DrawFn, name: str = "coco-17") -> Poses:
    bones = skeleton(name)
    count = len(bones.landmarks)
    people: list[npt.NDArray[np.float64]] = []
    for _ in range(draw(st.integers(0, 8))):
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        place, size = rng.uniform(-20, 80, 2), draw(st.sampled_from([0.0, 1.0, 10.0, 40.0, 1e4]))
        person = place + rng.uniform(-0.5, 0.5, (count, 2)) * size
        other = draw(st.integers(0, 2 * len(people)))
        if other < len(people):
            person = people[other].copy()
        person[rng.random(count) < draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))] = np.nan
        people.append(person)
    scores = draw(st.lists(SCORES, min_size=len(people), max_size=len(people)))
    return Poses.from_array(np.reshape(people, (-1, count, 2)), skeleton=bones, scores=scores)


@st.composite
def segmentations(draw: st.DrawFn) -> Segmentation:
    width, height = draw(st.sampled_from([(1, 1), (7, 5), (60, 40), (90, 61)]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    block = draw(st.sampled_from([1, 3, 50]))
    cells = rng.choice([0, 1, 2, 255], (height // block + 1, width // block + 1))
    cells = cells.repeat(block, 0).repeat(block, 1)[:height, :width]
    return Segmentation.from_classes(cells, ["road", "car", "left wall"], size=SIZE)


@st.composite
def forecasts(draw: st.DrawFn, futures: int = 3) -> Forecast:
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    paths = rng.uniform(-30, 90, (futures, 4, 2)) * draw(st.sampled_from([0.0, 0.001, 1.0, 100.0]))
    shape = draw(st.sampled_from([None, (1, 1), (5, 7), (40, 60), (33, 81)]))
    probability = None if shape is None else rng.random(shape) ** 9 + 1e-9
    return Forecast.accept(Forecast.from_array(paths, probability), SCENE)


@st.composite
def labels(draw: st.DrawFn) -> Labels:
    names = draw(st.lists(st.sampled_from(["cat", "dog", "left hand", "right hand"]), unique=True))
    return Labels.from_scores(names, draw(st.lists(SCORES, min_size=len(names), max_size=len(names))))


WORDS = (
    "a",
    "an",
    "two",
    "of",
    "group",
    "herd",
    "sheep",
    "dog",
    "dogs",
    "people",
    "bus",
    "glasses",
    "and",
    "on",
    "left",
)
CAPTIONS = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
OUTPUTS: Mapping[str, st.SearchStrategy[list[Any]]] = {
    "detections": st.lists(detections(), min_size=1, max_size=1),
    "poses": st.one_of([st.lists(poses(name), min_size=1, max_size=1) for name in ("coco-17", "hand-21")]),
    "segmentation": st.lists(segmentations(), min_size=1, max_size=1),
    "labels": st.lists(labels(), min_size=1, max_size=1),
    "caption": st.lists(CAPTIONS.map(Caption.from_text), min_size=1, max_size=1),
    "forecast": st.one_of(
        [
            st.lists(forecasts(futures), min_size=1, max_size=3).map(lambda some: some * (4 - len(some)))
            for futures in (1, 3)
        ]
    ),
}
"""The predictions of one input: repeats of forecasts, one of everything else."""


@pytest.mark.parametrize("spelled", [text for texts in RELATIONS.values() for text in texts])
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_output_compared_with_itself_is_no_violation(spelled: str, data: st.DataObject) -> None:
    bound = rule(f"identity => {spelled}").relation
    assert bound is not None
    relation = bound.relation
    outputs = data.draw(OUTPUTS[relation.output])
    truths = OUTPUTS[relation.output].map(lambda some: some[0]) if relation.name in TRUE else st.nothing()
    truth = data.draw(st.none() | truths)
    options = {each.name: each.default for each in relation.options}
    options |= {name: data.draw(st.sampled_from(OPTIONS[name])) for name in options if name in OPTIONS}
    if "shared" in spelled or data.draw(st.booleans()):
        options |= {name: 0.0 for name in ("margin",) if name in options and relation.output != "labels"}
    judged = relation.judge(_identity(outputs, truth, dict(bound.values), options))
    assert judged.filter(judged["severity"] > 0).is_empty(), judged.to_dicts()
    if "p" in judged.columns:
        assert judged.filter(judged["p"] <= 0.05).is_empty(), judged.to_dicts()


def _identity(outputs: list[Output], truth: Output | None, parameters: Any, options: Any) -> Evidence:
    """Outputs as the source's and as those of a follow-up in which nothing was changed."""
    kind = output_kind(outputs[0].kind)
    keys: Schema = {"case": pl.String, "follow_up": pl.String, "draw": pl.Int32, "repeat": pl.Int32}
    schema = {**keys, **Change.columns, **kind.columns}
    change = Change.none(SIZE).row()
    sources, follow_ups = (
        rows_frame(
            [
                {"case": "a", "follow_up": name, "draw": 0, "repeat": repeat, **change, **one.row()}
                for repeat, one in enumerate(outputs)
            ],
            schema,
        )
        for name in ("source", "identity")
    )
    case: dict[str, Any] = {"case": "a", "track": Track.of(SCENE).json()}
    columns: dict[str, Any] = {"case": pl.String, "track": pl.String}
    if truth is not None:
        case |= {f"truth_{name}": value for name, value in truth.row().items()}
        columns |= {f"truth_{name}": dtype for name, dtype in kind.columns.items()}
    cases = rows_frame([case], columns)
    header = None if truth is None else truth.header()
    return Evidence(outputs[0].header(), cases, sources, follow_ups, parameters, options, truth=header)
