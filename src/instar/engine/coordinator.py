"""Workers on this machine: processes, each with its own system, and the coordinator that commits what they say."""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from multiprocessing.connection import wait
from queue import SimpleQueue
from threading import Thread
from types import FrameType
from typing import BinaryIO, Protocol

from instar.engine.line import Garbage, Line, pickled
from instar.engine.messages import (
    Begin,
    CaseTask,
    Done,
    End,
    Failed,
    InputRead,
    InputUnreadable,
    Loaded,
    Message,
    NeedProvided,
    Ready,
    Rows,
    Setup,
    Stored,
    WorkerInfo,
)
from instar.engine.plan import Key
from instar.engine.versions import Changed, SystemFailed, refuse_changed, refuse_other
from instar.engine.worker import Worker
from instar.store import KEY
from instar.systems import AnotherVersion
from instar.systems.child import end_guarded, ending, guarded, last_words, scratch
from instar.transforms import NotApplicable

LOAD_SECONDS = 600.0
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # glibc gives a freed picture back to the system and asks for it again, page by page, for the next one;
    # keeping it makes transformations of 720×480 about a third faster
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}
"""What a worker's environment says unless the user's own does."""
QUEUED_SECONDS = 0.5  # a worker has its next cases at hand while the coordinator commits
QUEUED_MOST = 64
END_SECONDS = 5.0
"""How long workers may take to close their systems when all is done; a program has two seconds of it."""


class Interrupted(Exception):
    """The user asked to stop. Everything received has been committed."""


class Sink(Protocol):
    """Where the coordinator puts what workers send."""

    def on_input(self, task: CaseTask, message: InputRead) -> bool:
        """A case was read; returns False where it is not the input that the run knows."""
        ...

    def on_unreadable(self, task: CaseTask, message: InputUnreadable) -> None: ...
    def on_need(self, task: CaseTask, message: NeedProvided) -> None: ...
    def on_rows(self, task: CaseTask, message: Rows) -> None:
        """Rows that are new. Headers and contents come once, whatever becomes of the rows they came with."""
        ...

    def resumed(self, task: CaseTask) -> CaseTask:
        """The task with the needs and the source output that are known by now."""
        ...

    def tick(self) -> None:
        """Called every now and then."""
        ...


@dataclass(slots=True)
class _Work:
    """A task under way, and what is known of its fate."""

    task: CaseTask
    left: set[Key]
    in_hand: Begin | None = None


@dataclass(slots=True)
class _Process:
    """One worker process."""

    child: subprocess.Popen[bytes]
    line: Line
    log: BinaryIO
    queue: deque[_Work] = field(default_factory=deque)
    ready: bool = False
    batch: int = 1
    heard: float = field(default_factory=time.monotonic)
    begun: float = 0.0
    pace: float = QUEUED_SECONDS
    """Seconds that a case takes, lately."""
    outbox: SimpleQueue[bytes | None] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        # A worker that hangs reads nothing, and a send to it could block for ever: that must not be the coordinator.
        Thread(target=self._send, daemon=True).start()

    def _send(self) -> None:
        with suppress(OSError, ValueError):
            while (message := self.outbox.get()) is not None:
                self.line.send_bytes(message)

    def tell(self, message: object) -> None:
        """Pickled here, not in the thread: what cannot be pickled is the caller's error, and must be heard."""
        self.outbox.put(pickled(message))

    @property
    def depth(self) -> int:
        """How many cases it should have, the one in hand included: two at least."""
        return min(QUEUED_MOST, max(2, math.ceil(QUEUED_SECONDS / max(self.pace, 1e-6))))

    def give(self, work: _Work) -> None:
        if not self.queue:
            self.heard = self.begun = time.monotonic()
        self.queue.append(work)
        self.tell(work.task)

    def finished(self) -> None:
        """Its case is done; the next begins."""
        self.queue.popleft()
        now = time.monotonic()
        self.pace += 0.3 * (now - self.begun - self.pace)
        self.begun = now

    @property
    def current(self) -> _Work | None:
        return self.queue[0] if self.queue else None

    def kill(self) -> None:
        """End it at once, with all that its system has started."""
        self.outbox.put(None)
        end_guarded(self.child)
        self.line.close()
        self.log.close()

    def end(self) -> str:
        """How it ended, and its last words on stderr: why a native library died is said nowhere else."""
        return f"({ending(self.child.wait())}){last_words(self.log)}"


def default_workers() -> int:
    """One per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(setup: Setup) -> _Process:
    """A new worker process. It never imports the caller's main module, so scripts need no guard."""
    here, there = socket.socketpair()
    log = scratch()
    environment = {**WORKER_ENVIRONMENT, **os.environ}
    child = subprocess.Popen(
        guarded([sys.executable, "-c", "from instar.engine.worker import serve; serve()"]),
        stdin=there.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=log,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    there.close()
    process = _Process(child, Line(here), log)
    process.tell(replace(setup, path=tuple(sys.path)))
    return process


def greeted(process: _Process) -> WorkerInfo:
    """Wait for a worker's first word: what its system is, or why it failed."""
    message: object = None
    deadline = time.monotonic() + LOAD_SECONDS
    while message is None:
        if not wait([process.line.fileno()], timeout=max(0.0, deadline - time.monotonic())):
            process.kill()
            raise SystemFailed(f"the system did not load within {LOAD_SECONDS:.0f} s")
        try:
            message = next(chain.from_iterable(process.line.arrived()), None)
        except (EOFError, OSError, Garbage) as error:
            end = _garbled(error) if isinstance(error, Garbage) else f"died while it loaded the system {process.end()}"
            process.kill()
            raise SystemFailed(f"the worker {end}") from None
    if isinstance(message, Failed):
        process.kill()
        raise SystemFailed(message.reason)
    assert isinstance(message, Ready)
    process.ready, process.batch = True, message.info.batch
    process.heard = time.monotonic()
    return message.info


def _garbled(garbage: Garbage) -> str:
    return (
        f"said {garbage} where Instar hears its answers; the system writes to, or closes, descriptors of the process "
        "that are not its own"
    )


def execute(
    tasks: Iterable[CaseTask],
    sink: Sink,
    *,
    setup: Setup,
    workers: int,
    timeout: float,
    info: WorkerInfo,
    ready: Sequence[_Process] = (),
    here: Worker | None = None,
) -> None:
    """Work off all tasks with `workers` processes; with the worker `here`, without protection from its failures.

    `info` is what the run is of: a worker that loads something else ends it.
    """
    with _StopSignals() as stop:
        if here is None:
            _Coordinator(tasks, sink, setup, workers, timeout, stop, info, ready).run()
            return
        try:
            _inline(tasks, sink, here, stop)
        except AnotherVersion as change:
            raise Changed(f"{info.system.name}: {change}") from None


def _deliver(sink: Sink, task: CaseTask, message: Message) -> bool:
    """Put a message where it belongs; False where nothing more is to come of the case."""
    match message:
        case InputRead():
            return sink.on_input(task, message)
        case InputUnreadable():
            sink.on_unreadable(task, message)
            return False
        case NeedProvided():
            sink.on_need(task, message)
        case Rows():
            sink.on_rows(task, message)
    return True


def _inline(tasks: Iterable[CaseTask], sink: Sink, worker: Worker, stop: _StopSignals) -> None:
    for task in tasks:
        for message in worker.work(task):
            goes_on = _deliver(sink, task, message)
            sink.tick()
            if stop.requested:
                raise Interrupted
            if not goes_on:
                break


class _StopSignals:
    """Ctrl-C and SIGTERM ask to stop; a second one stops at once."""

    def __init__(self) -> None:
        self.requested = False
        self._old: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> _StopSignals:
        with suppress(ValueError):  # not the main thread: the caller's signals are the caller's
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *_: object) -> None:
        for number, old in self._old.items():
            signal.signal(number, old)


class _Coordinator:
    """Hands out cases, hears rows, replaces workers that die or hang."""

    def __init__(
        self,
        tasks: Iterable[CaseTask],
        sink: Sink,
        setup: Setup,
        workers: int,
        timeout: float,
        stop: _StopSignals,
        info: WorkerInfo,
        ready: Sequence[_Process],
    ) -> None:
        self.tasks: Iterator[CaseTask] = iter(tasks)
        self.again: deque[_Work] = deque()
        self.sink, self.setup, self.timeout, self.stop = sink, setup, timeout, stop
        self.wanted, self.info = workers, info
        self.processes: list[_Process] = list(ready)
        self.exhausted = False
        self.mean = 0.0
        self.load_failures = 0

    def run(self) -> None:
        try:
            while not self.stop.requested:
                self._hand_out()
                busy = [p for p in self.processes if p.queue]
                if not busy and self.exhausted and not self.again:
                    self._part()
                    return
                for process in self._speaking(0.2):
                    self._hear(process)
                self._look_for_hangs()
                self.sink.tick()
            self._hear_out()
            raise Interrupted
        finally:
            for process in self.processes:
                process.child.terminate()  # all at once, before each is waited for
            for process in self.processes:
                process.kill()

    def _part(self) -> None:
        """All is done: systems may close themselves, and end what they have started, before they are killed."""
        deadline = time.monotonic() + END_SECONDS
        loaded = [process for process in self.processes if process.ready]
        for process in loaded:
            process.tell(End())
        for process in loaded:
            with suppress(subprocess.TimeoutExpired):
                process.child.wait(max(0.0, deadline - time.monotonic()))

    def _hear_out(self) -> None:
        """What workers have sent already is not lost when the user stops."""
        while speaking := self._speaking(0):
            for process in speaking:
                self._hear(process)

    def _speaking(self, seconds: float) -> list[_Process]:
        """Those that have something to say, or have ended, as soon as there is one."""
        ready = wait([p.line.fileno() for p in self.processes], timeout=seconds)
        return [p for p in self.processes if p.line.fileno() in ready]

    def _next(self) -> _Work | None:
        if self.again:
            return self.again.popleft()
        task = next(self.tasks, None)
        if task is None:
            self.exhausted = True
            return None
        return _Work(task, set(task.keys))

    def _hand_out(self) -> None:
        """Fill every worker's queue evenly; start workers only while there is work for them."""
        ready = [p for p in self.processes if p.ready]
        for depth in range(1, max((p.depth for p in ready), default=0) + 1):
            for process in [p for p in ready if len(p.queue) < min(depth, p.depth)]:
                work = self._next()
                if work is None:
                    return
                process.give(work)
        if len(self.processes) < self.wanted and (self.again or not self.exhausted):
            self.processes.append(start(self.setup))

    def _hear(self, process: _Process) -> None:
        garbage = ""
        try:
            arrived: list[list[Message]] = process.line.arrived()
        except (EOFError, OSError):
            self._bury(process, "crashed", f"the worker process died {process.end()}")
            return
        except Garbage as error:
            arrived, garbage = error.before, f"the worker {_garbled(error)}"
        process.heard = time.monotonic()
        for message in chain.from_iterable(arrived):
            self._note(process, message)
        if garbage:
            self._bury(process, "crashed", garbage)

    def _note(self, process: _Process, message: Message) -> None:
        name = self.info.system.name
        if isinstance(message, Failed):
            failed = SystemFailed(f"{name} loaded in one worker, but not in another: {message.reason}")
            raise Changed(f"{name}: {message.reason}") if message.changed else failed
        if isinstance(message, Ready):
            refuse_other(self.info, message.info)
            process.ready, process.batch, self.load_failures = True, message.info.batch, 0
            return
        if isinstance(message, Loaded):
            refuse_changed(name, self.info.files, message.files)
            self.info = replace(self.info, files={**message.files, **self.info.files})
            return
        work = process.current
        assert work is not None
        if isinstance(message, Done):
            process.finished()
        elif isinstance(message, Begin):
            work.in_hand = message
        else:
            if isinstance(message, Rows):
                message = self._unseen(work, message)
            if not _deliver(self.sink, work.task, message):
                work.left.clear()
            if isinstance(message, NeedProvided):
                process.tell(Stored())

    def _unseen(self, work: _Work, message: Rows) -> Rows:
        """The rows that are still wanted; what they took says how long others may take."""
        rows = [r for r in message.rows if (r["follow_up"], r["draw"], r["repeat"]) in work.left]
        work.left -= {(r["follow_up"], r["draw"], r["repeat"]) for r in rows}
        spent = [r["seconds"] for r in rows if r.get("seconds")]
        if spent:
            self.mean = max(self.mean * 0.9, sum(spent) / len(spent))
        return replace(message, rows=rows)

    def _look_for_hangs(self) -> None:
        """Silent for longer than a prediction may take, or than such a batch usually takes: the worker hangs.

        For a batch that is only a suspicion, which costs a new worker; one input at a time it is a verdict.
        """
        now = time.monotonic()
        for process in list(self.processes):
            work = process.current
            if not process.ready:
                if now - process.heard > LOAD_SECONDS:
                    self._bury(process, "timeout", "the system did not load again")
            elif work is not None:
                allowed = self.timeout if work.task.single else max(self.timeout, 5 * process.batch * self.mean)
                if now - process.heard > allowed:
                    self._bury(process, "timeout", f"no answer within {self.timeout:g} s")

    def _bury(self, process: _Process, status: str, message: str) -> None:
        """A worker is gone. Its case goes on one input at a time; a second death is recorded for what was in hand."""
        process.kill()
        self.processes.remove(process)
        if not process.ready:
            self.load_failures += 1
            if self.load_failures >= 3:
                raise SystemFailed(f"the system loaded once, but not again: {message}")
        waiting = list(process.queue)
        for number, work in enumerate(waiting):
            if number == 0:
                if work.task.single and work.left:
                    self._record(work, status, message)
                work.task = replace(work.task, single=True)
            if work.left:
                work.task = replace(work.task, keys=tuple(k for k in work.task.keys if k in work.left))
                work.task = self.sink.resumed(work.task)
                work.in_hand = None
                self.again.append(work)

    def _record(self, work: _Work, status: str, message: str) -> None:
        """Write down whose fault the death was; the next input's, where the worker did not come to say."""
        task = work.task
        begun = work.in_hand or Begin(next(key for key in task.keys if key in work.left))
        if begun.need is not None:
            self.sink.on_need(task, NeedProvided(begun.need, "not applicable", message, provider=""))
            work.task = replace(task, needs={**task.needs, begun.need: NotApplicable(message)})
        elif begun.key is None:
            self.sink.on_unreadable(task, InputUnreadable(f"reading it: {message}"))
            work.left.clear()
        elif begun.key in work.left:
            work.left.discard(begun.key)
            values = (task.case.id, *begun.key, status, message)
            self.sink.on_rows(task, Rows([dict(zip((*KEY, "status", "message"), values, strict=True))]))
