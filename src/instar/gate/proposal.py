"""A policy made of a run that holds it, to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isfinite

import polars as pl

from instar.analysis import Run, repeated
from instar.analysis.answers import Idle, idle
from instar.analysis.copies import copies
from instar.engine import DEFAULT
from instar.engine.extent import Extent
from instar.gate.checks import MOST_CASES, after_looks, cases_needed, failed_predictions, meaningless, refuse_search
from instar.gate.policy import Policy, PolicyError
from instar.report.copies import copies_finding
from instar.report.finding import Finding
from instar.report.words import SPACE, count_of, of_total, percent
from instar.stats import binomial_bounds, sequence_bounds

_IDLE: Mapping[Idle, str] = {
    "silent": "no pair was judged, or nothing was found in any input",
    "alike": "every input has the same answer",
    "undecided": "most pairs are near ties, which the judging forgives",
}


HIGH = 0.5
"""A limit above this accepts a model that is broken."""
USUAL = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Limits that people ask for: of the next tighter one a comment says how many cases it takes."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """A limit for the rate of some rules: the lowest that these cases can show, in whole percents.

    `needed` is how many cases show `tighter`, the next of the usual limits, at the same rate; None if no number does.
    """

    of: str
    violated: int
    judged: int
    limit: float
    tighter: float | None = None
    needed: int | None = None

    @property
    def rate(self) -> float:
        return self.violated / self.judged

    @property
    def warning(self) -> Finding | None:
        """Return that the limit accepts a broken model, and why, or None."""
        words = f"The proposed limit of {percent(self.limit)} accepts a broken model: "
        figures = {"of": self.of, "violated": self.violated, "judged": self.judged, "limit": self.limit}
        if self.rate > HIGH:
            violated = f"{of_total(self.violated, self.judged, 'case')} ({percent(self.rate)})"
            words += f"{violated} violate {self.of}. Fix the model, or set the limit that you need."
            return Finding("gate.init_high_rate", words, True, {**figures, "rate": self.rate})
        if self.limit > HIGH:
            words += f"{count_of(self.judged, 'case')} show no lower one of {self.of}."
            if self.tighter and self.needed:
                words += f" {percent(self.tighter)} takes about {count_of(self.needed, 'case')}."
            return Finding("gate.init_few_cases", words, False, {**figures, "needed": self.needed})
        return None

    def block(self) -> str:
        """Return the limit as TOML, with comments."""
        warning = self.warning
        notes = [] if warning is None else [f"# WARNING: {warning.words}"]
        if warning is None and self.tighter and self.needed:
            notes.append(f"# {self.tighter:g} takes about {count_of(self.needed, 'case')} at this rate")
        seen = f"# {self.violated} of {self.judged} cases violate it"
        lines = [*notes, "[[limit]]", f'of = "{self.of}"  {seen}', f"rate = {self.limit:g}", ""]
        return "\n".join(lines).replace(SPACE, " ")


def proposed_limits(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> list[Proposed]:
    """Return a limit for each family and for any rule, such that this run holds it.

    A run that may be stopped before its end (`--until`) holds it as well, if it comes to all cases.
    """
    confidence = after_looks(Policy().confidence)
    bounds = sequence_bounds if run.looked else binomial_bounds
    proposed = []
    for row in run.family_rates(threshold, judging=judging).filter(pl.col("judged") > 0).iter_rows(named=True):
        violated, judged = row["violated"], row["judged"]
        limit = min(1.0, ceil(100 * bounds(violated, judged, confidence)[1]) / 100)
        tighter = next((usual for usual in USUAL if violated / judged < usual < limit), None)
        needed = MOST_CASES if tighter is None else cases_needed(tighter, violated, judged, confidence, bounds)
        known = needed if needed < MOST_CASES else None
        proposed.append(Proposed(row["group"], violated, judged, limit, tighter, known))
    return proposed


def new_policy(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> str:
    """A policy that this run holds: to edit, not to believe. Of a run that shows nothing there is none."""
    refuse_search(run)
    judged = run.judged(judging)
    if why := "silent" if not judged["judged"] else idle(run, threshold, judging=judging):
        raise PolicyError(f"{run.folder}: {_IDLE[why]}, so that it holds no policy; give a run that shows something")
    if why_meaningless := meaningless(run, judging):
        raise PolicyError(f"{run.folder} holds no policy: {why_meaningless} `instar show` says what to do.")
    limits = proposed_limits(run, threshold=threshold, judging=judging)
    blocks = [one.block() for one in limits]
    unjudged = 1 - judged["judged"] / judged["pairs"] if judged["pairs"] else 0.0
    for row in run.over_cases(judging).drop_nulls("severity").iter_rows(named=True):
        most = ceil(100 * row["severity"]) / 100 if isfinite(row["severity"]) else row["severity"]
        blocks.append(f'[[limit]]\nof = "{row["rule"]}"  # over all cases together\nseverity = {most:g}\n')
    head = [
        "# What a run must hold. Made of one that holds it: put in the figures that you need.",
        *([] if (alike := copies(run)) is None else [f"# {copies_finding(alike).words}"]),
        f"cases = {max(1, 0, *(one.judged for one in limits))}  # as many were judged",
        f"failed = {_failed_share(run):g}  # the highest share of predictions that failed",
        f"not_judged = {min(1.0, ceil(100 * unjudged) / 100):g}  # the highest share of pairs without a severity",
        *_not_repeatable(run),
        *([f"threshold = {threshold:g}"] if threshold is not None else []),
        *([f'judging = "{judging}"'] if judging != DEFAULT else []),
        "",
        "# The upper end of the interval must lie at or below each rate: the run has to show that it is good enough.",
        '# With sure = "lower" it fails only where it is shown not to be, with sure = "plain" by the figure alone.',
        *_some_cases(run),
        "",
    ]
    tail = [
        "# Against a baseline, without the # at the beginning of these lines:",
        "# [[no_worse]]",
        '# of = "any rule"',
        "# margin = 0.02",
        "",
    ]
    return "\n".join([*head, *blocks, *tail])


def _some_cases(run: Run) -> list[str]:
    """How a limit is made to count only some cases, with figures that these cases have."""
    known = run.described()
    if "brightness" not in known.columns or not known["brightness"].count():
        return []
    low, middle, high = (f"{known['brightness'].quantile(end, 'nearest'):.2g}" for end in (0, 0.5, 1))
    return [
        f'# A limit with where = {{ column = "brightness", below = {middle} }} counts only these cases; brightness is',
        f"# between {low} and {high} here. `instar slices RUN` shows the columns.",
    ]


def _failed_share(run: Run) -> float:
    """The share of the predictions that failed, rounded up to whole percents."""
    extent = Extent.of(run.store)
    counts, unread = failed_predictions(run, extent)
    return ceil(100 * (sum(counts.values()) + unread) / extent.done) / 100 if extent.done else 0.0


def _not_repeatable(run: Run) -> list[str]:
    """Return the line that allows the share of violating pairs that got another output, if there are any."""
    if (again := repeated(run)) is None or not again.differing:
        return []
    share = ceil(100 * again.differing / again.pairs) / 100
    return [f"not_repeatable = {share:g}  # the highest share of violating pairs with another output when asked again"]
