"""Measures against cases counted by hand, and against pycocotools' own summary."""

from __future__ import annotations

import io
import math
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np
import pytest

from instar.outputs.detections import Detections
from instar.tasks.object_relevance.repair import before_after, markdown, matched
from instar.tasks.object_relevance.repair.measures import _evaluated
from tests.missing import module


@pytest.fixture(autouse=True)
def _evaluator() -> None:
    module("pycocotools")


def boxes(*xyxy: tuple[float, ...], labels: str = "", scores: tuple[float, ...] | None = None) -> Detections:
    return Detections.from_xyxy(list(xyxy), list(labels) or ["a"] * len(xyxy), scores)


def test_a_perfect_detector() -> None:
    truths = [boxes((0, 0, 10, 10), (20, 20, 40, 50), labels="ab"), boxes(), boxes((5, 5, 9, 9), labels="b")]
    found = matched(truths, truths).values()
    assert found["mAP@0.5"] == found["mAP@0.5:0.95"] == found["precision"] == found["recall"] == 1
    assert found["mean IoU"] == 1
    assert (found["TP"], found["FP"], found["FN"]) == (3, 0, 0)
    assert math.isnan(found["unreliable"])


def test_counted_by_hand() -> None:
    """Two labels; said are a hit of IoU 0.8, a miss, a second hit on the same label, and one that is not sure."""
    truths = [boxes((0, 0, 10, 10), (50, 50, 60, 60))]
    answers = [boxes((0, 0, 10, 8), (80, 80, 90, 90), (0, 0, 10, 9), (50, 50, 60, 60), scores=(0.9, 0.8, 0.7, 0.3))]
    found = matched(answers, truths).values()
    assert (found["TP"], found["FP"], found["FN"]) == (1, 2, 1)
    assert found["precision"] == pytest.approx(1 / 3)
    assert found["recall"] == pytest.approx(1 / 2)
    assert found["mean IoU"] == pytest.approx(0.8)
    # recall 0 … 0.5 at precision 1, above at 2 of 4
    assert found["mAP@0.5"] == pytest.approx((51 * 1 + 50 * 0.5) / 101)


def test_the_wrong_class_is_no_hit() -> None:
    found = matched([boxes((0, 0, 10, 10), labels="b")], [boxes((0, 0, 10, 10), labels="a")]).values()
    assert (found["TP"], found["FP"], found["FN"]) == (0, 1, 1)
    assert found["mAP@0.5"] == 0, "a class that is only said counts in no average"


def test_nothing_said_and_nothing_there() -> None:
    assert matched([boxes()], [boxes((0, 0, 1, 1))]).values()["recall"] == 0
    empty = matched([boxes()], [boxes()]).values()
    assert math.isnan(empty["mAP@0.5"]) and empty["TP"] == empty["FN"] == 0


def random_pair(images: int = 40, seed: int = 0) -> tuple[list[Detections], list[Detections]]:
    rng = np.random.default_rng(seed)
    answers, truths = [], []
    for _ in range(images):
        count = int(rng.integers(0, 5))
        low = rng.uniform(0, 80, (count, 2))
        there = np.concatenate([low, low + rng.uniform(5, 30, (count, 2))], 1)
        labels = [str(label) for label in rng.choice(list("abc"), count)]
        truths.append(Detections.from_xyxy(there, labels))
        invented = rng.uniform(0, 20, (2, 4)) + np.array([0, 0, 30, 30])
        moved = np.concatenate([there + rng.normal(0, 2, there.shape), invented])
        moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)
        said = [label if rng.random() < 0.8 else "c" for label in [*labels, "a", "b"]]
        answers.append(Detections.from_xyxy(moved, said, rng.uniform(0.05, 1, len(said))))
    return answers, truths


def test_average_precision_is_that_of_pycocotools() -> None:
    answers, truths = random_pair()
    evaluation, _ = _evaluated(answers, truths)
    evaluation.params.maxDets = [1, 10, 100]
    evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]] * 4, ["all", "small", "medium", "large"]
    with redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    found = matched(answers, truths).values()
    assert found["mAP@0.5:0.95"] == pytest.approx(evaluation.stats[0], abs=1e-9)
    assert found["mAP@0.5"] == pytest.approx(evaluation.stats[1], abs=1e-9)


def test_an_image_that_counts_twice_is_two_images() -> None:
    answers, truths = random_pair(12)
    weights = np.array([2.0, 0, 1, 1, 3, 1, 0, 1, 1, 1, 1, 0])
    picked = np.repeat(np.arange(12), weights.astype(int))
    one = matched(answers, truths).values(weights)
    other = matched([answers[n] for n in picked], [truths[n] for n in picked]).values()
    assert one == pytest.approx(other, nan_ok=True)


def test_some_of_the_images() -> None:
    answers, truths = random_pair(20)
    half = np.arange(20) % 2 == 0
    part = matched(answers, truths).only(half).values()
    assert part == pytest.approx(matched(answers[::2], truths[::2]).values(), nan_ok=True)


def test_before_and_after_are_paired() -> None:
    answers, truths = random_pair(60)
    before = matched(answers, truths)
    same = before_after([before] * 3, [before] * 3, resamples=100)
    assert same["change"].to_list() == same["low"].to_list() == same["high"].to_list() == [0] * 8
    assert "unreliable" not in same["measure"].to_list()
    better = matched(truths, truths)
    table = before_after([before, before], [better, before], resamples=100)
    row = next(row for row in table.iter_rows(named=True) if row["measure"] == "mAP@0.5")
    assert row["before_low"] < row["before"] < row["before_high"]
    assert row["low"] < row["change"] < row["high"] and row["low"] > 0
    assert row["seed_low"] == 0 and row["seed_high"] == pytest.approx(2 * row["change"])
    assert (row["seeds_better"], row["seeds"]) == (1, 2)
    assert "| mAP@0.5 |" in markdown(table)


def test_unreliable_is_the_share_of_verdicts() -> None:
    answers, truths = random_pair(4)
    one = replace(matched(answers, truths), broken=np.array([1.0, 0, 3, 0]), judged=np.array([4.0, 4, 4, 0]))
    assert one.values()["unreliable"] == pytest.approx(4 / 12)
    assert one.values(np.array([0.0, 0, 1, 1]))["unreliable"] == pytest.approx(3 / 4)
    fewer = replace(one, broken=np.zeros(4))
    rows = {row["measure"]: row for row in before_after([one], [fewer], resamples=50).iter_rows(named=True)}
    assert rows["unreliable"]["seeds_better"] == 1, "less is better"


def test_what_is_not_known_is_null() -> None:
    """One image of ten has the only match: images drawn anew often have none, and then there is no mean IoU."""
    truths = [boxes((0, 0, 10, 10))] * 10
    one = matched([truths[0], *[boxes()] * 9], truths)
    rows = {row["measure"]: row for row in before_after([one], [one], resamples=50).iter_rows(named=True)}
    assert rows["mean IoU"]["before"] == 1 and rows["mean IoU"]["low"] is None
    assert "– … –" in markdown(before_after([one], [one], resamples=50))


def test_different_images_are_refused() -> None:
    answers, truths = random_pair(4)
    with pytest.raises(ValueError, match="same images"):
        before_after([matched(answers, truths)], [matched(answers[:3], truths[:3])])
    with pytest.raises(ValueError, match="3 answers for 4 images"):
        matched(answers[:3], truths)
