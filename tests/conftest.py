"""Nothing here fails for being slow: what things cost is in `benchmarks/`. What was skipped is counted at the end."""

from __future__ import annotations

import compileall
import gc
import os
import sys
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from _pytest.doctest import DoctestModule
from hypothesis import settings

# Workers share the cores: a library's threads would wait for each other, and burn the cores while they wait. Set before
# a library is imported, for the processes that tests start too.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
os.fsync = lambda fd: None  # nobody pulls the plug, and a disk takes longer than most tests
# Ten thousand tests and all modules are no garbage: what is collected stays, and is looked through never again.
gc.disable()

# The same examples each time, so that no commit fails by another's fault; INSTAR_EXPLORE=1 draws new ones.
settings.register_profile("instar", deadline=None, max_examples=50, derandomize="INSTAR_EXPLORE" not in os.environ)
settings.load_profile("instar")
# else all commands are made anew, with their parameters, for each one that is typed
typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]

# What is imported while tests are collected is kept compiled, whatever the environment says: else each worker and each
# process that a test starts compiles the package anew. What tests write and import is not: it changes within a second.
# pytest keeps what it imports in files of its own, which no other process reads, so that the package is compiled first.
if "PYTEST_XDIST_WORKER" not in os.environ:
    for _folder in ("src", "tests", "benchmarks"):
        compileall.compile_dir(Path(__file__).parents[1] / _folder, quiet=2)
_dont_write_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, False


def pytest_collection_finish() -> None:
    sys.dont_write_bytecode = _dont_write_bytecode
    for name in (
        "overview",
        "searches",
    ):  # a page of the viewer waits for its findings here, however busy the machine is
        if module := sys.modules.get(f"instar.viewer.{name}"):
            module.PATIENCE = 600.0  # type: ignore[attr-defined]
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Examples in docstrings are the package's: tests have none, and are not searched for them."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])
    )
    for reason, count in sorted(skipped.items(), key=lambda each: (-each[1], each[0])):
        terminalreporter.write_line(f"skipped {count}: {reason}")
