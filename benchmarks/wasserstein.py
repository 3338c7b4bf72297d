"""The exact Wasserstein distance between runs, beside the optimal-transport library POT: `pip install POT`.

    python -m benchmarks.wasserstein

Twenty-five runs of twenty futures with twelve positions each are compared with one another, 300 pairs, as the
relation `wvc` does for one case and one rule; POT solves the same pairs one after the other, by its bare solver
(`ot.emd2` on `ot.dist`) and by its function for two samples (`ot.solve_sample`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ot

from instar.stats import wasserstein

RUNS, FUTURES, STEPS = 25, 20, 12


def walks(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Runs of a predictor: futures that fan out from one place."""
    heading, speed = rng.normal(0, 0.3, (RUNS, FUTURES, 1)), rng.normal(12, 2, (RUNS, FUTURES, 1))
    reach = speed * np.arange(1, STEPS + 1)
    paths = np.stack([700 + reach * np.cos(heading), 500 + reach * np.sin(heading)], -1)
    return (paths + rng.normal(0, 1, paths.shape)).reshape(RUNS, FUTURES, -1)


def timed(task: Callable[[], Any], tries: int) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(tries):
        begun = time.perf_counter()
        result = task()
        best = min(best, time.perf_counter() - begun)
    return best, result


def main() -> None:
    rng = np.random.default_rng(0)
    first, second = np.triu_indices(RUNS, 1)
    even = np.full(FUTURES, 1 / FUTURES)
    found = {}
    for name, sets in (("walks", walks(rng)), ("normal", rng.normal(size=(RUNS, FUTURES, 2 * STEPS)))):
        ours, mine = timed(lambda: wasserstein(sets), 30)  # noqa: B023
        pairs = list(zip(sets[first], sets[second], strict=True))
        theirs, reference = timed(lambda: [ot.emd2(even, even, ot.dist(a, b)) for a, b in pairs], 5)  # noqa: B023
        whole, _ = timed(lambda: [ot.solve_sample(a, b).value for a, b in pairs], 3)  # noqa: B023
        found[name] = {
            "microseconds": 1e6 * ours / len(first),
            "times_faster_than_emd2": theirs / ours,
            "times_faster_than_solve_sample": whole / ours,
            "difference": float(np.abs(mine[first, second] - np.sqrt(reference)).max()),
        }
    print(json.dumps({"benchmark": "wasserstein", **found}))


if __name__ == "__main__":
    main()
