"""How long the viewer takes over a large run: to start, for its first page, and for every filter.

    python -m benchmarks.viewer [--small] [--write]

Times are whole answers of the application, in seconds; no network lies between.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row, peak_megabytes, short
from benchmarks.runs import run_of_verdicts
from instar.viewer import application

PORT = 8000
PATIENCE = 60
"""Seconds after which a viewer that has still not read its run never will."""
FILTERS = (
    "status=all",
    "status=kept",
    "sort=severity",
    "status=not applicable",
    "status=failed",
    "threshold=0.5",
    "threshold=inf",
    "kind=lost&status=all",
    "family=gamma",
    "rule={rule}&status=all",
    "rule={rule}",
    "sort=case&status=all",
    "sort=rule&status=all",
    "sort=least&status=all",
    "q=00123&status=all",
    "q=7&sort=case",
    "slice=brightness > median&status=all",
    "slice=place = street",
    "slice=sharpness ≤ lower quartile&kind=invented&sort=rule",
    "page=9999",
    "group=body",
)


def measure(small: bool = False) -> Figures:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        _, cases, rules = run_of_verdicts(folder, *((20, 20) if small else (10_000, 100)))
        sizes = {"cases": len(cases), "rules": len(rules), "verdicts": len(cases) * len(rules)}
        answers = _answers(folder, cases[len(cases) // 2], rules[7])
    return {**sizes, "filters": len(FILTERS), **answers, "peak_megabytes": peak_megabytes()}


def rows(figures: Figures) -> list[Row]:
    return [
        Row(
            f"the viewer on {figures['verdicts']:,} verdicts ({figures['rules']} rules × {figures['cases']:,} cases)",
            f"read in {short(figures['start_s'])} s in the background; then the first page in "
            f"{short(figures['first_page_s'])} s, {figures['filters']} filters in "
            f"{short(figures['filter_median_s'])} s in the median and {short(figures['filter_worst_s'])} s at worst",
        )
    ]


def _answers(folder: Path, case: str, rule: str) -> Figures:
    """Seconds of answers; the first of the filters come while the chart library still warms up."""
    try:
        from starlette.testclient import TestClient
    except (ImportError, RuntimeError):
        raise Absent("httpx, to ask the viewer without a network (pip install httpx)") from None
    begun = time.perf_counter()
    app = application([folder], port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:

        def seconds(address: str) -> float:
            at = time.perf_counter()
            answer = client.get(address)
            assert answer.status_code == 200, answer.text
            return time.perf_counter() - at

        run = client.get("/gallery").url.params["run"]  # what the viewer itself calls it in addresses
        gallery = f"/gallery?run={quote(run)}"
        first = seconds(gallery)
        while "data-waiting" in (page := client.get(gallery).text):
            if time.perf_counter() - begun > PATIENCE:
                raise RuntimeError(f"the viewer shows nothing after {PATIENCE} s; its page is\n{page}")
            time.sleep(0.01)
        start = time.perf_counter() - begun
        first_page = seconds(gallery)
        filters = [seconds(f"{gallery}&{each.format(rule=quote(rule))}") for each in FILTERS]
        return {
            "first_answer_s": first,
            "start_s": start,
            "first_page_s": first_page,
            "filter_median_s": statistics.median(filters),
            "filter_worst_s": max(filters),
            "overview_s": seconds("/"),
            "rule_s": seconds(f"/rule?run={quote(run)}&rule={quote(rule)}"),
            "case_s": seconds(f"/case?run={quote(run)}&case={quote(case)}"),
            "compare_s": seconds(f"/compare?a={quote(run)}&b={quote(run)}"),
        }


if __name__ == "__main__":
    main("viewer")
