"""The worker: one case × all rules. Decoded once, predicted once, each follow-up from that."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from socket import socket

import cv2

from instar.case import Input
from instar.engine.cases import read_case
from instar.engine.follow_up import NoFollowUp, error_text, make_follow_up
from instar.engine.line import Line
from instar.engine.messages import (
    Begin,
    CaseTask,
    Done,
    End,
    Failed,
    Loaded,
    Message,
    NeedProvided,
    Ready,
    Rows,
    Setup,
    Stored,
    WorkerInfo,
)
from instar.engine.needs import Need, Provider, is_stored, provided, provider, with_source
from instar.engine.packing import Packer, packed_need
from instar.engine.plan import SOURCE, Key
from instar.outputs import Output
from instar.own import BrokenModule
from instar.pool import Pool
from instar.registry import loaded_object
from instar.store import KEY, ProviderInfo, Row, SystemInfo
from instar.systems import AnotherVersion, System, imports_noted, system
from instar.systems.modules import own_modules
from instar.systems.sources import LOADED
from instar.systems.system import end_copy
from instar.transforms import Change, NotApplicable, Transformation, draw_seed, transformation

BATCH_BYTES = 32 << 20
HAND_OVER_ROWS = 64
HAND_OVER_SECONDS = 0.25


@dataclass(slots=True)
class _Pending:
    key: Key
    input: Input
    change: Change
    seed: int


@dataclass(slots=True)
class _Batch:
    """A case under way: what waits to be predicted together, and the rows made since the last were handed over."""

    task: CaseTask
    input: Input
    needs: dict[str, Need | NotApplicable]
    pending: list[_Pending] = field(default_factory=list)
    rows: list[tuple[Key, Change | None, Row]] = field(default_factory=list)
    size: int = 0
    source_output: Output | None = None
    handed: float = field(default_factory=time.monotonic)

    def add(self, key: Key, follow_up: Input, change: Change, seed: int) -> None:
        self.pending.append(_Pending(key, follow_up, change, seed))
        self.size += follow_up.nbytes

    @property
    def due(self) -> bool:
        """Rows are handed over in handfuls: a message each would cost more than many a prediction."""
        return len(self.rows) >= HAND_OVER_ROWS or time.monotonic() - self.handed > HAND_OVER_SECONDS

    def hand_over(self) -> list[Row]:
        """All rows at once: right after a picture was filtered, Python itself is not in the processor's cache."""
        case = self.task.case.id
        rows = [
            {**dict(zip(KEY, (case, *key), strict=True)), **(change.row() if change else {}), **answered}
            for key, change, answered in self.rows
        ]
        self.rows, self.handed = [], time.monotonic()
        return rows


class Worker:
    """A loaded system with its providers of needs."""

    def __init__(self, setup: Setup) -> None:
        cv2.setNumThreads(1)
        owner = os.getpid()
        try:
            self.system = system(setup.system).tested()
            self.providers: dict[str, Provider] = {need: provider(need, name) for need, name in setup.providers.items()}
            for name in setup.code:
                loaded_object(name)
        finally:
            end_copy(owner)
        self._code, _ = own_modules(name.partition(":")[0] for name in setup.code)
        self._parsed: dict[str, Transformation] = {}
        self._pack = Packer()

    def info(self) -> WorkerInfo:
        """What the run's manifest says of the system and the providers."""
        it = self.system
        return WorkerInfo(
            SystemInfo(
                it.name, it.kind, it.fingerprint, it.deterministic, it.seedable, it.takes, dict(it.identity.parts)
            ),
            {need: ProviderInfo(p.name, p.fingerprint, p.parts) for need, p in self.providers.items()},
            it.batch,
            dict(LOADED),
            it.identity,
            self._code,
        )

    def close(self) -> None:
        """Close the system and those that provide needs."""
        for one in (self.system, *(who.source for who in self.providers.values())):
            if isinstance(one, System):
                one.close()

    def transformation(self, name: str) -> Transformation:
        if name not in self._parsed:
            self._parsed[name] = transformation(name)
        return self._parsed[name]

    def work(self, task: CaseTask) -> Iterator[Message]:
        """The input or why it cannot be read, then needs (to be stored before it goes on) and rows."""
        if task.single:
            yield Begin()
        source, reading = read_case(task.case)
        yield reading
        if source is None:
            return
        batch = _Batch(task, source, dict(task.needs))
        if task.source is not None:
            batch.needs["source"] = task.source
        yield from self._provide(task.lost, batch)
        unchanged = (source, Change.none(source.size))
        made: tuple[Input, Change] | NoFollowUp = unchanged
        change: Transformation | str = SOURCE
        last = (SOURCE, 0)
        for key in task.keys:
            name, draw, repeat = key
            if task.single:
                yield Begin(key)
            if name == SOURCE:
                last, change, made = (name, draw), SOURCE, unchanged
            elif (name, draw) != last:
                last, change = (name, draw), self.transformation(name)
                if change.needs:
                    yield from self._provide(change.needs, batch)
                    if task.single:
                        yield Begin(key)
                try:
                    made = make_follow_up(task.seed, task.case.id, source, change, draw, batch.needs)
                except NoFollowUp as error:
                    made = error
            if isinstance(made, NoFollowUp):
                batch.rows.append((key, None, {"status": made.status, "message": str(made)}))
                continue
            # a deterministic system has no use for a seed
            seed = 0 if self.system.deterministic else draw_seed(task.seed, task.case.id, change, draw, repeat)
            batch.add(key, *made, seed)
            if task.single or len(batch.pending) >= self.system.batch or batch.size >= BATCH_BYTES:
                self._predict(batch)
                if task.single or batch.due:
                    yield self._pack(batch.hand_over())
        self._predict(batch)
        if batch.rows:
            yield self._pack(batch.hand_over())

    def _provide(self, wanted: frozenset[str], batch: _Batch) -> Iterator[Message]:
        """Provide what is missing; what the source's answer stands in for waits until it is predicted."""
        task, needs = batch.task, batch.needs
        unprovided = wanted - self.providers.keys()
        if "source" not in needs and "source" in with_source(unprovided, task.case, self.system.kind):
            self._predict(batch)
            answered = batch.source_output  # nothing found is an answer, too
            needs["source"] = NotApplicable("the source could not be predicted") if answered is None else answered
        for need in sorted(wanted - needs.keys()):
            if task.single:
                yield Begin(need=need)
            answer, who = needs.get("source"), self.providers.get(need)
            assert not isinstance(answer, Pool)
            value = needs[need] = provided(need, who, task.case, batch.input, answer)
            if who is not None and is_stored(who, value, task.case):
                yield packed_need(need, who, value)

    def _predict(self, batch: _Batch) -> None:
        """Predict what is pending."""
        for pending, answered in zip(batch.pending, self._predicted(batch.pending), strict=True):
            batch.rows.append((pending.key, pending.change, answered))
            if pending.key == (SOURCE, 0, 0):
                batch.source_output = answered.get("output")
        batch.pending, batch.size = [], 0

    def _predicted(self, pending: Sequence[_Pending]) -> list[Row]:
        """Rows of answers. Where a batch raises, its inputs go one by one, and each answers for itself."""
        if not pending:
            return []
        begun = time.perf_counter()
        try:
            answers = self.system.answer([p.input for p in pending], [p.seed for p in pending])
        except Exception as error:
            if len(pending) > 1:
                return [self._predicted([p])[0] for p in pending]
            answers = [error]
        seconds = (time.perf_counter() - begun) / len(pending)
        return [
            {"status": _status(answer), "message": error_text(answer), "seconds": seconds}
            if isinstance(answer, Exception)
            else {"status": "ok", "seconds": seconds, "output": answer}
            for answer in answers
        ]


def _status(error: Exception) -> str:
    """Ours where the exception says so; the `status` of others, such as an HTTP error's 503, is something else."""
    status = getattr(error, "status", None)
    return status if status in ("crashed", "timeout") else "error"


def serve() -> None:
    """A worker process: loads, says what it is, and works off tasks until its line, which is its stdin, closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses Ctrl-C means the coordinator
    line = Line(socket(fileno=os.dup(0)))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the system prints is kept with its errors, as far as those are kept
    with imports_noted(), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        worker = _loaded(line)
        if worker is not None:
            try:
                _work_off(worker, line)
            except AnotherVersion as change:
                line.send([Failed(str(change), changed=True)])
    os._exit(0)  # a system's threads and libraries may take long to end, or hang


def _loaded(line: Line) -> Worker | None:
    first = line.received_bytes()  # a system that is sent by its pickle is imported when it is read
    try:
        setup: Setup = pickle.loads(first)
        sys.path[:] = [*setup.path, *(p for p in sys.path if p not in setup.path)]
        return Worker(setup)
    except BaseException as error:
        traceback.print_exc()
        line.send([Failed(str(error) if isinstance(error, BrokenModule) else f"{type(error).__name__}: {error}")])
        return None


def _work_off(worker: Worker, line: Line) -> None:
    line.send([Ready(worker.info())])
    known = dict(LOADED)
    waiting: deque[CaseTask] = deque()
    while True:
        task: CaseTask | End = waiting.popleft() if waiting else line.received()
        if isinstance(task, End):
            worker.close()
            return
        unsent: list[Message] = []  # sending costs more than a message: the input goes with the first rows
        for message in worker.work(task):
            if unsent and isinstance(unsent[-1], Rows):
                line.send(unsent)
                unsent = []
            if known != LOADED:  # a module that is imported late, or is another one than when the run began
                known = dict(LOADED)
                unsent.append(Loaded(known))
            unsent.append(message)
            if task.single or isinstance(message, NeedProvided):
                line.send(unsent)
                unsent = []
            if isinstance(message, NeedProvided):
                # the next task may have been sent before the word that the need is stored
                while not isinstance(reply := line.received(), Stored):
                    waiting.append(reply)
        line.send([*unsent, Done()])
