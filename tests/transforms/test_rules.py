"""Every registered family, and every rule of every suite, keeps the contract of transformations: on photographs.

A family is picked up by being registered: its example values are chosen from its declared parameters. What changes
scenes is tested in test_scene_rules.py.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from functools import cache

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.pool import Item, Pool
from instar.relations import Rule, rule
from instar.spelling import REQUIRED, Parameter, spell_value
from instar.suites import suites
from instar.transforms import NotApplicable, Transformation, TransformationFamily, families, transformation
from instar.transforms.family import Step
from instar.warp import Size, inside

FRAME = (240, 180)
ZONES = ("background", "hair", "skin", "clothes")


# --- examples --------------------------------------------------------------------------------------

NUMBERS = ((0.7, 5, 2, -1), (12, 1.3, 0.4, 3), (-0.3, 0.9, 4, 1))


SPECIAL = {
    "overlap": ("0", "0.15", "0.45"),
    "most": ("0.45", "0.6", "0.3"),
    "label": ("any", "dog", "cat"),
    "x": ("0.25", "0.4", "-0.3"),
    "quality": ("80", "50", "95"),
}
"""Values that are allowed only with others, that must fit the needs below, or that leave the markers in the frame."""


def example(parameter: Parameter, turn: int) -> str:
    """An allowed value, another one for each turn where there are several."""
    if parameter.name in SPECIAL:
        return SPECIAL[parameter.name][turn]
    if parameter.kind == "choice":
        return parameter.choices[turn % len(parameter.choices)]
    if parameter.name == "direction":
        return ("45", "12", "-0.3")[turn]  # the first is one that every kernel has
    if parameter.kind == "transformation":
        return ("gamma(0.5)", "noise(3) | greyscale", "colour_fill((9, 99, 199))")[turn]
    if parameter.kind == "text":
        return ZONES[2 - turn]
    if parameter.kind == "bool":
        return ("true", "false", "true")[turn]
    if parameter.kind == "colour":
        return ("(10, 200, 30)", "(0, 0, 0)", "(255, 255, 255)")[turn]
    for value in NUMBERS[turn] + NUMBERS[0]:
        given = (value,) * parameter.length if parameter.kind == "floats" else value
        try:
            return spell_value(parameter.check(given, "example"))
        except ValueError:
            continue
    raise AssertionError(f"no example for {parameter.name}: {parameter.allowed}")


def examples(family: TransformationFamily) -> list[Transformation]:
    """Three with the family's defaults, and one for each other value of a choice that has a default."""

    def spelled(turn: int, **named: str) -> str:
        values = [example(p, turn) for p in family.parameters if p.default is REQUIRED]
        values += [f"{key}={value}" for key, value in named.items()]
        return f"{family.name}({', '.join(values)})" if values else family.name

    texts = [spelled(turn) for turn in range(3)]
    for parameter in family.parameters:
        if parameter.default is not REQUIRED and parameter.kind == "choice":
            texts += [spelled(0, **{parameter.name: choice}) for choice in parameter.choices]
        elif parameter.default is not REQUIRED:
            texts.append(spelled(0, **{parameter.name: example(parameter, 2)}))
    return list(dict.fromkeys(transformation(text) for text in texts))


def for_images(family: TransformationFamily) -> bool:
    return family.form == "spatial" or "image" in family.inputs


def is_tried(step: Step) -> bool:
    """Rules about one object differ by its number alone, and the image below has ten objects."""
    return for_images(step.family) and int(step.values.get("only", 0) or 0) < 10


FAMILIES = sorted(filter(for_images, families().values()), key=lambda family: family.name)
OF_FAMILIES = [one for family in FAMILIES for one in examples(family)]
RULES: list[Rule] = list(dict.fromkeys(one for suite in suites().values() for one in suite.rules))
EVERYTHING = list(
    dict.fromkeys([*OF_FAMILIES, *(t for one in RULES for t in one.transformations if all(map(is_tried, t.steps)))])
)

every = pytest.mark.parametrize("change", EVERYTHING, ids=str)
every_example = pytest.mark.parametrize("change", OF_FAMILIES, ids=str)


def cut_out(seed: int) -> npt.NDArray[np.uint8]:
    """A coloured disc."""
    pixels = np.zeros((40, 50, 4), np.uint8)
    colour = np.random.default_rng(seed).integers(60, 256, 3).tolist()
    return np.asarray(cv2.ellipse(pixels, (25, 20), (24, 19), 0, 0, 360, [*colour, 255], -1), np.uint8)


POOL = Pool.from_items([Item.from_pixels(label, cut_out(seed)) for seed, label in enumerate(("dog", "cat"))])


@cache
def needs_of(size: Size) -> dict[str, object]:
    """What transformations may need, all of it away from the middle of the frame where there is room."""
    width, height = size
    labels = np.zeros((height, width), np.uint8)
    roomy = min(size) >= 100
    if roomy:
        labels[height // 5 : -height // 5, width // 5 : -width // 5] = 2
        labels[: height // 8, : width // 8], labels[: height // 8, -width // 8 :] = 1, 3
    names = {name: (number if roomy else 0,) for number, name in enumerate(ZONES)}
    corners = [(0.02 + 0.035 * i, 0.02, 0.05 + 0.035 * i, 0.21) for i in range(5)]
    corners += [(0.8 + 0.035 * i, 0.75, 0.83 + 0.035 * i, 0.98) for i in range(5)]
    boxes = np.array(corners) * [*size, *size]
    if not roomy:
        boxes = np.array([[0, 0, max(1, width // 2), max(1, height // 2)]])
    masks = np.zeros((len(boxes), height, width), bool)
    for mask, (x0, y0, x1, y1) in zip(masks, boxes.astype(int), strict=True):
        mask[y0:y1, x0:x1] = True
    spots = np.linspace([0.05, 0.75], [0.15, 0.95], 21) if roomy else np.full((21, 2), 0.5)
    return {
        "zones": Zones(labels, names),
        "landmarks": Poses.from_array(spots * size, skeleton="hand-21"),
        "objects": Detections.from_xyxy(
            boxes, ["dog"] * len(boxes), ids=[str(17 + n) for n in range(len(boxes))], masks=masks
        ),
        "pool": POOL,
    }


def needs() -> dict[str, object]:
    return needs_of(FRAME)


@cache
def picture(size: Size = FRAME) -> Image:
    """Smooth and colourful, so that every transformation has something to change."""
    width, height = size
    rough = np.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=np.uint8)
    smooth = cv2.GaussianBlur(rough, (0, 0), 2)
    return Image(np.asarray(cv2.normalize(smooth, np.empty_like(smooth), 5, 250, cv2.NORM_MINMAX), np.uint8))


# --- the contract ----------------------------------------------------------------------------------


@every
def test_a_follow_up_is_decided_by_its_seed_and_leaves_its_source_alone(change: Transformation) -> None:
    base = picture().pixels.copy()
    first, did = change(Image(base), needs=needs(), seed=5)
    again, _ = change(Image(base), needs=needs(), seed=5)
    other, _ = change(Image(base), needs=needs(), seed=6)
    assert np.array_equal(base, picture().pixels)
    assert np.array_equal(first.pixels, again.pixels)
    assert change.random == (not np.array_equal(first.pixels, other.pixels))
    assert first.pixels.dtype == np.uint8
    assert first.pixels.shape == (did.warp.target[1], did.warp.target[0], 3)
    assert not first.pixels.flags.writeable
    assert did.warp.source == FRAME


@every_example
def test_pixels_may_lie_in_memory_in_any_way(change: Transformation) -> None:
    wide = np.zeros((FRAME[1] + 8, FRAME[0] + 6, 3), np.uint8)
    wide[3:-5, 2:-4] = picture().pixels
    backwards = picture().pixels[:, ::-1].copy()[:, ::-1]
    planes = np.asfortranarray(picture().pixels)
    expected, _ = change(picture(), needs=needs(), seed=5)
    for pixels in (wide[3:-5, 2:-4], backwards, planes):
        assert np.array_equal(change(Image(pixels), needs=needs(), seed=5)[0].pixels, expected.pixels)


POINTWISE = [one for one in OF_FAMILIES if one.pointwise]


@pytest.mark.parametrize("change", POINTWISE, ids=str)
def test_a_part_becomes_the_same_part_where_pixels_are_changed_one_by_one(change: Transformation) -> None:
    """Down to a single pixel: libraries work out the last few of a row by other code, which may round otherwise."""
    whole, _ = change(picture(), needs=needs())
    corners = np.random.default_rng(3).integers(0, FRAME[::-1], (300, 2))
    for number, (top, left) in enumerate(corners.tolist()):
        place = slice(top, top + 1 + number % 5), slice(left, left + 1 + number % 37)
        assert np.array_equal(change(picture().part(place))[0].pixels, whole.pixels[place])


def test_families_that_change_pixels_one_by_one_say_so() -> None:
    """A zone's box is all that they change then."""
    names = {step.family.name for one in POINTWISE for step in one.steps}
    assert names == {
        "brightness", "colour_channels", "colour_fill", "colour_wheel", "contrast", "gamma", "greyscale"
    }  # fmt: skip


@every_example
def test_threads_do_not_change_the_follow_up(change: Transformation) -> None:
    size = (720, 480)
    before = cv2.getNumThreads()
    try:
        cv2.setNumThreads(1)
        alone, _ = change(picture(size), needs=needs_of(size), seed=5)
        cv2.setNumThreads(4)
        together, _ = change(picture(size), needs=needs_of(size), seed=5)
    finally:
        cv2.setNumThreads(before)
    assert np.array_equal(alone.pixels, together.pixels)


def test_every_id_reads_back() -> None:
    assert [change for change in EVERYTHING if transformation(change.id) != change] == []


def test_every_rule_reads_back() -> None:
    assert [one for one in RULES if rule(one.id) != one] == []


@every
def test_the_smallest_pictures(change: Transformation) -> None:
    for size in ((1, 1), (1, 37), (37, 1)):
        small = Image(np.full((size[1], size[0], 3), (200, 100, 50), np.uint8))
        try:
            follow, did = change(small, needs=needs_of(size), seed=1)
        except NotApplicable:
            assert change.needs, size  # what needs nothing has no excuse
        else:
            assert follow.size == did.warp.target, size


@pytest.fixture(scope="module")
def large() -> Image:
    return Image(np.zeros((3000, 4000, 3), np.uint8))


@pytest.fixture(scope="module")
def large_needs() -> dict[str, object]:
    return needs_of((4000, 3000))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_large_picture_takes_few_copies(
    family: TransformationFamily, large: Image, large_needs: dict[str, object]
) -> None:
    tracemalloc.start()
    try:
        follow, did = examples(family)[0](large, needs=large_needs, seed=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert follow.size == did.warp.target
    assert peak <= 3.5 * max(large.nbytes, follow.pixels.nbytes)


@every_example
def test_it_composes(change: Transformation) -> None:
    whole, did = change(picture(), needs=needs(), seed=3)
    for text in ("mirror(h)", "stretch(1, 0.8)", "gamma(0.5)", "rotation(10)"):
        partner = transformation(text)
        follow, both = transformation(f"{change.id} | {text}")(picture(), needs=needs(), seed=3)
        later, after = partner(whole)
        assert np.array_equal(follow.pixels, later.pixels)
        assert both.warp == did.warp.then(after.warp)

        before, first = partner(picture())
        carried = {name: need.warped(first.warp) for name, need in needs().items()}  # type: ignore[attr-defined]
        if text == "gamma(0.5)":
            carried = needs()
        expected, second = change(before, needs=carried, seed=3)
        follow, both = transformation(f"{text} | {change.id}")(picture(), needs=needs(), seed=3)
        assert np.allclose(both.warp.matrix, first.warp.then(second.warp).matrix, atol=1e-12)
        assert both.warp.target == second.warp.target
        if not change.random:
            assert np.array_equal(follow.pixels, expected.pixels)


@every_example
def test_a_missing_need_is_not_applicable(change: Transformation) -> None:
    if change.needs:
        with pytest.raises(NotApplicable, match="needs .*" + next(iter(change.needs))):
            change(picture())


@every
def test_what_was_touched_is_in_the_declared_regions(change: Transformation) -> None:
    if not change.needs:
        return
    follow, did = change(picture(), needs=needs(), seed=2)
    assert did.regions
    touched = np.zeros(FRAME[::-1], bool)
    for x0, y0, x1, y1 in did.regions:
        assert 0 <= x0 < x1 <= FRAME[0]
        assert 0 <= y0 < y1 <= FRAME[1]
        touched[int(y0) : int(np.ceil(y1)), int(x0) : int(np.ceil(x1))] = True
    assert np.array_equal(follow.pixels[~touched], picture().pixels[~touched])


# --- the warp, seen -------------------------------------------------------------------------------

MARKERS = ((90.0, 70.0), (140.5, 80.25), (120.0, 115.5), (75.5, 110.0), (160.0, 62.5))
CORNERS = ((-20, -20), (20, -20), (20, 20), (-20, 20))
TOLERANCE = 0.1
"""Pixels of the follow-up: rounding to grey levels moves centroids by about 0.02."""

DECLARED_WRONGLY = ("centre=swapped", *(f"motion(20, {turn}, kernel=square)" for turn in (0, 45, 90)))
"""The original's defects, spelled out: the picture does not move as is said."""
OFF_CENTRE = ("kernel=unnormalised", "background_noise(128)", "jpeg(")
"""Likewise, by less than a pixel; noise so strong that most of a marker is cut off at black or white; a codec."""


def spotted(x: float, y: float) -> Image:
    """A smooth bright spot at a place, on grey."""
    across, down = np.arange(FRAME[0]) + 0.5 - x, np.arange(FRAME[1]) + 0.5 - y
    spot = 60 + 150 * np.exp(-(across**2 + down[:, None] ** 2) / (2 * 5.0**2))
    return Image(np.repeat(np.rint(spot).astype(np.uint8)[..., None], 3, 2))


def landed(change: Transformation) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Where each marker is said to go and where it is found, as the centroid of the difference it makes."""
    empty, did = change(Image(np.full((FRAME[1], FRAME[0], 3), 60, np.uint8)), needs=needs(), seed=4)
    for marker in MARKERS:
        if did.added and any(
            x0 - 20 < marker[0] < x1 + 20 and y0 - 20 < marker[1] < y1 + 20 for x0, y0, x1, y1 in did.regions
        ):
            continue  # what was put there hides part of it
        place = did.warp.points(marker)
        if not inside(did.warp.points(np.add(marker, CORNERS)), did.warp.target).all():
            continue  # part of it is carried out of the frame
        follow, _ = change(spotted(*marker), needs=needs(), seed=4)
        seen = np.abs(follow.pixels.astype(np.float64) - empty.pixels).sum(-1)
        if seen.sum() > 0:
            places = (
                np.array(
                    [seen.sum(0) @ (np.arange(seen.shape[1]) + 0.5), seen.sum(1) @ (np.arange(seen.shape[0]) + 0.5)]
                )
                / seen.sum()
            )
            yield place, places


@every
def test_markers_land_where_the_warp_says(change: Transformation) -> None:
    wrong = any(text in change.id for text in DECLARED_WRONGLY)
    tolerance = 1.0 if any(text in change.id for text in OFF_CENTRE) else TOLERANCE
    strayed = [float(np.linalg.norm(said - found)) for said, found in landed(change)]
    if wrong:
        assert max(strayed) > 3 * TOLERANCE
    elif strayed:
        assert max(strayed) < tolerance
    else:  # every marker is hidden, under one colour: then nothing can have moved
        _, did = change(picture(), needs=needs())
        assert did.warp.is_identity
