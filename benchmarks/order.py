"""Whether a run is judged as fast where its dataset lists its cases in another order than their ids.

    python -m benchmarks.order [--small] [--write]

The same predictions, stored by the cases' ids and in an order by chance. Seconds are those of the processor.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import polars as pl

from benchmarks.command import main
from benchmarks.figures import Figures, Row, short
from benchmarks.runs import run_of_poses
from instar.engine import judge
from instar.store import Store

PART = 200_000
"""Rows of a part, as those of a run that is done."""


def measure(small: bool = False) -> Figures:
    cases, copies, repeats = (2, 2, 1) if small else (2000, 10, 3)
    with tempfile.TemporaryDirectory() as place:
        first = run_of_poses(Path(place) / "first", cases, 1)
        stores = [_ordered(first, Path(place) / str(seed), copies, seed) for seed in (None, 1)]
        by_id, by_chance = _seconds(stores, repeats)
        predictions = stores[0].predictions(["status"]).height
    return {"predictions": predictions, "by_id_seconds": by_id, "by_chance_seconds": by_chance}


def rows(figures: Figures) -> list[Row]:
    return [
        Row(
            f"judging {figures['predictions']:,} predictions of cases in another order than their ids",
            f"{short(figures['by_chance_seconds'] / figures['by_id_seconds'])} times the processor time of the same "
            "predictions in the order of ids",
        )
    ]


def _ordered(first: Store, folder: Path, copies: int, seed: int | None) -> Store:
    """Several times the cases of a run, under other ids, in the order of these or by chance."""
    store = Store(folder)
    store.write_manifest(first.manifest())
    tables = {
        name: _copied(table, copies) for name, table in (("cases", first.cases()), ("predictions", first.predictions()))
    }
    names = tables["cases"]["case"].sort()
    places = pl.DataFrame({"case": names if seed is None else names.shuffle(seed)}).with_row_index("place")
    for name, table in tables.items():
        ordered = table.join(places, on="case").sort("place", maintain_order=True).drop("place")
        for part in ordered.iter_slices(PART):
            store.append(name, part)
    return store


def _copied(table: pl.DataFrame, copies: int) -> pl.DataFrame:
    return pl.concat(
        [table.with_columns(pl.format("{}/{}", pl.lit(number), "case").alias("case")) for number in range(copies)]
    )


def _seconds(stores: Sequence[Store], repeats: int) -> list[float]:
    """The best of several judgings of each, by turns, and each by another confidence: what is judged is not judged
    again."""
    confidence = count()
    best = [float("inf")] * len(stores)
    for _ in range(repeats):
        for number, store in enumerate(stores):
            begun = time.process_time()
            judge(store, {"confidence": next(confidence) / 1000})
            best[number] = min(best[number], time.process_time() - begun)
    return best


if __name__ == "__main__":
    main("order")
