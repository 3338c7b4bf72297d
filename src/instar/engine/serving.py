"""What a process of Instar's own does: it loads what its role needs, says what that is, and does what it is told."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Queue
from socket import socket
from threading import Thread

from instar.engine.line import Line
from instar.engine.maker import Made, Maker, Unmade
from instar.engine.messages import (
    Begin,
    BeginPlace,
    CaseTask,
    Done,
    End,
    Failed,
    Filled,
    Grant,
    Loaded,
    Message,
    NeedProvided,
    Ready,
    Rows,
    Setup,
    Stored,
    Waits,
    WorkerInfo,
)
from instar.engine.packing import keyed_rows
from instar.engine.plan import SOURCE, Key
from instar.engine.predictor import BATCH_BYTES, HAND_OVER_ROWS, HAND_OVER_SECONDS, Predictor
from instar.engine.tray import TRAY_BYTES, Copies, Laid, Tray
from instar.engine.worker import Worker
from instar.outputs import Output
from instar.own import BrokenModule
from instar.spelling import UnknownName
from instar.store import Row
from instar.systems import AnotherVersion, MissingExtra, imports_noted
from instar.systems.sources import LOADED
from instar.transforms import Change


def serve() -> None:
    """Work until the line, which is this process's stdin, closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses Ctrl-C means the coordinator
    line = Line(socket(fileno=os.dup(0)))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the system prints is kept with its errors, as far as those are kept
    with imports_noted(), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work_off = _loaded(line)
        if work_off is not None:
            try:
                work_off()
            except AnotherVersion as change:
                line.send([Failed(str(change), changed=True)])
    os._exit(0)  # a system's threads and libraries may take long to end, or hang


def _loaded(line: Line) -> Callable[[], None] | None:
    first = line.received_bytes()  # a system that is sent by its pickle is imported when it is read
    try:
        setup: Setup = pickle.loads(first)
        sys.path[:] = [*setup.path, *(p for p in sys.path if p not in setup.path)]
        if setup.role == "worker":
            return _WorkerAtWork(line, Worker(setup)).work_off
        if setup.role == "maker":
            return _MakerAtWork(line, setup, Maker(setup)).work_off
        return _PredictorAtWork(line, setup, Predictor(setup)).work_off
    except BaseException as error:
        traceback.print_exc()
        plain = isinstance(error, BrokenModule | MissingExtra | UnknownName)  # the message is a sentence of our own
        line.send([Failed(str(error) if plain else f"{type(error).__name__}: {error}")])
        return None


_AWAITED = NeedProvided, Begin
"""A worker goes on when it knows that these were noted."""


class _Speaker:
    """Says things to the coordinator, together where that may wait: sending costs more than a message."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.unsent: list[Message] = []
        self._known = dict(LOADED)

    def say(self, message: Message, *, now: bool) -> None:
        if self._known != LOADED:  # a module that is imported late, or is another one than when the run began
            self._known = dict(LOADED)
            self.unsent.append(Loaded(self._known))
        self.unsent.append(message)
        if now:
            self.send()

    def send(self) -> None:
        self.line.send(self.unsent)
        self.unsent = []


@dataclass(slots=True)
class _WorkerAtWork:
    line: Line
    worker: Worker
    waiting: deque[CaseTask] = field(default_factory=deque)

    def work_off(self) -> None:
        speaker = _Speaker(self.line)
        speaker.say(Ready(self.worker.info()), now=True)
        while True:
            task: CaseTask | End = self.waiting.popleft() if self.waiting else self.line.received()
            if isinstance(task, End):
                self.worker.close()
                return
            for message in self.worker.work(task):
                if speaker.unsent and isinstance(speaker.unsent[-1], Rows):  # the input goes with the first rows
                    speaker.send()
                awaited = isinstance(message, _AWAITED)
                speaker.say(message, now=task.single or awaited)
                if awaited:
                    # the next task may have been sent before the word that it is noted
                    while not isinstance(reply := self.line.received(), Stored):
                        self.waiting.append(reply)
            speaker.say(Done(), now=True)


@dataclass(frozen=True, slots=True)
class _OnTray:
    """What a predictor has to know of an input on a tray."""

    case: str
    key: Key
    laid: Laid
    change: Change
    seed: int


class _SourceUnknown(Exception):
    """The system's answer to the source is needed, and is not there yet."""


class _MakerAtWork:
    """Makes follow-ups of its cases, and fills trays with them."""

    def __init__(self, line: Line, setup: Setup, maker: Maker) -> None:
        assert setup.answers is not None
        self.line, self.setup, self.maker, self.answers = line, setup, maker, setup.answers
        self.speaker = _Speaker(line)
        self.trays = [Tray(descriptor) for descriptor in setup.trays]
        self.granted: deque[int] = deque()
        self.waiting: deque[CaseTask | End] = deque()
        self.stored = False
        self.laid: list[_OnTray] = []

    def work_off(self) -> None:
        info = WorkerInfo(self.answers, self.maker.infos(), self.setup.tray_inputs, dict(LOADED), code=self.maker.code)
        self.speaker.say(Ready(info), now=True)
        while True:
            task = self._next()
            if isinstance(task, End):
                self.maker.close()
                return
            if task.single:
                self._hand_over()  # nothing of other cases is lost with this one
            self._make(task)

    def _next(self) -> CaseTask | End:
        """The next task; where there is none yet, what is made already goes on its way."""
        while not self.waiting:
            if (self.laid or self.speaker.unsent) and not select.select([self.line.fileno()], [], [], 0)[0]:
                self._hand_over()
            self._receive()
        return self.waiting.popleft()

    def _receive(self) -> None:
        message = self.line.received()
        match message:
            case Grant():
                self.granted.append(message.tray)
            case Stored():
                self.stored = True
            case _:
                self.waiting.append(message)

    def _make(self, task: CaseTask) -> None:
        unmade: list[Unmade] = []

        def source_answer() -> Output | None:
            if (SOURCE, 0, 0) in task.keys:
                raise _SourceUnknown
            return None

        try:
            for step in self.maker.work(task, self.answers, source_answer):
                if isinstance(step, Made):
                    self._lay(task, step)
                elif isinstance(step, Unmade):
                    unmade.append(step)
                else:
                    self._say(step, now=task.single or isinstance(step, NeedProvided))
                    if isinstance(step, NeedProvided | Begin):
                        while not self.stored:
                            self._receive()
                        self.stored = False
        except _SourceUnknown:
            self._hand_over()
            self.speaker.say(Waits(), now=False)
        if unmade:
            rows = keyed_rows((task.case.id, one.key, None, one.row()) for one in unmade)
            self.speaker.say(Rows.of(rows), now=False)
        self.speaker.say(Done(), now=not self.laid)  # what lies on the tray is not handed over yet

    def _say(self, message: Message, *, now: bool) -> None:
        """What is on the tray goes before what is said now: of a case that is done, all must have been handed over."""
        if now:
            self._hand_over()
        self.speaker.say(message, now=now)

    def _lay(self, task: CaseTask, made: Made) -> None:
        while not self.granted:
            self._receive()
        tray = self.trays[self.granted[0]]
        if self.laid and tray.filled + made.input.nbytes > TRAY_BYTES:
            self._hand_over()
            self._lay(task, made)
            return
        self.laid.append(_OnTray(task.case.id, made.key, tray.lay(made.input), made.change, made.seed))
        if task.single or len(self.laid) >= self.setup.tray_inputs:
            self._hand_over()

    def _hand_over(self) -> None:
        """What lies on the tray goes to be predicted; the next one is filled from now on."""
        if self.laid:
            number = self.granted.popleft()
            self.trays[number].clear()
            content = pickle.dumps(self.laid, pickle.HIGHEST_PROTOCOL)
            keys = tuple((one.case, one.key) for one in self.laid)
            self.speaker.say(Filled(number, keys, content), now=False)
            self.laid = []
        if self.speaker.unsent:
            self.speaker.send()


class _PredictorAtWork:
    """Predicts what lies on trays. The next inputs are copied from theirs meanwhile, in a thread of its own."""

    def __init__(self, line: Line, setup: Setup, predictor: Predictor) -> None:
        self.line, self.predictor, self.copies = line, predictor, Copies()
        self.trays = [Tray(descriptor) for descriptor in setup.trays]
        self.taken: Queue[_Piece | Done | End | BaseException] = Queue(maxsize=1)

    def work_off(self) -> None:
        speaker = _Speaker(self.line)
        speaker.say(Ready(self.predictor.info({}, {})), now=True)
        Thread(target=self._take, daemon=True).start()
        rows: list[Row] = []
        handed = time.monotonic()
        while not isinstance(piece := self.taken.get(), End):
            if isinstance(piece, BaseException):
                raise piece
            if isinstance(piece, _Piece):
                if piece.single:
                    speaker.say(BeginPlace(piece.place), now=True)
                rows += self._predicted(piece)
            now = time.monotonic()
            enough = len(rows) >= HAND_OVER_ROWS or now - handed > HAND_OVER_SECONDS
            if rows and (isinstance(piece, Done) or piece.single or enough):
                speaker.say(self.predictor.pack(rows), now=isinstance(piece, _Piece))
                rows, handed = [], now
            if isinstance(piece, Done):
                speaker.say(piece, now=True)
        self.predictor.system.close()

    def _predicted(self, piece: _Piece) -> list[Row]:
        answers = self.predictor.predicted(piece.made)
        return keyed_rows(
            (case, one.key, one.change, answered)
            for case, one, answered in zip(piece.cases, piece.made, answers, strict=True)
        )

    def _take(self) -> None:
        """Copy what is to be predicted from its tray, piece by piece, and say where a tray ends."""
        try:
            while not isinstance(batch := self.line.received(), End):
                content: list[_OnTray] = pickle.loads(batch.content)
                for places in _pieces(content, batch.places, 1 if batch.single else self.predictor.system.batch):
                    together = [content[place] for place in places]
                    inputs = self.trays[batch.tray].take([one.laid for one in together], self.copies)
                    made = [
                        Made(one.key, input, one.change, one.seed) for one, input in zip(together, inputs, strict=True)
                    ]
                    self.taken.put(_Piece(made, [one.case for one in together], places[0], batch.single))
                    del inputs, made, together  # memory of copies that nobody has is used again
                self.taken.put(Done())
            self.taken.put(batch)
        except BaseException as error:  # the line is closed, or the memory is full: whoever predicts has to know
            self.taken.put(error)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Inputs that are predicted together, with their cases; `place` is that of the first on its tray."""

    made: list[Made]
    cases: list[str]
    place: int
    single: bool


def _pieces(content: Sequence[_OnTray], places: Sequence[int], most: int) -> Iterator[list[int]]:
    """Places whose inputs are predicted together: no more than the system likes, nor than the memory has room for."""
    piece: list[int] = []
    size = 0
    for place in places:
        piece.append(place)
        size += content[place].laid.nbytes
        if len(piece) >= most or size >= BATCH_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
