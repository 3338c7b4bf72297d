"""Intervals of shares of instances cover, however alike the instances of an image are.

The long version is `python -m studies.clusters`, whose result is `studies/clusters.json`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from studies.clusters import COVERAGE, RESULT, WIDEST, covered, difference_covered


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(RESULT.read_text("utf-8"))
    return result


@pytest.mark.parametrize(("rate", "correlation"), [(0.05, 0.6), (0.02, 0.9), (0.3, 0.0), (0.5, 0.3)])
@pytest.mark.parametrize("instances", [3, 30, "1 to 30"])
def test_shares_cover(instances: int | str, rate: float, correlation: float) -> None:
    for images in (10, 40):
        coverage, _ = covered(images, instances, rate, correlation, 1500, np.random.default_rng(0))
        assert coverage >= COVERAGE - 0.012, images  # two standard errors


def test_shares_of_many_independent_instances_are_no_wider_than_they_must_be() -> None:
    assert covered(40, 10, 0.2, 0.0, 1000, np.random.default_rng(0))[1] <= WIDEST
    assert covered(100, 30, 0.05, 0.1, 1000, np.random.default_rng(0))[1] <= WIDEST


@pytest.mark.parametrize(("images", "pair", "agreeing"), [(15, (0.05, 0.05), 0.95), (40, (0.05, 0.15), 0.6)])
def test_differences_cover(images: int, pair: tuple[float, float], agreeing: float) -> None:
    coverage = difference_covered(images, 10, pair, 0.4, agreeing, 600, np.random.default_rng(0))
    assert coverage >= COVERAGE - 0.02


def test_so_it_was_for_all_settings_of_the_study(committed: dict[str, Any]) -> None:
    """Intervals are much wider than the oracle's only in few images or if few of them are hit."""
    assert min(row["least coverage"] for row in committed["shares"]) >= COVERAGE
    assert min(row["least coverage"] for row in committed["differences"]) >= COVERAGE
    wide = [(row["images"], float(cell.partition(",")[0])) for row in committed["shares"] for cell in row["too wide"]]
    assert all(images * rate < 3 or images == 10 for images, rate in wide)
