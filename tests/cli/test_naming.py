"""Runs have names of their own, wherever a run is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import instar
from instar.report import write_report
from instar.viewer.pages import Viewer
from instar.viewer.watch import Watched, run_names
from tests.cli.conftest import Type

ASKED = ("tests.toys:rectangles", "gamma(0.9)")


def made(typed: Type, photos: Path, out: Path, *more: object) -> Path:
    ran = typed("run", *ASKED, photos, "--out", out, "--workers", 0, *more)
    assert ran.code == 0, ran.stderr
    return out


def test_a_name_stands_wherever_the_run_is_named(typed: Type, photos: Path, tmp_path: Path) -> None:
    """Two versions of one system, which only names tell apart."""
    runs = [made(typed, photos, tmp_path / folder, "--name", name) for folder, name in (("a", "手 v1"), ("b", "v2"))]
    assert "手 v1 · tests.toys:rectangles · gamma(0.9)" in typed("show", runs[0]).words
    assert "v2 against 手 v1" in typed("compare", *runs).words
    assert "手 v1, tests.toys:rectangles under" in repr(instar.open_run(runs[0]))
    (page,) = write_report([instar.open_run(run) for run in runs], tmp_path / "page.html", images=0)
    assert "手 v1 and v2" in page.read_text("utf-8")
    assert "--name v2" in page.read_text("utf-8")
    names = run_names(runs)
    viewer = Viewer(tuple(Watched(run, name=name) for run, name in zip(runs, names, strict=True)))
    assert viewer.names() == {"a": "手 v1", "b": "v2"}
    typed("gate", runs[1], "--init", "--policy", tmp_path / "p.toml")
    typed("gate", runs[1], "--policy", tmp_path / "p.toml", "--summary", tmp_path / "s.md")
    assert (tmp_path / "s.md").read_text("utf-8").startswith("## v2 in ")


def test_the_same_command_changes_a_name_keeps_it_and_takes_it_away(typed: Type, photos: Path, tmp_path: Path) -> None:
    run = made(typed, photos, tmp_path / "run", "--name", "first")
    made(typed, photos, run)
    assert instar.open_run(run).manifest.name == "first"
    made(typed, photos, run, "--name", "  second,\n retrained ")
    assert instar.open_run(run).manifest.name == "second, retrained"
    made(typed, photos, run, "--name", "")
    assert instar.open_run(run).manifest.called == "tests.toys:rectangles"


def test_a_name_that_is_too_long_is_refused_before_anything_is_predicted(
    typed: Type, photos: Path, tmp_path: Path
) -> None:
    ran = typed("run", *ASKED, photos, "--out", tmp_path / "run", "--name", "x" * 101)
    assert ran.code == 2
    assert "--name has 101 letters; at most 100 are allowed" in ran.words
    assert not (tmp_path / "run").exists()


def test_equal_names_are_told_apart_by_folders(typed: Type, photos: Path, tmp_path: Path) -> None:
    runs = [made(typed, photos, tmp_path / folder, "--name", "v1") for folder in ("a", "b")]
    assert "v1 (b) against v1 (a)" in typed("compare", *runs).words


def test_a_long_name_cuts_no_number_of_a_narrow_table(typed: Type, photos: Path, tmp_path: Path) -> None:
    runs = [made(typed, photos, tmp_path / folder, "--name", "a name " * 14 + folder) for folder in ("a", "b")]
    lines = typed("compare", *runs, COLUMNS="80").stdout.splitlines()
    assert any(re.match(r"gamma\(0.9\) +4 +0 +0 +0 ", line) for line in lines)


def test_a_folder_of_an_earlier_version_has_no_name_and_is_called_as_before(
    typed: Type, photos: Path, tmp_path: Path
) -> None:
    run = made(typed, photos, tmp_path / "run")
    manifest = run / "manifest.json"
    values = json.loads(manifest.read_text())
    del values["name"], values["checksum"]
    manifest.write_text(json.dumps(values))
    assert typed("show", run).words.startswith("tests.toys:rectangles · gamma(0.9)")


def test_shards_keep_their_name_when_they_are_merged(typed: Type, photos: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        typed(
            "run", *ASKED, photos, "--out", tmp_path / "run", "--workers", 0, "--shard", f"{number}/2", "--name", "v3"
        )
    merged = typed("merge", tmp_path / "run-1-of-2", tmp_path / "run-2-of-2", "--out", tmp_path / "whole")
    assert merged.code == 0, merged.stderr
    assert instar.open_run(tmp_path / "whole").manifest.name == "v3"
