"""What it costs to ask a run of ten million verdicts everything: seconds per question, and memory at its highest.

    python -m benchmarks.analysis [--cases 81301]

It makes a run folder of 123 rules (met-pose) in a temporary place and asks in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from instar import __version__
from instar.analysis import open_run
from instar.store import JudgingInfo, Store
from instar.suites import suite
from tests.manifests import manifest_of

PART = 400_000


def made(folder: Path, cases: int, seed: int = 0) -> Store:
    """A run folder with verdicts only: severities of every size, some not applicable, some failed, two targets."""
    store = Store(folder)
    rules = [f"{one.id} => poses" for one in suite("met-pose").rules]
    store.write_manifest(manifest_of(suites=("bench",), rules=tuple(rules)))
    state = JudgingInfo(__version__, {}, tuple(rules), (), ())
    store.replace_verdicts("default", _verdicts(rules, cases, np.random.default_rng(seed)), state)
    return store


def _verdicts(rules: list[str], cases: int, rng: np.random.Generator) -> Iterator[pl.DataFrame]:
    at_once = max(1, PART // len(rules))
    for start in range(0, cases, at_once):
        names = [f"folder {n % 97:02}/picture {n:07}.jpg" for n in range(start, min(cases, start + at_once))]
        count = len(names) * len(rules)
        severity = np.where(rng.random(count) < 0.02, np.inf, rng.exponential(0.08, count))
        status = rng.choice(["ok", "not applicable", "error"], count, p=[0.96, 0.03, 0.01])
        frame = pl.DataFrame(
            {
                "case": pl.Series(names).repeat_by(len(rules)).explode(),
                "target": "0",
                "rule": rules * len(names),
                "severity": severity,
                "kind": pl.Series(["lost" if np.isinf(s) else None for s in severity]),
                "status": status,
            }
        )
        bad = pl.col("status") != "ok"
        yield frame.with_columns(
            severity=pl.when(~bad).then("severity"),
            kind=pl.when(~bad).then("kind"),
            reason=pl.when(bad).then(pl.lit("as drawn")),
            compared=pl.lit(33, pl.Int32),
            worst=pl.lit("left_wrist"),
        )


def asked(folder: Path) -> dict[str, Any]:
    opened = open_run(folder)
    questions: dict[str, Callable[[], object]] = {
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
    for name, question in questions.items():
        start = time.perf_counter()
        question()
        seconds[name] = round(time.perf_counter() - start, 3)
    verdicts = int((opened.severities().status > 0).sum())
    return {
        "verdicts": verdicts,
        "seconds": seconds,
        "total_seconds": round(sum(seconds.values()), 2),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=81_301)
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(asked(given.ask)))
        return
    with tempfile.TemporaryDirectory() as place:
        made(Path(place) / "run", given.cases)
        subprocess.run([sys.executable, "-m", "benchmarks.analysis", "--ask", str(Path(place) / "run")], check=True)


if __name__ == "__main__":
    main()
