"""Figures: what a benchmark measured, how it is told, and what all of them measure alike."""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Figures = dict[str, Any]
"""Numbers by name, in dicts by name where there are many; among them the sizes that they were measured at."""


class Row(NamedTuple):
    """A row of docs/benchmarks.md: what was measured, and the figures in words."""

    what: str
    words: str


class Absent(Exception):
    """A benchmark cannot be measured on this machine. The message says what it needs and how to get that."""


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """The best of several times, the least disturbed, after one that does not count; or once, and that counts."""
    if repeats > 1:
        work()
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def peak_megabytes() -> float:
    """The most memory that this process has had since it began. `getrusage` would say as much as its parent had."""
    status = Path("/proc/self/status")
    if not status.exists():
        raise Absent("Linux, whose /proc says how much memory a process has had")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert peak is not None
    return int(peak[1]) / 1000


def measured_apart(measure: Callable[[Path], Figures], folder: Path) -> Figures:
    """What a function measures in a process of its own, whose memory nothing else has touched."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (folder,))


def rounded(figures: Figures) -> Figures:
    """With four digits that count, and whole numbers as they are."""
    return {name: _rounded(value) for name, value in figures.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return rounded(value)
    return float(f"{value:.4g}") if isinstance(value, float) else value


def short(value: float, digits: int = 2) -> str:
    """A number with so many digits that count.

    >>> short(123_456), short(12.34), short(0.0456), short(526.4, 3), short(1_000_000)
    ('120,000', '12', '0.046', '526', '1,000,000')
    """
    near = float(f"{value:.{digits}g}")
    return f"{near:,.0f}" if near >= 10 ** (digits - 1) else f"{near:.{digits}g}"


def percentage(share: float) -> str:
    return f"{100 * share:.0f} %"


def size_words(figures: Figures) -> str:
    return f"{figures['width']}×{figures['height']}"
