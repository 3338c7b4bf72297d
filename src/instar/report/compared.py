"""Several runs beside each other, on the cases that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import polars as pl

from instar.analysis import Run, Severities, curve
from instar.analysis.severities import NOTHING_FOUND
from instar.engine import DEFAULT
from instar.report.section import Section, rates_per_threshold, start_of
from instar.report.words import distinct_names
from instar.stats import holm, mcnemar
from instar.store import Row, Schema


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One relation of several runs. `differences` has one frame per threshold: the first run against each other one.

    `section` has the grid and the start that all of it is about.
    """

    section: Section
    cases: int
    rules: int
    curves: pl.DataFrame
    rates: pl.DataFrame
    differences: Sequence[pl.DataFrame]


def run_names(runs: Sequence[Run]) -> list[str]:
    """What tells runs apart: their systems' names, with their folders' where those are the same."""
    return distinct_names([run.manifest.system.name for run in runs], [run.folder.resolve().name for run in runs])


def common_cases(runs: Sequence[Run], judging: str = DEFAULT) -> list[str]:
    """The cases that every run has verdicts about, in the order of the first run."""
    cases = [run.severities(judging).cases.drop_nulls().to_list() for run in runs]
    shared = set.intersection(*map(set, cases))
    return [case for case in cases[0] if case in shared]


def compare(runs: Sequence[Run], sections: Sequence[Sequence[Section]], *, judging: str = DEFAULT) -> list[Comparison]:
    """The relations that all runs have, on the cases and rules that all have."""
    names, cases = run_names(runs), common_cases(runs, judging)
    by_name = [{section.relation: section for section in of_run} for of_run in sections]
    shared = [name for name in by_name[0] if all(name in other for other in by_name)]
    return [_one(runs, names, [of_run[name] for of_run in by_name], cases, judging) for name in shared]


def _one(
    runs: Sequence[Run], names: Sequence[str], sections: Sequence[Section], cases: Sequence[str], judging: str
) -> Comparison:
    first = sections[0]
    grid = tuple(reduce(lambda a, b: [value for value in a if value in b.grid], sections[1:], list(first.grid)))
    owned = [[one for rules in section.families.values() for one in rules] for section in sections]
    rules = [one for one in owned[0] if all(one in others for others in owned)]
    severities = [_aligned(run.severities(judging), rules, cases) for run in runs]
    known = runs[0].rules().with_columns(name=pl.col("rule").replace(first.names))
    places = {value: t for t, value in enumerate(grid)}
    curves = [
        curve(one, grid).select(
            pl.lit(name).alias("run"),
            pl.all(),
            pl.col("threshold").replace_strict(places, return_dtype=pl.Int32).alias("t"),
        )
        for name, one in zip(names, severities, strict=True)
    ]
    rates = pl.concat(
        [
            rates_per_threshold(one, known, grid).with_columns(run=pl.lit(name))
            for name, one in zip(names, severities, strict=True)
        ]
    )
    mean = (
        rates.group_by("name", "t")
        .agg(pl.col("rate").mean().alias("mean"))
        .sort("t", "mean", "name", descending=[False, True, False], nulls_last=True)
        .with_columns(order=pl.int_range(pl.len()).over("t"))
        .drop("mean")
    )
    return Comparison(
        replace(first, grid=grid, start=start_of(grid, [first.grid[first.start]])),
        len(cases),
        len(rules),
        pl.concat(curves),
        rates.drop("order").join(mean, on=["name", "t"], maintain_order="left"),
        [_differences(severities, names, first.names, value) for value in grid],
    )


def _aligned(severities: Severities, rules: Sequence[str], cases: Sequence[str]) -> Severities:
    """Only these rules and cases, the cases in this order."""
    chosen = severities.only(rules)
    place = {case: number for number, case in enumerate(chosen.cases)}
    take = np.array([place[case] for case in cases], np.int64)
    return replace(
        chosen,
        cases=pl.Series("case", list(cases), pl.String),
        severity=chosen.severity[:, take],
        status=chosen.status[:, take],
        kind=chosen.kind[:, take],
        p=None if chosen.p is None else chosen.p[:, take],
    )


# fmt: off
_SCHEMA: Schema = {
    "rule": pl.String, "run": pl.String, "cases": pl.Int64, "first": pl.Int64, "other": pl.Int64,
    "first_only": pl.Int64, "other_only": pl.Int64, "first_empty": pl.Int64, "other_empty": pl.Int64,
    "difference": pl.Float64, "p": pl.Float64,
    "p_corrected": pl.Float64,
}
# fmt: on


def _differences(
    runs: Sequence[Severities], names: Sequence[str], spelled: Mapping[str, str], threshold: float
) -> pl.DataFrame:
    """Rule by rule, the first run against the others, on the cases judged in both.

    `first_empty` and `other_empty` count the pairs of each run in which nothing was found in either input.

    p is that of McNemar's paired test on violated or not, exact and two-sided; `p_corrected` takes into
    account how many questions were asked (Holm).
    """
    limits = {one: threshold for each in runs for one in each.rules}
    rows: list[Row] = []
    hits = [each.violated(limits) for each in runs]
    for number, one in enumerate(runs[0].rules):
        for other in range(1, len(runs)):
            there = ~np.isnan(runs[0].severity[number]) & ~np.isnan(runs[other].severity[number])
            a, b = hits[0][number][there], hits[other][number][there]
            first_only, other_only = int((a & ~b).sum()), int((b & ~a).sum())
            rows.append(
                {
                    "rule": spelled[one],
                    "run": names[other],
                    "cases": int(there.sum()),
                    "first": int(a.sum()),
                    "other": int(b.sum()),
                    "first_only": first_only,
                    "other_only": other_only,
                    "first_empty": int((runs[0].status[number] == NOTHING_FOUND).sum()),
                    "other_empty": int((runs[other].status[number] == NOTHING_FOUND).sum()),
                    "difference": (int(b.sum()) - int(a.sum())) / int(there.sum()) if there.any() else None,
                    "p": mcnemar(first_only, other_only),
                }
            )
    corrected = holm([row["p"] for row in rows])
    table = pl.DataFrame(
        [{**row, "p_corrected": p} for row, p in zip(rows, corrected, strict=True)], schema=dict(_SCHEMA)
    )
    return table.sort(pl.col("p"), pl.col("difference").abs(), descending=[False, True], maintain_order=True)
