"""`instar run`: predicts, judges, shows, continues; and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.api import NothingTold
from instar.store import Shard, Store
from tests.cli.conftest import FORGETFUL, Type
from tests.clocks import ENOUGH, wait_for
from tests.toys import write_scenes

ROOT = Path(__file__).parents[2]
ALONE = ("--zones", "none", "--workers", "1")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "COLUMNS": "100"}


def test_the_same_command_again_says_that_nothing_is_left(typed: Type, photos: Path, done: Path) -> None:
    again = typed(*FORGETFUL, photos, "--out", done, "--zones", "none", "--workers", "0")
    assert again.code == 0
    assert "Nothing is left to do" in again.stdout


def test_json_has_what_show_has_and_counts_by_status(typed: Type, photos: Path, done: Path) -> None:
    again = typed(*FORGETFUL, photos, "--out", done, "--zones", "none", "--workers", "0", "--json")
    outcome = json.loads(again.stdout)
    read = {"cases", "unreadable", "unreadable_reasons"}
    counts = {"fresh", "again", "seconds", "statuses", "interrupted", "notes", "reasons", *read}
    assert (outcome["run"], outcome["fresh"], outcome["statuses"]) == (str(done), 0, {"ok": 12})
    shown = json.loads(typed("show", done, "--json").stdout)
    assert {name: value for name, value in outcome.items() if name not in counts} == shown
    assert shown["rules"] and shown["findings"] and counts <= outcome.keys()


def test_a_run_in_which_every_prediction_failed_ends_with_3(typed: Type, photos: Path, tmp_path: Path) -> None:
    command = ("run", "tests.cli.wrong:raising", "mirror(h) => detections", photos, "--out", tmp_path / "run")
    failed = typed(*command, "--workers", 0)
    assert failed.code == 3
    assert "not one input was answered: every prediction" in failed.stderr
    assert "8 error" in failed.stdout and "no weights" in failed.stdout
    again = typed(*command, "--workers", 0, "--json")
    assert again.code == 3, "the folder still has no answer"
    counts = json.loads(again.stdout)
    assert counts["statuses"] == {"error": 8} and counts["judged"]["failed"] == 4


def test_a_refused_run_leaves_nothing(typed: Type, photos: Path, tmp_path: Path) -> None:
    """Neither a lock nor the folders that were made for it; a folder that was there stays, and is empty again."""
    (tmp_path / "mine").mkdir()
    for out in (tmp_path / "runs" / "nope", tmp_path / "mine"):
        refused = typed("run", "no-such-system", "mirror(h)", photos, "--out", out, "--workers", 0)
        assert refused.code == 2 and "no-such-system" in refused.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_hints_can_be_typed(typed: Type, tmp_path: Path) -> None:
    """A folder with a space is one argument."""
    photos, out = write_scenes(tmp_path / "photos", 2), tmp_path / "my run"
    ran = typed("run", "tests.toys:steady", "gamma(2)", photos, "--out", out, "--workers", 0)
    assert f"instar show '{out}' --threshold T · instar draw '{out}'" in ran.words


def test_a_run_without_a_readable_image_ends_with_3(typed: Type, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "broken.png").write_bytes(b"no image")
    ran = typed("run", "tests.toys:steady", "mirror(h)", tmp_path / "photos", "--out", tmp_path / "run", "--workers", 0)
    assert ran.code == 3
    assert "1 of them unreadable" in ran.stdout


def test_plan_counts_and_estimates_and_writes_nothing(typed: Type, photos: Path, tmp_path: Path) -> None:
    command = ("run", "tests.toys:shaky", "noise(8) => poses(draws=3)", photos, "--plan", "--zones", "none")
    planned = typed(*command, "--out", tmp_path / "run", "--workers", 0)
    assert planned.code == 0, planned.stderr
    assert "4 cases × 4 predictions = 16: the source and 1 follow-up, with" in planned.stdout
    assert "ms each in one worker (3 cases timed): about" in planned.words
    assert not (tmp_path / "run").exists()
    cases = sum(Shard(1, 3).holds(photo.name) for photo in photos.iterdir())
    shard = json.loads(typed(*command, "--shard", "1/3", "--workers", 0, "--json").stdout)
    assert 0 < shard["rows"] == cases * 4 < 16


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 40), tmp_path / "run"
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            *["instar", "run", "tests.toys:counting", "gamma(2)", "--zones", "none", "--workers", "1"],
            photos,
            f"--out={out}",
        ],
        cwd=ROOT,
        env={**ENVIRONMENT, "COUNT_FILE": str(tmp_path / "count"), "COUNT_SLEEP": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: (tmp_path / "count").exists() or child.poll() is not None)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=ENOUGH)
    assert child.returncode == 130, stderr
    assert "the same command again goes on" in stdout
    assert "Traceback" not in stderr


def test_the_command_of_the_package() -> None:
    command = [sys.executable, "-m", "instar"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert version.stdout.strip() == instar.__version__
    wrong = subprocess.run([*command, "show", "no/run"], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("instar: no/run holds no run")


def test_a_limit_is_told_where_a_report_says_how_to_reproduce_it(typed: Type, photos: Path, tmp_path: Path) -> None:
    """The same command without it would be another, longer run."""
    command = (*FORGETFUL, photos, "--out", tmp_path / "run", "--zones", "none", "--workers", 0)

    def reproduced(*limit: object) -> str:
        assert typed(*command, *limit).code == 0
        assert typed("report", tmp_path / "run", "--format", "md", "--images", 0, "--out", tmp_path / "r.md").code == 0
        return next(line for line in (tmp_path / "r.md").read_text().splitlines() if "instar run" in line)

    assert " --limit 1 " in reproduced("--limit", 1)
    assert " --limit 2 " in reproduced("--limit", 2)
    assert " --limit 2 " in reproduced("--limit", 1), "two cases are there"
    assert "--limit" not in reproduced()


def test_a_run_that_was_killed_is_not_shown_as_a_whole_one(typed: Type, photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert typed(*FORGETFUL, photos, "--out", folder, "--zones", "none", "--workers", 0).code == 0
    assert "not finished" not in typed("show", folder).words
    store = Store(folder)
    store.merge("predictions", keep=pl.col("case") == "000.png")  # as a kill leaves it
    assert "This run is not finished: 3 of 12 predictions are there" in typed("show", folder).words


def test_a_run_that_tells_nothing_is_a_warning_in_python(photos: Path, tmp_path: Path) -> None:
    """Nobody reads the exit code of a notebook."""
    with pytest.warns(NothingTold, match="not one input was answered: every prediction"):
        instar.run(raising, "mirror(h)", photos, out=tmp_path / "run", workers=0)


def raising(image: np.ndarray) -> instar.Poses:
    raise RuntimeError("no weights")


def test_a_preview_is_not_written_into_the_dataset(
    typed: Type, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert typed("preview", "mirror(h)", photos / "000.png").stdout.strip() == "000-preview.png"
    assert (tmp_path / "000-preview.png").is_file() and not (photos / "000-preview.png").exists()
