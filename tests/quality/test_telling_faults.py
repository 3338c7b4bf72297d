"""Systems from whose answers nothing can be told: scores that never count, silence, one answer to everything, and
classes by chance among near ties.

No rule can accuse them. Each is told in words what it is, by `show`, the headline and `check`, and `run` exits with 3.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import instar
from instar import Case, Dataset, Detections, Image, Labels, Poses, Segmentation, declare
from instar.cli import app
from instar.gate.checks import checked
from instar.gate.policy import read_policy
from instar.relations import relations
from instar.report import show_run
from instar.report.findings import findings
from instar.report.section import make_section
from instar.report.sentences import answers_findings, headline
from instar.skeleton import skeleton
from instar.systems.check import check_system
from instar.systems.check.examination import COUNTS
from instar.systems.function import from_function
from instar.warp import Warp
from tests.quality import painted

IMAGES = [painted.sign(number) for number in range(4)]
_BONES = skeleton("coco-17")
_POSE = np.random.default_rng(0).uniform(0.3, 0.7, (17, 2))
Answer = Callable[[np.ndarray], Any]


def _middle(pixels: np.ndarray) -> np.ndarray:
    """Where the sign is, so that scores are the only thing wrong."""
    return np.array(painted.middle(pixels)) * pixels.shape[1::-1]


def weak_poses(score: float) -> Answer:
    def answer(pixels: np.ndarray) -> Poses:
        return Poses.from_array([_middle(pixels) + 40 * (_POSE - 0.5)], skeleton=_BONES, scores=[score])

    return answer


def weak_boxes(score: float) -> Answer:
    def answer(pixels: np.ndarray) -> Detections:
        x, y = _middle(pixels)
        return Detections.from_xyxy([[x - 9, y - 9, x + 9, y + 9]], ["sign"], [score])

    return answer


def _chance(pixels: np.ndarray) -> np.random.Generator:
    """The same for the same pixels, and another one for any others."""
    return np.random.default_rng(zlib.crc32(pixels.tobytes()))


def flat_chance(classes: int) -> Answer:
    """An untrained network: every class is as good as any other, and which comes first hangs on the pixels."""

    def answer(pixels: np.ndarray) -> Labels:
        scores = 1 / classes + _chance(pixels).uniform(-0.08, 0.08, classes) / classes
        return Labels.from_scores([f"class {number}" for number in range(classes)], scores)

    return answer


def shuffled(pixels: np.ndarray) -> Labels:
    return Labels.from_scores(_chance(pixels).permutation([f"class {number}" for number in range(10)]).tolist())


@dataclass(frozen=True)
class Fault:
    """The answer, its kind, the rules it is asked, what is said of it, and what `check` says under which question."""

    answer: Answer
    kind: str
    words: str
    rules: str = "identity + mirror(h) + gamma(2)"
    question: str = ""
    checked: str = ""


KEPT = """
rules = ["identity", "mirror(h)", "gamma(2)"]
[judging]
empty = "keep"
"""
"""Nothing twice is severity 0, as in the suites of papers."""
_SAME, _BLIND = "inputs that were compared have the same answer", "looks.same"
FAULTS = {
    "poses of low scores": Fault(
        weak_poses(0.31),
        "poses",
        "No score reaches the confidence of 0.5, from which on something counts as found; the highest is 0.31. If the "
        "scores of this system are that low, judge with `--set confidence=0.15 --set margin=0.07`.",
        question="scores",
        checked="scores.weak",
    ),
    "poses with logits": Fault(weak_poses(-1.5), "poses", "All scores are -1.5, and not between 0 and 1."),
    "people without landmarks": Fault(
        lambda pixels: Poses.from_array(np.full((1, 17, 2), np.nan), skeleton=_BONES, scores=[0.9]),
        "poses",
        "In 4 of 4 source images the system is sure that somebody is there, and gives not a single landmark",
        question="found",
        checked="found.nothing_usable",
    ),
    "boxes of low scores": Fault(
        weak_boxes(0.02), "detections", "the highest is 0.02", question="scores", checked="scores.weak"
    ),
    "nobody, judged as published": Fault(
        lambda pixels: Poses.from_array(np.empty(0), skeleton=_BONES),
        "poses",
        "The system found nothing in 4 of 4 source images",
        KEPT,
        "found",
        "found.nothing",
    ),
    "nothing, judged as published": Fault(
        lambda pixels: Detections.from_xyxy(np.empty((0, 4)), []),
        "detections",
        "The system found nothing in 4 of 4 source images",
        KEPT,
        "found",
        "found.nothing",
    ),
    "one class for everything": Fault(
        lambda pixels: Labels.from_scores(["disc", "star"], [0.8, 0.2]), "labels", _SAME, "", "looks", _BLIND
    ),
    "a class by chance, all scores alike": Fault(flat_chance(10), "labels", "pairs are near ties: the scores"),
    "one of two classes by chance": Fault(flat_chance(2), "labels", "pairs are near ties: the scores"),
    "names in a random order, without scores": Fault(shuffled, "labels", "pairs are near ties: the scores"),
    "one caption for everything": Fault(
        lambda pixels: "a man riding a horse", "caption", f"{_SAME}: a man riding a horse.", "", "looks", _BLIND
    ),
    "ground everywhere": Fault(
        lambda pixels: Segmentation.from_classes(np.zeros(pixels.shape[:2], np.uint8), ("ground", "red")),
        "segmentation",
        _SAME,
        "",
    ),
    "a box around the frame": Fault(
        lambda pixels: Detections.from_xyxy([[0, 0, *pixels.shape[1::-1]]], ["sign"]), "detections", _SAME
    ),
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signs")
    for number, pixels in enumerate(IMAGES):
        cv2.imwrite(str(folder / f"{number}.png"), pixels[..., ::-1])
    return folder


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_told_in_words_and_is_not_clean(
    name: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = FAULTS[name]
    module = ModuleType("telling")
    module.answer = declare(kind=fault.kind)(lambda pixels: fault.answer(pixels))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "telling", module)
    suite = fault.rules or {"labels": "labels", "caption": "captions", "segmentation": "segmentation"}[fault.kind]
    if suite == KEPT:
        (tmp_path / "kept.toml").write_text(KEPT)
        suite = str(tmp_path / "kept.toml")
    out = tmp_path / "run"
    done = CliRunner().invoke(app, ["run", "telling:answer", suite, str(images), "-o", str(out), "--workers", "0"])
    assert done.exit_code == 3, done.output
    run = instar.open_run(out)
    printed = io.StringIO()
    show_run(Console(file=printed, width=1000), run)
    assert fault.words in printed.getvalue()
    section = make_section(run, next(iter(run.grids())))
    assert fault.words in " ".join(headline(section, section.start)).replace("\xa0", " ")


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.question])
def test_check_says_it_too(name: str) -> None:
    fault = FAULTS[name]
    system = from_function(declare(kind=fault.kind)(lambda pixels: fault.answer(pixels)), name)
    answers, _ = check_system(system, [(str(number), Image(pixels)) for number, pixels in enumerate(IMAGES)])
    (finding,) = [finding for finding in answers if finding.name == fault.question]
    assert finding.state in ("warning", "problem") and finding.code == fault.checked


def test_check_counts_as_rules_do() -> None:
    for name in ("poses", "detections"):
        (confidence,) = [option for option in relations()[name].options if option.name == "confidence"]
        assert confidence.default == COUNTS


def in_shares(answer: Answer) -> Answer:
    """The same, in shares of the image instead of pixels."""

    def divided(pixels: np.ndarray) -> Any:
        whole = answer(pixels)
        return whole.warped(Warp.scale(pixels.shape[1::-1], 1 / pixels.shape[1], 1 / pixels.shape[0]))

    return divided


@pytest.mark.filterwarnings("ignore::instar.api.NothingTold")
@pytest.mark.parametrize(("kind", "answer"), {"poses": weak_poses(0.9), "detections": weak_boxes(0.9)}.items())
def test_coordinates_in_shares_of_the_image_are_told(kind: str, answer: Answer, tmp_path: Path) -> None:
    """Rules judge them as pixels, and say of a right model that it strays by many lengths of the body."""
    cases = [Case(str(number), input=Image(pixels)) for number, pixels in enumerate(IMAGES)]
    for name, one in {"pixels": answer, "shares": in_shares(answer)}.items():
        system = declare(kind=kind)(lambda pixels, one=one: one(pixels))
        data = Dataset("signs", "", lambda: iter(cases))
        run = instar.run(system, "gamma(2)", data, out=tmp_path / name, workers=0)
        codes = [one.code for one in answers_findings(run.answers(), run.judged())]
        assert codes == ([] if name == "pixels" else ["coordinates.normalised"])
        assert set(codes) <= {one.code for one in findings(run)}


def test_scores_in_percent_are_told(tmp_path: Path) -> None:
    """Every ghost counts as sure: `run`, the report and the gate say so, and not of heat maps that overshoot."""
    cases = [Case(str(number), input=Image(pixels)) for number, pixels in enumerate(IMAGES)]
    policy = tmp_path / "instar.toml"
    policy.write_text("cases = 0\n")
    for name, answer, told in (("heat", weak_poses(1.2), False), ("percent", weak_boxes(93.0), True)):
        system = declare(kind="poses" if name == "heat" else "detections")(lambda pixels, answer=answer: answer(pixels))
        run = instar.run(system, "gamma(2)", Dataset("signs", "", lambda: iter(cases)), out=tmp_path / name, workers=0)
        found = answers_findings(run.answers(), run.judged())
        (check,) = [check for check in checked(run, read_policy(policy)) if check.name == "answers"]
        assert check.passed is not told
        if not told:
            assert not found
            continue
        assert [(one.code, one.figures) for one in found] == [("scores.out_of_range", {"low": 93, "high": 93})]
        assert found[0] in findings(run)
        assert "All scores are 93;" in check.words
        every = run.judge(confidence=0.0)
        assert not answers_findings(run.answers(every), run.judged(every))


def test_objects_that_are_found_twice_are_told(tmp_path: Path) -> None:
    """No rule is broken where both images have two boxes on one thing; two things side by side are none found twice."""

    def boxes(pixels: np.ndarray, apart: float) -> Detections:
        x, y = _middle(pixels)
        corners = [[x - 20 + by, y - 20, x + 20 + by, y + 20] for by in (0.0, apart)]
        return Detections.from_xyxy(corners, ["sign", "sign"], [0.9, 0.8])

    cases = [Case(str(number), input=Image(pixels)) for number, pixels in enumerate(IMAGES)]
    for apart, twice in ((1.0, True), (30.0, False)):
        system = declare(kind="detections")(lambda pixels, apart=apart: boxes(pixels, apart))
        dataset = Dataset("signs", "", lambda: iter(cases))
        run = instar.run(system, "gamma(2)", dataset, out=tmp_path / str(apart), workers=0)
        words = "8 of the 8 that were found in source images lie on another one of the same class"
        assert any(words in finding.words for finding in findings(run)) is twice
