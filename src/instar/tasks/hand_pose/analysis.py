"""Hands: how well a system finds them, what each test case of the suite costs, and what that is advice for."""

from __future__ import annotations

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.tasks.hand_pose.advice import advice_frame, advice_of
from instar.tasks.hand_pose.comparison import hand_comparison as hand_comparison
from instar.tasks.hand_pose.counts import hand_counts as hand_counts
from instar.tasks.hand_pose.measures import baselines_frame, chosen_hands, measure_frames, sums_of
from instar.tasks.hand_pose.response import crucial_frame, response_frame


def hand_advice(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """What the measures of a run's hands without objects advise: its `ground`, what it `says`, `because` of what."""

    def make() -> pl.DataFrame:
        return advice_frame(advice_of(sums_of(chosen_hands(hand_counts(run, judging), False))))

    return run.cached(("hand advice", judging), make)


def hand_frames(run: Run, *, judging: str = DEFAULT, objects: bool | None = False) -> dict[str, pl.DataFrame]:
    """Every measure of a run's hands with its 95 % interval over resampled cases, and what it advises.

    `objects` says which cases count besides `baselines`: False leaves out hands that hold an object, unless all do;
    True takes only those; None takes all. Where the dataset has no attribute `object`, all cases are hands without.

    * `baselines`: the source, for all hands and by the attribute `object`: Tables II and III;
    * `measures`: the source and each follow-up: precision, recall and F1 of landmarks and of hands (`hand_`), the mean
      `error` of the landmarks found, `auc` the area under the PCK curve (1 is perfect), and what is `lost` from
      the `baseline`, the source of the same cases, with its own interval;
    * `groups`: the same over the test cases that cover, expose and blur, and over source and all test cases;
    * `pck`: the share of landmarks within `t` sizes of the hand, per group;
    * `fingers` and `landmarks`: precision, recall, F1 and the share that is `right`, per follow-up and per group;
    * `response`: TC1, the measures with n landmarks covered, and what each step of n costs;
    * `crucial`: what a step that completes a finger costs more than any other, per step;
    * `over_cases`: the rules over many cases: severity, r and ρ, or what dropped and which part that is of what there
      was to lose, each with its interval;
    * `advice`: sentences, each with the numbers that it follows from.
    """

    def make() -> dict[str, pl.DataFrame]:
        counts = hand_counts(run, judging)
        sums = sums_of(chosen_hands(counts, objects))
        return {
            "baselines": baselines_frame(counts),
            **measure_frames(sums),
            "response": response_frame(sums),
            "crucial": crucial_frame(sums),
            "over_cases": _over_cases(run, judging),
            "advice": advice_frame(advice_of(sums)) if objects is not False else hand_advice(run, judging=judging),
        }

    return run.cached(("hand frames", judging, objects), make)


_DROP = ("drop", "low", "high", "lost", "lost_low", "lost_high", "baseline", "value")
_NUMBERS = ("severity", "r", "rho", *_DROP, "cases")


def _over_cases(run: Run, judging: str) -> pl.DataFrame:
    titles = run.manifest.titles
    rows = [
        {
            "rule": row["rule"],
            "title": titles.get(row["rule"], row["rule"]),
            **{name: None if row.get(name) is None else float(row[name]) for name in _NUMBERS},
            "reason": row["reason"],
        }
        for row in run.over_cases(judging).iter_rows(named=True)
    ]
    numbers = dict.fromkeys(_NUMBERS, pl.Float64)
    return pl.DataFrame(rows, schema={"rule": pl.String, "title": pl.String, **numbers, "reason": pl.String})
