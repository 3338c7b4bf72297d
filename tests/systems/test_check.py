"""Each synthetic system has one defect, and the check that is there for it must find it."""

from __future__ import annotations

import colorsys
import io
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console

from instar.analysis import Answers
from instar.analysis.rates import Judged
from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.report.listings import show_findings
from instar.report.sentences import answers_findings
from instar.skeleton import Skeleton, skeleton, skeletons
from instar.spelling import UnknownName
from instar.systems.check import Finding, check_system, watched
from instar.systems.check.examination import described
from instar.systems.check.geometry import grows
from instar.systems.check.questions import _milliseconds
from instar.systems.check.readings import _scale
from instar.systems.system import MissingExtra, System

Pixels = npt.NDArray[np.uint8]
COCO = skeleton("coco-17")

# A figure that faces the viewer: its left is at the image's right. One hue for a landmark and its twin, so
# that which of two is left must be told from where they are, as in a person.
FIGURE = {
    "nose": (0.5, 0.14),
    "eye": (0.05, 0.10),
    "ear": (0.10, 0.13),
    "shoulder": (0.15, 0.28),
    "elbow": (0.24, 0.42),
    "wrist": (0.30, 0.55),
    "hip": (0.10, 0.58),
    "knee": (0.12, 0.75),
    "ankle": (0.14, 0.92),
}
HUES = {name: 10 + 40 * n for n, name in enumerate(FIGURE)}


def colour(hue: float) -> tuple[int, int, int]:
    return tuple(round(255 * c) for c in colorsys.hsv_to_rgb(hue / 360, 1, 1))  # type: ignore[return-value]


def painted(width: int, height: int, lean: float = 0.0) -> Image:
    pixels = np.full((height, width, 3), 90, np.uint8)
    pixels += (np.arange(width, dtype=np.uint8) // 16)[None, :, None]
    radius = max(3, height // 60)
    for name, (x, y) in FIGURE.items():
        places = [(x, y)] if name == "nose" else [(0.5 + x, y), (0.5 - x, y + 0.01)]
        for px, py in places:
            centre = round((px + lean * (1 - py)) * width), round(py * height)
            cv2.circle(pixels, centre, radius, colour(HUES[name]), -1)
    return Image(pixels)


PHOTOS = [("tall", painted(180, 240)), ("wide", painted(250, 200, lean=0.06)), ("other", painted(220, 230, -0.05))]


MANY = [*PHOTOS, *((f"more {n}", painted(200 + 10 * n, 240 - 10 * n, 0.03 * n - 0.03)) for n in range(3))]
"""As many as it takes to tell left from right, and RGB from BGR."""


_seen: dict[bytes, dict[str, list[tuple[float, float]]]] = {}


def blobs(pixels: Pixels) -> dict[str, list[tuple[float, float]]]:
    """Middles of the painted dots by name, in continuous coordinates."""
    key = repr(pixels.shape).encode() + pixels.tobytes()
    if key in _seen:
        return _seen[key]
    chroma = pixels.max(2) - pixels.min(2)
    hues = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV_FULL)[..., 0] * np.float32(360 / 256)
    found = {}
    for name, hue in HUES.items():
        mask = ((chroma > 120) & (np.abs((hues - hue + 180) % 360 - 180) < 14)).astype(np.uint8)
        count, _, stats, middles = cv2.connectedComponentsWithStats(mask)
        large = sorted(range(1, count), key=lambda i: -stats[i, cv2.CC_STAT_AREA])
        found[name] = [(middles[i][0] + 0.5, middles[i][1] + 0.5) for i in large if stats[i, cv2.CC_STAT_AREA] >= 9]
    _seen[key] = found
    return found


def see(pixels: Pixels) -> npt.NDArray[np.float64] | None:
    """The perfect estimator: (17, 2), or None where nobody is."""
    places = np.full((17, 2), np.nan)
    found = blobs(pixels)
    if len(found["nose"]) < 1 or len(found["hip"]) < 2:
        return None
    up = np.array(found["nose"][0]) - np.mean(found["hip"][:2], axis=0)
    to_left = np.array([-up[1], up[0]])
    places[0] = found["nose"][0]
    for name, spots in found.items():
        if name == "nose" or len(spots) < 2:
            continue
        right, left = sorted(spots[:2], key=lambda spot: float(np.dot(spot, to_left)))
        places[COCO.index(f"left_{name}")] = left
        places[COCO.index(f"right_{name}")] = right
    return places


def poses(points: npt.NDArray[np.float64] | None, **more: Any) -> Poses:
    return Poses.from_array([] if points is None else points, **{"skeleton": COCO, **more})


def single(answer: Callable[[Pixels], Any], kind: str = "poses", **more: Any) -> System:
    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Any]:
        return [answer(image.pixels) for image in inputs]

    return System("test", kind, predict, "0", **more)


Change = Callable[[npt.NDArray[np.float64], Pixels], npt.NDArray[np.float64]]


def seeing(change: Change, **more: Any) -> System:
    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        return poses(None if points is None else change(points, pixels))

    return single(answer, **more)


PERFECT = seeing(lambda points, _: points)


def checked(system: System, photos: Sequence[tuple[str, Image]] = PHOTOS) -> dict[str, Finding]:
    findings, _ = check_system(system, photos)
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: finding for finding in findings}


def bad(findings: dict[str, Finding]) -> dict[str, str]:
    return {name: each.state for name, each in findings.items() if each.state in ("warning", "problem")}


# --- poses


def test_a_perfect_system_has_nothing_against_it() -> None:
    findings, answers = check_system(PERFECT, MANY)
    assert {finding.name for finding in findings if finding.state != "ok"} == {"classes", "map"}, findings
    aspect = next(one for one in findings if one.name == "aspect")
    assert max(aspect.figures["errors"].values()) < 0.003
    assert aspect.figures["orientations"] == {"portrait": 3, "landscape": 1, "square": 2}
    assert [name for name, _, _ in answers] == [name for name, _ in MANY]
    assert all(len(answer) == 1 for _, _, answer in answers if isinstance(answer, Poses))


def test_one_image_is_enough() -> None:
    assert not bad(checked(PERFECT, PHOTOS[:1]))


@pytest.mark.parametrize("fails", [False, True])
def test_images_that_are_not_asked_are_told(fails: bool) -> None:
    """Whoever names 15 images takes the findings for those of 15."""

    def answer(pixels: Pixels) -> Poses:
        return Poses(**{}) if fails else poses(see(pixels))

    findings, answers = check_system(single(answer), PHOTOS * 2, samples=2)
    assert (findings[0].figures["asked"], findings[0].figures["offered"]) == (2, 2 * len(PHOTOS))
    assert findings[0].code == ("answers.failed" if fails else "answers.ok")
    assert len(answers) == (0 if fails else 2)
    figures = checked(PERFECT)["answers"].figures
    assert figures["asked"] == figures["offered"] == 3


def test_normalised_coordinates() -> None:
    findings = checked(seeing(lambda points, pixels: points / pixels.shape[1::-1]))
    assert bad(findings) == {"coordinates": "problem"}
    assert findings["coordinates"].code == "coordinates.normalised"


def test_exchanged_coordinates() -> None:
    findings = checked(seeing(lambda points, _: points[:, ::-1]))
    assert bad(findings) == {"coordinates": "problem"}
    assert findings["coordinates"].code == "coordinates.exchanged"


@pytest.mark.parametrize("size", [(300, 300), (300, 200)])
def test_exchanged_coordinates_of_one_image(size: tuple[int, int]) -> None:
    findings = checked(seeing(lambda points, _: points[:, ::-1]), [("a", painted(*size, lean=0.1))])
    assert bad(findings) == {"coordinates": "problem"}


def test_coordinates_of_the_models_input() -> None:
    findings = checked(seeing(lambda points, pixels: points / pixels.shape[1::-1] * 192))
    assert (findings["scale"].state, findings["scale"].code) == ("problem", "scale.model_pixels")


def test_coordinates_outside_the_frame() -> None:
    findings = checked(seeing(lambda points, pixels: points + 900))
    assert (findings["coordinates"].state, findings["coordinates"].code) == ("problem", "coordinates.outside")


def test_off_by_half_a_pixel() -> None:
    findings = checked(seeing(lambda points, _: points - 0.5))
    assert bad(findings) == {"scale": "warning"}
    assert findings["scale"].code == "scale.half_pixel"
    assert findings["scale"].figures == {"x": pytest.approx(-0.5), "y": pytest.approx(-0.5)}


def grown(points: npt.NDArray[np.float64], pixels: Pixels) -> npt.NDArray[np.float64]:
    return np.asarray(points + np.array([pixels.shape[1] / 150, 0]))


def test_offset_that_grows_with_the_image_is_seen_in_the_mirror() -> None:
    findings = checked(seeing(grown))
    assert bad(findings) == {"scale": "warning"}
    assert findings["scale"].code == "scale.growing_offset"
    widths = [[width, pytest.approx(width / 150, abs=0.01)] for width in (180, 220, 250)]
    assert findings["scale"].figures["widths"] == widths


def test_that_an_offset_grows_is_claimed_of_three_sizes_only() -> None:
    assert checked(seeing(grown), PHOTOS[:2])["scale"].code == "scale.mirror_offset"
    assert grows([(180, 1.2), (220, 1.5), (250, 1.7)]) and grows([(180, -1.2), (220, -1.5), (250, -1.7)])
    assert not grows([(180, 1.2), (250, 1.7)])
    assert not grows([(180, 1.2), (220, 1.9), (250, 1.7)]), "the second is larger than the third"
    assert not grows([(100, 1.2), (200, 1.21), (300, 1.22)]), "hardly, and not in proportion"


def test_a_model_that_often_fails_is_not_scaled() -> None:
    """Poses that collapse flatten a line as a letterbox does, but not the line of the expected over actual places."""
    rng = np.random.default_rng(0)
    numbers = np.repeat(np.arange(30), 17)
    expected, chance = rng.normal(0, 0.15, (2, len(numbers)))
    right = _scale(expected, 0.7 * expected + 0.1 * chance, numbers)
    collapsed = _scale(expected, np.where(numbers % 2, expected, 0) + 0.6 * chance, numbers)
    assert right is not None and right[0] == pytest.approx(0.7, abs=0.02) and right[2] < 0.1
    assert collapsed is not None and collapsed[0] < 0.6 and collapsed[2] > 1 - collapsed[0]


def test_noise_is_no_offset() -> None:
    def blurred(points: npt.NDArray[np.float64], pixels: Pixels) -> npt.NDArray[np.float64]:
        return points + np.random.default_rng(int(pixels.sum())).normal(0, 2, points.shape)

    assert "scale" not in bad(checked(seeing(blurred)))


def test_sides_kept_in_a_mirror() -> None:
    def by_look(pixels: Pixels) -> Poses:
        points = see(pixels)
        if points is not None and pixels[0, 0, 0] > pixels[0, -1, 0]:  # the ground is brighter at the right
            points = points[COCO.swap]  # the mirrored left hand is still called left
        return poses(points)

    findings = checked(single(by_look), MANY)
    assert bad(findings) == {"left/right": "problem"}
    assert findings["left/right"].code == "sides.kept"


def test_sides_of_the_viewer() -> None:
    findings = checked(seeing(lambda points, _: points[COCO.swap]), MANY)
    assert bad(findings) == {"left/right": "warning"}
    assert findings["left/right"].code == "sides.swapped"


def by_picture(pixels: Pixels) -> Poses:
    """The left one of two is always the one with the larger x, also of people who are upside down."""
    points = see(pixels)
    if points is not None and points[COCO.index("left_hip"), 0] < points[COCO.index("right_hip"), 0]:
        points = points[COCO.swap]
    return poses(points)


def test_sides_named_by_the_picture_are_not_ok() -> None:
    """A mirror does not show them; a half turn does. A model that fails upside down is not accused of anything."""
    finding = checked(single(by_picture), MANY)["left/right"]
    assert (finding.state, finding.code) == ("unsure", "sides.by_picture")
    assert finding.figures["upside_down"] == {"stay": 0, "exchanged": 6}
    assert checked(PERFECT, MANY)["left/right"].figures["upside_down"] == {"stay": 6, "exchanged": 0}

    def upright(points: npt.NDArray[np.float64], pixels: Pixels) -> npt.NDArray[np.float64]:
        return points if points[0, 1] < np.nanmean(points[:, 1]) else np.full_like(points, np.nan)

    for system in (seeing(upright), single(lambda pixels: by_picture(pixels) if pixels[-1, 0, 0] else poses(None))):
        assert checked(system, MANY)["left/right"].state in ("ok", "unsure")
    finding = checked(seeing(upright), MANY)["left/right"]
    assert finding.state == "ok" and finding.figures["upside_down"] == {"stay": 0, "exchanged": 0}


def test_a_skeleton_without_its_pairs() -> None:
    lame = Skeleton.from_dict({**COCO.to_dict(), "name": "lame", "pairs": []})
    findings = checked(single(lambda pixels: poses(see(pixels), skeleton=lame)))
    assert findings["left/right"].code == "sides.unpaired"
    assert findings["left/right"].figures == {"landmarks": ["left_eye", "right_eye"]}


@pytest.mark.parametrize("name", skeletons())
def test_built_in_skeletons_pair_what_they_name(name: str) -> None:
    from instar.systems.check.geometry import _unpaired

    bones = skeleton(name)
    assert _unpaired(bones.landmarks, bones.swap) is None


def test_a_model_that_wants_bgr() -> None:
    findings = checked(single(lambda pixels: poses(see(np.ascontiguousarray(pixels[..., ::-1])))), MANY)
    assert (findings["channels"].state, findings["channels"].code) == ("warning", "channels.bgr")
    assert findings["found"].state == "warning"
    assert findings["left/right"].state == "skipped"


def test_a_model_that_does_better_in_bgr() -> None:
    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        right = see(np.ascontiguousarray(pixels[..., ::-1])) if points is None else None
        if points is not None:
            return poses(points, scores=[0.4])
        return poses(right, scores=[0.9]) if right is not None else poses(None)

    findings = checked(single(answer), MANY)
    assert bad(findings) == {"channels": "warning", "scores": "warning"}
    assert findings["scores"].code == "scores.weak", "at 0.4 nothing would be judged"
    assert findings["scores"].figures["highest"] == pytest.approx(0.4)


@pytest.mark.parametrize("wrong", [{"scores": [4.2]}, {"visibility": [[-3.0] * 17]}])
def test_scores_that_are_logits(wrong: dict[str, Any]) -> None:
    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        return poses(points) if points is None else poses(points, **wrong)

    findings = checked(single(answer))
    assert (findings["scores"].state, findings["scores"].code) == ("problem", "scores.range")


def test_what_the_images_cannot_tell_is_not_ok() -> None:
    """A system that is a little surer with the channels exchanged, and scores of which there is one."""

    def answer(pixels: Pixels) -> Poses:
        blue = bool(pixels[0, 0, 2] > pixels[0, 0, 0])
        points = see(pixels[..., ::-1] if blue else pixels)
        return poses(points, scores=[0.7 if blue else 0.64])

    tinted = [
        (name, Image(photo.pixels + np.eye(1, photo.pixels.size, dtype=np.uint8).reshape(photo.pixels.shape)))
        for name, photo in MANY
    ]
    channels = checked(single(answer), tinted)["channels"]
    assert (channels.state, channels.code) == ("unsure", "channels.maybe_bgr")
    one = checked(PERFECT, PHOTOS[:1])["scores"]
    assert (one.state, one.code) == ("unsure", "scores.single")


def scoring(of_tall: float, of_wide: float) -> System:
    """Whose landmarks are all visible, and whose score depends on the image's form."""

    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        score = of_tall if pixels.shape[0] > pixels.shape[1] else of_wide
        return poses(points) if points is None else poses(points, scores=[score], visibility=[[1.0] * 17])

    return single(answer)


def test_most_images_whose_subjects_would_not_count() -> None:
    """One image with a score of 0.58 must not hide that the two others would never be judged."""
    finding = checked(scoring(0.25, 0.58))["scores"]
    assert (finding.state, finding.code) == ("warning", "scores.weak")
    assert (finding.figures["weak"], finding.figures["images"]) == (2, 3)
    assert finding.figures["highest"] == pytest.approx(0.25), "0.58 is that of the third image, which counts"


def test_scores_are_those_of_subjects_and_not_visibilities() -> None:
    finding = checked(scoring(0.58, 0.25))["scores"]
    assert finding.code == "scores.ok"
    assert finding.figures == {"low": pytest.approx(0.25), "high": pytest.approx(0.58)}, "1 is a visibility"


def test_the_mean_of_best_scores_is_that_of_scores() -> None:
    """Visibilities of landmarks say something else: 0.3 times 0.3 is no score."""

    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        return poses(points) if points is None else poses(points, scores=[0.3], visibility=[[0.3] * 17])

    assert checked(single(answer))["channels"].figures["rgb"] == pytest.approx(0.3)


def test_check_and_a_run_advise_the_same_of_the_same_images() -> None:
    """Round figures, from the best score of the images in which nothing counts."""
    advice = "the highest there is 0.36. If the scores of this system are that low, judge with `--set confidence=0.15 "
    judged = Judged(pairs=6, judged=2, nothing_found=4, not_applicable=0, failed=0, cases=3, empty=2)
    (of_run,) = answers_findings(Answers(3, 2, False, 0.5, 0.36), judged)
    for words in (checked(scoring(0.36, 0.56))["scores"].message, of_run.words):
        assert f"{advice}--set margin=0.08`." in words


def test_classes_of_a_classifier_are_told_by_image() -> None:
    """Without labels nobody but a person sees that a list of names is off by one."""
    findings = checked(single(lambda pixels: {"cat": pixels.shape[1] / 300, "dog": 0.1}, "labels"), MANY)
    assert not bad(findings)
    assert findings["classes"].figures["first"] == {name: "cat" for name, _ in MANY}
    assert findings["scores"].figures == {"images": 6, "low": pytest.approx(0.6), "high": pytest.approx(250 / 300)}
    assert (findings["channels"].state, findings["channels"].code) == ("unsure", "channels.same")


def test_questions_that_are_none_for_a_kind_are_one_line() -> None:
    printed = io.StringIO()
    findings, _ = check_system(single(lambda pixels: {"cat": pixels.shape[1] / 300}, "labels"), PHOTOS)
    show_findings(Console(file=printed, width=400), findings, [])
    lines = [line for line in printed.getvalue().splitlines() if "skipped" in line]
    assert len(lines) == 1 and "9 others" in lines[0], printed.getvalue()
    assert "not asked of an output of kind labels: found, coordinates, extent" in lines[0]


def test_an_answer_whatever_the_image() -> None:
    def answer(pixels: Pixels) -> Poses:
        points = see(pixels)
        return poses(np.full((17, 2), 50.0) if points is None else points)

    assert bad(checked(single(answer))) == {"empty": "warning"}


# --- repeating


def test_declared_deterministic_but_is_not() -> None:
    rng = np.random.default_rng(0)
    findings = checked(seeing(lambda points, _: points + rng.normal(0, 1, points.shape)))
    assert bad(findings) == {"determinism": "problem"}
    assert findings["batch"].state == "skipped"


def test_a_system_that_remembers_the_last_image() -> None:
    last: list[npt.NDArray[np.float64]] = []

    def tracked(points: npt.NDArray[np.float64], _: Pixels) -> npt.NDArray[np.float64]:
        before = last[-1] if last else points
        last.append(points)
        return 0.9 * points + 0.1 * before

    assert checked(seeing(tracked))["determinism"].state == "problem"


def test_a_tracker_that_gives_new_numbers_remembers() -> None:
    """The same image right away has the same number, and one after others a new one: it never comes back."""
    last: list[tuple[int, bytes]] = [(0, b"")]

    def answer(pixels: Pixels) -> Detections:
        if last[-1][1] != pixels.tobytes():
            last.append((last[-1][0] + 1, pixels.tobytes()))
        return Detections.from_xyxy([[5, 5, 60, 60]], [f"person {last[-1][0]}"], [0.9])

    finding = checked(single(answer, "detections"))["determinism"]
    assert (finding.state, finding.code) == ("problem", "determinism.remembers")


def test_nobody_is_told_to_have_declared_what_he_did_not() -> None:
    rng = np.random.default_rng(0)
    message = checked(seeing(lambda points, _: points + rng.normal(0, 1, points.shape)))["determinism"].message
    assert message.startswith("it counts as deterministic, as all that is not declared otherwise, but the same image")
    assert "@declare(deterministic=False)" in message


def seeded(honoured: bool, *, seedable: bool = True) -> System:
    free = np.random.default_rng(0)

    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Any]:
        answers = []
        for image, seed in zip(inputs, seeds, strict=True):
            points = see(image.pixels)
            rng = np.random.default_rng(seed) if honoured else free
            answers.append(poses(None if points is None else points + rng.normal(0, 0.5, points.shape)))
        return answers

    return System("seeded", "poses", predict, "0", deterministic=False, seedable=seedable)


def test_a_seed_that_is_honoured() -> None:
    assert not bad(checked(seeded(True)))


def test_a_seed_that_is_not() -> None:
    findings = checked(seeded(False))
    assert bad(findings) == {"determinism": "problem"}
    assert findings["determinism"].code == "determinism.seed_unused"
    assert not bad(checked(seeded(False, seedable=False)))


@pytest.mark.parametrize("seedable", [True, False])
def test_declared_stochastic_but_is_not(seedable: bool) -> None:
    findings = checked(replace(PERFECT, deterministic=False, seedable=seedable))
    assert bad(findings) == {"determinism": "warning"}


# --- batches


def test_answers_that_depend_on_the_batch() -> None:
    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Any]:
        width, height = inputs[0].size  # every image is taken to have the size of the first
        answers = []
        for image in inputs:
            points = see(image.pixels)
            answers.append(poses(None if points is None else points / image.size * (width, height)))
        return answers

    findings = checked(System("batch", "poses", predict, "0"), PHOTOS[:1])
    assert bad(findings) == {"batch": "problem"}


def test_a_batch_that_cannot_be_stacked() -> None:
    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Any]:
        return [poses(see(pixels)) for pixels in np.stack([image.pixels for image in inputs])]

    findings = checked(System("stack", "poses", predict, "0"))
    assert bad(findings) == {"batch": "problem"}
    assert findings["batch"].code == "batch.failed"


@pytest.mark.parametrize("batch", [1, 16])
def test_advice_about_stacking_is_for_what_takes_several(batch: int) -> None:
    def predict(inputs: Sequence[Image], seeds: Sequence[int]) -> list[Any]:
        if len(inputs) > 1:
            raise RuntimeError("no")
        return [poses(see(inputs[0].pixels))]

    message = checked(System("alone", "poses", predict, "0", batch=batch))["batch"].message
    assert ("stacking" in message) == (batch > 1) and "4 images of different sizes at once: RuntimeError: no" in message


def test_too_few_answers_for_a_batch() -> None:
    findings = checked(System("one", "poses", lambda inputs, seeds: [poses(see(inputs[0].pixels))], "0"))
    assert bad(findings) == {"batch": "problem"}
    assert findings["batch"].code == "batch.failed"


# --- errors


def test_a_system_that_raises() -> None:
    def broken(pixels: Pixels) -> Poses:
        raise RuntimeError("no weights\nsecond line")

    findings, answers = check_system(single(broken), PHOTOS)
    assert answers == []
    states = {finding.name: finding.state for finding in findings}
    assert states.pop("answers") == "problem"
    assert set(states.values()) == {"skipped"}
    assert "RuntimeError: no weights" in findings[0].message


def test_a_system_that_exits() -> None:
    def leaves(pixels: Pixels) -> Poses:
        raise SystemExit(3)

    assert "sys.exit(3)" in checked(single(leaves))["answers"].message


def test_a_system_that_raises_where_nobody_is() -> None:
    findings = checked(single(lambda pixels: poses(see(pixels)[None])))  # type: ignore[index]
    assert bad(findings) == {"answers": "problem", "empty": "problem"}
    assert findings["empty"].code == "empty.failed"


LEANING = (("a", 0.0), ("b", 0.05), ("c", -0.05))


def only(size: tuple[int, int]) -> System:
    """Answers images of one size, and raises at any other one."""

    def answer(pixels: Pixels) -> Poses:
        if pixels.shape[1::-1] != size:
            raise ValueError("wrong size")
        return poses(see(pixels))

    return single(answer)


def test_questions_that_were_not_answered_are_not_ok() -> None:
    findings = checked(only((200, 200)), [(name, painted(200, 200, lean)) for name, lean in LEANING])
    aspect = findings["aspect"]
    assert (aspect.state, aspect.code) == ("unsure", "aspect.unanswered")
    assert (aspect.figures["failed"], aspect.figures["questions"]) == (12, 15)
    assert aspect.figures["first"] == "a after stretch(1, 0.6)" and list(aspect.figures["errors"]) == ["mirrored"]
    assert (findings["scale"].code, findings["scale"].figures["failed"]) == ("scale.unanswered", 3)
    assert findings["batch"].figures["images"] == 3, "all that were answered"


def test_errors_on_changed_images_are_counted_with_their_place() -> None:
    """Also a few of them: nothing else would say that they were left out."""
    count = [0]

    def answer(pixels: Pixels) -> Poses:
        if pixels.shape[:2] == (240, 108):  # that is one of the three, squeezed
            count[0] += 1
            raise RuntimeError("no memory")
        return poses(see(pixels))

    findings = checked(single(answer))
    assert count == [1] and list(bad(findings)) == ["answers"]
    assert findings["answers"].code == "answers.failed_changed"
    assert findings["answers"].figures["changed"]["failed"] == 1
    words = " questions failed, first tall after stretch(1, 0.6): RuntimeError: no memory (test_check.py:"
    assert words in findings["answers"].message
    assert findings["aspect"].state == "unsure"


def test_what_never_answers_in_time_ends_the_questions() -> None:
    def answer(pixels: Pixels) -> Poses:
        if pixels[0, 0, 0] == 128:
            time.sleep(600)
        return poses(see(pixels))

    findings, answers = check_system(single(answer), PHOTOS, timeout=5)
    assert len(answers) == len(PHOTOS)
    words = findings[0].message
    assert findings[0].state == "problem" and "1 of " in words
    assert re.search(r"first tall after colour_fill.*: TimeoutError: no answer within 5 s \(test_check.py:\d+\)", words)
    assert {one.state for one in findings[3:]} == {"skipped"} and len(findings) == len(checked(PERFECT))
    first, *rest = check_system(single(lambda pixels: time.sleep(600)), PHOTOS, timeout=0.1)[0]
    assert first.state == "problem" and first.message.startswith("1 of 1 questions failed, first tall: TimeoutError")
    assert {one.state for one in rest} == {"skipped"}


def test_what_is_interrupted_names_the_question() -> None:
    def answer(pixels: Pixels) -> Poses:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="question 1, tall, is not answered"):
        check_system(single(answer), PHOTOS, timeout=600)


def test_waiting_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("instar.systems.check.patience.PATIENCE", 0.1)
    told = ""
    with watched("a.jpg is not answered", None):
        while not told.endswith("\n"):
            told += capsys.readouterr().err
    assert told == "instar: a.jpg is not answered after 0.1 s; Ctrl-C stops\n"


def test_an_answer_of_the_wrong_kind() -> None:
    findings = checked(single(lambda pixels: {"keypoints": []}))
    assert findings["answers"].state == "problem"
    assert findings["answers"].code == "answers.failed"
    silent: Any = lambda inputs, seeds: None  # noqa: E731
    assert checked(System("none", "poses", silent, "0"))["answers"].code == "answers.failed"


@pytest.mark.parametrize(
    "draws", [lambda pixels: pixels.fill(0), lambda pixels: cv2.circle(pixels, (9, 9), 3, (255, 0, 0))]
)
def test_a_system_that_writes_into_its_input(draws: Callable[[Pixels], Any]) -> None:
    def answer(pixels: Pixels) -> Poses:
        draws(pixels)
        return poses(see(pixels))

    findings = checked(single(answer))
    assert findings["input"].state == "problem"
    assert findings["input"].code == "input.read_only"


def test_a_system_that_changes_its_input_anyway() -> None:
    def answer(pixels: Pixels) -> Poses:
        found = poses(see(pixels))
        pixels.base.setflags(write=True)  # type: ignore[union-attr]
        pixels.base[:5] = 0  # type: ignore[index]
        return found

    before = [image.content_hash() for _, image in PHOTOS]
    assert bad(checked(single(answer))) == {"input": "problem"}
    assert before == [image.content_hash() for _, image in PHOTOS]


def test_arguments() -> None:
    with pytest.raises(ValueError, match="at least one image"):
        check_system(PERFECT, [])
    with pytest.raises(ValueError, match="samples"):
        check_system(PERFECT, PHOTOS, samples=0)
    assert len(check_system(PERFECT, PHOTOS, samples=2)[1]) == 2


# --- other kinds


def boxes(change: Change) -> System:
    def answer(pixels: Pixels) -> Detections:
        found, labels = [], []
        for name, spots in blobs(pixels).items():
            for x, y in spots:
                found.append(
                    [
                        x - 0.05 * pixels.shape[1],
                        y - 0.04 * pixels.shape[0],
                        x + 0.05 * pixels.shape[1],
                        y + 0.04 * pixels.shape[0],
                    ]
                )
                labels.append(name)
        return Detections.from_xyxy(change(np.array(found).reshape(-1, 4), pixels), labels)

    return single(answer, "detections")


def test_a_perfect_detector() -> None:
    findings = checked(boxes(lambda found, _: found))
    assert not bad(findings)
    assert findings["left/right"].state == "skipped"


@pytest.mark.parametrize(
    ("change", "name", "code"),
    [
        (
            lambda found, pixels: found / [*pixels.shape[1::-1], *pixels.shape[1::-1]],
            "coordinates",
            "coordinates.normalised",
        ),
        (lambda found, _: found[:, [1, 0, 3, 2]], "coordinates", "coordinates.exchanged"),
        (lambda found, _: found + 3, "scale", "scale.offset"),
    ],
)
def test_detectors_with_a_defect(change: Callable[..., Any], name: str, code: str) -> None:
    findings = checked(boxes(change))
    assert list(bad(findings)) == [name]
    assert findings[name].code == code


def test_a_kind_without_coordinates() -> None:
    findings = checked(single(lambda pixels: Zones(pixels[..., 0] // 64, {"dark": (0,)}), "zones"))
    assert not bad(findings)
    assert {findings[name].state for name in ("coordinates", "scores", "left/right", "empty")} == {"skipped"}
    assert findings["determinism"].state == findings["batch"].state == "ok"


def test_what_instar_itself_says_has_no_name_of_a_class_before_it() -> None:
    assert described(MissingExtra("install torch first")) == "install torch first"
    assert described(UnknownName("unknown system 'yolo'")) == "unknown system 'yolo'"
    assert described(ValueError("no weights")) == "ValueError: no weights"


def test_long_times_have_no_exponent() -> None:
    assert [_milliseconds(seconds) for seconds in (0.00123, 0.0456, 2.96)] == ["1.23 ms", "45.6 ms", "2,960 ms"]
