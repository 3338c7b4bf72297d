"""Zones: a class for every pixel, carried, stored, drawn and checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from instar.engine.needs import no_provider
from instar.image import Image
from instar.outputs.zones import Zones
from instar.store import rows_frame
from instar.warp import Warp

CELLS = np.array([[0, 1, 2], [3, 255, 2]], np.uint8)
NAMES = {"skin": (1, 2), "hair": (3,), "both": (1, 3), "none": ()}


def zones() -> Zones:
    return Zones(CELLS, NAMES)


def test_masks_and_shares() -> None:
    assert zones().mask("skin").tolist() == [[0, 255, 255], [0, 0, 255]]
    assert zones().shares() == {"skin": 0.5, "hair": pytest.approx(1 / 6), "both": pytest.approx(1 / 3), "none": 0}


@pytest.mark.parametrize("axis", ["h", "v"])
def test_a_mirror_is_exact_and_keeps_what_is_in_no_zone(axis: str) -> None:
    mirrored = zones().warped(Warp.mirror((3, 2), axis))  # type: ignore[arg-type]
    np.testing.assert_array_equal(mirrored.labels, CELLS[:, ::-1] if axis == "h" else CELLS[::-1])
    assert mirrored.names == NAMES


def test_what_comes_from_outside_is_in_no_zone() -> None:
    right = Warp(np.array([[1.0, 0, 1], [0, 1, 0], [0, 0, 1]]), (3, 2), (3, 2))
    assert zones().warped(right).labels.tolist() == [[255, 0, 1], [255, 3, 255]]


def test_stored_and_read_back() -> None:
    row = rows_frame([zones().row()], Zones.columns).row(0, named=True)
    back = Zones.from_row(row, json.loads(json.dumps(zones().header())))
    np.testing.assert_array_equal(back.labels, CELLS)
    assert back.names == NAMES


def test_confidence_changes_nothing_and_every_zone_is_drawn() -> None:
    one = zones()
    assert one.confident(0.9) is one
    assert [(shape.form, shape.text) for shape in one.shapes()] == [("heat", name) for name in NAMES]


@pytest.mark.parametrize("labels", [np.zeros((2, 2), np.int64), np.zeros((2, 2, 3), np.uint8)])
def test_bad_labels_are_refused(labels: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"a uint8 array \(H, W\)"):
        Zones(labels, {})


def test_labels_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        zones().labels[0, 0] = 1


def test_accepted_are_zones_as_large_as_the_image() -> None:
    one = zones()
    assert Zones.accept(one, Image.blank((3, 2))) is one
    with pytest.raises(ValueError, match=r"the zones are \(3, 2\), the image is \(4, 2\)"):
        Zones.accept(one, Image.blank((4, 2)))
    with pytest.raises(TypeError, match="expected Zones"):
        Zones.accept(CELLS, Image.blank((3, 2)))


@pytest.mark.parametrize("installed", [True, False])
def test_what_gets_a_segmenter_is_no_step_more_than_it_takes(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("instar.outputs.zones.find_spec", lambda name: object() if installed else None)
    words = no_provider("zones")
    assert "`instar models pull selfie-multiclass` get" in words
    assert ("pip install" in words) is not installed
