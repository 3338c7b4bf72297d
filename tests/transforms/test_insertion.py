"""Insertion: where an object goes, that it is the same at every level, and that pasting it is exact."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.datasets import dataset
from instar.image import Image, picture_size
from instar.outputs.detections import Detections
from instar.pool import Item, Pool, read_pool
from instar.transforms import NotApplicable, draw_seed, transformation
from instar.transforms.insertion import Placement, _drawn, paste, place, spans_of
from tests.missing import shared

Box = tuple[float, float, float, float]
SPANS = spans_of(0.45, 4)
LEVELS = ("insert(0)", "insert(0.15)", "insert(0.3)", "insert(0.45)")


def item(width: int, height: int, label: str = "dog", colour: tuple[int, int, int] = (200, 100, 50)) -> Item:
    return Item.from_pixels(label, np.full((height, width, 4), (*colour, 255), np.uint8), name=f"{label}.png")


def needs(boxes: list[Box], *items: Item) -> dict[str, object]:
    return {"objects": Detections.from_xyxy(boxes, ["cat"] * len(boxes)), "pool": Pool.from_items(items)}


def grey(size: tuple[int, int]) -> Image:
    return Image(np.full((size[1], size[0], 3), 90, np.uint8))


# --- where -----------------------------------------------------------------------------------------


def in_frame(box: Box, frame: tuple[int, int]) -> Box:
    x0, y0, x1, y1 = box
    return (min(max(x0, 0), frame[0]), min(max(y0, 0), frame[1]), min(max(x1, 0), frame[0]), min(max(y1, 0), frame[1]))


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def covered(box: Box, by: Box) -> float:
    """The share of a box that another one covers: the definition, one at a time."""
    across = min(box[2], by[2]) - max(box[0], by[0])
    down = min(box[3], by[3]) - max(box[1], by[1])
    return max(across, 0) * max(down, 0) / area(box)


@st.composite
def grounds(draw: st.DrawFn) -> tuple[tuple[int, int], list[Box]]:
    """A frame and objects, some of them partly or wholly outside, some without area."""
    frame = draw(st.integers(40, 500)), draw(st.integers(40, 500))
    boxes = []
    for _ in range(draw(st.integers(1, 6))):
        width, height = (draw(st.floats(0, 0.625)) * side for side in frame)
        x, y = (draw(st.floats(-0.25, 1)) * side for side in frame)
        boxes.append(tuple(float(np.float32(side)) for side in (x, y, x + width, y + height)))
    return frame, boxes  # type: ignore[return-value]


@settings(max_examples=300)
@given(
    ground=grounds(),
    shape=st.tuples(st.integers(5, 300), st.integers(5, 300)),
    seed=st.integers(0, 2**32),
    intervals=st.sampled_from([(0.45, 4), (0.3, 3), (0.1, 2), (1.0, 6)]),
)
def test_every_placement_keeps_every_condition(
    ground: tuple[tuple[int, int], list[Box]], shape: tuple[int, int], seed: int, intervals: tuple[float, int]
) -> None:
    frame, boxes = ground
    spans = spans_of(*intervals)
    try:
        _, found = place(boxes, frame, [item(*shape)], np.random.default_rng(seed), spans)
    except NotApplicable:
        return
    again = place(boxes, frame, [item(*shape)], np.random.default_rng(seed), spans)[1]
    assert found == again
    seen = [box for box in (in_frame(box, frame) for box in boxes) if area(box) > 0]
    largest = max(seen, key=area)
    width, height = found[0].box[2] - found[0].box[0], found[0].box[3] - found[0].box[1]
    assert len(found) == len(spans)
    for one, (low, high) in zip(found, spans, strict=True):
        x0, y0, x1, y1 = one.box
        assert min(x0, y0) >= 0 and x1 <= frame[0] and y1 <= frame[1]
        assert (x1 - x0, y1 - y0) == (width, height)
        assert covered(largest, one.box) == one.overlap
        assert low < one.overlap <= high
        assert all(covered(box, one.box) <= high for box in seen)
    # the size: aspect kept, and the area in its range, up to rounding to whole pixels
    whole = frame[0] * frame[1]
    weights = [math.exp(area(box) / whole) for box in seen]
    usual = sum(w * area(box) for w, box in zip(weights, seen, strict=True)) / sum(weights)
    least, most = (0.8, 1.3) if area(largest) / whole < 0.4 else (0.1, 0.37)
    assert (width + 0.5) * (height + 0.5) >= least * usual * (1 - 1e-9)
    assert (width - 0.5) * (height - 0.5) <= most * usual * (1 + 1e-9) or 1 in (width, height)
    scales = [(width - 0.5) / shape[0], (width + 0.5) / shape[0]]
    assert scales[0] * shape[1] <= height + 0.5 or 1 in (width, height)
    assert scales[1] * shape[1] >= height - 0.5 or 1 in (width, height)
    assert_on_ray(largest, found)


def assert_on_ray(largest: Box, found: tuple[Placement, ...]) -> None:
    """Centres of what is on the ray lie on the half-line from the largest object's centre through the last one's."""
    middle = np.array([(largest[0] + largest[2]) / 2, (largest[1] + largest[3]) / 2])
    centres = [np.array([(one.box[0] + one.box[2]) / 2, (one.box[1] + one.box[3]) / 2]) for one in found]
    way = centres[-1] - middle
    way /= np.linalg.norm(way)
    assert found[-1].ray
    for one, centre in zip(found, centres, strict=True):
        if one.ray:
            off = centre - middle
            assert abs(off[0] * way[1] - off[1] * way[0]) < 0.72  # half a pixel each way
            assert off @ way > -0.72


def test_one_object_alone_is_left_along_one_ray() -> None:
    frame, cat = (640, 480), (250.0, 180.0, 390.0, 300.0)
    for seed in range(40):
        _, found = place([cat], frame, [item(140, 120)], np.random.default_rng(seed), SPANS)
        assert all(one.ray for one in found)
        far = [math.dist(((one.box[0] + one.box[2]) / 2, (one.box[1] + one.box[3]) / 2), (320, 240)) for one in found]
        assert far == sorted(far, reverse=True)


def test_the_largest_object_decides_about_the_range_of_sizes() -> None:
    """Not the mean, as in the original's code: here 0.37 of the frame, where the largest object has 0.45."""
    frame, boxes = (1000, 1000), [(0.0, 0.0, 450.0, 1000.0), (500.0, 0.0, 800.0, 1000.0)]
    for seed in range(20):
        _, found = place(boxes, frame, [item(40, 160)], np.random.default_rng(seed), spans_of(0.3, 2))
        x0, y0, x1, y1 = found[0].box
        assert (x1 - x0) * (y1 - y0) < 0.15 * 1_000_000


def test_what_the_ray_misses_is_searched_for_and_said() -> None:
    """All rays lead down from the largest object, at the top left; the free place is at the right, behind another."""
    boxes = [
        (0.0, 0.0, 120.0, 105.0),
        (120.0, 0.0, 230.0, 105.0),
        *((x, 190.0, x + 110, 300.0) for x in (0.0, 110.0, 220.0)),
    ]
    for seed in range(10):
        _, found = place(boxes, (400, 300), [item(100, 100)], np.random.default_rng(seed), spans_of(0.1, 2))
        assert [one.ray for one in found] == [False, True]
        assert found[0].box[0] >= 230
        assert found[0].box[3] <= 190


@pytest.mark.parametrize(
    ("boxes", "reason"),
    [
        ([], "no objects"),
        ([(700.0, 0.0, 800.0, 50.0), (5.0, 5.0, 5.0, 90.0)], "no objects"),
        ([(0.0, 0.0, 640.0, 480.0)], "no place found that covers no object"),
        (
            [(0.0, 0.0, 300.0, 400.0), *[(400.0 + x, 400.0, 410.0 + x, 410.0) for x in range(0, 200, 20)]],
            r"covers no more than 30\s% of the largest one",
        ),
    ],
)
def test_where_nothing_fits_the_reason_is_told(boxes: list[Box], reason: str) -> None:
    with pytest.raises(NotApplicable, match=reason):
        place(boxes, (640, 480), [item(90, 60)], np.random.default_rng(0), SPANS)


def test_an_item_that_does_not_fit_gives_way_to_another() -> None:
    frame, boxes = (200, 200), [(80.0, 80.0, 120.0, 120.0)]
    line = item(600, 2, "ruler")  # of that area it is longer than the frame
    for seed in range(20):
        chosen, _ = place(boxes, frame, [line, item(50, 40)], np.random.default_rng(seed), SPANS)
        assert chosen.label == "dog"


# --- as a transformation ---------------------------------------------------------------------------


def test_levels_of_a_draw_share_everything_but_the_place() -> None:
    image = grey((320, 240))
    given = needs([(110, 70, 210, 170), (10, 10, 40, 40)], item(80, 60), item(30, 90, "cup", (20, 200, 220)))
    sizes, names = set(), set()
    for level, text in enumerate(LEVELS):
        wanted = transformation(text)
        alone, did = wanted(image, needs=given, seed=draw_seed(3, "a", wanted, 7))
        x0, y0, x1, y1 = did.regions[0]
        sizes.add((x1 - x0, y1 - y0))
        names.add(did.facts["item"])
        low, high = SPANS[level]
        assert (did.facts["low"], did.facts["high"]) == (max(low, 0), high)
        assert low < covered((110, 70, 210, 170), did.regions[0]) <= high
        assert did.added == (str(did.facts["item"]).removesuffix(".png"),)
        assert did.facts["share"] == (x1 - x0) * (y1 - y0) / (320 * 240)
        assert did.warp.is_identity
        _drawn.cache_clear()  # whatever was asked before, the answer is the same
        again, same = wanted(image, needs=given, seed=draw_seed(3, "a", wanted, 7))
        assert same.regions == did.regions
        assert np.array_equal(alone.pixels, again.pixels)
    assert len(sizes) == len(names) == 1
    others = {transformation("insert(0)")(image, needs=given, seed=seed)[1].facts["item"] for seed in range(20)}
    assert others == {"dog.png", "cup.png"}


def test_only_a_class() -> None:
    image, given = grey((320, 240)), needs([(110, 70, 210, 170)], item(80, 60), item(30, 90, "traffic light"))
    for seed in range(8):
        did = transformation('insert(0, label="traffic light")')(image, needs=given, seed=seed)[1]
        assert did.added == ("traffic light",)
    with pytest.raises(NotApplicable, match="the pool has no 'dogs'; did you mean 'dog'"):
        transformation("insert(0, label=dogs)")(image, needs=given)


def test_an_overlap_between_the_levels_is_an_error_that_names_them() -> None:
    given = needs([(110, 70, 210, 170)], item(80, 60))
    with pytest.raises(ValueError, match=r"overlap=0.2 is not allowed; .* one of 0, 0.15, 0.3, 0.45"):
        transformation("insert(0.2)")(grey((320, 240)), needs=given)
    for text in ("insert(0.333333, most=1)", "insert(0.1, most=0.1, levels=2)", "insert(0.225, levels=3)"):
        transformation(text)(grey((320, 240)), needs=given)


def test_the_licence_goes_along() -> None:
    free = Item.from_pixels("dog", np.full((9, 9, 4), 255, np.uint8), name="dog-1.png", licence="CC BY 2.0")
    did = transformation("insert(0)")(grey((320, 240)), needs=needs([(110, 70, 210, 170)], free))[1]
    assert did.facts["licence"] == "CC BY 2.0"


def test_on_real_pictures_one_pair_in_three_can_be_placed() -> None:
    """The original placed 4.6 % of its pairs."""
    folder = shared("data/coco-mini") / "annotations" / "instances_train2017.json"
    pool, pairs, good = read_pool(shared("data/cutouts")), 0, 0
    for case in list(dataset(f'coco("{folder}", masks=false)').cases())[::4]:
        size = picture_size(str(case.path))
        assert size is not None and isinstance(case.truth, Detections)
        for number, one in enumerate(pool.items[::6]):
            pairs += 1
            try:
                place(case.truth.boxes, size, [one], np.random.default_rng(number), SPANS)
            except NotApplicable:
                continue
            good += 1
    assert good / pairs > 0.25


# --- how -------------------------------------------------------------------------------------------


def test_pasting_is_exact_inside_and_outside_and_soft_at_the_edge() -> None:
    ground = np.full((60, 80, 3), (10, 20, 30), np.uint8)
    out = paste(ground, np.full((40, 40, 4), (200, 100, 50, 255), np.uint8), (20, 10, 60, 50))
    assert (out[11:49, 21:59] == (200, 100, 50)).all()
    outside = np.ones((60, 80), bool)
    outside[10:50, 20:60] = False
    assert (out[outside] == (10, 20, 30)).all()
    edge = out[10, 21:59, 0].astype(int)
    assert ((edge > 120) & (edge < 200)).all()
    assert (ground == (10, 20, 30)).all()


@pytest.mark.parametrize("value", [0, 1, 17, 127, 254, 255])
def test_a_transparent_object_changes_nothing_and_white_stays_white(value: int) -> None:
    ground = np.full((30, 30, 3), value, np.uint8)
    clear = np.full((20, 20, 4), (255, 0, 255, 0), np.uint8)
    assert np.array_equal(paste(ground, clear, (5, 5, 25, 25)), ground)
    same = np.full((20, 20, 4), (value, value, value, 255), np.uint8)
    assert np.abs(paste(ground, same, (3, 3, 20, 20)).astype(int) - value).max() <= 1


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
def test_half_transparent_is_mixed(ground: int, colour: int, alpha: int) -> None:
    below = np.full((20, 20, 3), ground, np.uint8)
    above = np.full((20, 20, 4), (colour, colour, colour, alpha), np.uint8)
    mixed = paste(below, above, (0, 0, 20, 20))[5:15, 5:15].astype(float)
    assert np.abs(mixed - (colour * alpha + ground * (255 - alpha)) / 255).max() <= 1.5


@pytest.mark.parametrize("side", [12, 40, 90])
def test_the_colour_of_what_is_transparent_does_not_bleed(side: int) -> None:
    disc = np.zeros((40, 40, 4), np.uint8)
    rows, columns = np.indices((40, 40))
    disc[:] = (0, 255, 0, 0)
    disc[(rows - 20) ** 2 + (columns - 20) ** 2 < 300] = (250, 10, 10, 255)
    ground: npt.NDArray[np.uint8] = np.full((100, 100, 3), 10, np.uint8)
    out = paste(ground, disc, (2, 2, 2 + side, 2 + side))
    assert out[..., 1].max() <= 12
    assert out[..., 0].max() >= 249
