"""`instar judge`: options come from the relations of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type


def test_it_asks_again_without_inference(typed: Type, done: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (done / "predictions").iterdir()}
    judged = typed("judge", done, "--set", "confidence=0.9", "--json")
    assert judged.code == 0, judged.stderr
    values = json.loads(judged.stdout)
    assert values["judging"] == "confidence=0.9"
    assert [(option["name"], option["value"], option["default"]) for option in values["options"]] == [
        ("confidence", 0.9, 0.5),
        ("margin", 0.2, 0.2),
        ("share", 0.5, 0.5),
        ("empty", "leave", "leave"),
        ("zone_share", 0.25, 0.25),
    ]
    assert {path: path.stat().st_mtime_ns for path in (done / "predictions").iterdir()} == before
    assert "judging confidence=0.9" in typed("show", done, "--judging", "confidence=0.9").stdout


def test_without_a_choice_it_lists_the_options(typed: Type, poses: Path) -> None:
    judged = typed("judge", poses)
    assert judged.code == 0, judged.stderr
    assert "judging default" in judged.stdout
    assert "aggregate=median text; by default median (poses)" in judged.words
    assert "normaliser=body one of body, part, box, image, pixels; by default body (poses)" in judged.words
    assert "confidence=0.5 a number from 0 to 1; by default 0.5 (poses)" in judged.words


def test_values_of_every_kind(typed: Type, poses: Path) -> None:
    chosen = ("aggregate=median+mean", "normaliser=box", "visibility=0.5", "landmarks=nose")
    judged = typed("judge", poses, *(part for choice in chosen for part in ("--set", choice)), "--json")
    assert judged.code == 0, judged.stderr
    values = {option["name"]: option["value"] for option in json.loads(judged.stdout)["options"]}
    assert (values["aggregate"], values["normaliser"]) == ("median+mean", "box")
    assert (values["visibility"], values["landmarks"]) == (0.5, "nose")
    assert typed("judge", poses, "--set", "aggregate=0.9").code == 0


@pytest.mark.parametrize(
    ("run", "choice", "message"),
    [
        (
            "RUN",
            "landmarks=hands",
            "there is no judging option 'landmarks' for this run. The options of its relations:",
        ),
        ("RUN", "landmarks=hands", "confidence: a number from 0 to 1; by default 0.5 (detections) · margin: "),
        ("POSES", "aggregat=max", "did you mean 'aggregate'?"),
        ("POSES", "aggregate=bogus", "median, mean, max, min, median+mean, or a quantile from 0 to 1"),
        ("POSES", "landmarks=lft_arm", "unknown landmark group 'lft_arm'"),
        ("POSES", "normaliser=parts", "it takes one of body, part, box, image, pixels; did you mean 'part'?"),
        ("RUN", "confidence=2", "confidence=2 is not allowed; it takes a number from 0 to 1"),
        ("RUN", "confidence=much", "confidence=much is not allowed; it takes a number from 0 to 1"),
        ("RUN", "confidence=0,5", 'confidence="0,5" is not allowed; it takes a number from 0 to 1'),
        ("RUN", "confidence", "it is written NAME=VALUE"),
    ],
)
def test_wrong_choices(typed: Type, done: Path, poses: Path, run: str, choice: str, message: str) -> None:
    refused = typed("judge", {"RUN": done, "POSES": poses}[run], "--set", choice)
    assert refused.code == 2
    assert message in refused.words


def test_an_option_is_set_once(typed: Type, done: Path) -> None:
    refused = typed("judge", done, "--set", "confidence=0.1", "--set", "confidence=0.2")
    assert refused.code == 2
    assert "confidence is set twice" in refused.words


def test_what_several_relations_take_is_named_once(typed: Type, photos: Path, tmp_path: Path) -> None:
    """One name and one range, though each relation says in its own words what it does with it."""
    run = tmp_path / "run"
    typed("run", "tests.toys:rectangles", "detections", photos, "--out", run, "--limit", 1, "--workers", 0)
    message = typed("judge", run, "--set", "foo=1").stderr
    assert message.count("margin: ") == message.count("empty: ") == 1
    assert "margin: a number from 0 to 1; by default 0.2 (detections, presence)" in " ".join(message.split())
