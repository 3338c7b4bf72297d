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
ENOUGH_ROWS, ENOUGH_SECONDS = 10, 10.0
"""From which on a rate is worth telling."""
_NUMBER = re.compile(r"0[xX][\da-fA-F]+|-?\d[\d.,]*")


@dataclass(slots=True)
class Progress:
    """How far a run is, for whoever shows it."""

    cases: int = 0
    rows: int = 0
    done: int = 0
    fresh: int = 0
    again: int = 0
    """How many of the fresh ones are second predictions by a deterministic system."""
    statuses: Counter[str] = field(default_factory=Counter)
    began: float = 0.0
    warm_at: float = 0.0
    warming: int = 0
    """When the first rows came, and how many: the first prediction may load a model, and says nothing of the others."""

    def arrived(self, count: int) -> None:
        """So many new rows are there."""
        if count and not self.fresh:
            self.warm_at, self.warming = time.monotonic(), count
        self.fresh += count

    @property
    def rate(self) -> float:
        """Predictions per second since the first came; before there are others, since the beginning."""
        later = self.fresh - self.warming
        since, count = (self.warm_at, later) if later else (self.began, self.fresh)
        return count / max(1e-9, time.monotonic() - since) if since else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds to go; None as long as there is little to judge by: fewer than ten predictions after the first, in
        less than ten seconds."""
        later = self.fresh - self.warming
        known = later >= ENOUGH_ROWS or (later and time.monotonic() - self.warm_at >= ENOUGH_SECONDS)
        return (self.rows - self.done) / self.rate if known else None


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
    """Why predictions failed or, where none was made, were not made, and how many, most frequent first."""
    unreadable_reasons: Mapping[str, int] = field(default_factory=dict)
    """The same of cases that cannot be read, each with the first of them."""
    again: int = 0
    """How many new second predictions there are, of violating pairs; `fresh` and `statuses` don't count them."""


def outcome_of(store: Store, fresh: int, started: float, notes: Sequence[str], *, interrupted: bool = False) -> Outcome:
    """How it went, by what a run folder holds now; `started` is on the monotonic clock."""
    cases, seconds = store.cases(["status"])["status"], time.monotonic() - started
    unreadable = int((cases != "ok").sum())
    statuses = status_counts(store)
    return Outcome(
        fresh,
        seconds,
        statuses,
        len(cases),
        unreadable,
        interrupted,
        tuple(notes),
        failure_reasons(store, statuses),
        unreadable_cases(store),
    )


def status_counts(store: Store) -> dict[str, int]:
    """How many predictions a run has of each status."""
    counts = store.predictions(["status"], query=lambda rows: rows.group_by("status").agg(pl.len()))
    return dict(counts.iter_rows())


def unreadable_cases(store: Store) -> dict[str, int]:
    """Why cases could not be read (what stands after their path), with the first case of each reason; and how many."""
    cases = store.cases(["case", "path", "status", "message"]).filter(pl.col("status") != "ok").sort("case")
    reasons = {
        case: (message or status).removeprefix(storable(path_of(path or ""))).lstrip(": ")
        for case, path, status, message in cases.iter_rows()
    }
    counted = Counter(reasons.values())
    words = alike_reasons(counted)
    first = {words[reason]: case for case, reason in reversed(reasons.items())}
    kinds = _by_kind(counted).items()
    return {f"{reason}, {'in' if count == 1 else 'first in'} {first[reason]}": count for reason, count in kinds}


def failure_reasons(store: Store, statuses: Mapping[str, int]) -> dict[str, int]:
    """Why predictions failed or, where none was made, were not made."""
    failed = [status for status in statuses if status in FAILURES]
    wanted = failed or ([] if statuses.get("ok") else list(statuses))
    if not wanted:
        return {}
    rows = store.predictions(
        ["status", "message"],
        query=lambda table: (
            table.filter(pl.col("status").is_in(wanted)).group_by("status", "message", maintain_order=True).len()
        ),
    )
    counted = Counter[str]()
    for status, message, count in rows.iter_rows():
        counted[message or status] += count
    return _by_kind(counted)


def _by_kind(counted: Counter[str]) -> dict[str, int]:
    """How often each kind of reason occurs, most frequent first."""
    kinds, words = Counter[str](), alike_reasons(counted)
    for text, count in counted.items():
        kinds[words[text]] += count
    return dict(kinds.most_common())


def alike_reasons(counted: Mapping[str, int]) -> dict[str, str]:
    """Each reason as its kind is told: those that differ in numbers alone are one, with the commonest as an example.

    >>> alike_reasons({"mean 22": 1, "mean 24": 3, "no image": 1})["mean 22"]
    'mean 24 (and 1 other that differs in numbers)'
    >>> set(alike_reasons({"failed at 0x7f3a": 1, "failed at 0x80bc": 1}).values())
    {'failed at 0x7f3a (and 1 other that differs in numbers)'}
    """
    kinds: dict[str, Counter[str]] = {}
    for text, count in counted.items():
        kinds.setdefault(_NUMBER.sub("#", text), Counter())[text] += count
    words: dict[str, str] = {}
    for kind in kinds.values():
        (example, _), *others = kind.most_common()
        differ = "1 other that differs" if len(others) == 1 else f"{len(others):,} others that differ"
        words |= dict.fromkeys(kind, f"{example} (and {differ} in numbers)" if others else example)
    return words
