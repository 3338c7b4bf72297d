"""`instar objects`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import instar
from instar.image import read_image
from instar.outputs.detections import Detections
from instar.registry import tasks
from instar.systems import from_function
from instar.tasks.object_relevance.commands import objects
from instar.tasks.object_relevance.explain import explain, object_names
from instar.tasks.object_relevance.repair import evaluate
from tests.browser.test_explain import object_run
from tests.missing import module
from tests.tasks.object_relevance.repair.squares import found, in_memory, on_disk, picture


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return object_run(tmp_path_factory.mktemp("objects"))


def test_the_task_brings_them() -> None:
    assert tasks()["object-relevance"].commands == {"objects": ".commands:objects"}
    listed = CliRunner().invoke(objects, ["--help"])
    assert "explain" in listed.output and "repair" in listed.output


def test_explain_says_why_object_by_object(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.png"
    printed = CliRunner().invoke(objects, ["explain", str(run), "0.png", "--out", str(out)])
    assert printed.exit_code == 0, printed.output
    text = " ".join(printed.output.split())
    opened = instar.open_run(run)
    explanations = explain(opened, "0.png")
    names = object_names(opened, "0.png", explanations)
    for one in explanations:
        word = {True: "reliable", False: "unreliable", None: "not judged"}[one.reliable]
        assert f"{word}: {names[one.target]}: {one.why}" in text
    assert "target" not in text
    assert text.startswith("unreliable: ") and str(out) in printed.output.replace("\n", "")
    assert read_image(out).size[0] > 400


def test_explain_prints_json(run: Path) -> None:
    printed = CliRunner().invoke(objects, ["explain", str(run), "0.png", "--json"])
    rows = json.loads(printed.output)
    assert [row["reliable"] for row in rows] == [False, False, True]
    assert rows[0]["rule"] == "erase(1) => presence(gone)"


def test_explain_follows_the_judging(run: Path) -> None:
    judging = instar.open_run(run).judge(confidence=0.95)
    printed = CliRunner().invoke(objects, ["explain", str(run), "0.png", "--judging", judging, "--json"])
    assert "not found in the source" in json.loads(printed.output)[0]["why"], "no score is so high"


def test_evaluate_measures_a_detector_as_it_is(tmp_path: Path) -> None:
    module("pycocotools")
    data = str(on_disk(tmp_path / "set", 6))
    system = "tests.tasks.object_relevance.repair.squares:found"
    printed = CliRunner().invoke(objects, ["evaluate", system, data])
    assert printed.exit_code == 0, printed.output
    assert "| all | 6 | 1.000 | 1.000 – 1.000 |" in printed.output
    sliced = CliRunner().invoke(objects, ["evaluate", system, data, "--slice", "brightness", "--json"])
    rows = json.loads(sliced.output)["rows"]
    assert [row["images"] for row in rows] == [6, 3, 3] and rows[1]["slice"].startswith("brightness ≤ ")
    assert {(row["mAP@0.5"], row["precision"], row["recall"], row["FN"]) for row in rows} == {(1.0, 1.0, 1.0, 0.0)}
    assert [row["TP"] for row in rows] == [12, 6, 6]
    refused = CliRunner().invoke(objects, ["evaluate", system, data, "--slice", "brightnes"])
    assert refused.exit_code == 1 and "brightness" in str(refused.exception)


def test_an_image_on_which_it_fails_is_left_out(tmp_path: Path) -> None:
    module("pycocotools")

    def failing(pixels: np.ndarray) -> Detections:
        if np.array_equal(pixels, picture(0)[0].pixels):
            raise RuntimeError("no")
        return found(pixels)

    table = evaluate(from_function(failing, "failing"), in_memory(4))
    assert (table["images"].item(), table["failed"].item(), table["mAP@0.5"].item()) == (3, 1, 1.0)


def test_a_case_that_is_not_there_is_named(run: Path) -> None:
    refused = CliRunner().invoke(objects, ["explain", str(run), "0.pnk"])
    assert refused.exit_code == 1 and "0.png" in str(refused.exception)
