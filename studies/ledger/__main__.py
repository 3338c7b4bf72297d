"""Run the ledger of several seeds, with real disks and clocks where this machine lets us.

    nice python -m studies.ledger [--seeds 1 2 3 4 5 6] [--entries 2] [--faults 10] [--ray] [--write]

Ten minutes on two cores. With `--ray`, the runs are worked on by nodes of a Ray cluster, which are killed every second
time. `--write` writes `studies/ledger.json` and the tables in `docs/faults.md`; each of both leaves the other's alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from studies.ledger.faults import FAULTS
from studies.ledger.study import Ledger, Outcome

ROOT = Path(__file__).parents[2]
RESULT, PAGE = ROOT / "studies" / "ledger.json", ROOT / "docs" / "faults.md"
BEGIN, END = "<!-- From here on `python -m studies.ledger --write` makes this page. -->", "<!-- Up to here. -->"
HERE, RAY = "On one machine", "On a Ray cluster"
PROCESSES = 0.35
"""How likely each engine with processes is, beside the one without."""


def summary(outcomes: Sequence[Outcome], seeds: Sequence[int], real: bool, seconds: float) -> dict[str, Any]:
    ends: Counter[tuple[str, str, str]] = Counter()
    killed: Counter[str] = Counter()
    for outcome in outcomes:
        ends += outcome.ends
        killed += outcome.calls.killed
    return {
        "seeds": list(seeds),
        "disk": "a tmpfs of 8 MB per run, filled or mounted read-only" if real else "injected where files are written",
        "clock": "a library that has the time of day of every process" if real else "Python's time.time of the driver",
        "entries": len(outcomes),
        "lives": ends.total(),
        "rows": sum(outcome.rows for outcome in outcomes),
        "calls": sum(outcome.calls.total for outcome in outcomes),
        "calls again": sum(outcome.calls.again for outcome in outcomes),
        "processes killed": dict(sorted(killed.items())),
        "faults": _counted((fault, end, count) for (fault, _, end), count in ends.items()),
        "engines": _counted((engine, end, count) for (_, engine, end), count in ends.items()),
        "wrong": [{"events": one.events, "wrong": one.wrong} for one in outcomes if one.wrong],
        "seconds": round(seconds),
    }


def _counted(counts: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = {}
    for name, end, count in counts:
        table.setdefault(name, Counter())[end] += count
    return {name: dict(sorted(ends.items())) for name, ends in sorted(table.items())}


def page(result: Mapping[str, Any]) -> str:
    """The table of the page: what happened how often, and how lives ended."""
    ends = ("done", "interrupted", "stopped", "killed", "refused")
    rows = [
        f"| {name} | {sum(counts.values())} | {' | '.join(str(counts.get(end, '')) for end in ends)} |"
        for name in (*FAULTS, *(result["faults"].keys() - FAULTS.keys()))
        if (counts := result["faults"].get(name))
    ]
    victims = ", ".join(f"{role.lower()} {count}" for role, count in result["processes killed"].items())
    lines = [
        f"Runs: {result['entries']}, of seeds {', '.join(map(str, result['seeds']))}, with {result['lives']} lives and "
        f"{result['rows']:,} rows in the end. The system was called {result['calls']:,} times. Of these calls "
        f"{result['calls again']:,} were about an input that it had been asked about before: then its answer had not "
        "been committed, or was forgotten as it should be. Processes that were killed beside drivers: "
        f"{victims}. The contract was broken {len(result['wrong'])} times.",
        "",
        f"The disk: {result['disk']}. The clock: {result['clock']}.",
        "",
        f"| what happens | lives | {' | '.join(ends)} |",
        f"|---|---|{'---|' * len(ends)}",
        *rows,
    ]
    return "\n".join(lines)


def _of_this_machine(options: argparse.Namespace, real: bool) -> list[Outcome]:
    ledgers = [Ledger(seed, options.faults, PROCESSES, real=real) for seed in options.seeds]
    work = [(ledger, number) for number in range(options.entries) for ledger in ledgers]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda pair: pair[0].entry(pair[1]), work))


def _of_ray(options: argparse.Namespace, real: bool) -> list[Outcome]:
    """One after the other: a node that dies would be missed by all."""
    outcomes = []
    for seed in options.seeds:
        ledger = Ledger(seed, options.faults, 9, real=real, engines=("this process", "Ray"))
        assert ledger.nodes is not None
        try:
            outcomes += [ledger.entry(number) for number in range(options.entries)]
        finally:
            ledger.nodes.close()
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--entries", type=int, default=2, help="runs of each seed")
    parser.add_argument("--faults", type=int, default=10, help="of each run")
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    real = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("cc") is not None
    began = time.monotonic()
    outcomes = _of_ray(options, real) if options.ray else _of_this_machine(options, real)
    result = summary(outcomes, options.seeds, real, time.monotonic() - began)
    print(json.dumps(result, indent=1))
    if options.write:
        results = json.loads(RESULT.read_text()) | {RAY if options.ray else HERE: result}
        RESULT.write_text(json.dumps(results, indent=1) + "\n")
        text = PAGE.read_text("utf-8")
        before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
        tables = "\n\n".join(f"### {name}\n\n{page(results[name])}" for name in (HERE, RAY) if name in results)
        PAGE.write_text(f"{before}\n\n{tables}\n\n{after}", "utf-8")
    sys.exit(bool(result["wrong"]))


if __name__ == "__main__":
    main()
