"""A detector and a landmark system in a row: hands of coloured pixels, whose right answer is known to the pixel."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.systems import System, system
from instar.systems.chain import DetectorFailed, LandmarksFailed, Pad, cropped
from instar.warp import Warp

BLUE = 200
"""Of every pixel of a hand and of no other. Its green tells hands apart, its red landmarks, from 1 to 21."""


# --- the two stages --------------------------------------------------------------------------------


def drawn(size: tuple[int, int], *corners: tuple[int, int], side: int = 12, seed: int = 0) -> Image:
    """Hands whose landmarks lie anywhere in a square from each corner, as far as that lies in the picture."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, BLUE, (size[1], size[0], 3), dtype=np.uint8)
    whole = np.zeros((size[1] + 4 * side, size[0] + 4 * side, 4), np.uint8)
    for number, (x, y) in enumerate(corners):
        part = whole[y + 2 * side : y + 3 * side, x + 2 * side : x + 3 * side]
        part[:] = 0, number + 1, BLUE, 1
        spots = rng.permutation(side * side)[:21]
        part[spots // side, spots % side, 0] = np.arange(1, 22)
    inner = whole[2 * side : -2 * side, 2 * side : -2 * side]
    pixels[inner[..., 3] > 0] = inner[inner[..., 3] > 0][:, :3]
    return Image(pixels)


def shown(pixels: np.ndarray) -> list[int]:
    return [int(green) for green in np.unique(pixels[pixels[..., 2] == BLUE][:, 1])]


def boxes(pixels: np.ndarray) -> Detections:
    """Every hand's box. The first hand is the surest."""
    hands = shown(pixels)
    places = [np.argwhere((pixels[..., 2] == BLUE) & (pixels[..., 1] == green)) for green in hands]
    corners = [[*place.min(0)[::-1], *(place.max(0)[::-1] + 1)] for place in places]
    return Detections.from_xyxy(
        np.array(corners, float).reshape(-1, 4), ["hand"] * len(hands), [1 - green / 20 for green in hands]
    )


def spots(pixels: np.ndarray) -> Poses:
    """Every hand, its score the share of landmarks that are there. Of equal spots, as the edge that goes on beyond the
    picture has them, the one next to the middle."""
    middle = np.array(pixels.shape[1::-1]) / 2
    hands = []
    for green in shown(pixels):
        hand = np.full((21, 2), np.nan)
        for number in range(21):
            at = np.argwhere((pixels[..., 2] == BLUE) & (pixels[..., 1] == green) & (pixels[..., 0] == number + 1))
            if len(at):
                places = at[:, ::-1] + 0.5
                hand[number] = places[np.abs(places - middle).sum(1).argmin()]
        hands.append(hand)
    points = np.array(hands).reshape(-1, 21, 2)
    return Poses.from_array(points, skeleton="hand-21", scores=np.isfinite(points[..., 0]).mean(1))


def nothing(pixels: np.ndarray) -> Detections:
    return Detections.from_xyxy([], [])


def everything(pixels: np.ndarray) -> Detections:
    """Several classes and scores, all of the whole picture."""
    frame = [0, 0, pixels.shape[1], pixels.shape[0]]
    return Detections.from_xyxy([frame] * 3, ["person", "hand", "hand"], [0.9, 0.3, 0.6])


def beyond(pixels: np.ndarray) -> Detections:
    """Beside the picture, without an area, and far larger than it."""
    width = pixels.shape[1]
    return Detections.from_xyxy([[width, 0, width + 9, 9], [5, 5, 5, 9], [-1e9, -1e9, 1e9, 1e9]], ["hand"] * 3)


def middles(pixels: np.ndarray) -> Poses:
    """All landmarks in the middle of what it is given, with an unsure neighbour."""
    height, width = pixels.shape[:2]
    hand = np.full((21, 2), (width / 2, height / 2))
    return Poses.from_array([hand + 1, hand], skeleton="hand-21", scores=[0.4, 0.7])


def picky(pixels: np.ndarray) -> Poses:
    """Finds only the second hand."""
    found = spots(pixels)
    return Poses.from_array(found.points if shown(pixels) == [2] else [], skeleton="hand-21")


class Late(Exception):
    status: ClassVar[str] = "timeout"


def blind(pixels: np.ndarray) -> Detections:
    raise OSError("the lens is dirty")


def late(pixels: np.ndarray) -> Detections:
    raise Late("no answer in 30 s")


def babbling(pixels: np.ndarray) -> Detections:
    return "a hand"  # type: ignore[return-value]


def clumsy(pixels: np.ndarray) -> Poses:
    if shown(pixels):
        raise ZeroDivisionError("no such finger")
    return Poses.from_array([], skeleton="hand-21")


def shapeless(pixels: np.ndarray) -> Poses:
    return Poses.from_array([], skeleton="hand-21" if len(np.unique(pixels)) == 1 else "coco-17")


def afraid(pixels: np.ndarray) -> Poses:
    if len(np.unique(pixels)) == 1:
        raise ValueError("nothing to see")
    return spots(pixels)


def dice(pixels: np.ndarray, seed: int) -> Poses:
    return Poses.from_array(np.random.default_rng(seed).uniform(0, 9, (1, 21, 2)), skeleton="hand-21")


def chain(detector: str = "boxes", landmarks: str = "spots", **more: object) -> System:
    told = "".join(f", {key}={value}" for key, value in more.items())
    return system(f"chain({__name__}:{detector}, {__name__}:{landmarks}{told})")


def only(found: System, image: Image) -> Poses:
    [answer] = found.answer([image], [0])
    assert isinstance(answer, Poses), answer
    return answer


# --- crops -----------------------------------------------------------------------------------------

SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))
PADS = st.sampled_from(["black", "edge"])
SHARES = st.tuples(*[st.floats(0, 1, width=32)] * 4)


@given(SIZES, SHARES, st.floats(1, 3), PADS)
def test_a_crop_is_the_square_about_its_box_pixel_for_pixel(
    size: tuple[int, int], shares: tuple[float, ...], margin: float, pad: Pad
) -> None:
    width, height = size
    image = Image(np.random.default_rng(0).integers(1, 256, (height, width, 3), dtype=np.uint8))
    (x0, x1), (y0, y1) = (
        (low * 0.9 * side, low * 0.9 * side + 0.01 + high * 0.09 * side)
        for low, high, side in ((*shares[:2], width), (*shares[2:], height))
    )
    x1, y1 = min(x1, width), min(y1, height)
    crop, warp = cropped(image, (x0, y0, x1, y1), margin, pad)
    left, top, right, bottom = warp.inverse.boxes([0, 0, *crop.size]).astype(int).tolist()
    side = margin * max(x1 - x0, y1 - y0)
    for low, high, middle in ((left, right, (x0 + x1) / 2), (top, bottom, (y0 + y1) / 2)):
        assert low - 1e-9 <= middle - side / 2 < low + 1 + 1e-9
        assert high - 1 - 1e-9 < middle + side / 2 <= high + 1e-9
    assert abs(crop.size[0] - crop.size[1]) <= 1
    for row in range(crop.size[1]):
        for column in range(crop.size[0]):
            x, y = left + column, top + row
            inside = 0 <= x < width and 0 <= y < height
            expected = image.pixels[min(max(y, 0), height - 1), min(max(x, 0), width - 1)]
            assert np.array_equal(crop.pixels[row, column], expected if inside or pad == "edge" else [0, 0, 0])


@given(st.tuples(*[st.integers(0, 24)] * 4), st.sampled_from([1, 1.25, 2.2]), PADS)
def test_a_mirrored_image_has_the_mirrored_crop(box: tuple[int, ...], margin: float, pad: Pad) -> None:
    image = Image(np.random.default_rng(0).integers(0, 256, (29, 27, 3), dtype=np.uint8))
    flip = Warp.mirror(image.size, "h")
    x0, y0, x1, y1 = min(box[::2]), min(box[1::2]), max(box[::2]) + 1, max(box[1::2]) + 1
    crop, warp = cropped(image, (x0, y0, x1, y1), margin, pad)
    other, back = cropped(image.warped(flip), (27 - x1, y0, 27 - x0, y1), margin, pad)
    assert np.array_equal(other.pixels, crop.pixels[:, ::-1])
    assert flip.points(back.inverse.points([[other.size[0], 0.0]])) == pytest.approx(warp.inverse.points([[0.0, 0]]))


# --- answers ---------------------------------------------------------------------------------------

PLACES = st.lists(st.tuples(st.integers(-11, 59), st.integers(-11, 39)), max_size=3)


@given(PLACES, st.sampled_from([1, 1.25, 2.2, 4]), PADS, st.integers(0, 9))
def test_landmarks_come_back_to_the_pixel(corners: list[tuple[int, int]], margin: float, pad: str, seed: int) -> None:
    """Several hands, one over another, cut by the border, crops beyond it: as if the whole had been looked at."""
    image = drawn((60, 40), *corners, seed=seed)
    whole = spots(image.pixels)
    found = only(chain(margin=margin, pad=pad, most=3), image)
    if len(corners) < 2:
        assert np.array_equal(found.points, whole.points, equal_nan=True)
    for hand in found.points:  # a crop may show a part of its neighbour that is more than the hand itself
        there = np.isfinite(hand)
        assert any(np.array_equal(hand[there], one[there]) for one in whole.points)


def test_the_mirrored_image_is_answered_with_the_mirrored_hands() -> None:
    image = drawn((61, 40), (5, 5), (40, 30))
    flip = Warp.mirror(image.size, "h")
    there, back = (only(chain(pad="edge"), one) for one in (image, image.warped(flip)))
    assert np.array_equal(back.warped(flip).points, there.points, equal_nan=True)
    assert len(there) == 2


def test_a_subject_is_as_sure_as_the_less_sure_of_its_stages() -> None:
    """Of each crop the surest subject counts, or the surest ones."""
    image = Image(np.zeros((40, 60, 3), np.uint8))
    found = only(chain("everything", "middles", most=9), image)
    assert found.scores.tolist() == pytest.approx([0.7, 0.6, 0.3])
    assert np.array_equal(found.points, np.full((3, 21, 2), (30, 20)))
    more = only(chain("everything", "middles", each=2), image)
    assert more.scores.tolist() == pytest.approx([0.7, 0.4, 0.6, 0.4])
    assert np.array_equal(more.points[:, 0, 0], [30, 31, 30, 31])


@pytest.mark.parametrize(
    ("more", "scores"),
    [
        ({"label": "hand"}, [0.6, 0.3]),
        ({"label": "person"}, [0.7]),
        ({"label": "paw"}, []),
        ({}, [0.7, 0.6]),
        ({"label": "hand", "most": 1}, [0.6]),
        ({"most": 3, "floor": 0.5}, [0.7, 0.6]),
        ({"floor": 1}, []),
    ],
)
def test_which_boxes_are_looked_at(more: dict[str, object], scores: list[float]) -> None:
    image = Image(np.zeros((40, 60, 3), np.uint8))
    assert only(chain("everything", "middles", **more), image).scores.tolist() == pytest.approx(scores)


def test_no_box_is_nobody_and_a_box_without_landmarks_is_no_subject() -> None:
    image = drawn((60, 40), (3, 3), (30, 20))
    none = only(chain("nothing"), image)
    assert (len(none), none.skeleton.name) == (0, "hand-21")
    [hand] = only(chain("boxes", "picky"), image).points
    assert np.array_equal(hand, spots(image.pixels).points[1])
    assert len(only(chain("boxes", "picky"), drawn((60, 40), (3, 3)))) == 0


def test_boxes_are_cut_at_the_edge_of_the_image() -> None:
    image = Image(np.zeros((40, 60, 3), np.uint8))
    [hand] = only(chain("beyond", "middles", most=9), image).points
    assert np.array_equal(hand, np.full((21, 2), (30, 20)))


# --- a stage fails ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("detector", "landmarks", "failed", "message"),
    [
        ("blind", "spots", DetectorFailed, ":blind: OSError: the lens is dirty"),
        ("babbling", "spots", DetectorFailed, ":babbling: TypeError: expected Detections"),
        ("boxes", "clumsy", LandmarksFailed, ":clumsy: ZeroDivisionError: no such finger"),
        (
            "boxes",
            "shapeless",
            LandmarksFailed,
            ":shapeless: ValueError: it answers with skeleton coco-17, and did with hand-21 before",
        ),
    ],
)
def test_the_stage_that_failed_is_named(detector: str, landmarks: str, failed: type[Exception], message: str) -> None:
    found = chain(detector, landmarks)
    with pytest.raises(failed, match=message):
        found.answer([drawn((60, 40), (3, 3))], [0])


def test_failures_cost_their_own_row_and_say_the_stage(tmp_path: Path) -> None:
    images = {"hand": drawn((60, 40), (3, 3)), "none": Image(np.zeros((40, 60, 3), np.uint8))}
    data = Dataset("hands", "", lambda: iter([Case(name, input=image) for name, image in images.items()]))

    def rows(detector: str, landmarks: str) -> dict[str, tuple[str, str]]:
        run = instar.run(
            f"chain({__name__}:{detector}, {__name__}:{landmarks})",
            "mirror(h)",
            data,
            out=tmp_path / detector,
            workers=0,
        )
        frame = run.predictions().filter(follow_up="source")
        return {
            case: (status, (message or "").partition(":")[0])
            for case, status, message in frame.select("case", "status", "message").iter_rows()
        }

    assert rows("boxes", "clumsy") == {"hand": ("error", "LandmarksFailed"), "none": ("ok", "")}
    assert rows("blind", "spots") == dict.fromkeys(images, ("error", "DetectorFailed"))
    assert rows("late", "spots") == dict.fromkeys(images, ("timeout", "DetectorFailed"))


def test_a_right_chain_holds_under_every_turn(tmp_path: Path) -> None:
    data = Dataset("hands", "", lambda: iter([Case("a", input=drawn((60, 40), (3, 3), (40, 30)))]))
    rules = "mirror(h) + mirror(v) + rotate90(1) + rotate90(2)"
    run = instar.run(f"chain({__name__}:boxes, {__name__}:spots)", rules, data, out=tmp_path, workers=0)
    found = run.verdicts()
    assert found.filter(found["severity"].is_not_null()).height >= 4
    assert set(found["severity"].drop_nulls()) == {0.0}


# --- loading ---------------------------------------------------------------------------------------


def test_what_cannot_be_chained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ValueError,
        match="spots answers with poses; a chain is a system that answers with detections, "
        "then one that answers with poses",
    ):
        chain("spots", "spots")
    with pytest.raises(ValueError, match="boxes answers with detections"):
        chain("boxes", "boxes")
    with pytest.raises(
        ValueError,
        match=r"about an evenly grey image, and failed: .*:afraid: ValueError: nothing to "
        "see",
    ):
        chain("boxes", "afraid")
    with pytest.raises(KeyError, match="did you mean 'spots'"):
        chain("boxes", "spot")
    with pytest.raises(ValueError, match="chain needs landmarks"):
        system(f"chain({__name__}:boxes)")
    with pytest.raises(ValueError, match=r"margin=0.5 is not allowed; it takes a number from 1 to 4"):
        chain(margin=0.5)


def test_fingerprint_and_determinism_are_those_of_both() -> None:
    plain = chain()
    assert plain.fingerprint == chain().fingerprint
    assert plain.deterministic
    others = [
        chain("nothing"),
        chain(landmarks="picky"),
        chain(label="hand"),
        chain(floor=0.5),
        chain(most=1),
        chain(each=2),
        chain(margin=2),
        chain(pad="edge"),
    ]
    assert len({plain.fingerprint, *(other.fingerprint for other in others)}) == 9
    seeded = chain("everything", "dice")
    assert (seeded.deterministic, seeded.seedable) == (False, True)
    image = Image(np.zeros((40, 60, 3), np.uint8))
    a, b, c = (seeded.answer([image], [seed])[0] for seed in (1, 1, 2))
    assert isinstance(a, Poses)
    assert isinstance(b, Poses)
    assert isinstance(c, Poses)
    assert np.array_equal(a.points, b.points)
    assert not np.array_equal(a.points, c.points)


CLOSED: list[str] = []
FINDS = System(
    "finds",
    "detections",
    lambda inputs, seeds: [nothing(one.pixels) for one in inputs],
    "1",
    close=lambda: CLOSED.append("finds"),
)
LOOKS = System(
    "looks",
    "poses",
    lambda inputs, seeds: [spots(one.pixels) for one in inputs],
    "2",
    close=lambda: CLOSED.append("looks"),
)


def test_both_are_closed_also_where_the_second_does_not_load() -> None:
    CLOSED.clear()
    both = chain("FINDS", "LOOKS")
    assert CLOSED == []
    both.close()
    both.close()
    assert CLOSED == ["looks", "finds"]
    with pytest.raises(KeyError):
        chain("FINDS", "absent")
    assert CLOSED == ["looks", "finds", "finds"]
    with pytest.raises(ValueError, match="answers with detections"):
        chain("FINDS", "FINDS")
    assert CLOSED[3:] == ["finds", "finds"]
