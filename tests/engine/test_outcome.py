"""A run that ends with nothing says why, and how often."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import instar
from instar.case import Case
from instar.datasets import Dataset
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
    [(reason, count)] = run.outcome.reasons.items()
    assert count == 4
    assert "the position (170, 10) of the past is off the map of 160 × 120 pixels" in reason


def test_a_run_with_answers_has_no_reasons(tmp_path: Path) -> None:
    run = instar.run("tests.toys:steady", "mirror(h)", write_scenes(tmp_path / "photos", 1), out=tmp_path, workers=0)
    assert run.outcome is not None and run.outcome.reasons == {}
