"""`instar marks`, as a user types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import instar
from instar.cli.app import app
from instar.store import Store, add_marks, new_mark
from tests.analysis.test_precision import SHIFT, blind_to_red
from tests.toys import write_scenes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marking")
    write_scenes(folder / "images", 3)
    rules = tuple(map(instar.rule, ("mirror(h)", "resolution(0.5)")))
    instar.run(blind_to_red, instar.Suite("two", rules), folder / "images", out=folder / "run", workers=0, zones="none")
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def typed(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def plain(result: Result) -> str:
    return " ".join(result.output.replace("\xa0", " ").replace("│", " ").split())


def test_a_sheet_is_exported_filled_in_and_imported(run: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    assert "No pair is marked." in plain(typed("marks", run))
    words = "empty.csv has 0 pairs: none is marked, and --unmarked writes the violated ones too"
    assert words in plain(typed("marks", run, "--export", tmp_path / "empty.csv"))
    assert "sheet.csv has 6 pairs No pair" in plain(typed("marks", run, "--export", sheet, "--unmarked"))
    head, *lines = sheet.read_text("utf-8-sig").splitlines()
    at = head.split(",").index("mark")
    filled = [line.split('"')[-1].split(",") for line in lines]
    assert all(cells[at] == "" for cells in filled if len(cells) > at)
    marks = [f"{number:03d}.png,{SHIFT},{word}" for number, word in enumerate(("real", "real", "false alarm"))]
    sheet.write_text("\n".join(["case,rule,mark", *marks]))
    result = typed("marks", run, "--import", sheet)
    assert result.exit_code == 0
    assert "3 new, 0 replaced, 0 as before, 0 without a mark" in plain(result)
    assert "mirror(h) 3 2 1 0 67 % (9–99)" in plain(result)
    assert "3 of 6 violated pairs are marked." in plain(result)
    assert "mirror(h) 3 2 1 0 67 % (9–99)" in plain(typed("show", run))
    told = json.loads(typed("marks", run, "--json").output)
    assert len(told["marks"]) == 3 and told["precision"][0]["real"] == 2
    assert json.loads(typed("show", run, "--json").output)["precision"] == told["precision"]


def test_nothing_is_overwritten_unseen(run: Path, tmp_path: Path) -> None:
    """Neither a file that is there, which may be filled in, nor a mark of the run."""
    mark = new_mark("000.png", SHIFT, "", "real")
    add_marks(Store(run), {mark.key: mark})
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("case,rule,mark\n000.png,mirror(h),no\n")
    again = typed("marks", run, "--export", sheet)
    assert again.exit_code == 2 and "is there already, and is kept" in plain(again)
    result = typed("marks", run, "--import", sheet)
    assert result.exit_code == 2 and "--replace takes those of the file" in plain(result)
    assert "0 new, 1 replaced" in plain(typed("marks", run, "--import", sheet, "--replace"))


@pytest.mark.parametrize(("flag", "owner"), [("--unmarked", "--export"), ("--replace", "--import")])
def test_a_flag_without_its_file_is_refused(run: Path, flag: str, owner: str) -> None:
    result = typed("marks", run, flag)
    assert result.exit_code == 2 and f"it belongs to {owner}" in plain(result)
