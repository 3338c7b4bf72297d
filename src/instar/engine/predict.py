"""Predict: the expensive stage. Nothing committed is ever predicted again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import polars as pl

from instar.case import Case, content_hash
from instar.datasets import Dataset
from instar.engine.coordinator import Interrupted, execute
from instar.engine.hands import LOCAL, enlisted, enlisted_on, refuse_engine
from instar.engine.judging import Judging
from instar.engine.keeper import Keeper, shared_cases
from instar.engine.manifest import grown, grown_manifest
from instar.engine.messages import CaseTask, InputRead, InputUnreadable, NeedProvided, Rows, Setup
from instar.engine.opening import opening_words, refuse_other_inputs
from instar.engine.options import options_of, refuse_options
from instar.engine.order import Order
from instar.engine.plan import Choice, bound_rules, committed, make_plan, own_code, refuse_unloaded
from instar.engine.process import default_workers
from instar.engine.progress import Outcome, Progress
from instar.engine.ray_site import ray_site
from instar.reading import Unreadable
from instar.relations import Rule
from instar.remote import address_in
from instar.store import SearchInfo, Shard, Store, SystemInfo
from instar.store.aside import move_aside
from instar.suites import Suite
from instar.systems import Identity, System, system_name

MANY_PARTS = 16


def predict(
    system: str | System,
    suite: Suite,
    dataset: Dataset,
    store: Store,
    *,
    seed: int | None = None,
    workers: int | None = None,
    predictors: int | None = None,
    engine: str = LOCAL,
    address: str | None = None,
    timeout: float = 60.0,
    limit: int | None = None,
    shard: Shard | None = None,
    providers: Mapping[str, str] | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    choice: Choice | None = None,
    last: Choice | None = None,
    until: str | None = None,
    name: str | None = None,
    search: SearchInfo | None = None,
    options: Iterable[str] = (),
    on_progress: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Outcome:
    """Predict what the suite asks of every case and the run folder does not hold yet.

    `providers` names who provides zones, objects and the pool. `workers=0` works in this process. With `predictors`, so
    many processes hold the system, and the workers make follow-ups for them. With the engine `ray`, workers are actors
    of the cluster at an address. With `fresh`, a run that is in the folder is moved aside as soon as the system is
    loaded. With `shard`, only the cases that fall to it are asked, of those that the limit allows. With
    `choice`, cases are asked about what it chooses, round after round, until it chooses nothing more; the
    manifest says `until` what that is, or what `search` it is, and the run's `name`, where one is given. `last` chooses
    what is asked after everything else. `options`
    are the names of those that answers will be judged by: one that no relation of the run has is refused before
    anything is written. `say` is given what to know at the start.
    """
    refuse_engine(engine, address, workers, predictors)
    with ExitStack() as stack:
        locks = stack.enter_context(ExitStack())
        locks.enter_context(store.lock())
        stored_rules = () if fresh else _stored_rules(store)
        setup = _setup(system, providers, [*stored_rules, *suite.rules])
        if engine == LOCAL:
            hands, info = enlisted(stack, setup, _enough(workers, limit), predictors)
        else:
            hands, info = enlisted_on(stack.enter_context(ray_site(address, workers, say)), stack, setup)
        _refuse_inputs(info.system, dataset)
        rules = bound_rules(suite.rules, info.system.kind)
        if options:
            refuse_options(options, options_of(bound_rules([*stored_rules, *suite.rules], info.system.kind), Judging()))
        say(info.identity.words(info.system.name))
        if info.code:
            say(Identity(info.code).words("The code behind your own rules"))
        if fresh and store.exists:
            say(move_aside(store))
            locks.close()
            locks.enter_context(store.lock())
        refuse_other_inputs(store, dataset, limit, shard, say)
        opening = list(opening_words(store, suite, info.system.kind, dataset, limit, shard))
        manifest = grown_manifest(store, info, suite, rules, dataset, seed, limit, shard, until, name, search)
        for sentence in opening:  # of a run that is not refused
            say(sentence)
        if retry_failed:
            _forget_failed(store)
        everything = bound_rules(manifest.rules, info.system.kind)
        plan = make_plan(everything, seed=manifest.seed, deterministic=info.system.deterministic)
        keeper = Keeper(store, manifest, plan, dataset, limit, on_progress, filter(None, (choice, last)))
        tasks = keeper.tasks() if choice is None else keeper.again() or iter(())
        again = keeper.again if keeper.choices else None
        work = partial(execute, tasks, keeper, hands, timeout=timeout, info=info, again=again)
        interrupted = _executed(keeper, work)
        return keeper.outcome(interrupted)


def _enough(workers: int | None, limit: int | None) -> int:
    """How many workers to start: one has one case at a time, and each takes its time to start."""
    wanted = default_workers() if workers is None else workers
    return wanted if limit is None else min(wanted, max(limit, 1))


def _executed(keeper: Keeper, work: Callable[[], None]) -> bool:
    """Whether the work was interrupted; what was done of it is committed in any case."""
    try:
        work()
    except Interrupted:
        return True
    finally:
        keeper.commit()
    for table in ("apart", "cases", "needs", "predictions"):
        if len(keeper.store.state(table)) > MANY_PARTS:
            keeper.store.merge(table)
    return False


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
    shard: Shard | None = None,
    providers: Mapping[str, str] | None = None,
    samples: int = 3,
) -> Estimate:
    """Count what is to do and time a few cases, spread over the dataset, in one worker."""
    stored_rules = _stored_rules(store)
    setup = _setup(system, providers, [*stored_rules, *suite.rules])
    workers = default_workers() if workers is None else workers
    with ExitStack() as stack:
        hands, info = enlisted(stack, setup, 1, 0)
        _refuse_inputs(info.system, dataset)
        before = store.manifest() if store.exists else None
        if before is not None:
            # which refuses another version
            grown(before, info, suite, (), dataset, None, limit, folder=store.folder, shard=shard)
            refuse_other_inputs(store, dataset, limit, shard, lambda sentence: None)
        rules = bound_rules([*stored_rules, *suite.rules], info.system.kind)
        plan = make_plan(rules, seed=0, deterministic=info.system.deterministic)
        stored = committed(store, plan) if store.exists else None
        cases = list(shared_cases(dataset, limit, shard))
        keys = tuple(plan.keys())
        done = sum(len(keys) - len(stored.missing(case.id)) for case in cases) if stored else 0
        chosen = [cases[number * len(cases) // samples] for number in range(samples)] if len(cases) > samples else cases
        statuses = _Statuses()
        begun = time.perf_counter()
        order = Order(plan, info.system.kind)
        tasks = (CaseTask(case, order(case.id), 0) for case in chosen)
        execute(tasks, statuses, hands, timeout=timeout, info=info)
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

    def on_rows(self, message: Rows) -> None:
        self.counts.update(message.columns["status"])

    def resumed(self, task: CaseTask) -> CaseTask:
        return task

    def tick(self) -> None:
        pass


def _forget_failed(store: Store) -> None:
    store.merge("predictions", keep=pl.col("status").is_in(["ok", "not applicable"]))
    store.merge("cases", keep=pl.col("status") == "ok")
    store.merge("needs", keep=pl.col("status") == "ok")


def forget_changed(store: Store, dataset: Dataset, limit: int | None = None) -> None:
    """Drop the rows of stored cases whose input changed, can't be read or left the dataset.

    Inputs at addresses are not fetched for it: they count as unchanged.
    """
    with store.lock():
        stored = dict(store.cases(["case", "hash"]).iter_rows())
        same = [
            case.id
            for case in shared_cases(dataset, limit, None)
            if (case.path is not None and address_in(case.path)) or _hash_of(case) == stored.get(case.id, "")
        ]
        if stored.keys() - same:
            for table in (
                "predictions",
                "needs",
                "cases",
            ):  # cases last: if this is killed, the next call sees the rest
                store.merge(table, keep=pl.col("case").is_in(same))


def _hash_of(case: Case) -> str | None:
    try:
        return content_hash(case)
    except Unreadable:
        return None


def _setup(system: str | System, providers: Mapping[str, str] | None, rules: Sequence[Rule | str]) -> Setup:
    name = system if isinstance(system, System) else system_name(system)
    return Setup(name, dict(providers or {}), code=own_code(rules))


def _stored_rules(store: Store) -> tuple[str, ...]:
    """The rules of a run folder. Workers load whatever makes a follow-up, so that it may not ask for more code than
    the user did."""
    if not store.exists:
        return ()
    manifest = store.manifest()
    refuse_unloaded(store.folder, bound_rules(manifest.rules, manifest.system.kind))
    return manifest.rules


def _refuse_inputs(system: SystemInfo, dataset: Dataset) -> None:
    if system.takes != dataset.inputs:
        raise ValueError(
            f"{system.name} takes {system.takes}s, the cases of {dataset.name} are "
            f"{dataset.inputs}s; give it a dataset of {system.takes}s, or another system"
        )
