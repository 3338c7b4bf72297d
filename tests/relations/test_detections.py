"""The equivariance of detections, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from instar import Detections
from instar.relations.relation import NOTHING_FOUND
from tests.relations.evidence import judged

SIZE = (100, 100)
SHIFT = np.array([[1.0, 0, 60], [0, 1, 0], [0, 0, 1]])


def verdicts(source: Detections, *follow_ups: Detections, **more: Any) -> dict[str, dict[str, Any]]:
    """The verdicts by target of a source and the draws of one follow-up."""
    return judged(source, follow_ups, SIZE, Detections.row, **more)


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


def test_boxes_beyond_the_frame_are_cut_on_both_sides() -> None:
    """A detector that does not cut its boxes says the same twice."""
    amodal = boxes((-40, 20, 30, 60), (80, 80, 150, 140))
    assert [one["severity"] for one in verdicts(amodal, amodal).values()] == [0, 0]
    # one that cuts them at the frame says more of the object where the frame is padded, of what nobody has seen
    padded = np.array([[1.0, 0, 10], [0, 1, 0], [0, 0, 1]])
    cut, more = boxes((0, 20, 30, 60)), boxes((0, 20, 40, 60))
    assert verdicts(cut, more, matrix=padded)["0"]["severity"] == 0


def test_a_small_rest_of_an_object_is_not_judged_whether_it_is_found_or_not() -> None:
    source = boxes((20, 0, 70, 10))  # 20 of 50 pixels stay
    for answer in (boxes(), boxes((80, 0, 100, 10)), boxes((82, 0, 100, 10), labels=["dog"])):
        judged = verdicts(source, answer, matrix=SHIFT)
        assert set(judged) == {"0"}, "what is found of it was not invented"
        assert judged["0"]["severity"] is None
        assert judged["0"]["reason"] == "less than 50 % of the object stayed in the frame"
    assert verdicts(source, boxes(), matrix=SHIFT, share=0.3)["0"]["kind"] == "lost"


def test_a_box_without_area_is_not_said_to_have_left_the_frame() -> None:
    point = boxes((20, 20, 20, 20))
    judged = verdicts(point, point)
    assert set(judged) == {"0"} and judged["0"]["reason"] == "its box has no area"


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (0.52, 0.47, {"0": None}),
        (0.69, 0.495, {"0": None}),
        (0.65, 0.45, {"0": None}),
        (0.95, 0.72, {"0": None}),
        (0.90, 0.45, {"0": "faint"}),
        (0.86, 0.21, {"0": "faint"}),
        (0.55, 0.01, {"0": "faint"}),
        (0.45, 0.55, {"0": None}),
        (0.31, 0.95, {"0": "faint"}),
        (0.01, 0.95, {"0": "faint"}),
        (0.45, 0.45, {"whole": None}),
    ],
)
def test_a_score_that_crosses_the_confidence_is_faint_if_it_changed_by_more_than_the_margin(
    before: float, after: float, kinds: dict[str, str | None]
) -> None:
    box = (0, 0, 10, 10)
    judged = verdicts(boxes(box, scores=[before]), boxes(box, scores=[after]))
    assert {name: one["kind"] for name, one in judged.items()} == kinds
    if after == before:
        assert judged["whole"]["reason"] == NOTHING_FOUND
        assert (judged["whole"]["source_score"], judged["whole"]["follow_up_score"]) == pytest.approx((before, after))


def test_scores_of_both_sides_are_stored() -> None:
    box = (0, 0, 10, 10)
    judged = verdicts(boxes(box, scores=[0.55]), boxes(box, scores=[0.4]))["0"]
    assert (judged["source_score"], judged["follow_up_score"]) == pytest.approx((0.55, 0.4))
    assert verdicts(boxes(box, scores=[0.55]), boxes(box, scores=[0.4]), margin=0)["0"]["kind"] == "lost"


def test_one_object_found_twice_is_doubled() -> None:
    source = boxes((0, 0, 10, 10), (50, 50, 60, 60))
    judged = verdicts(source, boxes((0, 0, 10, 10), (1, 0, 11, 10), (50, 50, 60, 60)))
    assert (judged["whole"]["kind"], judged["whole"]["doubled"], judged["whole"]["invented"]) == ("doubled", 1, 0)
    both = verdicts(source, boxes((0, 0, 10, 10), (1, 0, 11, 10), (50, 50, 60, 60), (80, 0, 90, 10)))["whole"]
    assert (both["kind"], both["doubled"], both["invented"]) == ("invented", 1, 1)


def test_targets_are_ordinals_of_the_source_output_whatever_the_confidence() -> None:
    source = boxes((80, 0, 90, 10), (0, 0, 10, 10), scores=[0.1, 0.9])
    assert set(verdicts(source, source)) == {"1"}


def test_a_faint_box_that_touches_a_sure_one_takes_nobodys_partner() -> None:
    """More pairs are no better match: the same sure box on both sides is one object."""
    source = boxes((40, 0, 60, 20), (59, 0, 80, 20), scores=[0.81, 0.46])
    follow_up = boxes((40, 0, 60, 20), (22, 0, 44, 20), scores=[0.82, 0.33])
    judged = verdicts(source, follow_up)
    assert {name: (one["severity"], one["follow_up_score"]) for name, one in judged.items()} == {
        "0": (0.0, pytest.approx(0.82))
    }


def test_sure_neighbours_who_overlap_are_not_crossed() -> None:
    source = boxes((0, 0, 20, 20), (12, 0, 32, 20))
    follow_up = boxes((0, 0, 20, 20), (6, 0, 26, 20))
    judged = verdicts(source, follow_up)
    assert judged["0"]["severity"] == 0 and judged["1"]["iou"] == pytest.approx(14 / 26)


def test_a_faint_box_elsewhere_does_not_excuse_a_lost_object() -> None:
    judged = verdicts(boxes((0, 0, 20, 20)), boxes((18, 0, 38, 20), scores=[0.4]))
    assert judged["0"]["kind"] == "lost"


def test_a_ghost_takes_no_sure_ones_partner() -> None:
    """A faint box in the old place, and a sure one that strayed: the object strayed, nothing was invented."""
    judged = verdicts(boxes((0, 0, 20, 20)), boxes((0, 0, 20, 22), (12, 0, 32, 20), scores=[0.05, 0.9]))
    assert {name: one["kind"] for name, one in judged.items()} == {"0": None}
    assert judged["0"]["severity"] == pytest.approx(1 - 8 / 32)


def test_a_box_that_the_source_shows_outside_the_frame_is_not_invented() -> None:
    outside = boxes((-40, 20, -10, 60), (110, 20, 140, 60))
    for matrix, answer in (
        (np.eye(3), outside),
        (SHIFT, boxes((20, 20, 50, 60), (170, 20, 200, 60))),
        (np.array([[1.0, 0, -60], [0, 1, 0], [0, 0, 1]]), boxes((50, 20, 80, 60))),
    ):
        judged = verdicts(outside, answer, matrix=matrix)
        assert {one["reason"] for one in judged.values()} == {"its box lies outside the source's frame"}
        assert set(judged) == {"0", "1"}
    assert verdicts(outside, boxes((20, 20, 50, 60)))["whole"]["kind"] == "invented"


def test_a_box_that_goes_on_outside_the_image_is_not_invented() -> None:
    assert set(verdicts(boxes((50, 0, 80, 10)), boxes((110, 0, 140, 10)), matrix=SHIFT)) == {"0"}
    nearly = verdicts(boxes((41, 0, 80, 10)), boxes((99, 0, 141, 10)), matrix=SHIFT)
    assert set(nearly) == {"0"}
    padding = verdicts(boxes(), boxes((10, 0, 40, 10)), matrix=SHIFT)
    assert padding["whole"]["kind"] == "invented", "the image shows something there, which is no object"
