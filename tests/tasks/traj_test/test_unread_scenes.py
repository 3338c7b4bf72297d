"""Scenes that cannot be read say why, and are no run in which nothing is left to do."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from instar.cli import main

WALKERS = Path(__file__).parents[3] / "examples" / "walkers"


def off_the_map(folder: Path) -> None:
    head, *lines = (folder / "walkers.csv").read_text().splitlines()
    moved = [[*line.split(",")[:3], "5000", line.split(",")[4]] for line in lines]
    (folder / "walkers.csv").write_text("\n".join([head, *map(",".join, moved)]) + "\n")


def unnamed_class(folder: Path) -> None:
    for path in folder.glob("*.png"):
        cells = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        assert cells is not None
        cells[:3] = np.uint8(9)
        cv2.imwrite(str(path), cells)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [(off_the_map, "of the past is off the map of"), (unnamed_class, "the map has cells of class 9, the names end")],
)
def test_the_reason_is_printed(
    spoil: Callable[[Path], None],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "walkers"
    shutil.copytree(WALKERS, folder)
    spoil(folder)
    command = ["run", "constant-velocity", "mirror(h) => wvc(2, 1)", str(folder / "walkers.csv"), "--limit", "2"]
    monkeypatch.setattr(sys, "argv", ["instar", *command, "--out", str(tmp_path / "run"), "--workers", "0"])
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as ended:
        main()
    printed, errors = capsys.readouterr()
    assert ended.value.code == 3
    assert "no case of this dataset can be read" in printed
    assert "2 times: " in printed
    assert printed.count(reason) == 1
    assert "Nothing is left" not in printed
    assert "none could be read" in errors
