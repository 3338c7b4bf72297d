"""Crews: processes of one role, started while there is work for them, heard, and replaced when they die or hang."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar, Generic, Protocol

from instar.engine.line import Garbage
from instar.engine.messages import (
    Begin,
    CaseTask,
    Done,
    End,
    Failed,
    Filled,
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
from instar.engine.process import LOAD_SECONDS, Job, Process, Site, garbled
from instar.engine.versions import Changed, SystemFailed, refuse_changed, refuse_other
from instar.store import KEY, Row
from instar.transforms import NotApplicable

END_SECONDS = 5.0
"""How long processes may take to close their systems when all is done; a program has two seconds of it."""


class Sink(Protocol):
    """Where the coordinator puts what workers send."""

    def on_input(self, task: CaseTask, message: InputRead) -> bool:
        """A case was read; returns False where it is not the input that the run knows."""
        ...

    def on_unreadable(self, task: CaseTask, message: InputUnreadable) -> None: ...
    def on_need(self, task: CaseTask, message: NeedProvided) -> None: ...
    def on_rows(self, message: Rows) -> None:
        """Rows that are new. Headers and contents come once, whatever becomes of the rows they came with."""
        ...

    def resumed(self, task: CaseTask) -> CaseTask:
        """The task with the needs and the source output that are known by now."""
        ...

    def tick(self) -> None:
        """Called every now and then."""
        ...


def deliver(sink: Sink, task: CaseTask, message: Message) -> bool:
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
            sink.on_rows(message)
    return True


@dataclass(slots=True)
class Version:
    """What the run is of: a process that loads something else ends it."""

    info: WorkerInfo

    def refuse_other(self, message: Ready | Loaded | Failed) -> None:
        name = self.info.system.name
        match message:
            case Failed():
                failed = SystemFailed(f"{name} loaded in one worker, but not in another: {message.reason}")
                raise Changed(f"{name}: {message.reason}") if message.changed else failed
            case Ready():
                refuse_other(self.info, message.info)
            case Loaded():
                refuse_changed(name, self.info.files, message.files)
                self.info = replace(self.info, files={**message.files, **self.info.files})


@dataclass(slots=True)
class Pace:
    """What a prediction takes, lately: it says how long a batch of them may take."""

    seconds: float = 0.0

    def note(self, rows: Rows) -> None:
        spent = [seconds for seconds in rows.columns.get("seconds", ()) if seconds]
        if spent:
            self.seconds = max(self.seconds * 0.9, sum(spent) / len(spent))


class Crew(ABC, Generic[Job]):
    """Processes of one role, and what they have in hand."""

    most_jobs: ClassVar[int] = 64
    """A process has no more than that at hand."""

    def __init__(
        self, site: Site, setup: Setup, timeout: float, version: Version, pace: Pace, processes: Sequence[Process[Job]]
    ) -> None:
        self.site, self.setup, self.timeout, self.version, self.pace = site, setup, timeout, version, pace
        self.processes: list[Process[Job]] = list(processes)
        self.leaving: list[tuple[Process[Job], float]] = []
        """Processes that close their systems, and until when they may take."""
        self.places: deque[Mapping[str, str]] = deque()
        """Environments of processes that are gone, for those who replace them."""
        self.wanted = len(processes)
        self._load_failures = 0
        self.goes_on = False
        """Whether more work may follow from what comes of this: those that have nothing to do stay."""

    @property
    @abstractmethod
    def waiting(self) -> bool:
        """Whether there is, or may be, a job that nobody has."""

    @abstractmethod
    def take(self) -> tuple[Job, object] | None:
        """The next job, with what a process is told of it; None where there is none now."""

    @abstractmethod
    def note(self, process: Process[Job], job: Job, message: Message) -> None:
        """A process said something about its job."""

    @abstractmethod
    def done(self, job: Job) -> None:
        """A process is done with a job."""

    def lay_out(self, process: Process[Job], message: Filled) -> None:
        """A process has filled a tray, with inputs of jobs that it may be done with."""
        raise NotImplementedError

    @abstractmethod
    def lose(self, jobs: Sequence[Job], status: str, message: str) -> None:
        """A process is gone. Its job goes on one input at a time; a second death is recorded for what was in hand."""

    @abstractmethod
    def single(self, job: Job) -> bool:
        """Whether the job goes one input at a time."""

    @property
    def busy(self) -> bool:
        return any(process.queue for process in self.processes)

    def hand_out(self) -> None:
        """Fill every queue evenly; start processes only while there is work for them."""
        self._fill_queues()
        self.wanted = self.site.wanted(self.processes, self.wanted)
        if len(self.processes) < self.wanted and self.waiting:
            environment = self.places.popleft() if self.places else {}
            self.processes.append(self.site.start(replace(self.setup, environment=environment)))
        if self.site.gives_back:
            self._give_back()

    def _fill_queues(self) -> None:
        ready = [p for p in self.processes if p.ready]
        depths = {process: min(process.depth, self.most_jobs) for process in ready}
        for depth in range(1, max(depths.values(), default=0) + 1):
            for process in [p for p in ready if len(p.queue) < min(depth, depths[p])]:
                if (taken := self.take()) is None:
                    return
                process.give(*taken)

    def _give_back(self) -> None:
        """Those that have nothing to do, and will have nothing, leave; so do those for whom there is no place."""
        surplus = len(self.processes) - self.wanted
        for process in list(self.processes):
            at_end = not self.waiting and not self.goes_on
            if (at_end and not process.queue) or (surplus > 0 and process.body.waits() and not process.ready):
                self.processes.remove(process)
                surplus -= 1
                if process.ready:
                    process.tell(End())
                self.leaving.append((process, time.monotonic() + END_SECONDS * process.ready))
        for process, deadline in list(self.leaving):
            if process.body.wait(0) or time.monotonic() > deadline:
                process.kill()
                self.leaving.remove((process, deadline))
        if not self.waiting and not self.goes_on:
            self.site.close()

    def hear(self, process: Process[Job]) -> None:
        garbage = ""
        try:
            arrived: list[list[Message]] = process.line.arrived()
        except (EOFError, OSError):
            self._bury(process, "crashed", f"the worker process died {process.body.end()}")
            return
        except Garbage as error:
            arrived, garbage = error.before, f"the worker {garbled(error)}"
        process.heard = time.monotonic()
        for message in chain.from_iterable(arrived):
            if isinstance(message, Ready | Loaded | Failed):
                self.version.refuse_other(message)
                if isinstance(message, Ready):
                    self.greet(process, message)
                continue
            if isinstance(message, Filled):
                self.lay_out(process, message)
                continue
            job = process.current
            assert job is not None
            if isinstance(message, Done):
                process.finished()
                self.done(job)
            else:
                self.note(process, job, message)
        if garbage:
            self._bury(process, "crashed", garbage)

    def greet(self, process: Process[Job], message: Ready) -> None:
        process.ready, process.batch, self._load_failures = True, message.info.batch, 0

    def look_for_hangs(self) -> None:
        """Silent for longer than a prediction may take, or than such a batch usually takes: the process hangs.

        For a batch that is only a suspicion, which costs a new process; one input at a time it is a verdict.
        """
        now = time.monotonic()
        for process in list(self.processes):
            job = process.current
            if process.body.waits():
                process.heard = now
            elif not process.ready:
                if now - process.heard > LOAD_SECONDS:
                    self._bury(process, "timeout", "the system did not load again")
            elif job is not None and not self.idle(process):
                allowed = self.timeout if self.single(job) else max(self.timeout, 5 * process.batch * self.pace.seconds)
                if now - process.heard > allowed:
                    self._bury(process, "timeout", f"no answer within {self.timeout:g} s")

    def idle(self, process: Process[Job]) -> bool:
        """Whether it waits for us, though it has a job."""
        return False

    def _bury(self, process: Process[Job], status: str, message: str) -> None:
        process.kill()
        self.processes.remove(process)
        self.places.append(process.environment)
        if not process.ready and not process.body.lost:
            self._load_failures += 1
            if self._load_failures >= 3:
                raise SystemFailed(f"the system loaded once, but not again: {message}")
        self.buried(process)
        self.lose(tuple(process.queue), status, message)

    def buried(self, process: Process[Job]) -> None:
        """A process is gone, with what it was lent."""

    def part(self) -> None:
        """All is done: systems may close themselves, and end what they have started, before they are killed."""
        deadline = time.monotonic() + END_SECONDS
        loaded = [process for process in self.processes if process.ready]
        for process in loaded:
            process.tell(End())
        for process in (*loaded, *(process for process, _ in self.leaving)):
            process.body.wait(max(0.0, deadline - time.monotonic()))

    @property
    def everyone(self) -> list[Process[Job]]:
        """All that may still run."""
        return [*self.processes, *(process for process, _ in self.leaving)]


@dataclass(slots=True)
class CaseWork:
    """A case under way, and what is known of its fate."""

    task: CaseTask
    left: set[Key]
    in_hand: Begin | None = None
    laid: set[Key] = field(default_factory=set)
    """Keys that lie on a tray: they are made, and not yet predicted."""
    given_up: bool = False
    """Whether its input is another one than the run knows: what still comes of it is of that."""


class Workers(Crew[CaseWork]):
    """Processes that make follow-ups of a case and predict them."""

    def __init__(
        self,
        tasks: Iterator[CaseTask],
        sink: Sink,
        site: Site,
        setup: Setup,
        timeout: float,
        version: Version,
        pace: Pace,
        processes: Sequence[Process[CaseWork]],
    ) -> None:
        super().__init__(site, setup, timeout, version, pace, processes)
        self.tasks, self.sink = tasks, sink
        self.again: deque[CaseWork] = deque()
        self.exhausted = False

    @property
    def waiting(self) -> bool:
        return bool(self.again) or not self.exhausted

    def take(self) -> tuple[CaseWork, object] | None:
        if self.again:
            work = self.again.popleft()
            return work, work.task
        task = next(self.tasks, None)
        if task is None:
            self.exhausted = True
            return None
        return CaseWork(task, set(task.keys)), task

    def go_on_with(self, tasks: Iterator[CaseTask]) -> None:
        """All is done, and these tasks follow from it."""
        self.tasks, self.exhausted = tasks, False

    def single(self, job: CaseWork) -> bool:
        return job.task.single

    def note(self, process: Process[CaseWork], job: CaseWork, message: Message) -> None:
        if isinstance(message, Begin):
            job.in_hand = message
        elif isinstance(message, Rows):
            keys = message.keys
            places = unseen(job, keys, range(len(keys)))
            rows = message if len(places) == len(keys) else message.only(places)
            self.pace.note(rows)
            self.sink.on_rows(rows)
        elif not job.given_up and not deliver(self.sink, job.task, message):
            job.given_up = True
            job.left.clear()
        if isinstance(message, NeedProvided | Begin):
            process.tell(Stored())

    def done(self, job: CaseWork) -> None:
        pass

    def lose(self, jobs: Sequence[CaseWork], status: str, message: str) -> None:
        for number, work in enumerate(jobs):
            if number == 0:
                if work.task.single and work.left - work.laid:
                    record(self.sink, work, status, message)
                work.task = replace(work.task, single=True)
            if work.left:
                self.go_on(work)

    def go_on(self, work: CaseWork) -> None:
        """What is left of a case is handed out again."""
        keys = tuple(key for key in work.task.keys if key in work.left and key not in work.laid)
        work.task = self.sink.resumed(replace(work.task, keys=keys))
        work.in_hand = None
        self.again.append(work)


def unseen(work: CaseWork, keys: Sequence[Key], places: Sequence[int]) -> list[int]:
    """The places, of some among keys that were answered, of those that are still wanted of a case."""
    wanted = [place for place in places if keys[place] in work.left]
    work.left.difference_update(keys[place] for place in wanted)
    return wanted


def failed_row(case: str, key: Key, status: str, message: str) -> Row:
    return dict(zip((*KEY, "status", "message"), (case, *key, status, message), strict=True))


def record(sink: Sink, work: CaseWork, status: str, message: str) -> None:
    """Write down whose fault a death was; the next input's, where the process did not come to say."""
    task = work.task
    begun = work.in_hand or Begin(next(key for key in task.keys if key in work.left and key not in work.laid))
    if begun.need is not None:
        sink.on_need(task, NeedProvided(begun.need, "not applicable", message, provider=""))
        work.task = replace(task, needs={**task.needs, begun.need: NotApplicable(message)})
    elif begun.key is None:
        sink.on_unreadable(task, InputUnreadable(f"reading it: {message}"))
        work.left.clear()
    elif begun.key in work.left and begun.key not in work.laid:
        work.left.discard(begun.key)
        sink.on_rows(Rows.of([failed_row(task.case.id, begun.key, status, message)]))
