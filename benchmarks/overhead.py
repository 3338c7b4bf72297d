"""What a run costs above the transformations and predictions themselves.

    python -m benchmarks.overhead [--small] [--write]

With a system that costs nothing, in one worker, at 720×480: the wall time per pair that the worker does not spend
reading and transforming (it times both itself, so that their own noise cancels), as the slope between a short and a
long run, so that starting up does not count. The worker's processor time is the same where nobody else uses the
machine. In small mode there is one run, and starting up counts.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import instar
from benchmarks.command import main
from benchmarks.figures import Figures, Row, short, size_words
from benchmarks.inputs import drawings, photos
from instar.case import read_input
from instar.engine import cases

RULES = "met-pose/sub"
ANSWER = instar.Poses.from_array(np.full((1, 33, 2), 100.0), skeleton="mediapipe-pose-33")
TIMES = "INSTAR_BENCHMARK_TIMES"


class Spent(NamedTuple):
    """Of a run, or of a pair: seconds that are neither reading nor transforming by the clock and of the worker's
    processor, and those that are."""

    clock: float
    processor: float
    reading: float


def measure(small: bool = False) -> Figures:
    size, counts = ((90, 60), [2]) if small else ((720, 480), [60, 240])
    with tempfile.TemporaryDirectory() as place:
        folder = (drawings if small else photos)(Path(place) / "inputs", counts[-1], size)
        tries = [_attempt(folder, Path(place) / str(number), counts) for number in range(1 if small else 3)]
    pair = Spent(*(1000 * statistics.median(column) for column in zip(*tries, strict=True)))
    return {
        "width": size[0],
        "height": size[1],
        "cases": counts[-1],
        "tries": len(tries),
        "rules": len(plain_suite().rules),
        "overhead_ms_per_pair": pair.clock,
        "overhead_processor_ms_per_pair": pair.processor,
        "read_and_transform_ms_per_pair": pair.reading,
    }


def rows(figures: Figures) -> list[Row]:
    return [
        Row(
            f"overhead above reading and transforming, {size_words(figures)}, a system that costs nothing, one worker",
            f"{short(figures['overhead_ms_per_pair'])} ms per pair, the median of {figures['tries']} (the pair itself "
            f"takes {short(figures['read_and_transform_ms_per_pair'])} ms to read and transform)",
        )
    ]


def costless(image: np.ndarray) -> instar.Poses:
    """A system that costs nothing."""
    return ANSWER


def plain_suite() -> instar.Suite:
    """The rules that need no segmenter: its cost is not the question here."""
    changes = [change for rule in instar.suite(RULES).rules for change in rule.transformations if not change.needs]
    return instar.Suite("bench", tuple(instar.rule(change.id) for change in changes))


def run_seconds(name: str, folder: Path, out: Path, workers: int, limit: int) -> float:
    """The predicting of a run: wall seconds from the first case handed out to the last row committed."""
    finished = instar.run(name, plain_suite(), folder, out=out, workers=workers, zones="none", limit=limit)
    assert finished.outcome is not None
    assert finished.outcome.statuses.keys() == {"ok"}, finished.outcome.statuses
    return finished.outcome.seconds


def _attempt(folder: Path, out: Path, counts: list[int]) -> Spent:
    """Seconds per pair, between two runs of different length, or of the only one."""
    out.mkdir()
    times = out / "times"
    runs = [Spent(0.0, 0.0, 0.0)]
    os.environ[TIMES] = str(times)
    for count in counts:
        np.zeros(3).tofile(times)
        wall = run_seconds("benchmarks.overhead:costless", folder, out / str(count), 1, count)
        reading, reading_processor, processor = np.fromfile(times).tolist()
        runs.append(Spent(wall - reading, processor - reading_processor, reading))
    del os.environ[TIMES]
    pairs = (counts[-1] - sum(counts[:-1])) * (len(plain_suite().rules) + 1)
    return Spent(*((longer - shorter) / pairs for longer, shorter in zip(runs[-1], runs[-2], strict=True)))


def _timed(function: Callable[..., Any], total: Any) -> Callable[..., Any]:
    """The function, with the seconds that it takes, and those that the process has taken by now, added up in a file
    that the benchmark can read."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        begun, used = time.perf_counter(), time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            total[2] = time.process_time()
            total[1] += total[2] - used
            total[0] += time.perf_counter() - begun

    return wrapped


if TIMES in os.environ:  # in a worker of this benchmark
    with Path(os.environ[TIMES]).open("r+b") as _file:
        _total = (ctypes.c_double * 3).from_buffer(mmap.mmap(_file.fileno(), 24))
    setattr(cases, "read_input", _timed(read_input, _total))  # noqa: B010
    instar.Transformation.__call__ = _timed(instar.Transformation.__call__, _total)  # type: ignore[method-assign]


if __name__ == "__main__":
    main("overhead")
