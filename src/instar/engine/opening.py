"""What to know of a run before it predicts: rules that were chosen for other answers, and cases that are mixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from instar.case import Case
from instar.datasets import Dataset
from instar.engine.cases import case_row, read_case
from instar.engine.keeper import shared_cases
from instar.engine.manifest import Conflict, with_dataset
from instar.engine.messages import InputRead
from instar.outputs import output_kind
from instar.store import DatasetInfo, Row, Shard, Store
from instar.suites import Suite

MANY = 1000
"""So many inputs to compare take some seconds."""
_PLACE = ("path", "frame", "crop", "track")
"""The columns that say where an input lies."""


def opening_words(
    store: Store, suite: Suite, kind: str, dataset: Dataset, limit: int | None, shard: Shard | None
) -> Iterator[str]:
    """Sentences about a suite that a system of another kind is asked, and a dataset that joins others in a folder."""
    if suite.output not in (None, kind):
        own = output_kind(kind).suite
        instead = f" The suite for {kind} is {own}." if own else ""
        yield (
            f"The suite {suite.name} is for {suite.output}, and this system answers with {kind}: its rules and its "
            f"thresholds, where it has any, were not chosen for {kind}.{instead}"
        )
    if store.exists:
        yield from _mixed(store, dataset, limit, shard)


def refuse_other_inputs(
    store: Store, dataset: Dataset, limit: int | None, shard: Shard | None, say: Callable[[str], None]
) -> None:
    """That a dataset which joins a run has other inputs by names that the run knows: they would never be asked, and
    the answers to those of before would pass for answers to them."""
    datasets = store.manifest().datasets if store.exists else ()
    added = DatasetInfo.of(dataset.name, dataset.root, limit)
    if not datasets or not _joins(datasets, added):
        return
    rows = store.cases([*_PLACE, "case", "hash"], pl.col("status") == "ok")
    stored = {row["case"]: row for row in rows.iter_rows(named=True)}
    elsewhere = [case for case in shared_cases(dataset, limit, shard) if _elsewhere(case, stored.get(case.id))]
    if len(elsewhere) > MANY:
        known = f"have names that {store.folder} knows"
        say(f"{len(elsewhere):,} cases of {dataset.name} {known}: their inputs are compared.")
    for case in elsewhere:
        _, read = read_case(case)
        if not isinstance(read, InputRead) or read.hash != stored[case.id]["hash"]:
            place = f" in {added.root}" if added.name in [each.name for each in datasets] else ""
            raise Conflict(
                f"{store.folder} has answers to {case.id} of {' and '.join(each.name for each in datasets)}, and "
                f"{added.name}{place} has another input by that name, which would never be asked. Give another folder "
                "(`out`), or start over (`fresh`)"
            )


def _elsewhere(case: Case, stored: Row | None) -> bool:
    row = case_row(case, None)
    return stored is not None and any(row[name] != stored[name] for name in _PLACE)


def _joins(datasets: Sequence[DatasetInfo], added: DatasetInfo) -> bool:
    return len(with_dataset(datasets, added)) > len(datasets)


def _mixed(store: Store, dataset: Dataset, limit: int | None, shard: Shard | None) -> Iterator[str]:
    """That a run gets cases of another dataset: more images are welcome, and a mistyped folder looks the same."""
    datasets = store.manifest().datasets
    added = DatasetInfo.of(dataset.name, dataset.root, limit)
    if not _joins(datasets, added):
        return
    stored = set(store.cases(["case"])["case"])
    count = sum(case.id not in stored for case in shared_cases(dataset, limit, shard))
    if stored and count:
        cases, joins = f"case{'' if len(stored) == 1 else 's'}", "is" if count == 1 else "are"
        yield (
            f"{store.folder} holds {len(stored):,} {cases} of {' and '.join(each.name for each in datasets)}; "
            f"{count:,} of {added.name} {joins} added, and what is said of the run is about all of them. Another run "
            "folder keeps them apart."
        )
