"""A part of a picture as an input."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.case import Case, read_input
from instar.image import Crop, Image, Unreadable, read_image


def ramp(width: int = 60, height: int = 40) -> Image:
    """Red is the column, green the line, blue 255: where a pixel comes from can be read off."""
    line, column = np.mgrid[:height, :width]
    return Image(np.dstack([column, line, np.full_like(line, 255)]).astype(np.uint8))


@given(x0=st.integers(-30, 59), y0=st.integers(-30, 39), width=st.integers(31, 90), height=st.integers(31, 70))
def test_pixels_are_where_their_points_are(x0: int, y0: int, width: int, height: int) -> None:
    image, crop = ramp(), Crop(x0, y0, x0 + width, y0 + height, width, height)
    part = crop.of(image).pixels
    assert part.shape == (height, width, 3)
    line, column = np.nonzero(part[..., 2])
    there = part[line, column, :2] + 0.5
    np.testing.assert_array_equal(crop.points(there), np.column_stack([column, line]) + 0.5)
    seen = (min(x0 + width, 60) - max(x0, 0)) * (min(y0 + height, 40) - max(y0, 0))
    assert len(line) == seen
    assert not part[part[..., 2] == 0].any()


@settings(deadline=None)
@given(side=st.integers(16, 40), size=st.integers(8, 120))
def test_scaled_pixels_are_where_their_points_are(side: int, size: int) -> None:
    crop = Crop(5, 0, 5 + side, side, size, size)
    part = crop.of(ramp()).pixels.astype(float)
    inner = part[2:-2, 2:-2]
    line, column = np.mgrid[2 : size - 2, 2 : size - 2]
    there = np.dstack([inner[..., 0], inner[..., 1]]) + 0.5
    # a grey value is a whole number, so a place is known to half a pixel of the picture, and a little more at the edge
    off = np.abs(crop.points(there) - np.dstack([column, line]) - 0.5) * side / size
    assert off.max() < 1


@pytest.mark.parametrize(
    ("crop", "message"),
    [
        (Crop(60, 0, 70, 10, 10, 10), "outside of the image, 60 × 40 pixels"),
        (Crop(-10, 0, 0, 10, 10, 10), "outside of the image"),
        (Crop(0, -20, 9, -5, 9, 15), "outside of the image"),
        (Crop(5, 5, 5, 9, 4, 4), "no area"),
        (Crop(5, 5, 9, 4, 4, 4), "no area"),
        (Crop(0, 0, 9, 9, 0, 9), "no area"),
        (Crop(0, 0, 10**9, 10**9, 9, 9), "at most 100,000,000 are allowed"),
        (Crop(0, 0, 9, 9, 10**6, 10**6), "at most 100,000,000 are allowed"),
    ],
)
def test_crops_that_make_no_sense(crop: Crop, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        crop.of(ramp())


def test_the_hash_is_that_of_the_file_and_the_crop(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(cv2.imencode(".png", ramp().pixels[..., ::-1])[1].tobytes())
    first, second = (Case("a", str(path), crop=Crop(x, 0, x + 20, 20, 20, 20)) for x in (0, 1))
    hashes = [read_input(case)[1] for case in (Case("a", str(path)), first, second, first)]
    assert len(set(hashes)) == 3
    assert hashes[1] == hashes[3]
    np.testing.assert_array_equal(read_input(second)[0].picture(), read_image(path).pixels[:20, 1:21])
    with pytest.raises(Unreadable, match=r"a\.png: .* lies outside"):
        read_input(Case("a", str(path), crop=Crop(99, 0, 100, 1, 1, 1)))


def test_only_pictures_at_a_path_have_crops() -> None:
    with pytest.raises(ValueError, match="a crop, which is of an image at a path"):
        Case("a", input=ramp(), crop=Crop(0, 0, 9, 9, 9, 9))
