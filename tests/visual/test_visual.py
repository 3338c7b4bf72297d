"""How much of a change a person sees: exact, monotone, and defined for whatever an image is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from instar.image import Image
from instar.transforms import transformation
from instar.visual import EYE_NOISE, WINDOWS, visual_change
from instar.warp import Warp

Floats = npt.NDArray[np.float64]


def photo(seed: int, size: tuple[int, int] = (160, 120)) -> Image:
    """An image with the spectrum of photographs: contrast falls with frequency, on every scale there is some."""
    width, height = size
    rng = np.random.default_rng(seed)
    away = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]) + 1 / max(size)
    layers = [np.fft.irfft2(np.fft.rfft2(rng.normal(size=(height, width))) / away**1.2, (height, width))] * 3
    pixels = np.stack([128 + 45 * layer / layer.std() for layer in layers], -1)
    return Image(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def changed(image: Image, spelling: str) -> float:
    follow_up, change = transformation(spelling)(image, needs={}, seed=1)
    assert isinstance(follow_up, Image)
    value = visual_change(image, follow_up, change.warp)
    assert value is not None
    return value


def smoothed(luma: Floats, side: int, *, whole: bool) -> Floats:
    """Weighted means of all windows, one after the other; over the whole image, its edges mirrored, or inside it."""
    line = np.exp(-(((np.arange(side) - side // 2) / (side / 5)) ** 2) / 2)
    weights = np.outer(line, line) / line.sum() ** 2
    padded = np.pad(luma, side // 2, mode="reflect") if whole else luma
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side))
    return np.asarray((windows * weights).sum((-2, -1)))


def plain_fidelity(source: Image, follow_up: Image, *, whole: bool, gains: bool) -> float:
    """VIF as it was published, but for the edges (`whole`) and for what a gain counts (not as one, unless `gains`)."""
    weights = np.array([0.299, 0.587, 0.114])
    first, second = (np.rint(image.pixels @ weights) for image in (source, follow_up))
    kept = there = 0.0
    for number, side in enumerate(WINDOWS):
        if number:
            first, second = (smoothed(luma, side, whole=whole)[::2, ::2] for luma in (first, second))
        means = smoothed(first, side, whole=whole), smoothed(second, side, whole=whole)
        before = np.maximum(smoothed(first * first, side, whole=whole) - means[0] ** 2, 0)
        after = np.maximum(smoothed(second * second, side, whole=whole) - means[1] ** 2, 0)
        both = smoothed(first * second, side, whole=whole) - means[0] * means[1]
        for s, f, c in zip(before.flat, after.flat, both.flat, strict=True):
            gain = c / s if s > 1e-10 and c > 0 else 0.0
            rest = max(f - gain * c, 0.0)
            if gain > 1 and not gains:
                rest, gain = rest / gain**2, 1 / gain
            kept += np.log(1 + gain**2 * s / (rest + EYE_NOISE))
            there += np.log(1 + s / EYE_NOISE)
    return kept / there


@pytest.mark.parametrize(
    "spelling",
    ["blur(1)", "noise(10)", "gamma(2)", "contrast(0.5)", "contrast(2)", "jpeg(30)", "colour_channels((0,1,1))"],
)
def test_it_is_what_a_plain_computation_says(spelling: str) -> None:
    image = photo(3, (45, 38))
    follow_up, _ = transformation(spelling)(image, needs={}, seed=1)
    assert isinstance(follow_up, Image)
    expected = 1 - plain_fidelity(image, follow_up, whole=True, gains=False)
    assert visual_change(image, follow_up) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("spelling", ["blur(1)", "noise(5)", "noise(20)", "contrast(0.5)", "jpeg(30)"])
def test_it_is_the_published_fidelity_where_no_contrast_is_gained(spelling: str) -> None:
    image = photo(4)
    follow_up, _ = transformation(spelling)(image, needs={}, seed=1)
    assert isinstance(follow_up, Image)
    published = plain_fidelity(image, follow_up, whole=False, gains=True)
    assert changed(image, spelling) == pytest.approx(1 - published, abs=0.03)


def test_more_contrast_counts_as_much_as_less() -> None:
    """Published fidelity is above 1 for it; an image of which everybody sees the change would count as unchanged."""
    pale, _ = transformation("contrast(0.4)")(photo(5), needs={}, seed=0)
    assert isinstance(pale, Image)
    follow_up, _ = transformation("contrast(2)")(pale, needs={}, seed=0)
    assert isinstance(follow_up, Image)
    assert plain_fidelity(pale, follow_up, whole=False, gains=True) > 1
    assert changed(pale, "contrast(2)") == pytest.approx(changed(pale, "contrast(0.5)"), abs=0.01)
    assert changed(pale, "contrast(2)") > 0.2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "levels",
    [
        [f"blur({sigma})" for sigma in (0.4, 0.7, 1, 2, 4, 8)],
        [f"noise({sigma})" for sigma in (1, 2, 5, 10, 20, 40, 80)],
        [f"gamma({gamma})" for gamma in (1.1, 1.3, 1.6, 2, 3, 5)],
        [f"gamma({gamma})" for gamma in (0.9, 0.7, 0.5, 0.3, 0.2)],
        [f"contrast({factor})" for factor in (0.9, 0.7, 0.5, 0.2, 0.05)],
        [f"resolution({factor})" for factor in (0.8, 0.5, 0.3, 0.1)],
    ],
    ids=lambda levels: levels[0],
)
def test_a_stronger_change_is_a_larger_one(levels: list[str], seed: int) -> None:
    values = [changed(photo(seed), level) for level in levels]
    assert all(weaker < stronger for weaker, stronger in pairwise(values)), values
    assert values[0] > 0 and values[-1] < 1


def test_nothing_changed_is_nothing_and_nothing_left_is_all() -> None:
    image = photo(6)
    assert visual_change(image, Image(image.pixels.copy())) == 0
    assert visual_change(image, Image.blank(image.size)) == 1
    assert visual_change(image, Image(255 - image.pixels)) == 1  # what is inverted is lost
    assert changed(photo(6, (1400, 900)), "mirror(h) | mirror(h)") == 0


def test_a_large_image_is_compared_as_it_is_looked_at() -> None:
    """The same picture with three times as many pixels, and as much blur to the eye, is as much changed."""
    image = photo(7, (640, 480))
    large, _ = transformation("rescale(3)")(image, needs={}, seed=0)
    assert isinstance(large, Image) and large.size == (1920, 1440)
    assert changed(large, "blur(9)") == pytest.approx(changed(image, "blur(3)"), abs=0.05)


@pytest.mark.parametrize(
    "spelling", ["mirror(h)", "rotation(5)", "crop(0.5)", "shift(0.1,0)", "rotate90(1)", "pad(0.1)"]
)
def test_where_pixels_move_it_is_not_defined(spelling: str) -> None:
    image = photo(8)
    follow_up, change = transformation(spelling)(image, needs={}, seed=1)
    assert isinstance(follow_up, Image)
    assert visual_change(image, follow_up, change.warp) is None


def test_another_shape_has_moved_and_another_size_of_the_same_shape_has_not() -> None:
    image = photo(9, (101, 67))
    assert visual_change(image, Image.blank((67, 101))) is None
    small, _ = transformation("resolution(0.33)")(image, needs={}, seed=0)
    assert isinstance(small, Image)
    value = visual_change(image, small)
    assert value is not None and 0.2 < value < 1


def test_a_warp_of_other_images_is_refused() -> None:
    image = photo(10)
    with pytest.raises(ValueError, match="the images are"):
        visual_change(image, image, Warp.identity((3, 3)))


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (7, 1), (2, 2), (3, 500)])
def test_tiny_and_flat_images_have_a_change_too(size: tuple[int, int]) -> None:
    flat = Image(np.full((size[1], size[0], 3), 90, np.uint8))
    lighter = Image(np.full((size[1], size[0], 3), 120, np.uint8))
    assert visual_change(flat, flat) == 0
    assert visual_change(flat, lighter) == 0  # what is added to every pixel alike is no contrast
    mixed = photo(11, (size[0] + 1, size[1] + 1)).pixels[: size[1], : size[0]]
    for first, second in ((flat, Image(mixed)), (Image(mixed), flat)):
        value = visual_change(first, second)
        assert value is not None and 0 <= value <= 1
        assert value == pytest.approx(0 if size == (1, 1) else 1)
