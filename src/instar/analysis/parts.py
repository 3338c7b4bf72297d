"""What a verdict over many parts hides: landmarks that stray more often than the pairs they belong to are violated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.engine import chunks, evidence
from instar.outputs import Row, Schema, output_kind
from instar.relations import BoundRule, PartSeverities
from instar.stats import binomial_excess, holm, wilson
from instar.store import KEY, of_cases

if TYPE_CHECKING:
    from instar.analysis.run import Run

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

MOST_PAIRS = 20_000
"""Pairs of a relation that are looked at, of cases at even steps: more would cost seconds and name the same parts."""
LEAST_EXCESS = 0.05
"""A part is named only where it strays in so much more of the pairs, however sure a smaller difference is."""
LEAST_DIFFERENT = 5
"""Pairs in which only one of the two strays, below which no difference can be sure: 0.5⁵ is 0.03."""
SURE = 0.05

# fmt: off
SCHEMA: Schema = {
    "rule": pl.String, "part": pl.String, "judged": pl.Int64, "strayed": pl.Int64, "rate": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "whole": pl.Float64, "unchanged": pl.Float64, "p": pl.Float64,
    "p_corrected": pl.Float64,
}
# fmt: on


@dataclass(frozen=True, slots=True, eq=False)
class PartMatrix:
    """Severities of named parts (rules, cases, names), beside those of the verdicts (rules, cases); NaN: not judged.

    `twins` is the place of the part that a mirror puts at each one's; `identity` that of the rule that changes nothing,
    None where there is none; `noisy` says that the system may answer the same input otherwise.
    """

    rules: tuple[str, ...]
    names: tuple[str, ...]
    twins: tuple[int, ...]
    severity: Floats
    whole: npt.NDArray[np.float64]
    identity: int | None
    noisy: bool


def part_matrix(run: Run, relation: str, judging: str) -> PartMatrix | None:
    """The parts of a relation's verdicts; None where it has none, or nothing was predicted yet."""
    manifest = run.manifest
    rules = [one for one in run.bound_rules() if one.relation.relation.name == relation]
    if manifest.output is None or not rules or rules[0].relation.relation.parts is None:
        return None
    matrix = run.severities(judging).only([one.id for one in rules])
    rules = [one for one in rules if one.id in matrix.rules]
    step = -(-len(rules) * len(matrix.cases) // MOST_PAIRS) or 1
    # by their ids, so that it does not matter in which order they were asked
    taken = matrix.at(matrix.cases.is_in(matrix.cases.drop_nulls().sort().gather_every(step).implode()))
    names, parts = dict[str, str](), [dict[str, Floats]() for _ in rules]
    for number, some in _severities(run, rules, taken.cases, judging):
        names |= dict(zip(some.names, some.twins, strict=True))
        _fill(parts[number], some, taken.cases)
    absent = np.full(len(taken.cases), np.nan, np.float32)
    severity = np.array([[by_name.get(name, absent) for name in names] for by_name in parts], np.float32)
    identity = next((number for number, one in enumerate(rules) if one.left == "identity"), None)
    return PartMatrix(
        taken.rules,
        tuple(names),
        tuple(list(names).index(twin if twin in names else name) for name, twin in names.items()),
        severity.reshape(len(rules), len(names), len(taken.cases)).swapaxes(1, 2),
        taken.severity,
        identity,
        not manifest.system.deterministic,
    )


def _severities(
    run: Run, rules: Sequence[BoundRule], cases: pl.Series, judging: str
) -> Iterator[tuple[int, PartSeverities]]:
    """What the rules, by number, say of the parts in these cases."""
    kind, options = output_kind(run.manifest.system.kind), run.judging(judging)
    columns = (*KEY, "status", "message", "width", "height", "warp", "regions", *kind.columns)
    taken = of_cases(cases)
    alike: dict[str, dict[str, int]] = {}
    for number, rule in enumerate(rules):
        alike.setdefault(rule.relation.id, {})[rule.transformations[0].id] = number
    for piece in chunks(run.store, taken):
        rows = piece.predictions(columns)
        for numbers in alike.values():
            members = [rules[number] for number in numbers.values()]
            parts = members[0].relation.relation.parts
            assert parts is not None
            seen, _ = evidence(members, rows, pl.DataFrame(), run.manifest, options)
            for some in parts(seen):
                yield from ((numbers[name], one) for name, one in some.by_follow_up().items())


def _fill(by_name: dict[str, Floats], some: PartSeverities, cases: pl.Series) -> None:
    """Put each case's severities in their places: the median over draws, as verdicts have it, the worst target."""
    keys, values = some.keys, some.severity
    if not len(keys):
        return
    if keys.select((pl.col("draw") + pl.col("repeat") > 0).any()).item():
        parts = pl.DataFrame(values, schema=list(some.names)).fill_nan(None)
        middle = keys.select("case", "target").hstack(parts).group_by("case", "target").median()
        keys, values = middle, middle.select(some.names).cast(pl.Float64).fill_null(np.nan).to_numpy()
    place = {case: number for number, case in enumerate(cases)}
    at = np.array([place[case] for case in keys["case"]], np.int64)
    for number, name in enumerate(some.names):
        worst = by_name.setdefault(name, np.full(len(cases), np.nan, np.float32))
        np.fmax.at(worst, at, values[:, number].astype(np.float32))


def straying_parts(matrix: PartMatrix, thresholds: Mapping[str, float]) -> pl.DataFrame:
    """The parts that stray beyond the threshold surely more often than their pairs violate the rule, most first.

    A part strays in a pair where its own severity, in any of the targets, is at least the rule's threshold and above 0.
    `whole` is the share of the same pairs that violate the rule, `unchanged` the share of the same cases in which the
    part, or its twin in a mirror, strays under identity. `p` is McNemar's (exact, one-sided) against the verdicts and,
    where there is an identity, against that straying, whichever is larger; `p_corrected` is p after Holm over all parts
    and rules that were asked about. A part is listed where that is at most 0.05 and the part strays in at least 5 %
    more of the pairs.
    Of a system with noise of its own that was not asked the same twice, nothing is listed: it could be noise.
    """
    if matrix.noisy and matrix.identity is None:
        return pl.DataFrame(schema=SCHEMA)
    limits = np.array([float(thresholds[rule]) for rule in matrix.rules])
    hit = (matrix.severity >= limits[:, None, None]) & (matrix.severity > 0)
    violated = (matrix.whole >= limits[:, None]) & (matrix.whole > 0)
    there = ~np.isnan(matrix.severity) & ~np.isnan(matrix.whole)[..., None]
    rows: list[Row] = []
    for number, rule in enumerate(matrix.rules):
        if number == matrix.identity:
            continue
        own = None if matrix.identity is None else _either(matrix, there[matrix.identity], hit[matrix.identity])
        rows += _asked_of(rule, matrix.names, there[number], hit[number], violated[number], own)
    corrected = holm([row["p"] for row in rows])
    table = pl.DataFrame([{**row, "p_corrected": p} for row, p in zip(rows, corrected, strict=True)], schema=SCHEMA)
    beyond = pl.max_horizontal("whole", pl.col("unchanged").fill_null(0.0)) + LEAST_EXCESS
    sure = table.filter((pl.col("p_corrected") <= SURE) & (pl.col("rate") >= beyond))
    return sure.sort(pl.col("rate") - pl.col("whole"), "rule", "part", descending=[True, False, False])


def _either(matrix: PartMatrix, there: Bools, hit: Bools) -> tuple[Bools, Bools]:
    """Where a part or its twin strays: in a mirror the noise of one is the other's."""
    twins = list(matrix.twins)
    return there, hit | hit[:, twins]


def _asked_of(
    rule: str, names: Sequence[str], there: Bools, hit: Bools, violated: Bools, own: tuple[Bools, Bools] | None
) -> list[Row]:
    """One row per part (cases, names) of a rule for which an answer can be sure."""
    rows: list[Row] = []
    p, different = _more_often(hit, violated[:, None], there)
    unchanged: list[float | None] = [None] * len(names)
    if own is not None:
        both = there & own[0]
        p = np.maximum(p, _more_often(hit, own[1], both)[0])
        shares = (own[1] & both).sum(0) / np.maximum(both.sum(0), 1)
        unchanged = [float(share) for share in shares]
    for number in np.flatnonzero(different >= LEAST_DIFFERENT).tolist():
        count, hits = int(there[:, number].sum()), int((hit & there)[:, number].sum())
        low, high = wilson(hits, count)
        rows.append(
            {
                "rule": rule,
                "part": names[number],
                "judged": count,
                "strayed": hits,
                "rate": hits / count,
                "low": low,
                "high": high,
                "whole": float((violated & there[:, number]).sum() / count),
                "unchanged": unchanged[number],
                "p": float(p[number]),
            }
        )
    return rows


def _more_often(one: Bools, other: Bools, there: Bools) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """p of each column that the one happens more often than the other, and in how many rows only one of them does."""
    only_one, only_other = (one & ~other & there).sum(0), (other & ~one & there).sum(0)
    return binomial_excess(only_one, only_one + only_other, 0.5), only_one + only_other
