"""A Ray cluster as a place for workers: each is an actor, and the coordinator, which alone writes, stays here."""

from __future__ import annotations

import logging
import os
import re
import signal
import site as python_site
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from instar.case import Case
from instar.engine.crew import CaseWork
from instar.engine.line import Line, framed, pickled
from instar.engine.messages import CaseTask, Setup
from instar.engine.process import Process
from instar.engine.ray_seat import MODELS, Ended, Seat, Stamp, Versions, content_hash, versions
from instar.engine.versions import SystemFailed
from instar.reading import MAX_PIXELS, most_pixels
from instar.remote import address_in
from instar.secrets import without_secrets
from instar.systems.system import imported

ROOM_SECONDS = 1.0
"""Seconds between looks at what the cluster has room for."""
PATIENCE = 20.0
"""Seconds without any worker after which the user hears of it."""
END_SECONDS = 2.0
PIECE = 16 << 20
"""Files are brought to a node in pieces of so many bytes."""
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
"""What Ray is told unless the user says otherwise: to send no statistics, and to print nothing of nodes that come and
go among our own output. It is read when Ray is imported."""
_SENT = re.compile(rf"AWS_.*|GOOGLE_.*|AZURE_.*|HF_TOKEN|HF_ENDPOINT|{MODELS}")
"""Environment variables that Instar reads itself, and that are sent to the nodes: where models are, and the keys of
buckets. Never by `runtime_env`, which Ray shows and logs."""


@contextmanager
def ray_site(address: str | None, workers: int | None, say: Callable[[str], None]) -> Iterator[RaySite]:
    """A cluster, connected to: the one at an address, the one that this process is connected to or runs in, the one on
    this machine, or else one that is started for as long as it is used."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray = imported("ray", "ray", "Ray", "the engine ray")
    if ray.is_initialized():
        if address is not None:
            say(f"this process is connected to the Ray cluster at {ray.get_runtime_context().gcs_address}, and uses it")
        yield RaySite(ray, workers, say)
        return
    place = address or os.environ.get("RAY_ADDRESS") or ""
    try:
        _look_for(place)
        with _alone():
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, include_dashboard=False)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SystemFailed(f"no Ray cluster can be used at {place or 'this machine'}: {reason}") from None
    try:
        yield RaySite(ray, workers, say)
    finally:
        ray.shutdown()


def _look_for(address: str) -> None:
    """Raise OSError where nobody listens at an address. Ray itself tries it for two minutes."""
    if place := re.fullmatch(r"(?:ray://)?(.+):(\d+)", address):
        socket.create_connection((place[1], int(place[2])), timeout=10).close()


@contextmanager
def _alone() -> Iterator[None]:
    """Leave the terminal and the signals as they are, whatever Ray does with them while it connects."""
    before = signal.getsignal(signal.SIGTERM)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        terminal = os.dup(2)
    except OSError:  # a process without stderr
        terminal = os.dup(nowhere)
    sys.stderr.flush()
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.close(nowhere)
        with suppress(ValueError):  # not the main thread: nothing was changed
            signal.signal(signal.SIGTERM, before)


class RaySite:
    """Where actors are started: as many as are asked for, or as there is room for, also when nodes join later."""

    gives_back = True

    def __init__(self, ray: Any, workers: int | None, say: Callable[[str], None]) -> None:
        self.ray, self.workers, self.say = ray, workers, say
        self.gpus = int(ray.cluster_resources().get("GPU", 0) >= 1)
        """How many GPUs an actor has: one, until the system says that it does not live on one."""
        self.vacant: list[Any] = []
        """Actors whose process has ended, for the next one: to start an actor takes longer than to start a process."""
        self.working = 0
        """Actors that are on a node, with a process."""
        self._looked = -ROOM_SECONDS
        self._patient = True
        self._noted: set[str] = set()

    def start(self, setup: Setup) -> Process[Any]:
        environment = {name: value for name, value in os.environ.items() if _SENT.fullmatch(name)}
        environment |= {MAX_PIXELS: str(most_pixels()), **setup.environment}
        seat = self.vacant.pop() if self.vacant else self._seat()
        here, there = socket.socketpair()
        actor = Actor(self, seat, (own_path(), str(Path.cwd()), environment), there)
        process = ActorProcess(actor, Line(here), environment=setup.environment)
        process.load(setup)
        return process

    def _seat(self) -> Any:
        """A new actor. One thread of it listens to its process, one speaks to it, and one ends it."""
        return self.ray.remote(Seat).options(num_cpus=1, num_gpus=self.gpus, max_concurrency=3).remote()

    def wanted(self, processes: Sequence[Process[Any]], before: int) -> int:
        """Where nobody said how many, none is asked for that has no place, so that an autoscaler does not add nodes by
        itself."""
        if self.workers is not None:
            return self.workers
        if time.monotonic() - self._looked < ROOM_SECONDS:
            return before
        self._looked = time.monotonic()
        wanted = min(before, self._places(self.ray.cluster_resources()))
        if not any(process.body.waits() and not process.ready for process in processes):
            wanted = len(processes) + len(self.vacant) + self._places(self.ray.available_resources())
        return max(1, wanted)

    def _places(self, resources: dict[str, float]) -> int:
        cpus = int(resources.get("CPU", 0))
        return min(cpus, int(resources.get("GPU", 0))) if self.gpus else cpus

    def compare(self, there: Versions) -> None:
        """Say once where a node has another version of something than this machine."""
        here = versions()
        for name in sorted(here.keys() & there.keys() - self._noted):
            if here[name] != there[name]:
                self._noted.add(name)
                self.say(f"a node has {name} {there[name]}, and this machine {here[name]}: its answers may differ")

    def close(self) -> None:
        while self.vacant:
            self.ray.kill(self.vacant.pop())

    def be_patient(self, since: float) -> None:
        """Say once that nobody works because no node has room."""
        if self._patient and not self.working and time.monotonic() - since > PATIENCE:
            self._patient = False
            wanted = "a CPU and a GPU" if self.gpus else "a CPU"
            self.say(f"no node of the Ray cluster has {wanted} to spare; the run waits (`ray status` says for what)")


class Actor:
    """The body of a process that runs on a node."""

    _turns = count()

    def __init__(self, site: RaySite, seat: Any, order: tuple[object, ...], end: socket.socket) -> None:
        self._site, self._ray, self._seat, self._order, self._line = site, site.ray, seat, order, end
        self._turn = next(self._turns)
        self.lost = False
        self._bringing = self._given_up = False
        self._brought: set[str] = set()
        self._since = time.monotonic()
        self._placed, self._ended = threading.Event(), threading.Event()
        self._end = ""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        """Put what the process says on the line; close it where nothing more will come."""
        try:
            self._site.compare(self._ray.get(self._seat.start.remote(self._turn, *self._order)))
            self._site.working += 1
            self._placed.set()
            while not isinstance(speech := self._ray.get(self._seat.ask.remote(self._turn, "hear")), Ended):
                with suppress(OSError):  # nobody listens any more; how it ends has to be known all the same
                    self._line.sendall(speech)
            self._end = speech.words
        except self._ray.exceptions.RayError as error:
            # what fails by itself on every node must not be tried for ever
            fails = isinstance(error, self._ray.exceptions.RayTaskError) or "creation task" in str(error)
            self.lost = not fails
            self._end = f"({_reason(error)})"
        finally:
            self._site.working -= self._placed.is_set()
            self._ended.set()
            self._placed.set()
            self._line.close()

    def _ask(self, method: str, *arguments: object) -> Any:
        self._placed.wait()
        if self._given_up:
            raise BrokenPipeError
        try:
            return self._ray.get(self._seat.ask.remote(self._turn, method, *arguments))
        except self._ray.exceptions.RayError:
            raise BrokenPipeError from None  # what became of it is heard on the line

    def send(self, content: bytes) -> None:
        self._ask("take", framed(content))

    def waits(self) -> bool:
        if not self._placed.is_set():
            self._site.be_patient(self._since)
            return True
        return self._bringing

    def wait(self, seconds: float) -> bool:
        return self._ended.wait(seconds)

    def terminate(self) -> None:
        if self._placed.is_set() and not self._ended.is_set():
            self._seat.ask.remote(self._turn, "end")

    def kill(self) -> None:
        if self._given_up:
            return
        self._given_up = True
        self.terminate()
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)  # whoever waits to be heard need not wait any more
        if self._placed.is_set() and self._ended.wait(END_SECONDS) and not self.lost:
            self._site.vacant.append(self._seat)
        else:
            self._ray.kill(self._seat)
            self._ended.wait(END_SECONDS)

    def end(self) -> str:
        return self._end

    def give(self, path: str, content: bytes) -> None:
        """Send a message about a file, which the process can then read: where its node has not the same one there, the
        file is sent, too."""
        stamp = Stamp.of(path)
        if stamp is None:  # the process says what it sees
            self.send(content)
            return
        seen = self._ask("offer", framed(content), path, stamp)
        if seen is True:
            return
        self._bringing = True
        try:
            if not seen or seen != content_hash(path):
                self._bring(path, stamp)
        except BrokenPipeError:
            raise
        except OSError:  # it cannot be read here either; the process says what it sees
            pass
        finally:
            self._bringing = False
        self.send(content)

    def _bring(self, path: str, stamp: Stamp) -> None:
        self._brought.add(path)
        with Path(path).open("rb") as file:
            start, piece = 0, file.read(PIECE)
            while following := file.read(PIECE):
                self._ask("bring", path, piece, start, stamp, False)
                start, piece = start + len(piece), following
            self._ask("bring", path, piece, start, stamp, True)

    def drop(self, path: str) -> None:
        if path in self._brought:
            self._brought.discard(path)
            self._ask("drop", path)


class ActorProcess(Process[CaseWork]):
    """A process on a node: the files of its cases are seen to."""

    __slots__ = ()
    body: Actor

    def load(self, setup: Setup) -> None:
        self.tell(replace(setup, path=own_path()))

    def tell(self, message: object) -> None:
        if isinstance(message, CaseTask) and (path := _file(message.case)) is not None:
            self.outbox.put(partial(self.body.give, path, pickled(message)))
        else:
            super().tell(message)

    def finished(self) -> None:
        path = _file(self.queue[0].task.case)
        super().finished()
        if path is not None and path not in (_file(job.task.case) for job in self.queue):
            self.outbox.put(partial(self.body.drop, path))


def _file(case: Case) -> str | None:
    """The file that a case is read from; None where it is an object at an address, or in memory."""
    return case.path if case.input is None and case.path is not None and address_in(case.path) is None else None


def own_path() -> tuple[str, ...]:
    """Where modules are imported from, less what belongs to this Python: a node has its own."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    pythons = [*paths, *python_site.getsitepackages(), python_site.getusersitepackages()]
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    entries = [Path(entry).absolute() for entry in sys.path]
    return tuple(
        str(entry)
        for entry in entries
        if entry.name != archive and not any(entry.is_relative_to(python) for python in pythons)
    )


def _reason(error: Exception) -> str:
    """Why an actor is gone: the last line of what Ray says."""
    lines = [line.strip() for line in without_secrets(str(error)).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__
