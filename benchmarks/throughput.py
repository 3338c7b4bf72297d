"""The throughput of a run with MediaPipe Holistic, against bare processes that only read, transform and predict.

    python -m benchmarks.throughput [--small] [--write]

Both use all cores, in the same environment. Throughput is the slope between a short and a long run, so that loading
models does not count. In small mode a system that costs nothing takes Holistic's place, all of it in this process.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import cv2

import instar
from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row, percentage, short
from benchmarks.inputs import drawings, photos
from benchmarks.overhead import plain_suite, run_seconds
from instar.engine import default_workers
from instar.engine.coordinator import WORKER_ENVIRONMENT
from instar.image import read_image
from instar.systems import MissingExtra, system


def measure(small: bool = False) -> Figures:
    name = "benchmarks.overhead:costless" if small else "mediapipe-holistic"
    try:
        system(name)
    except MissingExtra as error:
        raise Absent(f"MediaPipe Holistic: {error}") from None
    workers = 1 if small else default_workers()
    few, many = (0, 2) if small else (workers * 4, workers * 16)
    with tempfile.TemporaryDirectory() as place:
        folder = (drawings if small else photos)(Path(place) / "inputs", many, (90, 60) if small else (720, 480))
        paths = sorted(path for path in folder.iterdir() if path.suffix != ".json")[few:]
        alone = bare_seconds(paths, name) if small else _bare_parallel(paths, name, workers)
        seconds = [
            run_seconds(name, folder, Path(place) / f"run {count}", 0 if small else workers, count)
            for count in (few, many)
            if count
        ]
    whole = seconds[-1] - sum(seconds[:-1])
    pairs = len(paths) * (len(plain_suite().rules) + 1)
    return {
        "workers": workers,
        "cases": many,
        "pairs": pairs,
        "pairs_per_second": pairs / whole,
        "share_of_bare_throughput": alone / whole,
    }


def rows(figures: Figures) -> list[Row]:
    return [
        Row(
            "MediaPipe Holistic: throughput of a run against bare processes that only read, transform and predict",
            f"{percentage(figures['share_of_bare_throughput'])}; {short(figures['pairs_per_second'])} pairs a second "
            f"with {figures['workers']} workers",
        )
    ]


def bare_seconds(paths: list[Path], name: str, ready: Any = None, go: Any = None, out: Any = None) -> float:
    """Reading, transforming and predicting, and nothing else; begun together with others where there are any."""
    cv2.setNumThreads(1)
    loaded = system(name)
    changes = [instar.transformation(change.id) for rule in plain_suite().rules for change in rule.transformations]
    if ready is not None:
        ready.release()
        go.wait()
    begun = time.perf_counter()
    for path in paths:
        image = read_image(path)
        loaded.answer([image], [0])
        for change in changes:
            loaded.answer([change(image)[0]], [0])
    seconds = time.perf_counter() - begun
    if out is not None:
        out.put(seconds)
    return seconds


def _bare_parallel(paths: list[Path], name: str, workers: int) -> float:
    """The same in as many processes as the run has workers, in the same environment; the slowest."""
    os.environ.update({key: os.environ.get(key, value) for key, value in WORKER_ENVIRONMENT.items()})
    context = multiprocessing.get_context("spawn")
    ready, go, out = context.Semaphore(0), context.Event(), context.Queue()
    children = [
        context.Process(target=bare_seconds, args=(paths[number::workers], name, ready, go, out))
        for number in range(workers)
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    go.set()
    seconds: float = max(out.get() for _ in children)
    for child in children:
        child.join()
    return seconds


if __name__ == "__main__":
    main("throughput")
