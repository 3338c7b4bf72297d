"""How far a run is, and how it went."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from instar.store import Store

_NUMBER = re.compile(r"-?\d[\d.,]*")


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
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why cases cannot be read and predictions were not made, and how many, most frequent first."""


def outcome_of(store: Store, fresh: int, started: float, notes: Sequence[str], *, interrupted: bool = False) -> Outcome:
    """How it went, by what a run folder holds now; `started` is on the monotonic clock."""
    counts = store.predictions(["status"], query=lambda rows: rows.group_by("status").agg(pl.len()))
    cases, seconds = store.cases(["status"])["status"], time.monotonic() - started
    unreadable = int((cases != "ok").sum())
    statuses = dict(counts.iter_rows())
    reasons = {} if statuses.get("ok") else _reasons(store)
    return Outcome(fresh, seconds, statuses, len(cases), unreadable, interrupted, tuple(notes), reasons)


def _reasons(store: Store) -> dict[str, int]:
    """Why nothing was answered: one example of each kind of reason. Those that differ in a path or in numbers alone are
    of one kind."""
    cases = store.cases(["path", "status", "message"]).filter(pl.col("status") != "ok")
    texts = [(message or status).replace(str(path), "").lstrip(": ") for path, status, message in cases.iter_rows()]
    texts += [message or status for status, message in store.predictions(["status", "message"]).iter_rows()]
    kinds: dict[str, list[str]] = {}
    for text in texts:
        kinds.setdefault(_NUMBER.sub("#", text), []).append(text)
    return {kind[0]: len(kind) for kind in sorted(kinds.values(), key=len, reverse=True)}
