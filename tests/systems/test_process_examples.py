"""The example programs, one for each kind of output: strangers copy them, so a check must have nothing to say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import instar
from instar.cli.app import app
from instar.outputs import output_kinds
from instar.outputs.caption import Caption
from instar.systems import system
from tests.toys import scene, write_scenes

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "process"
PROGRAMS = {
    "poses": "poses.py",
    "detections": "detections.py",
    "caption": "caption.py",
    "labels": "labels.py",
    "segmentation": "segmentation.py",
    "forecast": "forecast.py",
}


def spelled(kind: str) -> str:
    """Without site packages and PYTHONPATH: the program finds neither Instar nor NumPy."""
    return f'process("{sys.executable} -S -E {EXAMPLES / PROGRAMS[kind]}")'


def test_every_kind_that_can_be_tested_has_an_example() -> None:
    assert {name for name, kind in output_kinds().items() if kind.suite} == set(PROGRAMS)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_check_of_an_example_sees_no_problem(kind: str, tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 2, (80, 60))
    images = [] if kind == "forecast" else [str(path) for path in sorted(photos.iterdir())]
    checked = CliRunner().invoke(app, ["check", spelled(kind), *images, "--out", str(tmp_path / "out"), "--json"])
    assert checked.exit_code == 0, checked.output
    findings = json.loads(checked.stdout)["findings"]
    doubted = {one["name"] for one in findings if one["state"] not in ("ok", "skipped", "unsure")}
    assert doubted == ({"map"} if kind == "forecast" else set()), "the walker goes straight on, also through walls"
    answers = next(one["message"] for one in findings if one["name"] == "answers")
    assert answers.endswith(f"answered with {kind}")


def test_the_caption_names_and_counts_what_is_there() -> None:
    """One with words of the vocabulary: else nothing that it says could be judged."""
    captioner = system(spelled("caption"))
    try:
        [answer] = captioner.answer([scene(0, (80, 60), objects=4)], [0])
    finally:
        captioner.close()
    assert isinstance(answer, Caption)
    assert answer.text == "two apples, a bottle and an umbrella"


def test_detections_in_a_run_keep_every_geometric_rule(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 2, (80, 60))
    suite = instar.Suite("two", (instar.rule("mirror(h)"), instar.rule("pad(0.25)")))
    done = instar.run(spelled("detections"), suite, photos, out=tmp_path / "run", workers=0)
    assert done.rates()["violated"].to_list() == [0, 0] and done.rates()["judged"].to_list() == [2, 2]
