"""How far a run is, and how it went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from instar.store import Store


@dataclass(slots=True)
class Progress:
    """How far a run is, for whoever shows it."""

    cases: int = 0
    rows: int = 0
    done: int = 0
    fresh: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    began: float = 0.0

    @property
    def rate(self) -> float:
        """Pairs per second since the first."""
        return self.fresh / max(1e-9, time.monotonic() - self.began) if self.began else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds to go, once there is something to judge by."""
        return (self.rows - self.done) / self.rate if self.fresh else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a predicting went: what was new, what there is by status, and what the user should know."""

    fresh: int
    seconds: float
    statuses: Mapping[str, int]
    cases: int
    unreadable: int
    interrupted: bool
    notes: tuple[str, ...]


def outcome_of(store: Store, fresh: int, started: float, notes: Sequence[str], *, interrupted: bool = False) -> Outcome:
    """How it went, by what a run folder holds now; `started` is on the monotonic clock."""
    counts = store.predictions(["status"], query=lambda rows: rows.group_by("status").agg(pl.len()))
    cases, seconds = store.cases(["status", "message"]), time.monotonic() - started
    unread = cases.filter(pl.col("status") != "ok")["message"].drop_nulls()
    reasons = (f"not read: {message}" for message in unread)
    return Outcome(
        fresh,
        seconds,
        dict(counts.iter_rows()),
        len(cases),
        int((cases["status"] != "ok").sum()),
        interrupted,
        (*notes, *reasons),
    )
