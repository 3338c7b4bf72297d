"""The worker: one case × all rules. Decoded once, predicted once, each follow-up from that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from instar.engine.maker import Made, Maker, Unmade
from instar.engine.messages import CaseTask, Message, Setup, WorkerInfo
from instar.engine.packing import keyed_rows
from instar.engine.plan import SOURCE, Key
from instar.engine.predictor import BATCH_BYTES, HAND_OVER_ROWS, HAND_OVER_SECONDS, Predictor
from instar.outputs import Output
from instar.store import Row
from instar.transforms import Change

TOGETHER = 8
TOGETHER_SECONDS = 0.05
"""So many inputs are made before the first of them is predicted, unless making them takes longer: filtering an image
drives Python out of the processor's cache, and predicting several in a row brings it back once."""
DEVICE_BYTES = 256 << 20
"""Follow-ups on a device wait for this many bytes: the more there are, the more of them one launch makes."""


@dataclass(slots=True)
class _Batch:
    """A case under way: what waits to be predicted together, and the rows made since the last were handed over."""

    case: str
    pending: list[Made] = field(default_factory=list)
    rows: list[tuple[str, Key, Change | None, Row]] = field(default_factory=list)
    size: int = 0
    begun: float = 0.0
    """When the first of what waits was made."""
    source_output: Output | None = None
    handed: float = field(default_factory=time.monotonic)

    @property
    def due(self) -> bool:
        return len(self.rows) >= HAND_OVER_ROWS or time.monotonic() - self.handed > HAND_OVER_SECONDS

    def hand_over(self) -> list[Row]:
        """All rows at once: right after a picture was filtered, Python itself is not in the processor's cache."""
        rows = keyed_rows(self.rows)
        self.rows, self.handed = [], time.monotonic()
        return rows


class Worker:
    """Makes follow-ups and predicts them, in one process."""

    def __init__(self, setup: Setup) -> None:
        self.predictor = Predictor(setup)
        self.maker = Maker(setup)
        system = self.predictor.system
        self.takes_tensors, self.at_once = system.takes_tensors, system.batch
        self.most_bytes = DEVICE_BYTES if system.takes_tensors else BATCH_BYTES

    def info(self) -> WorkerInfo:
        """What the run's manifest says of the system and the providers."""
        return self.predictor.info(self.maker.infos(), self.maker.code)

    def close(self) -> None:
        """Close the system and those that provide needs."""
        self.predictor.system.close()
        self.maker.close()

    def work(self, task: CaseTask) -> Iterator[Message]:
        """The input or why it cannot be read, then needs (to be stored before it goes on) and rows."""
        system, pack = self.predictor.system, self.predictor.pack
        batch = _Batch(task.case.id)

        def source_answer() -> Output | None:
            self._predict(batch)
            return batch.source_output

        for step in self.maker.work(task, system, source_answer):
            if isinstance(step, Made):  # no more than this, as long as inputs are made: Python is out of the cache
                batch.pending.append(step)
                batch.size += step.input.nbytes
                if task.single or self._is_full(batch):
                    for _ in self._predict_in_turn(batch):
                        if task.single or batch.due:
                            yield pack(batch.hand_over())
            elif isinstance(step, Unmade):
                batch.rows.append((batch.case, step.key, None, step.row()))
            else:
                yield step
        self._predict(batch)
        if batch.rows:
            yield pack(batch.hand_over())

    def _is_full(self, batch: _Batch) -> bool:
        if batch.size >= self.most_bytes:
            return True
        count = len(batch.pending)
        if count == 1:
            batch.begun = time.monotonic()
        if self.takes_tensors or count % self.at_once:
            return False
        return count >= TOGETHER or time.monotonic() - batch.begun > TOGETHER_SECONDS

    def _predict(self, batch: _Batch) -> None:
        """Predict what is pending."""
        for _ in self._predict_in_turn(batch):
            pass

    def _predict_in_turn(self, batch: _Batch) -> Iterator[None]:
        """Predict what is pending, as many at once as the system likes: follow-ups on a device are more."""
        waiting, batch.pending, batch.size = batch.pending, [], 0
        if self.takes_tensors:
            waiting = self._made_together(waiting)
        for start in range(0, len(waiting), self.at_once):
            part = waiting[start : start + self.at_once]
            for made, answered in zip(part, self.predictor.predicted(part), strict=True):
                batch.rows.append((batch.case, made.key, made.change, answered))
                if made.key == (SOURCE, 0, 0):
                    batch.source_output = answered.get("output")
            yield

    def _made_together(self, waiting: list[Made]) -> list[Made]:
        """Make follow-ups on the device, all that wait in a few launches."""
        try:
            placed = self.predictor.system.placed([made.input for made in waiting])
        except Exception:
            return waiting  # too much at once, for one: each is made when it is predicted, and answers for itself
        return [made._replace(input=input) for made, input in zip(waiting, placed, strict=True)]
