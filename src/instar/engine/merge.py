"""Merge: runs of one plan, each with cases of its own, become one run. Nothing is predicted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import xxhash

from instar.datasets import shortened
from instar.engine.extent import Extent
from instar.engine.manifest import Conflict, now, with_dataset
from instar.engine.progress import Outcome, outcome_of
from instar.engine.versions import difference
from instar.spelling import spell_value
from instar.store import (
    DatasetInfo,
    Header,
    Manifest,
    NoRun,
    Shard,
    Store,
    SystemInfo,
    add_marks,
    first_only,
    shard_words,
    stored_marks,
)
from instar.store.merge import KEYS, Joined, appearing

SHOWN = 3
"""Folders, rules and versions that a sentence names."""
MANY_PARTS, SMALL_ROWS = 256, 20_000
"""Every reader opens every part: of a table in so many parts, neighbours that have so few rows together become one."""

Plans = Mapping[Path, Manifest]
"""What each run is, by its folder."""


def merge(runs: Sequence[Store], target: Store) -> Outcome:
    """Add the rows of runs to a run folder, which is made where it is not there.

    Raises Conflict where they are not of one plan, and Different where one case has other rows in two of them.
    """
    started = time.monotonic()
    target.refuse_bucket("runs are merged into a folder on a disk; give one, and copy it to the bucket afterwards")
    sources, notes = _sources(runs, target)
    before = target.manifest() if target.exists else None
    plans = {target.folder: before} if before else {}
    plans |= {store.folder: store.manifest() for store in sources}
    _refuse_others(plans)
    extents = [Extent.of(store) for store in sources]
    manifest = _merged(list(plans.values()))
    with _opened(target) as store:
        rows = _count(store, manifest)
        joined = Joined(store, manifest.truth_kind)
        new = [joined.add(source) for source in sources]
        for table in KEYS:
            if len(store.state(table)) > MANY_PARTS:
                store.merge(table, at_most=SMALL_ROWS)
        store.write_manifest(manifest)
        planned = _planned(before, extents, new)
        store.write_manifest(replace(manifest, planned=planned and max(planned, Extent.of(store).done)))
        fresh = _count(store, manifest) - rows
        for source in sources:
            add_marks(store, stored_marks(source))
    notes += _unfinished(sources, extents, manifest.absent) + _versions(plans)
    return outcome_of(target, fresh, started, notes)


def _sources(runs: Sequence[Store], target: Store) -> tuple[list[Store], list[str]]:
    """The runs to merge, each once and shards in order, and what is left out. The target may be among those named."""
    stores: dict[Path, Store] = {}
    empty: list[str] = []
    for store in runs:
        place = store.folder.resolve()
        if not store.exists and place.is_dir() and Shard.of_folder(place):
            empty.append(str(store.folder))  # its job ended before the system was loaded
        elif place != target.folder.resolve():
            stores[place] = store
    if not stores:
        raise NoRun(f"there is no run to merge; {', '.join(empty) or 'none'} was given; give the folders of runs")
    shards = {place: store.manifest().shard or Shard(1, 1) for place, store in stores.items()}
    notes = [f"{shortened(empty, SHOWN)}: no run has begun there"] if empty else []
    return [stores[place] for place in sorted(stores, key=lambda place: (shards[place], str(place)))], notes


@contextmanager
def _opened(target: Store) -> Iterator[Store]:
    """The run folder to write to: the target where it is a run, else one that becomes the target at the end."""
    if target.exists:
        with target.lock():
            yield target
        return
    if target.folder.exists() and (not target.folder.is_dir() or any(target.folder.iterdir())):
        raise Conflict(f"{target.folder} is there already and holds no run; give another folder (`out`)")
    with appearing(target.folder) as store:
        yield store


def _count(store: Store, manifest: Manifest) -> int:
    where = first_only(None, manifest.system.deterministic)  # the store has no manifest yet
    return int(store.read("predictions", {"status": pl.String, "repeat": pl.Int32}, ["status"], where, _length).item())


def _length(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.select(pl.len())


# --- of one plan -----------------------------------------------------------------------------------


def _refuse_others(plans: Plans) -> None:
    """Raises Conflict where runs differ in anything that settles what is asked, of whom, and of what."""
    recorded = [folder for folder, manifest in plans.items() if manifest.recorded is not None]
    if recorded:
        raise Conflict(
            f"{recorded[0]} was made of recorded outputs; import the tables of all such runs into one folder instead"
        )
    differences = [words for what, values in _plan(plans).items() if (words := _differing(what, values))]
    if differences:
        raise Conflict(f"These runs are not of one plan: {'; '.join(differences)}. Merge only those that agree")


def _plan(plans: Plans) -> dict[str, dict[Path, object]]:
    """All that runs of one plan agree in, by what it is called. What one of them does not know yet is left out."""
    manifests = list(plans.values())
    plan: dict[str, dict[Path, object]] = {
        "the system is": {folder: _system(one.system, manifests[0].system) for folder, one in plans.items()},
        "the seed is": {folder: one.seed for folder, one in plans.items()},
        "the rules are": {folder: frozenset(one.rules) for folder, one in plans.items()},
        "the suites are": {folder: frozenset(one.suites) for folder, one in plans.items()},
        "the judging's options are": {folder: _items(one.options) for folder, one in plans.items()},
        "the thresholds are": {folder: _items(one.thresholds) for folder, one in plans.items()},
        "the most pixels of an image are": {folder: one.max_pixels for folder, one in plans.items()},
        "what all answers share is": {folder: _header(one.output) for folder, one in plans.items() if one.output},
        "what all truths share is": {folder: _header(one.truth) for folder, one in plans.items() if one.truth},
    }
    for need in sorted({need for manifest in manifests for need in manifest.providers}):
        plan[f"{need} come from"] = {
            folder: "nobody" if who is None else f"{who.name} (fingerprint {who.fingerprint})"
            for folder, one in plans.items()
            for who in [one.providers.get(need)]
        }
    for file in sorted({file for manifest in manifests for file in manifest.code}):
        plan[f"{file} has the hash"] = {folder: one.code[file] for folder, one in plans.items() if file in one.code}
    if any(manifest.shard for manifest in manifests):
        plan["the number of shards is"] = {
            folder: shard.total for folder, one in plans.items() for shard in (one.shard, *one.absent) if shard
        }
        plan["the dataset is"] = {
            folder: frozenset(
                f"{data.name}{f' up to case {data.limit}' if data.limit else ''}" for data in one.datasets
            )
            for folder, one in plans.items()
        }
    return plan


def _items(values: Mapping[str, object]) -> frozenset[str]:
    """Names with their values, of which only those are told that differ."""
    texts = {name: value if isinstance(value, str) else spell_value(value) for name, value in values.items()}
    return frozenset(f"{text} for {name}" for name, text in texts.items())


def _system(system: SystemInfo, first: SystemInfo) -> str:
    """What a system is called beside the first one."""
    if system.fingerprint == first.fingerprint:
        return first.name
    version = f"another version of it ({difference(first.parts, system.parts)})"
    return version if system.name == first.name else system.name


def _header(header: Header) -> str:
    """What all outputs of a kind share, such as a skeleton, by its hash: it may have hundreds of words."""
    text = json.dumps(header, sort_keys=True).encode()
    return f"{header['kind']} with the hash {xxhash.xxh3_64_hexdigest(text)[:8]}"


def _differing(what: str, values: Mapping[Path, object]) -> str:
    """In words, what has which value in which folders; empty where it is the same in all."""
    if all(value == next(iter(values.values())) for value in values.values()):
        return ""
    groups: dict[str, list[Path]] = {}
    sets = [value for value in values.values() if isinstance(value, frozenset)]
    common = frozenset.intersection(*sets) if sets else frozenset()
    nothing = "no others" if common else "none"
    for folder, value in values.items():
        own = sorted(value - common) if isinstance(value, frozenset) else None
        also = "also " if common else ""
        text = str(value) if own is None else f"{also}{shortened(own, SHOWN)}" if own else nothing
        groups.setdefault(text, []).append(folder)
    named = [f"{text} in {shortened(folders, SHOWN)}" for text, folders in groups.items()]
    return f"{what} {' and '.join(named)}"


def _versions(plans: Plans) -> list[str]:
    """That libraries were of different versions, which may change answers in the last digit, and follow-ups nowhere."""
    names = sorted({name for manifest in plans.values() for name in manifest.packages})
    versions: dict[str, dict[Path, object]] = {"Instar is": {folder: one.instar for folder, one in plans.items()}}
    for name in names:
        versions[f"{name} is"] = {folder: one.packages.get(name, "absent") for folder, one in plans.items()}
    return [f"versions differ: {words}" for what, values in versions.items() if (words := _differing(what, values))]


# --- what the merged run is ------------------------------------------------------------------------


def _merged(manifests: Sequence[Manifest]) -> Manifest:
    first = manifests[0]
    sharded = any(manifest.shard for manifest in manifests)
    datasets: tuple[DatasetInfo, ...] = ()
    for data in first.datasets if sharded else [data for manifest in manifests for data in manifest.datasets]:
        datasets = with_dataset(datasets, data)
    return replace(
        first,
        created=min(manifest.created for manifest in manifests),
        updated=now(),
        output=next((manifest.output for manifest in manifests if manifest.output), None),
        truth=next((manifest.truth for manifest in manifests if manifest.truth), None),
        datasets=datasets,
        code={file: digest for manifest in manifests for file, digest in manifest.code.items()},
        name=next((manifest.name for manifest in manifests if manifest.name), ""),
        until=next((manifest.until for manifest in manifests if manifest.until), None),  # a shard may have no cases
        shard=None,
        absent=_absent(manifests),
    )


def _absent(manifests: Sequence[Manifest]) -> tuple[Shard, ...]:
    """The shards of the plan that no run has, or has not counted the cases of."""
    total, present = 0, set[int]()
    for one in manifests:
        if one.shard is not None:
            total = one.shard.total
            present |= {one.shard.number} if one.planned is not None else set()
        elif one.absent:
            total = one.absent[0].total
            present |= {*range(1, total + 1)} - {shard.number for shard in one.absent}
        else:
            return ()  # it has all cases, or is no shard and has cases of its own
    return tuple(Shard(number, total) for number in range(1, total + 1) if number not in present)


def _planned(before: Manifest | None, extents: Sequence[Extent], new: Sequence[bool]) -> int | None:
    """How many predictions the merged run will have in the end: those of the run that it was, and of all that are `new`
    in it. None where a run does not say it.

    A shard that it was merged with before is not new, even if it had no case yet.
    """
    planned = 0 if before is None else before.planned
    shards = {extent.shard for extent in extents} if before is None else {*before.absent}
    for extent, cases_new in zip(extents, new, strict=True):
        if extent.shard in shards if extent.shard else cases_new:
            planned = None if planned is None or not (extent.whole or extent.shard) else planned + extent.planned
            shards -= {extent.shard}
    return planned


def _unfinished(sources: Sequence[Store], extents: Sequence[Extent], absent: tuple[Shard, ...]) -> list[str]:
    """Which shards are missing, and which runs are not finished."""
    notes = []
    if absent:
        be, done, cases = ("is", "it is", "its") if len(absent) == 1 else ("are", "they are", "their")
        notes.append(
            f"{shard_words(absent)} {be} missing; merge again when {done} done, or predict {cases} cases: the command "
            "that made the shards, given this folder and no shard"
        )
    unfinished = [
        f"{store.folder} ({extent.done:,} of {extent.planned:,} predictions)"
        for store, extent in zip(sources, extents, strict=True)
        if extent.missing
    ]
    if unfinished:
        notes.append(f"not finished: {shortened(unfinished, SHOWN)}")
    return notes
