"""Detections: boxes, labels, scores, ids and masks, carried, stored, drawn and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from instar.image import Image
from instar.outputs.detections import Detections
from instar.store import rows_frame
from instar.warp import Warp

SIZE = (8, 6)


def two_dogs() -> Detections:
    masks = np.zeros((2, 6, 8), bool)
    masks[0, 1:3, 1:4] = masks[1, 3:6, 2:7] = True
    return Detections.from_xyxy(
        [[1, 1, 4, 3], [2, 3, 7, 6]], ["dog", "Hund 🐕"], [0.75, 0.25], ids=["17", "b"], masks=masks
    )


def same(first: Detections, second: Detections) -> None:
    np.testing.assert_array_equal(first.boxes, second.boxes)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert (first.labels, first.ids) == (second.labels, second.ids)
    assert (first.masks is None) == (second.masks is None)
    if first.masks is not None and second.masks is not None:
        np.testing.assert_array_equal(first.masks, second.masks)


def stored(detections: Detections) -> Detections:
    row = rows_frame([detections.row()], Detections.columns).row(0, named=True)
    return Detections.from_row(row, detections.header())


@pytest.mark.parametrize("axis", ["h", "v", "both"])
def test_a_mirror_carries_boxes_and_masks_exactly(axis: Any) -> None:
    detections, warp = two_dogs(), Warp.mirror(SIZE, axis)
    mirrored = detections.warped(warp)
    assert mirrored.masks is not None
    for box, mask in zip(mirrored.boxes, mirrored.masks, strict=True):
        rows, columns = np.nonzero(mask)
        assert box.tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    same(mirrored.warped(warp), detections)


def test_a_quarter_turn_turns_the_frame_too() -> None:
    turned = two_dogs().warped(Warp.rotate90(SIZE, 1))
    assert turned.masks is not None and turned.masks.shape == (2, 8, 6)
    assert turned.boxes[0].tolist() == [1, 4, 3, 7]


@pytest.mark.parametrize(
    "detections",
    [two_dogs(), Detections.from_xyxy([], []), Detections.from_xyxy([[0, 0, 0.1, 9]], ["a"])],
    ids=["all", "nothing", "plain"],
)
def test_stored_and_read_back(detections: Detections) -> None:
    same(stored(detections), detections)


def test_subjects_are_the_boxes() -> None:
    nothing = Detections.from_xyxy([], [])
    frame = rows_frame([one.row() for one in (nothing, two_dogs())], Detections.columns)
    subjects = Detections.subjects(frame, nothing.header())
    assert subjects["row"].to_list() == [1, 1]
    assert subjects.row(0, named=True) == {"row": 1, "x0": 1, "y0": 1, "x1": 4, "y1": 3, "score": 0.75}


def test_confident_keeps_what_belongs_together() -> None:
    detections = two_dogs()
    assert detections.confident(0.25) is detections
    sure = detections.confident(0.5)
    assert (sure.labels, sure.ids) == (("dog",), ("17",))
    assert sure.masks is not None and sure.masks.sum() == 6
    assert len(detections.confident(0.9)) == 0


def test_drawn_with_their_outlines_and_labels() -> None:
    forms = [shape.form for shape in two_dogs().shapes()]
    assert forms == ["boxes", "polygon", "polygon", "text", "text"]
    assert two_dogs().shapes()[-2].text == "dog 0.75"


@pytest.mark.parametrize(
    ("boxes", "labels", "more", "why"),
    [
        ([[1, 2, 3]], ["a"], {}, r"boxes are \(N, 4\)"),
        ([[1, 2, 3, 4]], [], {}, "1 boxes need as many labels"),
        ([[1, 2, 3, 4]], ["a"], {"scores": [1, 1]}, "1 boxes need as many labels, scores and ids"),
        ([[1, 2, 3, np.nan]], ["a"], {}, "not a finite number"),
        ([[1, 2, 3, 4]], ["a"], {"scores": [np.inf]}, "not a finite number"),
        ([[5, 2, 3, 4]], ["a"], {}, "x1 < x0.*add x to the width and y to the height"),
        ([[5, 4, 3, 2], [9, 8, 1, 2]], ["a", "b"], {}, "If these are x1, y1, x0, y0, exchange the corners. Where"),
        ([[1, 2, 3, 4]] * 2, ["a", "b"], {"ids": ["7", "7"]}, "'7' is that of several"),
        ([[1, 2, 3, 4]], ["a"], {"masks": np.zeros((2, 3, 3))}, "one for each of the 1 boxes"),
    ],
)
def test_bad_values_are_refused(boxes: Any, labels: list[str], more: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Detections.from_xyxy(boxes, labels, **more)


def test_accepted_are_detections_with_masks_of_the_image() -> None:
    assert len(Detections.accept(two_dogs(), Image.blank(SIZE))) == 2
    with pytest.raises(ValueError, match="the masks are 8×6, the image is 9×6"):
        Detections.accept(two_dogs(), Image.blank((9, 6)))
    with pytest.raises(TypeError, match="expected Detections"):
        Detections.accept([[1, 2, 3, 4]], Image.blank(SIZE))


def test_lists_are_taken_as_arrays() -> None:
    lists: dict[str, Any] = {"boxes": [[1, 2, 30, 40]], "labels": ["dog"], "scores": [0.5]}
    made = Detections(**lists)
    assert made.boxes.dtype == np.float32 and made.scores.shape == (1,) and made.labels == ("dog",)
    empty: dict[str, Any] = {"boxes": [], "labels": [], "scores": []}
    assert Detections(**empty).boxes.shape == (0, 4)


def test_an_array_that_the_system_uses_again_is_copied() -> None:
    boxes = np.array([[1, 2, 30, 40]], np.float32)
    made = Detections(boxes, ("dog",), np.ones(1, np.float32))
    boxes[:] = 0
    assert made.boxes.tolist() == [[1, 2, 30, 40]]


def test_labels_in_place_of_scores_are_told() -> None:
    scores: Any = [0.5]
    with pytest.raises(ValueError, match=r"scores are numbers, got \['dog'\]"):
        Detections.from_xyxy([[1, 2, 30, 40]], scores, ["dog"])
