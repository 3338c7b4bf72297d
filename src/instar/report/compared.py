"""Several runs beside each other, on the cases that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import isfinite

import polars as pl

from instar.analysis import Answers, Run, Severities, curve, judged_pairs, remembered, repeated, unusable_truth
from instar.analysis.answers import found_in_sources
from instar.analysis.comparison import LEVEL, aligned, corrected, rule_counts, severity_signs
from instar.engine import DEFAULT
from instar.engine.extent import Extent
from instar.report.finding import Finding
from instar.report.noise import memory_finding, repeated_finding
from instar.report.section import Section, rates_per_threshold, start_of
from instar.report.sentences import answers_findings, truth_findings, unjudged_findings
from instar.report.words import count_of, distinct_names, listed, of_total, p_words, severity_text
from instar.stats import mcnemar
from instar.store import Row, Schema


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One relation of several runs. `differences` has one frame per threshold: the first run against each other one.

    `section` has the grid and the start that all of it is about; `notes` say of each run, by name, what its rates do
    not: that it found nothing in most images, that little of it was judged, or that all its answers are the same.
    """

    section: Section
    cases: int
    rules: int
    curves: pl.DataFrame
    rates: pl.DataFrame
    differences: Sequence[pl.DataFrame]
    notes: Mapping[str, Sequence[Finding]]


def run_names(runs: Sequence[Run]) -> list[str]:
    """What tells runs apart: their own names or their systems', with their folders' where those are the same."""
    return distinct_names([run.manifest.called for run in runs], [run.folder.resolve().name for run in runs])


FEW = 10
"""Cases in common below which a comparison says so little that this is said with it."""


def common_words(cases: int) -> str:
    """On how many cases a comparison of runs rests.

    >>> common_words(1200), common_words(1)
    ('the 1,200 cases that all runs have', 'the only case that all runs have: too few to tell systems apart')
    """
    shared = f"the {'only case' if cases == 1 else count_of(cases, 'case')} that all runs have"
    return shared if cases >= FEW else f"{shared}: too few to tell systems apart"


def common_cases(runs: Sequence[Run], judging: str = DEFAULT) -> list[str]:
    """The cases that every run has verdicts about, in the order of the first run."""
    cases = [run.severities(judging).cases.drop_nulls().to_list() for run in runs]
    shared = set.intersection(*map(set, cases))
    return [case for case in cases[0] if case in shared]


def compare(runs: Sequence[Run], sections: Sequence[Sequence[Section]], *, judging: str = DEFAULT) -> list[Comparison]:
    """The relations that all runs have, on the cases and rules that all have."""
    if any(run.searched for run in runs):
        return []  # of searches for limits, whose rates are not those of all cases
    names, cases = run_names(runs), common_cases(runs, judging)
    by_name = [{section.relation: section for section in of_run} for of_run in sections]
    shared = [name for name in by_name[0] if all(name in other for other in by_name)]
    relations = [_one(runs, names, [of_run[name] for of_run in by_name], cases, judging) for name in shared]
    starts = [one.differences[one.section.start] for one in relations]
    return [
        replace(
            one, differences=[_corrected(table, [*starts[:place], *starts[place + 1 :]]) for table in one.differences]
        )
        for place, one in enumerate(relations)
    ]


def _corrected(table: pl.DataFrame, others: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """With p corrected (Holm) for all that is asked of the same two runs: in this table, and under the other relations,
    whose thresholds are where the page starts. So a rule is as sure here as where two runs alone are compared, and
    nobody asks by relation."""
    every = pl.concat([one.select("run", "p", "cases") for one in (table, *others)])
    of_run = {name: every.filter(run=name) for name in table["run"].unique()}
    after = {name: iter(corrected(rows["p"].to_list(), rows["cases"].to_list())) for name, rows in of_run.items()}
    return table.with_columns(p_corrected=pl.Series([next(after[name]) for name in table["run"]], dtype=pl.Float64))


def _one(
    runs: Sequence[Run], names: Sequence[str], sections: Sequence[Section], cases: Sequence[str], judging: str
) -> Comparison:
    first = sections[0]
    grid = tuple(reduce(lambda a, b: [value for value in a if value in b.grid], sections[1:], list(first.grid)))
    owned = [[one for rules in section.families.values() for one in rules] for section in sections]
    rules = [one for one in owned[0] if all(one in others for others in owned)]
    severities = [aligned(run.severities(judging), rules, cases) for run in runs]
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
        {name: run_notes(run.answers(judging), one) for name, run, one in zip(names, runs, severities, strict=True)},
    )


def severities_findings(signs: pl.DataFrame, names: tuple[str, str], spelled: Mapping[str, str]) -> list[Finding]:
    """Return under which rules the severities of the second run are surely higher or lower than those of the first.

    It holds whatever the threshold; empty if no rule is sure. `signs` are `severity_signs`, and may include medians.
    """
    first, second = names
    judged = signs.filter(pl.col("cases") > 0).sort("severity_p", "rule")
    sure = judged.filter(pl.col("severity_p_corrected") <= LEVEL)
    ways = [
        (word, part) for word, own in _WAYS.items() if (part := sure.filter(pl.col(own[0]) > pl.col(own[1]))).height
    ]
    if not ways:
        return []
    parts = [
        f"{word}{'' if number else f' than those of {first}'} under {of_total(part.height, judged.height, 'rule')}, "
        f"most surely under {_signs_words(part.row(0, named=True), word, spelled)}"
        for number, (word, part) in enumerate(ways)
    ]
    words = (
        f"Whatever the threshold, severities of {second} are surely {'; and '.join(parts)} (sign test, corrected for "
        f"{count_of(judged.height, 'rule')})."
    )
    figures = {"rules": judged.height, **{word: part["rule"].to_list() for word, part in ways}}
    return [Finding("compare.severities", words, figures=figures)]


_WAYS = {"higher": ("higher", "lower"), "lower": ("lower", "higher")}


def _signs_words(row: Row, word: str, spelled: Mapping[str, str]) -> str:
    other = _WAYS[word][1]
    shift = ""
    if row.get("shift") is not None and isfinite(row["shift"]):
        shift = f", the median from {severity_text(row['first_median'])} to {severity_text(row['second_median'])}"
    return (
        f"{spelled.get(row['rule'], row['rule'])}: {word} in {row[word]:,} and {other} in {row[other]:,} of "
        f"{count_of(row['cases'], 'case')}{shift}, {p_words(row['severity_p_corrected'])}"
    )


def against_first(runs: Sequence[Run], judging: str = DEFAULT) -> list[Finding]:
    """Of each of several runs whether its severities are surely higher or lower than those of the first, on the rules
    and cases that all have, and which of the two surely finds less."""
    if any(run.searched for run in runs):
        return []
    names, cases = run_names(runs), common_cases(runs, judging)
    rules = [rule for rule in runs[0].changing_rules() if all(rule in run.changing_rules() for run in runs)]
    first, *others = (aligned(run.severities(judging), rules, cases) for run in runs)
    spelled = dict(runs[0].rules().select("rule", "name").iter_rows())
    findings = []
    for name, run, other in zip(names[1:], runs[1:], others, strict=True):
        pair = names[0], name
        findings += severities_findings(severity_signs(first, other), pair, spelled)
        findings += found_findings(runs[0], run, pair, (judging, judging))
    return findings


def own_notes(run: Run, judging: str, severities: Severities) -> list[Finding]:
    """What else to know of a run whose rates stand beside those of another one: what is missing of it, what its answers
    leave to be judged, and that it remembers."""
    extent = Extent.of(run.store)
    notes = run_notes(run.answers(judging), severities)
    if extent.missing and run.manifest.until is None:
        words = f"It is unfinished: {of_total(extent.done, extent.planned, 'prediction')} are there."
        figures = {"done": extent.done, "planned": extent.planned}
        notes.insert(0, Finding("run.unfinished", words, figures=figures))
    if extent.absent:
        words = f"It was merged without {count_of(len(extent.absent), 'shard')}."
        notes.insert(0, Finding("run.shards_missing", words, figures={"missing": len(extent.absent)}))
    notes += truth_findings(unusable_truth(run, judging))
    if memory := remembered(run, judging):
        notes.append(memory_finding(memory))
    if (again := repeated(run)) and again.differing:
        notes.append(repeated_finding(again))
    return notes


def unshared_findings(first: Run, second: Run, names: tuple[str, str]) -> list[Finding]:
    """Return which rules and cases only one of two runs has: no difference counts them."""
    rules = [set(run.changing_rules()) for run in (first, second)]
    cases = [set(run.cases()["case"]) for run in (first, second)]
    findings = []
    for name, own, other in ((names[0], 0, 1), (names[1], 1, 0)):
        more = {"rule": len(rules[own] - rules[other]), "case": len(cases[own] - cases[other])}
        if any(more.values()):
            parts = [count_of(count, what) for what, count in more.items() if count]
            words = f"Only {name} has {listed(parts)}, which no difference counts."
            figures = {"run": name, "rules": more["rule"], "cases": more["case"]}
            findings.append(Finding("compare.unshared", words, figures=figures))
    return findings


def found_findings(first: Run, second: Run, names: tuple[str, str], judgings: tuple[str, str]) -> list[Finding]:
    """Return which of two runs surely finds less in the unchanged inputs that both answered, if one does.

    What is not found breaks no rule. The figure `fewer_in` names the run.
    """
    counts = found_in_both(first, second, judgings)
    if counts is None or counts["first"].sum() == counts["second"].sum():
        return []
    first_only = counts.filter(pl.col("first") > pl.col("second")).height
    second_only = counts.filter(pl.col("second") > pl.col("first")).height
    one, other = int(counts["first"].sum()), int(counts["second"].sum())
    if mcnemar(first_only, second_only) > LEVEL:
        return []
    (fewer, less), (most, more) = sorted(zip((one, other), names, strict=True))
    words = (
        f"{less} finds {fewer:,} in the unchanged inputs of {count_of(counts.height, 'case')}, {more} finds {most:,}: "
        "what is not found breaks no rule, and fewer violations alone say little."
    )
    figures = {"fewer_in": less, "found": {names[0]: one, names[1]: other}, "cases": counts.height}
    return [Finding("compare.finds_less", words, figures=figures)]


def found_in_both(first: Run, second: Run, judgings: tuple[str, str]) -> pl.DataFrame | None:
    """How many each of two runs finds in each unchanged input that both answered; None of a kind without any."""
    counts = [found_in_sources(run, judging) for run, judging in zip((first, second), judgings, strict=True)]
    if counts[0] is None or counts[1] is None:
        return None
    same = (
        first.cases()
        .select("case", "hash")
        .join(second.cases().select("case", "hash"), on=["case", "hash"], nulls_equal=True)
    )
    both = counts[0].rename({"found": "first"}).join(counts[1].rename({"found": "second"}), on="case")
    return both.filter(pl.col("case").is_in(same["case"].implode()))


def run_notes(answers: Answers, severities: Severities) -> list[Finding]:
    """What must stand beside the rates of a run, so that one that found little does not look best."""
    judged = judged_pairs(severities, severities.rules)
    return [*unjudged_findings(judged, answers), *answers_findings(answers, judged)]


def judged_words(one: Comparison) -> str:
    """On how many cases the curve of each run rests, where that is not all that the runs have in common."""
    judged = [(name, count) for name, count, t in one.curves.select("run", "judged", "t").iter_rows() if t == 0]
    if all(count == one.cases for _, count in judged):
        return ""
    cases = [f"{count_of(count, 'case')} of {name}" for name, count in judged]
    return f" Only cases that were judged count: {listed(cases, len(cases))}."


# fmt: off
_SCHEMA: Schema = {
    "rule": pl.String, "run": pl.String, "cases": pl.Int64, "first": pl.Int64, "other": pl.Int64,
    "first_only": pl.Int64, "other_only": pl.Int64, "first_empty": pl.Int64, "other_empty": pl.Int64,
    "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64,
}
# fmt: on


def _differences(
    runs: Sequence[Severities], names: Sequence[str], spelled: Mapping[str, str], threshold: float
) -> pl.DataFrame:
    """Rule by rule, the first run against the others, on the cases judged in both.

    `first_empty` and `other_empty` count the pairs of each run in which nothing was found in either input.

    p is that of McNemar's paired test on violated or not, exact and two-sided.
    """
    limits = {one: threshold for each in runs for one in each.rules}
    rows: list[Row] = [
        {
            **row,
            "rule": spelled[row["rule"]],
            "run": name,
            **{f"other{part}": row[f"second{part}"] for part in ("", "_only", "_empty")},
        }
        for of_rule in zip(*(rule_counts(runs[0], other, limits) for other in runs[1:]), strict=True)
        for name, row in zip(names[1:], of_rule, strict=True)
    ]
    return pl.DataFrame(rows, schema=dict(_SCHEMA)).sort(
        pl.col("p"), pl.col("difference").abs(), descending=[False, True], nulls_last=True, maintain_order=True
    )
