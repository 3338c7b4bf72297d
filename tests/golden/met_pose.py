"""The published numbers of MET-POSE as whole counts of images, and the names of their rows."""

from __future__ import annotations

import csv
import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.missing import shared

IMAGES = {"FLIC-test": 835, "phoenix-dev": 55_775}
GRID = (0.01, 0.05, 0.1, 0.2, 0.3, 0.7, 1.0, 2.0, 5.0, 20.0, float("inf"))
SUB = (
    "Id",
    "Grey",
    "Bilat(10,3)",
    "Bilat(125,5)",
    "Bilat(80,7)",
    "Bright(20,.8)",
    "Gamma(.5)",
    "CWheel(90,bg)",
    "CWheel(90,hair)",
    "MirrH",
    "Motion(11,0)",
    "Motion(11,100)",
    "Res(.2)",
    "Res(.7)",
    "Rot5",
    "Rot10",
    "Stch(1.25,1)",
    "Stch(1,.6)",
    "Stch(1,.8)",
)
MOTION = tuple(
    f"Motion({size},{angle})" for size in (5, 7, 9, 11) for angle in (0, 40, 70, 100) if (size, angle) != (11, 40)
)
FLIC_COUNTS = (0, 321, 22, 62, 74, 63, 106, 114, 71, 129, 191, 177, 179, 51, 491, 820, 176, 480, 163)
"""Violations at 0.2, in the order of SUB."""

MOTION_COUNTS = {
    "FLIC-test": [73, 83, 75, 72, 100, 99, 96, 94, 151, 122, 124, 122, 191, 166, 177],
    # (5, 0) shares no image with any other, so that its row says only that it fired: at least once
    "phoenix-dev": [1, 0, 0, 2, 3, 5, 1, 2, 12, 18, 7, 3, 77, 48, 33],
}
"""Violations at 0.2, in the order of MOTION."""

RULES = {"AllRels": "AllRels", "SubRels": "SubRelsGT", "Grey": "GreyscaleGT", "MirrH": "MirrorHGT"}
"""What the tables beside ground truth are called."""

Matrix = list[list[Fraction]]


def rows(name: str) -> list[list[str]]:
    """The rows of a table without its header. Without the golden tables the test is skipped, and says so."""
    with (shared("golden/met-pose") / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def share(text: str, most: int) -> Fraction:
    """The fraction, its denominator no greater than the number of images, that was printed as a float."""
    found = Fraction(text).limit_denominator(most)
    assert float(text) == pytest.approx(float(found), rel=1e-14, abs=0), f"{text} is no share of {most}"
    return found


def count(text: str, images: int) -> int:
    """A printed rate as a whole number of images."""
    whole = share(text, images) * images
    assert whole.denominator == 1, f"{text} of {images} images is {float(whole)}"
    return int(whole)


def histogram(data: str, rules: str, part: str = "pose", features: tuple[str, ...] = ("pose",)) -> list[list[int]]:
    """Images that violate at least one rule, per landmark group and threshold."""
    found = rows(f"histogram_failed_images_across_thresholds_{part}_{data}_{rules}")
    assert [(row[1], float(row[2])) for row in found] == [(feature, t) for feature in features for t in GRID]
    counts = [count(row[3], IMAGES[data]) for row in found]
    return [counts[start : start + len(GRID)] for start in range(0, len(counts), len(GRID))]


def against_truth(rules: str) -> tuple[list[int], list[int], list[int]]:
    """FLIC images that fail both ways, metamorphic testing only, classic testing only."""
    found = rows(f"gt_vs_metamorphic_failed_tests_across_thresholds_FLIC-test_{rules}")
    features = ("both failed", "only metamorphic", "only ground truth")
    assert [(row[2], float(row[3])) for row in found] == [(feature, t) for feature in features for t in GRID]
    counts = [count(row[1], IMAGES["FLIC-test"]) for row in found]
    return counts[:11], counts[11:22], counts[22:]


def table_two(data: str) -> np.ndarray:
    """Images by number of violated rules (0, 1, 2, 3, 4, four ranges, 122) and threshold."""
    found = rows(f"images_failed_per_num_of_rules_pose_{data}_FailedPerNumRulesTable")
    assert {int(number) for number in found[-1][2:]} == {IMAGES[data]}
    return np.array([[int(number) for number in row[2:]] for row in found[:-1]])


def matrix(data: str, rules: str) -> Matrix:
    """Shares |row ∧ column| / |row| at 0.2."""
    return [
        [share(text, IMAGES[data]) for text in row[1:]] for row in rows(f"table_subsumption_ratios_pose_{data}_{rules}")
    ]


def fired(shares: Matrix) -> list[int]:
    """How often each rule fired: the smallest number that makes its row whole; 0 where all cover it."""
    return [
        0 if set(row) == {Fraction(1)} else int(np.lcm.reduce([cell.denominator for cell in row])) for row in shares
    ]


def fired_on(data: str) -> list[int]:
    """How often each rule of SubRels fired at 0.2: made whole row by row, then by the pairs' symmetry."""
    shares, counts = matrix(data, "SubRels"), fired(matrix(data, "SubRels"))
    for _ in counts:
        for i, j in itertools.permutations(range(len(counts)), 2):
            if counts[i] and counts[j] and shares[i][j]:
                # at least so often: the joint count is the same from both sides
                least = shares[j][i] * counts[j] / shares[i][j]
                counts[i] = max(counts[i], int(least))
    return counts
