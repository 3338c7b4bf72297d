"""Recorded captions: what is asked of them without a suite, empty ones, and labels as tables spell them."""

from __future__ import annotations

import io
from pathlib import Path

import instar
from instar.report import show_run
from instar.report.console import PlainConsole

HEAD = "case,follow_up,source_caption,caption,added\n"


def imported(folder: Path, *lines: str, head: str = HEAD) -> instar.Run:
    table = folder / "captions.csv"
    table.write_text(head + "".join(f"{line}\n" for line in lines), "utf-8")
    instar.import_outputs([table], out=folder / "run")
    return instar.open_run(folder / "run")


def test_without_a_suite_objects_and_numbers_are_asked(tmp_path: Path) -> None:
    run = imported(tmp_path, "1,recorded(paste),a dog,a dog,dog")
    assert run.rules()["rule"].to_list() == ["recorded(paste) => objects", "recorded(paste) => numbers"]
    assert run.verdicts().select("rule", "severity").rows() == [
        ("recorded(paste) => objects", 0.0),
        ("recorded(paste) => numbers", 1.0),
    ]


def test_an_empty_caption_is_one_row_and_silence(tmp_path: Path) -> None:
    run = imported(tmp_path, "1,recorded(paste),a dog,,cat", "2,recorded(paste),a dog,a dog and a cat,cat")
    rows = {row["case"]: row for row in run.verdicts().filter(rule="recorded(paste) => objects").to_dicts()}
    assert (rows["1"]["severity"], rows["1"]["kind"]) == (2.0, "silent")
    assert rows["2"]["severity"] == 0


def test_an_empty_cell_beside_an_error_is_no_output(tmp_path: Path) -> None:
    head = "case,follow_up,caption,status\n"
    run = imported(tmp_path, "1,source,a dog,", "1,recorded(dark),,timeout", head=head)
    assert set(run.predictions()["status"]) == {"ok", "timeout"}


def test_labels_with_underscores_are_normalised(tmp_path: Path) -> None:
    run = imported(tmp_path, "1,recorded(paste),a bench,a wine glass on a bench,wine_glass")
    assert run.predictions().filter(follow_up="recorded(paste)")["added"].to_list() == [["wine glass"]]
    assert run.verdicts()["severity"].to_list() == [0, 0]


def test_a_source_without_a_caption_is_not_said_to_be_kept(tmp_path: Path) -> None:
    """Where every such follow-up has a caption, no pair is empty, and the summary made up that options keep those."""
    head = "case,follow_up,caption\n"
    lines = ["1,source,", "1,recorded(paste),a car", "2,source,a dog", "2,recorded(paste),a dog"]
    run = imported(tmp_path, *lines, head=head)
    console = PlainConsole(file=io.StringIO(), width=200)
    show_run(console, run)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "The system found nothing in 1 of 2 source images.\n" in shown and "as kept" not in shown
