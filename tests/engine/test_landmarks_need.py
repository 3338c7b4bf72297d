"""Discs cover annotated landmarks; without annotation, those that the system finds in the source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.poses import Poses

SPOTS = np.stack([np.linspace(10, 90, 21), np.linspace(20, 60, 21)], -1)
DOWN = np.array([0, 10])


def knowing(pixels: np.ndarray) -> Poses:
    """Finds a hand at the same place always, and beside it one that it is not sure of."""
    return Poses.from_array(np.stack([SPOTS, SPOTS + 5]), skeleton="hand-21", scores=[0.9, 0.2])


def ran(out: Path, truth: Poses | None) -> pl.DataFrame:
    case = Case("a", input=Image(np.full((80, 100, 3), 200, np.uint8)), truth=truth)
    data = Dataset("one", "", lambda: iter([case]), truth="poses" if truth else None)
    return instar.run(knowing, "discs(3) + finger_discs(thumb)", data, out=out, workers=0).predictions()


def places(rows: pl.DataFrame) -> list[list[float]]:
    (boxes,) = rows.filter(follow_up="discs(3)")["regions"]
    found = np.reshape(boxes, (-1, 4))
    centres: list[list[float]] = ((found[:, :2] + found[:, 2:]) / 2).round().tolist()
    return centres


def test_annotated_landmarks_are_covered(tmp_path: Path) -> None:
    moved = Poses.from_array(SPOTS + DOWN, skeleton="hand-21")
    assert places(ran(tmp_path / "run", moved)) == (SPOTS[:3] + DOWN).round().tolist()


def test_without_annotation_the_answer_to_the_source_stands_in(tmp_path: Path) -> None:
    rows = ran(tmp_path / "run", None)
    assert set(rows["status"]) == {"ok"}
    assert places(rows) == SPOTS[:3].round().tolist(), "what it is not sure of is left alone"
