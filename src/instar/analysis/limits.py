"""Limits: which level of a ray is asked next, so that the first one that breaks an answer is found by few questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.comparison import aligned
from instar.analysis.run import Run
from instar.analysis.severities import ABSENT
from instar.analysis.severities import FAILED as FAILED_PAIR
from instar.engine import DEFAULT, SOURCE, Estimate, bound_rules, judge, judging_id, make_plan, parsed_options
from instar.store import Store
from instar.suites.grid import Grid, Ray, suite_of

UNKNOWN, HELD, BROKEN, UNJUDGED, FAILED = range(5)
"""What is known of a case at a level. What was not judged (not applicable) or failed ends the ray for this case."""
States = npt.NDArray[np.uint8]
PROBES = 2
"""How many further levels are asked below a limit, and how many beyond it, where a search may take as many."""
MOST_PERCENT = 30
"""How much of a grid's predictions a search takes where responses are monotone, unless bisection alone takes more."""


def bisections(levels: int) -> int:
    """How many questions bisection of so many levels takes at the most: each may be the limit, or none.

    >>> bisections(40), bisections(31), bisections(3)
    (6, 5, 2)
    """
    return levels.bit_length()


def most_probes(levels: int, probes: int | None = None) -> int:
    """How many levels are probed below a limit, and how many beyond it: `probes`, or by default what a ray of so many
    levels leaves of the predictions that a search may take, the source and the unchanged input among them.

    >>> most_probes(40), most_probes(29), most_probes(24), most_probes(24, 3)
    (2, 1, 0, 3)
    """
    if probes is not None:
        return probes
    left = MOST_PERCENT * (levels + 2) // 100 - 2 - bisections(levels)
    return min(PROBES, max(0, left // 2))


def next_levels(states: States, probes: int | None = None) -> list[int]:
    """The places of the levels of a ray to ask next of a case; none where its limit is known.

    Bisection between a level that holds and one that does not; then probes below what it found and as many beyond (see
    `most_probes`), each in the middle of the widest gap between those that were asked. Where a level below is broken,
    or was seen broken whoever asked, bisection goes on below that. It follows from `states` alone.

    >>> next_levels(np.zeros(40, np.uint8)), next_levels(np.full(40, HELD, np.uint8))
    ([19], [])
    """
    count, low, high, moved = most_probes(len(states), probes), -1, len(states), False
    seen = set[int]()
    while True:
        low, high = bisected(states, low, high, seen)
        if high - low > 1:
            return [(low + high) // 2]
        levels = _between(seen, 0, low, count)
        if not moved and high < len(states) and states[high] == BROKEN:
            levels += _between(seen, high + 1, len(states), count)
        if unknown := [level for level in levels if states[level] == UNKNOWN]:
            return unknown
        seen.update(levels)
        broken = np.flatnonzero(states[:high] == BROKEN)
        if not len(broken):
            return []
        high, moved = int(broken[0]), True
        below = np.flatnonzero(states[:high] == HELD)
        low = int(below[-1]) if len(below) else -1


def bisected(states: States, low: int, high: int, seen: set[int]) -> tuple[int, int]:
    """The largest level that holds and the smallest that does not, between two levels: neighbours, unless the one in
    the middle is unknown. The levels on the way go to `seen`."""
    while high - low > 1:
        middle = (low + high) // 2
        seen.add(middle)
        if states[middle] == UNKNOWN:
            break
        low, high = (middle, high) if states[middle] == HELD else (low, middle)
    return low, high


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


def questions_left(states: States, probes: int | None = None) -> int:
    """How many levels may still be asked, those of the next round among them: at the most, if the response is monotone.

    >>> questions_left(np.zeros(40, np.uint8)), questions_left(np.zeros(40, np.uint8), 0)
    (10, 6)
    """
    low, high = bisected(states, -1, len(states), set())
    if high - low == 1:
        return len(next_levels(states, probes))
    most = bisections(high - low - 1) + 2 * most_probes(len(states), probes)
    return min(most, int((states == UNKNOWN).sum()))


@dataclass(frozen=True, slots=True)
class LimitPlan:
    """What a search would cost at the most if responses are monotone. Nothing was written."""

    estimate: Estimate
    """Of the most that each case may take."""
    every: int
    """How many follow-ups of a case the whole grid has."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A ray with its rules as a run has them, by id, and the rule that changes nothing."""

    grid: Grid
    ray: Ray
    unchanged: str
    rules: tuple[str, ...]
    follow_ups: Mapping[str, tuple[str, ...]]
    """The follow-ups of each rule."""

    @property
    def family(self) -> str:
        return self.grid.family


def bound_rays(run_kind: str, grids: Sequence[Grid]) -> list[Bound]:
    """The rays of grids, for a kind of output."""
    return [_bound(grid, ray, run_kind) for grid in grids for ray in grid.rays]


def _bound(grid: Grid, ray: Ray, run_kind: str) -> Bound:
    unchanged, *levels = (one.for_output(run_kind) for one in (grid.unchanged, *(level.rule for level in ray.levels)))
    follow_ups = {one.id: tuple(change.id for change in one.transformations) for one in (unchanged, *levels)}
    return Bound(grid, ray, unchanged.id, tuple(one.id for one in levels), follow_ups)


def states_of(
    run: Run, rules: Sequence[str], cases: Sequence[str], *, threshold: float | None = None, judging: str = DEFAULT
) -> States:
    """What is known under these rules (rows) of these cases (columns)."""
    if not run.store.state("predictions"):
        return np.zeros((len(rules), len(cases)), np.uint8)
    matrix = aligned(run.severities(judging), rules, cases)
    violated = matrix.violated(run.thresholds(threshold))
    unjudged = np.select([matrix.status == ABSENT, matrix.status == FAILED_PAIR], [UNKNOWN, FAILED], UNJUDGED)
    judged = np.where(violated, BROKEN, HELD)
    return np.asarray(np.where(np.isnan(matrix.severity), unjudged, judged), np.uint8)


@dataclass(slots=True)
class LimitSearch:
    """A choice of what to ask next, for a run: every case's limits, one level of each ray a round.

    What it chooses follows from what the run holds, so that a search that was stopped goes on where it was. The
    unchanged input comes first: a case that is not judged there, or broken, has no limit to be searched. Cases have
    nothing to do with one another, so that each shard finds the limits of its own.
    """

    store: Store
    grids: Sequence[Grid]
    probes: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """What answers are judged by, where it is not the default: options of the relations, as values or as texts."""
    tried: dict[str, set[str]] = field(default_factory=dict)
    """Follow-ups that cases were asked about already: what did not come of them does not come."""
    later: int = 0
    """How many more questions there may be after this round, at the most."""

    def __call__(self, cases: Sequence[str]) -> Mapping[str, Collection[str]]:
        run, judging = Run(self.store), self.judging()
        unreadable = set(run.store.cases(["case", "status"]).filter(pl.col("status") != "ok")["case"])
        order = [case for case in cases if case not in unreadable]
        chosen: dict[str, set[str]] = {}
        self.later = 0
        for bound in bound_rays(run.manifest.system.kind, self.grids):
            rows = states_of(run, [bound.unchanged, *bound.rules], order, judging=judging)
            for number, case in enumerate(order):
                for rule in self._questions(case, rows[:, number], bound):
                    chosen.setdefault(case, set()).update(bound.follow_ups[rule])
        for case, follow_ups in chosen.items():
            self.tried.setdefault(case, set()).update(follow_ups)
        return chosen

    def judging(self) -> str:
        """The id of the judging that answers are searched by; they are judged by it as far as there are any."""
        options = parsed_options(self.store, self.options)  # an error in them comes before any prediction
        return judge(self.store, options) if self.store.state("predictions") else judging_id(options)

    def left(self, cases: Sequence[str]) -> int:
        """How many predictions a search that was begun may still take, at the most, if responses are monotone."""
        manifest = self.store.manifest()
        rules = bound_rules(suite_of(self.grids).rules, manifest.system.kind)
        plan = make_plan(rules, seed=manifest.seed, deterministic=manifest.system.deterministic)
        keys = plan.keys()
        rows = Counter(follow_up for follow_up, _, _ in keys)
        chosen = self(cases)
        begun = set(self.store.cases(["case"])["case"])
        now = sum(rows[name] for follow_ups in chosen.values() for name in follow_ups)
        return now + rows[SOURCE] * len(chosen.keys() - begun) + self.later * max(rows.values())

    def _questions(self, case: str, states: States, bound: Bound) -> list[str]:
        """The rules of a ray that a case is asked about in this round."""
        tried = self.tried.get(case, set())
        known = states.copy()
        for place, rule in enumerate((bound.unchanged, *bound.rules)):
            if known[place] == UNKNOWN and tried.issuperset(bound.follow_ups[rule]):
                known[place] = UNJUDGED
        if known[0] not in (UNKNOWN, HELD):
            return []
        levels = next_levels(known[1:], self.probes) if known[0] == HELD else []
        self.later += questions_left(known[1:], self.probes) - len(levels)
        return [bound.rules[level] for level in levels] if known[0] == HELD else [bound.unchanged]
