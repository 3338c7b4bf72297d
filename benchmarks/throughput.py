"""The throughput of a run of all `met-pose` with MediaPipe Holistic, against bare processes that only make and predict.

    python -m benchmarks.throughput [--small] [--write]

Both use all cores, in the same environment, with the same segmenter. Bare processes read, find zones, transform and
predict, and keep nothing. Throughput is the slope between a short and a long run, so that loading models does not
count; the share of processor time says the same where others use the machine, too. In small mode a system that costs
nothing takes Holistic's place, all of it in this process, with the rules that need no zones.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import cv2

import instar
from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row, percentage, short
from benchmarks.inputs import drawings, photos
from instar.engine import default_workers
from instar.engine.process import WORKER_ENVIRONMENT
from instar.image import read_image
from instar.systems import MissingExtra, default_zones, system
from instar.transforms import NotApplicable

SUITE = "met-pose"


class Spent(NamedTuple):
    """Seconds by the clock, and those of processors in all processes together."""

    clock: float
    processors: float

    def less(self, other: Spent) -> Spent:
        return Spent(self.clock - other.clock, self.processors - other.processors)


def measure(small: bool = False) -> Figures:
    name = "benchmarks.overhead:costless" if small else "mediapipe-holistic"
    segmenter = "none" if small else _segmenter(name)
    workers = 1 if small else default_workers()
    few, many = (0, 2) if small else (workers, workers * 6)
    with tempfile.TemporaryDirectory() as place:
        folder = (drawings if small else photos)(Path(place) / "inputs", many, (90, 60) if small else (720, 480))
        paths = sorted(path for path in folder.iterdir() if path.suffix != ".json")[few:]
        alone = bare(paths, name, segmenter) if small else _bare_parallel(paths, name, segmenter, workers)
        runs = [
            _run(name, folder, Path(place) / f"run {count}", 0 if small else workers, count, segmenter)
            for count in (few, many)
            if count
        ]
    whole = runs[-1] if small else runs[-1].less(runs[0])
    rules = len(rules_of(segmenter))
    pairs = len(paths) * (rules + 1)
    return {
        "workers": workers,
        "cases": many,
        "rules": rules,
        "pairs": pairs,
        "pairs_per_second": pairs / whole.clock,
        "share_of_bare_throughput": alone.clock / whole.clock,
        "share_of_processor_time": alone.processors / whole.processors,
    }


def rows(figures: Figures) -> list[Row]:
    return [
        Row(
            "MediaPipe Holistic: throughput of a run against bare processes that only read, transform and predict",
            f"{percentage(figures['share_of_bare_throughput'])}; {short(figures['pairs_per_second'])} pairs a second "
            f"with {figures['workers']} workers",
        )
    ]


def rules_of(segmenter: str) -> list[instar.Transformation]:
    """What is done to every image: without a segmenter, what needs none."""
    changes = [change for rule in instar.suite(SUITE).rules for change in rule.transformations]
    return [change for change in changes if segmenter != "none" or not change.needs]


def _segmenter(name: str) -> str:
    try:
        system(name)
    except MissingExtra as error:
        raise Absent(f"MediaPipe Holistic: {error}") from None
    segmenter = default_zones()
    if segmenter is None:
        raise Absent("a segmenter; `instar models pull selfie-multiclass` gets one")
    return segmenter


def _run(name: str, folder: Path, out: Path, workers: int, limit: int, segmenter: str) -> Spent:
    """The predicting of a run, from the first case handed out to the last row committed; its processors, from loading
    to judging."""
    suite = instar.Suite("bench", tuple(instar.rule(change.id) for change in rules_of(segmenter)))
    before = _processor_seconds()
    outcome = instar.run(name, suite, folder, out=out, workers=workers, zones=segmenter, limit=limit).outcome
    assert outcome is not None
    assert outcome.statuses.keys() <= {"ok", "not applicable"}, outcome.statuses
    return Spent(outcome.seconds, _processor_seconds() - before)


def _processor_seconds() -> float:
    """Of this process and all that it has started and seen end."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def bare(paths: list[Path], name: str, segmenter: str, ready: Any = None, go: Any = None, out: Any = None) -> Spent:
    """Reading, finding zones, transforming and predicting, and nothing else; begun together with others where there are
    any."""
    cv2.setNumThreads(1)
    loaded, zones = system(name), None if segmenter == "none" else system(segmenter)
    changes = rules_of(segmenter)
    if ready is not None:
        ready.release()
        go.wait()
    begun, used = time.perf_counter(), time.process_time()
    for path in paths:
        image = read_image(path)
        loaded.answer([image], [0])
        needs = {} if zones is None else {"zones": zones.answer([image], [0])[0]}
        for change in changes:
            try:
                follow_up, _ = change(image, needs=needs)
            except NotApplicable:
                continue
            loaded.answer([follow_up], [0])
    spent = Spent(time.perf_counter() - begun, time.process_time() - used)
    if out is not None:
        out.put(spent)
    return spent


def _bare_parallel(paths: list[Path], name: str, segmenter: str, workers: int) -> Spent:
    """The same in as many processes as the run has workers, in the same environment: the clock of the slowest."""
    os.environ.update({key: os.environ.get(key, value) for key, value in WORKER_ENVIRONMENT.items()})
    context = multiprocessing.get_context("spawn")
    ready, go, out = context.Semaphore(0), context.Event(), context.Queue()
    children = [
        context.Process(target=bare, args=(paths[number::workers], name, segmenter, ready, go, out))
        for number in range(workers)
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    go.set()
    spent: list[Spent] = [out.get() for _ in children]
    for child in children:
        child.join()
    return Spent(max(one.clock for one in spent), sum(one.processors for one in spent))


if __name__ == "__main__":
    main("throughput")
