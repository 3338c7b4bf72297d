"""Follow-ups have one maker: the same seed, case and draw give the same one, and what there is not has a reason."""

from __future__ import annotations

import numpy as np
import pytest

from instar import Image, NotApplicable, transformation
from instar.engine import NoFollowUp, make_follow_up
from instar.engine.follow_up import MOST_LETTERS, error_text

GREY = Image(np.full((20, 30, 3), 100, np.uint8))


def broken(pixels: np.ndarray) -> np.ndarray:
    raise OverflowError("too bright")


def pixels(name: str, *, seed: int = 0, case: str = "a", draw: int = 0) -> np.ndarray:
    follow_up, _ = make_follow_up(seed, case, GREY, transformation(name), draw, {})
    assert isinstance(follow_up, Image)
    return follow_up.pixels


def test_a_draw_depends_on_seed_case_and_number_alone() -> None:
    noise = "noise(0.5)"
    assert np.array_equal(pixels(noise), pixels(noise))
    for other in (pixels(noise, seed=1), pixels(noise, case="b"), pixels(noise, draw=1)):
        assert not np.array_equal(pixels(noise), other)


def test_a_need_that_cannot_be_had_is_the_reason() -> None:
    needs = {"zones": NotApplicable("no segmenter here")}
    with pytest.raises(NoFollowUp, match="no segmenter here") as raised:
        make_follow_up(0, "a", GREY, transformation("filtered(gamma(2), skin)"), 0, needs)
    assert raised.value.status == "not applicable"


def test_every_need_that_cannot_be_had_is_told_in_one_order() -> None:
    """The order of a set is another one in each process: then a run that went on had other reasons."""
    both = transformation("insert(0) | filtered(gamma(2), skin)")
    assert both.needs == {"objects", "pool", "zones"}
    needs = {"zones": NotApplicable("no zones"), "pool": NotApplicable("no pool"), "objects": NotApplicable("no pool")}
    with pytest.raises(NoFollowUp, match=r"^no pool; no zones$"):
        make_follow_up(0, "a", GREY, both, 0, needs)


def test_a_transformation_that_fails_is_an_error_with_its_place() -> None:
    with pytest.raises(
        NoFollowUp, match=r"the transformation failed: OverflowError: too bright \(test_follow_up"
    ) as raised:
        make_follow_up(0, "a", GREY, transformation("tests.engine.test_follow_up:broken"), 0, {})
    assert raised.value.status == "error"


def test_a_long_message_is_cut_between_words() -> None:
    names = ", ".join(f"skeleton-{number}" for number in range(200))
    text = error_text(ValueError(f"unknown skeleton; there are {names}"))
    kept = text.removeprefix("ValueError: ").removesuffix(" …")
    assert MOST_LETTERS - 20 < len(kept) <= MOST_LETTERS
    assert kept.split(", ")[-1].rstrip(",") in names.split(", ")


def test_a_message_without_a_space_is_kept_as_far_as_it_goes() -> None:
    assert error_text(ValueError("x" * 9999)) == f"ValueError: {'x' * MOST_LETTERS} …"
