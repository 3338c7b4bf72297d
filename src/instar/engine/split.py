"""Makers and predictors: as many make follow-ups as there are cores, and as many predict as hold the system.

A maker lays follow-ups of one case after the other on a tray; a predictor predicts what lies on it, and the tray goes
back. There are as many trays as keep both at work, so that the memory between them is bounded.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from instar.engine.crew import CaseWork, Crew, Workers, failed_row, unseen
from instar.engine.messages import Batch, BeginPlace, Filled, Grant, Message, Ready, Rows, Waits
from instar.engine.plan import SOURCE
from instar.engine.process import Process
from instar.engine.tray import new_tray

LENT = 2
"""Trays that a maker has: one that it fills, and the next."""
AHEAD = 4
"""Trays for each predictor: one in hand, and the next ones, which last while the coordinator stores rows."""
TRAY_INPUTS = 32
"""As many inputs, or a whole batch of the system's, lie on a tray."""


class Trays:
    """All trays of a run, by their descriptors, and those that nobody has."""

    def __init__(self, makers: int, predictors: int) -> None:
        self.descriptors = tuple(new_tray() for _ in range(LENT * makers + AHEAD * predictors))
        self.free = deque(range(len(self.descriptors)))

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


@dataclass(slots=True)
class TrayWork:
    """A tray on its way to being predicted: the places on it that are still wanted."""

    filled: Filled
    left: list[int]
    single: bool = False
    in_hand: int | None = None


class Makers(Workers):
    """Processes that make follow-ups and lay them on trays."""

    def __init__(self, trays: Trays, *of_cases: Any) -> None:
        super().__init__(*of_cases)
        self.trays = trays
        self.filled: deque[TrayWork] = deque()
        self.works: dict[str, CaseWork] = {}
        """Cases of which something is not yet predicted, by their ids."""
        self.paused: set[str] = set()
        """Cases that wait for what the system says of their source."""
        self.lent: dict[Process[CaseWork], set[int]] = {}
        """The trays that each process has to fill."""

    def take(self) -> tuple[CaseWork, object] | None:
        taken = super().take()
        if taken is not None:
            self.works[taken[0].task.case.id] = taken[0]
        return taken

    def greet(self, process: Process[CaseWork], message: Ready) -> None:
        super().greet(process, message)
        self.lend()

    def lend(self) -> None:
        """Give free trays to those who have fewest."""
        ready = [process for process in self.processes if process.ready]
        while self.trays.free and ready:
            process = min(ready, key=lambda one: len(self.lent.setdefault(one, set())))
            if len(self.lent[process]) >= LENT:
                return
            tray = self.trays.free.popleft()
            self.lent[process].add(tray)
            process.lent()
            process.tell(Grant(tray))

    def idle(self, process: Process[CaseWork]) -> bool:
        """Without a tray it can only wait."""
        return not self.lent.get(process)

    def lay_out(self, process: Process[CaseWork], message: Filled) -> None:
        self.lent[process].discard(message.tray)
        for case, key in message.keys:
            if case in self.works:  # one whose input is not the one that the run knows is given up
                self.works[case].laid.add(key)
        self.filled.append(TrayWork(message, list(range(len(message.keys)))))
        self.lend()

    def note(self, process: Process[CaseWork], job: CaseWork, message: Message) -> None:
        if isinstance(message, Waits):
            self.paused.add(job.task.case.id)
        else:
            super().note(process, job, message)

    def done(self, job: CaseWork) -> None:
        self._look_after(job)

    def answered(self, message: Rows) -> None:
        """Rows of a predictor, or of what became of one's inputs."""
        keys = message.keys
        by_case: dict[str, list[int]] = {}
        for place, case in enumerate(message.columns["case"]):
            by_case.setdefault(case, []).append(place)
        wanted: list[int] = []
        for case, places in by_case.items():
            work = self.works.get(case)
            if work is not None:
                work.laid.difference_update(keys[place] for place in places)
                wanted += unseen(work, keys, places)
        rows = message.only(wanted)
        self.pace.note(rows)
        self.sink.on_rows(rows)
        for case in by_case:
            if case in self.works:
                self._look_after(self.works[case])

    def _look_after(self, work: CaseWork) -> None:
        """A case that waited for its source goes on once that is answered; one of which all is predicted is done."""
        case = work.task.case.id
        if not work.left:
            self.works.pop(case, None)
            self.paused.discard(case)
        elif case in self.paused and (SOURCE, 0, 0) not in work.left and not self._in_hand(work):
            self.paused.discard(case)
            self.go_on(work)

    def _in_hand(self, work: CaseWork) -> bool:
        return any(one is work for process in self.processes for one in process.queue)

    def lose(self, jobs: Sequence[CaseWork], status: str, message: str) -> None:
        """A maker has several cases on the tray it fills, and which one it died of is not known: each goes on one input
        at a time."""
        if jobs and jobs[0].task.single:
            super().lose(jobs, status, message)
            return
        for work in jobs:
            work.task = replace(work.task, single=True)
            self.paused.discard(work.task.case.id)
            if work.left - work.laid:
                self.go_on(work)

    def go_on(self, work: CaseWork) -> None:
        if (SOURCE, 0, 0) in work.laid:  # its answer may be needed, and is on its way
            self.paused.add(work.task.case.id)
        else:
            super().go_on(work)

    def buried(self, process: Process[CaseWork]) -> None:
        self.trays.free.extend(self.lent.pop(process, ()))
        self.lend()


class Predictors(Crew[TrayWork]):
    """Processes that hold the system, and predict what lies on trays."""

    most_jobs = AHEAD

    def __init__(self, makers: Makers, *crew: Any) -> None:
        super().__init__(*crew)
        self.makers = makers

    @property
    def waiting(self) -> bool:
        return bool(self.makers.filled)

    def take(self) -> tuple[TrayWork, object] | None:
        if not self.makers.filled:
            return None
        work = self.makers.filled.popleft()
        return work, Batch(work.filled.tray, work.filled.content, tuple(work.left), work.single)

    def single(self, job: TrayWork) -> bool:
        return job.single

    def note(self, process: Process[TrayWork], job: TrayWork, message: Message) -> None:
        if isinstance(message, BeginPlace):
            job.in_hand = message.place
        elif isinstance(message, Rows):
            places = {pair: place for place, pair in enumerate(job.filled.keys)}
            done = {places[pair] for pair in zip(message.columns["case"], message.keys, strict=True)}
            job.left = [place for place in job.left if place not in done]
            self.makers.answered(message)

    def done(self, job: TrayWork) -> None:
        self.makers.trays.free.append(job.filled.tray)
        self.makers.lend()

    def lose(self, jobs: Sequence[TrayWork], status: str, message: str) -> None:
        for number, work in reversed(list(enumerate(jobs))):
            if number == 0 and work.left:
                if work.single:
                    place = work.left[0] if work.in_hand is None else work.in_hand
                    work.left = [one for one in work.left if one != place]
                    case, key = work.filled.keys[place]
                    self.makers.answered(Rows.of([failed_row(case, key, status, message)]))
                work.single, work.in_hand = True, None
            if work.left:
                self.makers.filled.appendleft(work)
            else:
                self.done(work)
