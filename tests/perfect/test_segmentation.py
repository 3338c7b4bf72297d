"""Flawless segmenters: nothing that the suite `segmentation` asks is held against them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from instar import Segmentation
from instar.outputs.segmentation import UNKNOWN
from tests.quality import painted as p
from tests.quality.words import accusations, assert_accused, assert_shown

NAMES = ("ground", "red", "blue")
IMAGES = [p.street(number) for number in range(4)]
Answer = Callable[[np.ndarray], Segmentation]


def right(pixels: np.ndarray) -> Segmentation:
    return Segmentation.from_classes(p.cells(pixels), NAMES)


def on_a_grid(across: int, down: int) -> Answer:
    """The nearest pixel's class for each cell of a grid that has always the same number of cells."""
    return lambda pixels: Segmentation.from_classes(
        cv2.resize(p.cells(pixels), (across, down), interpolation=cv2.INTER_NEAREST_EXACT), NAMES
    )


def of_stride_eight(pixels: np.ndarray) -> Segmentation:
    size = max(1, round(pixels.shape[1] / 8)), max(1, round(pixels.shape[0] / 8))
    return Segmentation.from_classes(cv2.resize(p.cells(pixels), size, interpolation=cv2.INTER_NEAREST_EXACT), NAMES)


def made_large_again(pixels: np.ndarray) -> Segmentation:
    """A quarter of the size inside, as large as the image outside."""
    height, width = pixels.shape[:2]
    inside = cv2.resize(p.cells(pixels), (width // 4, height // 4), interpolation=cv2.INTER_NEAREST_EXACT)
    return Segmentation.from_classes(cv2.resize(inside, (width, height), interpolation=cv2.INTER_NEAREST_EXACT), NAMES)


def unknown_edges(pixels: np.ndarray) -> Segmentation:
    """Within two pixels of an edge it does not commit itself."""
    cells = p.cells(pixels)
    edges = cv2.dilate(cells, np.ones((5, 5), np.uint8)) != cv2.erode(cells, np.ones((5, 5), np.uint8))
    cells[edges] = UNKNOWN
    return Segmentation.from_classes(cells, NAMES)


def half_unknown(pixels: np.ndarray) -> Segmentation:
    """It knows things, and nothing of the ground."""
    cells = p.cells(pixels)
    return Segmentation.from_classes(np.where(cells == 0, UNKNOWN, cells).astype(np.uint8), NAMES)


def sided(pixels: np.ndarray) -> Segmentation:
    """What is at the left of the other is the left one: a mirror exchanges them."""
    cells = p.cells(pixels)
    places = [np.argwhere(cells == number)[:, 1].mean() if (cells == number).any() else np.nan for number in (1, 2)]
    table = np.array([0, 1, 2] if places[0] < places[1] else [0, 2, 1], np.uint8)
    return Segmentation.from_classes(table[cells], ("ground", "Left-thing", "Right-thing"))


def pole(number: int) -> np.ndarray:
    """A street with a red pole, three pixels wide, and a blue spot."""
    pixels = np.full((120, 160, 3), p.GROUND, np.uint8)
    cv2.rectangle(pixels, (80 + number, 10), (82 + number, 110), p.RED, -1)
    cv2.rectangle(pixels, (30, 50 + number), (44, 64 + number), p.BLUE, -1)
    return pixels


POLES = [pole(number) for number in range(4)]
FLAWLESS: dict[str, tuple[Answer, list[np.ndarray]]] = {
    "right": (right, IMAGES),
    "on a coarse grid": (on_a_grid(32, 24), IMAGES),
    "on a square grid": (on_a_grid(32, 32), IMAGES),
    "of stride eight": (of_stride_eight, IMAGES),
    "small inside": (made_large_again, IMAGES),
    "edges are unknown": (unknown_edges, IMAGES),
    "the ground is unknown": (half_unknown, IMAGES),
    "classes of the left and the right": (sided, IMAGES),
    "a pole": (right, POLES),
    "a pole on a coarse grid": (on_a_grid(40, 30), POLES),
    "a pole of stride eight": (of_stride_eight, POLES),
}


@pytest.mark.parametrize("name", FLAWLESS)
def test_nothing_is_held_against_it(name: str, tmp_path: Path) -> None:
    answer, images = FLAWLESS[name]
    run = p.run_of(answer, "segmentation", images, tmp_path / "run")
    assert not p.violated(run), run.worst(5)
    assert run.verdicts()["severity"].is_not_null().all()
    assert accusations(run) == []
    if name == "right":
        assert_shown(run)


def test_nothing_known_twice_is_not_judged(tmp_path: Path) -> None:
    unknown = lambda pixels: Segmentation.from_classes(np.full((8, 8), UNKNOWN, np.uint8), NAMES)  # noqa: E731
    run = p.run_of(unknown, "segmentation", IMAGES, tmp_path / "run", "mirror(h)")
    assert set(run.verdicts()["reason"]) == {"nothing was found in either image"}
    assert_accused(run, "unknown everywhere")
