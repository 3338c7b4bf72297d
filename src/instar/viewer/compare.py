"""Two runs on the same cases, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from instar.analysis import Severities
from instar.analysis.rates import rated
from instar.engine import DEFAULT
from instar.store import Row
from instar.viewer.index import Index
from instar.viewer.pages import Viewer, grid_of, known_rule
from instar.viewer.query import Filters, address, whole

PAGE = 24


def comparison(viewer: Viewer, query: Mapping[str, str]) -> dict[str, object]:
    """Per rule both rates and who alone violates; and the pairs on which the two differ most."""
    filters = Filters.read(query)
    numbers = [whole(query.get(name), other) for name, other in (("a", 0), ("b", min(1, len(viewer.runs) - 1)))]
    shared = {"a": numbers[0], "b": numbers[1], **filters.query("judging", "threshold", "rule")}
    shared.pop("run", None)
    indexes = [
        viewer.run(number).index(filters.judging if filters.judging in viewer.run(number).store.judgings() else DEFAULT)
        for number in numbers
    ]
    first, second, changed = _same(*indexes)
    here = {
        "filters": filters,
        "canonical": address("/compare", shared),
        "a": numbers[0],
        "b": numbers[1],
        "common": first.cases.len(),
        "changed": changed,
        "rules": first.rules,
        "waiting": False,
        "choices": len(viewer.runs),
        "grid": grid_of(*indexes),
    }
    if filters.rule:
        first, second = first.only([filters.rule]), second.only([filters.rule])
    limits = indexes[0].thresholds(filters.threshold)
    names = {rule.id: rule for rule in indexes[0].rules}
    hits = [side.violated(limits) for side in (first, second)]
    both = ~np.isnan(first.severity) & ~np.isnan(second.severity)
    rows: list[Row] = []
    for number, rule in enumerate(first.rules):
        there = both[number]
        count, (a, b) = int(there.sum()), (hit[number] & there for hit in hits)
        rows.append(
            {
                "rule": rule,
                "name": names[rule].name,
                "judged": count,
                "a": rated(int(a.sum()), count),
                "b": rated(int(b.sum()), count),
                "only_a": int((a & ~b).sum()),
                "only_b": int((b & ~a).sum()),
                "both": int((a & b).sum()),
                "difference": (int(b.sum()) - int(a.sum())) / count if count else None,
                "address": address("/compare", {**shared, "rule": rule}),
                "pages": [address("/rule", {"run": n, "rule": rule}) for n in numbers],
            }
        )
    rows.sort(key=lambda row: (-abs(row["difference"] or 0.0), -row["only_a"] - row["only_b"]))
    return {
        **here,
        "rows": rows,
        "pairs": _pairs(viewer, filters, numbers, indexes, first, second, limits),
        "everything": address("/compare", {name: value for name, value in shared.items() if name != "rule"}),
        "swapped": address("/compare", {**shared, "a": numbers[1], "b": numbers[0]}),
    }


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
    filters: Filters,
    numbers: list[int],
    indexes: list[Index],
    first: Severities,
    second: Severities,
    limits: Mapping[str, float],
) -> list[Row]:
    """The pairs with the largest difference, in units of their rule's threshold."""
    if not first.severity.size:
        return []
    own = np.array([indexes[0].thresholds()[rule] or 1.0 for rule in first.rules]).reshape(-1, 1)
    a, b = first.severity / own, second.severity / own
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isnan(a) | np.isnan(b) | (a == b), 0.0, np.abs(a - b))
    flat = np.argsort(-apart.ravel(), kind="stable")[:PAGE]
    pairs: list[Row] = []
    for place in flat[apart.ravel()[flat] > 0]:
        row, column = divmod(int(place), apart.shape[1])
        rule, case = first.rules[row], str(first.cases[column])
        sides = []
        judging = "" if filters.judging == DEFAULT else filters.judging
        for number, severities in zip(numbers, (first, second), strict=True):
            drawn = {"run": number, "judging": judging, "case": case, "rule": rule, "side": "follow-up", "w": 480}
            severity = float(severities.severity[row, column])
            sides.append(
                {
                    "severity": severity,
                    "violated": severity >= limits[rule] and severity > 0,
                    "picture": address("/picture", drawn),
                    "open": address("/case", {"run": number, "case": case, "shown": rule}),
                }
            )
        facts = known_rule(indexes[0], rule)
        pairs.append({"case": case, "rule": rule, "name": facts.name, "unit": facts.unit, "sides": sides})
    for number in numbers:
        viewer.pictures.expect(viewer.run(number).store, [each["case"] for each in pairs])
    return pairs
