"""What to know of a run before it predicts: rules that were chosen for other answers, and cases that are mixed."""

from __future__ import annotations

from collections.abc import Iterator

from instar.datasets import Dataset
from instar.engine.keeper import shared_cases
from instar.engine.manifest import with_dataset
from instar.outputs import output_kind
from instar.store import DatasetInfo, Shard, Store
from instar.suites import Suite


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


def _mixed(store: Store, dataset: Dataset, limit: int | None, shard: Shard | None) -> Iterator[str]:
    """That a run gets cases of another dataset: more images are welcome, and a mistyped folder looks the same."""
    datasets = store.manifest().datasets
    added = DatasetInfo.of(dataset.name, dataset.root, limit)
    if len(with_dataset(datasets, added)) == len(datasets):
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
