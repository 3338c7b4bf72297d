"""The original's metric, by hand: the median over landmark errors and their mean, in 0–1 coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from instar import Poses
from instar.relations import Evidence, aggregated, own_equivariance
from instar.skeleton import skeleton
from instar.suites import suite

INF, NAN = float("inf"), float("nan")
SIZE = (200, 100)
BONES = skeleton("mediapipe-pose-33")
LEFT, RIGHT = BONES.index("left_shoulder"), BONES.index("right_shoulder")


@pytest.mark.parametrize(
    ("errors", "plain", "paper"),
    [
        ([0, 1, 2, 9], 1.5, 2),  # 0 1 2 (3) 9
        ([4, 4, 4], 4, 4),
        ([7], 7, 7),
        ([0, 10], 5, 5),  # 0 (5) 10
        ([1, 2, 12], 2, 3.5),  # 1 2 (5) 12
        ([1, 1, 1, 1, INF], 1, 1),  # 1 1 1 1 ∞ (∞)
        ([1, 2, INF], 2, INF),  # 1 2 ∞ (∞): half way to ∞
        ([1, INF, INF], INF, INF),
        ([1, NAN, 2, NAN, 12], 2, 3.5),  # what is left out is left out of the mean as well
    ],
)
def test_the_mean_is_one_error_more(errors: list[float], plain: float, paper: float) -> None:
    distance = np.array([errors], float)
    assert aggregated(distance, "median")[0] == plain
    assert aggregated(distance, "median+mean")[0] == paper


def test_no_error_at_all_stays_none() -> None:
    assert np.isnan(aggregated(np.full((1, 3), NAN), "median+mean")).all()


def test_thirty_three_landmarks_are_thirty_four_values() -> None:
    # 0, 1, 4 … 32² and their mean 346.7, which lies between 18² and 19²: the middle two of 34 are 16² and 17²
    distance = (np.arange(33.0) ** 2)[None]
    assert aggregated(distance, "median")[0] == 16**2
    assert aggregated(distance, "median+mean")[0] == (16**2 + 17**2) / 2


def severity(shift: np.ndarray, answer: bool = True, **options: Any) -> float:
    """Of a subject with shoulders 40 pixels apart in 200 × 100, whose landmarks moved so far (33, 2)."""
    points = np.stack([np.linspace(50, 150, 33), np.linspace(10, 60, 33)], -1)
    points[[LEFT, RIGHT]] = [[120, 30], [80, 30]]
    told = Poses.from_array(points, skeleton=BONES)
    said = Poses.from_array(points + shift if answer else [], skeleton=BONES)
    key = {"case": "a", "draw": 0, "repeat": 0, "width": SIZE[0], "height": SIZE[1], "warp": np.eye(3).ravel().tolist()}
    source, same = (
        pl.DataFrame(
            [{**key, "follow_up": name, **{k: v.tolist() for k, v in pose.row().items()}}],
            schema_overrides=Poses.columns,
        )
        for name, pose in (("source", told), ("same", said))
    )
    bound = own_equivariance("poses")
    chosen = {p.name: p.default for p in bound.relation.options} | options
    found = bound.relation.judge(Evidence(told.header(), pl.DataFrame(), source, same, dict(bound.values), chosen))
    return float(found["severity"].item())


@pytest.mark.parametrize(
    ("shift", "pixels", "normalised"),
    [
        ((8, 0), 0.2, 0.2),  # along the shoulders both measures agree: 8/40 and 0.04/0.2
        ((0, 8), 0.2, 0.4),  # across them the image is half as high: 8/40, but 0.08/0.2
        ((6, 8), 0.25, np.hypot(0.03, 0.08) / 0.2),
    ],
)
def test_normalised_coordinates_are_not_square(shift: tuple[float, float], pixels: float, normalised: float) -> None:
    everywhere = np.tile(np.asarray(shift, float), (33, 1))
    assert severity(everywhere) == pytest.approx(pixels, rel=1e-5)
    assert severity(everywhere, space="normalised") == pytest.approx(normalised, rel=1e-5)
    both = severity(everywhere, space="normalised", aggregate="median+mean")
    assert both == pytest.approx(normalised, rel=1e-5)


def test_the_whole_metric_of_the_original() -> None:
    # half and one of the landmarks stay, 16 move 40 pixels down: 0.4, two shoulder widths in 0–1 coordinates
    shift = np.zeros((33, 2))
    shift[17:, 1] = 40
    paper: dict[str, Any] = dict(suite("met-pose@paper").options)
    assert {"aggregate": "median+mean", "outside": "keep", "space": "normalised"}.items() <= paper.items()
    assert severity(shift) == 0
    # 34 values: 17 of 0, the mean 16/33 · 2, 16 of 2; the middle two are 0 and the mean
    assert severity(shift, **paper) == pytest.approx(16 / 33, rel=1e-5)
    assert severity(shift, answer=False, **paper) == INF
