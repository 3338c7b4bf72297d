"""How many pose verdicts a second the judge makes, from stored predictions to stored ones, and its memory.

    python -m benchmarks.judge [--small] [--write]

Memory is that of a process that judges a run with six subjects in every image, and does nothing else.
"""

from __future__ import annotations

import tempfile
import time
from itertools import count
from pathlib import Path

from benchmarks.command import main
from benchmarks.figures import Figures, Row, best_seconds, measured_apart, peak_megabytes, short
from benchmarks.runs import LANDMARKS, run_of_poses
from instar.engine import judge
from instar.store import Store


def measure(small: bool = False) -> Figures:
    one, three, six = (4, 2, 2) if small else (4000, 1000, 8772)
    return {
        "landmarks": LANDMARKS,
        "one_subject": _speed(one, 1, repeats=1 if small else 5),
        "three_subjects": _speed(three, 3, repeats=1 if small else 5),
        "six_subjects": _memory(six, 6, small),
    }


def rows(figures: Figures) -> list[Row]:
    one, three, six = figures["one_subject"], figures["three_subjects"], figures["six_subjects"]
    return [
        Row(
            f"judging, stored predictions to stored verdicts, one subject of {figures['landmarks']} landmarks, "
            f"{one['verdicts']:,} verdicts",
            f"{short(one['verdicts_per_second'], 3)} verdicts a second",
        ),
        Row("the same with three subjects to match", f"{short(three['verdicts_per_second'], 3)} verdicts a second"),
        Row(
            f"memory of judging {six['verdicts']:,} verdicts, six subjects in every image",
            f"{short(six['peak_megabytes'])} MB at its highest, after {short(six['seconds'])} s",
        ),
    ]


def _speed(cases: int, subjects: int, repeats: int) -> Figures:
    """The best of several judgings, each by another confidence: what is judged already is not judged again."""
    with tempfile.TemporaryDirectory() as folder:
        store = run_of_poses(Path(folder), cases, subjects)
        numbers = count()
        seconds = best_seconds(lambda: judge(store, {"confidence": next(numbers) / 1000}), repeats)
        verdicts = store.verdicts(judge(store, {"confidence": 0})).height
    return {"cases": cases, "verdicts": verdicts, "verdicts_per_second": verdicts / seconds}


def _memory(cases: int, subjects: int, small: bool) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        run_of_poses(Path(folder), cases, subjects)
        return judged_once(Path(folder)) if small else measured_apart(judged_once, Path(folder))


def judged_once(folder: Path) -> Figures:
    """How long this process takes to judge a run, and the most memory that it has had since it began."""
    begun = time.perf_counter()
    name = judge(Store(folder))
    figures = {"seconds": time.perf_counter() - begun, "peak_megabytes": peak_megabytes()}
    return {**figures, "verdicts": Store(folder).verdicts(name).height}


if __name__ == "__main__":
    main("judge")
