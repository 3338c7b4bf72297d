"""The page: docs/benchmarks.md has a table that is made of the stored results, and prose that is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import performance

NAMES = (
    "judge",
    "order",
    "overhead",
    "peers",
    "throughput",
    "predictors",
    "planning",
    "transforms",
    "gpu",
    "mutation",
    "insertion",
    "wasserstein",
    "analysis",
    "viewer",
    "million",
    "commands",
    "detectors",
)
"""The benchmarks, in the order of the page."""
RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN = "<!-- From here on `python -m benchmarks --write` makes this page, of benchmarks/results.json. -->"
END = "<!-- Up to here. -->"
SETTING = ("instar", "python", "machine")
"""What a result says of where it was measured, beside its date."""

Results = Mapping[str, Mapping[str, Any]]
"""By benchmark: its figures, the date, and where they were measured."""


def stored_results() -> Results:
    results: Results = json.loads(RESULTS.read_text("utf-8"))
    return results


def store_results(results: Results) -> None:
    """Write the results, and the pages anew that are made of them."""
    in_order = {name: results[name] for name in NAMES if name in results}
    RESULTS.write_text(json.dumps(in_order, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8"), in_order), "utf-8")
    performance.write(in_order)


def page(text: str, results: Results) -> str:
    """The page with its table made anew; the prose around it stays."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} has to have the lines {BEGIN} and {END}, between which its table goes")
    return f"{before}{BEGIN}\n\n{table(results)}\n{END}{after}"


def table(results: Results) -> str:
    lines = ["| what | command | found | measured |", "|---|---|---|---|"]
    for name in NAMES:
        if name in results:
            lines += [
                f"| {_cell(row.what)} | `python -m benchmarks.{name}` | {_cell(row.words)} | {results[name]['date']} |"
                for row in import_module(f"benchmarks.{name}").rows(results[name]["figures"])
            ]
    return "\n".join([*lines, "", *_settings(results), *_missing(results)]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _settings(results: Results) -> list[str]:
    """On which machines, with which Python and which Instar; one line each."""
    settings: dict[tuple[str, ...], list[str]] = {}
    for name in NAMES:
        if name in results:
            settings.setdefault(tuple(results[name][part] for part in SETTING), []).append(f"`{name}`")
    return [
        f"* Instar {instar}, Python {python}, {machine}: {', '.join(names)}"
        for (instar, python, machine), names in settings.items()
    ]


def _missing(results: Results) -> list[str]:
    missing = [name for name in NAMES if name not in results]
    return [f"* Not measured yet: {', '.join(f'`{name}`' for name in missing)}"] if missing else []
