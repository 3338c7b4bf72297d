"""What Instar costs above the transformations and predictions themselves.

    python benchmarks/overhead.py [--cases 200] [--no-holistic]

With a system that costs nothing: milliseconds per pair above reading and transforming, at 720×480, in one worker;
wall time, and processor time of coordinator and worker together. Both are slopes between a short and a long run, so
that starting up does not count. With MediaPipe Holistic: the run's throughput against the same reading, transforming
and predicting in bare processes on the same cores. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

import instar
from instar.case import read_image
from instar.datasets import dataset
from instar.engine import default_workers
from instar.systems import system
from instar.warp import Warp

RULES = "met-pose/sub"
NOTHING = instar.Poses.from_array(np.full((1, 33, 2), 100.0), skeleton="mediapipe-pose-33")
# Cheap ones, so that what is above them can be told from the noise of measuring.
CHEAP = [instar.transformation(f"gamma({100 - k})") for k in range(18)]


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


def bare(paths: list[Path], name: str | None, changes: list[instar.Transformation] | None = None, ready: object = None,
         go: object = None, out: object = None) -> float:
    """Reading, transforming and, where a system is named, predicting: nothing else."""
    cv2.setNumThreads(1)
    loaded = system(name) if name else None
    changes = transformations() if changes is None else changes
    if ready is not None:
        ready.release()  # type: ignore[attr-defined]
        go.wait()  # type: ignore[attr-defined]
    begun = time.perf_counter()
    for path in paths:
        image = read_image(path)
        if loaded:
            loaded.answer([image], [0])
        for change in changes:
            follow_up, _ = change(image)
            if loaded:
                loaded.answer([follow_up], [0])
    spent = time.perf_counter() - begun
    if out is not None:
        out.put(spent)  # type: ignore[attr-defined]
    return spent


def bare_parallel(paths: list[Path], name: str, workers: int) -> float:
    """The same in as many processes as the run has workers, begun together; the wall time of the slowest."""
    context = multiprocessing.get_context("spawn")
    ready, go, out = context.Semaphore(0), context.Event(), context.Queue()
    children = [context.Process(target=bare, args=(paths[i::workers], name, None, ready, go, out))
                for i in range(workers)]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    begun = time.perf_counter()
    go.set()
    for _ in children:
        out.get()
    spent = time.perf_counter() - begun
    for child in children:
        child.join()
    return spent


def cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def run_seconds(name: str, folder: Path, out: Path, workers: int, suite: instar.Suite,
                limit: int) -> tuple[float, float]:
    """The predicting of a run: wall seconds from the first case handed out to the last row committed, and CPU."""
    before = cpu()
    finished = instar.run(name, suite, folder, out=out, workers=workers, zones="none", limit=limit)
    spent = cpu() - before
    assert finished.outcome is not None
    assert finished.outcome.statuses.keys() == {"ok"}, finished.outcome.statuses
    return finished.outcome.seconds, spent


def nothing_overhead(folder: Path, out: Path, repeats: int = 4) -> dict[str, object]:
    """The slope of a run over its cases, less the slope of reading and transforming alone."""
    paths = sorted(folder.iterdir())
    few, many = len(paths) // 4, len(paths)
    suite = instar.Suite("bench", tuple(instar.rule(t.id) for t in CHEAP))
    pairs = (many - few) * (len(CHEAP) + 1)
    bare(paths[:4], None, CHEAP)
    base, wall, processor = [], [], []
    for attempt in range(repeats):
        before = cpu()
        bare(paths[few:], None, CHEAP)
        base.append(cpu() - before)
        short = run_seconds("benchmarks.overhead:nothing", folder, out / f"s{attempt}", 1, suite, few)
        long = run_seconds("benchmarks.overhead:nothing", folder, out / f"l{attempt}", 1, suite, many)
        wall.append(long[0] - short[0])
        processor.append(long[1] - short[1])
    alone = sorted(base)[:2]
    return {"pairs": pairs, "transform_ms_per_pair": round(1000 * sum(alone) / 2 / pairs, 4),
            "overhead_ms_per_pair": round(1000 * (min(wall) - min(base)) / pairs, 4),
            "overhead_cpu_ms_per_pair": round(1000 * (min(processor) - min(base)) / pairs, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--no-holistic", action="store_true")
    asked = parser.parse_args()
    found: dict[str, object] = {"benchmark": "overhead", "size": "720x480", "rules": len(transformations())}
    with tempfile.TemporaryDirectory() as temporary:
        folder = photos(Path(temporary) / "photos", asked.cases)
        paths = sorted(folder.iterdir())
        found |= nothing_overhead(folder, Path(temporary))
        print(json.dumps(found))
        if not asked.no_holistic:
            workers = default_workers()
            few = paths[:workers * 8]
            ratios = []
            for attempt in range(2):
                alone = bare_parallel(few, "mediapipe-holistic", workers)
                whole, _ = run_seconds("mediapipe-holistic", folder, Path(temporary) / f"holistic{attempt}", workers,
                                       chosen(), len(few))
                ratios.append(alone / whole)
            rate = len(few) * (len(transformations()) + 1) / whole
            found |= {"holistic_workers": workers, "holistic_pairs_per_second": round(rate, 2),
                      "holistic_share_of_bare_throughput": round(max(ratios), 3)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
