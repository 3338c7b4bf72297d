"""Hands whose right answer is known, and systems that know from the pixels alone how an image was changed.

A first run asks a system that answers with a number of its own for every image; what the run folder then holds says
which case and which warp belong to which pixels. Systems under test look their image up there: they see nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np

import instar
from instar import Case, Dataset, Image, Poses, Skeleton
from instar.skeleton import skeleton
from tests.perfect.scenes import BACKGROUND, SKIN, carried
from tests.perfect.test_hand_pose import OPEN
from tests.toys import image_system

ZONES = "tests.perfect.scenes:segmented"
BONES = skeleton("hand-21")
TWO_HANDS = Skeleton.from_dict(
    {
        "name": "hands-42",
        "pairs": [["left_hand", "right_hand"]],
        "include": [{"skeleton": "hand-21", "as": part} for part in ("left_hand", "right_hand")],
    }
)
COUNT = 12


@dataclass(frozen=True, eq=False)
class View:
    """What a system knows of an image: the case it was made from, how, and where its hands (hands, 21, 2) are."""

    case: int | None
    """None: the image shows no hand."""
    follow_up: str
    matrix: np.ndarray
    size: tuple[int, int]

    @property
    def source(self) -> np.ndarray:
        """Where the hands are in the source."""
        return np.empty((0, 21, 2)) if self.case is None else HANDS[self.case][1]

    @property
    def points(self) -> np.ndarray:
        return carried(self.matrix, self.source)

    def answer(self, points: np.ndarray | None = None, **more: object) -> Poses:
        return Poses.from_array(self.points if points is None else points, skeleton="hand-21", **more)  # type: ignore[arg-type]


Answer = Callable[[View], Poses]


def _painted(number: int) -> tuple[Image, np.ndarray]:
    """A hand and, in every third image, a second, smaller one; frames are of two sizes."""
    rng = np.random.default_rng(number)
    width, height = (160, 132) if number % 2 else (132, 150)
    shape = (OPEN - OPEN.mean(0)) * rng.uniform(0.75, 0.9)
    angle = np.radians(rng.uniform(-12, 12))
    turned = shape @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    hands = [turned + np.array([0.42 * width, 0.47 * height]) + rng.normal(0, 2, 2)]
    if number % 3 == 0:
        hands.append(shape[:, ::-1] * 0.45 + (0.78 * width, 0.3 * height))
    pixels = np.full((height, width, 3), BACKGROUND, np.uint8)
    for hand in hands:
        for one, other in BONES.edges:
            cv2.line(pixels, tuple(hand[one].astype(int)), tuple(hand[other].astype(int)), SKIN, 4)
    pixels[:3, : number + 1] = 0
    return Image(pixels), np.array(hands)


HANDS = [_painted(number) for number in range(COUNT)]


def data(*, annotated: bool = True, empty: int = 0) -> Dataset:
    """The hands, and images that show none."""
    cases = [
        Case(f"{number:02d}", input=image, truth=Poses.from_array(points, skeleton="hand-21") if annotated else None)
        for number, (image, points) in enumerate(HANDS)
    ]
    nobody = Poses.from_array([], skeleton="hand-21")
    for number in range(empty):
        pixels = np.full((90, 100 + number, 3), BACKGROUND, np.uint8)
        cases.append(Case(f"empty-{number:02d}", input=Image(pixels), truth=nobody if annotated else None))
    return Dataset("painted hands", "", lambda: iter(cases), truth="poses" if annotated else None)


@cache
def _views(suite: str, empty: int) -> dict[str, View]:
    """What each image of a run is, by its content."""
    images: list[tuple[str, tuple[int, int]]] = []

    def numbered(pixels: np.ndarray) -> Poses:
        images.append((Image(pixels).content_hash(), (pixels.shape[1], pixels.shape[0])))
        return Poses.from_array(np.full((1, 21, 2), float(len(images) - 1)), skeleton="hand-21")

    with TemporaryDirectory() as folder:
        run = instar.run(numbered, suite, data(empty=empty), out=Path(folder) / "run", workers=0, zones=ZONES)
        rows = run.predictions().filter(status="ok").iter_rows(named=True)
        views: dict[str, View] = {}
        for row in sorted(rows, key=lambda row: row["follow_up"] == "identity"):
            content, size = images[int(row["points"][0])]
            case = None if row["case"].startswith("empty") else int(row["case"])
            matrix = np.eye(3) if row["follow_up"] == "source" else np.reshape(row["warp"], (3, 3))
            views.setdefault(content, View(case, row["follow_up"], matrix, size))
    return views


def ran(answer: Answer, out: Path, suite: str = "hands", *, annotated: bool = True, empty: int = 0) -> instar.Run:
    """A run of a system that gives this answer to what it sees."""
    views = _views(suite, empty)

    system = image_system(lambda pixels: answer(views[Image(pixels).content_hash()]), "poses")
    return instar.run(system, suite, data(annotated=annotated, empty=empty), out=out, workers=0, zones=ZONES)


def violated(run: instar.Run) -> set[str]:
    """The rules that any case violates at their thresholds, without their relation."""
    rates = run.rates()
    return {row["rule"].partition(" => ")[0] for row in rates.to_dicts() if row["violated"]}


def advice(run: instar.Run) -> dict[str, str]:
    """What is said, by its ground, all sentences of one ground together."""
    from instar.tasks.hand_pose.analysis import hand_advice

    spoken: dict[str, str] = {}
    for ground, says, because in hand_advice(run).iter_rows():
        spoken[ground] = f"{spoken.get(ground, '')} {says} {because}".strip()
    return spoken
