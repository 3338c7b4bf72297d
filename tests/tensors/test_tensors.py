"""Follow-ups that PyTorch makes are the CPU's, to a grey level, for every family; and nobody can spoil another's.

Here PyTorch works on the processor; `python -m benchmarks.gpu` compares the same on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from instar.image import Image
from instar.tasks.met_pose.suite import TABLE, listed
from instar.transforms import NotApplicable, Transformation, TransformationFamily, transformation
from instar.warp import Size
from tests.missing import module
from tests.transforms.test_rules import FAMILIES, FRAME, examples, needs_of, picture

MADE_HERE = {"insert", "jpeg", "recorded"}
"""Families whose follow-ups are made by OpenCV and sent: of a codec, of cut-outs, of files."""

SIZES = (FRAME, (37, 29), (1, 37), (37, 1), (1, 1))


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    torch = module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # images here are smaller than what starting a thread costs
    yield
    torch.set_num_threads(before)


def sent(image: Image) -> Any:
    return module("instar.tensors.image").TensorImage.of(image, "cpu")


def levels_apart(change: Transformation, size: Size) -> int:
    """The most that any value differs by between the two ways; what was done is the same."""
    image, needs = picture(size), needs_of(size)
    try:
        expected, did = change(image, needs=needs, seed=5)
    except NotApplicable as reason:
        with pytest.raises(NotApplicable, match=re.escape(str(reason))):
            change(sent(image), needs=needs, seed=5)
        return 0
    actual, done = change(sent(image), needs=needs, seed=5)
    assert actual.size == expected.size
    assert done.warp == did.warp
    assert (done.regions, done.added, done.removed, done.facts) == (did.regions, did.added, did.removed, did.facts)
    return int(np.abs(actual.pixels.astype(np.int16) - expected.pixels).max())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_follow_ups_of_every_family_are_those_of_the_cpu(family: TransformationFamily) -> None:
    apart = {f"{one} at {size}": levels_apart(one, size) for one in examples(family) for size in SIZES}
    assert {place: levels for place, levels in apart.items() if levels > 1} == {}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_is_made_on_the_device_unless_it_is_known_not_to_be(family: TransformationFamily) -> None:
    """A family that somebody adds without an operation would make every run slower, and nobody would see it."""
    follow_up, _ = examples(family)[0](sent(picture()), needs=needs_of(FRAME), seed=5)
    assert (type(follow_up) is Image) == (family.name in MADE_HERE)


def test_noise_is_the_same_draw_everywhere() -> None:
    for text in ("noise(12)", "object_noise(0.9, 16)", "background_noise(8)", "filtered(noise(9), skin)", "erase(0.7)"):
        assert levels_apart(transformation(text), FRAME) == 0, text


@pytest.mark.parametrize(
    "text",
    [
        "gamma(0.5) | rotation(10)",
        "mirror(h) | filtered(colour_fill((9, 99, 199)), skin)",
        "rotate90(1) | jpeg(50) | shift(0.1)",
        "jpeg(50) | noise(3)",
        "filtered(noise(3) | gamma(2), hair) | crop(0.8)",
    ],
)
def test_steps_follow_each_other_wherever_each_is_made(text: str) -> None:
    assert levels_apart(transformation(text), FRAME) <= 1


def test_what_is_made_together_is_what_is_made_alone() -> None:
    """Rules that are alike are made by one launch, in zones of their own: none may get another one's."""
    source, needs = sent(picture()), needs_of(FRAME)
    changes = [transformation(text) for text in listed(TABLE) if not text.startswith(("bilateral", "resolution"))]
    together = [change(source, needs=needs)[0] for change in changes]
    module("instar.tensors.image").make(together)
    for change, follow_up in zip(changes, together, strict=True):
        alone, _ = change(sent(picture()), needs=needs)
        assert np.array_equal(follow_up.pixels, alone.pixels), change.id


@pytest.mark.parametrize(
    "text", ["identity", "mirror(h)", "gamma(0.5)", "noise(8)", "crop(1)", "object_noise(0.9, 16)"]
)
def test_who_writes_into_a_tensor_changes_nobody_elses(text: str) -> None:
    """Arrays are handed out read-only; tensors cannot be, and many a model normalises its input in place."""
    source, needs = sent(picture()), needs_of(FRAME)
    follow_up, _ = transformation(text)(source, needs=needs, seed=3)
    before = follow_up.plain().clone()
    for image in (source, follow_up):
        image.plain().zero_()
    assert (follow_up.plain() == before).all()  # a second answer to the same input
    assert np.array_equal(source.plain().numpy(), picture().pixels)
    assert np.array_equal(source.pixels, picture().pixels)


def test_a_mask_is_sent_once() -> None:
    """Thirty rules of `met-pose` share four zones: sending them anew took longer than making the follow-ups."""
    source, needs = sent(picture()), needs_of(FRAME)
    for degrees in range(10):
        transformation(f"colour_wheel({degrees}, skin)")(source, needs=needs)[0].plain()
    assert len(source._sent) == 1


def test_leaps_in_the_stream_of_random_bits_are_those_of_numpy() -> None:
    """A GPU draws any word of the stream by leaps; a wrong one would be noise too, and other noise than the CPU's."""
    leap = module("instar.tensors.plain").leap
    state = np.random.default_rng([7, 0]).bit_generator.state["state"]
    for steps in (0, 1, 2, 1023, 1024, 300_000):
        first, second = leap(steps)
        generator = np.random.PCG64()
        generator.state = {**generator.state, "state": state}
        generator.advance(steps)
        assert generator.state["state"]["state"] == (state["state"] * first + state["inc"] * second) % (1 << 128)
