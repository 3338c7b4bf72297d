"""The equivariance of detections, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from instar import Detections
from instar.relations import Evidence, own_equivariance
from instar.relations.relation import NOTHING_FOUND

SIZE = (100, 100)
SHIFT = np.array([[1.0, 0, 60], [0, 1, 0], [0, 0, 1]])


def verdicts(
    source: Detections, *follow_ups: Detections, matrix: np.ndarray | None = None, **options: Any
) -> dict[str, dict[str, Any]]:
    """The verdicts by target of a source and the draws of one follow-up."""
    bound = own_equivariance("detections")

    def frame(name: str, outputs: tuple[Detections, ...]) -> pl.DataFrame:
        key = {"case": "a", "follow_up": name, "repeat": 0, "width": SIZE[0], "height": SIZE[1]}
        warp = (np.eye(3) if matrix is None else matrix).ravel().tolist()
        rows = [{**key, "draw": draw, "warp": warp, **one.row()} for draw, one in enumerate(outputs)]
        return pl.DataFrame(rows, schema_overrides=dict(Detections.columns))

    evidence = Evidence(
        source.header(),
        pl.DataFrame(),
        frame("source", (source,)),
        frame("moved", follow_ups),
        dict(bound.values),
        {p.name: p.default for p in bound.relation.options} | options,
    )
    return {row["target"]: row for row in bound.relation.judge(evidence).iter_rows(named=True)}


def boxes(*xyxy: tuple[float, float, float, float], labels: list[str] | None = None, **more: Any) -> Detections:
    return Detections.from_xyxy(np.array(xyxy, float).reshape(-1, 4), labels or ["cat"] * len(xyxy), **more)


def test_each_object_has_one_minus_the_overlap_of_its_box() -> None:
    judged = verdicts(boxes((0, 0, 10, 10), (50, 50, 70, 70)), boxes((50, 50, 70, 70), (5, 0, 15, 10)))
    assert judged["0"]["severity"] == pytest.approx(2 / 3) and judged["1"]["severity"] == 0
    assert set(judged) == {"0", "1"} and judged["0"]["kind"] is None


def test_lost_and_invented_objects_and_wrong_classes() -> None:
    source = boxes((0, 0, 10, 10), (50, 50, 70, 70), labels=["cat", "dog"])
    judged = verdicts(source, boxes((50, 50, 70, 70), (80, 0, 90, 10), (20, 20, 30, 30)))
    assert [(judged[name]["severity"], judged[name]["kind"]) for name in ("0", "1", "whole")] == [
        (1.0, "lost"),
        (1.0, "class"),
        (1.0, "invented"),
    ]
    assert judged["whole"]["invented"] == 2


def test_a_right_class_is_matched_before_a_better_overlap() -> None:
    judged = verdicts(boxes((0, 0, 10, 10)), boxes((0, 0, 10, 10), (2, 0, 12, 10), labels=["dog", "cat"]))
    assert judged["0"]["severity"] == pytest.approx(1 - 80 / 120) and judged["whole"]["kind"] == "invented"


def test_boxes_are_cut_at_the_frame_and_objects_outside_it_are_not_judged() -> None:
    source = boxes((30, 0, 50, 10), (60, 0, 80, 10))
    judged = verdicts(source, boxes((90, 0, 100, 10)), matrix=SHIFT)
    assert judged["0"]["severity"] == 0, "half of the box is outside"
    assert (judged["1"]["severity"], judged["1"]["reason"]) == (None, "the object was carried out of the frame")


def test_nothing_on_either_side_is_not_judged_and_zero_where_a_paper_counted_it() -> None:
    judged = verdicts(boxes(), boxes())["whole"]
    assert (judged["severity"], judged["reason"]) == (None, NOTHING_FOUND)
    kept = verdicts(boxes(), boxes(), empty="keep")["whole"]
    assert (kept["severity"], kept["reason"]) == (0, None)
    unsure = boxes((0, 0, 10, 10), scores=[0.4])
    assert set(verdicts(unsure, unsure)) == {"whole"}
    assert set(verdicts(unsure, unsure, confidence=0.3)) == {"0"}


def test_nothing_found_in_two_of_three_draws_outvotes_what_was_invented_in_one() -> None:
    extra = boxes((50, 50, 60, 60))
    judged = verdicts(boxes(), boxes(), extra, boxes())["whole"]
    assert (judged["severity"], judged["reason"]) == (0, None)
    assert verdicts(boxes(), extra, extra, boxes())["whole"]["kind"] == "invented"
    assert verdicts(boxes(), boxes(), boxes(), boxes())["whole"]["reason"] == NOTHING_FOUND


def test_of_several_draws_the_median_counts_and_what_was_invented_in_one_of_three_does_not() -> None:
    source, extra = boxes((0, 0, 10, 10)), boxes((0, 0, 10, 10), (50, 50, 60, 60))
    judged = verdicts(source, source, boxes(), extra)
    assert (judged["0"]["severity"], judged["0"]["kind"]) == (0.0, None)
    assert judged["whole"]["severity"] == 0
    judged = verdicts(source, boxes(), boxes(), extra)
    assert (judged["0"]["severity"], judged["0"]["kind"]) == (1.0, "lost")
