"""What is looked up by StringZilla is, to the letter, what OpenCV's tables would make of it."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from instar.levels import brightness_table, channel_table, contrast_table, gamma_table, noise_table
from instar.transforms.lookup import channels_looked_up, looked_up

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (67, 129, 3), np.uint8)
SHUFFLED = RNG.permutation(256).astype(np.uint8)
THREE = RNG.integers(0, 256, (256, 3), np.uint8)
PARTS = {
    "the whole": PIXELS,
    "a part, whose rows lie apart": PIXELS[3:50, 7:100],
    "one pixel": PIXELS[:1, :1],
    "a row that fills no whole word of the processor": PIXELS[:1, :21],
    "every other column": PIXELS[:, ::2],
}


@pytest.mark.parametrize("part", PARTS)
def test_one_table_says_the_same_as_opencv(part: str) -> None:
    pixels = PARTS[part]
    assert np.array_equal(looked_up(pixels, SHUFFLED), cv2.LUT(np.ascontiguousarray(pixels), SHUFFLED))


@pytest.mark.parametrize("part", PARTS)
def test_a_table_for_every_channel_says_the_same_as_opencv(part: str) -> None:
    pixels = np.ascontiguousarray(PARTS[part])
    assert np.array_equal(channels_looked_up(PARTS[part], THREE), cv2.LUT(pixels, THREE.reshape(1, 256, 3)))
    swapped = cv2.LUT(np.ascontiguousarray(pixels[..., ::-1]), THREE.reshape(1, 256, 3))
    assert np.array_equal(channels_looked_up(PARTS[part], THREE, (2, 1, 0)), swapped)


def test_every_level_is_looked_up() -> None:
    levels = np.arange(256, dtype=np.uint8)
    assert np.array_equal(looked_up(levels, SHUFFLED), SHUFFLED)


def test_a_table_is_made_once_and_nobody_can_change_it() -> None:
    """All images of a run share it: one that a transformation wrote to would change every follow-up after that."""
    for made, again in (
        (gamma_table(0.5), gamma_table(0.5)),
        (brightness_table(20, 0.8, "saturate"), brightness_table(20, 0.8, "saturate")),
        (contrast_table(0.7), contrast_table(0.7)),
        (channel_table((0.9, 1.1, 1), "wrap"), channel_table((0.9, 1.1, 1), "wrap")),
        (noise_table(8), noise_table(8)),
    ):
        assert made is again
        assert not made.flags.writeable
