"""A run that ends with nothing says why, and how often."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.engine.progress import FAILURES, Progress
from instar.report.findings import findings
from instar.scene import Track
from tests.cli.conftest import typed
from tests.engine.test_scenes import write_map
from tests.perfect.walker import scenes
from tests.toys import write_scenes


def test_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(7):
        (photos / f"{number}.jpg").write_text("no image" * (number + 1))
    for _ in range(2):
        ended = typed("run", "tests.toys:steady", "mirror(h)", photos, "--out", tmp_path / "run", "--workers", 0)
        assert ended.code == 3
        assert "Nothing was predicted: no case of this dataset can be read." in ended.stdout
        assert "7 times: not an image that OpenCV can read, or damaged (8 bytes)" in ended.stdout
        assert "Nothing is left to do" not in ended.stdout
        assert "not one input was answered: none could be read" in ended.stderr


def test_rules_that_apply_to_no_case(tmp_path: Path) -> None:
    photos, rules = write_scenes(tmp_path / "photos", 3), "filtered(greyscale, skin)"
    for _ in range(2):
        ended = typed(
            "run", "tests.toys:steady", rules, photos, "--out", tmp_path / "run", "--workers", 0, "--zones", "none"
        )
        assert ended.code == 3
        assert "not applicable: 3 pairs of 1 rule: there is no segmenter for zones" in ended.words
        assert "not one pair was judged" in ended.stderr


def test_scenes_off_their_map_are_one_reason_wherever_they_are(tmp_path: Path) -> None:
    scene = next(iter(scenes(1)))
    place = str(write_map(tmp_path / "map.png", scene.classes))
    pasts = [((10.0, 10.0), (170.0 + number, 10.0)) for number in range(4)]
    cases = [Case(f"{past}", path=place, track=replace(Track.of(scene), past=past)) for past in pasts]
    data = Dataset("off", str(tmp_path), lambda: iter(cases), inputs="scene")
    run = instar.run("constant-velocity", "mirror(h) => wvc", data, out=tmp_path / "run", workers=0)
    assert run.outcome is not None
    [(reason, count)] = run.outcome.unreadable_reasons.items()
    assert count == 4
    assert "the position (170, 10) of the past is off the map of 160 × 120 pixels" in reason


def broken(pixels: np.ndarray) -> instar.Detections:
    raise ValueError("no weights")


def test_what_waited_for_a_failed_source_is_not_among_the_failures(tmp_path: Path) -> None:
    """Each number below "3 of 5 predictions failed" is a part of the first."""
    rules = "gamma(2) => detections + erase(1, only=0) => presence(gone)"
    with pytest.warns(UserWarning, match="not one input was answered"):
        run = instar.run(broken, rules, write_scenes(tmp_path / "photos", 2), out=tmp_path / "run", workers=0)
    assert run.outcome is not None
    failed = sum(run.outcome.statuses.get(status, 0) for status in FAILURES)
    assert 0 < failed < sum(run.outcome.statuses.values())
    assert sum(run.outcome.reasons.values()) == failed


def picky(pixels: np.ndarray) -> instar.Detections:
    raise ValueError(f"exposure check failed: mean {int(pixels.sum()) % 3}")


def test_messages_that_differ_in_numbers_are_one_in_the_terminal_the_report_and_the_viewer(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not one input was answered"):
        run = instar.run(picky, "gamma(2)", write_scenes(tmp_path / "photos", 12), out=tmp_path / "run", workers=0)
    assert run.outcome is not None
    messages = run.predictions().filter(pl.col("status") == "error")["message"].value_counts(sort=True)
    assert messages.height == 3, "this test takes several messages"
    (told,) = run.outcome.reasons
    assert f"{messages['message'][0]} (and 2 others that differ in numbers)" in told
    (row,) = run.unjudged().to_dicts()
    assert "(and 2 others that differ in numbers)" in row["reason"]
    assert row["pairs"] == 12
    assert any(row["reason"] in one.words for one in findings(run))


def test_a_run_with_answers_has_no_reasons(tmp_path: Path) -> None:
    run = instar.run("tests.toys:steady", "mirror(h)", write_scenes(tmp_path / "photos", 1), out=tmp_path, workers=0)
    assert run.outcome is not None and run.outcome.reasons == run.outcome.unreadable_reasons == {}


def test_no_time_is_estimated_by_the_first_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may load a model: one of 140 in five seconds was a run of twenty-four, not of fourteen minutes."""
    now = 100.0
    monkeypatch.setattr("instar.engine.progress.time.monotonic", lambda: now)
    progress = Progress(cases=14, rows=140, began=now)
    now = 105.0
    progress.arrived(1)
    progress.done = 1
    assert progress.remaining is None
    now = 106.0
    progress.arrived(10)
    progress.done = 11
    assert [progress.rate, progress.remaining] == [10.0, 12.9]


def test_a_slow_system_is_estimated_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("instar.engine.progress.time.monotonic", lambda: now)
    progress = Progress(cases=2, rows=5, began=now)
    for done in (1, 2):
        now += 60
        progress.arrived(1)
        progress.done = done
    assert progress.remaining == 180.0
