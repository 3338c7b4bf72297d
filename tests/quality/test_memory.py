"""Systems that answer from their memory of the inputs before: each is said to remember, and chance alone is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instar
from instar import Caption, Detections, Poses
from instar.analysis import remembered
from instar.report.section import make_section
from instar.report.sentences import headline
from tests.quality.words import accusations, assert_accused
from tests.toys import _centres, _pose, rectangles, write_scenes

RULES = "identity + mirror(h) + gamma(0.5) + gamma(2) + blur(2) + rotation(10) + shift(0.1)"
Answer = Callable[[np.ndarray], Any]


def smooths() -> Answer:
    """Half of every landmark is where it was in the image before."""
    last: list[np.ndarray] = []

    def answer(pixels: np.ndarray) -> Poses:
        points = _centres(pixels)
        if not np.isnan(points[0, 0]):
            last[:] = [(points + last[0]) / 2 if last else points]
            points = last[0]
        return _pose(points)

    return answer


def skips(every: int = 3) -> Answer:
    """Looks at every third image only, and answers the others as that one."""
    seen: list[Poses] = []
    calls = [0]

    def answer(pixels: np.ndarray) -> Poses:
        if calls[0] % every == 0:
            seen[:] = [_pose(_centres(pixels))]
        calls[0] += 1
        return seen[0]

    return answer


def follows() -> Answer:
    """Keeps its answer while images look alike; its own depends on the light, which nobody sees then."""
    last: list[tuple[np.ndarray, Poses]] = []

    def answer(pixels: np.ndarray) -> Poses:
        small = pixels[::4, ::4].mean(2)
        small = (small - small.mean()) / (small.std() + 1e-6)
        alike = last and last[0][0].shape == small.shape and (last[0][0] * small).mean() > 0.8
        reply = last[0][1] if alike else _pose(_centres(pixels) + (pixels.mean() - 110) / 5)
        last[:] = [(small, reply)]
        return reply

    return answer


def drags_boxes() -> Answer:
    """Boxes trail behind by a third of their way from the image before."""
    last: dict[str, np.ndarray] = {}

    def answer(pixels: np.ndarray) -> Detections:
        seen = rectangles(pixels)
        boxes = [(2 * box + last.get(label, box)) / 3 for box, label in zip(seen.boxes, seen.labels, strict=True)]
        last.update(zip(seen.labels, boxes, strict=True))
        return Detections.from_xyxy(np.reshape(boxes, (-1, 4)), seen.labels)

    return answer


def steady(pixels: np.ndarray) -> Poses:
    return _pose(_centres(pixels))


def shakes() -> Answer:
    """Has noise that it does not declare, and no memory."""
    rng = np.random.default_rng(5)

    def answer(pixels: np.ndarray) -> Poses:
        return _pose(_centres(pixels) + rng.normal(0, 0.5, (17, 2)))

    return answer


def shakes_boxes() -> Answer:
    rng = np.random.default_rng(6)

    def answer(pixels: np.ndarray) -> Detections:
        seen = rectangles(pixels)
        return Detections.from_xyxy(seen.boxes + rng.normal(0, 0.5, seen.boxes.shape), seen.labels)

    return answer


REMEMBERS = "It remembers: .* answers to the same unchanged input differ, they lean towards its answers"
FAULTS: dict[str, tuple[Callable[[], Answer], str, int]] = {
    "smooths landmarks over images": (smooths, RULES, 8),
    "looks at every third image": (skips, RULES, 10),
    "keeps its answer while images look alike": (follows, f"{RULES} + gamma(0.4) + brightness(20, 1.2)", 24),
    "drags boxes behind": (drags_boxes, RULES, 8),
    "smooths, asked about light alone": (smooths, "identity + gamma(0.5) + gamma(2) + blur(2) + jpeg(20)", 12),
}
FLAWLESS: dict[str, tuple[Callable[[], Answer], bool]] = {
    "has no memory": (lambda: steady, False),
    "has noise alone": (shakes, True),
    "has boxes with noise alone": (shakes_boxes, True),
}


def ran(answer: Answer, rules: str, folder: Path, count: int) -> instar.Run:
    kind = "detections" if "boxes" in answer.__qualname__ else "poses"
    system = instar.declare(kind=kind, version="1")(answer)
    return instar.run(system, rules, write_scenes(folder / "photos", count), out=folder / "run", workers=0)


@pytest.mark.parametrize("name", FAULTS)
def test_a_system_that_remembers_is_told_so(tmp_path: Path, name: str) -> None:
    make, rules, cases = FAULTS[name]
    run = ran(make(), rules, tmp_path, cases)
    memory = remembered(run)
    assert memory is not None and memory.p <= 0.005
    assert memory.leaning > memory.cases / 2
    assert_accused(run, REMEMBERS)


@pytest.mark.parametrize("name", FLAWLESS)
def test_chance_is_no_memory(tmp_path: Path, name: str) -> None:
    make, noisy = FLAWLESS[name]
    run = ran(make(), RULES, tmp_path, 12)
    assert (run.noise()["noisy"].sum() > 0) is noisy
    assert remembered(run) is None
    assert accusations(run) == []


def test_in_one_fixed_order_a_system_that_looks_at_every_other_image_would_seem_deterministic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "identity + mirror(h) + gamma(0.9)"
    assert ran(skips(2), rules, tmp_path / "shuffled", 12).noise()["noisy"].item() > 0
    monkeypatch.setattr("instar.engine.order.Order.of", lambda self, case, keys: tuple(keys))
    assert ran(skips(2), rules, tmp_path / "fixed", 12).noise()["noisy"].item() == 0


def test_the_report_says_it_too(tmp_path: Path) -> None:
    section = make_section(ran(smooths(), RULES, tmp_path, 8), "poses")
    assert any(sentence.startswith("It remembers: ") for sentence in headline(section, section.start))


def test_a_captioner_that_repeats_what_it_said_before(tmp_path: Path) -> None:
    last: list[str] = []

    def answer(pixels: np.ndarray) -> Caption:
        """Says the widest colour it sees, and what it said of the image before."""
        names = rectangles(pixels).labels
        words = f"a {names[int(pixels[40:80].sum()) % len(names)] if names else 'grey'} wall"
        reply = f"{words} and {last[0]}" if last else words
        last[:] = [words]
        return Caption(reply)

    run = instar.run(
        instar.declare(kind="caption", version="1")(answer),
        "identity => verbatim + gamma(0.5) => verbatim + gamma(2) => verbatim + mirror(h) => verbatim"
        " + blur(2) => verbatim + shift(0.1) => verbatim",
        write_scenes(tmp_path / "photos", 24),
        out=tmp_path / "run",
        workers=0,
    )
    assert remembered(run) is not None
