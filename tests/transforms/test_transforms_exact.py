"""Each family against an independent formula."""

from __future__ import annotations

import colorsys
import math
from itertools import pairwise, product

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.image import Image
from instar.levels import line_kernel
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.transforms import NotApplicable, draw_seed, families, transformation
from instar.transforms.change import Change

Pixels = npt.NDArray[np.uint8]


def noisy(width: int = 40, height: int = 30) -> Pixels:
    return np.random.default_rng(11).integers(0, 256, (height, width, 3), dtype=np.uint8)


def every_level() -> Pixels:
    """All 256 grey levels in each channel, not in step."""
    ramp = np.arange(256, dtype=np.uint8)
    return np.stack([ramp, ramp[::-1], np.roll(ramp, 77)], -1).reshape(16, 16, 3)


def after(text: str, pixels: Pixels, seed: int = 0, **needs: object) -> Pixels:
    return transformation(text)(Image(pixels), needs=needs, seed=seed)[0].pixels


def done(text: str, pixels: Pixels, seed: int = 0, **needs: object) -> Change:
    return transformation(text)(Image(pixels), needs=needs, seed=seed)[1]


# --- pointwise -------------------------------------------------------------------------------------


def clamped(value: float) -> int:
    return min(255, max(0, round(value)))


@given(st.floats(0.01, 20))
def test_gamma(gamma: float) -> None:
    found = after(f"gamma({gamma!r})", every_level())
    levels = every_level().reshape(-1, 3)
    expected = [[clamped(255 * (int(v) / 255) ** gamma) for v in pixel] for pixel in levels]
    assert np.array_equal(found.reshape(-1, 3), expected)


@given(st.integers(-255, 255), st.sampled_from([0, 0.4, 0.8, 1, 1.05, 1.6, 3]))
def test_brightness_saturates_and_in_paper_mode_loses_its_sign(add: int, multiply: float) -> None:
    levels = every_level().reshape(-1, 3)
    found = after(f"brightness({add}, {multiply})", every_level()).reshape(-1, 3)
    assert np.array_equal(found, [[clamped(add + multiply * int(v)) for v in pixel] for pixel in levels])
    found = after(f"brightness({add}, {multiply}, overflow=absolute)", every_level()).reshape(-1, 3)
    assert np.array_equal(found, [[clamped(abs(add + multiply * int(v))) for v in pixel] for pixel in levels])


def test_brightness_of_black() -> None:
    black = np.zeros((2, 2, 3), np.uint8)
    assert (after("brightness(-20, 0.8)", black) == 0).all()
    assert (after("brightness(-20, 0.8, overflow=absolute)", black) == 20).all()


def test_contrast_keeps_the_middle_and_spreads_the_rest() -> None:
    levels = np.array([[[0, 127, 255]]], np.uint8)
    assert after("contrast(0.5)", levels).ravel().tolist() == [64, 127, 191]
    assert after("contrast(2)", levels).ravel().tolist() == [0, 126, 255]
    assert (after("contrast(1)", every_level()) == every_level()).all()


def test_greyscale_is_rec_601_luma() -> None:
    found = after("greyscale", noisy()).astype(int)
    luma = noisy() @ np.array([0.299, 0.587, 0.114])
    assert (found[..., 0] == found[..., 1]).all()
    assert (found[..., 0] == found[..., 2]).all()
    assert np.abs(found[..., 0] - luma).max() < 0.51


@settings(max_examples=40)
@given(st.integers(-360, 360))
def test_colour_wheel_turns_the_hue(degrees: int) -> None:
    pixels = noisy(12, 12)
    found = after(f"colour_wheel({degrees})", pixels).reshape(-1, 3).astype(int)
    for before, now in zip(pixels.reshape(-1, 3) / 255, found, strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*before)
        expected = np.multiply(colorsys.hsv_to_rgb((hue + degrees / 360) % 1, saturation, value), 255)
        assert np.abs(expected - now).max() < 0.6


def test_colour_wheel_names() -> None:
    red = np.full((1, 1, 3), (255, 0, 0), np.uint8)
    assert after("colour_wheel(120)", red).ravel().tolist() == [0, 255, 0]
    assert after("colour_wheel(-120)", red).ravel().tolist() == [0, 0, 255]
    assert after("colour_wheel(180)", red).ravel().tolist() == [0, 255, 255]
    assert np.array_equal(after("colour_wheel(0)", noisy()), noisy())
    assert np.array_equal(after("colour_wheel(360)", noisy()), noisy())


def test_colour_channels() -> None:
    pixel = np.array([[[200, 100, 50]]], np.uint8)
    assert after("colour_channels((1.3, 0.5, 1))", pixel).ravel().tolist() == [255, 50, 50]
    assert after("colour_channels((1.3, 0.5, 1), overflow=wrap)", pixel).ravel().tolist() == [4, 50, 50]
    assert after("colour_channels((1, 1, 1), encoding=bgr)", pixel).ravel().tolist() == [50, 100, 200]
    assert after("colour_channels((2, 1, 0.5), encoding=bgr)", pixel).ravel().tolist() == [100, 100, 100]
    assert np.array_equal(after("colour_channels((1, 1, 1))", noisy()), noisy())


def test_colour_channels_in_xyz() -> None:
    matrix = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
    expected = np.clip(noisy() @ matrix.T, 0, 255)
    found = after("colour_channels((1, 1, 1), encoding=xyz)", noisy()).astype(float)
    assert np.abs(found - expected).max() < 1


def test_colour_fill() -> None:
    assert (after("colour_fill((255, 180, 120))", noisy()) == (255, 180, 120)).all()


# --- resampling and blur ---------------------------------------------------------------------------


def test_resolution_by_half_is_the_mean_of_blocks() -> None:
    found = after("resolution(0.5)", noisy(40, 30)).astype(float)
    blocks = noisy(40, 30).astype(float).reshape(15, 2, 20, 2, 3).mean((1, 3))
    assert found.shape == (15, 20, 3)
    assert np.abs(found - blocks).max() <= 0.5


def test_stretch_names_height_first() -> None:
    assert after("stretch(2, 0.5)", noisy(40, 30)).shape == (60, 20, 3)
    assert after("resolution(0.1)", noisy(4, 3)).shape == (1, 1, 3)


def test_rotation_is_counter_clockwise_as_seen() -> None:
    square = noisy(31, 31)
    assert np.abs(after("rotation(90)", square).astype(int) - np.rot90(square)).max() <= 1
    assert np.array_equal(after("rotate90(1)", noisy()), np.rot90(noisy()))
    assert np.array_equal(after("rotate90(3)", noisy()), np.rot90(noisy(), 3))
    assert (after("rotation(45)", np.full((31, 31, 3), 9, np.uint8))[0, 0] == 0).all()


def test_swapped_rotation_is_the_original_s() -> None:
    """The image about (H/2, W/2); the landmarks in 0–1 coordinates about (0.5, 0.5)."""
    size, turn = np.array([80.0, 40.0]), math.radians(30)
    change = done("rotation(30, centre=swapped)", noisy(80, 40))
    x, y = np.array([60, 10]) / size - 0.5
    cos, sin = math.cos(turn), math.sin(turn)
    expected = np.array([cos * x + sin * y, -sin * x + cos * y]) + 0.5
    assert np.allclose(change.warp.points([60, 10]), expected * size)
    spot = np.zeros((40, 80, 3), np.uint8)
    spot[38:40, 19:21] = 255  # about x = H/2 = 20, y = 39: near the centre (20, 40)
    found = after("rotation(30, centre=swapped)", spot)[..., 0].astype(float)
    place = np.array([found.sum(0) @ (np.arange(80) + 0.5), found.sum(1) @ (np.arange(40) + 0.5)])
    assert np.linalg.norm(place / found.sum() - (20, 39)) < 1.2
    assert done("rotation(30, centre=swapped)", noisy(50, 50)).warp.points([10, 20]) == pytest.approx(
        done("rotation(30)", noisy(50, 50)).warp.points([10, 20])
    )


@given(st.integers(1, 60), st.floats(-360, 360))
def test_motion_kernels_are_lines_of_sum_one_about_their_centre(size: int, direction: float) -> None:
    line = line_kernel(size, direction)
    rows, columns = np.mgrid[: line.shape[0], : line.shape[1]]
    x, y = columns - (line.shape[1] - 1) / 2, (line.shape[0] - 1) / 2 - rows  # y up
    assert line.sum() == pytest.approx(1)
    assert line.min() >= 0
    assert line.shape[0] % 2 == line.shape[1] % 2 == 1
    assert (line * x).sum() == pytest.approx(0, abs=1e-7)
    assert (line * y).sum() == pytest.approx(0, abs=1e-7)
    assert np.allclose(line, line[::-1, ::-1], atol=1e-8)
    angle = math.radians(direction)
    aside = np.abs(x * math.sin(angle) - y * math.cos(angle))[line > 1e-8]
    assert aside.max(initial=0) <= math.sqrt(2)  # nothing further than a pixel's neighbour from the line
    along = line * (x * math.cos(angle) + y * math.sin(angle)) ** 2
    assert along.sum() == pytest.approx((size**2 - 1) / 12, abs=0.3)  # as long as `size` pixels in a row


def test_motion_kernels_by_hand() -> None:
    assert np.allclose(line_kernel(5, 0), np.full((1, 5), 0.2))
    assert np.allclose(line_kernel(5, 90), np.full((5, 1), 0.2))
    assert np.allclose(line_kernel(4, 180), [[0.125, 0.25, 0.25, 0.25, 0.125]])
    up_right = line_kernel(11, 40)
    assert up_right[0, -1] + up_right[0, -2] > 0
    assert up_right[0, 0] == up_right[-1, -1] == 0


def test_motion_moves_a_pixel_into_a_line() -> None:
    dot = np.zeros((9, 9, 3), np.uint8)
    dot[4, 4] = 250
    assert np.array_equal(after("motion(5, 0)", dot)[4, :, 0], [0, 0, 50, 50, 50, 50, 50, 0, 0])
    assert np.array_equal(after("motion(5, 90)", dot)[:, 4, 0], [0, 0, 50, 50, 50, 50, 50, 0, 0])
    flat = np.full((20, 30, 3), 133, np.uint8)
    for direction in (0, 40, 70, 100):
        assert (after(f"motion(11, {direction})", flat) == 133).all()


@pytest.mark.parametrize(("direction", "shift"), [(0, (0.5, 1)), (90, (1, 0.5)), (135, (0.5, 0.5))])
def test_square_kernels_of_even_side_shift_the_picture(direction: int, shift: tuple[float, float]) -> None:
    dot = np.zeros((61, 61, 3), np.uint8)
    dot[30, 30] = 255
    seen = after(f"motion(20, {direction}, kernel=square)", dot)[..., 0].astype(float)
    rows, columns = np.nonzero(seen)
    assert (columns.mean() - 30, rows.mean() - 30) == shift
    with pytest.raises(ValueError, match="0, 45, 90 and 135"):
        transformation("motion(20, 10, kernel=square)")


def test_the_original_s_kernels_lose_what_the_record_says() -> None:
    flat = np.full((40, 40, 3), 200, np.uint8)

    def lost(size: int, direction: int) -> float:
        return float(1 - after(f"motion({size}, {direction}, kernel=unnormalised)", flat)[20, 20, 0] / 200)

    table = [lost(size, direction) for size in (5, 7, 9, 11) for direction in (0, 40, 70, 100)]
    assert max(table) == pytest.approx(0.21, abs=0.005)
    assert lost(5, 100) == max(table)
    assert lost(1, 40) == pytest.approx(0.56, abs=0.005)
    assert lost(11, 0) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 9])
@pytest.mark.parametrize("strength", [10, 80, 180])
def test_bilateral_is_the_weighted_mean_it_says(strength: int, size: int) -> None:
    """Whoever filters, OpenCV or a library that it asks: the exact mean, rounded, of smooth images and rough ones."""
    rough = noisy(23, 17)
    for pixels in (rough, np.asarray(cv2.GaussianBlur(rough, (0, 0), 2), np.uint8), rough // 128 * 255):
        exact = _weighted_mean(pixels, strength, max(size // 2, 1))
        assert np.abs(after(f"bilateral({strength}, {size})", pixels) - exact).max() <= 0.501


def _weighted_mean(pixels: Pixels, strength: float, radius: int) -> npt.NDArray[np.float64]:
    """As the textbook has it, in 64 bits: the weight falls with the distance in pixels and in grey levels."""
    height, width = pixels.shape[:2]
    wide = np.pad(pixels.astype(float), ((radius, radius), (radius, radius), (0, 0)), mode="reflect")
    total, weights = np.zeros(pixels.shape), np.zeros((height, width, 1))
    for down, right in product(range(-radius, radius + 1), repeat=2):
        if down**2 + right**2 <= radius**2:
            other = wide[radius + down :, radius + right :][:height, :width]
            apart = np.abs(other - pixels).sum(-1, keepdims=True)
            weight = np.exp(-(down**2 + right**2 + apart**2) / (2 * strength**2))
            total, weights = total + weight * other, weights + weight
    return np.asarray(total / weights, np.float64)


def test_bilateral_leaves_opencv_as_it_was() -> None:
    """Which library OpenCV asks is a setting of the whole thread, and others filter after us."""
    before = cv2.ipp.useIPP()
    try:
        for allowed in (False, True):
            cv2.ipp.setUseIPP(allowed)
            known = cv2.ipp.useIPP()  # a build without Intel's library never does
            after("bilateral(80, 9)", noisy())
            assert cv2.ipp.useIPP() == known
    finally:
        cv2.ipp.setUseIPP(before)


@pytest.mark.parametrize("colour", [(249, 63, 233), (224, 162, 171), (76, 10, 42), (255, 5, 88)])
def test_a_hue_turns_alike_wherever_it_lies(colour: tuple[int, int, int]) -> None:
    """Of these colours OpenCV made others at the end of a row, where it works out single pixels by other code."""
    turned = after("colour_wheel(-45)", np.full((1, 77, 3), colour, np.uint8))
    assert len(np.unique(turned, axis=1)[0]) == 1
    assert np.array_equal(after("colour_wheel(-45)", np.full((1, 1, 3), colour, np.uint8)), turned[:, :1])


# --- zones -----------------------------------------------------------------------------------------


def zones(width: int = 40, height: int = 30) -> Zones:
    labels = np.zeros((height, width), np.uint8)
    labels[5:12, 8:20], labels[20:, 30:] = 2, 3
    return Zones(labels, {"background": (0,), "skin": (2, 3), "hair": (1,)})


@pytest.mark.parametrize(
    "inner", ["gamma(0.2)", "colour_wheel(90) | gamma(2)", "noise(9)", "motion(7, 40) | greyscale"]
)
def test_filtered_touches_the_zone_and_nothing_else(inner: str) -> None:
    inside = zones().mask("skin") > 0
    found = after(f"filtered({inner}, skin)", noisy(), zones=zones())
    assert np.array_equal(found[~inside], noisy()[~inside])
    if "noise" not in inner:
        assert np.array_equal(found[inside], after(inner, noisy())[inside])
    change = done(f"filtered({inner}, skin)", noisy(), zones=zones())
    assert change.regions == ((8.0, 5.0, 40.0, 30.0),)
    assert change.facts["share"] == pytest.approx(inside.mean(), abs=1e-6)


def test_a_zone_that_is_empty_or_unknown_is_not_applicable() -> None:
    with pytest.raises(NotApplicable, match="no hair in this image"):
        after("filtered(gamma(0.5), hair)", noisy(), zones=zones())
    with pytest.raises(NotApplicable, match=r"no 'sky', only background, skin, hair"):
        after("filtered(gamma(0.5), sky)", noisy(), zones=zones())


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("colour_wheel(90, hair)", "filtered(colour_wheel(90), hair)"),
        ("brightness(20, 0.8, skin)", "filtered(brightness(20, 0.8), skin)"),
        ("brightness(20, 0.8, absolute)", "brightness(20, 0.8, overflow=absolute)"),
        ("brightness(20, 0.8, absolute, skin)", "filtered(brightness(20, 0.8, overflow=absolute), skin)"),
        ("colour_channels((1, 1, 1), xyz, skin)", "filtered(colour_channels((1, 1, 1), encoding=xyz), skin)"),
        ("motion(11, 0, background, kernel=unnormalised)", "filtered(motion(11, 0, kernel=unnormalised), background)"),
        ("greyscale(skin)", "filtered(greyscale, skin)"),
    ],
)
def test_a_zone_may_follow_the_values(short: str, long: str) -> None:
    assert transformation(short).id == long


def test_a_misspelt_choice_is_no_zone() -> None:
    with pytest.raises(ValueError, match="did you mean 'unnormalised'"):
        transformation("motion(11, 0, unnormalized)")


# --- noise and occlusion ---------------------------------------------------------------------------


def test_noise_is_normal() -> None:
    grey = np.full((200, 300, 3), 128, np.uint8)
    drawn = after("noise(16)", grey, seed=9).astype(float) - 128
    assert abs(drawn.mean()) < 0.15
    assert drawn.std() == pytest.approx(16, rel=0.01)
    assert (np.abs(drawn) > 32).mean() == pytest.approx(0.0455, abs=0.004)
    assert (np.abs(drawn) > 48).mean() == pytest.approx(0.0027, abs=0.001)
    assert abs(np.corrcoef(drawn[:, :-1].ravel(), drawn[:, 1:].ravel())[0, 1]) < 0.01
    assert np.array_equal(after("noise(0)", noisy()), noisy())


def test_noise_saturates() -> None:
    assert set(np.unique(after("noise(1000)", noisy(), seed=1))) >= {0, 255}
    black = after("noise(40)", np.zeros((50, 50, 3), np.uint8), seed=1)
    assert (black == 0).mean() == pytest.approx(0.5, abs=0.03)


def test_levels_of_noise_are_nested() -> None:
    grey = np.full((60, 80, 3), 128, np.uint8)
    seeds = {draw_seed(0, "case", transformation(f"noise({sigma})"), 0) for sigma in (4, 8, 16)}
    assert len(seeds) == 1
    seed = seeds.pop()
    weak, strong = (after(f"noise({sigma})", grey, seed=seed).astype(int) - 128 for sigma in (8, 16))
    assert np.abs(strong - 2 * weak).max() <= 2


BOXES = [[4.0, 3.0, 24.0, 23.0], [20.0, 10.0, 36.0, 28.0]]


def objects(**more: object) -> Detections:
    return Detections.from_xyxy(BOXES, ["dog", "cat"], ids=["17", "23"], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("ratio", [0.04, 0.25, 0.5, 0.81, 1])
def test_erase_takes_the_centred_share_of_the_box(ratio: float) -> None:
    one = Detections.from_xyxy(BOXES[:1], ["dog"], ids=["17"])
    found, source = after(f"erase({ratio})", noisy(), seed=3, objects=one), noisy()
    change = done(f"erase({ratio})", noisy(), objects=one)
    ((x0, y0, x1, y1),) = change.regions
    assert ((x0 + x1) / 2, (y0 + y1) / 2) == (14, 13)
    assert (x1 - x0) * (y1 - y0) == pytest.approx(400 * ratio, abs=20)
    outside = np.ones(source.shape[:2], bool)
    outside[int(y0) : int(y1), int(x0) : int(x1)] = False
    assert np.array_equal(found[outside], source[outside])
    assert (found[~outside] != source[~outside]).mean() > 0.9
    assert change.removed == ("17",)
    assert change.facts["ratio"] == ratio


@pytest.mark.parametrize("family", ["erase({})", "object_noise({}, 30)", "erase({}, by=mask)"])
def test_levels_of_ratio_are_nested(family: str) -> None:
    """What a smaller part shows, a larger one shows too, also where objects overlap."""
    rows, columns = np.mgrid[:30, :40] + 0.5
    masks = np.stack([(columns - 14) ** 2 + (rows - 13) ** 2 < 81, (columns - 28) ** 2 + (rows - 19) ** 2 < 49])
    source = np.full((30, 40, 3), 128, np.uint8)
    seed = draw_seed(0, "case", transformation(family.format(0.5)), 0)
    assert seed == draw_seed(0, "case", transformation(family.format(0.9)), 0)
    levels = [
        after(family.format(ratio), source, seed=seed, objects=objects(masks=masks))
        for ratio in (0.1, 0.3, 0.5, 0.7, 0.9, 1)
    ]
    for small, large in pairwise(levels):
        changed = (small != source).any(-1)
        assert np.array_equal(small[changed], large[changed])
        assert changed.sum() < (large != source).any(-1).sum()


def test_by_mask_takes_the_share_of_the_mask() -> None:
    rows, columns = np.mgrid[:30, :40] + 0.5
    disc = (columns - 14) ** 2 + (rows - 13) ** 2 < 81
    one = Detections.from_xyxy(BOXES[:1], ["dog"], masks=disc[None])
    source = np.full((30, 40, 3), 128, np.uint8)
    touched = (after("erase(0.5, by=mask)", source, objects=one) != source).any(-1)
    assert not touched[~disc].any()
    assert touched.sum() == pytest.approx(disc.sum() / 2, rel=0.15)
    assert done("erase(0.5, by=mask)", source, objects=one).removed == ("0",)
    with pytest.raises(NotApplicable, match="by=box"):
        after("erase(0.5, by=mask)", source, objects=objects())


def test_background_noise_spares_the_objects() -> None:
    found = after("background_noise(30)", noisy(), seed=2, objects=objects())
    inside = np.zeros((30, 40), bool)
    inside[3:23, 4:24] = inside[10:28, 20:36] = True
    assert np.array_equal(found[inside], noisy()[inside])
    assert (found[~inside] != noisy()[~inside]).mean() > 0.8
    nobody = Detections.from_xyxy([], [])
    assert (after("background_noise(30)", noisy(), objects=nobody) != noisy()).mean() > 0.8
    whole = Detections.from_xyxy([[0, 0, 40, 30]], ["dog"])
    with pytest.raises(NotApplicable, match="no background"):
        after("background_noise(30)", noisy(), objects=whole)


def test_objects_outside_the_frame_are_left_out() -> None:
    far = Detections.from_xyxy(
        [[-30, -30, -5, -5], [4, 4, 10, 10], [50, 2, 60, 9]], ["a", "b", "c"], ids=["1", "2", "3"]
    )
    assert done("erase(1)", noisy(), objects=far).removed == ("2",)
    assert np.array_equal(after("erase(1)", noisy(), objects=far)[12:], noisy()[12:])
    with pytest.raises(NotApplicable, match="no objects"):
        after("erase(1)", noisy(), objects=Detections.from_xyxy([[-30, -30, -5, -5]], ["a"]))


def hand() -> Poses:
    spots = np.stack([np.linspace(20, 200, 21), np.linspace(30, 90, 21)], -1)
    spots[2] = np.nan
    return Poses.from_array(spots, skeleton="hand-21")


def test_discs_cover_the_first_landmarks() -> None:
    white = np.full((112, 224, 3), 255, np.uint8)
    found = after("discs(4)", white, landmarks=hand())
    change = done("discs(4)", white, landmarks=hand())
    assert len(change.regions) == 3  # landmark 2 is absent
    rows, columns = np.mgrid[:112, :224] + 0.5
    expected = np.full((112, 224), 255)
    for x, y in hand().points[0][[0, 1, 3]].astype(float):
        expected[(columns - x) ** 2 + (rows - y) ** 2 <= 25] = 0  # 10 px at height 224: 5 px at 112
    assert np.array_equal(found[..., 0], expected)
    small, wide = (after(f"discs(1, radius={radius})", white, landmarks=hand())[..., 0] for radius in (10, 20))
    assert (wide == 0).sum() == pytest.approx(4 * (small == 0).sum(), rel=0.1)


def test_finger_discs_cover_four_landmarks_of_a_finger() -> None:
    white = np.full((112, 224, 3), 255, np.uint8)
    found = after("finger_discs(little, radius=2)", white, landmarks=hand())
    covered = [bool((found[int(y), int(x)] == 0).all()) for x, y in np.nan_to_num(hand().points[0])]
    assert [i for i, black in enumerate(covered) if black] == [17, 18, 19, 20]
    line = np.linspace(5, 100, 553)
    both = Poses.from_array(np.stack([line, line], -1), skeleton="mediapipe-holistic")
    assert len(done("finger_discs(thumb)", white, landmarks=both).regions) == 8


def test_discs_need_landmarks() -> None:
    with pytest.raises(NotApplicable, match="does not have"):
        after("discs(3)", noisy(), objects=objects())
    with pytest.raises(NotApplicable, match="21 landmarks, not 22"):
        after("discs(22)", noisy(), landmarks=hand())
    coco = Poses.from_array(np.full((17, 2), 5.0), skeleton="coco-17")
    with pytest.raises(NotApplicable, match="no group 'thumb'"):
        after("finger_discs(thumb)", noisy(), landmarks=coco)
    nobody = Poses.from_array([], skeleton="hand-21")
    with pytest.raises(NotApplicable, match="none of the landmarks"):
        after("discs(3)", noisy(), landmarks=nobody)


def test_needs_follow_the_change_so_far() -> None:
    mirrored = after("mirror(h) | erase(1)", noisy(), objects=Detections.from_xyxy([[0, 0, 10, 10]], ["dog"]))
    assert np.array_equal(mirrored[:, :30], noisy()[:, ::-1][:, :30])
    assert not np.array_equal(mirrored[:10, 30:], noisy()[:, ::-1][:10, 30:])


# --- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("resolution(1)", "from above 0 to below 1"),
        ("resolution(0)", "from above 0 to below 1"),
        ("stretch(0, 1)", "above 0"),
        ("bilateral(10, 2.5)", "a whole number"),
        ("motion(0, 0)", "from 1"),
        ("mirror(horizontal)", "one of h, v, both"),
        ("gamma(-1)", "above 0"),
        ("erase(1.1)", "to 1"),
        ("shear(1)", "below 1"),
        ("rotate90(4)", "from 1 to 3"),
        ("colour_fill((0, 0, 300))", "each 0 to 255"),
        ("colour_channels((1, 2))", "3 numbers"),
        ("finger_discs(pinky)", "thumb, index, middle, ring, little"),
    ],
)
def test_values_out_of_range_say_what_is_allowed(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        transformation(text)


def test_every_family_and_parameter_explains_itself() -> None:
    for family in families().values():
        assert family.help.endswith("."), family.name
        for parameter in family.parameters:
            assert parameter.help, f"{family.name}: {parameter.name}"
            assert not parameter.shared or family.random, f"{family.name}: {parameter.name}"


def test_interpolation_is_bilinear() -> None:
    ramp = np.repeat(np.arange(0, 200, 20, dtype=np.uint8)[None, :, None], 3, 2)
    wide = after("stretch(1, 2)", ramp)[0, :, 0].astype(float)
    expected = np.clip((np.arange(20) + 0.5) / 2 - 0.5, 0, 9) * 20
    assert np.abs(wide - expected).max() <= 0.5
    assert np.array_equal(wide, cv2.resize(ramp, (20, 1))[0, :, 0])


# --- moved frames, and codecs ----------------------------------------------------------------------


@pytest.mark.parametrize(("text", "columns", "lines"), [("shift(0.25, 0.1)", 10, 3), ("shift(-0.25)", -10, 0)])
def test_shift_copies_whole_pixels_and_leaves_black(text: str, columns: int, lines: int) -> None:
    pixels = noisy(40, 30)
    padded = np.pad(pixels, ((40, 40), (40, 40), (0, 0)))
    assert np.array_equal(after(text, pixels), padded[40 - lines : 70 - lines, 40 - columns : 80 - columns])


@pytest.mark.parametrize(
    ("at", "left", "top"),
    [("middle", 5, 3), ("top_left", 0, 0), ("top_right", 10, 0), ("bottom_left", 0, 7), ("bottom_right", 10, 7)],
)
def test_crop_copies_the_part_that_is_kept(at: str, left: int, top: int) -> None:
    pixels = noisy(40, 31)
    warp = done(f"crop(0.76, {at})", pixels).warp
    assert np.array_equal(after(f"crop(0.76, {at})", pixels), pixels[top : top + 24, left : left + 30])
    assert warp.points([[10.5, 9.5]]).tolist() == [[10.5 - left, 9.5 - top]]


@pytest.mark.parametrize(("sides", "x", "y"), [("all", 4, 3), ("left_right", 4, 0), ("top_bottom", 0, 3)])
def test_pad_puts_a_black_border_around_a_copy(sides: str, x: int, y: int) -> None:
    pixels = noisy(40, 30)
    assert np.array_equal(after(f"pad(0.1, {sides})", pixels), np.pad(pixels, ((y, y), (x, x), (0, 0))))
    assert done(f"pad(0.1, {sides})", pixels).warp.points([[0, 0]]).tolist() == [[x, y]]


def test_pad_then_crop_gives_the_source_back() -> None:
    pixels = noisy(40, 30)
    assert np.array_equal(after("pad(0.5) | crop(0.5)", pixels), pixels)


def test_jpeg_is_what_a_file_of_that_quality_holds() -> None:
    pixels = np.asarray(cv2.GaussianBlur(noisy(48, 32), (0, 0), 3), np.uint8)
    coarse, fine = (np.abs(after(f"jpeg({q})", pixels).astype(int) - pixels).mean() for q in (10, 95))
    assert fine < 1.5 < coarse
    red = np.full((16, 16, 3), (200, 40, 10), np.uint8)
    assert np.abs(after("jpeg(90)", red).astype(int) - red).max() <= 4  # the channels keep their order
