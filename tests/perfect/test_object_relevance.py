"""Detectors whose answers are known: one that looks at the object, one that looks at the background, and faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.detections import Detections
from instar.tasks.object_relevance.analysis import object_table
from tests.toys import COLOURS

SIZE = (96, 72)
PATCH = {"red": 12, "green": 20, "blue": 28}
"""Objects are squares of one colour; their class has its own side, so that boxes tell them apart."""


def picture(seed: int) -> tuple[Image, Detections]:
    """Three squares on a ground of the class's own grey, which is what a bad detector looks at."""
    rng = np.random.default_rng(seed)
    pixels = np.full((SIZE[1], SIZE[0], 3), 128, np.uint8)
    boxes = []
    for number, (name, side) in enumerate(PATCH.items()):
        x, y = 32 * number + int(rng.integers(0, 32 - side + 1)), int(rng.integers(0, SIZE[1] - side + 1))
        pixels[y : y + side, x : x + side] = COLOURS[name]
        boxes.append([x, y, x + side, y + side])
    return Image(pixels), Detections.from_xyxy(boxes, list(PATCH), ids=[f"{seed}-{name}" for name in PATCH])


def data(count: int = 4, *, annotated: bool = True) -> Dataset:
    pairs = [picture(seed) for seed in range(count)]
    cases = [
        Case(str(seed), input=image, truth=truth if annotated else None) for seed, (image, truth) in enumerate(pairs)
    ]
    return Dataset("squares", "", lambda: iter(cases), truth="detections" if annotated else None)


TRUTHS = [picture(seed)[1] for seed in range(4)]


def intact(pixels: np.ndarray, truth: Detections) -> np.ndarray:
    """The share of each object's pixels that are near its colour: noise of σ = 16 leaves them so."""
    shares = []
    for box, label in zip(truth.boxes.astype(int), truth.labels, strict=True):
        part = pixels[box[1] : box[3], box[0] : box[2]].astype(int)
        shares.append((np.abs(part - COLOURS[label]).max(-1) < 75).mean())
    return np.array(shares)


def seen(pixels: np.ndarray, least: float = 0.5) -> Detections:
    """Finds an object iff at least half of it is intact. It knows where to look: the picture's own objects."""
    best = max(TRUTHS, key=lambda truth: intact(pixels, truth).sum())
    kept = np.flatnonzero(intact(pixels, best) >= least)
    return Detections.from_xyxy(best.boxes[kept], [best.labels[i] for i in kept], np.full(len(kept), 0.9))


BACKGROUNDS = {seed: picture(seed)[0] for seed in range(4)}


def background_only(pixels: np.ndarray) -> Detections:
    """Names the objects by what is around them, whatever became of them."""

    def agreeing(seed: int) -> float:
        ground = BACKGROUNDS[seed].pixels
        outside = np.ones(ground.shape[:2], bool)
        for x0, y0, x1, y1 in TRUTHS[seed].boxes.astype(int):
            outside[y0:y1, x0:x1] = False
        return float((pixels[outside] == ground[outside]).mean())

    truth = TRUTHS[max(BACKGROUNDS, key=agreeing)]
    return Detections.from_xyxy(truth.boxes, truth.labels, np.full(3, 0.9))


def ran(
    system: Callable[[np.ndarray], Detections], folder: Path, suite: str = "object-relevance", **options: bool
) -> instar.Run:
    return instar.run(system, suite, data(**options), out=folder, workers=0)


def rates(run: instar.Run) -> dict[str, tuple[int, int]]:
    table = run.rates(by="target")
    return {
        rule.partition(" => ")[0]: (violated, judged)
        for rule, violated, judged in table.select("rule", "violated", "judged").iter_rows()
    }


def test_a_detector_that_looks_at_the_object_breaks_nothing(tmp_path: Path) -> None:
    run = ran(seen, tmp_path)
    shapes = rates(run)
    assert all(violated == 0 for violated, _ in shapes.values())
    assert shapes["erase(0.9)"] == shapes["erase(1)"] == (0, 12)
    assert shapes["erase(0.5)"] == (0, 0), "a small hole proves nothing"
    assert all(judged == 12 for name, (_, judged) in shapes.items() if "noise" in name)
    curve = run.verdicts().filter(pl.col("rule").str.starts_with("erase")).group_by("rule").agg(pl.col("found").mean())
    share = {float(rule.partition(")")[0][6:]): shapes for rule, shapes in curve.iter_rows()}
    assert [share[ratio] for ratio in (0.1, 0.2, 0.3, 0.4)] == [1, 1, 1, 1]
    assert [share[ratio] for ratio in (0.6, 0.7, 0.8, 0.9, 1.0)] == [0, 0, 0, 0, 0], "it steps at one half"


def test_a_detector_that_looks_at_the_background_keeps_what_was_erased(tmp_path: Path) -> None:
    run = ran(background_only, tmp_path, "object-relevance/erase")
    shapes = rates(run)
    assert shapes["erase(0.9)"] == shapes["erase(1)"] == (12, 12)
    assert set(run.verdicts().filter(pl.col("severity") > 0)["kind"]) == {"persists"}
    paper = ran(background_only, tmp_path / "paper", "erase(0.1) => presence(gone, least=0, unfound=count, draws=1)")
    assert rates(paper)["erase(0.1)"] == (12, 12), "as published, every ratio is judged"


def neighbourly(pixels: np.ndarray) -> Detections:
    """Finds every object as long as one of them is there."""
    truth = max(TRUTHS, key=lambda one: intact(pixels, one).sum())
    whole = intact(pixels, truth).max() >= 0.5
    return Detections.from_xyxy(truth.boxes[: 3 * whole], truth.labels[: 3 * whole], np.full(3 * whole, 0.9))


def test_one_follow_up_per_object_shows_what_hangs_on_its_neighbours(tmp_path: Path) -> None:
    together = rates(ran(neighbourly, tmp_path / "all", "erase(1) => presence(gone)"))
    assert together["erase(1)"] == (0, 12), "with all objects gone nothing is found: it looks right"
    run = ran(neighbourly, tmp_path / "each", "object-relevance/each")
    table = {
        row["rule"].partition(" => ")[0]: row
        for row in object_table(run).iter_rows(named=True)
        if "others" not in row["rule"]
    }
    assert (table["erase(1, each object)"]["objects"], table["erase(1, each object)"]["persists"]) == (12, 12)
    assert table["object_noise(0.9, 16, each object)"]["missing"] == 0
    verdicts = run.verdicts().filter(pl.col("rule") == "erase(1, only=1) => presence(gone)")
    assert verdicts["target"].to_list() == [f"{seed}-green" for seed in range(4)]
    beyond = run.verdicts().filter(pl.col("rule") == "erase(1, only=7) => presence(gone)")
    assert set(beyond["reason"]) == {"there is no 8th object in this image: it has 3"}


def only_with_all(pixels: np.ndarray) -> Detections:
    """Right about each object by itself, but gives up where one of the others is missing."""
    shapes = seen(pixels)
    return shapes if len(shapes) == 3 else Detections.from_xyxy(np.zeros((0, 4)), [])


def test_the_others_stay_when_one_object_is_erased(tmp_path: Path) -> None:
    rules = " + ".join(f"erase(1, only={number}) => presence(others)" for number in range(3))
    assert rates(ran(seen, tmp_path / "right", rules)) == {f"erase(1, only={n})": (0, 8) for n in range(3)}
    run = ran(only_with_all, tmp_path / "wrong", rules)
    assert rates(run) == {f"erase(1, only={n})": (8, 8) for n in range(3)}
    assert set(run.verdicts()["kind"]) == {"missing"}
    whole = ran(only_with_all, tmp_path / "all", "erase(1) => presence(others)").verdicts()
    assert set(whole["reason"]) == {"every object was changed, so there are no others"}


def test_an_image_whose_only_object_is_erased_says_that_there_are_no_others(tmp_path: Path) -> None:
    image, truth = picture(0)
    case = Case("0", input=image, truth=Detections.from_xyxy(truth.boxes[:1], truth.labels[:1], ids=["0-red"]))
    data = Dataset("squares", "", lambda: iter([case]), truth="detections")
    run = instar.run(seen, "erase(1, only=0) => presence(others)", data, out=tmp_path, workers=0)
    (row,) = run.verdicts().iter_rows(named=True)
    assert (row["target"], row["severity"], row["status"]) == ("whole", None, "not applicable")
    assert row["reason"] == "the object that was changed is the only one in this image, so there are no others"


def test_an_object_that_the_erased_one_covers_is_not_asked_about(tmp_path: Path) -> None:
    image, truth = picture(0)
    near = Detections.from_xyxy(
        [*truth.boxes, truth.boxes[2] + [4, 4, 4, 4]], [*truth.labels, "blue"], ids=[*truth.ids, "shadow"]
    )
    case = Case("0", input=image, truth=near)
    data = Dataset("squares", "", lambda: iter([case]), truth="detections")

    def seeing_both(pixels: np.ndarray) -> Detections:
        found = seen(pixels)
        return Detections.from_xyxy([*found.boxes, near.boxes[3]], [*found.labels, "blue"], [*found.scores, 0.9])

    run = instar.run(seeing_both, "erase(1, only=2) => presence(others)", data, out=tmp_path, workers=0)
    row = run.verdicts().filter(target="shadow").row(0, named=True)
    assert row["severity"] is None and "covers 73 % of this one" in row["reason"]


FLOCK = ((16.0, 20.0, 56.0, 56.0), (34.0, 20.0, 74.0, 56.0))
"""Two sheep, one before the other: their boxes overlap by 0.38 (IoU)."""


def flock(*, masks: bool = False) -> Dataset:
    pixels = np.full((SIZE[1], SIZE[0], 3), 128, np.uint8)
    shown = np.zeros((2, SIZE[1], SIZE[0]), bool)
    shown[0, 20:56, 16:40], shown[1, 20:56, 40:74] = True, True
    pixels[shown[0]], pixels[shown[1]] = COLOURS["red"], COLOURS["green"]
    truth = Detections.from_xyxy(FLOCK, ["sheep"] * 2, ids=["front", "back"], masks=shown if masks else None)
    case = Case("0", input=Image(pixels), truth=truth)
    return Dataset("flock", "", lambda: iter([case]), truth="detections")


def shepherd(pixels: np.ndarray, *, forgetful: bool = False) -> Detections:
    """Finds each sheep by its own colour, a pixel off, and reports no masks. It may lose the first one in noise."""
    sheep = []
    for number, colour in enumerate(("red", "green")):
        own = np.abs(pixels.astype(int) - COLOURS[colour]).max(-1) < 75
        noisy = (pixels[:8] != 128).any()
        if own.sum() > 200 and not (number == 0 and noisy and forgetful):
            sheep.append(np.array(FLOCK[number]) + 1)
    return Detections.from_xyxy(np.reshape(sheep, (-1, 4)), ["sheep"] * len(sheep), np.full(len(sheep), 0.9))


@pytest.mark.parametrize("masks", [False, True])
def test_a_neighbour_s_detection_is_not_that_of_the_erased_sheep(masks: bool, tmp_path: Path) -> None:
    by = ", by=mask" if masks else ""
    rules = [f"erase(1, only={n}{by}) => presence({effect})" for n in (0, 1) for effect in ("gone", "others")]
    run = instar.run(shepherd, " + ".join(rules), flock(masks=masks), out=tmp_path / "run", workers=0)
    gone = run.verdicts().filter(pl.col("rule").str.contains("gone"))
    assert gone.sort("target").select("target", "severity").rows() == [("back", 0.0), ("front", 0.0)]
    assert run.verdicts().filter(pl.col("severity") > 0).is_empty()
    shared = [spelled.replace("gone", "gone, shared=true") for spelled in rules if "gone" in spelled]
    paper = instar.run(shepherd, " + ".join(shared), flock(masks=masks), out=tmp_path / "paper", workers=0)
    assert set(paper.verdicts()["kind"]) == {"persists"}, "as published, any detection that overlaps it counts"


def test_a_neighbour_s_detection_does_not_hide_a_lost_sheep(tmp_path: Path) -> None:
    def losing(pixels: np.ndarray) -> Detections:
        return shepherd(pixels, forgetful=True)

    rule = "background_noise(16) => presence(kept)"
    run = instar.run(losing, rule, flock(), out=tmp_path / "run", workers=0)
    assert run.verdicts().sort("target").select("target", "kind").rows() == [("back", None), ("front", "missing")]
    right = instar.run(shepherd, rule, flock(), out=tmp_path / "right", workers=0)
    assert set(right.verdicts()["severity"]) == {0.0}


def test_a_detection_of_two_sheep_at_once_accuses_of_neither(tmp_path: Path) -> None:
    """What suppression leaves of two overlapping objects wobbles between them, or splits."""
    chance = np.random.default_rng(0)
    between = np.mean(FLOCK, 0)

    def merging(pixels: np.ndarray) -> Detections:
        source = (pixels[:8] == 128).all()
        boxes = [between + chance.uniform(-2, 2, 4)] if source or chance.random() < 0.5 else FLOCK
        return Detections.from_xyxy(boxes, ["sheep"] * len(boxes), np.full(len(boxes), 0.9))

    run = instar.run(merging, "noise(2) => presence(kept, draws=40)", flock(), out=tmp_path, workers=0)
    assert run.verdicts()["found_source"].sum() == 1
    assert run.verdicts().filter(pl.col("severity") > 0).is_empty()


def test_as_published_an_answer_that_stays_the_same_breaks_the_first_relation(tmp_path: Path) -> None:
    def nothing(pixels: np.ndarray) -> Detections:
        return Detections.from_xyxy(np.zeros((0, 4)), [])

    run = ran(nothing, tmp_path, "object-relevance@paper")
    assert rates(run)["erase(0.1)"] == (12, 12), "not found twice is the same answer twice"
    assert set(run.verdicts().filter(pl.col("severity") > 0)["kind"]) == {"unfound"}
    row = object_table(run).filter(pl.col("rule").str.starts_with("erase(0.5)")).row(0, named=True)
    assert (row["unfound"], row["images_unfound"], row["of_annotated"], row["of_found"]) == (12, 4, 1.0, None)


def test_objects_are_found_by_their_masks_where_both_have_them(tmp_path: Path) -> None:
    """The upper left triangle is annotated and the lower right one is found: the boxes are the same."""
    whole = np.zeros((SIZE[1], SIZE[0]), bool)
    whole[10:42, 10:42] = True
    upper = whole & (np.add.outer(np.arange(SIZE[1]), np.arange(SIZE[0])) < 50)
    image, box = Image(np.zeros((SIZE[1], SIZE[0], 3), np.uint8)), [[10, 10, 42, 42]]
    case = Case("0", input=image, truth=Detections.from_xyxy(box, ["a"], ids=["1"], masks=upper[None]))
    data = Dataset("triangle", "", lambda: iter([case]), truth="detections")
    shapes = {}
    for name, masks in (("same", upper[None]), ("other", (whole & ~upper)[None]), ("none", None)):

        def answering(pixels: np.ndarray, masks: np.ndarray | None = masks) -> Detections:
            return Detections.from_xyxy(box, ["a"], [0.9], masks=masks)

        run = instar.run(answering, "identity => presence(kept)", data, out=tmp_path / name, workers=0)
        shapes[name] = run.verdicts()["found_source"].item()
    assert shapes == {"same": True, "other": False, "none": True}


def test_scores_on_the_edge_are_neither_lost_nor_found(tmp_path: Path) -> None:
    turns = iter(range(10_000))

    def wobbling(pixels: np.ndarray) -> Detections:
        shapes = seen(pixels)
        return Detections.from_xyxy(shapes.boxes, shapes.labels, np.full(len(shapes), 0.6 if next(turns) % 2 else 0.4))

    run = ran(wobbling, tmp_path, "object-relevance/background")
    assert all(violated == 0 for violated, _ in rates(run).values())
    strict = run.rates(judging=run.judge(margin=0.0), by="target")
    assert strict["violated"].sum() > 0
    assert run.verdicts()["score"].is_between(0.39, 0.61).all()


def test_the_votes_of_three_follow_ups(tmp_path: Path) -> None:
    turns = iter(range(10_000))

    def moody(pixels: np.ndarray) -> Detections:
        shapes = seen(pixels)
        if next(turns) % 4 == 1:  # in order: the source, then three draws of each rule; one draw of three is wrong
            return Detections.from_xyxy(np.zeros((0, 4)), [])
        return shapes

    run = ran(moody, tmp_path, "object_noise(0.5, 16) => presence(kept)")
    severities = run.verdicts()["severity"]
    assert set(severities.round(3)) == {0.333}
    assert run.rates()["violated"].item() == 0
    assert run.rates(1 / 3)["violated"].item() == 4
    assert set(run.verdicts()["kind"]) == {"missing"}


FAULTS: dict[str, tuple[Callable[[np.ndarray], Detections], str]] = {}


def fault(kind: str) -> Callable[[Callable[[np.ndarray], Detections]], Callable[[np.ndarray], Detections]]:
    def register(function: Callable[[np.ndarray], Detections]) -> Callable[[np.ndarray], Detections]:
        FAULTS[function.__name__] = function, kind
        return function

    return register


def changed(pixels: np.ndarray) -> bool:
    """Whether the background has noise on it."""
    return bool((pixels == 128).all(-1).mean() < 0.3)


@fault("missing")
def class_swap(pixels: np.ndarray) -> Detections:
    shapes = seen(pixels)
    swapped = {"red": "green", "green": "red"} if changed(pixels) else {}
    return Detections.from_xyxy(shapes.boxes, [swapped.get(label, label) for label in shapes.labels], shapes.scores)


@fault("missing")
def box_offset(pixels: np.ndarray) -> Detections:
    shapes = seen(pixels)
    return Detections.from_xyxy(shapes.boxes + (15.0 if changed(pixels) else 0.0), shapes.labels, shapes.scores)


@fault("missing")
def background_shortcut(pixels: np.ndarray) -> Detections:
    return Detections.from_xyxy(np.zeros((0, 4)), []) if changed(pixels) else seen(pixels)


@fault("faint")
def unsure(pixels: np.ndarray) -> Detections:
    shapes = seen(pixels)
    return Detections.from_xyxy(shapes.boxes, shapes.labels, shapes.scores * (0.3 if changed(pixels) else 1.0))


@fault("incorrect")
def wakes_up(pixels: np.ndarray) -> Detections:
    return seen(pixels) if changed(pixels) else Detections.from_xyxy(np.zeros((0, 4)), [])


@pytest.mark.parametrize("name", list(FAULTS))
def test_seeded_faults_are_caught(name: str, tmp_path: Path) -> None:
    system, kind = FAULTS[name]
    run = ran(system, tmp_path, "background_noise(16) => presence(kept)")
    assert run.rates(by="target")["violated"].item() >= 4
    assert set(run.verdicts().filter(pl.col("severity") >= 2 / 3)["kind"]) == {kind}


def test_without_annotations_the_source_stands_in(tmp_path: Path) -> None:
    assert all(violated == 0 for violated, _ in rates(ran(seen, tmp_path / "a", annotated=False)).values())
    run = ran(background_only, tmp_path / "b", "erase(1) => presence(gone)", annotated=False)
    assert rates(run)["erase(1)"] == (12, 12)
    assert run.manifest.truth is None
