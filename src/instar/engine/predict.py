"""Predict: the expensive stage. Nothing committed is ever predicted again."""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any, TypeVar

import polars as pl

from instar.case import Case
from instar.datasets import Dataset
from instar.engine.coordinator import Interrupted, execute, greeted, start
from instar.engine.messages import CaseTask, InputRead, InputUnreadable, NeedProvided, Rows, Setup, WorkerInfo
from instar.engine.needs import with_source
from instar.engine.plan import SOURCE, Plan, bound_rules, make_plan, progressed
from instar.engine.worker import Worker
from instar.outputs import Output, output_kind
from instar.relations import Rule
from instar.scene import Scene, Track
from instar.store import APART, KEY, DatasetInfo, Machine, Manifest, ProviderInfo, Store, SystemInfo, rows_frame
from instar.suites import Suite
from instar.systems import System, system_name
from instar.transforms import NotApplicable, transformation

__all__ = [
    "COMMIT_ROWS",
    "COMMIT_SECONDS",
    "Conflict",
    "Estimate",
    "Outcome",
    "Progress",
    "default_workers",
    "estimate",
    "grown_manifest",
    "predict",
]

T = TypeVar("T")
COMMIT_SECONDS = 5.0
COMMIT_ROWS = 1000
MANY_PARTS = 16


class Conflict(ValueError):
    """The run folder belongs to something else; the message says what, and how to go on."""


@dataclass(slots=True)
class Progress:
    """How far a run is, for whoever shows it."""

    cases: int = 0
    rows: int = 0
    done: int = 0
    fresh: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    began: float = 0.0

    @property
    def rate(self) -> float:
        """Pairs per second since the first."""
        return self.fresh / max(1e-9, time.monotonic() - self.began) if self.began else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds to go, once there is something to judge by."""
        return (self.rows - self.done) / self.rate if self.fresh else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a predicting went: what was new, what there is by status, and what the user should know."""

    fresh: int
    seconds: float
    statuses: Mapping[str, int]
    cases: int
    unreadable: int
    interrupted: bool
    notes: tuple[str, ...]


def default_workers() -> int:
    """One per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def predict(
    system: str | System,
    suite: Suite,
    dataset: Dataset,
    store: Store,
    *,
    seed: int | None = None,
    workers: int | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
    providers: Mapping[str, str] | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Predict what the suite asks of every case and the run folder does not hold yet.

    `providers` names who provides zones, objects and the pool. `workers=0` works in this process.
    """
    setup = Setup(system if isinstance(system, System) else system_name(system), dict(providers or {}))
    workers = default_workers() if workers is None else workers
    with ExitStack() as stack:
        stack.enter_context(store.lock())
        processes = [start(setup) for _ in range(workers)]
        for process in processes:
            stack.callback(process.kill)
        here = None if workers else Worker(setup)
        info = greeted(processes[0]) if here is None else here.info()
        _refuse_inputs(info.system, dataset)
        rules = bound_rules(suite.rules, info.system.kind)
        manifest = grown_manifest(store, info, suite, rules, dataset, seed)
        if retry_failed:
            _forget_failed(store)
        everything = bound_rules(manifest.rules, info.system.kind)
        plan = make_plan(everything, seed=manifest.seed, deterministic=info.system.deterministic)
        keeper = _Keeper(store, manifest, plan, dataset, limit, on_progress)
        interrupted = False
        try:
            execute(keeper.tasks(), keeper, setup=setup, workers=workers, timeout=timeout, ready=processes, here=here)
        except Interrupted:
            interrupted = True
        finally:
            keeper.commit()
        if not interrupted:
            for table in ("apart", "cases", "needs", "predictions"):
                if len(store.state(table)) > MANY_PARTS:
                    store.merge(table)
        return keeper.outcome(interrupted)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would cost, from a few timed cases. Nothing was written."""

    cases: int
    follow_ups: int
    keys: int
    rows: int
    done: int
    timed: int
    seconds_per_row: float | None
    seconds: float | None
    statuses: Mapping[str, int]


def estimate(
    system: str | System,
    suite: Suite,
    dataset: Dataset,
    store: Store,
    *,
    workers: int | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
    providers: Mapping[str, str] | None = None,
    samples: int = 3,
) -> Estimate:
    """Count what is to do and time a few cases, spread over the dataset, in one worker."""
    setup = Setup(system if isinstance(system, System) else system_name(system), dict(providers or {}))
    workers = default_workers() if workers is None else workers
    with ExitStack() as stack:
        first = start(setup)
        stack.callback(first.kill)
        info = greeted(first)
        _refuse_inputs(info.system, dataset)
        stored_rules = store.manifest().rules if store.exists else ()
        rules = bound_rules([*stored_rules, *suite.rules], info.system.kind)
        plan = make_plan(rules, seed=0, deterministic=info.system.deterministic)
        held = progressed(store, plan) if store.exists else None
        cases = list(islice(dataset.cases(), limit))
        keys = tuple(plan.keys())
        done = sum(len(keys) - len(held.missing(case.id)) for case in cases) if held else 0
        chosen = [cases[number * len(cases) // samples] for number in range(samples)] if len(cases) > samples else cases
        statuses = _Statuses()
        begun = time.perf_counter()
        execute(
            (CaseTask(case, keys, 0) for case in chosen),
            statuses,
            setup=setup,
            workers=1,
            timeout=timeout,
            ready=[first],
        )
        spent = time.perf_counter() - begun
    rows = len(cases) * len(keys)
    timed = sum(count for status, count in statuses.counts.items() if status != "unreadable")
    each = spent / timed if timed else None
    return Estimate(
        len(cases),
        len(plan.follow_ups),
        len(keys),
        rows,
        done,
        len(chosen),
        each,
        each * (rows - done) / max(1, workers) if each is not None else None,
        dict(statuses.counts),
    )


class _Statuses:
    """Counts rows by their status, and keeps nothing else."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def on_input(self, task: CaseTask, message: InputRead) -> bool:
        return True

    def on_unreadable(self, task: CaseTask, message: InputUnreadable) -> None:
        self.counts["unreadable"] += 1

    def on_need(self, task: CaseTask, message: NeedProvided) -> None:
        pass

    def on_rows(self, task: CaseTask, message: Rows) -> None:
        self.counts.update(row["status"] for row in message.rows)

    def resumed(self, task: CaseTask) -> CaseTask:
        return task

    def tick(self) -> None:
        pass


def _forget_failed(store: Store) -> None:
    store.merge("predictions", keep=pl.col("status").is_in(["ok", "not applicable"]))
    store.merge("cases", keep=pl.col("status") == "ok")
    store.merge("needs", keep=pl.col("status") == "ok")


# --- the manifest ----------------------------------------------------------------------------------


def grown_manifest(
    store: Store, info: WorkerInfo, suite: Suite, rules: Sequence[Rule], dataset: Dataset, seed: int | None
) -> Manifest:
    """The run's manifest, made or grown: rules and cases may be added; system, seed and providers may not change."""
    from instar import __version__

    now = datetime.now(UTC).isoformat(timespec="seconds")
    if not store.exists:
        manifest = Manifest(
            __version__,
            now,
            now,
            _machine(),
            _packages(),
            info.system,
            seed or 0,
            info.providers,
            options=dict(suite.options),
        )
    else:
        manifest = store.manifest()
        _refuse_other(store, manifest, info, suite, seed)
        added = {need: who for need, who in info.providers.items() if need not in manifest.providers}
        if added:
            _forget_unprovided(store, added)
        manifest = replace(manifest, updated=now, providers={**manifest.providers, **added})
    manifest = replace(
        manifest,
        rules=_united(manifest.rules, (rule.id for rule in rules)),
        suites=_united(manifest.suites, (suite.name,)),
        thresholds={**manifest.thresholds, **suite.thresholds},
        panels=_united(manifest.panels, suite.panels),
        titles={**manifest.titles, **suite.titles},
        datasets=_united(manifest.datasets, (DatasetInfo(dataset.name, dataset.root),)),
    )
    store.write_manifest(manifest)
    return manifest


def _united(stored: Iterable[T], more: Iterable[T]) -> tuple[T, ...]:
    """What is stored and what is new, each once."""
    return tuple(dict.fromkeys([*stored, *more]))


def _refuse_inputs(system: SystemInfo, dataset: Dataset) -> None:
    if system.takes != dataset.inputs:
        raise ValueError(
            f"{system.name} takes {system.takes}s, the cases of {dataset.name} are "
            f"{dataset.inputs}s; give it a dataset of {system.takes}s, or another system"
        )


def _refuse_other(store: Store, manifest: Manifest, info: WorkerInfo, suite: Suite, seed: int | None) -> None:
    """A run folder of another system, seed, provider or judging is left alone."""
    go_on = "give another --out, or continue this run with what it was made with"
    old, new = manifest.system, info.system
    if old.fingerprint != new.fingerprint:
        if old.name == new.name:
            raise Conflict(
                f"{store.folder} was made with another version of {old.name} (fingerprint "
                f"{old.fingerprint}, now {new.fingerprint}): its code, configuration or weights "
                f"changed. Results of two versions do not belong in one run; {go_on}."
            )
        raise Conflict(f"{store.folder} is a run of {old.name}, not of {new.name}; {go_on}.")
    if seed is not None and seed != manifest.seed:
        raise Conflict(f"{store.folder} was made with seed {manifest.seed}, not {seed}; {go_on}.")
    for need, who in info.providers.items():
        before = manifest.providers.get(need)
        if before is not None and before.fingerprint != who.fingerprint:
            raise Conflict(f"{store.folder} has its {need} from {before.name}, not from {who.name}; {go_on}.")
    if dict(suite.options) != manifest.options and suite.options:
        raise Conflict(
            f"{store.folder} is judged with {manifest.options or 'the defaults'}, suite {suite.name} "
            f"with {dict(suite.options)}; {go_on}, or ask it with `instar judge`."
        )


def _forget_unprovided(store: Store, added: Mapping[str, ProviderInfo]) -> None:
    """Pairs that were not applicable for want of a provider are open again once there is one."""
    names = {key for key in store.predictions(["follow_up"])["follow_up"].unique() if key != SOURCE}
    waiting = [name for name in names if transformation(name).needs & added.keys()]
    store.merge("predictions", keep=~(pl.col("follow_up").is_in(waiting) & (pl.col("status") == "not applicable")))


def _machine() -> Machine:
    return Machine(
        platform.system(), platform.release(), platform.machine(), platform.python_version(), default_workers()
    )


def _packages() -> dict[str, str]:
    found = {}
    for name in (
        "numpy",
        "opencv-python-headless",
        "polars",
        "scipy",
        "mediapipe",
        "ai-edge-litert",
        "onnxruntime",
        "torch",
    ):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# --- keeping what workers say ----------------------------------------------------------------------


class _Keeper:
    """Makes tasks of what is missing, and commits what comes back."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        plan: Plan,
        dataset: Dataset,
        limit: int | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.store, self.manifest, self.plan, self.dataset, self.limit = store, manifest, plan, dataset, limit
        self.kind = manifest.system.kind
        self.held = progressed(store, plan)
        self.on_progress = on_progress or (lambda progress: None)
        self.progress = Progress()
        self.case_rows: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        self.headers: set[str] = set()
        self.apart: dict[str, bytes] = {}
        self.stored = set(store.read("apart", APART, ["hash"])["hash"])
        self.oldest: float | None = None
        self.sources: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = list(dataset.notes)
        self.started = time.monotonic()
        self.unreadable = 0
        self.truth: str | None = manifest.truth_kind
        self._source_needed = "source" in with_source(plan.needs, None, self.kind)

    # -- tasks

    def cases(self) -> Iterator[Case]:
        return islice(self.dataset.cases(), self.limit)

    def tasks(self) -> Iterator[CaseTask]:
        progress = self.progress
        for case in self.cases():
            progress.cases += 1
            progress.done += len(self.held.keys) - len(self.held.missing(case.id))
        progress.rows = progress.cases * len(self.held.keys)
        self.on_progress(progress)
        for case in self.cases():
            keys = self.held.missing(case.id)
            if not keys:
                continue
            progress.began = progress.began or time.monotonic()
            task = CaseTask(case, keys, self.manifest.seed)
            yield self.resumed(task) if case.id in self.held.partial else task

    def resumed(self, task: CaseTask) -> CaseTask:
        """The task with what is known by now of its needs and its source output."""
        needs = dict(task.needs)
        for row in self.store.needs(pl.col("case") == task.case.id).iter_rows(named=True):
            needs[row["need"]] = self.store.need_value(row) if row["status"] == "ok" else NotApplicable(row["message"])
        source = None
        if self._source_needed and (SOURCE, 0, 0) not in task.keys:
            source = self._uncommitted_source(task.case.id) or self._stored_source(task.case.id)
        return replace(task, needs=needs, source=source)

    def _uncommitted_source(self, case: str) -> Output | None:
        row = self.sources.get(case)
        if row is None:
            return None
        whole = self.store.whole(rows_frame([row], self.store.prediction_schema(self.kind))).row(0, named=True)
        fresh = {name: self.apart[row[name]] for name in self.store.apart(self.kind) if row.get(name) in self.apart}
        return output_kind(self.kind).from_row({**whole, **fresh}, self.manifest.header)

    def _stored_source(self, case: str) -> Output | None:
        found = self.store.predictions(
            where=(pl.col("case") == case)
            & (pl.col("follow_up") == SOURCE)
            & (pl.col("repeat") == 0)
            & (pl.col("status") == "ok")
        )
        row = next(self.store.whole(found).iter_rows(named=True), None)
        return output_kind(self.kind).from_row(row, self.manifest.header) if row else None

    # -- what workers say

    def on_input(self, task: CaseTask, message: InputRead) -> bool:
        case = task.case
        known = self.held.hashes.get(case.id)
        if known is not None:
            if known == message.hash:
                return True
            self.notes.append(
                f"{case.id} is not the input that this run knows by that id (its content changed); "
                "its stored rows stay, nothing was added"
            )
            self._advance(len(task.keys))
            return False
        self.held.hashes[case.id] = message.hash
        self.case_rows.append({**self._case_row(case), **message.row()})
        return True

    def _case_row(self, case: Case) -> dict[str, Any]:
        track = Track.of(case.input) if isinstance(case.input, Scene) else case.track
        row: dict[str, Any] = {
            "case": case.id,
            "path": case.path,
            "frame": case.frame,
            "crop": list(case.crop or ()),
            "track": track.json() if track else None,
            "attributes": json.dumps(dict(case.attributes), ensure_ascii=False, default=str),
        }
        truth: Any = case.truth
        if truth is not None:
            if self.manifest.truth is None:
                self.manifest = replace(self.manifest, truth=truth.header())
                self.truth = truth.kind
                self.store.write_manifest(self.manifest)
            if truth.kind == self.truth:
                row.update({f"truth_{name}": value for name, value in truth.row().items()})
        return row

    def on_unreadable(self, task: CaseTask, message: InputUnreadable) -> None:
        self.unreadable += 1
        self.case_rows = [row for row in self.case_rows if row["case"] != task.case.id]
        self.case_rows.append({**self._case_row(task.case), **message.row()})
        self.oldest = self.oldest or time.monotonic()
        self.progress.statuses["unreadable"] += 1
        self._advance(len(task.keys))

    def on_need(self, task: CaseTask, message: NeedProvided) -> None:
        """Stored at once: the worker goes on when it is."""
        if message.hash is not None:
            self.store.put_blob(message.hash, message.content)
        self.store.append_needs([{**message.row(), "case": task.case.id}])

    def on_rows(self, task: CaseTask, message: Rows) -> None:
        self.apart.update({name: content for name, content in message.contents.items() if name not in self.stored})
        for name, header in message.headers.items():
            if self.manifest.output is None:
                self.manifest = replace(self.manifest, output=header)
                self.store.write_manifest(self.manifest)
            if header == self.manifest.output:
                self.headers.add(name)
        rows = [
            row
            if row.get("header") in self.headers or row["status"] != "ok"
            else {
                **{k: row[k] for k in KEY},
                "status": "error",
                "message": f"what all answers have in common differs from the run's first answer ({self.kind})",
            }
            for row in message.rows
        ]
        if self._source_needed:
            self._remember_source(rows)
        self.rows += rows
        self.oldest = self.oldest or time.monotonic()
        self.progress.statuses.update(row["status"] for row in rows)
        self.progress.fresh += len(rows)
        self._advance(len(rows))

    def _remember_source(self, rows: list[dict[str, Any]]) -> None:
        """Until it is committed, the source output is only here; a replaced worker may need it."""
        for row in rows:
            if row["follow_up"] == SOURCE and row["repeat"] == 0 and row["status"] == "ok":
                self.sources[row["case"]] = row

    def _advance(self, count: int) -> None:
        self.progress.done += count
        self.on_progress(self.progress)

    def tick(self) -> None:
        if len(self.rows) >= COMMIT_ROWS or (self.oldest and time.monotonic() - self.oldest >= COMMIT_SECONDS):
            self.commit()
        self.on_progress(self.progress)

    def commit(self) -> None:
        """Cases and what is kept apart first: all that a prediction names is there."""
        cases, self.case_rows = self.case_rows, []
        rows, self.rows = self.rows, []
        self.oldest = None
        self.sources.clear()
        if cases:
            self.store.append_cases(cases, self.truth)
        if self.apart:
            self.store.append_apart(self.apart)
            self.stored.update(self.apart)
            self.apart = {}
        if rows:
            self.store.append_predictions(rows, self.kind)

    def outcome(self, interrupted: bool) -> Outcome:
        counted = self.store.predictions(["status"], query=lambda rows: rows.group_by("status").agg(pl.len()))
        cases = self.store.cases(["status"])["status"]
        return Outcome(
            self.progress.fresh,
            time.monotonic() - self.started,
            dict(counted.iter_rows()),
            len(cases),
            int((cases != "ok").sum()),
            interrupted,
            tuple(self.notes),
        )
