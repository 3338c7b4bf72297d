"""Versions of a model over time: what got worse is said where it did; runs that do not fit are left out in words."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import instar
from instar import Detections
from instar.report.history import History, history
from instar.report.history_page import history_page
from instar.report.verdict import BETTER, FEWER, MORE, WORSE
from instar.report.words import SPACE
from tests.cli.conftest import typed
from tests.toys import rectangles, write_scenes

CASES = 16
RIGHT, FORGETFUL = "tests.toys:rectangles", "tests.engine.zones:forgetful"
RULES = "mirror(h)+gamma(0.9)"


def dated(run: instar.Run, day: int) -> Path:
    """The run as if it had been made on that day."""
    run.store.write_manifest(replace(run.manifest, created=f"2026-01-{day:02d}T12:00:00+00:00"))
    return run.folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("versions") / "photos", CASES)


@pytest.fixture(scope="module")
def versions(photos: Path) -> list[Path]:
    """Three versions: right, forgetful, right again; by their making the last folder is the second version."""
    systems = {"a": (RIGHT, 1), "b": (RIGHT, 3), "c": (FORGETFUL, 2)}
    return [
        dated(instar.run(system, RULES, photos, out=photos.parent / name, workers=0, name=f"version {day}"), day)
        for name, (system, day) in systems.items()
    ]


def notes_of(one: History, number: int) -> str:
    return " ".join(one.versions[number].notes).replace(SPACE, " ")


def test_what_got_worse_and_better_is_said_of_the_version_that_did_it(versions: list[Path]) -> None:
    one = history(versions)
    assert [version.name for version in one.versions] == ["version 1", "version 2", "version 3"]
    assert [version.change("mirror") for version in one.versions] == ["", WORSE, BETTER]
    assert [version.change("gamma") for version in one.versions] == ["", "", ""]
    rates = [version.rate("mirror") for version in one.versions]
    assert [row and row["violated"] for row in rates] == [0, CASES, 0]
    assert f"The system is {FORGETFUL}; that of version 1 is {RIGHT}." in notes_of(one, 1)
    assert [v.name for v in history(versions, as_given=True).versions] == ["version 1", "version 3", "version 2"]


def test_a_version_says_of_the_one_before_what_compare_says(versions: list[Path]) -> None:
    one = history(versions)
    (said,) = json.loads(typed("compare", versions[0], versions[2], "--json").stdout)
    step = one.versions[1].step
    assert step is not None
    assert list(step.words) == said["words"]
    assert [(row["group"], row["p_corrected"], row["difference"]) for row in said["families"]] == [
        (row["group"], row["p_corrected"], row["difference"]) for row in step.families.to_dicts()
    ]


def weak(pixels: np.ndarray) -> Detections:
    """Finds what the others find, and is hardly ever sure of it."""
    boxes = rectangles(pixels)
    sure = int(pixels.sum()) % 7 < 2
    return Detections.from_xyxy(boxes.boxes, boxes.labels, (1.0 if sure else 0.15) * boxes.scores)


def largest(pixels: np.ndarray) -> Detections:
    """One box of each image: fewer can break a rule."""
    boxes = rectangles(pixels)
    kept = int(np.argmax(np.prod(boxes.boxes[:, 2:] - boxes.boxes[:, :2], 1)))
    return Detections.from_xyxy(boxes.boxes[[kept]], [boxes.labels[kept]], boxes.scores[[kept]])


def test_a_version_that_finds_less_is_no_better_and_the_next_no_worse_for_it(
    versions: list[Path], photos: Path, tmp_path: Path
) -> None:
    few = instar.run(largest, RULES, photos, out=tmp_path / "few", workers=0, name="few")
    again = shutil.copytree(versions[2], tmp_path / "again")
    run = instar.open_run(again)
    run.store.write_manifest(replace(run.manifest, name="again"))
    folders = [versions[2], few.folder, again]
    one = history(folders, as_given=True)
    assert [version.change("mirror") for version in one.versions] == ["", FEWER, MORE]
    less = f"few finds {CASES} in the unchanged inputs of {CASES} cases, "
    shown = typed("history", *folders, "--as-given", "--out", tmp_path / "history.html", COLUMNS="80")
    (said,) = json.loads(typed("compare", *folders[:2], "--json").stdout)
    for sentence in said["words"]:
        assert f"2: {sentence}".replace(SPACE, " ") in shown.words
    assert f"2: {less}" in shown.words
    line = next(line for line in shown.stdout.splitlines() if line.startswith("mirror"))
    assert "▽" in line and "△" in line and "▲" not in line and "▼" not in line
    page = (tmp_path / "history.html").read_text("utf-8")
    assert less in page.replace(SPACE, " ")
    assert '"number fewer"' in page and "number better" not in page and "number worse" not in page
    said_by_json = json.loads(typed("history", *folders, "--as-given", "--json").stdout)
    assert [run["families"][0]["change"] for run in said_by_json["runs"]] == ["", "fewer", "more"]


def test_how_many_cases_the_share_is_of_stands_beside_it(photos: Path, tmp_path: Path) -> None:
    """Not every case of a run is judged: where nothing is found, or where it is known enough without."""
    run = instar.run("tests.toys:shy", RULES, photos, out=tmp_path / "shy", workers=0)
    judged = run.any_rule()["judged"]
    assert 0 < judged < CASES
    shown = typed("history", run.folder, "--out", tmp_path / "history.html", COLUMNS="120")
    line = next(line for line in shown.stdout.splitlines() if line.startswith("1 "))
    assert f" {CASES} {judged} " in " ".join(line.split())
    assert f'data-head="judged">{judged}</td>' in (tmp_path / "history.html").read_text("utf-8")


def test_advice_beside_a_version_is_spelled_as_code(photos: Path, tmp_path: Path) -> None:
    run = instar.run(weak, RULES, photos, out=tmp_path / "weak", workers=0)
    page = history_page(history([run.folder]))
    assert "<code>--set confidence=" in page and "`" not in page


def test_pairs_are_counted_as_by_every_other_command_without_identity(photos: Path, tmp_path: Path) -> None:
    run = instar.run("tests.toys:shy", f"identity+{RULES}", photos, out=tmp_path / "shy", workers=0)
    judged, pairs = run.judged()["judged"], run.judged()["pairs"]
    assert judged < pairs == 2 * CASES
    assert f"Only {judged} of {pairs} pairs were judged" in notes_of(history([run.folder]), 0)


def test_runs_that_do_not_fit_are_left_out_in_words_and_the_others_shown(
    versions: list[Path], photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "page.html").write_text("a page")
    poses = instar.run("tests.toys:steady", "mirror(h)", photos, out=tmp_path / "poses", workers=0)
    shard = instar.run(RIGHT, RULES, photos, out=tmp_path / "part", workers=0, shard="1/2")
    damaged = shutil.copytree(versions[0], tmp_path / "damaged")
    part = next((damaged / "verdicts").rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-9])
    limits = instar.boundary(RIGHT, "gamma", photos, out=tmp_path / "limits", workers=0, visual=False).run
    now = instar.run(FORGETFUL, "mirror(h)+gamma(0.8)", photos, out=tmp_path / "now", workers=0, limit=2)
    now = instar.run(RIGHT, RULES, photos, out=tmp_path / "now", workers=0, fresh=True)
    (aside,) = tmp_path.glob("now.*")
    others = [tmp_path / "empty", tmp_path / "page.html", poses.folder, shard.folder, damaged, tmp_path / "none"]
    others += [limits.folder, aside]
    one = history([*others, *versions, versions[0]])
    assert len(one.versions) == 3
    why = dict(one.left_out)
    assert "holds no run" in why[str(tmp_path / "empty")]
    assert why[str(tmp_path / "page.html")] == "it is a file, and no run folder"
    assert why[str(poses.folder)] == "its system answers with poses, and those of the others with detections"
    assert why[str(limits.folder)] == "it searched for limits, and its rates are not those of all cases"
    assert why[str(aside)] == f"it was moved aside when {now.folder} was made anew; rename the folder to show it"
    assert why[str(shard.folder)] == "it is shard 1 of 2; merge the shards"
    assert "is damaged" in why[str(damaged)]
    assert "none" in why[str(tmp_path / "none")]
    failed = typed("history", tmp_path / "empty")
    assert failed.code == 2
    assert "no run can be shown" in failed.words


def test_other_rules_other_inputs_and_unfinished_runs_are_said(
    versions: list[Path], photos: Path, tmp_path: Path
) -> None:
    other = write_scenes(tmp_path / "photos", 5, (200, 150))
    narrow = dated(instar.run(RIGHT, "mirror(h)", photos, out=tmp_path / "narrow", workers=0, limit=4), 4)
    elsewhere = instar.run(RIGHT, RULES, other, out=tmp_path / "elsewhere", workers=0)
    elsewhere.store.write_manifest(replace(elsewhere.manifest, planned=99))
    dated(elsewhere, 5)
    later = dated(instar.run(FORGETFUL, RULES, photos, out=tmp_path / "later", workers=0), 6)
    one = history([*versions, narrow, elsewhere.folder, later])
    assert "Only version 3 has 1 rule and 12 cases, which no difference counts." in notes_of(one, 3)
    assert one.versions[3].rate("gamma") is None
    assert "It is unfinished: 15 of 99 predictions are there." in notes_of(one, 4)
    assert "each with another input" in notes_of(one, 4)
    assert one.versions[4].step is None
    assert f"It is compared with {one.versions[3].name}, the latest before it that can be." in notes_of(one, 5)
    assert one.families["any rule"] == list(one.families["mirror"])
    assert any(note.replace(SPACE, " ").startswith("Any rule counts 1 of 2 rules:") for note in one.notes)


def test_the_table_fits_a_narrow_terminal_and_the_page_says_the_same(versions: list[Path], tmp_path: Path) -> None:
    shown = typed("history", *versions, "--out", tmp_path / "history.html", COLUMNS="80")
    assert shown.code == 0, shown.stderr
    line = next(line for line in shown.stdout.splitlines() if line.startswith("mirror"))
    assert line.split() == ["mirror", "0", "%", "(0–19)", "100", "%", "(81–100)", "▲", "0", "%", "(0–19)", "▼"]
    page = (tmp_path / "history.html").read_text("utf-8")
    assert "version 2 is surely worse under 1 of 2 rules" in page.replace(SPACE, " ")
    assert "<svg" in page
    assert "<script" not in page
    assert "version 2, mirror: 100" in page
    assert page == history_page(history(versions))


def test_the_threshold_and_the_judging_are_those_that_are_asked_for(versions: list[Path]) -> None:
    strict = json.loads(typed("history", *versions, "--threshold", 0, "--json").stdout)
    assert [run["name"] for run in strict["runs"]] == ["version 1", "version 2", "version 3"]
    assert strict["runs"][1]["families"][0]["change"] == "worse"
    unknown = typed("history", *versions, "--judging", "other")
    assert unknown.code == 2
    assert "has no judging 'other'" in unknown.words
