"""Flawless systems, with and without noise of their own: no landmark of theirs is accused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from instar import Poses, declare
from tests.perfect.figures import PLACE, perfect, points_of, pose, run_of
from tests.quality.words import accusations


def jitter(scale: np.ndarray | float, seed: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(0, 1, (17, 2)) * np.reshape(scale, (-1, 1)))


@declare(kind="poses", deterministic=False)
def noisy(pixels: np.ndarray, seed: int) -> Poses:
    return pose(points_of(pixels) + jitter(2.0, seed))


@declare(kind="poses", deterministic=False)
def with_one_noisy_wrist(pixels: np.ndarray, seed: int) -> Poses:
    """The left wrist is noisier than everything else, whatever is done to the image."""
    scale = np.full(17, 0.5)
    scale[PLACE["left_wrist"]] = 40.0
    return pose(points_of(pixels) + jitter(scale, seed))


def noisy_by_content(pixels: np.ndarray) -> Poses:
    """The same image has the same answer, every other image another noise."""
    return pose(points_of(pixels) + jitter(1.5, int(pixels.astype(np.int64).sum())))


def leaves_covered_points_out(pixels: np.ndarray) -> Poses:
    """What lies under something black is not shown."""
    points = points_of(pixels)
    height, width = pixels.shape[:2]
    x, y = np.nan_to_num(points, nan=-1).astype(int).T
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    hidden = inside & (pixels[y.clip(0, height - 1), x.clip(0, width - 1)] == 0).all(1)
    points[hidden] = np.nan
    return pose(points)


FLAWLESS = {
    "exact": perfect,
    "noisy": noisy,
    "one noisy wrist": with_one_noisy_wrist,
    "noisy by content": noisy_by_content,
    "leaves covered points out": leaves_covered_points_out,
}


@pytest.mark.parametrize("name", FLAWLESS)
def test_no_landmark_of_a_flawless_system_is_accused(name: str, tmp_path: Path) -> None:
    rules = ("identity", "mirror(h)", "gamma(2)", "rotation(3)", "discs(3, radius=4)")
    run = run_of(FLAWLESS[name], tmp_path, rules=rules)
    assert run.straying_parts().is_empty()
    assert accusations(run) == []
