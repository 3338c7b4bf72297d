"""Until a policy is decided: what is still to be asked of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from instar.analysis import Run, Severities
from instar.analysis.severities import Bools
from instar.analysis.until import Question, Questions, UntilSure, questions_of_width
from instar.gate.checks import named_rules, sliced
from instar.gate.policy import Limit, NoWorse, Policy, PolicyError, read_policy
from instar.stats import sequence_bounds
from instar.store import Shard, Store

_Enough = Callable[[int, int, int], bool]


def until_sure(
    store: Store, until: float | str | Path, shard: Shard | None = None, *, at_first_failure: bool = False
) -> tuple[UntilSure, str]:
    """Who chooses what to ask next, and until when, in words: a width of rates (of families: `family=0.02`), or a
    policy's file, of which also the first limit that is sure to fail may end it."""
    if shard is not None:
        raise ValueError(f"`until` looks at all cases, and {shard.words} has only some; leave out `shard` or `until`")
    by: Literal["rule", "family"] = "family" if str(until).startswith("family=") else "rule"
    try:
        width = float(str(until).removeprefix("family="))
    except ValueError:
        policy = read_policy(Path(str(until)))
        questions, judging = questions_of_policy(policy), policy.judging
        goal = f"every limit of {until} was sure to hold{', or one' if at_first_failure else ' or'} to fail"
        return UntilSure(store, questions, "limit", judging, at_first_failure=at_first_failure), goal
    questions = questions_of_width(width, by)
    return UntilSure(store, questions, by), f"the rate of each {by} was known to ± {100 * width:g} points"


def questions_of_policy(policy: Policy) -> Questions:
    """Each limit of a policy, until it is sure to hold or to fail. Rules that it does not name are not asked.

    A comparison with a baseline takes all cases, and then enough is known: its test may be made once.
    """
    if not policy.limits:
        raise PolicyError(f"{policy.path}: there is no [[limit]] that could be decided; give one")

    def questions(run: Run) -> list[Question]:
        every: tuple[Limit | NoWorse, ...] = *policy.limits, *policy.no_worse
        over_cases = set(run.rules().filter(over="cases")["rule"])
        unsure = [
            Question(rules, _counts(run, policy, limit), *decided(policy, limit))
            for each in every
            for limit, rules in named_rules(run, policy, each)
            if not over_cases.intersection(rules)
        ]
        if not unsure:
            raise PolicyError(f"{policy.path}: every limit is of a rule over many cases, which takes all of them")
        return unsure

    return questions


def _counts(run: Run, policy: Policy, limit: Limit | NoWorse) -> Callable[[Severities], tuple[Bools, Bools]]:
    """Hits are the cases that violate a rate's rules; of a severity's those that stay at or below it."""
    limits = run.thresholds(policy.threshold)

    def counts(matrix: Severities) -> tuple[Bools, Bools]:
        counted = matrix.counted()
        if isinstance(limit, Limit) and limit.where is not None:
            known = run.store.state("cases") and sliced(run, policy, limit, matrix.cases).to_numpy()
            counted &= known if known else False
        if isinstance(limit, Limit) and limit.severity is not None:
            worst = np.where(np.isnan(matrix.severity), -1.0, matrix.severity).max(0, initial=-1.0)
            return np.asarray(worst <= limit.severity), counted
        return np.asarray(matrix.violated(limits).any(0)), counted

    return counts


def decided(policy: Policy, limit: Limit | NoWorse) -> tuple[_Enough, _Enough]:
    """Whether a limit is sure to hold or to fail, and whether it is the latter."""
    if isinstance(limit, NoWorse):
        return (lambda hits, count, left: not left), (lambda hits, count, left: False)
    share = limit.rate if limit.rate is not None else limit.quantile

    def ends(hits: int, count: int, left: int) -> tuple[float, float]:
        if limit.sure == "plain":  # of all cases, whatever the others are like
            return hits / (count + left), (hits + left) / (count + left)
        return sequence_bounds(hits, count, policy.confidence)

    def fails(hits: int, count: int, left: int) -> bool:
        low, high = ends(hits, count, left)
        return low > share if limit.rate is not None else high < share

    def enough(hits: int, count: int, left: int) -> bool:
        if count < max(policy.cases, limit.cases) or not count:
            return False
        low, high = ends(hits, count, left)
        return fails(hits, count, left) or (high <= share if limit.rate is not None else low >= share)

    return enough, fails
