"""`instar repair-run`: a damaged run is named by every command, mended by one, and completed by the next."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import FORGETFUL, Type
from tests.store.test_whole import flip, part_of


@pytest.fixture
def damaged(done: Path, tmp_path: Path) -> Path:
    """A copy of the run, with a bit of its predictions changed, and its verdicts gone."""
    copy = tmp_path / "run"
    shutil.copytree(done, copy)
    flip(part_of(copy / "predictions"))
    shutil.rmtree(copy / "verdicts")
    return copy


@pytest.mark.parametrize("command", [("show",), ("judge",), ("slices",), ("report", "--out", "x.html")])
def test_a_damaged_file_is_one_line_that_names_it_and_what_to_do(
    typed: Type, damaged: Path, command: tuple[str, ...]
) -> None:
    ran = typed(command[0], damaged, *command[1:])
    assert ran.code == 2
    assert str(part_of(damaged / "predictions")) in ran.stderr and f"instar repair-run {damaged}" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_repair_says_what_was_lost_and_the_same_run_makes_it_again(typed: Type, damaged: Path, photos: Path) -> None:
    name = part_of(damaged / "predictions").name
    ran = typed("repair-run", damaged)
    assert ran.code == 0
    assert f"predictions/{name}: its content does not fit the checksum in its name" in ran.words
    assert f"it is now damaged/predictions-{name}. It held" in ran.words
    assert "predictions; the next run makes them again" in ran.words and "1 damaged, and set aside" in ran.words
    again = typed(*FORGETFUL, photos, "--out", damaged, "--zones", "none", "--workers", 0)
    assert again.code == 0, again.stderr
    assert typed("repair-run", damaged, "--json").code == 0
    assert json.loads(typed("repair-run", damaged, "--json").stdout)["repairs"] == []
    assert "every file is whole" in typed("repair-run", damaged).words


def test_a_full_disk_is_one_line_that_names_the_file_and_what_to_do(
    typed: Type, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    ran = typed(*FORGETFUL, photos, "--out", tmp_path / "run", "--zones", "none", "--workers", 0)
    assert ran.code == 2 and "Traceback" not in ran.stderr
    assert str(tmp_path / "run") in ran.stderr and "No space left on device" in ran.words
    assert "the same command goes on" in ran.words


def test_a_folder_that_is_no_run_is_not_repaired(typed: Type, tmp_path: Path) -> None:
    ran = typed("repair-run", tmp_path)
    assert ran.code == 2 and "holds no run" in ran.stderr
