"""What any sampler of futures does: it follows the past of the person, and it varies."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.forecast import Paths
from instar.relations import matrices_of
from instar.relations.relation import VERDICT_COLUMNS, Evidence, Relation
from instar.spelling import Parameter
from instar.store import Row, Schema
from instar.tasks.traj_test.relations import SOURCES, past_of
from instar.warp import Warp

Floats = npt.NDArray[np.float64]

IGNORED, OPPOSITE = 0.8, 1.2
"""Shares of the turn that are not followed: from the first the past is ignored, from the second it is opposed."""
NO_PAST = "nobody knows the past of this case"
NO_TURN = "the past was not turned; follows goes with turn_past"
STOPPED = "the person has just stopped or turned: at the last pace they do not go on as before"
UNSTEADY = 0.5
"""The share of the turn that a person may leave out who goes on as in the last steps: how others go on is unknown."""
DETERMINISTIC = "it was predicted once: a deterministic system has nothing to vary"
ONE_ANSWER = "every answer is one future, the same one whatever the seed: a deterministic system has nothing to vary"

FOLLOWS_MEASURES: Schema = {"along": pl.Float64}
VARIES_MEASURES: Schema = {"cases": pl.Int64}


def follows(evidence: Evidence) -> pl.DataFrame:
    """Where the past is turned, the mean of the futures turns with it: the share of the turn that it does not follow.

    `along` is how far the mean future moved towards where it should, against a person who goes on as before: 1 where
    both do so, 0 where the answer stayed the same, and where it never goes anywhere.
    """
    paths, back = Paths.of(evidence.follow_ups), matrices_of(evidence.follow_ups)
    source_paths, pasts = Paths.of(evidence.sources), past_of(evidence.cases)
    before: dict[str, list[Floats]] = {}
    for number, case in enumerate(evidence.sources["case"]):
        before.setdefault(case, []).append(source_paths[number])
    after: dict[tuple[str, str], tuple[list[Floats], Row]] = {}
    rows = evidence.follow_ups.select("case", "follow_up", "facts").iter_rows(named=True)
    for number, row in enumerate(rows):
        carried_back = Warp(back[number], (1, 1), (1, 1)).inverse.points(paths[number])
        after.setdefault((row["case"], row["follow_up"]), ([], row))[0].append(carried_back)
    verdicts: list[Row] = []
    for (case, follow_up), (runs, row) in after.items():
        if case in before:
            degrees = json.loads(row["facts"] or "{}").get("degrees")
            reason = NO_PAST if case not in pasts else NO_TURN if degrees is None else None
            verdict = {"reason": reason} if reason else _followed(before[case], runs, pasts[case], degrees)
            verdicts.append({"case": case, "follow_up": follow_up, "target": "whole", **verdict})
    return pl.DataFrame(verdicts, schema={**VERDICT_COLUMNS, **FOLLOWS_MEASURES}, orient="row")


def _followed(sources: list[Floats], runs: list[Floats], past: Floats, degrees: float) -> Row:
    pace = (past[-1] - past[0]) / (len(past) - 1)
    turn = pace - Warp.rotation((1, 1), degrees, (0.0, 0.0)).points(pace)
    if not np.linalg.norm(turn) > 0:
        return {"reason": "the past was turned by whole turns, or the person stands: nothing changed"}
    if _going_on(past).min() <= 1 - UNSTEADY:
        return {"reason": STOPPED}
    moved = _mean(sources) - _mean(runs)
    going_on = (sources[0].shape[1] + 1) / 2
    along = float(moved @ turn) / (going_on * float(turn @ turn))
    severity = max(0.0, 1 - along)
    kind = "past opposed" if severity >= OPPOSITE else "past ignored" if severity >= IGNORED else None
    return {"severity": severity, "kind": kind, "along": along}


def _going_on(past: Floats) -> Floats:
    """Which share of the turn somebody makes who goes on as in the last step, the last two, and so on: on positions in
    whole pixels the last step of a slow person is often none."""
    counts = np.arange(1, len(past))[:, None]
    paces = (past[-1] - past[-2::-1]) / counts
    return np.asarray(paces @ paces[-1] / (paces[-1] @ paces[-1]))


def _mean(runs: list[Floats]) -> Floats:
    """The mean position over all futures and steps."""
    return np.asarray(np.mean([run.reshape(-1, 2).mean(0) for run in runs], 0))


def varies(evidence: Evidence) -> pl.DataFrame:
    """Whether a system that takes a seed ever answers differently, over all cases.

    Several futures claim to be samples, and samples depend on the seed. One future that never changes claims nothing:
    it is the answer of a deterministic system, whatever parameters its function has.
    """
    judged = evidence.verdicts.filter(pl.col("sources") > 1) if evidence.verdicts.width else evidence.verdicts
    row: Row = dict.fromkeys(VERDICT_COLUMNS)
    if judged.is_empty():
        row["reason"] = DETERMINISTIC
    elif judged["own"].max() == 0 and judged["futures"].max() == 1:
        row["reason"] = ONE_ANSWER
    else:
        by_seed, in_a_run = judged["own"].max() != 0, judged["fan"].max() != 0 or judged["futures"].max() == 1
        kind = None if by_seed and in_a_run else "the seed is ignored" if in_a_run else "all futures of a run are one"
        row |= {"severity": 0.0 if kind is None else 1.0, "kind": kind, "cases": judged["case"].n_unique()}
    return pl.DataFrame([row], schema={**VERDICT_COLUMNS, **VARIES_MEASURES}, orient="row")


# fmt: off
RELATIONS: Mapping[str, Relation] = {
    "follows": Relation(
        "follows", "forecast", follows, mapping=False, responds=True, threshold=IGNORED,
        unit="shares of the turn not followed; above 1: turned the other way by the rest",
        grid=(0.2, 0.5, 0.8, 1.0, 1.5), measures=FOLLOWS_MEASURES, kinds=("past ignored", "past opposed"),
        meanings={
            "past ignored": "the futures hardly turn with the past",
            "past opposed": "the futures turn against the past",
        },
        counted={"past ignored": "with the past ignored", "past opposed": "with the past opposed"},
        parameters=(
            SOURCES, Parameter("repeats", "int", 5, low=1, high=1000, help="predictions of the follow-up"),
            Parameter("draws", "int", 1, low=1, high=1000, help="follow-ups of a random transformation"),
        ),
        words="the futures must turn with it", title="turning with the past",
        details=("the mean future makes {along:%} of the turn",),
        help="Where the past is turned, the mean of the futures turns with it: 0 as a person who goes on as before, 1 "
        "where the answer stays the same or never goes anywhere. Violated from 0.8: walls and goals may hold back much "
        "of a turn, but not all of it.",
    ),
    "varies": Relation(
        "varies", "forecast", varies, mapping=False, unit="runs without variation", threshold=0.5, grid=(0.5,),
        over="cases", measures=VARIES_MEASURES, kinds=("the seed is ignored", "all futures of a run are one"),
        meanings={
            "the seed is ignored": "the system takes a seed, and gives the same answer whatever the seed is",
            "all futures of a run are one": "an answer has several futures, and all of them are the same",
        },
        parameters=(Parameter("measure", "choice", "own", choices=("own",), help="what wvc measures of every case"),),
        words="the futures must not all be one", title="variation of futures",
        help="A system that takes a seed answers differently for another one, and its futures are not all the same, in "
        "one case at least. A deterministic system has nothing to vary: one that says so, or whose every answer is one "
        "future that is the same for every seed.",
    ),
}
# fmt: on
