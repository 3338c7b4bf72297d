"""A clock for tests of timeouts: time passes only while something hangs, however busy the machine is."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

ENOUGH = 600.0
"""Seconds after which a test gives up waiting: a bound that ends a hang, and that no busy machine reaches."""


def hang(file: str | Path) -> None:
    """Hang, and show it: the lock is held as long as this process lives."""
    with Path(file).open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        time.sleep(3600)


def hanging_clock(file: str | Path) -> SimpleNamespace:
    """Return a module `time` whose `monotonic` advances by a second at each look, but only while `hang(file)` runs."""
    now = time.monotonic()

    def monotonic() -> float:
        nonlocal now
        with Path(file).open("a") as seen:
            try:
                fcntl.flock(seen, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                now += 1.0
        return now

    return SimpleNamespace(**{**vars(time), "monotonic": monotonic})


def only_hangs_take_time(file: Path, monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Give these modules such a clock; toys find the file in $HANGING."""
    monkeypatch.setenv("HANGING", str(file))
    clock = hanging_clock(file)
    for module in modules:
        monkeypatch.setattr(f"{module}.time", clock)


def wait_for(what: Callable[[], object], seconds: float = ENOUGH) -> None:
    """Wait until a function returns something true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "this never happened"
        time.sleep(0.02)
