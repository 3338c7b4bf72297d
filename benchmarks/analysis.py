"""What it costs to ask a run of ten million verdicts everything: seconds per question, and memory at its highest.

    python -m benchmarks.analysis [--small] [--write]

The run folder has verdicts by chance under the 123 rules of `met-pose`; a process of its own asks.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.command import main
from benchmarks.figures import Figures, Row, measured_apart, peak_megabytes, short
from benchmarks.runs import run_of_verdicts
from instar.analysis import open_run


def measure(small: bool = False) -> Figures:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        _, cases, rules = run_of_verdicts(folder, 20 if small else 81_301, 123)
        sizes = {"cases": len(cases), "rules": len(rules), "verdicts": len(cases) * len(rules)}
        return {**sizes, **(questions(folder) if small else measured_apart(questions, folder))}


def rows(figures: Figures) -> list[Row]:
    return [
        Row(
            f"everything a report asks of {figures['verdicts']:,} verdicts ({figures['rules']} rules × "
            f"{figures['cases']:,} cases): matrix, rates, curves, coverage, Table II, worst",
            f"{short(figures['total_seconds'])} s together, {short(figures['seconds']['matrix'])} s of it reading; "
            f"{short(figures['peak_megabytes'])} MB at its highest",
        )
    ]


def questions(folder: Path) -> Figures:
    """Seconds of each question, one after the other: the first one reads the verdicts."""
    opened = open_run(folder)
    asking: dict[str, Callable[[], object]] = {
        "matrix": opened.severities,
        "rates": lambda: opened.rates(0.2),
        "any_rule": lambda: opened.any_rule(0.2),
        "families": lambda: opened.family_rates(0.2),
        "curves": lambda: opened.curves("poses"),
        "noise": opened.noise,
        "coverage": lambda: opened.coverage(0.2),
        "violated_counts": lambda: opened.violated_counts("poses"),
        "worst": lambda: opened.worst(100),
        "unjudged": opened.unjudged,
    }
    seconds = {}
    for name, question in asking.items():
        begun = time.perf_counter()
        question()
        seconds[name] = time.perf_counter() - begun
    return {"seconds": seconds, "total_seconds": sum(seconds.values()), "peak_megabytes": peak_megabytes()}


if __name__ == "__main__":
    main("analysis")
