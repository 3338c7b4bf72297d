"""The example project for build servers does what it says: its own commands pass a good model and stop a bad one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import instar
from tests.missing import module

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ci"
WORKFLOWS = {"github": ".github/workflows/model.yml", "gitlab": ".gitlab-ci.yml"}
SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}


def steps(server: str, folder: Path) -> Iterator[tuple[str, bool]]:
    """The commands of a workflow in their order, without those that install; and whether each comes after a failure."""
    workflow: Any = module("yaml").safe_load((folder / WORKFLOWS[server]).read_text("utf-8"))
    if server == "github":
        named = ((step.get("run"), step.get("if") == "always()") for step in workflow["jobs"]["gate"]["steps"])
    else:
        job = workflow["model"]
        named = ((command, False) for command in [*job["before_script"], *job["script"]])
    return ((command, after) for command, after in named if command and not command.startswith("pip install"))


def ended(server: str, folder: Path) -> list[int]:
    """The exit code of each step that was done, as the server does them."""
    programs = folder.parent / f"{folder.name}-bin"
    programs.mkdir()
    for name, arguments in (("instar", "-m instar"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
        program.chmod(0o755)
    sources = os.pathsep.join([str(Path(instar.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": sources,
        "GITHUB_STEP_SUMMARY": str(folder / "step-summary.md"),
    }
    codes: list[int] = []
    for command, after in steps(server, folder):
        if after or not any(codes):
            done = subprocess.run(["bash", "-e", "-c", command], cwd=folder, env=environment, timeout=6000, check=False)
            codes.append(done.returncode)
    return codes


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


@pytest.mark.parametrize("server", WORKFLOWS)
def test_a_good_model_passes(project: Path, server: str) -> None:
    assert set(ended(server, project)) == {0}
    suite = ElementTree.parse(project / "results" / "instar.xml").getroot()[0]
    assert suite.attrib["failures"] == "0"
    assert (project / "results" / "summary.md").read_text("utf-8").count("✅") == int(suite.attrib["tests"])


def test_a_model_that_sees_less_fails_the_job_and_says_why(project: Path) -> None:
    (project / "model.json").write_text('{"apart": 150, "pixels": 12}')
    assert ended("github", project) == [0, 1, 0], "images, gate, summary"
    assert "❌" in (project / "step-summary.md").read_text("utf-8")
    assert list((project / "results" / "summary-pictures").glob("*.png"))
    (result, *_) = json.loads((project / "results" / "instar.sarif").read_text("utf-8"))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "instar.toml"
    line = place["region"]["startLine"]
    assert (project / "instar.toml").read_text("utf-8").splitlines()[line - 1] == "[[limit]]"


@pytest.mark.parametrize("server", WORKFLOWS)
def test_a_workflow_is_one_by_the_schema_of_its_server(server: str) -> None:
    module("check_jsonschema")
    checking = ["-m", "check_jsonschema", "--builtin-schema", SCHEMAS[server], str(EXAMPLE / WORKFLOWS[server])]
    done = subprocess.run([sys.executable, *checking], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
