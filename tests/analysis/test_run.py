"""What a run knows of itself: its rules, its judgings, and what it keeps."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import instar
from instar import Segmentation
from instar.relations import BoundRule
from instar.report.findings import findings
from instar.spelling import UnknownName
from instar.suites import Suite
from tests.toys import steady, write_scenes


def ran(folder: Path, *rules: str, **options: object) -> instar.Run:
    photos = write_scenes(folder / "photos", 2)
    suite = Suite("test", tuple(map(instar.rule, rules)), options=options)
    return instar.run(steady, suite, photos, out=folder / "run", workers=0)


def test_rules_are_known_by_their_id_and_without_their_relation(tmp_path: Path) -> None:
    run = ran(tmp_path, "identity", "gamma(0.5)", "mirror(h) => poses(handedness=kept)")
    assert run.rule_id("gamma(0.5)") == run.rule_id("gamma(0.5) => poses") == "gamma(0.5) => poses"
    assert run.rule_id("mirror(axis=h)") == "mirror(h) => poses(handedness=kept)"
    with pytest.raises(UnknownName, match=r"rule of this run .gamma\(0.6\)"):
        run.rule_id("gamma(0.6)")
    assert [(type(one), one.id) for one in run.bound_rules()] == [(BoundRule, name) for name in run.manifest.rules]
    assert run.changing_rules() == ["gamma(0.5) => poses", "mirror(h) => poses(handedness=kept)"]
    assert run.changing_rules("detections") == []


def test_a_judging_has_its_own_options_and_those_of_the_suite_below_them(tmp_path: Path) -> None:
    run = ran(tmp_path, "gamma(0.5)", aggregate="mean", outside="keep")
    relation = run.bound_rules()[0].relation.relation
    other = run.judge(aggregate="max")
    chosen = [run.judging(name).of(relation) for name in ("default", other)]
    assert [(one["aggregate"], one["outside"], one["space"]) for one in chosen] == [
        ("mean", "keep", "pixels"),
        ("max", "keep", "pixels"),
    ]


def test_the_unit_is_that_of_the_judgings_normaliser(tmp_path: Path) -> None:
    run = ran(tmp_path, "mirror(h) => poses(handedness=kept)", normaliser="image")
    in_pixels = run.judge(normaliser="pixels")
    assert [run.units(), run.units(in_pixels)] == [{"poses": "diagonals of the image"}, {"poses": "pixels"}]
    assert run.rules(in_pixels)["unit"].to_list() == ["pixels"]
    headlines = [one.words for one in findings(run, judging=in_pixels)]
    assert any("A rule is violated from 0.2 up (pixels)." in text for text in headlines)
    assert not any("body length" in text for text in headlines)


def test_what_was_made_of_a_run_is_kept_until_it_has_further_predictions(tmp_path: Path) -> None:
    run = ran(tmp_path, "gamma(0.5)")
    made: list[int] = []

    def make() -> int:
        made.append(len(run.predictions()))
        return made[-1]

    assert run.cached("number", make) == run.cached("number", make) == 4
    assert made == [4]
    ran(tmp_path, "gamma(0.7)")
    assert run.cached("number", make) == 6
    assert made == [4, 6]


def test_a_run_shows_itself_in_a_line(tmp_path: Path) -> None:
    run = ran(tmp_path, "identity", "gamma(0.5)", "mirror(h) => poses(handedness=kept)")
    words = "2 cases, 2 rules; 4 of 4 pairs judged, 2 of 2 judged cases with a violation"
    assert repr(run) == str(run) == f"<Run {run.folder}: tests.toys:steady under test, {words}>"
    shutil.rmtree(tmp_path / "run")
    assert "which cannot be read: " in repr(run), "a debugger shows what is gone, too"


def test_a_stored_answer_is_read_whole(tmp_path: Path) -> None:
    """A class map is stored by its hash: the answer has its cells."""

    def halves(pixels: np.ndarray) -> Segmentation:
        left = np.arange(pixels.shape[1])[None] < pixels.shape[1] // 2
        return Segmentation.from_classes(np.broadcast_to(left, pixels.shape[:2]).astype(np.uint8), ["right", "left"])

    photos = write_scenes(tmp_path / "photos", 1)
    run = instar.run(halves, "mirror(h)", photos, out=tmp_path / "run", workers=0)
    before, after = run.output("000.png"), run.output("000.png", "mirror( axis = h )")
    assert isinstance(before, Segmentation) and isinstance(after, Segmentation)
    assert before.cells.shape == (120, 160) and (before.cells == after.cells).all()
    with pytest.raises(LookupError, match=r"holds no prediction of gamma\(2\) of '000.png'"):
        run.output("000.png", "gamma(2)")
