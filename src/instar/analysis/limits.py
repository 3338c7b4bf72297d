"""Limits: which level of a ray is asked next, so that the first one that breaks an answer is found by few questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.comparison import aligned
from instar.analysis.run import Run
from instar.analysis.severities import ABSENT
from instar.engine import DEFAULT
from instar.store import Store
from instar.suites.grid import Grid, Ray

UNKNOWN, HELD, BROKEN, UNJUDGED = range(4)
"""What is known of a case at a level. What was not judged (not applicable, failed) ends the ray for this case."""
States = npt.NDArray[np.uint8]
PROBES = 2
"""How many further levels are asked below a limit, and how many beyond it."""


def next_levels(states: States, probes: int = PROBES) -> list[int]:
    """The places of the levels of a ray to ask next of a case; none where its limit is known.

    Bisection between a level that holds and one that does not; then `probes` levels below what it found and as many
    beyond, each in the middle of the widest gap between those that were asked. Where a level below is broken, or was
    seen broken whoever asked, bisection goes on below that. It follows from `states` alone.

    >>> next_levels(np.zeros(40, np.uint8)), next_levels(np.full(40, HELD, np.uint8))
    ([19], [])
    """
    low, high, seen, moved = -1, len(states), set[int](), False
    while True:
        while high - low > 1:
            middle = (low + high) // 2
            seen.add(middle)
            if states[middle] == UNKNOWN:
                return [middle]
            low, high = (middle, high) if states[middle] == HELD else (low, middle)
        levels = _between(seen, 0, low, probes)
        if not moved and high < len(states) and states[high] == BROKEN:
            levels += _between(seen, high + 1, len(states), probes)
        if unknown := [level for level in levels if states[level] == UNKNOWN]:
            return unknown
        seen.update(levels)
        broken = np.flatnonzero(states[:high] == BROKEN)
        if not len(broken):
            return []
        high, moved = int(broken[0]), True
        below = np.flatnonzero(states[:high] == HELD)
        low = int(below[-1]) if len(below) else -1


def _between(seen: Collection[int], start: int, end: int, count: int) -> list[int]:
    """So many levels from `start` to before `end`, each in the middle of the widest gap between those asked."""
    free = [level for level in range(start, end) if level not in seen]
    chosen: list[int] = []
    while free and len(chosen) < count:
        breaks = [place for place in range(1, len(free)) if free[place] != free[place - 1] + 1]
        gaps = [free[first:last] for first, last in zip([0, *breaks], [*breaks, len(free)], strict=True)]
        gap = max(gaps, key=lambda one: (len(one), one[0]))
        chosen.append(gap[len(gap) // 2])
        free.remove(chosen[-1])
    return chosen


def questions_left(states: States, probes: int) -> int:
    """How many more levels may be asked after those of the next round, at the most."""
    levels = next_levels(states, probes)
    if not levels:
        return 0
    known = np.flatnonzero(states != UNKNOWN)
    open_ones = int((states == UNKNOWN).sum()) - len(levels)
    width = len(states) // max(1, 2 ** min(len(known), 20))
    return min(open_ones, int(np.log2(width)) + 2 * probes if width > 1 else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A ray with its rules as a run has them, by id, and the rule that changes nothing."""

    grid: Grid
    ray: Ray
    unchanged: str
    rules: tuple[str, ...]

    @property
    def family(self) -> str:
        return self.grid.family


def bound_rays(run_kind: str, grids: Sequence[Grid]) -> list[Bound]:
    """The rays of grids, for a kind of output."""
    return [
        Bound(
            grid,
            ray,
            grid.unchanged.for_output(run_kind).id,
            tuple(level.rule.for_output(run_kind).id for level in ray.levels),
        )
        for grid in grids
        for ray in grid.rays
    ]


def states_of(
    run: Run, rules: Sequence[str], cases: Sequence[str], *, threshold: float | None = None, judging: str = DEFAULT
) -> States:
    """What is known under these rules (rows) of these cases (columns)."""
    if not run.store.state("predictions"):
        return np.zeros((len(rules), len(cases)), np.uint8)
    matrix = aligned(run.severities(judging), rules, cases)
    violated = matrix.violated(run.thresholds(threshold))
    unjudged = np.where(matrix.status == ABSENT, UNKNOWN, UNJUDGED)
    judged = np.where(violated, BROKEN, HELD)
    return np.asarray(np.where(np.isnan(matrix.severity), unjudged, judged), np.uint8)


@dataclass(slots=True)
class LimitSearch:
    """A choice of what to ask next, for a run: every case's limits, one level of each ray a round.

    What it chooses follows from what the run holds, so that a search that was stopped goes on where it was. The
    unchanged input comes first: a case that is not judged there, or broken, has no limit to be searched.
    """

    store: Store
    grids: Sequence[Grid]
    probes: int = PROBES
    judging: str = DEFAULT
    tried: dict[str, set[str]] = field(default_factory=dict)
    """Follow-ups that cases were asked about already: what did not come of them does not come."""
    later: int = 0
    """How many more questions there may be after this round, at the most."""

    def __call__(self, cases: Sequence[str]) -> Mapping[str, Collection[str]]:
        run = Run(self.store)
        unreadable = set(run.store.cases(["case", "status"]).filter(pl.col("status") != "ok")["case"])
        order = [case for case in cases if case not in unreadable]
        names = {one.id: [change.id for change in one.transformations] for one in run.bound_rules()}
        chosen: dict[str, set[str]] = {}
        self.later = 0
        for bound in bound_rays(run.manifest.system.kind, self.grids):
            rows = states_of(run, [bound.unchanged, *bound.rules], order, judging=self.judging)
            for number, case in enumerate(order):
                for rule in self._questions(case, rows[:, number], bound, names):
                    chosen.setdefault(case, set()).update(names[rule])
        for case, follow_ups in chosen.items():
            self.tried.setdefault(case, set()).update(follow_ups)
        return chosen

    def _questions(self, case: str, states: States, bound: Bound, names: Mapping[str, Sequence[str]]) -> list[str]:
        """The rules of a ray that a case is asked about in this round."""
        tried = self.tried.get(case, set())
        known = states.copy()
        for place, rule in enumerate((bound.unchanged, *bound.rules)):
            if known[place] == UNKNOWN and tried.issuperset(names[rule]):
                known[place] = UNJUDGED
        if known[0] == UNKNOWN:
            self.later += 2 * int(np.log2(len(bound.rules)))
            return [bound.unchanged]
        if known[0] != HELD:
            return []
        self.later += questions_left(known[1:], self.probes)
        return [bound.rules[level] for level in next_levels(known[1:], self.probes)]
