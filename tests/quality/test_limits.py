"""A search for limits finds what a whole grid finds, asks few questions for it, and its intervals hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import instar
from instar.analysis.limits import bisections
from instar.image import Pixels
from instar.suites.grid import Grid, suite_of
from studies.limits import CASES as CASES_SIMULATED
from studies.limits import COSTS, KINDS, RESULT, TIMES, costs, coverage, most_asked, searched
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


def test_no_family_takes_more_than_three_in_ten_predictions_of_its_grid() -> None:
    """Whatever the limit, each way for itself and all ways together."""
    rows = list(costs())
    assert {"jpeg", "motion(direction=0)", "bilateral", "gamma"} <= {row["family"] for row in rows}
    assert [row["family"] for row in rows if max(row["one way"], row["all ways"]) > 0.3] == []  # type: ignore[call-overload]
    assert json.loads(COSTS.read_text("utf-8")) == rows  # what the study says is so today


def test_a_grid_of_any_length_is_searched_exactly_with_as_little_as_can_be() -> None:
    for levels in range(1, 90):
        assert [searched(levels, limit)[0] for limit in range(levels + 1)] == list(range(levels + 1))
        most = most_asked(levels) + 2
        assert most <= max(0.3 * (levels + 2), bisections(levels) + 2), levels  # no fewer questions tell as many limits
        assert 2 ** bisections(levels) > levels >= 2 ** (bisections(levels) - 1)


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
