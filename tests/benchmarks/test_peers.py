"""The comparison with other tools: what is reckoned of its measurements, and the page that tells them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import instar
from benchmarks import peers, performance
from benchmarks.figures import short
from benchmarks.page import stored_results
from benchmarks.ways.rules import RULES, albumentations_settings, opencv_makers
from instar.engine import cases
from instar.image import Image


def run(pairs: int, reads: int, start: float = 1.0) -> dict[str, float]:
    """A way that takes 2 ms to read, 1 ms to make and 0.5 ms besides, and `start` seconds before all that."""
    times = {"read_seconds": 0.002 * reads, "read": reads, "made_seconds": 0.001 * pairs, "made": pairs}
    spent = start + times["read_seconds"] + times["made_seconds"] + 0.0005 * pairs
    return {**times, "seconds": 2 * spent, "processor_seconds": spent, "megabytes": 100 + pairs / 100}


def test_starting_up_is_no_overhead_and_reading_again_is() -> None:
    once = peers._costs({pairs: run(pairs, pairs // len(RULES)) for pairs in (100, 1000)})
    each_time = peers._costs({pairs: run(pairs, pairs) for pairs in (100, 1000)})
    assert once["overhead_ms"] == pytest.approx(0.5)
    assert each_time["overhead_ms"] == pytest.approx(0.5 + 2 * (1 - 1 / len(RULES)))
    assert each_time["overhead_without_reading_ms"] == pytest.approx(0.5)


def test_a_way_whose_workers_read_at_the_same_time_has_a_speed_and_no_overhead() -> None:
    untimed = {"read_seconds": 0.0, "read": 0.0, "made_seconds": 0.0, "made": 0.0}
    costs = peers._costs({100: {**untimed, "seconds": 2.0, "processor_seconds": 4.0, "megabytes": 5.0}})
    assert costs["pairs_per_second"] == 50 and "overhead_ms" not in costs


@pytest.mark.parametrize(
    ("last", "stopped"),
    [
        ({"processor_seconds": 1.0, "megabytes": 100.0}, False),
        ({"processor_seconds": peers.SECONDS / 9, "megabytes": 100.0}, True),
        ({"processor_seconds": 1.0, "megabytes": peers.MEGABYTES / 9}, True),
    ],
)
def test_a_series_ends_before_it_takes_too_long_or_too_much_memory(last: dict[str, float], stopped: bool) -> None:
    """A tool that keeps every image in memory would otherwise take the machine down with it."""
    assert peers._too_much([last]) is stopped


def test_the_loop_with_opencv_makes_what_instar_makes() -> None:
    """Otherwise two different amounts of work would be compared."""
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    for rule, maker in opencv_makers().items():
        assert np.array_equal(maker(pixels), instar.transformation(rule)(Image(pixels))[0].pixels), rule
    assert [instar.transformation(rule).id for rule in opencv_makers()] == list(RULES)
    assert albumentations_settings().keys() == set(RULES)


def test_measuring_here_leaves_the_engine_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = instar.Transformation.__call__, vars(cases)["read_input"]
    peers.measure(small=True)
    assert (instar.Transformation.__call__, vars(cases)["read_input"]) == before
    assert "the others need peers.txt" in capsys.readouterr().err


def test_versions_of_others_are_exact() -> None:
    lines = [line for line in peers.REQUIREMENTS.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)


def test_the_page_is_what_the_results_say() -> None:
    text = performance.PAGE.read_text("utf-8")
    assert text == performance.page(text, stored_results()), "make it with `python -m benchmarks.performance`"


def test_the_plan_follows_the_measurements() -> None:
    """Twice as slow an answer takes twice as long; sixteen times the cores take a sixteenth."""
    results: dict[str, Any] = {name: dict(result) for name, result in stored_results().items()}
    answer = performance.answer_ms(results["throughput"]["figures"], results["overhead"]["figures"])
    half = {**results["throughput"]["figures"], "pairs_per_second": 1000 / (2 * answer), "workers": 1}
    results["throughput"] = {**results["throughput"], "figures": half}
    bare = {"overhead_ms_per_pair": 0.0, "read_and_transform_ms_per_pair": 0.0}
    results["overhead"] = {**results["overhead"], "figures": bare}
    results["transforms"] = {**results["transforms"], "figures": {"rules_together_ms": 0.0}}
    lines = performance.plan(results)
    seconds = performance.IMAGES * (performance.RULES + 1) * 2 * answer / 1000
    for cores, unit in ((1, 86_400), (16, 3600), (256, 60)):
        line = next(line for line in lines if line.startswith(f"| {cores} core"))
        assert f" {short(seconds / cores / unit)} " in line


def test_a_page_of_missing_results_says_what_is_missing() -> None:
    text = performance.PAGE.read_text("utf-8")
    assert "Not measured yet: peers." in performance.page(text, {})


@pytest.mark.parametrize(
    ("seconds", "words"), [(75, "75 s"), (1500, "25 min"), (20_000, "5.6 h"), (400_000, "4.6 days")]
)
def test_a_duration_is_in_the_unit_that_a_person_would_use(seconds: float, words: str) -> None:
    assert performance._duration(seconds) == words


@pytest.mark.parametrize(("seconds", "shared"), [(10.0, False), (50.0, True)])
def test_the_page_says_that_a_machine_was_shared(seconds: float, shared: bool) -> None:
    """Pairs a second of a busy machine are no speed of the tool's."""
    words = performance._shared({"growth": {"100": {"seconds": seconds, "processor_seconds": 9.9}}})
    assert ("20 % of a core" in words) is shared and bool(words) is shared
