"""A process of Instar's own, spoken to over a line: a worker, a maker or a predictor."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from multiprocessing.connection import wait
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, ClassVar, Generic, Protocol, TypeVar

from instar.engine.line import Garbage, Line, pickled
from instar.engine.messages import Failed, Ready, Setup, WorkerInfo
from instar.engine.versions import SystemFailed
from instar.systems.child import end_guarded, ending, guarded, last_words, scratch

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
Job = TypeVar("Job")
"""What a process has in hand: cases, or trays."""


class Body(Protocol):
    """What a process runs in: a child of this one, or an actor on a machine of a cluster."""

    @property
    def lost(self) -> bool:
        """Whether it ended because its machine did, whatever it was doing."""
        ...

    def send(self, content: bytes) -> None:
        """Send it a message; waits for as long as it does not listen."""
        ...

    def waits(self) -> bool:
        """Whether it waits for a machine, or for us: its time does not run."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, so long at most; whether it has."""
        ...

    def terminate(self) -> None:
        """Have it end at once."""
        ...

    def kill(self) -> None:
        """End it at once, with all that its system has started."""
        ...

    def end(self) -> str:
        """How it ended, and its last words on stderr: why a native library died is said nowhere else."""
        ...


@dataclass(frozen=True, slots=True)
class Child:
    """A child of this process, under guard."""

    program: subprocess.Popen[bytes]
    line: Line
    log: BinaryIO
    lost: ClassVar[bool] = False

    def send(self, content: bytes) -> None:
        self.line.send_bytes(content)

    def waits(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self.program.wait(seconds)
        return self.program.poll() is not None

    def terminate(self) -> None:
        self.program.terminate()

    def kill(self) -> None:
        end_guarded(self.program)
        self.log.close()

    def end(self) -> str:
        return f"({ending(self.program.wait())}){last_words(self.log)}"


@dataclass(slots=True, eq=False)
class Process(Generic[Job]):
    """One process, and what it was given to do."""

    body: Body
    line: Line
    queue: deque[Job] = field(default_factory=deque)
    ready: bool = False
    batch: int = 1
    heard: float = field(default_factory=time.monotonic)
    begun: float = 0.0
    pace: float = QUEUED_SECONDS
    """Seconds that a job takes, lately."""
    outbox: SimpleQueue[Callable[[], None] | None] = field(default_factory=SimpleQueue)
    environment: Mapping[str, str] = field(default_factory=dict)
    """What is for this process alone: whoever replaces it is given the same, such as its GPU."""

    def __post_init__(self) -> None:
        # A worker that hangs reads nothing, and a send to it could block for ever: that must not be the coordinator.
        Thread(target=self._send, daemon=True).start()

    def _send(self) -> None:
        with suppress(OSError, ValueError):
            while (sending := self.outbox.get()) is not None:
                sending()

    def tell(self, message: object) -> None:
        """Pickled here, not in the thread: what cannot be pickled is the caller's error, and must be heard."""
        self.outbox.put(partial(self.body.send, pickled(message)))

    @property
    def depth(self) -> int:
        """How many jobs it should have, the one in hand included: two at least."""
        return max(2, math.ceil(QUEUED_SECONDS / max(self.pace, 1e-6)))

    def load(self, setup: Setup) -> None:
        self.tell(replace(setup, path=tuple(sys.path)))

    def lent(self) -> None:
        """It may have waited for that: its time begins now."""
        self.heard = time.monotonic()

    def give(self, job: Job, message: object) -> None:
        if not self.queue:
            self.heard = self.begun = time.monotonic()
        self.queue.append(job)
        self.tell(message)

    def finished(self) -> None:
        """Its job is done; the next begins."""
        self.queue.popleft()
        now = time.monotonic()
        self.pace += 0.3 * (now - self.begun - self.pace)
        self.begun = now

    @property
    def current(self) -> Job | None:
        return self.queue[0] if self.queue else None

    def kill(self) -> None:
        """End it at once, with all that its system has started."""
        self.outbox.put(None)
        self.body.kill()
        self.line.close()


def default_workers() -> int:
    """One per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(setup: Setup) -> Process[Any]:
    """A new process that loads at once what it needs."""
    process = launched(setup)
    process.load(setup)
    return process


def launched(setup: Setup) -> Process[Any]:
    """A new process of this machine."""
    program, end, log = spawned(setup)
    line = Line(end)
    return Process(Child(program, line, log), line, environment=setup.environment)


def spawned(setup: Setup, folder: str | None = None) -> tuple[subprocess.Popen[bytes], socket.socket, BinaryIO]:
    """A new child of this process, the end of its line, and where its last words are kept. It never imports the
    caller's main module, so scripts need no guard."""
    here, there = socket.socketpair()
    log = scratch()
    environment = {**WORKER_ENVIRONMENT, **os.environ}
    child = subprocess.Popen(
        guarded([sys.executable, "-c", "from instar.engine.serving import serve; serve()"]),
        stdin=there.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=log,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path), **setup.environment},
        pass_fds=setup.trays,
        cwd=folder,
    )
    there.close()
    return child, here, log


class Site(Protocol):
    """Where processes are started: this machine, or a cluster."""

    gives_back: bool
    """Whether those for whom nothing is left to do end at once, so that others have their place."""

    def start(self, setup: Setup) -> Process[Any]:
        """A new process that loads at once what it needs."""
        ...

    def wanted(self, processes: Sequence[Process[Any]], before: int) -> int:
        """How many of these there may be by now, where there were so many before."""
        ...

    def close(self) -> None:
        """Nothing more will be started, as far as can be said."""
        ...


class Here:
    """This machine: there are as many processes as there were at the beginning."""

    gives_back = False

    def start(self, setup: Setup) -> Process[Any]:
        return start(setup)

    def wanted(self, processes: Sequence[Process[Any]], before: int) -> int:
        return before

    def close(self) -> None:
        pass


def greeted(process: Process[Any]) -> WorkerInfo:
    """Wait for a worker's first word: what its system is, or why it failed."""
    message: object = None
    deadline = time.monotonic() + LOAD_SECONDS
    while message is None:
        if not wait([process.line.fileno()], timeout=min(1.0, max(0.0, deadline - time.monotonic()))):
            if process.body.waits():
                deadline = time.monotonic() + LOAD_SECONDS
            elif time.monotonic() >= deadline:
                process.kill()
                raise SystemFailed(f"the system did not load within {LOAD_SECONDS:.0f} s")
            continue
        try:
            message = next(chain.from_iterable(process.line.arrived()), None)
        except (EOFError, OSError, Garbage) as error:
            end = (
                garbled(error)
                if isinstance(error, Garbage)
                else f"died while it loaded the system {process.body.end()}"
            )
            process.kill()
            raise SystemFailed(f"the worker {end}") from None
    if isinstance(message, Failed):
        process.kill()
        raise SystemFailed(message.reason)
    assert isinstance(message, Ready)
    process.ready, process.batch = True, message.info.batch
    process.heard = time.monotonic()
    return message.info


def garbled(garbage: Garbage) -> str:
    return (
        f"said {garbage} where Instar hears its answers; the system writes to, or closes, descriptors of the process "
        "that are not its own"
    )
