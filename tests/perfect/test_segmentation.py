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
    """Names the arms by the person, who faces the viewer: the side of each arm depends on where the head is."""
    cells = p.cells(pixels)
    arms, head = (np.argwhere(cells == number) for number in (1, 2))
    if len(arms) and len(head):
        middle = arms.mean(0)
        up, place = head.mean(0) - middle, arms - middle
        cells[tuple(arms.T)] = np.where(up[1] * place[:, 0] > up[0] * place[:, 1], 1, 3)
    return Segmentation.from_classes(cells, ("ground", "left arm", "head", "right arm"))


def person(number: int) -> np.ndarray:
    """A blue head above two red arms."""
    rng = np.random.default_rng(number)
    pixels = np.full((120, 160, 3), p.GROUND, np.uint8)
    x, y = int(rng.integers(72, 88)), int(rng.integers(54, 60))
    cv2.rectangle(pixels, (x - 12, y - 26), (x + 12, y - 8), p.BLUE, -1)
    for side in (-1, 1):
        cv2.circle(pixels, (x + 24 * side, y + 16), 13, p.RED, -1)
    return pixels


def pole(number: int) -> np.ndarray:
    """A street with a red pole, three pixels wide, and a blue spot."""
    pixels = np.full((120, 160, 3), p.GROUND, np.uint8)
    cv2.rectangle(pixels, (80 + number, 10), (82 + number, 110), p.RED, -1)
    cv2.rectangle(pixels, (30, 50 + number), (44, 64 + number), p.BLUE, -1)
    return pixels


POLES = [pole(number) for number in range(4)]
PEOPLE = [person(number) for number in range(4)]
FLAWLESS: dict[str, tuple[Answer, list[np.ndarray]]] = {
    "right": (right, IMAGES),
    "on a coarse grid": (on_a_grid(32, 24), IMAGES),
    "on a square grid": (on_a_grid(32, 32), IMAGES),
    "of stride eight": (of_stride_eight, IMAGES),
    "small inside": (made_large_again, IMAGES),
    "edges are unknown": (unknown_edges, IMAGES),
    "the ground is unknown": (half_unknown, IMAGES),
    "arms of the left and the right": (sided, PEOPLE),
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
