"""What is known of the subjects of each case: measured by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import instar
from instar import Detections, Poses
from instar.analysis import Run, subject_columns
from instar.outputs import Output
from instar.outputs.zones import Zones
from instar.skeleton import skeleton
from instar.store import Store
from instar.suites import Suite
from tests.engine.zones import painted
from tests.manifests import manifest_of
from tests.toys import scene, write_scenes

WIDTH, HEIGHT = 400, 300  # the diagonal is 500
PLACES = ["subjects", "subject_size", "subject_x", "subject_y", "subject_off_centre"]


def pose(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    """Landmarks in a box, two at its corners and some absent."""
    points = np.full((17, 2), np.nan)
    points[3:7] = (x0 + x1) / 2, (y0 + y1) / 2
    points[[5, 9]] = [[x0, y1], [x1, y0]]
    return points


def folder(path: Path, kind: type[Output], answers: dict[str, Output | None], **options: object) -> Run:
    """A run with these source outputs; none: the prediction failed."""
    store = Store(path)
    header: dict[str, Any] = {"kind": kind.kind}
    if kind is Poses:
        header["skeleton"] = skeleton("coco-17").to_dict()
    store.write_manifest(manifest_of(kind.kind, output=header, options=options))
    store.append_cases([{"case": case, "status": "ok"} for case in answers], None)
    rows = []
    for case, said in answers.items():
        row = {"case": case, "draw": 0, "width": WIDTH, "height": HEIGHT}
        first = {"status": "error"} if said is None else {"status": "ok", **said.row()}
        later = next(iter(answers.values()))
        assert later is not None
        rows.append({**row, "follow_up": "source", "repeat": 0, **first})
        # of which nobody is to take notice
        rows += [
            {**row, "follow_up": name, "repeat": repeat, "status": "ok", **later.row()}
            for name, repeat in (("source", 1), ("gamma(2)", 0))
        ]
    store.append_predictions(rows, kind.kind)
    return Run(store)


def poses(*people: np.ndarray, scores: list[float] | None = None) -> Poses:
    return Poses.from_array(list(people), skeleton="coco-17", scores=scores)


def test_poses_by_the_box_around_their_landmarks(tmp_path: Path) -> None:
    small, large = pose(0, 0, 40, 30), pose(200, 150, 320, 240)
    table = subject_columns(
        folder(
            tmp_path,
            Poses,
            {
                "corner": poses(small),
                "two": poses(small, large),
                "nobody": poses(),
                "failed": None,
                "outside": poses(pose(-400, 0, 400, 600)),
            },
        )
    )
    assert table.columns == ["case", *PLACES]
    found = {case: row for case, *row in table.iter_rows()}
    assert found["corner"] == pytest.approx([1, 0.1, 0.05, 0.05, 0.9])
    assert found["two"] == pytest.approx([2, 0.3, 0.65, 0.65, 0.3])
    assert found["outside"] == pytest.approx([1, 2.0, 0.0, 1.0, 1.0])
    assert found["nobody"] == [0, None, None, None, None]
    assert found["failed"] == [None] * 5
    assert table.schema["subjects"] == pl.Int64


def test_detections_by_their_boxes_above_the_confidence_of_the_judging(tmp_path: Path) -> None:
    answers: dict[str, Output | None] = {
        "a": Detections.from_xyxy(
            [[0, 0, 400, 300], [180, 140, 220, 160], [10, 10, 20, 20]], ["cat", "dog", "dog"], [0.4, 0.9, 0.5]
        ),
        "b": Detections.from_xyxy([], []),
    }
    table = subject_columns(folder(tmp_path / "own", Detections, answers))
    assert table.rows() == [
        ("a", 2, pytest.approx(math.hypot(40, 20) / 500), 0.5, 0.5, 0.0),
        ("b", 0, None, None, None, None),
    ]
    told = subject_columns(folder(tmp_path / "told", Detections, answers, confidence=0.3))
    assert told.row(0) == ("a", 3, 1.0, 0.5, 0.5, 0.0)


def test_zones_by_the_share_of_the_picture(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 3)
    rules = Suite("test", tuple(instar.rule(text) for text in ("colour_wheel(90, red)", "mirror(h)")))
    run = instar.run(
        "tests.toys:rectangles", rules, photos, out=tmp_path / "run", workers=0, zones="tests.engine.zones:painted"
    )
    table = subject_columns(run)
    assert table.columns == ["case", *PLACES, *(f"zone_{name}" for name in painted(scene(0).pixels).names)]
    assert table["case"].to_list() == run.cases()["case"].to_list()
    for number in range(3):
        zones = painted(scene(number).pixels)
        row = table.filter(case=f"{number:03d}.png").row(0, named=True)
        for name in zones.names:
            assert row[f"zone_{name}"] == pytest.approx((zones.mask(name) > 0).mean())
        assert sum(row[f"zone_{name}"] for name in ("background", "red", "green", "blue")) == pytest.approx(1)


def test_zones_that_could_not_be_had_are_no_columns(tmp_path: Path) -> None:
    run = folder(tmp_path, Poses, {"a": poses(pose(0, 0, 40, 30))})
    run.store.append_needs([{"case": "a", "need": "zones", "status": "not applicable", "message": "no segmenter"}])
    assert subject_columns(run).columns == ["case", *PLACES]


def test_a_value_in_several_zones_counts_in_each() -> None:
    labels = np.array([[0, 1], [2, 9]], np.uint8)
    assert Zones(labels, {"skin": (1, 2), "person": (1, 2, 3), "back": (0,)}).shares() == {
        "skin": 0.5,
        "person": 0.5,
        "back": 0.25,
    }


def test_forecasts_and_runs_without_answers_have_no_subjects(tmp_path: Path) -> None:
    forecast = instar.Forecast.from_array(np.zeros((2, 3, 2)))
    assert subject_columns(folder(tmp_path / "forecast", instar.Forecast, {"a": forecast})).rows() == [("a",)]
    store = Store(tmp_path / "none")
    store.write_manifest(manifest_of())
    store.append_cases([{"case": "a", "status": "error"}], None)
    assert subject_columns(Run(store)).rows() == [("a",)]
