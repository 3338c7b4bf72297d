"""The worker: one case × all rules. Decoded once, predicted once, each follow-up from that."""

from __future__ import annotations

import json
import pickle
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import cv2
import numpy as np
import xxhash

from instar.case import Case, Input, read_input
from instar.engine.follow_up import NoFollowUp, error_text, make_follow_up
from instar.engine.needs import STORED, Need, Provider, provided, provider, with_source
from instar.engine.plan import SOURCE, Key
from instar.image import Unreadable
from instar.outputs import Output
from instar.outputs.zones import Zones
from instar.pool import Pool
from instar.store import ProviderInfo, SystemInfo, need_content
from instar.systems import System, fingerprint_of, system
from instar.transforms import Change, NotApplicable, Transformation, draw_seed, transformation

__all__ = ["BATCH_BYTES", "Packer", "Setup", "Task", "Worker", "WorkerInfo", "pickled", "received", "serve"]

BATCH_BYTES = 32 << 20
HAND_OVER_ROWS = 64
HAND_OVER_SECONDS = 0.25
REMEMBERED = 4096
Message = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker is told once: spelled, so that it can be sent anywhere."""

    system: str | System
    providers: Mapping[str, str]
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker says of the system and the providers that it loaded."""

    system: SystemInfo
    providers: Mapping[str, ProviderInfo]
    batch: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """A case and the keys still missing; `needs` and `source` are what the run folder holds already.

    `single` works one input at a time and says beforehand which, so that a death can be laid at its door.
    """

    case: Case
    keys: tuple[Key, ...]
    seed: int
    needs: Mapping[str, Need | NotApplicable] = field(default_factory=dict)
    source: Output | None = None
    single: bool = False


@dataclass(slots=True)
class _Pending:
    key: Key
    input: Input
    change: Change
    seed: int


@dataclass(slots=True)
class _Batch:
    """What waits to be predicted together, and the rows made since the last were handed over."""

    task: Task
    pending: list[_Pending] = field(default_factory=list)
    rows: list[tuple[Key, Change | None, dict[str, Any]]] = field(default_factory=list)
    size: int = 0
    source: Output | None = None
    handed: float = field(default_factory=time.monotonic)

    def add(self, key: Key, followed: Input, change: Change, seed: int) -> None:
        self.pending.append(_Pending(key, followed, change, seed))
        self.size += followed.nbytes

    @property
    def due(self) -> bool:
        """Rows are handed over in handfuls: a message each would cost more than many a prediction."""
        return len(self.rows) >= HAND_OVER_ROWS or time.monotonic() - self.handed > HAND_OVER_SECONDS

    def hand_over(self) -> Message:
        """All rows at once: right after a picture was filtered, Python itself is not in the processor's cache."""
        case = self.task.case.id
        rows = [
            {
                "case": case,
                "follow_up": name,
                "draw": draw,
                "repeat": repeat,
                **(change.row() if change else {}),
                **answered,
            }
            for (name, draw, repeat), change, answered in self.rows
        ]
        self.rows, self.handed = [], time.monotonic()
        return "rows", rows


class Worker:
    """A loaded system with its providers of needs."""

    def __init__(self, setup: Setup) -> None:
        cv2.setNumThreads(1)
        self.system = system(setup.system)
        self.providers: dict[str, Provider] = {need: provider(need, name) for need, name in setup.providers.items()}
        self._parsed: dict[str, Transformation] = {}

    def info(self) -> WorkerInfo:
        """What the run's manifest says of the system and the providers."""
        it = self.system
        return WorkerInfo(
            SystemInfo(it.name, it.kind, it.fingerprint, it.deterministic, it.seedable, it.takes),
            {need: ProviderInfo(p.name, p.fingerprint) for need, p in self.providers.items()},
            it.batch,
        )

    def transformation(self, name: str) -> Transformation:
        if name not in self._parsed:
            self._parsed[name] = transformation(name)
        return self._parsed[name]

    def work(self, task: Task) -> Iterator[Message]:
        """Messages: input or unreadable, then needs (to be stored before it goes on) and rows.

        A task that goes one input at a time also says `begin` before each.
        """
        if task.single:
            yield "begin", "input"
        try:
            given, digest = read_input(task.case)
        except Exception as error:
            known = isinstance(error, Unreadable)
            yield "unreadable", str(error) if known else f"{task.case.path}: {error_text(error)}"
            return
        yield (
            "input",
            {"hash": digest, "width": given.size[0], "height": given.size[1], "properties": given.properties() or None},
        )
        needs: dict[str, Need | NotApplicable] = dict(task.needs)
        if task.source is not None:
            needs["source"] = task.source
        batch = _Batch(task)
        made: tuple[Input, Change] | dict[str, Any] = (given, Change.none(given.size))
        seed_of: Transformation | str = SOURCE
        last = (SOURCE, 0)
        for key in task.keys:
            name, draw, repeat = key
            if task.single:
                yield "begin", key
            if (name, draw) != last:
                last, seed_of = (name, draw), self.transformation(name)
                if seed_of.needs:
                    unprovided = seed_of.needs - self.providers.keys()
                    if "source" not in needs and "source" in with_source(unprovided, task.case, self.system.kind):
                        self._predict(batch)
                        needs["source"] = batch.source or NotApplicable("the source could not be predicted")
                    for need in sorted(seed_of.needs - needs.keys()):
                        if task.single:
                            yield "begin", f"need {need}"
                        told = needs.get("source")
                        assert not isinstance(told, Pool)
                        needs[need] = provided(need, self.providers.get(need), task.case, given, told)
                        if need in STORED and need in self.providers and needs[need] is not task.case.truth:
                            yield "need", (need, self.providers[need], needs[need])
                    if task.single:
                        yield "begin", key
                try:
                    made = make_follow_up(task.seed, task.case.id, given, seed_of, draw, needs)
                except NoFollowUp as error:
                    made = {"status": error.status, "message": str(error)}
            if isinstance(made, dict):
                batch.rows.append((key, None, made))
                continue
            # a deterministic system has no use for a seed
            seed = 0 if self.system.deterministic else draw_seed(task.seed, task.case.id, seed_of, draw, repeat)
            batch.add(key, *made, seed)
            if task.single or len(batch.pending) >= self.system.batch or batch.size >= BATCH_BYTES:
                self._predict(batch)
                if task.single or batch.due:
                    yield batch.hand_over()
        self._predict(batch)
        if batch.rows:
            yield batch.hand_over()

    def _predict(self, batch: _Batch) -> None:
        """Predict what is pending."""
        for pending, answered in zip(batch.pending, self._predicted(batch.pending), strict=True):
            batch.rows.append((pending.key, pending.change, answered))
            if pending.key == (SOURCE, 0, 0):
                batch.source = answered.get("output")
        batch.pending, batch.size = [], 0

    def _predicted(self, pending: Sequence[_Pending]) -> list[dict[str, Any]]:
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
    told = getattr(error, "status", None)
    return told if told in ("crashed", "timeout") else "error"


def pickled(message: object) -> bytes:
    """With the plain pickler: it takes half the time of a connection's own for many small values."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def send(connection: Connection, message: object) -> None:
    connection.send_bytes(pickled(message))


def received(connection: Connection) -> Any:
    return pickle.loads(connection.recv_bytes())


def serve(descriptor: int) -> None:
    """A worker process: loads, says what it is, and works off tasks until its connection closes."""
    _die_with_parent()
    connection = Connection(descriptor)
    setup: Setup = received(connection)
    sys.path[:] = [*setup.path, *(p for p in sys.path if p not in setup.path)]
    try:
        worker = Worker(setup)
    except BaseException as error:
        traceback.print_exc()
        send(connection, [("failed", f"{type(error).__name__}: {error}")])
        return
    send(connection, [("ready", worker.info())])
    pack = Packer()
    waiting: deque[Task] = deque()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task: Task = waiting.popleft() if waiting else received(connection)
            held: list[Message] = []  # sending costs more than a message: the input goes with the first rows
            for message in worker.work(task):
                if held and held[-1][0] == "rows":
                    send(connection, held)
                    held = []
                held.append(pack(message))
                if message[0] == "need" or task.single:
                    send(connection, held)
                    held = []
                if message[0] == "need":
                    # the next task may have been sent before the word that the need is stored
                    while (heard := received(connection)) != "stored":
                        waiting.append(heard)
            send(connection, [*held, ("done", None)])


class Packer:
    """Outputs as plain columns. What they have in common is sent when it is new, and named by its hash after that:
    a skeleton in every message would cost more than the poses."""

    def __init__(self) -> None:
        self._last: dict[str, Any] | None = None
        self._name = ""
        self._sent: dict[str, None] = {}

    def __call__(self, message: Message) -> Message:
        what, content = message
        if what == "rows":
            return what, self._rows(content)
        if what == "need":
            name, source, value = content
            if isinstance(value, NotApplicable):
                return what, {"need": name, "status": "not applicable", "message": str(value)}
            content = need_content(value)
            return what, {
                "need": name,
                "status": "ok",
                "provider": source.fingerprint,
                "kind": value.kind,
                "hash": str(xxhash.xxh3_128_hexdigest(content)),
                "data": content,
                "header": json.dumps(value.header(), ensure_ascii=False),
                "facts": json.dumps(value.shares() if isinstance(value, Zones) else {}, ensure_ascii=False),
            }
        return message

    def _rows(
        self, rows: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], dict[str, bytes]]:
        """The rows, each with its header's name; the headers, and the contents kept apart, that were not sent yet."""
        fresh: dict[str, dict[str, Any]] = {}
        contents: dict[str, bytes] = {}
        for row in rows:
            output: Output | None = row.pop("output", None)
            if output is not None:
                header = output.header()
                if header is not self._last and header != self._last:
                    self._last, self._name = header, fingerprint_of(json.dumps(header, sort_keys=True))
                    fresh[self._name] = header
                row.update(output.row(), header=self._name)
                self._set_apart(row, output.apart, contents)
            self._set_apart(row, Change.apart, contents)
            for name, value in row.items():
                if isinstance(value, np.ndarray):  # pickling an array takes ten times as long as its bytes
                    row[name] = value.tobytes()
        return rows, fresh, contents

    def _set_apart(self, row: dict[str, Any], columns: tuple[str, ...], contents: dict[str, bytes]) -> None:
        """Large columns by their hash; equal ones are sent once, as far as the last few thousand are remembered."""
        for column in columns:
            content = row.get(column)
            if content is not None:
                row[column] = name = str(xxhash.xxh3_128_hexdigest(content))
                if name not in self._sent:
                    contents[name] = content
                    self._sent[name] = None
                    if len(self._sent) > REMEMBERED:
                        del self._sent[next(iter(self._sent))]


def _die_with_parent() -> None:
    """Linux: a worker does not outlive its coordinator, not even when it hangs and the other is killed."""
    with suppress(Exception):
        import ctypes
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
