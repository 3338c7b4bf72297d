"""How far a run is, and how it went."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from instar.files import path_of, storable
from instar.store import Store

FAILURES = ("error", "timeout", "crashed")
"""Statuses of predictions that went wrong."""
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
    return Outcome(
        fresh, seconds, statuses, len(cases), unreadable, interrupted, tuple(notes), _reasons(store, statuses)
    )


def _reasons(store: Store, statuses: Mapping[str, int]) -> dict[str, int]:
    """Why cases could not be read and predictions failed or, where none was made, were not made: one example of each
    kind of reason. Those that differ in a path or in numbers alone are of one kind."""
    cases = store.cases(["path", "status", "message"]).filter(pl.col("status") != "ok")
    counted = Counter[str]()
    for path, status, message in cases.iter_rows():
        counted[(message or status).removeprefix(storable(path_of(path or ""))).lstrip(": ")] += 1
    wanted = [status for status in statuses if status in FAILURES or not statuses.get("ok")]
    if wanted:
        rows = store.predictions(
            ["status", "message"],
            query=lambda table: (
                table.filter(pl.col("status").is_in(wanted)).group_by("status", "message", maintain_order=True).len()
            ),
        )
        for status, message, count in rows.iter_rows():
            counted[message or status] += count
    kinds: dict[str, Counter[str]] = {}
    for text, count in counted.items():
        kinds.setdefault(_NUMBER.sub("#", text), Counter())[text] += count
    largest = sorted(kinds.values(), key=Counter.total, reverse=True)
    return {next(iter(kind)): kind.total() for kind in largest}
