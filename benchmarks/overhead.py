"""What Instar costs above the transformations and predictions themselves.

    python -m benchmarks.overhead [--cases 240] [--no-holistic]

With a system that costs nothing, in one worker, at 720×480: the wall time per pair that the worker does not spend
reading and transforming (it times both itself, so that their own noise cancels), as the slope between a short and a
long run, so that starting up does not count. With MediaPipe Holistic: the run's throughput against the same reading,
transforming and predicting in bare processes on the same cores. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import instar
from instar.case import read_input
from instar.datasets import dataset
from instar.engine import cases, default_workers
from instar.engine.coordinator import WORKER_ENVIRONMENT
from instar.image import read_image
from instar.systems import system
from instar.warp import Warp

RULES = "met-pose/sub"
NOTHING = instar.Poses.from_array(np.full((1, 33, 2), 100.0), skeleton="mediapipe-pose-33")
TIMES = "INSTAR_BENCHMARK_TIMES"


def timed(function: Callable[..., Any], total: ctypes.c_double) -> Callable[..., Any]:
    """The function, with the seconds it takes added up in a file that the benchmark can read."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            total.value += time.perf_counter() - begun

    return wrapped


if TIMES in os.environ:  # in a worker of this benchmark
    with Path(os.environ[TIMES]).open("r+b") as _file:
        _total = ctypes.c_double.from_buffer(mmap.mmap(_file.fileno(), 8))
    setattr(cases, "read_input", timed(read_input, _total))  # noqa: B010
    instar.Transformation.__call__ = timed(instar.Transformation.__call__, _total)  # type: ignore[method-assign]


def nothing(image: np.ndarray) -> instar.Poses:
    """A system that costs nothing."""
    return NOTHING


def photos(folder: Path, count: int) -> Path:
    """Pictures of 720×480 with people in them."""
    sources = [read_image(case.path) for case in dataset("sample-photos").cases() if case.path]
    folder.mkdir()
    for number in range(count):
        image = sources[number % len(sources)]
        shifted = image.warped(Warp.rotation(image.size, (number * 7) % 15 - 7))
        pixels = shifted.warped(Warp.resize(image.size, (720, 480))).pixels
        cv2.imwrite(str(folder / f"{number:04d}.jpg"), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
    return folder


def transformations() -> list[instar.Transformation]:
    """Those of the suite that need no segmenter: its cost is not the question here."""
    return [t for rule in instar.suite(RULES).rules for t in rule.transformations if not t.needs]


def chosen() -> instar.Suite:
    return instar.Suite("bench", tuple(instar.rule(t.id) for t in transformations()))


def bare(paths: list[Path], name: str | None, ids: list[str], ready: Any, go: Any, out: Any) -> None:
    """Reading, transforming and, where a system is named, predicting: nothing else."""
    cv2.setNumThreads(1)
    loaded = system(name) if name else None
    changes = [instar.transformation(text) for text in ids]
    ready.release()
    go.wait()
    begun = time.perf_counter()
    for path in paths:
        image = read_image(path)
        if loaded:
            loaded.answer([image], [0])
        for change in changes:
            follow_up, _ = change(image)
            if loaded:
                loaded.answer([follow_up], [0])
    out.put(time.perf_counter() - begun)


def bare_parallel(paths: list[Path], name: str | None, workers: int, ids: list[str]) -> float:
    """The same in as many processes as the run has workers, begun together, in the same environment; the slowest."""
    os.environ.update({key: os.environ.get(key, value) for key, value in WORKER_ENVIRONMENT.items()})
    context = multiprocessing.get_context("spawn")
    ready, go, out = context.Semaphore(0), context.Event(), context.Queue()
    children = [
        context.Process(target=bare, args=(paths[i::workers], name, ids, ready, go, out)) for i in range(workers)
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    go.set()
    spent: float = max(out.get() for _ in children)
    for child in children:
        child.join()
    return spent


def run_seconds(name: str, folder: Path, out: Path, workers: int, limit: int) -> float:
    """The predicting of a run: wall seconds from the first case handed out to the last row committed."""
    finished = instar.run(name, chosen(), folder, out=out, workers=workers, zones="none", limit=limit)
    assert finished.outcome is not None
    assert finished.outcome.statuses.keys() == {"ok"}, finished.outcome.statuses
    return finished.outcome.seconds


def nothing_overhead(folder: Path, out: Path, repeats: int = 3) -> dict[str, object]:
    """Wall time that is neither reading nor transforming, per pair."""
    many = len(list(folder.iterdir()))
    few = many // 4
    pairs = (many - few) * (len(transformations()) + 1)
    times = out / "times"
    os.environ[TIMES] = str(times)
    measured = []
    for attempt in range(repeats):
        outside, inside = [], []
        for count in (few, many):
            np.zeros(1).tofile(times)
            wall = run_seconds("benchmarks.overhead:nothing", folder, out / f"{attempt}-{count}", 1, count)
            inside.append(float(np.fromfile(times)[0]))
            outside.append(wall - inside[-1])
        measured.append((1000 * (outside[1] - outside[0]) / pairs, 1000 * (inside[1] - inside[0]) / pairs))
    del os.environ[TIMES]
    return {
        "pairs": pairs,
        "overhead_ms_per_pair": round(statistics.median(o for o, _ in measured), 4),
        "overheads": [round(o, 4) for o, _ in measured],
        "read_and_transform_ms_per_pair": round(statistics.median(t for _, t in measured), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=240)
    parser.add_argument("--no-holistic", action="store_true")
    arguments = parser.parse_args()
    measured: dict[str, object] = {"benchmark": "overhead", "size": "720x480", "rules": len(transformations())}
    with tempfile.TemporaryDirectory() as temporary:
        folder = photos(Path(temporary) / "photos", arguments.cases)
        paths = sorted(folder.iterdir())
        measured |= nothing_overhead(folder, Path(temporary))
        print(json.dumps(measured))
        if not arguments.no_holistic:
            workers = default_workers()
            few, many = workers * 4, workers * 16
            names = [t.id for t in transformations()]
            alone = bare_parallel(paths[few:many], "mediapipe-holistic", workers, names)
            seconds = [
                run_seconds("mediapipe-holistic", folder, Path(temporary) / f"holistic{count}", workers, count)
                for count in (few, many)
            ]
            whole = seconds[1] - seconds[0]
            rate = (many - few) * (len(names) + 1) / whole
            measured |= {
                "holistic_workers": workers,
                "holistic_pairs_per_second": round(rate, 2),
                "holistic_share_of_bare_throughput": round(alone / whole, 3),
            }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
