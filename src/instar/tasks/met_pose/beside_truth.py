"""Classic testing beside metamorphic testing, by sets of rules, with what could not be compared and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from instar.analysis import Run, classic, classic_vs_metamorphic
from instar.analysis.severities import FAILED, NOTHING_FOUND, OK
from instar.engine import DEFAULT, SOURCE
from instar.report.words import count_of, of_total
from instar.tasks.met_pose.rule_sets import RuleSet

_REASONS = {
    "unanswered": "the system gave no answer to the source",
    "unannotated": "no subject is annotated",
    "incomparable": "the answer cannot be compared with the annotation",
    "nothing found": "nothing was found in the source and in a follow-up",
    "failed": "no follow-up was answered",
    "not applicable": "no rule is applicable, or nothing of it could be judged",
}
"""Why a case is not compared, in the order in which it is asked; the last three are about the rules of a set."""


def classic_by_sets(run: Run, sets: Sequence[RuleSet], grid: Sequence[float], judging: str = DEFAULT) -> pl.DataFrame:
    """For each set and threshold how many cases fail classic testing only, metamorphic testing only, both, neither."""
    truth, matrix = classic(run, judging=judging), run.severities(judging)
    return pl.concat(
        classic_vs_metamorphic(truth, matrix.only(each.rules), grid).select(pl.lit(each.name).alias("set"), pl.all())
        for each in sets
    )


def left_out(run: Run, sets: Sequence[RuleSet], judging: str = DEFAULT) -> pl.DataFrame:
    """For each set why cases of the run are not compared: `reason` and how many `cases`; compared ones have no reason.

    Every case of the run is in exactly one row of each set.
    """
    cases = run.cases()["case"]
    first = _of_classic(run, cases, judging)
    rows = []
    for each in sets:
        second = _of_rules(run, cases, each, judging)
        reasons = [of_truth or of_rules for of_truth, of_rules in zip(first, second, strict=True)]
        rows += [
            (each.name, _REASONS.get(name) if name else None, reasons.count(name))
            for name in (None, *_REASONS)
            if name is None or name in reasons
        ]
    return pl.DataFrame(rows, orient="row", schema={"set": pl.String, "reason": pl.String, "cases": pl.Int64})


def _of_classic(run: Run, cases: pl.Series, judging: str) -> list[str | None]:
    """Why each case has no verdict against its annotation; None where it has one."""
    verdicts = classic(run, judging=judging)
    answers = run.store.predictions(["case", "status"], where=pl.col("follow_up") == SOURCE)
    answered = set(answers.filter(status="ok")["case"])
    judged = set(verdicts.drop_nulls("severity")["case"])
    annotated = set(verdicts["case"])
    return [
        None
        if case in judged
        else "unanswered"
        if case not in answered
        else "incomparable"
        if case in annotated
        else "unannotated"
        for case in cases
    ]


def _of_rules(run: Run, cases: pl.Series, rules: RuleSet, judging: str) -> list[str | None]:
    """Why each case has no verdict under any rule of a set; None where it has one."""
    matrix = run.severities(judging).only(rules.rules)
    status = {case: matrix.status[:, place] for place, case in enumerate(matrix.cases)}
    reasons: list[str | None] = []
    for case in cases:
        codes = status.get(case, np.zeros(0, np.uint8))
        if (codes == OK).any():
            reasons.append(None)
        elif (codes == NOTHING_FOUND).any():
            reasons.append("nothing found")
        else:
            reasons.append("failed" if (codes == FAILED).any() else "not applicable")
    return reasons


def left_out_sentences(table: pl.DataFrame) -> list[str]:
    """What was compared and what was left out, in a sentence for each set; one for all where they are the same."""
    by_words: dict[str, list[str]] = {}
    for (name,), part in table.group_by("set", maintain_order=True):
        whole = int(part["cases"].sum())
        counts = dict(part.select("reason", "cases").iter_rows())
        compared = counts.pop(None)
        words = f"{of_total(compared, whole, 'case')} {'is' if compared == 1 else 'are'} compared"
        if counts:
            words += ". Left out: " + "; ".join(
                f"{count_of(cases, 'case')} in which {reason}" for reason, cases in counts.items()
            )
        by_words.setdefault(words, []).append(str(name))
    if len(by_words) == 1:
        return [f"{words}." for words in by_words]
    return [f"{', '.join(names)}: {words}." for words, names in by_words.items()]
