"""`instar objects`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import instar
from instar.image import read_image
from instar.registry import tasks
from instar.tasks.object_relevance.commands import objects
from instar.tasks.object_relevance.explain import explain
from tests.browser.test_explain import object_run


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
    for one in explain(instar.open_run(run), "0.png"):
        word = {True: "reliable", False: "unreliable", None: "not judged"}[one.reliable]
        assert f"{word}: {one.label} (target {one.target}): {one.why}" in text
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


def test_a_case_that_is_not_there_is_named(run: Path) -> None:
    refused = CliRunner().invoke(objects, ["explain", str(run), "0.pnk"])
    assert refused.exit_code == 1 and "0.png" in str(refused.exception)
