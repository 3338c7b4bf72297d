"""Runs in which every prediction failed, or no class is named, of every kind: what shows a run shows these too."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient

import instar
from instar.report import show_run
from instar.report.page import make_report, page
from instar.viewer import application
from tests.engine.test_scenes import on_files
from tests.missing import module
from tests.toys import write_scenes

WHY = "the weights are not there"


def refusing(kind: type[Any]) -> Callable[[np.ndarray], Any]:
    def predict(pixels: np.ndarray) -> Any:
        raise RuntimeError(WHY)

    predict.__annotations__["return"] = kind
    return predict


def walking_off(scene: Any, seed: int) -> instar.Forecast:
    raise RuntimeError(WHY)


SUITES = {
    "poses": instar.Poses,
    "hands": instar.Poses,
    "hand-pose": instar.Poses,
    "detections": instar.Detections,
    "object-relevance/erase": instar.Detections,
    "labels": instar.Labels,
    "segmentation": instar.Segmentation,
    "captions": instar.Caption,
    "forecasts": instar.Forecast,
}


@pytest.mark.parametrize("suite", SUITES)
def test_a_run_without_answers_is_shown_with_the_reason(suite: str, tmp_path: Path) -> None:
    """Those of labels, segmentation and hand-pose ended `instar show` or the report with a traceback."""
    module("vl_convert")
    scenes = suite == "forecasts"
    cases = on_files(tmp_path, 3) if scenes else write_scenes(tmp_path / "images", 3)
    system = walking_off if scenes else refusing(SUITES[suite])
    with pytest.warns(UserWarning, match="not one input was answered"):
        run = instar.run(system, suite, cases, out=tmp_path / "run", workers=0, zones="none")
    assert run.manifest.output is None, "the run must be one of which nothing is known"
    printed = io.StringIO()
    show_run(Console(file=printed, width=200), run)
    assert WHY in printed.getvalue()
    assert WHY in unescape(page(make_report([run], images=4)))
    with TestClient(application([run.folder], port=80), base_url="http://127.0.0.1") as client:
        for address in ("/", "/gallery?status=failed", f"/case?run=run&case={run.cases()['case'][0]}"):
            answer = client.get(address)
            assert answer.status_code == 200 and WHY in unescape(answer.text), address


def nameless(pixels: np.ndarray) -> instar.Labels:
    return instar.Labels.from_scores([])


def test_a_classifier_that_names_no_class_is_shown(tmp_path: Path) -> None:
    cases = write_scenes(tmp_path / "images", 3)
    with pytest.warns(UserWarning, match="not one pair was judged"):
        run = instar.run(nameless, "mirror(h)", cases, out=tmp_path / "run", workers=0)
    printed = io.StringIO()
    show_run(Console(file=printed, width=200), run)
    assert "found nothing in 3 of 3 source images" in printed.getvalue()


def test_a_search_for_limits_without_answers_says_the_reason(tmp_path: Path) -> None:
    """It asks nothing of a case whose source failed, so that there is no pair to count."""
    cases = write_scenes(tmp_path / "images", 3)
    with pytest.warns(UserWarning, match="not one input was answered"):
        search = instar.boundary(refusing(instar.Detections), "gamma", cases, out=tmp_path / "run", workers=0)
    assert f"6 of 6 predictions failed (6 times: RuntimeError: {WHY}" in unescape(page(make_report([search.run])))
