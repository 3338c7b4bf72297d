"""`instar boundary`: searches, shows, goes on; and what looks at its folder afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import instar
from tests.analysis.test_boundary import dim
from tests.cli.conftest import Type
from tests.clocks import wait_for

ROOT = Path(__file__).parents[2]
SYSTEM = "tests.analysis.test_boundary:dim"
CASES = 4


@pytest.fixture(scope="module")
def searched(typed: Type, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("searched") / "run"
    command = ("boundary", SYSTEM, "gamma", photos, "--out", out, "--workers", 0)
    ran = typed(*command, COLUMNS="80")
    assert ran.code == 0, ran.stderr
    assert "gamma above 1: half of 4 cases have broken at 5.31" in ran.words
    assert "the search asked" in ran.words
    assert "follow-ups of the grid" in ran.words
    commands = "instar tables"  # to be copied, and therefore on one line
    assert max(len(line) for line in ran.stdout.splitlines() if commands not in line) <= 80
    return out


def test_the_same_command_again_predicts_nothing_and_prints_the_same(
    typed: Type, photos: Path, searched: Path, tmp_path: Path
) -> None:
    command = ("boundary", SYSTEM, "gamma", photos, "--out", searched, "--workers", 0)
    again = typed(*command, "--pictures", tmp_path / "pictures", "--count", 2)
    assert "Nothing is left to do" in again.stdout
    assert "half of 4 cases have broken at 5.31" in again.words
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"gamma-above-1.png", "gamma-below-1.png"}
    printed = json.loads(typed(*command, "--json").stdout)
    assert (printed["fresh"], printed["every"]) == (0, 81 * CASES)
    assert {row["status"] for row in printed["limits"]} == {"broken"}
    assert len(printed["curve"]) == 82
    assert printed["median"][1]["median"] == 5.31


def test_numbers_are_whole_where_there_is_little_room(typed: Type, searched: Path) -> None:
    shown = typed("tables", searched, COLUMNS="80")
    assert max(map(len, shown.stdout.splitlines())) <= 80
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith("gamma above 1 ")]
    limits = [row for row in rows if "broken" in row]
    assert len(limits) == CASES
    assert all(row[-3:-1] == ["5.01", "5.31"] for row in limits)


def test_whatever_looks_at_runs_looks_at_a_search(typed: Type, searched: Path, tmp_path: Path) -> None:
    shown = typed("show", searched)
    assert "This run searched for limits" in shown.words
    assert "way broken median" in shown.words
    assert "gamma(3.98)" not in shown.words.partition("worst pairs")[0]  # rates of levels are not those of all cases
    page = tmp_path / "report.html"
    assert typed("report", searched, "--out", page).code == 0
    text = page.read_text("utf-8")
    for words in ("How far until it breaks", "How far gamma may go", "At how much of a visible change it breaks"):
        assert words in text
    assert "violate at least one of" not in text, "rates of a search are no headline"
    assert f"instar boundary {SYSTEM} gamma " in text  # how to make it again
    assert text.count("the last level that held and the first that broke") >= 2
    assert text.index("How far until it breaks") < text.index("Violation rate per rule")
    printed = json.loads(typed("tables", searched, "--json").stdout)["limits"]
    assert set(printed) == {"median", "curve", "limits"}


def test_a_plan_says_what_is_asked_at_the_most_and_writes_nothing(
    typed: Type, photos: Path, searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = typed("boundary", SYSTEM, "gamma", photos, "--plan", "--workers", 0)
    assert plan.code == 0, plan.stderr
    assert "at most 4 cases × 22 predictions = 88: the source and 21 of 81 follow-ups of the grid (26 %)" in plan.words
    assert "ms each in one worker" in plan.words
    assert "is left" not in plan.words
    half = typed("boundary", SYSTEM, "gamma", photos, "--plan", "--shard", "1/2", "--json")
    assert json.loads(half.stdout)["estimate"]["rows"] % 22 == 0
    assert json.loads(half.stdout)["estimate"]["rows"] < 88
    assert not list(tmp_path.iterdir())
    again = typed("boundary", SYSTEM, "gamma", photos, "--plan", "--out", searched, "--workers", 0)
    assert "by what the run folder holds already, nothing is left to ask" in again.words
    more = json.loads(
        typed("boundary", SYSTEM, "gamma", photos, "--plan", "--out", searched, "--probes", 4, "--json").stdout
    )["estimate"]
    asked = typed("boundary", SYSTEM, "gamma", photos, "--out", searched, "--workers", 0, "--probes", 4, "--json")
    assert 0 < json.loads(asked.stdout)["fresh"] <= more["rows"] - more["done"]


def test_another_judging_is_searched_and_looked_at(typed: Type, photos: Path, tmp_path: Path) -> None:
    command = ("boundary", "tests.analysis.test_boundary:fading", "gamma", photos, "--out", tmp_path, "--workers", 0)
    usual = typed(*command)
    other = typed(*command, "--set", "confidence=0.8", "--set", "margin=0", "--pictures", tmp_path / "pictures")
    assert other.code == 0, other.stderr
    assert f"instar tables {tmp_path} --judging confidence=0.8,margin=0" in other.words
    words = next(line for line in other.stdout.splitlines() if line.startswith("gamma above 1: half of 4"))
    assert words not in usual.stdout
    assert words in typed("tables", tmp_path, "--judging", "confidence=0.8,margin=0").stdout
    wrong = typed(*command, "--set", "confidence")
    assert wrong.code == 2
    assert "it is written NAME=VALUE" in wrong.words


def test_no_policy_is_held_against_its_rates(typed: Type, searched: Path, tmp_path: Path) -> None:
    policy = tmp_path / "instar.toml"
    policy.write_text('[[limit]]\nof = "any rule"\nrate = 1\n')
    compared = typed("compare", searched, searched)
    assert compared.code == 2
    assert "is a search for limits: its rates are not those of all cases" in compared.words
    gated = typed("gate", searched, "--policy", policy)
    assert gated.code == 2
    assert "is a search for limits: its rates are not those of all cases" in gated.words


def test_a_frontier_has_a_figure(typed: Type, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ran = typed(
        "boundary", SYSTEM, "gamma | brightness(add=0)", photos, "--out", out, "--workers", 0, "--steps", 8,
        "--no-visual",
    )  # fmt: skip
    assert "gamma above 1, brightness multiply below 1: half of 4 cases have broken at" in ran.words
    page = tmp_path / "report.html"
    typed("report", out, "--out", page)
    assert "How far gamma and brightness multiply may go together" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("boundary", SYSTEM, "gamma", "nowhere", "--out", "run"), "nowhere"),
        (("boundary", SYSTEM, "mirror", "nowhere", "--out", "run"), "mirror cannot be searched"),
        (("boundary", SYSTEM, "gamma", "nowhere"), "--out"),
        (("boundary", SYSTEM, "gamma", "nowhere", "--out", "run", "--steps", "2"), "--steps"),
        (("boundary", SYSTEM, "gamma", "nowhere", "--out", "run", "--retry", "all"), "--retry"),
        (("boundary", SYSTEM, "gamma", ".", "--plan", "--set", "landmark=hands"), "did you mean 'landmarks'?"),
        (("boundary", SYSTEM, "gamma", ".", "--out", "run", "--shard", "3/2"), "there is no shard 3/2"),
    ],
)
def test_wrong_use_is_said_in_a_line(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = typed(*arguments)
    assert wrong.code == 2
    assert words in wrong.words
    assert not list(tmp_path.iterdir())


def test_a_system_that_never_looks_ends_with_3(typed: Type, photos: Path, tmp_path: Path) -> None:
    ran = typed("boundary", "tests.analysis.test_boundary:fixed", "gamma", photos, "--out", tmp_path / "run",
                "--workers", 0)  # fmt: skip
    assert ran.code == 3
    assert "every input has the same answer" in ran.stderr


def test_a_killed_search_goes_on_where_it_was(photos: Path, tmp_path: Path) -> None:
    """Killed in the middle: together both lives ask what one life asks, and nothing committed is asked again."""
    run, module = tmp_path / "run", tmp_path / "slow.py"
    module.write_text(
        "import time\nfrom tests.analysis.test_boundary import dim\n\n"
        "def slow(pixels):\n    time.sleep(0.05)\n    return dim(pixels)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), str(tmp_path)])}
    command = [sys.executable, "-m", "instar", "boundary", "slow:slow", "gamma", str(photos), "--out", str(run)]
    command += ["--workers", "1", "--no-visual"]
    life = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=-3, stderr=-3, start_new_session=True)
    wait_for(lambda: list(run.glob("predictions/*.parquet")))
    os.killpg(life.pid, signal.SIGKILL)
    life.wait()
    before = set(instar.open_run(run).predictions().select("case", "follow_up").iter_rows())
    done = subprocess.run([*command, "--json"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    after = instar.open_run(run).predictions()
    assert before
    assert printed["fresh"] + len(before) == after.height == after.select("case", "follow_up").n_unique()
    whole = instar.boundary(dim, "gamma", photos, out=tmp_path / "whole", workers=0, visual=False)
    assert instar.open_run(run).boundary().limits.equals(whole.limits)
