"""Whoever is killed when: nothing committed is lost or predicted again, and no key appears twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import instar
from instar.engine import SystemFailed
from instar.engine.keeper import COMMIT_ROWS, COMMIT_SECONDS
from instar.engine.predictor import HAND_OVER_SECONDS
from instar.files import place_file
from instar.image import read_image
from instar.store import KEY, Store
from tests.clocks import ENOUGH, only_hangs_take_time
from tests.toys import content, write_scenes

ROOT = Path(__file__).parents[2]
SIZE = (80, 60)
RULES = [f"gamma({g})" for g in (0.4, 0.5, 0.6, 0.7, 0.8, 1.2, 1.4, 1.6)]
SCRIPT = """
import sys, instar, instar.engine.keeper as p
p.COMMIT_SECONDS, p.COMMIT_ROWS = 0.15, 20
instar.run("tests.toys:counting", instar.Suite("s", tuple(map(instar.rule, sys.argv[3].split(";")))),
           sys.argv[1], out=sys.argv[2], workers=int(sys.argv[4]), zones="none")
"""


def launch(
    photos: Path, out: Path, count_file: Path, sleep: str = "0.004", workers: int = 1, most: int = 1_000_000
) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "COUNT_FILE": str(count_file),
        "COUNT_SLEEP": sleep,
        "COUNT_MOST": str(most),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(photos), str(out), ";".join(RULES), str(workers)],
        env=environment,
        start_new_session=True,
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )


def committed(out: Path) -> set[tuple[str, str, int, int]]:
    store = Store(out)
    if not store.exists:
        return set()
    rows = store.predictions(list(KEY)).rows()
    assert len(rows) == len(set(rows)), "a key appears twice"
    return set(rows)


def test_kill_the_whole_tree_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where in a run it is killed is drawn many times in `studies.ledger`; here everything is real processes."""
    photos, out, count_file = write_scenes(tmp_path / "photos", 40, SIZE), tmp_path / "run", tmp_path / "count"
    rng = random.Random(5)
    stored: set[tuple[str, str, int, int]] = set()
    kills = 0
    seen_at_kill: list[tuple[set[tuple[str, str, int, int]], int]] = []
    for _ in range(2):
        target = len(stored) + rng.randint(0, 40)
        child = launch(photos, out, count_file, sleep="0.02", workers=2, most=target + 100)
        while len(committed(out)) <= target:
            assert child.poll() is None, child.communicate()
            time.sleep(0.05)
        time.sleep(rng.random() * 0.3)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            kills += 1
        child.wait()
        assert child.stderr is not None
        child.stderr.close()
        now = committed(out)
        assert stored <= now, "committed rows were lost"
        stored = now
        counted = len(count_file.read_text().splitlines()) if count_file.exists() else 0
        seen_at_kill.append((stored, counted))
    assert kills == 2, "the test must really kill"
    monkeypatch.setenv("COUNT_FILE", str(count_file))
    rules = instar.Suite("s", tuple(map(instar.rule, RULES)))
    instar.run("tests.toys:counting", rules, photos, out=out, workers=0, zones="none")
    assert len(committed(out)) == 40 * 9
    inputs = by_content(photos)
    log = count_file.read_text().splitlines()
    for done, counted in seen_at_kill:
        again = {inputs[digest] for digest in log[counted:]} & {(case, name) for case, name, _, _ in done}
        assert not again, "something committed was predicted again"
    assert instar.open_run(out).verdicts().height == 40 * 8


def by_content(photos: Path) -> dict[str, tuple[str, str]]:
    """Which case and follow-up an input is, by its pixels."""
    found = {}
    for case in instar.dataset(photos).cases():
        assert case.path is not None
        image = read_image(case.path)
        found[content(image.pixels)] = (case.id, "source")
        for name in RULES:
            found[content(instar.transformation(name)(image)[0].pixels)] = (case.id, name)
    return found


def test_two_writers_do_not_meet_and_ctrl_c_stops_one_which_loses_nothing(tmp_path: Path) -> None:
    photos, out, count_file = write_scenes(tmp_path / "photos", 40, SIZE), tmp_path / "run", tmp_path / "count"
    child = launch(photos, out, count_file, sleep="0.5", workers=2)
    while not len(committed(out)):
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    with pytest.raises(RuntimeError, match="another process is writing"):
        instar.run("tests.toys:counting", "gamma(0.5)", photos, out=out, workers=0)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=ENOUGH)
    predicted = Counter(count_file.read_text().splitlines())
    rows = committed(out)
    assert 0 < len(rows) < 40 * 9
    assert sum(predicted.values()) - len(rows) <= 4 * 9, "at most a case in each worker's hands and one on its way"


def test_a_reader_sees_whole_tables_while_the_run_goes_on(tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 30, SIZE), tmp_path / "run"
    child = launch(photos, out, tmp_path / "count")
    heights = []
    while child.poll() is None:
        heights.append(len(committed(out)))
        if heights[-1]:
            cases = set(Store(out).cases(["case"])["case"])
            assert {key[0] for key in committed(out)} <= cases | set(Store(out).cases(["case"])["case"])
        time.sleep(0.03)
    child.communicate()
    assert heights == sorted(heights)
    assert len(committed(out)) == 30 * 9


def moody(tmp_path: Path, **more: Any) -> instar.Run:
    photos = write_scenes(tmp_path / "photos", 1)  # every worker that is ended costs a second
    rules = instar.Suite(
        "s",
        tuple(
            map(
                instar.rule,
                ("gamma(0.05)", "gamma(0.18)", "gamma(0.5)", "gamma(1.6)", "gamma(2.5)", "gamma(5)", "mirror(h)"),
            )
        ),
    )
    return instar.run(
        "tests.toys:moody", rules, photos, out=tmp_path / "run", timeout=2.5, zones="none", workers=1, **more
    )


def test_a_system_that_raises_hangs_dies_or_lies_costs_its_own_rows_until_they_are_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_hangs_take_time(tmp_path / "hanging", monkeypatch, "instar.engine.crew", "instar.engine.process")
    one = moody(tmp_path)
    rows = one.predictions()
    assert rows.select(KEY).is_unique().all()
    assert rows.height == 8
    status = {row["follow_up"]: (row["status"], row["message"]) for row in rows.to_dicts()}
    assert status["gamma(0.05)"][0] == "error"
    assert "RuntimeError: too bright for me (toys.py:" in status["gamma(0.05)"][1]
    assert status["gamma(0.18)"][0] == "error"
    assert "expected Poses" in status["gamma(0.18)"][1]
    assert status["gamma(2.5)"][0] == "timeout"
    assert "2.5 s" in status["gamma(2.5)"][1]
    assert status["gamma(5)"][0] == "crashed"
    assert "SIGSEGV" in status["gamma(5)"][1]
    assert {status[name][0] for name in ("source", "gamma(0.5)", "mirror(h)")} == {"ok"}
    rates = {row["rule"]: row for row in one.rates().to_dicts()}
    assert rates["gamma(5) => poses"]["failed"] == 1
    assert rates["gamma(5) => poses"]["rate"] is None
    assert rates["mirror(h) => poses"]["judged"] == 1
    failed = one.predictions().filter(pl.col("status") != "ok").height
    again = moody(tmp_path)
    assert again.outcome is not None and again.outcome.fresh == 0
    retried = moody(tmp_path, retry_failed=True)
    assert retried.outcome is not None and retried.outcome.fresh == failed
    assert retried.predictions().select(KEY).is_unique().all()


def test_a_full_disk_is_said_and_what_was_committed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos, out = write_scenes(tmp_path / "photos", 6), tmp_path / "run"
    instar.run("tests.toys:steady", "gamma(0.5)", photos, out=out, workers=0, limit=3)
    before = committed(out)

    def full(path: Path, content: bytes | Callable[[Path], object], **more: Any) -> Path:
        if "predictions" in str(path):
            raise OSError(28, "No space left on device")
        return place_file(path, content, **more)

    monkeypatch.setattr("instar.store.folder.place_file", full)
    with pytest.raises(OSError, match="No space left"):
        instar.run("tests.toys:steady", "gamma(0.5)", photos, out=out, workers=0)
    monkeypatch.undo()
    assert committed(out) == before
    assert instar.run("tests.toys:steady", "gamma(0.5)", photos, out=out, workers=0).predictions().height == 12


def test_a_system_that_cannot_load_stops_the_run_with_its_reason(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 2)
    with pytest.raises(SystemFailed, match="there is no module 'nowhere'"):
        instar.run("nowhere:system", "gamma(0.5)", photos, out=tmp_path / "run", workers=1)


def test_the_docs_say_when_answers_are_committed() -> None:
    """What may be lost at most is a promise, and stands wherever people look for it."""
    runs, house = ((ROOT / "docs" / name).read_text().replace("\n", " ") for name in ("runs.md", "architecture.md"))
    for words in (f"{COMMIT_SECONDS:g} seconds", f"{COMMIT_ROWS:,} rows", f"{HAND_OVER_SECONDS:g} seconds"):
        assert words in runs and words in house
