"""Marks in files: out and in again, what is none is named, and nothing is overwritten unseen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import instar
from instar.report.mark_files import Conflict, Imported, export_marks, file_rows, import_marks
from instar.report.page import make_report, page
from instar.report.precision import precision_panel
from instar.store import add_marks, new_mark, stored_marks
from tests.analysis.test_precision import HALF, SHIFT, blind_to_red
from tests.toys import scene, write_image

FORMULA = "=1+1.png"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "images").mkdir()
    for number, name in enumerate(("a.png", "b.png", FORMULA)):
        write_image(folder / "images" / name, scene(number))
    suite = instar.Suite("two", tuple(map(instar.rule, ("mirror(h)", "resolution(0.5)"))))
    instar.run(blind_to_red, suite, folder / "images", out=folder / "run", workers=0, zones="none")
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> instar.Run:
    return instar.open_run(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def marked_run(run: instar.Run) -> instar.Run:
    marks = [new_mark("a.png", SHIFT, "", "real", '= a note, with "signs"'), new_mark(FORMULA, HALF, "", "unclear")]
    add_marks(run.store, {mark.key: mark for mark in marks})
    return run


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.parametrize("name", ["marks.csv", "marks.jsonl"])
def test_what_is_exported_is_imported_the_same(marked_run: instar.Run, tmp_path: Path, name: str, made: Path) -> None:
    """Also a case and a note that a spreadsheet would take for formulas."""
    assert export_marks(marked_run, tmp_path / name) == 2
    other = instar.open_run(shutil.copytree(made, tmp_path / "other"))
    assert import_marks(other, tmp_path / name) == Imported(new=2, replaced=0, same=0, empty=0)
    assert dict(stored_marks(other.store)) == dict(stored_marks(marked_run.store))
    assert import_marks(other, tmp_path / name).same == 2


def test_unmarked_pairs_are_exported_to_be_filled_in(marked_run: instar.Run, tmp_path: Path) -> None:
    """Every violated pair once; lines that nobody filled in change nothing."""
    violated = int(marked_run.rates()["violated"].sum())
    assert export_marks(marked_run, tmp_path / "sheet.csv", unmarked=True) == violated
    lines = file_rows(tmp_path / "sheet.csv")
    assert len({(row["case"], row["rule"]) for _, row in lines}) == violated
    assert import_marks(marked_run, tmp_path / "sheet.csv") == Imported(0, 0, 2, violated - 2)


def test_unknown_names_are_named_with_their_lines_and_the_nearest(run: instar.Run, tmp_path: Path) -> None:
    file = write(
        tmp_path / "marks.csv",
        "case,rule,target,mark",
        "a.pgn,mirror(h),,real",
        "b.png,miror(h),,real",
        "b.png,gamma(0.5),,real",
        "a.png,mirror(h),objects,real",
        "a.png,mirror(h),,wrong",
        "a.png,mirror(h),,real",
    )
    with pytest.raises(ValueError, match="5 lines that cannot be taken, and nothing was stored") as error:
        import_marks(run, file)
    for words in (
        "line 2: unknown case 'a.pgn'; did you mean 'a.png'?",
        "line 3: unknown",
        "did you mean 'mirror'?",
        "line 4: unknown rule of this run",
        "line 5: unknown target 'objects' of a.png",
        "line 6: 'wrong' is no mark; allowed are real, false alarm, unclear",
    ):
        assert words in str(error.value)
    assert not stored_marks(run.store)


def test_another_mark_of_the_same_pair_is_replaced_only_where_that_is_asked_for(
    marked_run: instar.Run, tmp_path: Path
) -> None:
    before = dict(stored_marks(marked_run.store))
    file = write(tmp_path / "marks.csv", "case,rule,mark", "a.png,mirror(h),false alarm", "b.png,mirror(h),real")
    with pytest.raises(Conflict, match=r"a.png under mirror\(h\) => detections is real here, and false alarm there"):
        import_marks(marked_run, file)
    assert dict(stored_marks(marked_run.store)) == before
    assert import_marks(marked_run, file, replace=True) == Imported(new=1, replaced=1, same=0, empty=0)
    assert stored_marks(marked_run.store)["a.png", SHIFT, ""].mark == "false alarm"


def test_a_file_without_notes_takes_none_away_and_another_note_is_a_conflict(
    marked_run: instar.Run, tmp_path: Path
) -> None:
    file = write(tmp_path / "marks.csv", "case,rule,mark", "a.png,mirror(h),real")
    assert import_marks(marked_run, file).same == 1
    assert stored_marks(marked_run.store)["a.png", SHIFT, ""].note.startswith("= a note")
    file = write(tmp_path / "marks.csv", "case,rule,mark,note", "a.png,mirror(h),real,another")
    with pytest.raises(Conflict, match="and 'another' there"):
        import_marks(marked_run, file)


def test_of_many_wrong_lines_some_are_named_and_the_others_counted(run: instar.Run, tmp_path: Path) -> None:
    lines = [f"gone-{number}.png,mirror(h),real" for number in range(7)]
    with pytest.raises(ValueError, match=r"line 6: .*, and 2 more$"):
        import_marks(run, write(tmp_path / "marks.csv", "case,rule,mark", *lines))


def test_a_file_that_contradicts_itself_is_refused(run: instar.Run, tmp_path: Path) -> None:
    file = write(tmp_path / "marks.csv", "case,rule,mark", "a.png,mirror(h),real", "a.png,mirror(h) => detections,no")
    with pytest.raises(ValueError, match="line 3: line 2 marks the same pair as real"):
        import_marks(run, file)


def test_marks_of_another_version_are_not_taken_for_marks_of_this_one(marked_run: instar.Run, tmp_path: Path) -> None:
    """A mark is about an answer. Another model has other answers to the same pairs."""
    export_marks(marked_run, tmp_path / "marks.jsonl")
    lines = [{**json.loads(line), "system": "another"} for line in (tmp_path / "marks.jsonl").read_text().splitlines()]
    write(tmp_path / "marks.jsonl", *map(json.dumps, lines))
    with pytest.raises(ValueError, match="about the answers of another system, or of another version"):
        import_marks(marked_run, tmp_path / "marks.jsonl")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("marks.xlsx", "PK", "a file that ends in .csv or .jsonl"),
        ("marks.csv", "", "has no line"),
        ("marks.csv", "case,rule\na.png,mirror(h)", "has no column mark"),
        ("marks.jsonl", "[1]", "line 1: it is no JSON object"),
        ("marks.jsonl", "{", "line 1: it is no JSON object"),
    ],
)
def test_what_is_no_file_of_marks_says_so(run: instar.Run, tmp_path: Path, name: str, content: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        import_marks(run, write(tmp_path / name, content))


def test_report_and_panel_say_which_violations_are_real(marked_run: instar.Run) -> None:
    (panel,) = precision_panel(marked_run)
    assert panel.tables[0].rows[0][:5] == ["all rules", "6", "1", "0", "1"]
    assert "2 of 6 violated pairs are marked." in panel.text and "1 unclear pair counts in no share" in panel.text
    assert "do not speak for the others" in panel.text
    text = page(make_report([marked_run], images=0))
    assert "Which violations are real" in text
    assert "somebody looked at the pair and marked it as no error" in text, "heads are explained"


def test_a_run_without_marks_says_nothing_of_them(run: instar.Run) -> None:
    assert precision_panel(run) == []
