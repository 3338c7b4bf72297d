"""Several systems beside each other: which one to take for what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import polars as pl

from instar.engine import SOURCE
from instar.report.words import count_of, percent
from instar.tasks.hand_pose.advice import advice_frame, advice_of, is_unlabelled, looks_at_images
from instar.tasks.hand_pose.counts import HandCounts
from instar.tasks.hand_pose.follow_ups import GROUPS
from instar.tasks.hand_pose.measures import (
    EVERY,
    VALUE,
    Sums,
    baselines_frame,
    chosen_hands,
    groups_frame,
    interval_columns,
    measures_frame,
    sets_of,
    sums_of,
)
from instar.tasks.hand_pose.response import response_frame
from instar.tasks.hand_pose.sentences import LEAST, LOW, Advice, listed, points_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a system is chosen for: in words, the measure that decides, and in which source or test cases."""

    words: str
    measure: str
    group: str


PURPOSES = {
    "in general": Purpose("In general", "f1", SOURCE),
    "fast motion": Purpose("For gestures in fast motion", "f1", "blur"),
    "poor light": Purpose("Where the light is poor or changes", "f1", "exposure"),
    "covered fingers": Purpose("Where fingers are covered", "f1", "occlusion"),
    "no wrong answers": Purpose("Where a wrong answer is worse than none", "precision", EVERY),
    "no missed hands": Purpose("Where a missed hand is worse than a wrong answer", "hand_recall", EVERY),
}
POINT = 0.01
"""A run is better where it is so much better for certain: less is not worth a choice."""
FEW = 0.025
"""The share of resamples that an interval leaves out on each side: where more have no value, nothing is certain."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the best run is above another one, for a purpose.

    Null where the other one has no such measure at all. Resamples in which one of the two has none are left out of the
    interval; `undefined` is their share.
    """

    purpose: str
    measure: str
    group: str
    best: str
    run: str
    best_value: float
    run_value: float | None
    cases: int
    paired: bool
    undefined: float
    value: float | None
    low: float | None
    high: float | None


def hand_comparison(runs: Mapping[str, HandCounts], *, objects: bool | None = False) -> dict[str, pl.DataFrame]:
    """Several systems beside each other, on what all of them were judged on: paired, since it is resampled together.

    Where they have no case in common, each has its own cases, and intervals of differences are those of independent
    samples. Where one is measured against the ground truth and another against its own answers, none is better.
    `objects` is that of `hand_frames`.

    * `baselines`, `measures`, `groups`: as of one run, with a column `run`;
    * `differences`: for each purpose how far the best run is above each other one, from 10 judged cases on;
    * `advice`: which one to prefer for what, and where there is no sure difference; then that of each run.
    """
    return compared(runs, objects=objects)[0]


def compared(runs: Mapping[str, HandCounts], *, objects: bool | None = False) -> tuple[dict[str, pl.DataFrame], bool]:
    """The same, and whether the runs have cases in common, which are those that are compared."""
    sums, paired = _sums(runs, objects)
    blind = [name for name, each in sums.items() if not looks_at_images(each)]
    against = {name: references(each.counts) for name, each in sums.items()}
    alike = len(set(against.values())) == 1
    differences = _differences(sums, blind, paired) if alike else []
    preferred = _preferred(sums, differences, blind, paired) if alike else [_against_different(against)]
    own = [
        Advice(each.ground, f"{name}: {each.says}", each.because)
        for name, of_run in sums.items()
        for each in advice_of(of_run)
        if each.ground != "unlabelled"
    ]
    texts = dict.fromkeys(("purpose", "measure", "group", "best", "run"), pl.String)
    values = {
        "best_value": pl.Float64,
        "run_value": pl.Float64,
        "cases": pl.Int64,
        "paired": pl.Boolean,
        "undefined": pl.Float64,
    }
    frames = {
        "baselines": _together(baselines_frame, runs),
        "measures": _together(measures_frame, sums),
        "groups": _together(groups_frame, sums),
        "differences": pl.DataFrame(differences, schema={**texts, **values, **dict.fromkeys(VALUE, pl.Float64)}),
        "advice": advice_frame([*preferred, *own]),
    }
    return frames, paired


def references(*counts: HandCounts) -> str:
    """What the answers of some runs are measured against, in words; empty where nothing is."""
    words = {"truth": "the ground truth", "source": "the system's own answers to the source"}
    kinds = {kind for each in counts for kind in each.cases["reference"]}
    return " or ".join(reference for kind, reference in words.items() if kind in kinds)


def _against_different(against: Mapping[str, str]) -> Advice:
    each = "; ".join(f"{name} against {reference or 'nothing'}" for name, reference in against.items())
    says = "Nothing can be said of which is better: the runs are not measured against the same."
    return Advice("references", says, f"measured is {each}")


def response_comparison(runs: Mapping[str, HandCounts], *, objects: bool | None = False) -> pl.DataFrame:
    """TC1 of several systems: `response` of each with a column `run`, on the cases that all of them have, if any."""
    return _together(response_frame, _sums(runs, objects)[0])


def _sums(runs: Mapping[str, HandCounts], objects: bool | None) -> tuple[dict[str, Sums], bool]:
    """The sums of each run over what all were judged on, and whether there is such: else each has its own cases."""
    chosen = [chosen_hands(each, objects) for each in runs.values()]
    shared = _shared(chosen)
    sums = {
        name: sums_of(each, 0 if shared else number)
        for number, (name, each) in enumerate(zip(runs, shared or chosen, strict=True))
    }
    return sums, bool(shared)


def _together(frame: Callable[[T], pl.DataFrame], runs: Mapping[str, T]) -> pl.DataFrame:
    return pl.concat([frame(each).select(pl.lit(name).alias("run"), pl.all()) for name, each in runs.items()])


def _shared(runs: Sequence[HandCounts]) -> list[HandCounts]:
    """The cases that all runs have, each judged where it was judged in all of them; nothing where there are none."""
    keys = runs[0].cases.select("case", "hash")
    for other in runs[1:]:
        keys = keys.join(other.cases.select("case", "hash"), on=["case", "hash"], how="semi")
    if keys.is_empty():
        return []
    common = [name for name in runs[0].follow_ups if all(name in each.follow_ups for each in runs)]
    parts = [
        each.only(each.cases["case"].is_in(keys["case"].implode())).at([each.follow_ups.index(name) for name in common])
        for each in runs
    ]
    return [replace(each, judged=np.logical_and.reduce([part.judged for part in parts])) for each in parts]


def _differences(sums: Mapping[str, Sums], blind: Sequence[str], paired: bool) -> list[Difference]:
    """The best of those that look at the image, and how far it is above each other run, where enough was judged."""
    differences: list[Difference] = []
    sets = {name: sets_of(each) for name, each in sums.items()}
    for name, purpose in PURPOSES.items():
        if any(purpose.group not in of_run for of_run in sets.values()):
            continue
        which = {run: of_run[purpose.group] for run, of_run in sets.items()}
        values = {run: each.values(purpose.measure, which[run]) for run, each in sums.items()}
        best = max(values, key=lambda run: (run not in blind, np.nan_to_num(values[run][0], nan=-1.0)))
        if np.isnan(values[best][0]):
            continue
        cases = min(each.judged(which[run]) for run, each in sums.items())
        if cases < LEAST:
            continue
        for run, own in values.items():
            if run != best:
                better = values[best] - own
                undefined = float(np.isnan(better[1:]).mean())
                (columns,) = interval_columns(better[:, None])
                known = name, purpose.measure, purpose.group, best, run, float(values[best][0])
                value = None if np.isnan(own[0]) else float(own[0])
                ends = (columns[end] for end in VALUE)
                differences.append(Difference(*known, value, cases, paired, undefined, *ends))
    return differences


def _preferred(
    sums: Mapping[str, Sums], differences: Sequence[Difference], blind: Sequence[str], paired: bool
) -> list[Advice]:
    counts = {name: each.judged([0]) for name, each in sums.items()}
    judged = f"cases that were judged: {', '.join(f'{name} {count}' for name, count in counts.items())}"
    if min(counts.values()) < LEAST:
        fewest = min(counts.values())
        shared = f"the runs have {count_of(fewest, 'judged case')} in common"
        there = shared if paired else f"one run has {count_of(fewest, 'judged case')}"
        says = f"Nothing can be said of which is better: {there}, and that takes at least {LEAST}."
        return [Advice("few", says, judged)]
    advice = []
    if not paired:
        says = "These runs have no case in common: differences between them may come from the images."
        advice.append(Advice("unpaired", says, judged))
    steady = [name for name, each in sums.items() if is_unlabelled(each)]
    if steady:
        says = (
            "Nothing is annotated: answers are compared with a system's own answers to the source, so that one that is "
            "wrong and steady looks good."
        )
        advice.append(Advice("unlabelled", says, f"without ground truth: {', '.join(steady)}"))
    for name, purpose in PURPOSES.items():
        others = [each for each in differences if each.purpose == name]
        if others and (not steady or purpose.group in GROUPS):
            advice.append(_preference(others, purpose, blind, {} if steady else sums))
    return advice


def _preference(
    others: Sequence[Difference], purpose: Purpose, blind: Sequence[str], annotated: Mapping[str, Sums]
) -> Advice:
    best, value, words = others[0].best, others[0].best_value, purpose.words
    measure = {"f1": "F1", "hand_recall": "recall of hands"}.get(purpose.measure, purpose.measure)
    places = {SOURCE: "in the source", EVERY: "over source and test cases"}
    place = places.get(purpose.group, f"under {GROUPS.get(purpose.group)}")
    shared = " that all runs have" if others[0].paired else " at least"
    cases = f"{count_of(others[0].cases, 'case')}{shared}"
    because = f"{measure} {place}, on {cases}: {best} {percent(value)}; " + "; ".join(map(_beside, others))
    if best in blind:
        return Advice("none", f"{words}, none is to be preferred: they do not look at the image.", because)
    rest = [each for each in others if each.run not in blind]
    beaten = [each.run for each in rest if each.low is not None and each.low >= POINT and each.undefined < FEW]
    equal = [each.run for each in rest if each.run not in beaten]
    unseeing = [each.run for each in others if each.run in blind]
    verb = "does" if len(unseeing) == 1 else "do"
    left = f" {listed(unseeing)} {verb} not look at the image." if unseeing else ""
    if rest and not beaten:
        says = f"{words}, there is no sure difference of a point or more between {listed([best, *equal])}.{left}"
        return Advice("equal", says, because)
    f1 = float(annotated[best].values("f1", [0])[0]) if best in annotated else LOW
    if value < LOW:
        poor = ", though it is poor too"
    else:
        poor = f", though its landmarks are poor: F1 {percent(f1)} in the source" if f1 < LOW else ""
    to = f" to {listed(beaten)}" if beaten else ""
    also = f" {listed(equal)} may be as good." if equal else ""
    return Advice("prefer", f"{words}, prefer {best}{to}{poor}.{also}{left}", because)


def _beside(other: Difference) -> str:
    """A run beside the best one: its measure, and how much less or more that is."""
    if other.value is None or other.low is None or other.high is None:
        return f"{other.run} none"
    text = f"{other.run} {percent(other.run_value)}, {points_text(other.value, other.low, other.high)}"
    if other.undefined < FEW:
        return text
    return f"{text}, without the {percent(other.undefined)} of resamples in which one of the two has none"
