"""Two runs on the cases they share, pair by pair: what got worse, what got better, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.run import ANY, Run, searched_limits
from instar.analysis.severities import ABSENT, BETWEEN, NOTHING_FOUND, Bools, Floats, Severities
from instar.engine import DEFAULT
from instar.stats import (
    LEAST_FOR_MEDIAN,
    clustered_difference,
    holm,
    mcnemar,
    median_shift,
    paired_difference,
    swapped_sides,
)
from instar.store import Manifest, Row

LEVEL = 0.05
"""A difference counts as sure where its p, corrected for how many rules were asked about, is at most that."""


def search_words(manifest: Manifest) -> str:
    """Why the rates of a search are not held against anything; empty for any other run."""
    if manifest.search is not None:
        return (
            "a search for combinations: its rules were tried because they break answers, and each on some of the cases"
        )
    if searched_limits(manifest):
        return "a search for limits: its rates are not those of all cases"
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Two runs over the rules and cases that both have, in one order.

    `replaced` counts the cases that have the same id in both runs and not the same input: they are left out.
    `families` are those of the rules that both have.
    """

    first: Severities
    second: Severities
    replaced: int
    families: Mapping[str, Sequence[str]]
    thresholds: Mapping[str, float]
    alphas: Mapping[str, float]

    @property
    def cases(self) -> int:
        return self.first.cases.len()

    @property
    def both(self) -> Bools:
        """Which cells both runs have a severity for."""
        return np.asarray(~np.isnan(self.first.severity) & ~np.isnan(self.second.severity))

    def hits(self) -> tuple[Bools, Bools]:
        """Which cells violate their rule, on each side."""
        limits, alphas = self.thresholds, self.alphas
        return self.first.violated(limits, alphas), self.second.violated(limits, alphas)

    def only(self, rules: Sequence[str]) -> Sides:
        """Only these rules."""
        kept = {name: [one for one in own if one in set(rules)] for name, own in self.families.items()}
        families = {name: own for name, own in kept.items() if own}
        return replace(self, first=self.first.only(rules), second=self.second.only(rules), families=families)


def sides(
    first: Run,
    second: Run,
    *,
    judgings: tuple[str, str] = (DEFAULT, DEFAULT),
    threshold: float | None = None,
    p: float | None = None,
    group: str | None = None,
) -> Sides:
    """The rules that change something and the cases, with the same input, that two runs share.

    Thresholds are those of the first run, so that both are held to the same. Searches are refused.
    """
    for run in (first, second):
        if why := search_words(run.manifest):
            raise ValueError(
                f"{run.folder} is {why}; compare runs of the rules themselves, or what `instar show` prints of each "
                "search"
            )
    inputs = first.cases().select("case", "hash").join(second.cases().select("case", other="hash"), on="case")
    same = inputs.filter(pl.col("hash").eq_missing(pl.col("other")))["case"].to_list()
    other_rules = set(second.changing_rules())
    families = {
        name: kept for name, own in first.families().items() if (kept := [one for one in own if one in other_rules])
    }
    rules = [one for own in families.values() for one in own]
    matrices = [run.severities(judging, group=group) for run, judging in zip((first, second), judgings, strict=True)]
    there = set(matrices[0].cases) & set(matrices[1].cases) & set(same)
    cases = [case for case in matrices[0].cases if case in there]
    a, b = (aligned(matrix, rules, cases) for matrix in matrices)
    if not cases or not rules:
        raise ValueError(_nothing_shared(first, second, rules, len(inputs), len(same)))
    limits, alphas = first.thresholds(threshold), first.alphas(p) or {}
    return Sides(a, b, inputs.height - len(same), families, limits, alphas)


def _nothing_shared(first: Run, second: Run, rules: Sequence[str], ids: int, same: int) -> str:
    names = f"{first.folder} and {second.folder}"
    if not rules:
        suites = [", ".join(run.manifest.suites) for run in (first, second)]
        return f"{names} have no rule in common ({suites[0]} and {suites[1]}): run one suite in both"
    if ids and not same:
        return f"{names} have {ids} cases of the same names, each with another input: run both on one dataset"
    if not ids:
        datasets = [", ".join(one.name for one in run.manifest.datasets) for run in (first, second)]
        return f"{names} have no case in common ({datasets[0]} and {datasets[1]}): run both on one dataset"
    return f"no case that {names} have in common was judged in both"


def aligned(matrix: Severities, rules: Sequence[str], cases: Sequence[str]) -> Severities:
    """Only these rules and cases, in this order; one without any verdict is a row, or a column, without severities."""
    place = {case: number for number, case in enumerate(matrix.cases)}
    row = {rule: number for number, rule in enumerate(matrix.rules)}
    there = np.array([case in place for case in cases], np.bool_)
    take = np.array([place[case] for case in cases if case in place], np.int64)

    def taken(values: npt.NDArray[Any], empty: float) -> npt.NDArray[Any]:
        out = np.full((len(rules), len(cases)), empty, values.dtype)
        for number, rule in enumerate(rules):
            if rule in row:
                out[number, there] = values[row[rule], take]
        return out

    return Severities(
        tuple(rules),
        pl.Series("case", list(cases), pl.String),
        taken(matrix.severity, np.nan),
        taken(matrix.status, 0),
        taken(matrix.kind, 0),
        matrix.kinds,
        None if matrix.p is None else taken(matrix.p, np.nan),
        matrix.looked,
    )


# fmt: off
_COUNTS = (
    "rules", "cases", "first", "second", "both", "first_only", "second_only", "first_unjudged", "second_unjudged",
)
_SCHEMA = {
    "group": pl.String, **dict.fromkeys(_COUNTS, pl.Int64),
    **dict.fromkeys(("difference", "low", "high", "p", "p_corrected"), pl.Float64),
    **dict.fromkeys(("higher", "lower"), pl.Int64),
    **dict.fromkeys(("severity_p", "severity_p_corrected"), pl.Float64),
    **dict.fromkeys(("first_median", "second_median", "shift", "shift_low", "shift_high"), pl.Float64),
}
_SIGNS = {
    "rule": pl.String, **dict.fromkeys(("cases", "higher", "lower"), pl.Int64),
    **dict.fromkeys(("severity_p", "severity_p_corrected"), pl.Float64),
}
# fmt: on


def differences(pair: Sides, groups: Mapping[str, Sequence[str]] | None = None) -> pl.DataFrame:
    """For each rule, or each of these groups of rules: how many cases violate it on each side, and the difference.

    Only pairs that both runs judged count; `first_unjudged` counts the cases that only the second run judged, and the
    reverse. A case violates a group where it violates any of its rules. `difference` is the second rate less the first,
    with its interval (Newcombe); p is McNemar's exact test, and `p_corrected` takes into account how many rows have
    such pairs (Holm). For a single rule, `higher` and `lower` count the cases in which the second severity is the
    higher or the lower one, and `shift` is the difference of the medians with its interval, over resampled cases.
    """
    place = {rule: number for number, rule in enumerate(pair.first.rules)}
    sets = {rule: [rule] for rule in pair.first.rules} if groups is None else groups
    hits, judged = pair.hits(), [np.asarray(~np.isnan(side.severity)) for side in (pair.first, pair.second)]
    both, signs = pair.both, {}
    if groups is None:
        signs = {row.pop("rule"): row for row in severity_signs(pair.first, pair.second).to_dicts()}
    rows: list[Row] = []
    for name, members in sets.items():
        at = [place[rule] for rule in members if rule in place]
        a, b = (np.asarray((hit[at] & both[at]).any(0)) for hit in hits)
        there = np.asarray(both[at].any(0))
        alone = [int((one[at].any(0) & ~there).sum()) for one in (judged[1], judged[0])]
        rows.append(
            {
                "group": name,
                "rules": len(at),
                "first_unjudged": alone[0],
                "second_unjudged": alone[1],
                **paired_counts(a[there], b[there]),
                **(_medians(pair, at[0], there) if groups is None and at else {}),
                **signs.get(name, {}),
            }
        )
    after = corrected([row["p"] for row in rows], [row["cases"] for row in rows])
    return pl.DataFrame([{**row, "p_corrected": p} for row, p in zip(rows, after, strict=True)], schema=_SCHEMA)


def cautious_counts(pair: Sides, rules: Sequence[str]) -> Row:
    """The paired counts of these rules together for a test that the second run is no worse: a pair that the first run
    judged and the second did not counts as violated by the second. Whatever it would have answered, the bound holds;
    and a system does not pass by finding less. What only the second judged counts on neither side.

    `lost` counts these pairs and `losers` the cases that have one.
    """
    place = {rule: number for number, rule in enumerate(pair.first.rules)}
    at = [place[rule] for rule in rules if rule in place]
    first, second = (np.asarray(~np.isnan(side.severity[at])) for side in (pair.first, pair.second))
    lost = first & ~second
    if pair.second.looked:
        lost &= pair.second.status[at] != ABSENT  # what was not asked is not lost
    (a, b), counted = (hit[at] for hit in pair.hits()), (first & second) | lost
    there = np.asarray(counted.any(0))
    counts = paired_counts(*(np.asarray((hit & counted).any(0))[there] for hit in (a, b | lost)))
    return {**counts, "lost": int(lost.sum()), "losers": int(lost.any(0).sum())}


def corrected(p: Sequence[float], cases: Sequence[int]) -> list[float]:
    """p corrected (Holm) for all rules of which a comparison of two runs can say anything: those with cases that both
    judged. The others ask nothing.

    >>> corrected([0.01, 0.04, 1.0], [20, 20, 0])
    [0.02, 0.04, 1.0]
    """
    after = iter(holm([one for one, count in zip(p, cases, strict=True) if count]))
    return [next(after) if count else 1.0 for count in cases]


def severity_signs(first: Severities, second: Severities) -> pl.DataFrame:
    """For each rule of two aligned matrices, in how many cases that both judged the second severity is `higher` or
    `lower`; `severity_p` is that of the exact sign test, also corrected for all such rules (Holm). It knows no
    threshold: it sees what strays less, and violates all the same."""
    rows: list[Row] = []
    for rule, a, b in zip(first.rules, first.severity, second.severity, strict=True):
        there = ~np.isnan(a) & ~np.isnan(b)
        higher, lower = int((b[there] > a[there]).sum()), int((b[there] < a[there]).sum())
        counts: Row = {"rule": rule, "cases": int(there.sum()), "higher": higher, "lower": lower}
        rows.append({**counts, "severity_p": mcnemar(higher, lower)})
    after = corrected([row["severity_p"] for row in rows], [row["cases"] for row in rows])
    table = [{**row, "severity_p_corrected": p} for row, p in zip(rows, after, strict=True)]
    return pl.DataFrame(table, schema=_SIGNS)


def family_differences(pair: Sides) -> pl.DataFrame:
    """The same by family, and last for all rules together."""
    rows = differences(pair, pair.families)
    return pl.concat([rows, differences(pair, {ANY: pair.first.rules})])


def rule_counts(
    first: Severities, second: Severities, limits: Mapping[str, float], alphas: Mapping[str, float] | None = None
) -> Iterator[Row]:
    """The same for each rule of two aligned matrices, without severities and with p as it is.

    `first_empty` and `second_empty` count the pairs of each side in which nothing was found in either input.
    """
    hits = [side.violated(limits, alphas) for side in (first, second)]
    both = ~np.isnan(first.severity) & ~np.isnan(second.severity)
    for number, rule in enumerate(first.rules):
        there = both[number]
        yield {
            "rule": rule,
            **paired_counts(hits[0][number][there], hits[1][number][there]),
            "first_empty": int((first.status[number] == NOTHING_FOUND).sum()),
            "second_empty": int((second.status[number] == NOTHING_FOUND).sum()),
        }


def paired_counts(first: Bools, second: Bools) -> Row:
    """How many of the same cases are violated on each side, and how sure the difference is: Newcombe's interval, and
    McNemar's exact test."""
    count, shared = len(first), int((first & second).sum())
    first_only, second_only = int((first & ~second).sum()), int((second & ~first).sum())
    neither = count - shared - first_only - second_only
    low, high = paired_difference(shared, first_only, second_only, neither) if count else (None, None)
    return {
        "cases": count,
        "first": shared + first_only,
        "second": shared + second_only,
        "both": shared,
        "first_only": first_only,
        "second_only": second_only,
        "difference": (second_only - first_only) / count if count else None,
        "low": low,
        "high": high,
        "p": mcnemar(first_only, second_only),
    }


def _medians(pair: Sides, row: int, there: Bools) -> Row:
    a, b = pair.first.severity[row][there], pair.second.severity[row][there]
    if not len(a):
        return {}
    shift, low, high = median_shift(a, b)
    few = len(a) < LEAST_FOR_MEDIAN
    return {
        "first_median": float(np.median(a)),
        "second_median": float(np.median(b)),
        "shift": shift,
        "shift_low": None if few else low,
        "shift_high": None if few else high,
    }


def target_differences(
    first: Run, second: Run, pair: Sides, *, judgings: tuple[str, str] = (DEFAULT, DEFAULT), group: str | None = None
) -> pl.DataFrame:
    """For each rule the shares of targets that violate it, and their difference.

    Targets of one case are not independent, and two systems need not find the same ones: the interval takes cases as
    clusters (`clustered_difference`), and for p the two sides of cases are exchanged at random.
    """
    counts = [
        _per_case(run.severities(judging, by="target", group=group), pair)
        for run, judging in zip((first, second), judgings, strict=True)
    ]
    rows: list[Row] = []
    for number, rule in enumerate(pair.first.rules):
        (hits_a, tried_a), (hits_b, tried_b) = ((hit[number], tried[number]) for hit, tried in counts)
        there = (tried_a > 0) & (tried_b > 0)
        columns = np.stack([hits_a, tried_a, hits_b, tried_b], 1)[there]
        difference, low, high = map(float, clustered_difference(columns)) if there.any() else (None, None, None)
        rows.append(
            {
                "rule": rule,
                "cases": int(there.sum()),
                "first": int(columns[:, 0].sum()),
                "first_targets": int(columns[:, 1].sum()),
                "second": int(columns[:, 2].sum()),
                "second_targets": int(columns[:, 3].sum()),
                "difference": difference,
                "low": low,
                "high": high,
                "p": swapped_sides(columns) if there.any() else 1.0,
            }
        )
    after = corrected([row["p"] for row in rows], [row["cases"] for row in rows])
    return pl.DataFrame([{**row, "p_corrected": p} for row, p in zip(rows, after, strict=True)])


def _per_case(matrix: Severities, pair: Sides) -> tuple[Floats, Floats]:
    """How many targets of each case violate each rule, and how many were judged (rules, cases)."""
    place = {case: number for number, case in enumerate(pair.first.cases)}
    chosen = matrix.only(pair.first.rules)
    owners = [None if column is None else place.get(str(column).partition(BETWEEN)[0]) for column in chosen.cases]
    kept = np.array([number for number, owner in enumerate(owners) if owner is not None], np.int64)
    cases = np.array([owner for owner in owners if owner is not None], np.int64)
    hits, tried = (np.zeros((len(pair.first.rules), pair.cases)) for _ in range(2))
    rows = [pair.first.rules.index(rule) for rule in chosen.rules]
    violated = chosen.violated(pair.thresholds, pair.alphas)
    for number, row in enumerate(rows):
        np.add.at(hits[row], cases, violated[number, kept])
        np.add.at(tried[row], cases, ~np.isnan(chosen.severity[number, kept]))
    return hits, tried


def flips(pair: Sides) -> pl.DataFrame:
    """The pairs that violate their rule on one side alone, with both severities: those that got worse first, and of
    each direction the largest difference, in units of the threshold, first."""
    (a, b), both = pair.hits(), pair.both
    row, column = np.nonzero((a != b) & both)
    first, second = pair.first.severity[row, column], pair.second.severity[row, column]
    limits = np.array([pair.thresholds[rule] or 1.0 for rule in pair.first.rules])
    with np.errstate(invalid="ignore"):
        apart = np.abs(second - first) / limits[row]
    table = pl.DataFrame(
        {
            "case": pair.first.cases.gather(column),
            "rule": pl.Series([pair.first.rules[one] for one in row], dtype=pl.String),
            "worse": b[row, column],
            "first": first,
            "second": second,
            "apart": apart,
        }
    )
    return table.sort("worse", "apart", "case", "rule", descending=[True, True, False, False]).drop("apart")
