"""Two runs on the same cases, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from instar.analysis import Severities
from instar.analysis.rates import rated
from instar.analysis.severities import NOTHING_FOUND
from instar.engine import DEFAULT
from instar.stats import holm, mcnemar, paired_difference
from instar.store import Row
from instar.viewer.index import Index
from instar.viewer.pages import Viewer, known_rule
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
    here = {
        "filters": filters,
        "canonical": address("/compare", shared),
        "a": a.name,
        "b": b.name,
        "common": first.cases.len(),
        "changed": changed,
        "rules": [(rule, known_rule(indexes[0], rule).name) for rule in first.rules],
        "waiting": False,
        "indexes": indexes,
    }
    if filters.rule:
        first, second = first.only([filters.rule]), second.only([filters.rule])
    limits = indexes[0].thresholds(filters.threshold)
    both = ~np.isnan(first.severity) & ~np.isnan(second.severity)
    return {
        **here,
        "rows": _rows(indexes[0], shared, first, second, limits),
        "judged": bool(both.any()),
        "pairs": _pairs(viewer, [a, b], judgings, filters, indexes[0], first, second),
        "everything": address("/compare", {name: value for name, value in shared.items() if name != "rule"}),
        "swapped": address("/compare", {**shared, "a": b.name, "b": a.name}),
    }


def _first_two(viewer: Viewer) -> tuple[Watched, Watched]:
    return viewer.runs[0], viewer.runs[min(1, len(viewer.runs) - 1)]


def _rows(
    index: Index, shared: Mapping[str, str], first: Severities, second: Severities, limits: Mapping[str, float]
) -> list[Row]:
    """Rule by rule, on the cases judged in both: rates, who alone violates, and how sure the difference is."""
    hits = [side.violated(limits) for side in (first, second)]
    both = ~np.isnan(first.severity) & ~np.isnan(second.severity)
    rows: list[Row] = []
    for number, rule in enumerate(first.rules):
        there = both[number]
        count, (a, b) = int(there.sum()), (hit[number] & there for hit in hits)
        only_a, only_b, shared_by = int((a & ~b).sum()), int((b & ~a).sum()), int((a & b).sum())
        neither = count - only_a - only_b - shared_by
        rows.append(
            {
                "rule": rule,
                "name": known_rule(index, rule).name,
                "words": known_rule(index, rule).words,
                "judged": count,
                "a": rated(int(a.sum()), count, empty=int((first.status[number] == NOTHING_FOUND).sum())),
                "b": rated(int(b.sum()), count, empty=int((second.status[number] == NOTHING_FOUND).sum())),
                "only_a": only_a,
                "only_b": only_b,
                "both": shared_by,
                "difference": (only_b - only_a) / count if count else None,
                "interval": paired_difference(shared_by, only_a, only_b, neither) if count else None,
                "p": mcnemar(only_a, only_b),
                "address": address("/compare", {**shared, "rule": rule}),
            }
        )
    corrected = holm([row["p"] for row in rows])
    rows = [{**row, "p_corrected": p} for row, p in zip(rows, corrected, strict=True)]
    return sorted(rows, key=lambda row: (row["p"], -abs(row["difference"] or 0.0)))


def _same(first: Index, second: Index) -> tuple[Severities, Severities, int]:
    """Both matrices over the rules and cases they share, and how many cases have the same id but not the same input."""
    facts = first.facts.select("case", "hash").join(second.facts.select("case", other="hash"), on="case")
    same = facts.filter(pl.col("hash").eq_missing(pl.col("other")))["case"]
    shared = set(second.rule_ids("case"))
    rules = [name for name in first.rule_ids("case") if name in shared]
    matrices = [index.matrix().only(rules) for index in (first, second)]
    a, b = (matrix.at(matrix.cases.is_in(same.implode())) for matrix in matrices)
    return a, b, facts.height - len(same)


def _pairs(
    viewer: Viewer,
    runs: Sequence[Watched],
    judgings: Sequence[str],
    filters: Filters,
    index: Index,
    first: Severities,
    second: Severities,
) -> list[Row]:
    """The pairs with the largest difference in units of their rule's threshold, each rule and case in turn."""
    if not first.severity.size:
        return []
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
        for run, judging, side in zip(runs, judgings, (first, second), strict=True):
            severity = float(side.severity[row[place], column[place]])
            query = {"run": run.name, "judging": "" if judging == DEFAULT else judging, "case": case}
            drawn = {**query, "rule": rule.id, "side": "follow-up", "w": 480}
            opened = {**query, **filters.query("threshold"), "shown": rule.id}
            sides.append(
                {
                    "severity": severity,
                    "violated": severity >= limits[rule.id] and severity > 0,
                    "picture": address("/picture", drawn),
                    "open": address("/case", opened),
                }
            )
        pairs.append({"case": case, "rule": rule.id, "name": rule.name, "unit": rule.unit, "sides": sides})
    for run in runs:
        viewer.pictures.expect(run.store, [each["case"] for each in pairs])
    return pairs
