"""Class numbers and names that are counted from different places, as far as that can be seen without labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from instar import Detections, Image, declare
from instar.systems.boxes import COCO, COCO_NUMBERS
from instar.systems.check import Finding, check_system
from instar.systems.function import from_function
from tests.quality import painted

IMAGES = [(str(number), Image(painted.sign(number))) for number in range(4)]
FIRST, LAST = 0, 79
"""Places in the list of 80 names. A red sign is one, a blue one the other."""


def _detector(name_of: Callable[[int], str]) -> Callable[[np.ndarray], Detections]:
    @declare(kind="detections")
    def answer(pixels: np.ndarray) -> Detections:
        x, y = np.array(painted.middle(pixels)) * pixels.shape[1::-1]
        place = FIRST if painted.redness(pixels).sum() > 0 else LAST
        return Detections.from_xyxy([[x - 9, y - 9, x + 9, y + 9]], [name_of(place)], [0.9])

    return answer


def _found(name_of: Callable[[int], str]) -> dict[str, Finding]:
    findings, _ = check_system(from_function(_detector(name_of), "detector"), IMAGES)
    return {finding.name: finding for finding in findings}


WITH_GAPS = ["N/A"] * 91
for number, name in zip(COCO_NUMBERS, COCO, strict=True):
    WITH_GAPS[number] = name
FAULTS: dict[str, tuple[Callable[[int], str], str, str]] = {
    "a list with a background, from 0": (
        lambda place: ("background", *COCO)[place], "classes", "classes.background",
    ),
    "places of 80 in a list of 91": (lambda place: WITH_GAPS[place], "classes", "classes.background"),
    "COCO's numbers in a list of 80, which ends": (
        lambda place: dict(enumerate(COCO)).get(COCO_NUMBERS[place], f"class {COCO_NUMBERS[place]}"),
        "classes",
        "classes.without_name",
    ),
    "COCO's numbers in a list of 80": (lambda place: COCO[COCO_NUMBERS[place]], "answers", "answers.failed"),
}  # fmt: skip
FLAWLESS: dict[str, tuple[Callable[[int], str], dict[str, int]]] = {
    "names": (lambda place: COCO[place], {"toothbrush": 2, "person": 2}),
    "numbers alone": (str, {"79": 2, "0": 2}),
}
"""And what `check` says, so that whoever knows the images sees at once what is wrong."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_class_that_cannot_be_is_told(name: str) -> None:
    name_of, question, code = FAULTS[name]
    finding = _found(name_of)[question]
    assert finding.state in ("warning", "problem") and finding.code == code


def test_half_of_the_objects_called_background_are_a_problem() -> None:
    """A warning would leave the exit code at 0, and a night be spent on wrong names."""
    assert _found(FAULTS["a list with a background, from 0"][0])["classes"].state == "problem"


STANDING, LYING, BRUSH = (12, 30), (30, 18), (3, 30)
"""Width and height of a person, of a bicycle from the side, and of a toothbrush in a glass."""
Things = list[tuple[str, tuple[int, int]]]


def _scenes(*scenes: Things) -> Finding:
    """What `check` says of the classes where these things are found, in one image each."""

    @declare(kind="detections")
    def answer(pixels: np.ndarray) -> Detections:
        x, y = (int(each) for each in np.array(painted.middle(pixels)) * pixels.shape[1::-1])
        things = scenes[int(pixels[0, 0, 0]) % len(scenes)]
        corners = [[x + 2 * i, y, x + 2 * i + width, y + height] for i, (_, (width, height)) in enumerate(things)]
        return Detections.from_xyxy(corners, [name for name, _ in things], [0.9 - 0.05 * i for i in range(len(things))])

    images = []
    for number in range(len(scenes)):
        pixels = painted.sign(number).copy()
        pixels[0, 0, 0] = number
        images.append((str(number), Image(pixels)))
    findings, _ = check_system(from_function(answer, "detector"), images)
    return next(finding for finding in findings if finding.name == "classes")


SHIFTED: dict[str, tuple[list[Things], str]] = {
    "one too high, people never the surest": (
        [[("toilet", LYING), ("bicycle", STANDING), ("bicycle", STANDING)], [("bed", LYING), ("bicycle", STANDING)],
         [("fork", STANDING)], [("horse", LYING), ("bicycle", LYING)]],
        "classes.one_too_high",
    ),
    "one too low, bicycles called people": (
        [[("toothbrush", STANDING), ("person", LYING)], [("toothbrush", STANDING)], [("bench", LYING)]],
        "classes.one_too_low",
    ),
}  # fmt: skip
AS_THEY_ARE: dict[str, list[Things]] = {
    "bicycles from the side": [[("bicycle", LYING)] * 2, [("bicycle", LYING)], [("bicycle", STANDING)]],
    "bicycles from the front, and somebody": [[("bicycle", STANDING)], [("bicycle", STANDING), ("person", STANDING)]],
    "toothbrushes in a glass": [[("toothbrush", BRUSH)] * 3, [("toothbrush", BRUSH)]],
    "one bicycle among other things": [[("bicycle", STANDING)], [("dog", LYING)], [("cat", LYING)]],
}


@pytest.mark.parametrize("name", SHIFTED)
def test_people_called_by_the_next_name_are_told(name: str) -> None:
    scenes, code = SHIFTED[name]
    finding = _scenes(*scenes)
    assert (finding.state, finding.code) == ("warning", code)


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_bicycles_and_toothbrushes_are_not_taken_for_people(name: str) -> None:
    assert _scenes(*AS_THEY_ARE[name]).state == "ok"


@pytest.mark.parametrize("name", FLAWLESS)
def test_classes_are_counted_for_who_knows_the_images(name: str) -> None:
    name_of, found = FLAWLESS[name]
    finding = _found(name_of)["classes"]
    assert finding.state == "ok" and finding.figures["found"] == found
