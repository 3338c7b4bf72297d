"""An answer beyond the limits is an error that says what was given and what is allowed; the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import instar
from instar import Caption, Detections, Forecast, Labels, Poses
from instar.image import Image
from instar.outputs import Output
from instar.outputs.heat import HeatMap
from instar.outputs.limits import LIMITS, TooMuch, within_limits
from instar.outputs.segmentation import Segmentation
from instar.suites import Suite
from instar.warp import Warp
from tests.toys import rectangles, write_scenes

BOX = [0, 0, 1, 1]
ABSURD: dict[str, Callable[[], Output]] = {
    "200,000 subjects": lambda: Poses.from_array(np.zeros((200_000, 17, 2), np.float32), skeleton="coco-17"),
    "30,001 objects": lambda: Detections.from_xyxy([BOX] * 30_001, ["dog"] * 30_001),
    "1,001 characters in a name": lambda: Detections.from_xyxy([BOX], ["d" * 1_001]),
    "1,000,000 characters in the caption": lambda: Caption.from_text("a" * 1_000_000),
    "50,001 classes": lambda: Labels.from_scores([str(n) for n in range(50_001)]),
    "2,001 futures": lambda: Forecast.from_array(np.zeros((2_001, 2, 2), np.float32)),
    "1,200,000 positions in all futures": lambda: Forecast.from_array(np.zeros((2_000, 600, 2), np.float32)),
    "16,785,409 cells in the probability map": lambda: Forecast(
        np.zeros((1, 2, 2), np.float32), HeatMap(np.broadcast_to(1.0, (4097, 4097)), Warp.identity((4097, 4097)))
    ),
}


@pytest.mark.parametrize("what", ABSURD)
def test_what_nobody_can_mean_is_refused_with_the_limit(what: str) -> None:
    limit = LIMITS[what.partition(" ")[2]]
    with pytest.raises(TooMuch, match=f"the answer has {what}, and at most {limit:,} are allowed"):
        within_limits(ABSURD[what]())


LARGE: dict[str, Callable[[], Output]] = {
    "a stadium of faces": lambda: Poses.from_array(np.zeros((500, 478, 2), np.float32), skeleton="face-mesh-478"),
    "a detector without a floor": lambda: Detections.from_xyxy([BOX] * 25_200, ["dog"] * 25_200, np.zeros(25_200)),
    "every class of ImageNet-21k": lambda: Labels.from_scores([f"n{n}" for n in range(21_841)]),
    "a class for every pixel": lambda: Segmentation.from_classes(np.zeros((1500, 2000), np.uint8), ["road"]),
    "a talkative captioner": lambda: Caption.from_text("a dog on a bench " * 500),
}


@pytest.mark.parametrize("what", LARGE)
def test_what_large_systems_say_is_allowed(what: str) -> None:
    answer = LARGE[what]()
    assert within_limits(answer) is answer


def crowded(pixels: np.ndarray) -> Detections:
    """Right, but for the mirrored image of the first one: there it returns every anchor that it has."""
    if pixels[:, : pixels.shape[1] // 2].mean() < pixels[:, pixels.shape[1] // 2 :].mean():
        return Detections.from_xyxy([BOX] * 200_000, ["anchor"] * 200_000)
    return rectangles(pixels)


def test_one_absurd_answer_costs_its_own_row_and_no_more(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 3)
    rules = Suite("one", (instar.rule("mirror(h)"),))
    one = instar.run("tests.outputs.test_limits:crowded", rules, photos, out=tmp_path / "run", workers=0)
    rows = one.predictions()
    refused = rows.filter(rows["status"] != "ok")
    assert 0 < refused.height < rows.height
    assert all("has 200,000 objects, and at most 30,000 are allowed" in text for text in refused["message"])
    assert one.verdicts().height >= 3  # judged: every pair has a verdict, or the reason why it has none


def test_the_first_repeated_name_is_told_at_once() -> None:
    """Of 100,000 names that would be looked up one by one, for minutes."""
    names = [*map(str, range(100_000)), "99999"]
    with pytest.raises(ValueError, match="'99999' is that of several"):
        Detections.from_xyxy([BOX] * len(names), ["dog"] * len(names), ids=names)
    with pytest.raises(ValueError, match="'99999' is there twice"):
        Labels.from_scores(names)


def test_the_medoid_of_many_futures_needs_no_room_for_all_pairs() -> None:
    paths = np.random.default_rng(0).normal(0, 1, (2_000, 12, 2))
    paths[7] = 0
    assert not Forecast.from_array(paths).medoid.any()


def test_an_answer_is_checked_at_the_systems_door() -> None:
    answer = instar.system(crowded).answer([Image(np.tile(np.arange(40, dtype=np.uint8)[:, None], (20, 1, 3)))], [0])
    assert isinstance(answer[0], TooMuch)
