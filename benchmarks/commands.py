"""What a user waits for: the import, the help, and the report of a run of 100 cases.

    python -m benchmarks.commands [--small] [--write]

Each is a process of its own, interpreter included, except for the report in small mode.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import xxhash

import instar
from benchmarks.command import main
from benchmarks.figures import Figures, Row, best_seconds, short
from benchmarks.inputs import drawings, photos
from instar.report import write_report

RULES = "met-pose/sub"


def measure(small: bool = False) -> Figures:
    repeats = 1 if small else 5
    return {
        "import_s": best_seconds(partial(_python, "-c", "import instar"), repeats),
        "help_s": best_seconds(partial(_python, "-m", "instar", "--help"), repeats),
        "report": _report(small),
    }


def rows(figures: Figures) -> list[Row]:
    report = figures["report"]
    return [
        Row(
            f"a report of {report['cases']} cases, {report['rules']} rules, {report['pairs']} pairs",
            f"{short(report['seconds'])} s, {report['megabytes']:.1f} MB",
        ),
        Row("`import instar`", f"{short(figures['import_s'])} s, interpreter included"),
        Row("`instar --help`", f"{short(figures['help_s'])} s"),
    ]


def unsteady(image: np.ndarray) -> instar.Poses:
    """A system that is wrong everywhere, so that there are pairs to draw: a pose by chance, the same for the same
    image."""
    rng = np.random.default_rng(xxhash.xxh3_64_intdigest(image.tobytes()))
    height, width = image.shape[:2]
    return instar.Poses.from_array(rng.uniform(0.1, 0.9, (1, 33, 2)) * (width, height), skeleton="mediapipe-pose-33")


def _report(small: bool) -> Figures:
    count, size, images = (2, (90, 60), 2) if small else (100, (720, 480), 24)
    with tempfile.TemporaryDirectory() as place:
        folder = (drawings if small else photos)(Path(place) / "inputs", count, size)
        suite, out, page = "mirror(h)" if small else RULES, Path(place) / "run", Path(place) / "report.html"
        run = instar.run(
            "benchmarks.commands:unsteady", suite, folder, out=out, workers=0 if small else None, zones="none"
        )
        if small:
            seconds = best_seconds(lambda: write_report([run], page, images=images), 1)
        else:
            work = partial(_python, "-m", "instar", "report", str(out), "--out", str(page), "--images", str(images))
            seconds = best_seconds(work, 2)
        sizes = {"cases": count, "rules": len(run.manifest.rules), "pairs": images}
        return {**sizes, "seconds": seconds, "megabytes": page.stat().st_size / 1e6}


def _python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main("commands")
