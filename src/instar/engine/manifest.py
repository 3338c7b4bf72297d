"""The manifest of a run, made or grown: rules and cases may be added; system, seed and providers may not change."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import polars as pl

from instar.datasets import Dataset
from instar.engine.messages import WorkerInfo
from instar.engine.plan import SOURCE
from instar.engine.process import default_workers
from instar.engine.versions import difference
from instar.reading import MAX_PIXELS, most_pixels
from instar.relations import Rule
from instar.store import DatasetInfo, Machine, Manifest, SearchInfo, Shard, Store, run_name
from instar.suites import Suite
from instar.transforms import named_transformation

T = TypeVar("T")
# fmt: off
_PACKAGES = (
    "numpy", "opencv-python-headless", "polars", "scipy", "mediapipe", "ai-edge-litert", "onnxruntime", "torch",
)
# fmt: on
"""Packages whose version may change what a system answers."""


class Conflict(ValueError):
    """The run folder belongs to something else; the message says what, and how to go on."""


def grown_manifest(
    store: Store,
    info: WorkerInfo,
    suite: Suite,
    rules: Sequence[Rule],
    dataset: Dataset,
    seed: int | None,
    limit: int | None = None,
    shard: Shard | None = None,
    until: str | None = None,
    name: str | None = None,
    search: SearchInfo | None = None,
) -> Manifest:
    """The manifest of a run folder, grown and written. Without a `name` it keeps the one it has."""
    before = store.manifest() if store.exists else None
    try:
        if before is not None:
            _refuse_search(store.folder, before.search, search)
        manifest = grown(before, info, suite, rules, dataset, seed, limit, folder=store.folder, shard=shard)
    except Conflict as conflict:
        if store.predictions(["status"], where=pl.col("status") == "ok").height:
            raise
        raise Conflict(f"{conflict} The folder holds no good prediction, so that nothing is lost.") from None
    if search is not None:
        combinations = before.search.combinations if before and before.search else ()
        search = replace(search, members=tuple(rule.id for rule in rules), combinations=combinations)
    called = manifest.name if name is None else run_name(name)
    manifest = replace(manifest, until=until, looked=False, search=search, name=called)
    added = manifest.providers.keys() - before.providers.keys() if before else ()
    if added:
        _forget_unprovided(store, frozenset(added))
    if before and before.max_pixels != manifest.max_pixels:
        _forget_too_large(store)
    store.write_manifest(manifest)
    return manifest


def grown(
    before: Manifest | None,
    info: WorkerInfo,
    suite: Suite,
    rules: Sequence[Rule],
    dataset: Dataset,
    seed: int | None,
    limit: int | None = None,
    *,
    folder: Path,
    shard: Shard | None = None,
) -> Manifest:
    """A new manifest, or the one from `before` with a suite, its rules and a dataset more. Raises Conflict where the
    folder belongs to something else."""
    from instar import __version__

    if before is None:
        created = now()
        system, options = info.system, dict(suite.options)
        manifest = Manifest(
            __version__, created, created, _machine(), packages(), system, seed or 0, options=options, shard=shard
        )
    else:
        _refuse_shard(folder, before.shard, shard)
        _refuse_other(folder, before, info, suite, seed)
        refuse_pixels(folder, before.max_pixels)
        manifest = replace(before, updated=now())
    wanted = DatasetInfo.of(dataset.name, dataset.root, limit)
    datasets = with_dataset(manifest.datasets, wanted)
    # whoever asks a merged run for all cases of its dataset asks for those of absent shards, too
    everything = wanted in datasets and wanted.name in {each.name for each in manifest.datasets}
    return replace(
        manifest,
        datasets=datasets,
        absent=() if everything else manifest.absent,
        providers={**info.providers, **manifest.providers},
        code={**manifest.code, **info.code},
        rules=_united(manifest.rules, (rule.id for rule in rules)),
        suites=_united(manifest.suites, (suite.name,)),
        thresholds={**manifest.thresholds, **suite.thresholds},
        panels=_united(manifest.panels, suite.panels),
        titles={**manifest.titles, **suite.titles},
        max_pixels=most_pixels(),
    )


def now() -> str:
    """The time as a run folder writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _united(stored: Iterable[T], more: Iterable[T]) -> tuple[T, ...]:
    """What is stored and what is new, each once."""
    return tuple(dict.fromkeys([*stored, *more]))


def with_dataset(stored: Sequence[DatasetInfo], wanted: DatasetInfo) -> tuple[DatasetInfo, ...]:
    """The datasets of a run and the one that is asked for now; of one asked for before, the larger limit."""
    datasets = {(each.name, each.root): each for each in stored}
    before = datasets.get((wanted.name, wanted.root), wanted)
    whole = None in (before.limit, wanted.limit)
    limit = None if whole else max(before.limit or 0, wanted.limit or 0)
    return tuple({**datasets, (wanted.name, wanted.root): replace(wanted, limit=limit)}.values())


def _refuse_search(folder: Path, before: SearchInfo | None, search: SearchInfo | None) -> None:
    """A search asks few cases about many rules, and a run all cases about all: neither goes on with the other."""
    if before is not None and search is None:
        raise Conflict(
            f"{folder} is a search for combinations, and not a run of a suite: every rule that it tried would be asked "
            "of every case; go on with `instar search`, or give another folder (`out`)"
        )
    if before is None and search is not None:
        raise Conflict(f"{folder} is a run of a suite, and no search for combinations; give another folder (`out`)")


def _refuse_shard(folder: Path, before: Shard | None, shard: Shard | None) -> None:
    """A shard has its own cases: those of another one, or of all, do not belong in its folder."""
    content = "a run of all cases" if before is None else before.words
    if shard is None and before is not None:
        raise Conflict(f"{folder} is {content}; go on with {before} (`shard`), or give another folder (`out`)")
    if shard is not None and before != shard:
        raise Conflict(f"{folder} is {content}, not {shard.words}; give another folder (`out`)")


def _refuse_other(folder: Path, manifest: Manifest, info: WorkerInfo, suite: Suite, seed: int | None) -> None:
    """A run folder of another system, seed, provider or judging is left alone."""
    go_on = (
        "start over (`fresh`), which moves the earlier run aside, give another folder (`out`), or continue this run "
        "with what it was made with"
    )
    old, new = manifest.system, info.system
    if old.fingerprint != new.fingerprint:
        if old.name == new.name:
            raise Conflict(
                f"{folder} was made with another version of {old.name}: {difference(old.parts, new.parts)}. Results of "
                f"two versions do not belong in one run; {go_on}."
            )
        raise Conflict(f"{folder} is a run of {old.name}, not of {new.name}; {go_on}.")
    if seed is not None and seed != manifest.seed:
        raise Conflict(f"{folder} was made with seed {manifest.seed}, not {seed}; {go_on}.")
    changed = [name for name, digest in info.code.items() if manifest.code.get(name, digest) != digest]
    if changed:
        raise Conflict(
            f"{folder} was made with another version of the code behind its rules: "
            f"{difference(*({name: code[name] for name in changed} for code in (manifest.code, info.code)))}. "
            f"Follow-ups of two versions do not belong in one run; {go_on}."
        )
    for need, who in info.providers.items():
        before = manifest.providers.get(need)
        if before is None or before.fingerprint == who.fingerprint:
            continue
        if before.name != who.name:
            raise Conflict(f"{folder} has its {need} from {before.name}, not from {who.name}; {go_on}.")
        raise Conflict(
            f"{folder} has its {need} from another version of {who.name}: {difference(before.parts, who.parts)}; "
            f"{go_on}."
        )
    if dict(suite.options) != manifest.options and suite.options:
        raise Conflict(
            f"{folder} is judged with {manifest.options or 'the defaults'}, suite {suite.name} "
            f"with {dict(suite.options)}; {go_on}, or ask it with `instar judge`."
        )


def refuse_pixels(folder: Path, before: int | None, *, may_rise: bool = True) -> None:
    """Raises Conflict where an input that a folder holds would be too large now, or the other way round.

    Where what was too large is asked again, the limit may rise.
    """
    now = most_pixels()
    if before is None or now == before or (may_rise and now > before):
        return
    raise Conflict(
        f"{folder} was made with images of at most {before:,} pixels, and now {now:,} are allowed (the environment "
        f"variable {MAX_PIXELS}); set it to {before}, or give another folder (`out`)"
    )


def _forget_too_large(store: Store) -> None:
    """What was too large is open again once more pixels are allowed."""
    too_large = pl.col("message").str.contains(MAX_PIXELS, literal=True).fill_null(False)
    for table in ("cases", "needs", "predictions"):
        store.merge(table, keep=(pl.col("status") == "ok") | ~too_large)


def _forget_unprovided(store: Store, added: frozenset[str]) -> None:
    """Pairs that were not applicable for want of a provider are open again once there is one."""
    names = {key for key in store.predictions(["follow_up"])["follow_up"].unique() if key != SOURCE}
    waiting = [name for name in names if named_transformation(name).needs & added]
    store.merge("predictions", keep=~(pl.col("follow_up").is_in(waiting) & (pl.col("status") == "not applicable")))


def _machine() -> Machine:
    return Machine(
        platform.system(), platform.release(), platform.machine(), platform.python_version(), default_workers()
    )


@cache
def packages() -> Mapping[str, str]:
    """The versions of those that are installed, read once: a process keeps the packages that it has loaded."""
    versions = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
