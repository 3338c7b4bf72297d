"""Seeded faults of segmenters: the suite `segmentation` catches each by the rules that see it, and names the class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest

import instar
from instar import Segmentation
from instar.outputs.segmentation import UNKNOWN
from tests.quality import painted as p
from tests.quality.words import accusations, assert_accused, assert_checked, assert_shown_and_reported, finding, said
from tests.toys import image_system

IMAGES = [p.street(number) for number in range(4)]
NAMES = ("ground", "red", "blue")
ALL = {rule.id for rule in instar.suite("segmentation").rules}
Answer = Callable[[np.ndarray], Segmentation]


def answered(cells: np.ndarray) -> Segmentation:
    return Segmentation.from_classes(cells, NAMES)


def without(name: str, seen: Callable[[np.ndarray], bool]) -> Callable[[], Answer]:
    """A class that is not seen in some images."""

    def answer(pixels: np.ndarray) -> Segmentation:
        cells = p.cells(pixels)
        if seen(pixels):
            cells[cells == NAMES.index(name)] = 0
        return answered(cells)

    return lambda: answer


def of(change: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[], Answer]:
    """The right cells, changed; with the image."""
    return lambda: lambda pixels: answered(np.ascontiguousarray(change(p.cells(pixels), pixels)))


def off_to_the_right(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    return np.roll(cells, 6, axis=1)


def blind_at_the_right(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    cells[:, 2 * cells.shape[1] // 3 :] = 0
    return cells


def of_the_square(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """The image was put into the middle of a square, and the margins were never cut off again."""
    height, width = cells.shape
    side = max(height, width)
    square = np.zeros((side, side), np.uint8)
    square[(side - height) // 2 :][:height, (side - width) // 2 :][:, :width] = cells
    return square


def upside_down(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    return cells[::-1]


def not_turned_back(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Rows and columns exchanged."""
    return cells.T


def scattered_by_noise(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    if p.noisy(pixels):
        chance = np.random.default_rng(0).random(cells.shape)
        cells[chance < 0.25] = 1
    return cells


def exchanged_in_the_light(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    return np.array([0, 2, 1], np.uint8)[cells] if p.bright(pixels) else cells


def unknown_in_the_dark(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    return np.full_like(cells, UNKNOWN) if p.dark(pixels) else cells


def thin_out_of_focus(cells: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """What is there loses a rim of five pixels."""
    if not p.soft(pixels):
        return cells
    kernel = np.ones((11, 11), np.uint8)
    return sum(number * cv2.erode((cells == number).astype(np.uint8), kernel) for number in (1, 2))  # type: ignore[return-value]


ARMS = ("ground", "left arm", "right arm")


def named_by_the_picture() -> Answer:
    """The arm that is further left in the image is called the left one."""

    def answer(pixels: np.ndarray) -> Segmentation:
        cells = p.cells(pixels)
        places = [np.argwhere(cells == number)[:, 1].mean() if (cells == number).any() else 0.0 for number in (1, 2)]
        table = np.array([0, 1, 2] if places[0] < places[1] else [0, 2, 1], np.uint8)
        return Segmentation.from_classes(table[cells], ARMS)

    return answer


def lagging() -> Answer:
    answers: list[Segmentation] = []

    def answer(pixels: np.ndarray) -> Segmentation:
        answers.append(answered(p.cells(pixels)))
        return answers[max(len(answers) - 2, 0)]

    return answer


def by_chance() -> Answer:
    rng = np.random.default_rng(0)
    return lambda pixels: answered(rng.integers(0, 3, pixels.shape[:2]).astype(np.uint8))


def all_ground() -> Answer:
    return lambda pixels: answered(np.zeros(pixels.shape[:2], np.uint8))


def the_same_map() -> Answer:
    return lambda pixels: answered(p.cells(IMAGES[0]))


@dataclass(frozen=True)
class Fault:
    make: Callable[[], Answer]
    caught: frozenset[str]
    words: str
    """What must be said of it, as a regular expression."""
    worst: tuple[str, ...] = ()
    kind: str | None = None
    exactly: bool = True
    check: str = ""
    """What `instar check` must say of it, where it can see it in a few images."""


def fault(make: Callable[[], Answer], *caught: str, words: str, **more: object) -> Fault:
    return Fault(make, frozenset(caught), words, **more)  # type: ignore[arg-type]


SHIFT, CROP, PAD, NARROW = "shift(0.1, y=0.1)", "crop(0.8)", "pad(0.2, sides=top_bottom)", "stretch(1, 0.6)"
TURN = "mirror(both)"
FAULTS = {
    "the map sits to the right": fault(
        of(off_to_the_right),
        "mirror(h)",
        TURN,
        worst=("red", "blue"),
        words=r"mirror\(h\).*sits beside it",
        check="map.offset",
    ),
    "blind at the right": fault(
        of(blind_at_the_right),
        "mirror(h)",
        SHIFT,
        CROP,
        worst=("blue",),
        exactly=False,
        words=r"shift\(.*hardly there any more",
    ),
    "a map of the padded square": fault(
        of(of_the_square), NARROW, exactly=False, words=r"stretch\(.*an aspect that is lost", check="map.letterbox"
    ),
    "a map upside down": fault(
        of(upside_down),
        SHIFT,
        exactly=False,
        words=r"shift\(.*by up to 0\.\d+ .*classes that depend on their place",
        check="map.upside_down",
    ),
    "a map with rows for columns": fault(
        of(not_turned_back),
        "mirror(h)",
        PAD,
        exactly=False,
        words=r"mirror\(h\).*a map that is not turned with the image",
        check="map.transposed",
    ),
    "no red off the middle": fault(
        without("red", lambda i: p.middle(i)[0] > 0.55),
        SHIFT,
        worst=("red",),
        kind="lost",
        words="hardly there any more .*classes that depend on their place",
    ),
    "no blue when large": fault(
        without("blue", lambda i: p.share(i) > 0.2),
        CROP,
        worst=("blue",),
        kind="lost",
        words=r"crop\(0.8\) \(.+\): a class that the source shows is hardly there any more .*",
    ),
    "no blue between margins": fault(
        without("blue", p.margins),
        PAD,
        worst=("blue",),
        kind="lost",
        words="hardly there any more .*margins that are taken for a part of the image",
    ),
    "no blue when narrow": fault(
        without("blue", lambda i: i.shape[1] < 1.2 * i.shape[0] and not p.margins(i)),
        NARROW,
        words="hardly there any more .*an aspect that is lost",
    ),
    "blue is known only upright": fault(
        without("blue", p.tilted),
        "rotation(5)",
        worst=("blue",),
        kind="lost",
        words="hardly there any more .*known only upright",
    ),
    "needs large images": fault(
        without("red", p.small),
        "resolution(0.7)",
        worst=("red",),
        kind="lost",
        words="hardly there any more .*needs a certain size of image",
    ),
    "no red in the dark": fault(
        without("red", p.dark), "gamma(1.5)", worst=("red",), kind="lost", words="hardly there any more .*dark images"
    ),
    "everything unknown in the dark": fault(
        of(unknown_in_the_dark), "gamma(1.5)", kind="lost", words="hardly there any more .*dark images"
    ),
    "red is blue in the light": fault(
        of(exchanged_in_the_light),
        "gamma(0.5)",
        worst=("red", "blue"),
        words=r"by up to 1 IoU lost by the worst class.*bright images",
    ),
    "no blue in haze": fault(
        without("blue", p.flat),
        "contrast(0.7)",
        worst=("blue",),
        kind="lost",
        words="hardly there any more .*flat images",
    ),
    "thin out of focus": fault(
        of(thin_out_of_focus),
        "blur(1)",
        worst=("red", "blue"),
        words=r"blur\(1\) \(.+\): by up to 0\.\d+ IoU lost .*fine texture",
    ),
    "red grains in noise": fault(
        of(scattered_by_noise),
        "noise(8)",
        worst=("red",),
        words=r"noise\(8\) \(.+\): by up to 0\.\d+ IoU lost .*noise scatters",
    ),
    "no red when compressed": fault(
        without("red", p.blocky), "jpeg(30)", worst=("red",), kind="lost", words="hardly there any more .*compression"
    ),
    "arms named by the picture": fault(
        named_by_the_picture,
        TURN,
        worst=("left arm", "right arm"),
        words=r"mirror\(both\).*by up to 1 IoU lost .*left and right named by the image",
    ),
    "arms known by their colour": fault(
        lambda: lambda pixels: Segmentation.from_classes(p.cells(pixels), ARMS),
        "mirror(h)",
        worst=("left arm", "right arm"),
        words=r"mirror\(h\).*by up to 1 IoU lost .*sides that are not exchanged",
    ),
    "answers with the image before": fault(
        lagging,
        "identity",
        exactly=False,
        words=r"identity \(.+\): .*a memory of the image before",
        check="determinism.remembers",
    ),
    "answers by chance": fault(
        by_chance, "identity", exactly=False, words=r"identity \(.+\): .*chance", check="determinism.differs"
    ),
    "ground everywhere": fault(all_ground, words="answered all 4 images with ground everywhere", check="looks.same"),
    "always the same map": fault(
        the_same_map,
        "mirror(h)",
        SHIFT,
        words="answered all 4 images with the same map",
        exactly=False,
        check="looks.same",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_suite_catches_it(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    seeded = FAULTS[name]
    run = p.run_of(seeded.make(), "segmentation", IMAGES, tmp_path_factory.mktemp("run") / "run")
    caught = p.violated(run)
    assert seeded.caught <= caught and (caught == seeded.caught or not seeded.exactly), caught
    worst = run.verdicts().filter(severity=run.verdicts()["severity"].max())
    assert not seeded.worst or set(worst["worst"]) & set(seeded.worst), worst
    assert seeded.kind is None or seeded.kind in worst["kind"].to_list()
    assert_accused(run, seeded.words)
    assert ("answered all" in seeded.words) == ("answered all" in " ".join(accusations(run)))
    if seeded.worst:
        assert_accused(run, f"overlaps least is most often ({'|'.join(seeded.worst)})")


def test_the_half_turn_alone_shows_sides_that_are_named_by_the_picture(tmp_path: Path) -> None:
    run = p.run_of(named_by_the_picture(), "segmentation", IMAGES, tmp_path / "run")
    accusing = {one.figures["rule"] for one in said(run) if one.code == "rule.violated"}
    assert accusing == {f"{TURN} => class_overlap"}
    assert finding(run, "rule.violated").figures["violated"] == len(IMAGES)


def test_show_and_the_report_say_all_of_it(tmp_path: Path) -> None:
    assert_shown_and_reported(p.run_of(all_ground(), "segmentation", IMAGES, tmp_path / "run"))


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.check])
def test_check_says_it_of_a_few_images(name: str) -> None:
    assert_checked(image_system(FAULTS[name].make(), "segmentation"), p.inputs_of(IMAGES[:3]), FAULTS[name].check)


def test_no_rule_is_for_nothing() -> None:
    """Without any one rule some fault is not seen."""
    for rule in ALL - {"identity"}:
        assert any(seeded.caught == {rule} for seeded in FAULTS.values()), rule
