"""Skips: all made in one place, and counted by reason at the end of a run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tests

TESTS = Path(tests.__file__).parent


def test_every_skip_is_made_in_one_place() -> None:
    other = re.compile(r"pytest\.skip|mark\.skip|importorskip|SkipTest")
    makes = {str(file.relative_to(TESTS)) for file in TESTS.rglob("*.py") if other.search(file.read_text("utf-8"))}
    assert makes <= {"missing.py", "layers/test_missing.py"}


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_a_run_ends_with_its_skips_by_reason(
    workers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INSTAR_CI_STRICT", raising=False)
    (tmp_path / "test_some.py").write_text(
        """
import pytest
from tests.missing import absent, module, shared, unsuited

def test_one(): absent("a thing (make thing)")
def test_two(): module("there_is_no_such_module.inside")
def test_three(): shared("nowhere/a.jpg")
def test_four(): shared("nowhere/b.jpg")
def test_five(): unsuited("says nothing here")
def test_six(): pass
""",
        "utf-8",
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            tmp_path,
            "-c",
            "/dev/null",
            *workers,
            tmp_path,
        ],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *_, first, second, third, fourth, last = done.stdout.splitlines()
    assert [first, second, third, fourth] == [
        "skipped 2: needs ../shared/nowhere",
        "skipped 1: needs a thing (make thing)",
        "skipped 1: needs there_is_no_such_module (pip install -r requirements/dev.txt)",
        "skipped 1: says nothing here",
    ]
    assert "1 passed, 5 skipped" in last


def test_what_must_be_there_is_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.missing import shared

    monkeypatch.setenv("INSTAR_CI_STRICT", "1")
    with pytest.raises(pytest.fail.Exception, match=r"needs \.\./shared/nowhere; it must be here: .*a\.jpg"):
        shared("nowhere/a.jpg")
