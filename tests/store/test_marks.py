"""Marks of pairs: what people say is theirs, and survives judging, crashes and each other."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import instar
from instar.engine import judge
from instar.files import Elsewhere
from instar.remote import Address
from instar.store import (
    MOST_NOTE,
    DamagedMarks,
    NoRun,
    Store,
    Unmarkable,
    add_marks,
    changing_marks,
    new_mark,
    repair,
    stored_marks,
    why_unmarkable,
)
from tests.toys import steady, write_scenes

RULE = "mirror(h) => poses"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marks")
    write_scenes(folder / "images", 2)
    suite = instar.Suite("two", (instar.rule("mirror(h)"), instar.rule("gamma(0.5)")))
    instar.run(steady, suite, folder / "images", out=folder / "run", workers=0, zones="none")
    return folder / "run"


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Store:
    return Store(shutil.copytree(made, tmp_path / "run"))


def put(store: Store, case: str = "000.png", mark: str = "real", note: str = "") -> None:
    with changing_marks(store) as marks:
        made = new_mark(case, RULE, "0/body", mark, note)
        marks[made.key] = made


def test_marks_are_by_ids_and_survive_judging_anew(store: Store) -> None:
    put(store, note="a  hand\nis hidden")
    judge(store, {"aggregate": "max"})
    shutil.rmtree(store.folder / "verdicts")
    judge(store, {})
    (mark,) = stored_marks(Store(store.folder)).values()
    assert (mark.case, mark.rule, mark.target, mark.mark) == ("000.png", RULE, "0/body", "real")
    assert mark.note == "a hand is hidden", "a note is one line"


def test_two_writers_lose_nothing_of_each_other(store: Store) -> None:
    """Two viewers, each with a store of its own; threads lock each other out as processes do."""
    start = threading.Barrier(2)

    def write(names: range) -> None:
        own = Store(store.folder)
        start.wait()
        for number in names:
            put(own, f"{number}.png")

    writers = [threading.Thread(target=write, args=(range(first, first + 15),)) for first in (0, 15)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {case for case, _, _ in stored_marks(store)} == {f"{number}.png" for number in range(30)}


def test_a_run_that_goes_on_and_marks_do_not_meet(store: Store) -> None:
    """Whoever runs clears unfinished files beside the manifest when it starts: that of a mark is not among them."""
    with changing_marks(store) as marks:
        unfinished = store.folder / "marks" / f".{'0' * 32}.part"
        unfinished.write_bytes(b"half a mark")
        with Store(store.folder).lock():
            assert unfinished.exists()
            made = new_mark("000.png", RULE, "0/body", "unclear")
            marks[made.key] = made
    assert len(stored_marks(store)) == 1
    put(store, mark="real")  # the next writer clears what a killed one left
    assert not unfinished.exists()


def test_what_raises_while_marks_are_changed_stores_nothing(store: Store) -> None:
    put(store)
    before = (store.folder / "marks" / "marks.json").read_bytes()

    def cut_off() -> None:
        with changing_marks(store) as marks:
            marks.clear()
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        cut_off()
    assert (store.folder / "marks" / "marks.json").read_bytes() == before


def test_a_mark_is_one_of_three_and_its_note_has_a_limit() -> None:
    with pytest.raises(ValueError, match="'wrong' is no mark; allowed are: real, false alarm, unclear"):
        new_mark("a", RULE, "", "wrong")
    with pytest.raises(ValueError, match=r"at most 1,000 letters, and this one has 1,001"):
        new_mark("a", RULE, "", "real", "x" * (MOST_NOTE + 1))


def test_a_folder_that_cannot_be_written_to_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "cannot be written to, and marks are kept in it; copy the run to where you can write"

    usual = Path.open

    def read_only(self: Path, mode: str = "r", **options: Any) -> Any:
        if "a" in mode or "w" in mode:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return usual(self, mode, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", read_only)  # the administrator may write, and the disk may not
        with pytest.raises(Unmarkable, match=words), changing_marks(store):
            pass
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert words in why_unmarkable(store)
    with pytest.raises(Unmarkable, match=words):
        put(store)


def test_a_run_in_a_bucket_says_where_it_can_be_marked() -> None:
    store: Any = SimpleNamespace(folder=Address("s3://results/runs/first"))
    assert "s3://results/runs/first is in a bucket, and marks are made on a disk" in why_unmarkable(store)


def test_damaged_marks_are_named_and_set_aside(store: Store) -> None:
    put(store)
    file = store.folder / "marks" / "marks.json"
    file.write_bytes(file.read_bytes().replace(b"real", b"feal"))
    with pytest.raises(DamagedMarks, match=r"marks.json is damaged: its content does not fit its checksum"):
        stored_marks(store)
    (aside,) = repair(store)
    assert aside.aside is not None and (store.folder / aside.aside).exists()
    assert "can be imported again" in aside.content
    put(store)
    assert len(stored_marks(store)) == 1 and repair(store) == []


NO_MARK = {"case": "a", "rule": RULE, "target": "", "mark": "no"}


@pytest.mark.parametrize("content", [{}, {"marks": 3}, {"marks": [{"case": 1}]}, {"marks": [NO_MARK]}])
def test_a_file_of_others_that_holds_something_else_is_damaged(store: Store, content: object) -> None:
    (store.folder / "marks").mkdir()
    (store.folder / "marks" / "marks.json").write_text(json.dumps(content))
    with pytest.raises(DamagedMarks):
        stored_marks(store)


def test_marks_are_neither_read_nor_written_through_a_link(store: Store, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (store.folder / "marks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Elsewhere):
        stored_marks(store)
    with pytest.raises(Elsewhere):
        put(store)
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_run_that_was_deleted_is_not_made_anew(store: Store) -> None:
    shutil.rmtree(store.folder)
    with pytest.raises(NoRun):
        put(store)
    assert not store.folder.exists()


def test_a_merged_run_has_the_marks_of_its_runs(store: Store, tmp_path: Path) -> None:
    """What is marked in the merged run already stays as it is."""
    put(store, mark="real")
    other = Store(shutil.copytree(store.folder, tmp_path / "other"))
    put(other, "001.png", "unclear")
    instar.merge([store.folder, other.folder], out=tmp_path / "merged")
    merged = Store(tmp_path / "merged")
    assert {case: mark.mark for (case, _, _), mark in stored_marks(merged).items()} == {
        "000.png": "real",
        "001.png": "unclear",
    }
    put(merged, mark="false alarm")
    add_marks(merged, stored_marks(store))
    assert stored_marks(merged)["000.png", RULE, "0/body"].mark == "false alarm"
