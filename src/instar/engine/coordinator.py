"""The coordinator: hands out work, hears what comes of it, and is the only one that writes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from types import FrameType
from typing import Any

from instar.engine.crew import Crew, Pace, Sink, Version, Workers, deliver
from instar.engine.hands import Hands
from instar.engine.messages import CaseTask, WorkerInfo
from instar.engine.split import Makers, Predictors
from instar.engine.versions import Changed
from instar.engine.worker import Worker
from instar.systems import AnotherVersion


class Interrupted(Exception):
    """The user asked to stop. Everything received has been committed."""


Again = Callable[[], Iterator[CaseTask] | None]
"""The tasks that follow from what came of those before; None where there are none."""


def execute(
    tasks: Iterable[CaseTask],
    sink: Sink,
    hands: Hands | Worker,
    *,
    timeout: float,
    info: WorkerInfo,
    again: Again | None = None,
) -> None:
    """Work off all tasks with these hands; with a worker in this process, without protection from its failures.

    `info` is what the run is of: a process that loads something else ends it. `again` is called when all is done.
    """
    with _StopSignals() as stop:
        if isinstance(hands, Hands):
            crews = _crews(tasks, sink, hands, timeout, info)
            crews[0].goes_on = again is not None
            _coordinate(crews, sink, stop, again)
            return
        try:
            more: Iterable[CaseTask] | None = tasks
            while more is not None:
                _inline(more, sink, hands, stop)
                more = again() if again else None
        except AnotherVersion as change:
            raise Changed(f"{info.system.name}: {change}") from None


def _crews(
    tasks: Iterable[CaseTask], sink: Sink, hands: Hands, timeout: float, info: WorkerInfo
) -> tuple[Workers, *tuple[Crew[Any], ...]]:
    """Those who take cases come first."""
    version, pace = Version(info), Pace()
    of_cases = (iter(tasks), sink, hands.site, hands.setup, timeout, version, pace, hands.workers)
    if hands.predictor is None or hands.trays is None:
        return (Workers(*of_cases),)
    makers = Makers(hands.trays, *of_cases)
    makers.lend()
    return makers, Predictors(makers, hands.site, hands.predictor, timeout, version, pace, hands.predictors)


def _coordinate(
    crews: tuple[Workers, *tuple[Crew[Any], ...]], sink: Sink, stop: _StopSignals, again: Again | None
) -> None:
    try:
        while not stop.requested:
            for crew in crews:
                crew.hand_out()
            if not any(crew.busy or crew.waiting for crew in crews):
                if again and (more := again()) is not None:
                    crews[0].go_on_with(more)
                    continue
                for crew in crews:
                    crew.part()
                return
            _hear(crews, 0.2)
            for crew in crews:
                crew.look_for_hangs()
            sink.tick()
        while _hear(crews, 0):  # what was sent already is not lost when the user stops
            pass
        raise Interrupted
    finally:
        processes = [process for crew in crews for process in crew.everyone]
        for process in processes:
            process.body.terminate()  # all at once, before each is waited for
        for process in processes:
            process.kill()


def _hear(crews: Sequence[Crew[Any]], seconds: float) -> bool:
    """Hear those that have something to say, or have ended, as soon as there is one; whether there was one."""
    speaking = set(wait([p.line.fileno() for crew in crews for p in crew.processes], timeout=seconds))
    for crew in crews:
        for process in [p for p in crew.processes if p.line.fileno() in speaking]:
            crew.hear(process)
    return bool(speaking)


def _inline(tasks: Iterable[CaseTask], sink: Sink, worker: Worker, stop: _StopSignals) -> None:
    for task in tasks:
        for message in worker.work(task):
            goes_on = deliver(sink, task, message)
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
