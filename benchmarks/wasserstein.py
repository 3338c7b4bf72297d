"""The exact Wasserstein distance between runs, beside the optimal-transport library POT: `pip install POT`.

    python -m benchmarks.wasserstein [--small] [--write]

Twenty-five runs of twenty futures with twelve positions each are compared with one another, 300 pairs, as the
relation `wvc` does for one case and one rule; POT solves the same pairs one after the other, by its bare solver
(`ot.emd2` on `ot.dist`) and by its function for two samples (`ot.solve_sample`).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.command import main
from benchmarks.figures import Absent, Figures, Row, best_seconds, short
from instar.stats import wasserstein

STEPS = 12
Sets = np.ndarray[Any, np.dtype[np.float64]]
"""(runs, futures, coordinates)"""


def measure(small: bool = False) -> Figures:
    runs, futures = (4, 5) if small else (25, 20)
    rng = np.random.default_rng(0)
    return {
        "runs": runs,
        "futures": futures,
        "steps": STEPS,
        "walks": _beside(_walks(rng, runs, futures), small),
        "normal": _beside(rng.normal(size=(runs, futures, 2 * STEPS)), small),
    }


def rows(figures: Figures) -> list[Row]:
    kinds = (figures["walks"], figures["normal"])
    return [
        Row(
            f"W2 between all pairs of {figures['runs']} runs of {figures['futures']} futures, against the transport "
            "library POT: futures that fan out from one place, and points by chance",
            f"{' and '.join(short(each['microseconds']) for each in kinds)} µs a pair: "
            f"{' and '.join(short(each['times_faster_than_emd2']) for each in kinds)} times faster than `ot.emd2` on "
            f"`ot.dist`, {' and '.join(short(each['times_faster_than_solve_sample']) for each in kinds)} times than "
            f"`ot.solve_sample`, equal to {max(each['difference'] for each in kinds):.0e}",
        )
    ]


def _walks(rng: np.random.Generator, runs: int, futures: int) -> Sets:
    """Runs of a predictor: futures that fan out from one place."""
    heading, speed = rng.normal(0, 0.3, (runs, futures, 1)), rng.normal(12, 2, (runs, futures, 1))
    reach = speed * np.arange(1, STEPS + 1)
    paths = np.stack([700 + reach * np.cos(heading), 500 + reach * np.sin(heading)], -1)
    return (paths + rng.normal(0, 1, paths.shape)).reshape(runs, futures, -1)


def _beside(sets: Sets, small: bool) -> Figures:
    os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")  # else it imports all of PyTorch, for nothing
    try:
        import ot
    except ImportError:
        raise Absent("the transport library POT (pip install POT)") from None
    first, second = np.triu_indices(len(sets), 1)
    pairs = list(zip(sets[first], sets[second], strict=True))
    even = np.full(sets.shape[1], 1 / sets.shape[1])

    def solved() -> list[float]:
        return [ot.emd2(even, even, ot.dist(a, b)) for a, b in pairs]

    own = best_seconds(lambda: wasserstein(sets), 1 if small else 30)
    bare = best_seconds(solved, 1 if small else 5)
    whole = best_seconds(lambda: [ot.solve_sample(a, b).value for a, b in pairs], 1 if small else 3)
    differences = np.abs(wasserstein(sets)[first, second] - np.sqrt(solved()))
    return {
        "microseconds": 1e6 * own / len(first),
        "times_faster_than_emd2": bare / own,
        "times_faster_than_solve_sample": whole / own,
        "difference": max(float(differences.max()), float(np.finfo(float).eps)),  # two doubles agree no better
    }


if __name__ == "__main__":
    main("wasserstein")
