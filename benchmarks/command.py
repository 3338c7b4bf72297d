"""The command: measure all benchmarks or some, print their figures, and make the page anew.

Every benchmark prints one JSON object as a line; what is in hand, and what is skipped and why, is said on stderr.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import instar
from benchmarks.figures import Absent, Figures, rounded
from benchmarks.page import NAMES, store_results, stored_results
from instar.engine import default_workers


def main(name: str | None = None, own: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """All benchmarks, or the one that is named with the options of its own: parameters of its `measure`."""
    own = own or {}
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks{f'.{name}' if name else ''}", description=_help(name))
    if name is None:
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(NAMES)}; all by default")
    for option, settings in own.items():
        parser.add_argument(f"--{option}", **settings)
    parser.add_argument("--small", action="store_true", help="at a size that takes a second: only to see that it runs")
    parser.add_argument("--write", action="store_true", help="store the figures, and make docs/benchmarks.md anew")
    chosen = vars(parser.parse_args())
    small, write, names = chosen.pop("small"), chosen.pop("write"), chosen.pop("names", [name])
    options = {option: value for option, value in chosen.items() if value is not None}
    for unknown in set(names) - {*NAMES, None}:
        parser.error(f"there is no benchmark {unknown}; there are {', '.join(NAMES)}")
    if write and (small or options):
        parser.error("--write stores what is measured at full size and on the data that a benchmark names itself")
    for each in names or NAMES:
        figures = _figures(each, small, options)
        if figures is not None:
            print(json.dumps({"benchmark": each, **figures}, ensure_ascii=False), flush=True)
        if figures is not None and write:
            store_results({**stored_results(), each: {"figures": figures, **setting()}})


def setting() -> dict[str, str]:
    """When and where something is measured."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{default_workers()} cores, {platform.system()} on {platform.machine()}",
        "python": platform.python_version(),
        "instar": instar.__version__,
    }


def _figures(name: str, small: bool, options: Mapping[str, Any]) -> Figures | None:
    print(f"{name} …", file=sys.stderr, flush=True)
    begun = time.perf_counter()
    try:
        figures = rounded(import_module(f"benchmarks.{name}").measure(small, **options))
    except Absent as absent:
        print(f"{name}: skipped. It needs {absent}", file=sys.stderr, flush=True)
        return None
    print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    return figures


def _help(name: str | None) -> str:
    return (import_module(f"benchmarks.{name}" if name else "benchmarks").__doc__ or "").partition("\n\n")[0]
