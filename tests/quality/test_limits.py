"""A search for limits finds what a whole grid finds, asks few questions for it, and its intervals hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import instar
from instar.analysis.limits import BROKEN, HELD, UNKNOWN, next_levels
from instar.image import Pixels
from instar.suites.grid import Grid, suite_of
from studies.limits import CASES as CASES_SIMULATED
from studies.limits import KINDS, RESULT, TIMES, coverage
from tests.toys import rectangles, scene, write_image

CASES = 14


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every one of another width, by which the systems below know how much it bears."""
    folder = tmp_path_factory.mktemp("limits") / "photos"
    folder.mkdir()
    for number in range(CASES):
        write_image(folder / f"{number:02}.png", scene(number, (72 + 4 * number, 64)))
    return folder


def tolerant(pixels: Pixels) -> instar.Detections:
    """Right, as long as the image is bright enough, and not too bright: how much, its width says."""
    room = (pixels.shape[1] - 72) * 3
    if not 30 + room <= int(pixels.max()) <= 254 or int(pixels.min()) > 60 + room // 2:
        return instar.Detections.from_xyxy([], [])
    return rectangles(pixels)


def asked(run: instar.Run) -> int:
    return run.predictions().height


@pytest.mark.parametrize("family", ["gamma", "brightness(add=0)"])
def test_it_finds_what_the_grid_finds_with_three_in_ten_predictions(photos: Path, tmp_path: Path, family: str) -> None:
    search = instar.boundary(tolerant, family, photos, out=tmp_path / "search", workers=0, visual=False)
    grid = instar.run(tolerant, suite_of([Grid.of(family)]), photos, out=tmp_path / "grid", workers=0)
    whole = grid.boundary()
    columns = ["ray", "case", "status", "limit", "last", "level"]
    assert search.limits.select(columns).equals(whole.limits.select(columns))
    assert search.curve.equals(whole.curve)
    assert search.limits["limit"].n_unique() > 5  # not one and the same for all
    assert asked(search.run) <= 0.3 * asked(grid)
    assert search.questions + CASES == asked(search.run)  # the sources are no follow-ups
    assert grid.manifest.until is None
    assert search.run.manifest.until is not None


def test_at_the_worst_it_asks_three_in_ten() -> None:
    """Whatever the limit, and whichever way; the source and the unchanged input are asked once."""
    for levels in (36, 40, 80):
        most = 0
        for limit in range(levels + 1):
            truth = np.where(np.arange(levels) >= limit, BROKEN, HELD).astype(np.uint8)
            states = np.zeros(levels, np.uint8)
            while chosen := next_levels(states):
                states[chosen] = truth[chosen]
            broken = np.flatnonzero(states == BROKEN)
            assert (int(broken[0]) if len(broken) else levels) == limit
            most = max(most, int((states != UNKNOWN).sum()))
        assert most + 2 <= 0.32 * (levels + 2)
        assert 2 * most + 2 <= 0.3 * (2 * levels + 2)


@pytest.mark.parametrize(("kind", "cases", "lost"), [("exponential", 6, True), ("steep", 30, False)])
def test_intervals_of_the_curve_and_of_the_median_cover(kind: str, cases: int, lost: bool) -> None:
    times = 150
    covered = coverage(KINDS[kind], cases, lost, times=times, seed=1)
    least = 0.95 - 2.6 * np.sqrt(0.95 * 0.05 / times)
    assert covered["share, all levels"] >= 0.95
    assert covered["share, worst level"] >= least
    assert covered["quantile 0.5"] >= least


def test_the_larger_simulation_says_the_same() -> None:
    rows = json.loads(RESULT.read_text("utf-8"))
    assert len(rows) == 2 * 2 * len(CASES_SIMULATED)
    assert min(row["share, worst level"] for row in rows) >= 0.95 - 2.6 * np.sqrt(0.95 * 0.05 / TIMES)
    assert min(row[f"quantile {share}"] for row in rows for share in (0.1, 0.5, 0.9)) >= 0.95
