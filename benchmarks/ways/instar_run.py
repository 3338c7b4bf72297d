"""Instar: a run with its defaults, predicted and judged; with one worker, so that it has no more cores than others."""

from __future__ import annotations

import os
from functools import cache, partial
from pathlib import Path

import numpy as np

import instar
from benchmarks.ways.clock import Clock, Work
from benchmarks.ways.rules import RULES, SKELETON, pose
from instar.case import read_input
from instar.engine import cases

CLOCK = "INSTAR_BENCHMARK_CLOCK"


def with_one_worker(paths: list[Path], out: Path, clock: Clock) -> Work:
    os.environ[CLOCK] = str(clock.path)  # the worker times itself
    return partial(_run, paths, out, 1)


def on_all_cores(paths: list[Path], out: Path, clock: Clock) -> Work:
    """The default. What several workers read and make at the same time is not timed."""
    return partial(_run, paths, out, None)


def in_this_process(paths: list[Path], out: Path, clock: Clock) -> Work:
    def work() -> None:
        make = instar.Transformation.__call__
        _time(clock)
        try:
            _run(paths, out, 0)
        finally:
            setattr(cases, "read_input", read_input)  # noqa: B010
            instar.Transformation.__call__ = make  # type: ignore[method-assign]

    return work


def estimator(pixels: np.ndarray) -> instar.Poses:
    """The system under test."""
    return _answer(pixels.shape[1], pixels.shape[0])


@cache
def _answer(width: int, height: int) -> instar.Poses:
    return instar.Poses.from_array(pose(width, height)[None], skeleton=SKELETON)


def _run(paths: list[Path], out: Path, workers: int | None) -> None:
    suite = instar.Suite("peers", tuple(instar.rule(rule) for rule in RULES))
    finished = instar.run(f"{__name__}:estimator", suite, paths[0].parent, out=out, workers=workers, limit=len(paths))
    assert finished.outcome is not None
    assert finished.outcome.statuses.keys() == {"ok"}, finished.outcome.statuses


def _time(clock: Clock) -> None:
    """From now on the engine in this process times how it reads and makes."""
    setattr(cases, "read_input", clock.reading(read_input))  # noqa: B010
    instar.Transformation.__call__ = clock.making(instar.Transformation.__call__)  # type: ignore[method-assign]


if CLOCK in os.environ:  # in the worker
    _time(Clock(Path(os.environ[CLOCK])))
