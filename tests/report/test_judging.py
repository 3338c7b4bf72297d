"""Pictures and the commands that reproduce them follow the judging that a report is made of."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
import pytest
from rich.console import Console
from starlette.testclient import TestClient
from typer.testing import CliRunner

import instar
from instar.cli import app
from instar.engine import stored_judging
from instar.outputs.detections import Detections
from instar.relations import relations
from instar.report import load_pair, load_source, show_run
from instar.report.gallery import panel_address
from instar.report.page import make_report, page
from instar.viewer import application
from instar.viewer.index import build
from instar.viewer.pictures import Pictures
from tests.missing import module
from tests.toys import rectangles, write_scenes


def unsure(pixels: np.ndarray) -> Detections:
    """Finds every rectangle, each with another score."""
    sure = rectangles(pixels)
    return Detections.from_xyxy(sure.boxes, sure.labels, np.linspace(0.9, 0.6, len(sure.boxes)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    base = tmp_path_factory.mktemp("judging")
    suite = instar.Suite("looks", tuple(map(instar.rule, ("identity", "mirror(h)"))))
    return instar.run(unsure, suite, write_scenes(base / "images", 2), out=base / "run", workers=0)


def test_an_answer_that_is_not_sure_enough_is_not_drawn_beside_nothing_found_without_a_word(tmp_path: Path) -> None:
    def faint(pixels: np.ndarray) -> Detections:
        sure = rectangles(pixels)
        return Detections.from_xyxy(sure.boxes, sure.labels, np.full(len(sure.boxes), 0.45))

    suite = instar.Suite("looks", (instar.rule("mirror(h)"),))
    run = instar.run(faint, suite, write_scenes(tmp_path / "images", 1), out=tmp_path / "run", workers=0)
    assert "nothing was found in either image; what is drawn is not sure enough to count" in page(make_report([run]))


def test_an_example_shows_what_counts_of_the_answer(tmp_path: Path) -> None:
    """ "it has 2" stood below a picture with three boxes, one of which is too faint to count."""

    def two_and_a_faint_one(pixels: np.ndarray) -> Detections:
        boxes = rectangles(pixels)
        return Detections.from_xyxy(boxes.boxes, boxes.labels, np.array([0.9, 0.8, 0.4][: len(boxes.boxes)]))

    suite = instar.Suite("looks", (instar.rule("erase(1, only=2) => presence(gone)"), instar.rule("mirror(h)")))
    photos = write_scenes(tmp_path / "images", 1)
    run = instar.run(two_and_a_faint_one, suite, photos, out=tmp_path / "run", workers=0)
    assert "there is no 3rd object in this image: it has 2" in run.unjudged()["reason"].to_list()
    case = str(run.cases()["case"][0])
    assert boxes(load_source(run, case).actual) == 3, "what is near enough to count"
    assert boxes(load_source(run, case, counted=True).actual) == 2
    (example,) = make_report([run], images=2).runs[0].examples
    drawn = load_source(run, case, counted=True)
    assert example.picture == panel_address(drawn, "source") and "sure" not in example.reason


def boxes(shapes: Any) -> int:
    return sum(len(shape.xy.reshape(-1, 4)) for shape in shapes if shape.form == "boxes")


def test_another_confidence_draws_another_set_of_boxes(finished: instar.Run) -> None:
    case, rule = str(finished.cases()["case"][0]), "mirror(h) => detections"
    verdict = {"case": case, "rule": rule, "target": "whole", "severity": 0.0}
    counts = []
    for judging in ("default", finished.judge(confidence=0.85)):
        options = stored_judging(finished.store, judging).of(relations()["detections"])
        confidence = options["confidence"] - options.get("margin", 0)
        pair = load_pair(finished, verdict, judging=judging)
        scores = unsure(pair.source.image.pixels).scores
        counts.append(int((scores >= confidence).sum()))
        assert boxes(pair.source.actual) == boxes(pair.follow_up.expected) == counts[-1]
        assert boxes(pair.follow_up.actual) == (unsure(pair.follow_up.image.pixels).scores >= confidence).sum()
        assert boxes(load_source(finished, case, judging=judging).actual) == counts[-1]
    assert counts[0] > counts[1] > 0


def test_the_viewer_draws_what_its_judging_notices(finished: instar.Run) -> None:
    pictures, case, drawn = Pictures(), str(finished.cases()["case"][0]), []
    for judging in ("default", finished.judge(confidence=0.85)):
        index = build(finished.store, judging)
        picture = pictures.picture(
            finished.store, index.manifest, index.version, case=case, side="source", width=240, judging=judging
        )
        assert picture.drawn
        drawn.append(picture.content)
    assert drawn[0] != drawn[1]


def test_the_commands_of_a_page_name_the_choices_of_its_judging(finished: instar.Run) -> None:
    judging = finished.judge(confidence=0.7)
    run, judge, report = map(shlex.split, make_report([finished], judging=judging, images=0).runs[0].commands)
    assert run[:2] == ["instar", "run"]
    assert judge == ["instar", "judge", finished.folder.name, "--set", "confidence=0.7"]
    assert report[:5] == ["instar", "report", finished.folder.name, "--judging", judging]


def test_the_command_line_reads_the_commands_of_a_page(finished: instar.Run) -> None:
    judging = finished.judge(confidence=0.7)
    _, judge, _ = map(shlex.split, make_report([finished], judging=judging, images=0).runs[0].commands)
    result = CliRunner().invoke(app, ["judge", str(finished.folder), *judge[3:]])
    assert result.exit_code == 0, result.output
    assert f"judging {judging}" in result.output


def test_scores_of_both_sides_are_shown_wherever_a_pair_is(tmp_path: Path) -> None:
    suite = instar.Suite("looks", tuple(map(instar.rule, ("identity", "gamma(0.1)"))))
    run = instar.run(rectangles, suite, write_scenes(tmp_path / "images", 2), out=tmp_path / "run", workers=0)
    info = run.store.judging_info("default")
    assert info is not None
    scored = [
        part.with_columns(
            source_score=pl.lit(0.62),
            follow_up_score=pl.lit(None, pl.Float64),
            severity=pl.lit(1.0),
            kind=pl.lit("lost"),
        )
        for part in run.store.verdict_parts("default")
    ]
    run.store.replace_verdicts("default", iter(scored), info)
    words = "scores 0.62 → no match"
    printed = io.StringIO()
    show_run(Console(file=printed, width=200), run)
    worst = printed.getvalue().partition("worst")[2]
    assert "scores" in worst and "0.62 → no match" in worst, "a column of the table has them"
    assert words in load_pair(run, run.worst(1).row(0, named=True)).facts
    module("vl_convert")
    assert words in page(make_report([run], images=2))
    site = application([run.folder], port=8000)
    for one in site.state.viewer.runs:
        one.look()
    client = TestClient(site, base_url="http://127.0.0.1:8000")
    assert words in client.get("/gallery?status=all").text


def one_dog(pixels: np.ndarray) -> str:
    return "a dog"


def test_the_command_of_a_page_names_who_found_what_was_needed(tmp_path: Path) -> None:
    """Without its pool, the command of a run with inserted objects made another run."""
    pool = tmp_path / "pool" / "dog"
    pool.mkdir(parents=True)
    cut = np.zeros((24, 24, 4), np.uint8)
    cut[4:20, 4:20] = 255
    cv2.imwrite(str(pool / "dog.png"), cut)
    cases = write_scenes(tmp_path / "images", 2)
    run = instar.run(one_dog, "insert(0)", cases, out=tmp_path / "run", workers=0, pool=pool.parent, objects="none")
    words = shlex.split(make_report([run], images=0).runs[0].commands[0])
    assert words[words.index("--pool") + 1] == run.manifest.providers["pool"].name
