"""A policy made of a run that holds it, to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isfinite

from instar.analysis import Run
from instar.analysis.answers import Idle, idle
from instar.analysis.copies import copies
from instar.engine import DEFAULT
from instar.engine.extent import Extent
from instar.gate.checks import failed_predictions, meaningless, refuse_search
from instar.gate.policy import PolicyError
from instar.report.copies import copies_finding
from instar.stats import binomial_bounds

_IDLE: Mapping[Idle, str] = {
    "silent": "no pair was judged, or nothing was found in any input",
    "alike": "every input has the same answer",
    "undecided": "most pairs are near ties, which the judging forgives",
}


def new_policy(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> str:
    """A policy that this run holds: to edit, not to believe. Of a run that shows nothing there is none."""
    refuse_search(run)
    table = run.family_rates(threshold, judging=judging)
    judged = run.judged(judging)
    if why := "silent" if not judged["judged"] else idle(run, threshold, judging=judging):
        raise PolicyError(f"{run.folder}: {_IDLE[why]}, so that it holds no policy; give a run that shows something")
    if why_meaningless := meaningless(run, judging):
        raise PolicyError(f"{run.folder} holds no policy: {why_meaningless} `instar show` says what to do.")
    blocks = []
    for row in table.iter_rows(named=True):
        if not row["judged"]:
            continue
        _, high = binomial_bounds(row["violated"], row["judged"])
        share = min(1.0, ceil(100 * high) / 100)
        seen = f"# {row['violated']} of {row['judged']} cases violate it"
        blocks.append(f'[[limit]]\nof = "{row["group"]}"  {seen}\nrate = {share:g}\n')
    unjudged = 1 - judged["judged"] / judged["pairs"] if judged["pairs"] else 0.0
    for row in run.over_cases(judging).drop_nulls("severity").iter_rows(named=True):
        most = ceil(100 * row["severity"]) / 100 if isfinite(row["severity"]) else row["severity"]
        blocks.append(f'[[limit]]\nof = "{row["rule"]}"  # over all cases together\nseverity = {most:g}\n')
    head = [
        "# What a run must hold. Made of one that holds it: put in the figures that you need.",
        *([] if (alike := copies(run)) is None else [f"# {copies_finding(alike).words}"]),
        f"cases = {max(1, *table['judged'])}  # as many were judged",
        f"failed = {_failed_share(run):g}  # the highest share of predictions that failed",
        f"not_judged = {min(1.0, ceil(100 * unjudged) / 100):g}  # the highest share of pairs without a severity",
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
