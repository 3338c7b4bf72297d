"""The usual mistakes of adapters, with the code of the finding that names each; and correct ones, which pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from instar import Detections, Forecast, Image, Poses, Scene, Segmentation, System
from instar.outputs.labels import Labels
from instar.skeleton import Skeleton
from instar.systems.check import check_system
from instar.systems.check.scenes import SCENES as MADE
from tests.missing import loaded_system
from tests.quality import painted as p
from tests.systems.test_check import COCO, MANY, PHOTOS, Pixels, blobs, boxes, painted, poses, see, seeing, single

Points = np.ndarray


def margins(pixels: Pixels, side: int) -> np.ndarray:
    return np.array([side - pixels.shape[1], side - pixels.shape[0]]) / 2


def size(pixels: Pixels) -> np.ndarray:
    return np.array(pixels.shape[1::-1], float)


def of_people(change: Callable[[Points, Pixels], Points]) -> System:
    """One upright box around everybody, with a class of COCO's."""

    def answer(pixels: Pixels) -> Detections:
        points = see(pixels)
        if points is None:
            return Detections.from_xyxy([], [])
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        return Detections.from_xyxy([[*low, *high]], ["bicycle"], [0.9])

    return single(answer, "detections")


def letterboxed(at: Points, pixels: Pixels, shape: tuple[int, int] = (1, 1)) -> Points:
    """Shares of a frame in whose middle the image lies, multiplied by the image's size; the frame has another shape."""
    frame = np.array(shape) * max(size(pixels) / shape)
    return np.asarray((at + (frame - size(pixels)) / 2) * size(pixels) / frame)


def small_person(at: Points) -> Points:
    """The same person, half as large, in the same place."""
    middle = np.nanmean(at, axis=0)
    return np.asarray(middle + (at - middle) / 2)


def beside_in_a_mirror(at: Points, pixels: Pixels) -> Points:
    """40 px to the right if the ground is brighter at the left, as it is in a mirror."""
    return np.asarray(at + np.array([40 * (pixels[0, 0, 0] > pixels[0, -1, 0]), 0]))


def grey(image: Image) -> Image:
    return Image(np.repeat(image.pixels[..., 1:2], 3, axis=2))


def softmax(scores: dict[str, float]) -> dict[str, float]:
    powers = {name: float(np.exp(score)) for name, score in scores.items()}
    return {name: power / sum(powers.values()) for name, power in powers.items()}


def sigmoid(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))


def sure(pixels: Pixels) -> dict[str, float]:
    """A classifier of ten classes that knows one, by the image's brightness."""
    logits = {f"class {n}": float(np.sin(n * pixels.mean())) for n in range(10)}
    logits[f"class {round(pixels.mean()) % 10}"] = 5.0
    return softmax(logits)


def unsure_of_noise(pixels: Pixels) -> dict[str, float]:
    """A classifier that knows nothing of these images: its classes score 0.06 to 0.2."""
    return softmax({f"class {n}": 0.5 * float(np.sin(n + pixels.mean())) for n in range(10)})


def scored(change: Callable[[float], float]) -> System:
    """A detector whose scores, which depend on the class and the image, are changed."""

    def answer(pixels: Pixels) -> Detections:
        marks = [(x, y, name) for name, spots in blobs(pixels).items() for x, y in spots]
        corners = np.array([[x - 9, y - 9, x + 9, y + 9] for x, y, _ in marks]).reshape(-1, 4)
        return Detections.from_xyxy(corners * 1.0, [n for *_, n in marks], [change(0.1 * len(n)) for *_, n in marks])

    return single(answer, "detections")


def into_a_square(at: Points, pixels: Pixels) -> Points:
    """Through a square model with margins and back, to whole pixels of the model's 192."""
    side = max(size(pixels))
    inside = np.round((at + margins(pixels, side)) / side * 192) + 0.25
    return np.asarray((inside - 0.25) / 192 * side - margins(pixels, side))


def twice(marks: Points, pixels: Pixels) -> Points:
    return marks


def doubled() -> System:
    def answer(pixels: Pixels) -> Detections:
        marks = [(x, y, name) for name, spots in blobs(pixels).items() for x, y in spots]
        every = [(x + off, y + off, name) for x, y, name in marks for off in (0, 0.6)]
        return Detections.from_xyxy(
            np.array([[x - 12, y - 12, x + 12, y + 12] for x, y, _ in every]).reshape(-1, 4), [n for *_, n in every]
        )

    return single(answer, "detections")


def zeros(points: Points, pixels: Pixels) -> Points:
    points[[COCO.index("left_ankle"), COCO.index("right_wrist")]] = 0
    return points


def tracker() -> System:
    """Half of what it says is what it said before."""
    last: list[Points] = []

    def smooth(points: Points, pixels: Pixels) -> Points:
        last.append(0.5 * points + 0.5 * last[-1] if last else points)
        return last[-1]

    return seeing(smooth)


def frozen() -> System:
    """Answers each second image with the first one's answer."""
    count = [0]
    kept: list[Poses] = []

    def answer(pixels: Pixels) -> Poses:
        count[0] += 1
        if count[0] % 2 or not kept:
            kept[:] = [poses(see(pixels))]
        return kept[0]

    return single(answer)


HANDS = Skeleton.from_dict(
    {
        "name": "two-hands",
        "landmarks": ["left_hand.a", "left_hand.b", "right_hand.a", "right_hand.b"],
        "lengths": [["left_hand.a", "left_hand.b"], ["right_hand.a", "right_hand.b"]],
        "pairs": [["left_hand.a", "right_hand.a"], ["left_hand.b", "right_hand.b"]],
    }
)


def hand(*, sided: bool) -> System:
    """One hand, a left one; in a mirror it is a right one, or still called a left one."""

    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        if points is None:
            return poses(None, skeleton=HANDS)
        middle = pixels[pixels.shape[0] // 2]
        side = "right" if middle[0, 0] > middle[-1, 0] else "left"  # the ground is brighter at the right
        made = np.full((4, 2), np.nan)
        made[[2, 3] if sided and side == "right" else [0, 1]] = points[
            [COCO.index(f"{side}_{n}") for n in ("wrist", "elbow")]
        ]
        return poses(made, skeleton=HANDS)

    return single(answer)


def labelled(answer: Callable[[Pixels], Any]) -> System:
    return single(answer, "labels")


def mapped(change: Callable[[np.ndarray, Pixels], np.ndarray]) -> System:
    names = ("ground", "red", "blue")
    return single(
        lambda pixels: Segmentation.from_classes(np.ascontiguousarray(change(p.cells(pixels), pixels)), names),
        "segmentation",
    )


def square(cells: np.ndarray, pixels: Pixels) -> np.ndarray:
    height, width = cells.shape
    side = max(cells.shape)
    whole = np.zeros((side, side), np.uint8)
    whole[(side - height) // 2 :][:height, (side - width) // 2 :][:, :width] = cells
    return whole


def walker(answer: Callable[[Scene, np.random.Generator], Any], **more: Any) -> System:
    def predict(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[Any]:
        return [answer(scene, np.random.default_rng(seed)) for scene, seed in zip(inputs, seeds, strict=True)]

    return System("walker", "forecast", predict, "0", **{"deterministic": False, "takes": "scene", **more})


def ahead(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """Straight on, with a little chance."""
    step = scene.past[-1] - scene.past[-2]
    steps = np.arange(1, scene.steps + 1)[:, None]
    return np.asarray(scene.past[-1] + steps * (step + rng.normal(0, 0.1, (20, 1, 2))))


def stopped(scene: Scene, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Straight on, and no further than the first wall."""
    futures = ahead(scene, rng)
    for future in futures:
        for number in range(1, len(future)):
            x, y = (int(v) for v in future[number].clip(0, np.array(classes.shape[::-1]) - 1))
            if classes[y, x] == 2:
                future[number:] = future[number - 1]
                break
    return futures


def spread(scene: Scene, classes: np.ndarray, rng: np.random.Generator) -> Forecast:
    """Straight on through every wall, with a probability map that has next to nothing in them."""
    futures = ahead(scene, rng)
    rows, columns = np.mgrid[: scene.classes.shape[0], : scene.classes.shape[1]] + 0.5
    apart = [(columns - x) ** 2 + (rows - y) ** 2 for x, y in futures.mean(0)]
    near = np.sum([np.exp(-each / 72) for each in apart], axis=0)
    walls = np.zeros(near.shape, bool)
    height, width = (min(sizes) for sizes in zip(near.shape, classes.shape, strict=True))
    walls[:height, :width] = classes[:height, :width] == 2
    return Forecast.from_array(futures, np.where(walls, 0.001, 1) * near + 1e-12)


def reread(scene: Scene, rng: np.random.Generator, change: Callable[[Points], Points]) -> Forecast:
    """Straight on, with a probability map whose cells were changed on the way."""
    made = spread(scene, scene.classes, rng)
    assert made.cells is not None
    return Forecast.from_array(made.futures, change(made.cells))


def around(scene: Scene, rng: np.random.Generator, middle: Points) -> Forecast:
    """Straight on, with a probability map of the place around somebody that lies around `middle`."""
    x, y = (round(at) for at in scene.position)
    cells = spread(scene, scene.classes, rng).cells
    assert cells is not None
    near = np.pad(cells, 60)[y : y + 120, x : x + 120]
    return Forecast.from_array(ahead(scene, rng), near, box=(*(middle - 60), *(middle + 60)))


def forked(scene: Scene, rng: np.random.Generator) -> Forecast:
    """To the left or to the right, and a probability map of where these ways end: nobody walks between them."""
    futures = ahead(scene, rng)
    across = (futures - scene.position)[..., ::-1] * (1, -1)
    futures = futures + np.where(np.arange(20)[:, None, None] % 2, 1, -1) * across
    rows, columns = np.mgrid[: scene.classes.shape[0], : scene.classes.shape[1]] + 0.5
    near = np.sum([np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 72) for x, y in futures[:, -1]], axis=0)
    return Forecast.from_array(futures, near + 1e-12)


def free() -> np.random.Generator:
    return np.random.default_rng(1)


_free = free()
STREETS = [(f"street {number}", Image(p.street(number))) for number in range(4)]
SIZES = [(name, Image(image.pixels[: 90 - 8 * number])) for number, (name, image) in enumerate(STREETS)]
OF_RED = [
    (name, Image(np.clip(image.pixels * np.array([1.0, 1, 0.2]) + (60, 0, 0), 0, 255).astype(np.uint8)))
    for name, image in [(f"street {number}", Image(p.street(number))) for number in range(6)]
]
LANDSCAPE = [(f"wide {n}", painted(300 + 20 * n, 200, 0.02 * n)) for n in range(4)]
PORTRAIT = [(f"tall {n}", painted(200, 290 + 20 * n, 0.02 * n)) for n in range(4)]
MIXED = [one for pair in zip(LANDSCAPE, PORTRAIT, strict=True) for one in pair]
SCENES: list[tuple[str, Any]] = []
FINE = [(name, replace(scene, metres_per_pixel=0.02)) for name, scene in MADE]
UNSCALED = [(name, replace(scene, metres_per_pixel=None)) for name, scene in MADE]

WRONG: dict[str, tuple[Callable[[], System], Sequence[tuple[str, Any]], str, str]] = {
    # poses
    "shares of the image": (
        lambda: seeing(lambda at, i: at / size(i)), PHOTOS, "coordinates", "coordinates.normalised",
    ),
    "(y, x)": (lambda: seeing(lambda at, i: at[:, ::-1]), PHOTOS, "coordinates", "coordinates.exchanged"),
    "y from below": (
        lambda: seeing(lambda at, i: np.array([0, i.shape[0]]) + at * (1, -1)), PHOTOS, "coordinates",
        "coordinates.from_below",
    ),
    "boxes from the right": (
        lambda: boxes(lambda b, i: np.array([i.shape[1], 0, i.shape[1], 0]) + b[:, [2, 1, 0, 3]] * (-1, 1, -1, 1)),
        PHOTOS, "coordinates", "coordinates.from_the_right",
    ),
    "width for height": (
        lambda: seeing(lambda at, i: at / size(i) * size(i)[::-1]), PHOTOS, "coordinates", "coordinates.wrong_factors",
    ),
    "pixels of the model": (lambda: seeing(lambda at, i: at / size(i) * 192), PHOTOS, "scale", "scale.model_pixels"),
    "margins left on": (
        lambda: seeing(lambda at, i: at + margins(i, max(i.shape[:2]))), PHOTOS, "aspect", "aspect.margins",
    ),
    "shares of a letterbox": (
        lambda: seeing(lambda at, i: (at + margins(i, max(i.shape[:2]))) * size(i) / max(i.shape[:2])),
        PHOTOS, "aspect", "aspect.letterbox",
    ),
    "shares of a corner letterbox": (
        lambda: seeing(lambda at, i: at * size(i) / max(i.shape[:2])), PHOTOS, "aspect", "aspect.letterbox_corner",
    ),
    "places in a crop": (
        lambda: seeing(lambda at, i: at + margins(i, min(i.shape[:2]))), PHOTOS, "aspect", "aspect.crop",
    ),
    **{
        f"a letterbox that is never taken off, {name}": (
            lambda: seeing(letterboxed), images, "aspect", "aspect.letterbox",
        )
        for name, images in (("landscape", LANDSCAPE), ("portrait", PORTRAIT), ("mixed", MIXED))
    },
    "a letterbox that is never taken off, by a rough model": (
        lambda: seeing(lambda at, i: letterboxed(rough(small_person(at), i), i)), MIXED, "aspect", "aspect.letterbox",
    ),
    "a letterbox of another shape that is never taken off": (
        lambda: seeing(lambda at, i: letterboxed(at, i, (4, 3))), LANDSCAPE, "aspect", "aspect.scaled",
    ),
    "another place in a mirror": (lambda: seeing(beside_in_a_mirror), PHOTOS, "aspect", "aspect.mirrored"),
    "the viewer's sides": (lambda: seeing(lambda at, i: at[COCO.swap]), MANY, "left/right", "sides.swapped"),
    "30 px off": (lambda: seeing(lambda at, i: at + np.array([30, 0])), PHOTOS, "scale", "scale.offset"),
    "half a pixel": (lambda: seeing(lambda at, i: at - 0.5), PHOTOS, "scale", "scale.half_pixel"),
    "all in one place": (
        lambda: seeing(lambda at, i: np.tile(np.nanmean(at, axis=0), (17, 1))), PHOTOS, "extent", "extent.none",
    ),
    "zeros for not found": (lambda: seeing(zeros), PHOTOS, "extent", "extent.zero_landmarks"),
    "smoothed over time": (tracker, PHOTOS, "determinism", "determinism.remembers"),
    "smoothed, one photo": (tracker, PHOTOS[:1], "determinism", "determinism.remembers"),
    "every second image": (frozen, PHOTOS, "determinism", "determinism.differs"),
    "jitters": (
        lambda: seeing(lambda at, i: at + _free.normal(0, 1, at.shape)), PHOTOS, "determinism", "determinism.differs",
    ),
    "the same pose always": (
        lambda: single(lambda i: poses(see(PHOTOS[0][1].pixels))), PHOTOS, "looks", "looks.same",
    ),
    # hands
    "always a left hand": (lambda: hand(sided=False), MANY, "left/right", "sides.kept"),
    # detections
    "x, y, width, height": (
        lambda: boxes(lambda at, i: _wh(at)), PHOTOS, "answers", "answers.failed",
    ),
    "corners exchanged": (
        lambda: boxes(lambda at, i: at[:, [2, 3, 0, 1]]), PHOTOS, "answers", "answers.failed",
    ),
    "x, y, width, height of large boxes": (lambda: large(as_xywh), PHOTOS, "coordinates", "coordinates.xywh"),
    "middles and sizes of large boxes": (
        lambda: large(as_middle), PHOTOS, "coordinates", "coordinates.middle_and_size",
    ),
    "middles and sizes": (lambda: boxes(lambda at, i: _middles(at)), PHOTOS, "answers", "answers.failed"),
    "middles and sizes, with the size added to the middle": (
        lambda: boxes(lambda at, i: at + (at[:, 2:] - at[:, :2])[:, [0, 1, 0, 1]] / 2),
        PHOTOS, "coordinates", "coordinates.middle_for_corner",
    ),
    "corners and sizes, read as middles": (
        lambda: boxes(lambda at, i: at - (at[:, 2:] - at[:, :2])[:, [0, 1, 0, 1]] / 2),
        PHOTOS, "coordinates", "coordinates.corner_for_middle",
    ),
    "the whole frame always": (
        lambda: single(lambda i: Detections.from_xyxy([[0, 0, *size(i)]], ["dog"], [0.99]), "detections"),
        PHOTOS, "looks", "looks.same",
    ),
    "no NMS": (doubled, PHOTOS, "doubled", "doubled.often"),
    "one class too high": (lambda: of_people(twice), PHOTOS, "classes", "classes.one_too_high"),
    "logits": (
        lambda: single(lambda i: Detections.from_xyxy([[5, 5, 60, 60]], ["dog"], [float(i.mean()) / 30]), "detections"),
        PHOTOS, "scores", "scores.range",
    ),
    "sigmoid of a sigmoid": (lambda: scored(sigmoid), PHOTOS, "scores", "scores.double_sigmoid"),
    "boxes of zeros": (
        lambda: single(lambda i: Detections.from_xyxy([[0, 0, 0, 0], [5, 5, 50 + i[0, 0, 0] % 9, 60]], ["dog"] * 2),
                       "detections"),
        PHOTOS, "extent", "extent.zeros",
    ),
    # captions
    "one caption for all": (lambda: single(lambda i: "a man", "caption"), PHOTOS, "looks", "looks.same"),
    "captions by chance": (
        lambda: single(lambda i: f"{_free.integers(100)} men", "caption"), PHOTOS, "determinism", "determinism.differs",
    ),
    # labels
    "logits for probabilities": (
        lambda: labelled(lambda i: {"red": 3.2, "blue": -1.0}), STREETS, "answers", "answers.failed",
    ),
    "one class for all": (
        lambda: labelled(lambda i: {"red": 1.0}), STREETS, "looks", "looks.same",
    ),
    "softmax of probabilities": (lambda: labelled(flat), STREETS, "scores", "scores.flat"),
    "a classifier of BGR": (
        lambda: labelled(lambda i: {"street": 1 - i[..., 0].mean() / 400, "sea": 0.1}),
        OF_RED, "channels", "channels.bgr",
    ),
    "softmax of a softmax": (lambda: labelled(lambda i: softmax(sure(i))), STREETS, "scores", "scores.double_softmax"),
    "softmax of a softmax, the best five": (
        lambda: labelled(lambda i: Labels.from_scores(*zip(*softmax(sure(i)).items(), strict=True), top=5)),
        STREETS, "scores", "scores.double_softmax",
    ),
    "sigmoid of a sigmoid, tags": (
        lambda: labelled(lambda i: {n: sigmoid(s) for n, s in sure(i).items()}),
        STREETS, "scores", "scores.double_sigmoid",
    ),
    # segmentation
    "rows for columns": (lambda: mapped(lambda at, i: at.T), STREETS, "map", "map.transposed"),
    "upside down": (lambda: mapped(lambda at, i: at[::-1]), STREETS, "map", "map.upside_down"),
    "a padded square": (lambda: mapped(square), STREETS, "map", "map.letterbox"),
    "beside the image": (lambda: mapped(lambda at, i: np.roll(at, 6, 1)), STREETS, "map", "map.offset"),
    "ground everywhere": (lambda: mapped(lambda at, i: at * 0), STREETS, "looks", "looks.same"),
    "one map for images of any size": (
        lambda: mapped(lambda at, i: np.eye(64, dtype=np.uint8)), SIZES, "looks", "looks.same",
    ),
    # forecasts
    "seed not used": (lambda: walker(lambda s, rng: ahead(s, _free)), SCENES, "determinism", "determinism.seed_unused"),
    "whatever the seed": (
        lambda: walker(lambda s, rng: ahead(s, np.random.default_rng(0))),
        SCENES, "determinism", "determinism.seed_ignored",
    ),
    "past ignored": (
        lambda: walker(lambda s, rng: s.past[-1] + rng.normal(0, 1, (20, s.steps, 2)).cumsum(1)),
        SCENES, "past", "past.ignored",
    ),
    "map with rows for columns": (
        lambda: walker(lambda s, rng: stopped(s, np.ascontiguousarray(s.classes.T), rng)),
        SCENES, "map", "map.misread",
    ),
    "probability map with rows for columns": (
        lambda: walker(lambda s, rng: spread(s, np.ascontiguousarray(s.classes.T), rng)),
        SCENES, "map", "map.misread",
    ),
    "walls in no map": (
        lambda: walker(lambda s, rng: spread(s, s.classes * 0, rng)), SCENES, "map", "map.ignored",
    ),
    "cells of the answer with rows for columns": (
        lambda: walker(lambda s, rng: reread(s, rng, np.transpose)), SCENES, "probability", "probability.misread",
    ),
    "cells of the answer from below": (
        lambda: walker(lambda s, rng: reread(s, rng, np.flipud)), SCENES, "probability", "probability.misread",
    ),
    "cells of the answer from the right": (
        lambda: walker(lambda s, rng: reread(s, rng, np.fliplr)), SCENES, "probability", "probability.misread",
    ),
    "cells of the answer turned by half": (
        lambda: walker(lambda s, rng: reread(s, rng, lambda at: np.rot90(at, 2))),
        SCENES, "probability", "probability.misread",
    ),
    "cells of the answer turned by a quarter": (
        lambda: walker(lambda s, rng: reread(s, rng, np.rot90)), SCENES, "probability", "probability.misread",
    ),
    "a box around the person, given without the person": (
        lambda: walker(lambda s, rng: around(s, rng, np.zeros(2))), SCENES, "probability", "probability.elsewhere",
    ),
    "the same probability everywhere": (
        lambda: walker(lambda s, rng: reread(s, rng, np.ones_like)), SCENES, "probability", "probability.elsewhere",
    ),
    "displacements": (
        lambda: walker(lambda s, rng: ahead(s, rng) - s.past[-1]), SCENES, "coordinates", "coordinates.displacements",
    ),
    "shares of the map": (
        lambda: walker(lambda s, rng: ahead(s, rng) / s.size), SCENES, "coordinates", "coordinates.shares",
    ),
    "metres": (
        lambda: walker(lambda s, rng: ahead(s, rng) * s.metres_per_pixel), SCENES, "coordinates", "coordinates.metres",
    ),
    "metres of a fine map": (
        lambda: walker(lambda s, rng: ahead(s, rng) * s.metres_per_pixel),
        FINE, "coordinates", "coordinates.metres",
    ),
    "displacements in metres": (
        lambda: walker(lambda s, rng: (ahead(s, rng) - s.past[-1]) * s.metres_per_pixel),
        FINE, "coordinates", "coordinates.displacements_in_metres",
    ),
    "metres where nobody knows the scale": (
        lambda: walker(lambda s, rng: ahead(s, rng) * 0.3), UNSCALED, "coordinates", "coordinates.elsewhere",
    ),
    "futures as (y, x)": (
        lambda: walker(lambda s, rng: ahead(s, rng)[..., ::-1]), SCENES, "coordinates", "coordinates.exchanged",
    ),
    "through walls": (lambda: walker(ahead), SCENES, "map", "map.ignored"),
    "one future twenty times": (
        lambda: walker(lambda s, rng: np.tile(ahead(s, rng)[:1], (20, 1, 1))), SCENES, "samples", "samples.same",
    ),
}  # fmt: skip


def _wh(at: Points) -> Points:
    return np.concatenate([at[:, :2], at[:, 2:] - at[:, :2]], 1)


def _middles(at: Points) -> Points:
    return np.concatenate([(at[:, :2] + at[:, 2:]) / 2, at[:, 2:] - at[:, :2]], 1)


def flat(pixels: Pixels) -> dict[str, float]:
    """What a classifier says that takes the softmax of what are probabilities already: all classes are as good."""
    shares = {name: np.exp(score) for name, score in tagged(pixels).items()}
    return {name: share / sum(shares.values()) for name, share in shares.items()}


def as_xywh(box: Points) -> Points:
    return np.array([*box[:2], *(box[2:] - box[:2])])


def as_middle(box: Points) -> Points:
    return np.array([*(box[:2] + box[2:]) / 2, *(box[2:] - box[:2])])


def large(change: Callable[[Points], Points], **more: Any) -> System:
    """One box around everybody: it is larger than it is far from the corner."""

    def answer(pixels: Pixels) -> Detections:
        points = see(pixels)
        if points is None:
            return Detections.from_xyxy([], [])
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        return Detections.from_xyxy([change(np.array([*low, *high]))], ["person"], [0.9])

    return single(answer, "detections", **more)


FIGURES: dict[str, dict[str, Any]] = {
    "30 px off": {"x": pytest.approx(30), "y": 0},
    "half a pixel": {"x": pytest.approx(-0.5), "y": pytest.approx(-0.5)},
    "beside the image": {"pixels": pytest.approx(6)},
    "shares of a letterbox": {"readings": ["aspect.letterbox"]},
    "always a left hand": {"exchanged": 0, "kept": 6},
    "the viewer's sides": {"exchanged": 6, "kept": 0, "facing": 0, "upright": 6},
    "a classifier of BGR": {"images": 6, "needed": 5},
    "sigmoid of a sigmoid, tags": {"scores": 40, "images": 4},
    "map with rows for columns": {"reading": "with rows for columns"},
    "cells of the answer with rows for columns": {"reading": "with rows for columns"},
    "cells of the answer from below": {"reading": "upside down"},
    "cells of the answer from the right": {"reading": "in a mirror"},
    "cells of the answer turned by half": {"reading": "turned by half"},
    "cells of the answer turned by a quarter": {"reading": "turned by a quarter to the right"},
    "metres": {"read": pytest.approx(1, abs=0.05)},
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_said(name: str) -> None:
    make, inputs, where, code = WRONG[name]
    findings = {one.name: one for one in check_system(make(), inputs)[0]}
    assert findings[where].state in ("warning", "problem"), findings[where]
    assert findings[where].code == code, findings[where]
    wanted = FIGURES.get(name, {})
    assert {key: findings[where].figures[key] for key in wanted} == wanted
    json.dumps([one.figures for one in findings.values()], allow_nan=False)
    if name == "the whole frame always":
        assert findings["aspect"].code == "aspect.skipped", "a box that ends at the frame, of 0.99"
    if name == "ground everywhere":
        assert findings["map"].state == "skipped", "one class alone may lie anywhere"


def test_a_mirror_that_fails_is_named() -> None:
    """Other changed images are followed, and the figures say by how much each is."""
    findings = {one.name: one for one in check_system(seeing(beside_in_a_mirror), PHOTOS)[0]}
    figures = findings["aspect"].figures
    assert figures["errors"] == {
        "mirrored": pytest.approx(40 / 240, abs=0.02), "squeezed": pytest.approx(0, abs=0.02),
        "padded": pytest.approx(0, abs=0.02),
    }  # fmt: skip
    assert figures["worst"] == {"image": "other", "probe": "mirrored", "error": pytest.approx(40 / 230, abs=0.001)}
    assert "mirrored" in findings["aspect"].message and "squeezed or padded" not in findings["aspect"].message


def test_scales_are_measured_by_orientation() -> None:
    """A letterbox that stays on widens portraits and flattens landscapes, which cancel out in one figure."""
    (aspect,) = (one for one in check_system(seeing(letterboxed), MIXED)[0] if one.name == "aspect")
    padded = {
        fit["orientation"]: fit["scale"][0]
        for fit in aspect.figures["scales"]
        if fit["probe"] == "pad(0.3, left_right)"
    }
    assert padded["portrait"] > 1.1 and padded["landscape"] == pytest.approx(1, abs=0.02)
    (right,) = (one for one in check_system(seeing(lambda at, i: at), LANDSCAPE)[0] if one.name == "aspect")
    assert right.code == "aspect.ok" and right.figures["orientations"] == {"landscape": 4}
    assert all(scale == pytest.approx(1, abs=0.02) for fit in right.figures["scales"] for scale in fit["scale"])


def blurred_bgr(image: np.ndarray) -> dict[str, float]:
    return {"street": 1 - image[..., 0].mean() / 400, "sea": 0.1}


FEW: dict[str, tuple[Callable[[], System], Sequence[tuple[str, Any]], str, str, dict[str, Any]]] = {
    "BGR": (lambda: labelled(blurred_bgr), OF_RED[:4], "channels", "channels.few", {"images": 4, "needed": 5}),
    "BGR, and grey images": (
        lambda: labelled(blurred_bgr), [*OF_RED[:3], *((name, grey(image)) for name, image in OF_RED[3:])],
        "channels", "channels.few", {"images": 3},
    ),
    "two hands that stay left": (
        lambda: hand(sided=False), MANY[:2], "left/right", "sides.few", {"kept": 2, "missing": 3},
    ),
    "two hands with their side": (
        lambda: hand(sided=True), MANY[:2], "left/right", "sides.few", {"exchanged": 2, "missing": 3},
    ),
    "two people with the viewer's sides": (
        lambda: seeing(lambda at, i: at[COCO.swap]), MANY[:2], "left/right", "sides.few", {"missing": 3},
    ),
    "people of whom some are seen from behind": (
        lambda: seeing(lambda at, i: at[COCO.swap] if i.shape[1] != 180 else at),
        MANY, "left/right", "sides.maybe_swapped", {"facing": 1, "upright": 6},
    ),
    "two scores of a sigmoid of a sigmoid": (
        lambda: single(
            lambda i: Detections.from_xyxy([[5, 5, 60, 60]], ["dog"], [0.5 + i.mean() % 8 / 40]), "detections"
        ),
        PHOTOS, "scores", "scores.double_sigmoid", {"scores": 3},
    ),
    "two answers of a softmax of a softmax": (
        lambda: labelled(lambda i: softmax(sure(i))), STREETS[:2], "scores", "scores.double_softmax", {"images": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FEW)
def test_few_images_accuse_nobody(name: str) -> None:
    make, inputs, where, code, figures = FEW[name]
    (finding,) = (one for one in check_system(make(), inputs)[0] if one.name == where)
    assert (finding.state, finding.code) == ("unsure", code), finding
    assert {key: finding.figures[key] for key in figures} == figures


def test_a_probability_map_of_ways_that_part_is_right() -> None:
    findings = {one.name: one for one in check_system(walker(forked), SCENES)[0]}
    assert findings["probability"].state == "ok"


def test_a_probability_map_is_not_blamed_for_futures_that_are_exchanged() -> None:
    def exchanged(scene: Scene, rng: np.random.Generator) -> Forecast:
        made = spread(scene, scene.classes, rng)
        return Forecast.from_array(made.futures[..., ::-1], made.cells)

    findings = {one.name: one for one in check_system(walker(exchanged), SCENES)[0]}
    assert findings["coordinates"].code == "coordinates.exchanged"
    assert findings["probability"].state == "skipped"


# --- flawless ---------------------------------------------------------------------------------------


def amodal(marks: Points, pixels: Pixels) -> Points:
    """Boxes that go on beyond the frame."""
    marks[:1, 1] -= 80
    marks[-1:, 3] += 80
    return marks


_order = np.random.default_rng(2)


def in_any_order() -> System:
    def answer(pixels: Pixels) -> Detections:
        marks = [(x, y, name) for name, spots in blobs(pixels).items() for x, y in spots]
        marks = [marks[place] for place in _order.permutation(len(marks))]
        corners = np.array([[x - 9, y - 9, x + 9, y + 9] for x, y, _ in marks]).reshape(-1, 4)
        scores = [0.5 + 0.4 * (n == "nose") for *_, n in marks]
        return Detections.from_xyxy(corners * 1.0, [n for *_, n in marks], scores)

    return single(answer, "detections")


def with_ghosts() -> System:
    """Of low score, anywhere."""

    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        if points is None:
            return poses(None)
        rng = np.random.default_rng(int(pixels.sum()))
        ghosts = rng.uniform(0, size(pixels), (4, 17, 2))
        return poses(np.concatenate([points[None], ghosts]), scores=[0.9, 0.1, 0.08, 0.05, 0.02])

    return single(answer)


def leaves_out(points: Points, pixels: Pixels) -> Points:
    """What it cannot see is absent."""
    points[[COCO.index("left_ear"), COCO.index("right_ear"), COCO.index("left_knee"), COCO.index("right_knee")]] = (
        np.nan
    )
    return points


def seeded(pixels: Image, seed: int) -> Poses:
    points = see(pixels.pixels)
    return poses(None if points is None else points + np.random.default_rng(seed).normal(0, 0.3, points.shape))


def stochastic() -> System:
    return System(
        "seeded", "poses", lambda images, seeds: [seeded(*each) for each in zip(images, seeds, strict=True)], "0",
        deterministic=False,
    )  # fmt: skip


def rough(points: Points, pixels: Pixels) -> Points:
    """Two pixels of noise that hangs on the image."""
    return points + np.random.default_rng(int(pixels.sum())).normal(0, 2, points.shape)


def tagged(pixels: Pixels) -> dict[str, float]:
    scores = {"red": float((p.cells(pixels) == 1).mean()), "blue": float((p.cells(pixels) == 2).mean()), "grey": 0.01}
    return {name: scores[name] for name in _order.permutation(list(scores))}


def small(cells: np.ndarray, pixels: Pixels) -> np.ndarray:
    """Blue is what is found, and of it one cell."""
    found = np.zeros_like(cells)
    places = np.argwhere(cells == 2)
    if len(places):
        found[tuple(places[0])] = 2
    return found


EMPTY = Image(np.full((200, 200, 3), 90, np.uint8))
FLAWLESS: dict[str, tuple[Callable[[], System], Sequence[tuple[str, Any]]]] = {
    "a pose estimator": (lambda: seeing(lambda at, i: at), PHOTOS),
    "a detector": (lambda: boxes(lambda at, i: at), PHOTOS),
    "places in whole pixels": (lambda: seeing(lambda at, i: np.floor(at) + 0.5), MIXED),
    "boxes in whole pixels": (lambda: boxes(lambda at, i: np.round(at)), MIXED),
    "photos of two shapes": (lambda: seeing(lambda at, i: at), MIXED),
    "a square model whose margins are taken off": (lambda: seeing(into_a_square), MIXED),
    "a rough model of small people": (lambda: seeing(lambda at, i: rough(small_person(at), i)), MIXED),
    "scores of one sigmoid": (lambda: scored(lambda score: score), PHOTOS),
    "a classifier that is sure": (lambda: labelled(sure), STREETS),
    "a classifier that knows nothing of noise": (lambda: labelled(unsure_of_noise), STREETS),
    "two classes that are about as likely": (
        lambda: labelled(lambda i: {"day": 0.5 + i.mean() % 8 / 60, "night": 0.5 - i.mean() % 8 / 60}), STREETS,
    ),
    "a person seen from behind": (lambda: seeing(lambda at, i: at[COCO.swap] if i.shape[1] == 180 else at), MANY),
    "boxes beyond the frame": (lambda: boxes(amodal), PHOTOS),
    "boxes cut at the frame": (
        lambda: boxes(lambda at, i: np.clip(amodal(at, i), 0, np.tile(size(i), 2))), PHOTOS,
    ),
    "boxes in any order": (in_any_order, PHOTOS),
    "ghosts of low score": (with_ghosts, PHOTOS),
    "silent where nobody is": (lambda: seeing(lambda at, i: at), [*PHOTOS, ("empty", EMPTY)]),
    "leaves out what is covered": (lambda: seeing(leaves_out), PHOTOS),
    "stochastic and seeded": (stochastic, PHOTOS),
    "a little noise": (lambda: seeing(rough), PHOTOS),
    "a hand with its side": (lambda: hand(sided=True), PHOTOS),
    "a captioner": (lambda: single(lambda i: f"{len(blobs(i)['nose'])} people, {i.mean():.0f}", "caption"), PHOTOS),
    "classes in any order": (lambda: labelled(tagged), STREETS),
    "a class map": (lambda: mapped(lambda at, i: at), STREETS),
    "a coarse class map": (lambda: mapped(lambda at, i: at[2::5, 2::5]), STREETS),
    "a class map, images of different sizes": (lambda: mapped(lambda at, i: at), SIZES),
    "a map of something small": (lambda: mapped(small), SIZES),
    "tags that are all sure": (lambda: labelled(lambda i: {n: 0.9 + s / 9 for n, s in tagged(i).items()}), STREETS),
    "tags without scores": (
        lambda: labelled(lambda i: dict.fromkeys([*sorted(tagged(i)), f"brightness {i.mean():.1f}"], 1.0)), STREETS,
    ),
    "a probability map that sees walls": (lambda: walker(lambda s, rng: spread(s, s.classes, rng)), SCENES),
    "a probability map around the person": (lambda: walker(lambda s, rng: around(s, rng, s.position)), SCENES),
    "a coarse probability map": (lambda: walker(lambda s, rng: reread(s, rng, lambda at: at[2::5, 2::5])), SCENES),
    "a walker who sees walls": (lambda: walker(lambda s, rng: stopped(s, s.classes, rng)), SCENES),
    "one walker without chance": (
        lambda: walker(
            lambda s, rng: Forecast.from_array(stopped(s, s.classes, np.random.default_rng(0))[:1]), deterministic=True
        ),
        SCENES,
    ),
    "a walker with much chance": (
        lambda: walker(lambda s, rng: stopped(s, s.classes, rng) + rng.normal(0, 9, (1, 1, 2)).clip(-9, 9)), SCENES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAWLESS)
def test_nothing_bad_is_said(name: str) -> None:
    make, inputs = FLAWLESS[name]
    findings, _ = check_system(make(), inputs)
    assert not [one for one in findings if one.state in ("warning", "problem")]
    if inputs is SCENES:
        assert not [one for one in findings if "image" in one.message], "it takes scenes"


@pytest.mark.parametrize("name", ["efficientdet-lite0", "mediapipe-holistic"])
def test_nothing_bad_is_said_of_a_real_model(name: str) -> None:
    from instar.datasets import dataset
    from instar.image import read_image

    system = loaded_system(name)
    photos = [(case.id, read_image(str(case.path))) for case in dataset("sample-photos").cases()]
    findings, _ = check_system(system, photos[:2])
    assert not [one for one in findings if one.state in ("warning", "problem")]


def test_images_that_are_made_here_are_counted_for_themselves() -> None:
    """Of eight images that were asked, eleven had the same answer."""
    make, images, *_ = WRONG["one caption for all"]
    (looks,) = (one for one in check_system(make(), images)[0] if one.name == "looks")
    assert looks.figures == {"images": len(images), "made": 3}


def test_futures_that_stand_there_several_times_are_counted_once() -> None:
    """As of a predictor of few paths, each repeated by its probability."""

    def modes(scene: Scene, rng: np.random.Generator) -> np.ndarray:
        steps = np.arange(1, scene.steps + 1)[:, None]
        ahead = scene.past[-1] + steps * (scene.past[-1] - scene.past[-2])
        return np.stack([ahead + shift * steps for shift in (0.0, 0.0, 0.0, 0.4, 0.4)])

    (samples,) = (one for one in check_system(walker(modes), SCENES)[0] if one.name == "samples")
    assert (samples.state, samples.figures["different"], samples.figures["futures"]) == ("ok", 2, 5)
