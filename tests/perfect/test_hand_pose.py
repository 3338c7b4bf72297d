"""Hand pose systems whose performance is known, and faults that the right rule must expose."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.poses import Poses
from instar.relations.over_cases import POOLED
from tests.missing import shared

SIZE = (120, 100)
OPEN = np.array(
    [
        (60, 90),
        (45, 80),
        (37, 72),
        (30, 65),
        (24, 58),
        (50, 60),
        (48, 48),
        (46, 38),
        (45, 28),
        (60, 58),
        (60, 44),
        (60, 34),
        (60, 22),
        (68, 60),
        (70, 47),
        (71, 37),
        (72, 27),
        (76, 64),
        (80, 54),
        (83, 46),
        (86, 38),
    ],
    float,
)
"""An open hand, landmark by landmark."""


def drawn(seed: int) -> tuple[Image, Poses]:
    """Every landmark is a spot of its own grey, 3 pixels wide, on a ground that is darker than all of them."""
    rng = np.random.default_rng(seed)
    moved = OPEN + rng.normal(0, 1.0, 2) * 4 + rng.normal(0, 1.2, OPEN.shape)
    points = np.rint(moved).clip(15, np.array(SIZE) - 4) + 0.5
    pixels = np.full((SIZE[1], SIZE[0], 3), 40, np.uint8)
    for number, (x, y) in enumerate(points.astype(int)):
        pixels[y - 1 : y + 2, x - 1 : x + 2] = 100 + 7 * number
    pixels[2:8, 4 + 9 * seed : 10 + 9 * seed] = 255  # which picture it is
    return Image(pixels), Poses.from_array(points, skeleton="hand-21")


HANDS = [drawn(seed) for seed in range(12)]


def data(*, annotated: bool = True, count: int = 12) -> Dataset:
    cases = [
        Case(f"{number:02d}", input=image, truth=truth if annotated else None)
        for number, (image, truth) in enumerate(HANDS[:count])
    ]
    return Dataset("spots", "", lambda: iter(cases), truth="poses" if annotated else None)


def known(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hand this picture was made from, and which of its landmarks are not under a black disc.

    It tells pictures by their brightest mark, which neither exposure nor blur takes away.
    """
    marks = [int(pixels[2:8, 4 + 9 * number : 10 + 9 * number].sum()) for number in range(12)]
    best = HANDS[int(np.argmax(marks))][1].points[0]
    shown = pixels[best[:, 1].astype(int), best[:, 0].astype(int), 0] > 0
    return best, shown


def answer(points: np.ndarray, shown: np.ndarray | None = None) -> Poses:
    given = points.astype(float).copy()
    if shown is not None:
        given[~shown] = np.nan
    return Poses.from_array(given, skeleton="hand-21", scores=[0.9])


def seeing(pixels: np.ndarray) -> Poses:
    """Finds every landmark that is not covered."""
    return answer(*known(pixels))


def guessing(pixels: np.ndarray) -> Poses:
    """Knows the hand behind the discs."""
    return answer(known(pixels)[0])


def thumbless(pixels: np.ndarray) -> Poses:
    points, shown = known(pixels)
    return answer(points, shown & ~np.isin(np.arange(21), (1, 2, 3, 4)))


def afraid_of_the_dark(pixels: np.ndarray) -> Poses:
    if np.percentile(pixels, 99) < 60:
        return Poses.from_array([], skeleton="hand-21")
    return answer(known(pixels)[0])


def mean_hand(pixels: np.ndarray) -> Poses:
    return answer(np.mean([truth.points[0] for _, truth in HANDS], 0) + np.array([9, -9]))


def ran(system: Callable[[np.ndarray], Poses], out: Path, suite: str = "hand-pose", **how: bool) -> pl.DataFrame:
    run = instar.run(system, suite, data(**how), out=out, workers=0)
    found = run.over_cases()
    return found.with_columns(name=pl.col("rule").str.replace(r" => .*", ""))


def severity(found: pl.DataFrame) -> dict[str, float]:
    return dict(found.select("name", "severity").iter_rows())


def test_a_system_that_sees_what_is_there_falls_in_proportion_to_what_is_covered(tmp_path: Path) -> None:
    found = ran(seeing, tmp_path)
    told = {row["name"]: row for row in found.iter_rows(named=True)}
    assert told["discs(1..21)"]["r"] < -0.95
    assert told["discs(1..21)"]["severity"] == 0
    assert told["gamma(5)"]["drop"] == told["motion(20, 0)"]["drop"] == 0
    thumb = told["finger_discs(thumb)"]
    assert thumb["baseline"] == 1
    assert thumb["drop"] == pytest.approx(1 - 2 * 17 / (2 * 17 + 4), abs=0.05), "four of 21 are not found"
    assert thumb["low"] <= thumb["drop"] <= thumb["high"]


def test_a_system_that_knows_the_hand_behind_the_discs_does_not_degrade(tmp_path: Path) -> None:
    found = severity(ran(guessing, tmp_path))
    assert found.pop("discs(1..21)") == pytest.approx(0.9), "covering costs it nothing: no response at all"
    assert set(found.values()) == {0.0}


def test_without_labels_the_source_is_the_reference(tmp_path: Path) -> None:
    told = {row["name"]: row for row in ran(thumbless, tmp_path, annotated=False).iter_rows(named=True)}
    assert told["gamma(2)"]["baseline"] == 1, "what it said of the source is right by definition"
    assert told["finger_discs(thumb)"]["severity"] is None, "it has no thumb that could be covered"
    assert told["finger_discs(index)"]["severity"] > 0


def test_one_case_is_not_enough(tmp_path: Path) -> None:
    run = instar.run(seeing, "hand-pose", data(count=1), out=tmp_path, workers=0)
    assert set(run.over_cases()["severity"]) == {None}
    assert all("two" in reason for reason in run.over_cases()["reason"])


def test_hands_that_are_not_there_and_hands_too_many(tmp_path: Path) -> None:
    """No hand annotated and one found is wrong; a second hand that is found is right, one that is not is missing."""
    image, truth = HANDS[0]
    other = truth.points[0] * [0.4, 0.4]
    both = Poses.from_array(np.stack([truth.points[0], other]), skeleton="hand-21")
    nobody = Poses.from_array([], skeleton="hand-21")
    cases = [
        Case("one", input=image, truth=truth),
        Case("two", input=image, truth=both),
        Case("none", input=image, truth=nobody),
    ]
    run = instar.run(
        seeing, "gamma(2) => accuracy", Dataset("some", "", lambda: iter(cases), truth="poses"), out=tmp_path, workers=0
    )
    counts = {
        row["case"]: tuple(int(row[f"hand_{name}"]) for name in ("tp", "fp", "fn"))
        for row in run.verdicts().iter_rows(named=True)
    }
    assert counts == {"one": (1, 0, 0), "two": (1, 0, 1), "none": (0, 1, 0)}
    landmarks = {
        row["case"]: tuple(int(row[name]) for name in ("tp", "fp", "fn"))
        for row in run.verdicts().iter_rows(named=True)
    }
    assert landmarks == {"one": (21, 0, 0), "two": (21, 0, 21), "none": (0, 21, 0)}


def test_hands_that_hold_an_object_are_left_out_of_the_relations(tmp_path: Path) -> None:
    cases = [
        Case(f"{n}", input=image, truth=truth, attributes={"object": n % 3 == 0})
        for n, (image, truth) in enumerate(HANDS)
    ]
    run = instar.run(
        seeing,
        "gamma(2) => degradation(f1)",
        Dataset("some", "", lambda: iter(cases), truth="poses"),
        out=tmp_path,
        workers=0,
    )
    assert run.over_cases()["cases"].to_list() == [8]
    told = run.verdicts().filter(pl.col("status") == "not applicable")
    assert set(told["reason"]) == {"the hand holds an object; holding=judge takes such hands too"}
    assert run.over_cases(run.judge(holding="judge"))["cases"].to_list() == [12]


def test_published_percentages() -> None:
    with (shared("golden") / "hand-pose" / "confusion.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    for row in rows:
        counts = {
            name: np.array(float(row[column]))
            for name, column in (
                ("hand_tp", "true_positive"),
                ("hand_fp", "false_positive"),
                ("hand_fn", "false_negative"),
            )
        }
        for measure in ("precision", "recall", "f1"):
            names, pooled = POOLED[f"hand_{measure}"]
            value = 100 * float(pooled(*(counts[name] for name in names)))
            assert f"{value:.2f}" == row[f"{measure}_percent"], (row["system"], measure)
