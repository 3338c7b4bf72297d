"""Asks the system: inputs in, rows out. Where a batch raises, each of its inputs answers for itself."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from instar.engine.follow_up import error_text
from instar.engine.maker import Made
from instar.engine.messages import Setup, WorkerInfo
from instar.engine.packing import Packer
from instar.store import ProviderInfo, Row, SystemInfo
from instar.systems import system
from instar.systems.sources import LOADED
from instar.systems.system import end_copy

BATCH_BYTES = 32 << 20
"""The inputs of a batch take no more than that, or are one."""
HAND_OVER_ROWS = 64
HAND_OVER_SECONDS = 0.25
"""Rows are handed over in handfuls: a message each would cost more than many a prediction."""


class Predictor:
    """The system under test, loaded."""

    def __init__(self, setup: Setup) -> None:
        assert setup.system is not None
        owner = os.getpid()
        try:
            self.system = system(setup.system).tested()
        finally:
            end_copy(owner)
        self.pack = Packer()

    def info(self, providers: Mapping[str, ProviderInfo], code: Mapping[str, str]) -> WorkerInfo:
        """What the run's manifest says of the system, and of those that provide needs."""
        it = self.system
        return WorkerInfo(
            SystemInfo(
                it.name, it.kind, it.fingerprint, it.deterministic, it.seedable, it.takes, dict(it.identity.parts)
            ),
            providers,
            it.batch,
            dict(LOADED),
            it.identity,
            code,
            it.device,
            it.takes_tensors,
        )

    def predicted(self, made: Sequence[Made]) -> list[Row]:
        """The answers, as rows without their keys."""
        if not made:
            return []
        begun = time.perf_counter()
        try:
            answers = self.system.answer([one.input for one in made], [one.seed for one in made])
        except Exception as error:
            if len(made) > 1:
                return [self.predicted([one])[0] for one in made]
            answers = [error]
        seconds = (time.perf_counter() - begun) / len(made)
        return [
            {"status": _status(answer), "message": error_text(answer), "seconds": seconds}
            if isinstance(answer, Exception)
            else {"status": "ok", "message": answer.remark(), "seconds": seconds, "output": answer}
            for answer in answers
        ]


def _status(error: Exception) -> str:
    """Ours where the exception says so; the `status` of others, such as an HTTP error's 503, is something else."""
    status = getattr(error, "status", None)
    return status if status in ("crashed", "timeout") else "error"
