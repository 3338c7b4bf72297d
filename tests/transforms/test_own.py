"""Transformations of the user's own: functions and families in a module."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from instar.image import Image
from instar.transforms import TransformationFamily, transformation
from instar.transforms.family import Needs

Pixels = npt.NDArray[np.uint8]
HERE = __name__


def brighter(pixels: Pixels) -> Pixels:
    return np.asarray(np.clip(pixels.astype(int) + 20, 0, 255), np.uint8)


def speckled(pixels: Pixels) -> Pixels:
    return np.asarray(np.clip(pixels + np.random.default_rng().integers(-9, 9, pixels.shape), 0, 255), np.uint8)


def sometimes_black(pixels: Pixels) -> Pixels:
    return pixels if random.random() < 0.5 else np.zeros_like(pixels)


def grain(pixels: Pixels, rng: np.random.Generator, amount: int = 8) -> Pixels:
    return np.asarray(np.clip(pixels + rng.integers(-amount, amount + 1, pixels.shape), 0, 255), np.uint8)


def undeclared_draw(source: Image, needs: Needs, rng: np.random.Generator) -> tuple[Image, object]:
    return source, rng.integers(3)


FAMILY = TransformationFamily("bright", "user", "photometric", brighter)
UNSEEDED_FAMILY = TransformationFamily("speckle", "user", "photometric", speckled)
UNDECLARED_FAMILY = TransformationFamily("draws", "user", "general", undeclared_draw)


@pytest.fixture
def image() -> Image:
    return Image(np.full((20, 30, 3), 100, np.uint8))


def test_a_family_of_a_module_is_spelled_by_where_it_is(image: Image) -> None:
    """A worker has nothing but the spelling."""
    named = transformation(f"{HERE}:FAMILY")
    again = transformation(named.id)
    assert named.id == f"{HERE}:FAMILY"
    assert again(image)[0].pixels.max() == 120


@pytest.mark.parametrize("name", ["speckled", "sometimes_black", "UNSEEDED_FAMILY"])
def test_chance_that_cannot_be_repeated_is_refused_with_what_to_do(name: str) -> None:
    random.seed(1)
    with pytest.raises(ValueError, match=r"another follow-up each time.*second parameter `rng`"):
        transformation(f"{HERE}:{name}")


def test_a_function_with_rng_is_seeded(image: Image) -> None:
    own = transformation(f"{HERE}:grain(amount=5)")
    first, second, other = (own(image, seed=seed)[0].pixels for seed in (1, 1, 2))
    assert own.random
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_family_that_draws_without_saying_so_is_told(image: Image) -> None:
    with pytest.raises(TypeError, match="declared with random=True"):
        transformation(f"{HERE}:UNDECLARED_FAMILY")(image)
