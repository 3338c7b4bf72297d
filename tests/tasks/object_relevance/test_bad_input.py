"""Objects that are none, and answers that are none: every one of them ends in a row that says so, or in an error at
once; none is taken for an object that a detector handles well."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.explain import explain
from tests.perfect.test_object_relevance import SIZE, picture, seen

ERASE, NOISE, GROUND = "erase(1)", "object_noise(0.5, 16)", "background_noise(16)"
RULES = f"{ERASE} => presence(gone) + {NOISE} => presence(kept) + {GROUND} => presence(kept)"
BY_MASK = RULES.replace(") =>", ", by=mask) =>")
IMAGE, TRUTH = picture(0)
FOUND = [f"0-{name}" for name in TRUTH.labels]

Answer = Callable[[np.ndarray], Detections]
Rows = dict[tuple[str, str], tuple[float | None, str, str | None]]


def ran(truth: Any, folder: Path, system: Answer = seen, rules: str = RULES) -> instar.Run:
    def cases() -> Any:
        return iter([Case("0", input=IMAGE, truth=truth)])

    return instar.run(
        system, rules, Dataset("one picture", "", cases, truth="detections"), out=folder / "run", workers=0
    )


def rows(run: instar.Run) -> Rows:
    """Severity, status and reason by target and transformation; nothing has a severity without being ok, or twice."""
    table = run.verdicts()
    assert table.select("target", "rule").is_unique().all()
    assert (table["severity"].is_not_null() == (table["status"] == "ok")).all()
    assert (table["reason"].is_null() == (table["status"] == "ok")).all()
    assert set(table["rule"]) == set(run.rules()["rule"]), "no rule goes without a row"
    assert explain(run, "0"), "and there is something to say about the image"
    run.rates(by="target")
    return {
        (row["target"], row["rule"].partition(" => ")[0]): (row["severity"], row["status"], row["reason"])
        for row in table.iter_rows(named=True)
    }


def not_applicable(found: Rows, target: str, rule: str, words: str) -> None:
    severity, status, reason = found[target, rule]
    assert (severity, status) == (None, "not applicable") and words in str(reason)


# --- annotations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "box",
    [
        [10, 10, 10, 10],
        [10, 10, 10, 30],
        [10.6, 10.6, 10.9, 10.9],
        [200, 200, 220, 220],
        [-50, -50, -1, -1],
        [96, 0, 120, 72],
    ],
)
def test_an_object_without_a_pixel_in_the_picture(box: list[float], tmp_path: Path) -> None:
    known = Detections.from_xyxy([*TRUTH.boxes, box], [*TRUTH.labels, "red"], ids=[*TRUTH.ids, "none"])
    found = rows(ran(known, tmp_path / "beside"))
    for rule in (ERASE, NOISE, GROUND):
        not_applicable(found, "none", rule, "no pixel of the object is in the image")
        assert all(found[target, rule] == (0, "ok", None) for target in FOUND), "the others are judged as ever"
    alone = rows(ran(Detections.from_xyxy([box], ["red"], ids=["none"]), tmp_path / "alone"))
    not_applicable(alone, "whole", ERASE, "no objects in this image")
    not_applicable(alone, "whole", NOISE, "no objects in this image")
    not_applicable(alone, "none", GROUND, "no pixel of the object is in the image")


@pytest.mark.parametrize("box", [[0, 0, 96, 72], [-10, -10, 106, 82], [-1e6, -1e6, 1e6, 1e6]])
def test_an_object_that_is_the_whole_picture(box: list[float], tmp_path: Path) -> None:
    def everything(pixels: np.ndarray) -> Detections:
        return Detections.from_xyxy([box], ["red"])

    found = rows(ran(Detections.from_xyxy([box], ["red"], ids=["all"]), tmp_path, everything))
    assert found["all", ERASE] == (1, "ok", None), "it was erased, and is still found"
    assert found["all", NOISE] == (0, "ok", None)
    not_applicable(found, "whole", GROUND, "the objects leave no background")


def test_an_image_without_objects(tmp_path: Path) -> None:
    found = rows(ran(Detections.from_xyxy([], []), tmp_path))
    assert set(found) == {("whole", rule) for rule in (ERASE, NOISE, GROUND)}
    for rule in (ERASE, NOISE, GROUND):
        not_applicable(found, "whole", rule, "no objects in this image")


def test_a_class_that_the_detector_does_not_know(tmp_path: Path) -> None:
    known = Detections.from_xyxy([*TRUTH.boxes, [1, 1, 9, 9]], [*TRUTH.labels, "unicorn"], ids=[*TRUTH.ids, "u"])
    run = ran(known, tmp_path)
    for rule in (ERASE, NOISE, GROUND):
        not_applicable(rows(run), "u", rule, "the system never says 'unicorn' in this run: it may not know this class")
    assert set(run.rates(by="target")["judged"]) == {3}, "that it stays unfound is no merit"
    (said,) = [one for one in explain(run, "0") if one.target == "u"]
    assert said.reliable is None and "may not know this class" in said.why


def test_names_that_do_not_agree_at_all(tmp_path: Path) -> None:
    """A dataset that says Red where the detector says red: not a flawless run, but one that judges nothing."""
    run = ran(Detections.from_xyxy(TRUTH.boxes, [label.title() for label in TRUTH.labels]), tmp_path)
    assert run.rates(by="target")["judged"].to_list() == [0, 0, 0]
    assert {status for _, status, _ in rows(run).values()} == {"not applicable"}


def test_a_class_that_is_found_only_in_follow_ups_is_known(tmp_path: Path) -> None:
    def wakes_up(pixels: np.ndarray) -> Detections:
        return Detections.from_xyxy([], []) if (pixels == 128).all(-1).mean() > 0.3 else seen(pixels)

    found = rows(ran(TRUTH, tmp_path, wakes_up))
    assert {found[target, GROUND][0] for target in FOUND} == {1}


@pytest.mark.parametrize("shape", [(10, 10), (96, 72), (72, 97), (1, 96)])
def test_masks_of_another_size(shape: tuple[int, int], tmp_path: Path) -> None:
    known = Detections.from_xyxy(TRUTH.boxes, TRUTH.labels, ids=TRUTH.ids, masks=np.ones((3, *shape), bool))
    found = rows(ran(known, tmp_path / "mask", rules=BY_MASK))
    assert {target for target, _ in found} == {"whole"}
    for target, rule in found:
        not_applicable(found, target, rule, f"masks are {shape[1]}×{shape[0]}, the image is 96×72; by=box")
    assert rows(ran(known, tmp_path / "box"))[FOUND[0], ERASE] == (0, "ok", None), "boxes do as well"


def test_masks_that_are_missing_or_empty(tmp_path: Path) -> None:
    without = rows(ran(TRUTH, tmp_path / "without", rules=BY_MASK))
    assert {reason for _, _, reason in without.values()} == {
        "the objects of this case have no masks; by=box takes their boxes"
    }
    empty = Detections.from_xyxy(TRUTH.boxes, TRUTH.labels, ids=TRUTH.ids, masks=np.zeros((3, 72, 96), bool))
    found = rows(ran(empty, tmp_path / "empty", rules=BY_MASK))
    not_applicable(found, "whole", "erase(1, by=mask)", "no object has a pixel in its centred part")
    not_applicable(found, "whole", "object_noise(0.5, 16, by=mask)", "no object has a pixel in its centred part")
    full = Detections.from_xyxy(TRUTH.boxes, TRUTH.labels, ids=TRUTH.ids, masks=np.ones((3, 72, 96), bool))
    not_applicable(
        rows(ran(full, tmp_path / "full", rules=BY_MASK)),
        "whole",
        "background_noise(16, by=mask)",
        "the objects leave no background",
    )


def test_annotations_that_are_no_boxes_are_refused_at_once() -> None:
    for box in ([np.nan, 0, 5, 5], [0, 0, np.inf, 5], [0, 0, 5, -np.inf]):
        with pytest.raises(ValueError, match="not a finite number"):
            Detections.from_xyxy([box], ["red"])
        with pytest.raises(ValueError, match="not a finite number"):
            Detections(np.array([box], np.float32), ("red",), np.ones(1, np.float32))
    with pytest.raises(ValueError, match="x1 < x0 or y1 < y0"):
        Detections.from_xyxy([[9, 9, 3, 3]], ["red"])
    with pytest.raises(ValueError, match="'a' is that of several"):
        Detections.from_xyxy(TRUTH.boxes, TRUTH.labels, ids=["a", "a", "b"])


def test_a_file_of_bad_annotations(tmp_path: Path) -> None:
    """Each is left out, and told; the one that is right is judged."""
    (tmp_path / "0.png").write_bytes(cv2.imencode(".png", cv2.cvtColor(IMAGE.pixels, cv2.COLOR_RGB2BGR))[1].tobytes())
    x0, y0, x1, y1 = (float(side) for side in TRUTH.boxes[0])
    right = [x0, y0, x1 - x0, y1 - y0]
    boxes = [
        right,
        [float("nan"), 0, 5, 5],
        [0, 0, float("inf"), 5],
        [0, 0, 1e300, 5],
        [1, 1, 0, 0],
        [9, 9, -5, 5],
        ["a", 1, 2, 3],
        [1, 2, 3],
        None,
        right,
        right,
    ]
    entries = [
        {"id": number, "image_id": 1, "category_id": 1, "iscrowd": 0, "bbox": box} for number, box in enumerate(boxes)
    ]
    entries[-2]["category_id"], entries[-1]["id"] = 99, 0
    (tmp_path / "instances.json").write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "0.png", "width": SIZE[0], "height": SIZE[1]}],
                "categories": [{"id": 1, "name": "red"}],
                "annotations": entries,
            }
        )
    )
    place = str(tmp_path / "instances.json")
    told = " ".join(instar.dataset(place).notes)
    assert "7 annotations left out, whose bbox is not x, y, width, height: 1, 2, 3 and 4 more" in told
    assert "1 annotation left out, whose bbox has no area: 4" in told
    assert "of categories that are not listed: 9" in told and "with the id of another one" in told
    table = instar.run(seen, RULES, place, out=tmp_path / "run", workers=0).verdicts()
    assert table.select("target", "severity").rows() == [("0", 0.0)] * 3


boxes = st.tuples(*[st.one_of(st.floats(-200, 300), st.integers(-5, 100), st.sampled_from([0, 96, 72, 1e6]))] * 4).map(
    lambda four: [min(four[0], four[2]), min(four[1], four[3]), max(four[0], four[2]), max(four[1], four[3])]
)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(boxes, st.sampled_from(["red", "green", "blue", "unicorn"])), max_size=4))
def test_whatever_the_boxes_every_rule_says_something_of_every_object(given_objects: list[Any]) -> None:
    known = Detections.from_xyxy([box for box, _ in given_objects], [label for _, label in given_objects])
    with tempfile.TemporaryDirectory() as folder:
        found = rows(ran(known, Path(folder)))
    for rule in (ERASE, NOISE, GROUND):
        told = {target for target, of in found if of == rule}
        assert told in ({"whole"}, {str(number) for number in range(len(known))})
    assert all(status in ("ok", "not applicable") for _, status, _ in found.values())


# --- answers ---------------------------------------------------------------------------------------


def answering(change: Callable[[Detections], Detections], *, always: bool = False) -> Answer:
    """A detector that answers rubbish: always, or only where there is noise around the objects."""

    def system(pixels: np.ndarray) -> Detections:
        return change(seen(pixels)) if always or (pixels == 128).all(-1).mean() < 0.3 else seen(pixels)

    return system


RUBBISH: dict[str, tuple[Callable[[Detections], Detections], str]] = {
    "NaN": (lambda said: Detections.from_xyxy(said.boxes * np.nan, said.labels), "not a finite number"),
    "NaN, past the constructor": (
        lambda said: Detections(said.boxes * np.nan, said.labels, said.scores),
        "not a finite number",
    ),
    "a score of NaN": (lambda said: Detections(said.boxes, said.labels, said.scores * np.nan), "not a finite number"),
    "corners exchanged": (lambda said: Detections.from_xyxy(said.boxes[:, [2, 3, 0, 1]], said.labels), "x1 < x0"),
    "a label too few": (lambda said: Detections(said.boxes, said.labels[1:], said.scores), "need as many labels"),
    "masks of another size": (
        lambda said: Detections.from_xyxy(said.boxes, said.labels, masks=np.ones((len(said), 5, 5), bool)),
        "the masks are 5×5, the image is 96×72",
    ),
}


@pytest.mark.parametrize("name", list(RUBBISH))
def test_an_answer_that_is_none_is_an_error_of_its_rows(name: str, tmp_path: Path) -> None:
    change, words = RUBBISH[name]
    some = rows(ran(TRUTH, tmp_path / "some", answering(change)))
    severity, status, reason = some["whole", GROUND]
    assert (severity, status) == (None, "error") and words in str(reason)
    for rule in (ERASE, NOISE):
        assert all(some[target, rule] == (0, "ok", None) for target in FOUND), "the other rules are judged"
    every = rows(ran(TRUTH, tmp_path / "always", answering(change, always=True)))
    assert set(every) == {("whole", rule) for rule in (ERASE, NOISE, GROUND)}
    assert all(
        status == "error" and str(reason).startswith("the source: ") and words in str(reason)
        for _, status, reason in every.values()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda said: Detections.from_xyxy(said.boxes[:, [0, 1, 0, 1]], said.labels),
        lambda said: Detections.from_xyxy(said.boxes + 1000, said.labels),
        lambda said: Detections.from_xyxy(np.tile([-1e6, -1e6, 1e6, 1e6], (len(said), 1)), said.labels),
        lambda said: Detections.from_xyxy(said.boxes, ["unicorn"] * len(said)),
        lambda said: Detections.from_xyxy([], []),
    ],
    ids=["no area", "elsewhere", "everywhere", "another class", "nothing"],
)
def test_a_box_that_is_not_about_the_object_is_none(change: Callable[[Detections], Detections], tmp_path: Path) -> None:
    run = ran(TRUTH, tmp_path, answering(change))
    lost = run.verdicts().filter(pl.col("rule").str.starts_with(GROUND))
    assert lost.select("severity", "kind", "status").unique().rows() == [(1.0, "missing", "ok")]
    rows(run)


def test_the_objects_of_the_system_itself_may_be_degenerate(tmp_path: Path) -> None:
    """Without annotations they are what it found in the source."""

    def odd(pixels: np.ndarray) -> Detections:
        said = seen(pixels)
        return Detections.from_xyxy([*said.boxes, [5, 5, 5, 5], [300, 300, 310, 310]], [*said.labels, "red", "dot"])

    found = rows(ran(None, tmp_path, odd))
    for rule in (ERASE, NOISE, GROUND):
        for target in ("3", "4"):
            not_applicable(found, target, rule, "no pixel of the object is in the image")
        assert found["0", rule] == (0, "ok", None)
