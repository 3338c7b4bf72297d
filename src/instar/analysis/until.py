"""Until sure: cases are asked in random order, and rules drop out as soon as enough is known of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
import xxhash

from instar.analysis.comparison import aligned
from instar.analysis.run import Run
from instar.analysis.severities import ABSENT, Bools, Severities, severities
from instar.engine import DEFAULT
from instar.stats import sequence_bounds
from instar.store import Store

FIRST_LOOK, GROWTH = 25, 1.15
"""Cases before the first look, and how many times as many there are at each next one. When one looks does not matter
for what intervals say; often, and little is asked in vain."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about some rules, and when enough is known.

    `counts` says of the matrix of these rules which cases are hits and which count at all; `enough` is given hits,
    counted cases and how many more there may be, and so is `fails`, which says whether the answer is no.
    """

    rules: tuple[str, ...]
    counts: Callable[[Severities], tuple[Bools, Bools]]
    enough: Callable[[int, int, int], bool]
    fails: Callable[[int, int, int], bool] = lambda hits, count, left: False


Questions = Callable[[Run], Sequence[Question]]


class End(NamedTuple):
    """After how many cases a question was no longer asked, whether enough was known, and whether the answer is no."""

    cases: int
    enough: bool
    fails: bool = False


def questions_of_width(
    width: float, by: Literal["rule", "family"] = "rule", threshold: float | None = None
) -> Questions:
    """Each rule's rate, or each family's, within ± `width`, with 95 % confidence at every look."""
    if not 0 < width < 0.5:
        raise ValueError(f"the width is above 0 and below 0.5, got {width}: 0.02 is ± 2 points")

    def narrow(hits: int, count: int, left: int) -> bool:
        low, high = sequence_bounds(hits, count)
        return high - low <= 2 * width

    def questions(run: Run) -> list[Question]:
        limits = run.thresholds(threshold)

        def counts(matrix: Severities) -> tuple[Bools, Bools]:
            return np.asarray(matrix.violated(limits).any(0)), matrix.counted()

        families = run.families()
        together = families.values() if by == "family" else [[rule] for rules in families.values() for rule in rules]
        alone = set(run.rules().filter(over="case")["rule"]) - {rule for rules in together for rule in rules}
        groups = [*together, *([rule] for rule in sorted(alone))]  # identity is in no family
        return [Question(tuple(rules), counts, narrow) for rules in groups]

    return questions


@dataclass(slots=True)
class UntilSure:
    """A choice of what to ask next. What it chooses follows from what the run holds: a run that was stopped goes on in
    the same order, and drops each rule after the same case."""

    store: Store
    questions: Questions
    of: str = "rule"
    """What a question is about, as a noun."""
    judging: str = DEFAULT
    tried: set[str] = field(default_factory=set)
    """Cases that were asked about already: what did not come of them does not come."""
    ends: list[End] = field(default_factory=list)
    """How the last look at each question ended."""
    total: int = 0
    at_first_failure: bool = False
    """Whether nothing more is asked as soon as the answer to one question is no."""

    @property
    def failed(self) -> bool:
        """Whether asking ended because of such an answer."""
        return self.at_first_failure and any(end.fails for end in self.ends)

    def __call__(self, cases: Sequence[str]) -> Mapping[str, Collection[str]]:
        run = Run(self.store)
        self.total = len(cases)
        order = random_order(cases, run.manifest.seed)
        wanted = self._looks(run, order)
        bound = {one.id: one for one in run.bound_rules()}
        over_cases = [one.id for one in bound.values() if one.relation.relation.over == "cases"]
        beside = {*over_cases, *run.rules().filter(over="level")["rule"]}  # asked as long as anything is
        most = max(wanted.values(), default=0)
        counts = {**wanted, **dict.fromkeys(beside, most)} if most else {}
        chosen: dict[str, set[str]] = {}
        for rule, count in counts.items():
            names = {one.id for one in bound[rule].transformations}
            for case in order[:count]:
                chosen.setdefault(case, set()).update(names)
        self.tried.update(chosen)
        return chosen

    def _looks(self, run: Run, order: Sequence[str]) -> dict[str, int]:
        """How many of the cases each rule is still to be asked about, by the looks that were due so far."""
        matrix = run.severities(self.judging) if run.store.state("predictions") else severities([])
        cases = run.store.cases(["case", "status"])
        self.tried.update(cases.filter(pl.col("status") != "ok")["case"])
        tried = np.array([case in self.tried for case in order], np.bool_)
        wanted: dict[str, int] = {}
        self.ends.clear()
        for question in self.questions(run):
            end = self._look(question, aligned(matrix, question.rules, order), tried)
            for rule in question.rules if end else ():
                wanted[rule] = max(wanted.get(rule, 0), end)
        return {} if self.failed else wanted

    def _look(self, question: Question, matrix: Severities, tried: Bools) -> int:
        """Up to which case a question asks next; 0 where enough is known, or there are no more cases."""
        waits = ~((matrix.status != ABSENT).all(0) | tried)
        hits, counted = question.counts(matrix)
        for end in looks(len(tried)):
            if waits[:end].any():
                return end
            seen = int((hits & counted)[:end].sum()), int(counted[:end].sum()), len(tried) - end
            if question.enough(*seen):
                self.ends.append(End(end, True, question.fails(*seen)))
                return 0
        self.ends.append(End(len(tried), False))
        return 0


def looks(cases: int) -> list[int]:
    """After how many cases one looks; the last time after all of them.

    >>> looks(40), looks(10)
    ([25, 29, 34, 40], [10])
    """
    ends, end = [], FIRST_LOOK
    while end < cases:
        ends.append(end)
        end = int(np.ceil(end * GROWTH))
    return [*ends, cases] if cases else []


def random_order(cases: Sequence[str], seed: int) -> list[str]:
    """Cases in an order that the seed and their ids alone settle."""
    return sorted(cases, key=lambda case: (xxhash.xxh3_64_intdigest(f"{seed}\x1f{case}".encode()), case))
