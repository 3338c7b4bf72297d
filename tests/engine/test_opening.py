"""What a run says before it predicts: a suite of another kind, and a folder that gets cases of another dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

import instar
from tests.toys import write_scenes


def test_a_folder_that_gets_cases_of_another_dataset_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, count in (("first", 2), ("more", 3)):
        write_scenes(tmp_path / name, count)
        for path in (tmp_path / name).iterdir():
            path.rename(path.with_name(f"{name}-{path.name}"))

    def told(folder: str, limit: int | None = None) -> str:
        photos = tmp_path / folder
        instar.run("tests.toys:rectangles", "gamma(0.9)", photos, out=tmp_path / "run", workers=0, limit=limit)
        return capsys.readouterr().err

    assert "added" not in told("first", limit=1) + told("first")
    mixed = told("more")
    assert f"{tmp_path / 'run'} holds 2 cases of folder(" in mixed and "; 3 of folder(" in mixed
    assert "added" not in told("more"), "they are there already"


def test_a_suite_for_another_kind_of_answer_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos = write_scenes(tmp_path / "photos", 1)
    for suite, wrong in (("poses", True), ("poses + gamma(0.9)", True), ("detections", False), ("gamma(0.9)", False)):
        instar.run("tests.toys:rectangles", suite, photos, out=tmp_path / suite, workers=0)
        told = capsys.readouterr().err
        assert ("this system answers with detections" in told) is wrong
        assert ("The suite for detections is detections." in told) is wrong
