"""Two runs on the same cases, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from instar.analysis import Severities
from instar.analysis.comparison import corrected, rule_counts, search_words, severity_signs
from instar.analysis.rates import rated
from instar.engine import DEFAULT
from instar.relations import MarkedPair
from instar.report.compared import FEW, found_findings, own_notes, severities_findings, unshared_findings
from instar.report.marks import marked_pairs
from instar.report.verdict import rules_finding
from instar.store import Row
from instar.viewer.index import Index
from instar.viewer.pages import Viewer, known_rule, verdict_of
from instar.viewer.query import Filters, address
from instar.viewer.turns import in_turn
from instar.viewer.watch import Watched

PAGE = 24


def comparison(viewer: Viewer, query: Mapping[str, str]) -> dict[str, object]:
    """Per rule both rates, their difference and who alone violates; and the pairs on which the two differ most."""
    filters = Filters.read(query)
    a, b = (viewer.run(query.get(name) or other.name) for name, other in zip("ab", _first_two(viewer), strict=True))
    shared = {"a": a.name, "b": b.name, **filters.query("judging", "threshold", "rule")}
    judgings = [filters.judging if filters.judging in run.store.judgings() else DEFAULT for run in (a, b)]
    indexes = [run.index(judging) for run, judging in zip((a, b), judgings, strict=True)]
    first, second, changed = _same(*indexes)
    names = viewer.names()
    here = {
        "filters": filters,
        "canonical": address("/compare", shared),
        "a": a.name,
        "b": b.name,
        "common": first.cases.len(),
        "few": FEW,
        "changed": changed,
        "notes": {
            name: " ".join(one.words for one in own_notes(index.run, index.judging, side))
            for name, index, side in zip((a.name, b.name), indexes, (first, second), strict=True)
        },
        "rules": [(rule, known_rule(indexes[0], rule).name) for rule in first.rules],
        "searches": [
            f"{names[name]} is {words}."
            for name, index in dict(zip((a.name, b.name), indexes, strict=True)).items()
            if (words := search_words(index.manifest))
        ],
        "waiting": False,
        "indexes": indexes,
    }
    if filters.rule:
        first, second = first.only([filters.rule]), second.only([filters.rule])
    limits = indexes[0].thresholds(filters.threshold)
    both = ~np.isnan(first.severity) & ~np.isnan(second.severity)
    pairs = _pairs(viewer, [a, b], indexes, filters, first, second)
    rows, called = _rows(indexes[0], shared, first, second, limits), (names[a.name], names[b.name])
    spelled = {rule: known_rule(indexes[0], rule).name for rule in first.rules}
    idle = any(answers.silent or answers.alike for answers in (one.run.answers(one.judging) for one in indexes))
    opened = indexes[0].run, indexes[1].run
    less = found_findings(*opened, called, (indexes[0].judging, indexes[1].judging))
    no_merit = called if idle else [one.figures["fewer_in"] for one in less]
    shown = [
        *([rules_finding(pl.from_dicts(rows, _FOR_WORDS), called, no_merit)] if rows else []),
        *([] if idle else severities_findings(severity_signs(first, second), called, spelled)),
        *less,
        *unshared_findings(*opened, called),
    ]
    return {
        **here,
        "rows": rows,
        "sentences": [] if here["searches"] else [one.words for one in shown],
        "judged": bool(both.any()),
        "pairs": pairs,
        "marks": _marks(indexes[0], pairs),
        "everything": address("/compare", {name: value for name, value in shared.items() if name != "rule"}),
        "swapped": address("/compare", {**shared, "a": b.name, "b": a.name}),
    }


def _marks(index: Index, pairs: Sequence[Row]) -> dict[str, str]:
    """What the marks on the words of the answers mean, as far as the page shows them: of answers to follow-ups."""
    answers = [side["marked"].follow_up for pair in pairs for side in pair["sides"] if side["marked"]]
    shown = {segment.role for answer in answers for segment in answer}
    return {role: meaning for role, meaning in index.roles().items() if role in shown}


def _first_two(viewer: Viewer) -> tuple[Watched, Watched]:
    return viewer.runs[0], viewer.runs[min(1, len(viewer.runs) - 1)]


def _rows(
    index: Index, shared: Mapping[str, str], first: Severities, second: Severities, limits: Mapping[str, float]
) -> list[Row]:
    """Rule by rule, on the cases judged in both: rates, who alone violates, and how sure the difference is."""
    rows: list[Row] = []
    for row in rule_counts(first, second, limits):
        rule, count = row["rule"], row["cases"]
        rows.append(
            {
                **row,
                "name": known_rule(index, rule).name,
                "words": known_rule(index, rule).words,
                "judged": count,
                "a": rated(row["first"], count, empty=row["first_empty"]),
                "b": rated(row["second"], count, empty=row["second_empty"]),
                "interval": (row["low"], row["high"]) if count else None,
                "address": address("/compare", {**shared, "rule": rule}),
            }
        )
    after = corrected([row["p"] for row in rows], [row["judged"] for row in rows])
    rows = [{**row, "p_corrected": p} for row, p in zip(rows, after, strict=True)]
    return sorted(rows, key=lambda row: (row["p"], -abs(row["difference"] or 0.0)))


_FOR_WORDS = {
    **dict.fromkeys(("rule", "name"), pl.String),
    **dict.fromkeys(("cases", "first", "second", "first_only", "second_only"), pl.Int64),
    **dict.fromkeys(("difference", "low", "high", "p_corrected"), pl.Float64),
}
"""What the sentences about rows take of them."""


def _same(first: Index, second: Index) -> tuple[Severities, Severities, int]:
    """Both matrices over the rules and cases they share, and how many cases have the same id but not the same input."""
    facts = first.facts.select("case", "hash").join(second.facts.select("case", other="hash"), on="case")
    same = facts.filter(pl.col("hash").eq_missing(pl.col("other")))["case"]
    shared = {rule.id for rule in second.rules if rule.changing}
    rules = [rule.id for rule in first.rules if rule.changing and rule.id in shared]
    matrices = [index.matrix().only(rules) for index in (first, second)]
    a, b = (matrix.at(matrix.cases.is_in(same.implode())) for matrix in matrices)
    return a, b, facts.height - len(same)


def _pairs(
    viewer: Viewer,
    runs: Sequence[Watched],
    indexes: Sequence[Index],
    filters: Filters,
    first: Severities,
    second: Severities,
) -> list[Row]:
    """The pairs with the largest difference in units of their rule's threshold, each rule and case in turn."""
    if not first.severity.size:
        return []
    index = indexes[0]
    facts = [known_rule(index, rule) for rule in first.rules]
    own = np.array([rule.threshold or 1.0 for rule in facts]).reshape(-1, 1)
    a, b = first.severity / own, second.severity / own
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isnan(a) | np.isnan(b) | (a == b), 0.0, np.abs(a - b)).ravel()
    order = np.argsort(-apart, kind="stable")
    row, column = (each.astype(np.int32) for each in np.unravel_index(np.arange(apart.size), a.shape))
    taken = in_turn(order[apart[order] > 0], column, row, apart, [rule.family for rule in facts])[:PAGE]
    limits = index.thresholds(filters.threshold)
    pairs: list[Row] = []
    for place in taken.tolist():
        rule, case = facts[row[place]], str(first.cases[int(column[place])])
        sides = []
        for run, judging, side in zip(runs, [each.judging for each in indexes], (first, second), strict=True):
            severity = float(side.severity[row[place], column[place]])
            query = {"run": run.name, "judging": "" if judging == DEFAULT else judging, "case": case}
            drawn = {**query, "rule": rule.id, "side": "follow-up", "w": 480}
            opened = {**query, **filters.query("threshold"), "shown": rule.id}
            sides.append(
                {
                    "severity": severity,
                    "limit": limits[rule.id],
                    "violated": severity >= limits[rule.id] and severity > 0,
                    "picture": address("/picture", drawn),
                    "open": address("/case", opened),
                }
            )
        words = {"rule": rule.id, "name": rule.name, "words": rule.words, "unit": rule.unit}
        pairs.append({"case": case, **words, "sides": sides})
    for number, run in enumerate(runs):
        viewer.pictures.expect(run.store, [each["case"] for each in pairs])
        for each, marked in zip(pairs, _marked(run, indexes[number], pairs), strict=True):
            each["sides"][number]["marked"] = marked
    return pairs


def _marked(run: Watched, index: Index, pairs: Sequence[Row]) -> list[MarkedPair | None]:
    """What a system answered to each of the pairs, where it answers in words."""
    verdicts = []
    for pair in pairs:
        number = index.case_number(pair["case"])
        assert number is not None  # the pairs are of cases that both runs have
        verdicts.append(verdict_of(index, "", number, known_rule(index, pair["rule"])) or pair)
    return marked_pairs(run.store, verdicts, index.judging)
