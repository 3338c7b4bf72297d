"""Scenes whose right answer is known, and a system that is exactly right about them.

A scene is a picture of painted people with four white marks stuck on it. The system sees nothing but the
follow-up's pixels: it finds the marks, measures their centres to a fraction of a pixel, and so knows the
affine map from the scene to the picture in front of it. Its answer is the scene's pose under that map, left
and right exchanged where the map reverses handedness.

Marks are soft (Gaussian), so that they survive blur and a tenth of the resolution, and no affine map carries
their arrangement to itself, so that every turn and flip can be told. They lie in no zone: rules about skin,
hair, clothes and background change the people and what is behind them, not the marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import instar
from instar import Case, Dataset, Image, Poses, Skeleton, System, Zones
from instar.skeleton import skeleton
from tests.toys import image_system

BACKGROUND, SKIN, HAIR, CLOTHES = (70, 92, 84), (130, 95, 78), (60, 40, 30), (40, 70, 110)
GREY, CARD, WEAVE = (90, 90, 90), (130, 95, 79), (84, 84, 84)
"""Cards in the scene: middle grey; the colour of skin, one level off so that it is no skin; and the darker
stripes of a weave, each a pixel wide."""

SPREAD, WINDOW, REACH, STICKER = 8.0, 9.0, 24.0, 30
"""Pixels: σ of a mark, σ and radius of the window it is measured in, radius of its black sticker."""

Place = tuple[float, float]
ZONES = "tests.perfect.scenes:segmented"


@dataclass(frozen=True, eq=False)
class Scene:
    """A picture, where its marks and cards are, and everybody's landmarks (subjects, landmarks, 2)."""

    name: str
    pixels: np.ndarray
    marks: np.ndarray
    bones: Skeleton
    points: np.ndarray
    places: Mapping[str, Place]

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.shape[1], self.pixels.shape[0]

    @property
    def dataset(self) -> Dataset:
        case = Case(self.name, input=Image(self.pixels))
        return Dataset(self.name, "", lambda: iter([case]))

    def saved(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        cv2.imwrite(str(folder / f"{self.name}.png"), cv2.cvtColor(self.pixels, cv2.COLOR_RGB2BGR))
        return folder


@dataclass(frozen=True, eq=False)
class View:
    """What the perfect system made of a picture: the scene's map into it."""

    scene: Scene
    pixels: np.ndarray
    matrix: np.ndarray

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.shape[1], self.pixels.shape[0]

    @property
    def mirrored(self) -> bool:
        return bool(np.linalg.det(self.matrix) < 0)

    @property
    def points(self) -> np.ndarray:
        """The right answer."""
        points = self.scene.points
        return carried(self.matrix, points[:, exchanged(self.scene.bones)] if self.mirrored else points)

    def colour(self, place: str) -> np.ndarray:
        """The pixel at one of the scene's places."""
        x, y = carried(self.matrix, np.array(self.scene.places[place]))
        width, height = self.size
        return np.asarray(self.pixels[min(max(int(y), 0), height - 1), min(max(int(x), 0), width - 1)], float)

    def answer(self, points: np.ndarray | None = None, scores: Sequence[float] | None = None) -> Poses:
        return Poses.from_array(self.points if points is None else points, skeleton=self.scene.bones, scores=scores)


def carried(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    return np.asarray(points @ matrix[:2, :2].T + matrix[:2, 2])


@cache
def exchanged(bones: Skeleton) -> np.ndarray:
    """Left for right: by name where names tell, which owes nothing to the skeleton's own pairs.

    The points of a face mesh have numbers for names; for them there is only the skeleton's symmetry map.
    """
    names = list(bones.landmarks)
    sides = {"left": "right", "right": "left"}
    order = []
    for number, name in enumerate(names):
        words = name.replace(".", "_").split("_")
        if set(words) & sides.keys():
            other = name.replace("left", "#").replace("right", "left").replace("#", "right")
            order.append(names.index(other))
        else:
            order.append(int(bones.swap[number]))
    return np.array(order)


# --- painting --------------------------------------------------------------------------------------

BODY = {  # in shoulder widths about the middle of the shoulders, x to the person's left, y down
    "nose": (0.02, -0.62),
    "left_eye_inner": (0.08, -0.73),
    "left_eye": (0.14, -0.74),
    "left_eye_outer": (0.2, -0.73),
    "right_eye_inner": (-0.06, -0.73),
    "right_eye": (-0.13, -0.735),
    "right_eye_outer": (-0.19, -0.72),
    "left_ear": (0.31, -0.66),
    "right_ear": (-0.3, -0.65),
    "mouth_left": (0.1, -0.5),
    "mouth_right": (-0.08, -0.51),
    "left_shoulder": (0.5, 0.0),
    "right_shoulder": (-0.5, 0.03),
    "left_elbow": (0.71, 0.69),
    "right_elbow": (-0.68, 0.64),
    "left_wrist": (0.55, 1.31),
    "right_wrist": (-0.57, 1.27),
    "left_pinky": (0.6, 1.5),
    "right_pinky": (-0.64, 1.44),
    "left_index": (0.5, 1.53),
    "right_index": (-0.54, 1.48),
    "left_thumb": (0.46, 1.4),
    "right_thumb": (-0.47, 1.37),
    "left_hip": (0.29, 1.33),
    "right_hip": (-0.27, 1.36),
    "left_knee": (0.34, 2.03),
    "right_knee": (-0.33, 1.98),
    "left_ankle": (0.37, 2.64),
    "right_ankle": (-0.38, 2.59),
    "left_heel": (0.33, 2.7),
    "right_heel": (-0.35, 2.66),
    "left_foot_index": (0.5, 2.72),
    "right_foot_index": (-0.49, 2.68),
}


def standing(bones: Skeleton, middle: Place, width: float, seed: int = 0) -> np.ndarray:
    """A person who faces us: its left is the picture's right."""
    rng = np.random.default_rng(seed)
    points = np.full((len(bones.landmarks), 2), np.nan)
    for number, name in enumerate(bones.landmarks):
        if name in BODY:
            points[number] = BODY[name]
    for part in bones.parts:
        own = list(part.landmarks)
        side = part.name.removesuffix("_hand")
        if side != part.name:
            wrist = np.array(BODY[f"{side}_wrist"])
            fingers = np.array(
                [
                    (0.0, 0.0),
                    *((0.02 + 0.05 * (finger - 2), 0.17 + 0.045 * joint) for finger in range(5) for joint in range(4)),
                ]
            )
            fingers[:, 0] *= 1 if side == "left" else -1
            points[own] = wrist + fingers + rng.uniform(-0.004, 0.004, fingers.shape)
        elif part.name == "face":
            points[own] = rng.uniform((-0.2, -0.85), (0.2, -0.4), (len(own), 2))
            for a, b in bones.pairs:  # a mesh is about symmetric; which half is which, only its order tells
                if a in own:
                    points[b] = points[a] * (-1, 1) + rng.uniform(-0.01, 0.01, 2)
            for one, other in part.lengths[:1]:
                points[list(one)] = rng.uniform((0.12, -0.76), (0.16, -0.72), (len(one), 2))
                points[list(other)] = rng.uniform((-0.15, -0.75), (-0.11, -0.71), (len(other), 2))
    assert not np.isnan(points).any()
    return np.array(middle) + width * points


def _painted(pixels: np.ndarray, body: dict[str, np.ndarray], width: float) -> None:
    def at(name: str) -> tuple[int, int]:
        return int(body[name][0]), int(body[name][1])

    def lines(colour: tuple[int, int, int], thick: float, *names: str) -> None:
        for one, other in pairwise(names):
            cv2.line(pixels, at(one), at(other), colour, max(2, round(thick * width)))

    for side in ("left", "right"):
        lines(CLOTHES, 0.3, f"{side}_hip", f"{side}_knee", f"{side}_ankle")
        lines(SKIN, 0.2, f"{side}_shoulder", f"{side}_elbow", f"{side}_wrist")
    corners = [at(name) for name in ("left_shoulder", "right_shoulder", "right_hip", "left_hip")]
    cv2.fillPoly(pixels, [np.array(corners)], CLOTHES)
    head, radius = at("nose"), round(0.44 * width)
    cv2.circle(pixels, head, radius, SKIN, -1)
    cv2.ellipse(pixels, head, (radius, radius), 0, 200, 340, HAIR, -1)


def _stuck(pixels: np.ndarray, mark: Place) -> None:
    """A black sticker with a soft white mark; its centre is a corner of pixels, so that it is symmetric."""
    height, width = pixels.shape[:2]
    x, y = np.meshgrid(np.arange(width) + 0.5 - mark[0], np.arange(height) + 0.5 - mark[1])
    square = x**2 + y**2
    glow = np.rint(255 * np.exp(-square / (2 * SPREAD**2))).astype(np.uint8)
    pixels[square < STICKER**2] = glow[square < STICKER**2][:, None]


def painted_scene(
    name: str,
    size: tuple[int, int],
    bones: str,
    people: Iterable[tuple[Place, float]],
    marks: Sequence[Place],
    places: Mapping[str, Place],
) -> Scene:
    """People by where the middle of their shoulders is, and the width of these."""
    pixels = np.full((size[1], size[0], 3), BACKGROUND, np.uint8)
    cast = []
    whole = skeleton("mediapipe-pose-33")
    for number, (middle, width) in enumerate(people):
        cast.append(standing(skeleton(bones), middle, width, number))
        _painted(pixels, dict(zip(whole.landmarks, standing(whole, middle, width), strict=True)), width)
    for mark in marks:
        _stuck(pixels, mark)
    for card, colour in (("grey", GREY), ("card", CARD), ("weave", WEAVE)):
        x, y = (int(at) for at in places[card])
        pixels[y - 12 : y + 12, x - 12 : x + 12] = colour
        if card == "weave":
            pixels[y - 12 : y + 12, x - 12 : x + 12 : 2] += np.uint8(6)
    pixels.setflags(write=False)
    return Scene(name, pixels, np.array(marks, float), skeleton(bones), np.array(cast), places)


MARKS = ((46, 82), (254, 64), (238, 180), (84, 132))
PLACES = {"grey": (292, 130), "card": (30, 130), "skin": (160, 64), "clothes": (160, 122), "weave": (160, 17)}
PERSON = (((160.3, 87.4), 52.0),)


@cache
def one_person() -> Scene:
    return painted_scene("one", (320, 240), "coco-17", PERSON, MARKS, PLACES)


@cache
def holistic_person() -> Scene:
    return painted_scene("holistic", (320, 240), "mediapipe-holistic", PERSON, MARKS, PLACES)


@cache
def three_people() -> Scene:
    """Portrait, and everybody of another size."""
    return painted_scene(
        "three",
        (256, 338),
        "coco-17",
        (((50, 150), 26), ((131, 157), 34), ((212, 131), 30)),
        ((82, 46), (140, 84), (192, 266), (64, 274)),
        {"grey": (131, 30), "card": (131, 308), "weave": (30, 100)},
    )


@cache
def wide_person() -> Scene:
    """Three landmarks are so near to the corners that rotation(25) carries them out of the frame."""
    scene = one_person()
    points = scene.points.copy()
    for name, place in {"left_wrist": (312, 14), "right_ankle": (8, 228), "left_ankle": (310, 231)}.items():
        points[0, scene.bones.index(name)] = place
    return replace(scene, name="wide", points=points)


@cache
def portrait() -> Scene:
    """Head and shoulders: 7 of the 17 landmarks are in the frame, arms and legs below it."""
    scene = one_person()
    return replace(scene, name="portrait", points=standing(scene.bones, (160, 150), 150)[None])


@cache
def corner_person() -> Scene:
    """Somebody in the middle, and somebody small in a corner whom rotation(25) carries out as a whole."""
    scene = one_person()
    points = np.concatenate([scene.points, standing(scene.bones, (300, 22), 8)[None]])
    return replace(scene, name="corner", points=points)


@cache
def crowd() -> Scene:
    """Seven, who are not painted; the system knows where they are."""
    scene = one_person()
    people = [standing(scene.bones, (70 + 30 * number, 90 + 12 * (number % 3)), 12 + number) for number in range(7)]
    return replace(scene, name="crowd", points=np.array(people))


def segmented(pixels: np.ndarray) -> Zones:
    """By the painter's own colours. Marks and cards are in no zone, as class 5 of real segmenters."""
    labels = np.full(pixels.shape[:2], 5, np.uint8)
    for label, colour in enumerate((BACKGROUND, HAIR, SKIN, CLOTHES)):
        labels[(pixels == colour).all(-1)] = label
    return Zones(labels, {"background": (0,), "hair": (1,), "skin": (2,), "clothes": (3,)})


# --- seeing ----------------------------------------------------------------------------------------


def fitted(marks: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The affine map that carries the marks to where they were seen."""
    design = np.column_stack([marks, np.ones(len(marks))])
    return np.vstack([np.linalg.lstsq(design, seen, rcond=None)[0].T, (0, 0, 1)])


def _told_apart(marks: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Which is which: of all orders the one that an affine map explains."""
    orders = np.array(list(permutations(range(len(marks)))))
    design = np.column_stack([marks, np.ones(len(marks))])
    rest = np.eye(len(marks)) - design @ np.linalg.pinv(design)
    return np.asarray(seen[orders[np.square(rest @ seen[orders]).sum((1, 2)).argmin()]])


def _glows(luma: np.ndarray, count: int) -> np.ndarray:
    """The brightest spots, at the highest level that shows as many as there are marks."""
    top = float(luma.max())
    for level in np.arange(0.94, 0.5, -0.02):
        found, _, _, centres = cv2.connectedComponentsWithStats((luma > level * top).astype(np.uint8))
        if found == count + 1:
            return centres[1:] + 0.5
    raise ValueError("the marks are not to be seen")


def luma_of(pixels: np.ndarray) -> np.ndarray:
    return np.asarray(pixels @ np.array([0.299, 0.587, 0.114]))


def look(scene: Scene, pixels: np.ndarray) -> View:
    """From a picture to the map of the scene into it."""
    luma = luma_of(pixels)
    matrix = fitted(scene.marks, _told_apart(scene.marks, _glows(luma, len(scene.marks))))
    gain = 1 + (SPREAD / WINDOW) ** 2  # a windowed mean tells only part of the way
    for _ in range(30):
        back = np.linalg.inv(matrix)
        moved = np.array([_off_centre(luma, matrix, back, mark) for mark in scene.marks]) * gain
        matrix = fitted(scene.marks, carried(matrix, scene.marks + moved))
        if np.abs(moved).max() < 1e-7:
            break
    return View(scene, pixels, matrix)


def _off_centre(luma: np.ndarray, matrix: np.ndarray, back: np.ndarray, mark: np.ndarray) -> np.ndarray:
    """How far a mark's centre of light is from where it is thought to be, in pixels of the scene."""
    light, across, down = glow(luma, matrix, back, mark)
    return np.array([(light * across).sum(), (light * down).sum()])


def glow(
    luma: np.ndarray, matrix: np.ndarray, back: np.ndarray, mark: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The light of a mark in its window, of sum 1, and where it comes from: scene pixels from the mark."""
    x, y = carried(matrix, mark)
    reach_x, reach_y = REACH * np.linalg.norm(matrix[:2, :2], axis=1) + 1
    left, top = max(int(x - reach_x), 0), max(int(y - reach_y), 0)
    part = luma[top : int(y + reach_y) + 1, left : int(x + reach_x) + 1]
    columns, rows = np.arange(part.shape[1]) + left + 0.5, np.arange(part.shape[0]) + top + 0.5
    across = back[0, 0] * columns + (back[0, 1] * rows + back[0, 2] - mark[0])[:, None]
    down = back[1, 0] * columns + (back[1, 1] * rows + back[1, 2] - mark[1])[:, None]
    square = across**2 + down**2
    light = np.where(square < REACH**2, (part - part.min()) * np.exp(-square / (2 * WINDOW**2)), 0)
    return light / light.sum(), across, down


_seen: dict[tuple[str, bytes], View] = {}


def seen(scene: Scene, pixels: np.ndarray) -> View:
    """As `look`, remembered by what was looked at: every faulty system sees the same follow-ups."""
    key = scene.name, Image(pixels).content_hash().encode()
    if key not in _seen:
        _seen[key] = look(scene, pixels)
    return _seen[key]


# --- running ---------------------------------------------------------------------------------------

Answer = Callable[[View], Poses]


def perfect(view: View) -> Poses:
    return view.answer()


def system_of(scene: Scene, answer: Answer = perfect, *, deterministic: bool = True) -> System:
    return image_system(lambda pixels: answer(seen(scene, pixels)), "poses", deterministic=deterministic)


def severities(run: instar.Run, **judging: Any) -> dict[str, dict[str, float | None]]:
    """Severity by target, by rule (less its relation), after making sure that nothing failed on the way."""
    assert run.predictions()["status"].unique().to_list() == ["ok"]
    found: dict[str, dict[str, float | None]] = {}
    for rule, target, severity in run.verdicts(**judging).select("rule", "target", "severity").iter_rows():
        found.setdefault(rule.partition(" => ")[0], {})[target] = severity
    return found
