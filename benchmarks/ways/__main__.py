"""One way, in a process of its own: prints what it took as one line of JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib import import_module
from pathlib import Path

import cv2

from benchmarks.ways.clock import Clock, Work

WAYS = {
    "instar": "instar_run:with_one_worker",
    "instar in one process": "instar_run:in_this_process",
    "instar on all cores": "instar_run:on_all_cores",
    "opencv": "loops:with_opencv",
    "albumentations": "loops:with_albumentations",
    "nrtk": "nrtk_evaluation:with_maite",
    "gemtest": "gemtest_relations:as_in_its_examples",
    "gemtest in one relation": "gemtest_relations:in_one_relation",
}


def took(way: str, folder: Path, cases: int, out: Path) -> dict[str, float]:
    """Seconds, seconds of the processor, and those of them in which images were read and made, with their numbers.

    What the way imports is imported before. On one thread, as a worker of Instar works.
    """
    clock = Clock(out.with_name(f"{out.name}.clock"))
    module, _, name = WAYS[way].partition(":")
    paths = sorted(folder.iterdir())[:cases]
    work: Work = getattr(import_module(f"benchmarks.ways.{module}"), name)(paths, out, clock)
    cv2.setNumThreads(1)
    begun, spent = time.perf_counter(), _processor_seconds()
    work()
    seconds, spent = time.perf_counter() - begun, _processor_seconds() - spent
    return {"seconds": seconds, "processor_seconds": spent, **clock.times()._asdict()}


def _processor_seconds() -> float:
    """Of this process and of those that it started and that ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    _way, _folder, _cases, _out = sys.argv[1:]
    print(json.dumps(took(_way, Path(_folder), int(_cases), Path(_out))))
