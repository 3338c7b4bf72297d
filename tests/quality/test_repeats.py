"""Models that are rarely random, or rarely repeat an earlier output: predicting violating pairs again finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instar
from instar import Detections, Poses
from instar.analysis import repeated
from instar.datasets import dataset
from instar.engine import predict
from instar.gate import checked, new_policy, read_policy
from instar.report.finding import Finding
from instar.report.findings import findings
from instar.store import Store
from tests.toys import rectangles, steady, write_scenes

RULES = "mirror(h) + gamma(0.5) + gamma(2) + blur(2) + rotation(10) + shift(0.1) + noise(5) + jpeg(50) + contrast(0.8)"
CASES = 40
EVERY = 60
"""One of so many predictions is wrong: 1.7 %."""
Model = Callable[[np.ndarray], Any]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("photos"), CASES)


def wrong_boxes(pixels: np.ndarray, call: int) -> Detections:
    """Each time other boxes."""
    found = rectangles(pixels)
    return Detections.from_xyxy(found.boxes + 20 + call % 17, found.labels)


def random_boxes() -> Model:
    calls = [0]

    def predict(pixels: np.ndarray) -> Detections:
        calls[0] += 1
        return rectangles(pixels) if calls[0] % EVERY else wrong_boxes(pixels, calls[0])

    return predict


def random_poses() -> Model:
    calls = [0]

    def predict(pixels: np.ndarray) -> Poses:
        calls[0] += 1
        return steady(pixels if calls[0] % EVERY else np.roll(pixels, 20 + calls[0] % 17, 1))

    return predict


def stale_boxes() -> Model:
    """Rarely returns the output of the image before."""
    calls, last = [0], [rectangles(np.full((120, 160, 3), 110, np.uint8))]

    def predict(pixels: np.ndarray) -> Detections:
        calls[0] += 1
        if calls[0] % EVERY:
            last[0] = rectangles(pixels)
        return last[0]

    return predict


def failing_boxes() -> Model:
    """Misses an object; asked again about the same image, it raises."""
    seen = set[bytes]()

    def predict(pixels: np.ndarray) -> Detections:
        if pixels.tobytes() in seen:
            raise RuntimeError("again?")
        seen.add(pixels.tobytes())
        return faulty_boxes(pixels)

    return predict


def faulty_boxes(pixels: np.ndarray) -> Detections:
    """Misses an object in dark images, each time."""
    found = rectangles(pixels)
    return Detections.from_xyxy(found.boxes[1:], found.labels[1:]) if pixels.mean() < 70 else found


_calls = [0]


@instar.declare(kind="detections", version="1")
def random_in_processes(pixels: np.ndarray) -> Detections:
    _calls[0] += 1
    return rectangles(pixels) if _calls[0] % EVERY else wrong_boxes(pixels, _calls[0])


def ran(model: Model, photos: Path, out: Path, rules: str = RULES) -> instar.Run:
    kind = "poses" if "poses" in model.__qualname__ else "detections"
    return instar.run(instar.declare(kind=kind, version="1")(model), rules, photos, out=out, workers=0)


def without_repeats(model: Model, photos: Path, out: Path) -> instar.Run:
    """A run whose violating pairs are not predicted again."""
    kind = "poses" if "poses" in model.__qualname__ else "detections"
    system = instar.system(instar.declare(kind=kind, version="1")(model))
    predict(system, instar.suite(RULES), dataset(photos), Store(out), workers=0)
    return instar.open_run(out)


def found(run: instar.Run) -> Finding | None:
    return next((one for one in findings(run) if one.code == "noise.repeated"), None)


def gate_of(run: instar.Run, folder: Path, text: str = "cases = 1") -> dict[str, bool]:
    (folder / "policy.toml").write_text(text)
    return {check.name: check.passed for check in checked(run, read_policy(folder / "policy.toml"))}


@pytest.mark.parametrize("make", [random_boxes, random_poses, stale_boxes])
@pytest.mark.parametrize("rules", [RULES, f"identity + {RULES}"], ids=["without identity", "with identity"])
def test_a_model_that_is_rarely_random_is_found(
    photos: Path, tmp_path: Path, make: Callable[[], Model], rules: str
) -> None:
    run = ran(make(), photos, tmp_path / "run", rules)
    finding = found(run)
    assert finding is not None and finding.against
    figures = finding.figures
    assert 0 < figures["passing"] <= figures["differing"] <= figures["repeated"]
    assert figures["examples"] and set(figures["examples"][0]) == {"case", "follow_up"}
    assert gate_of(run, tmp_path)["not repeatable"] is False
    assert gate_of(run, tmp_path, "not_repeatable = 1")["not repeatable"] is True
    assert gate_of(run, tmp_path, new_policy(run))["not repeatable"] is True, (
        "a run holds the policy that is made of it"
    )


def test_it_is_found_where_several_processes_predict(photos: Path, tmp_path: Path) -> None:
    run = instar.run(f"{__name__}:random_in_processes", RULES, photos, out=tmp_path / "run", workers=2)
    finding = found(run)
    assert finding is not None and finding.figures["differing"] > 0


@pytest.mark.parametrize("make", [random_boxes, random_poses, stale_boxes])
def test_rates_are_those_of_the_first_outputs(photos: Path, tmp_path: Path, make: Callable[[], Model]) -> None:
    run = ran(make(), photos, tmp_path / "run")
    plain = without_repeats(make(), photos, tmp_path / "plain")
    assert run.outcome is not None and run.outcome.again > 0
    assert run.verdicts().equals(plain.verdicts())
    assert run.rates().equals(plain.rates())
    assert run.predictions().drop("seconds").equals(plain.predictions().drop("seconds"))
    assert run.answers() == plain.answers()
    other = [one.judge(confidence=0.3) for one in (run, plain)] if "poses" not in make.__name__ else []
    assert all(run.verdicts(id).equals(plain.verdicts(id)) for id in other), "and by other settings"


def test_a_correct_model_is_asked_nothing_more(photos: Path, tmp_path: Path) -> None:
    run = ran(rectangles, photos, tmp_path / "run", "identity + mirror(h) + gamma(0.9)")
    assert run.outcome is not None and (run.outcome.fresh, run.outcome.again) == (4 * CASES, 0)
    assert found(run) is None and repeated(run) is None
    assert "not repeatable" not in gate_of(run, tmp_path)


def test_a_faulty_model_that_repeats_itself_is_not_accused_of_chance(photos: Path, tmp_path: Path) -> None:
    run = ran(faulty_boxes, photos, tmp_path / "run")
    again = repeated(run)
    assert again is not None and again.pairs >= CASES and again.differing == again.passing == 0
    assert found(run) is None
    assert gate_of(run, tmp_path)["not repeatable"] is True


def test_a_model_that_fails_when_it_is_asked_again_is_found(photos: Path, tmp_path: Path) -> None:
    run = ran(failing_boxes(), photos, tmp_path / "run")
    finding = found(run)
    assert finding is not None
    assert finding.figures["differing"] == finding.figures["repeated"] and finding.figures["passing"] == 0


def test_rare_violations_of_other_rules_come_first(photos: Path, tmp_path: Path) -> None:
    """Much that is violated for one reason leaves room for the few random outputs under other rules."""
    calls = [0]

    def random_and_faulty(pixels: np.ndarray) -> Detections:
        calls[0] += 1
        return faulty_boxes(pixels) if calls[0] % EVERY else wrong_boxes(pixels, calls[0])

    dark = " + ".join(f"gamma({gamma})" for gamma in (1.8, 1.9, 2.2, 2.5))
    run = ran(random_and_faulty, photos, tmp_path / "run", f"{RULES} + {dark}")
    assert run.rates()["violated"].sum() > 100
    finding = found(run)
    assert finding is not None and finding.figures["repeated"] <= 60 and finding.figures["differing"] >= 3


@pytest.mark.parametrize("what", ["stochastic", "a paper's suite"])
def test_some_runs_are_not_asked_again(photos: Path, tmp_path: Path, what: str) -> None:
    rules = tuple(map(instar.rule, ("rotation(45)", "gamma(0.1)")))
    suite = instar.Suite("toy@paper" if what == "a paper's suite" else "toy", rules)
    declared = instar.declare(kind="poses", version="1", deterministic=what != "stochastic")(random_poses())
    run = instar.run(declared, suite, photos, out=tmp_path / "run", workers=0)
    assert run.any_rule()["violated"] > 0
    assert run.outcome is not None and run.outcome.again == 0
    assert found(run) is None
