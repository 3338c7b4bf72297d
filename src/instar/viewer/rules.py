"""What the page of one rule shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from instar.analysis import curve, rates, slices
from instar.analysis.slices import ABOVE, FROM, IS
from instar.relations import levels_of, named_rule
from instar.report.words import unit_name
from instar.store import Row
from instar.viewer import charts
from instar.viewer.index import OK, Index, RuleFacts
from instar.viewer.marks import precision_rows, precision_sentence
from instar.viewer.pages import SHARED, Viewer, known_rule, worded
from instar.viewer.query import STATES, Filters, address

EXAMPLES = 9
MOST_SLICES = 8


def rule(viewer: Viewer, filters: Filters) -> dict[str, object]:
    """One rule: its rates over the grid, how severities are spread, examples along them, and slices."""
    index = viewer.index(filters)
    facts = known_rule(index, filters.rule)
    filters = Filters(**{name: getattr(filters, name) for name in (*SHARED, "rule")})
    here = {
        "filters": filters,
        "canonical": address("/rule", filters.query()),
        "index": index,
        "rule": facts,
        "waiting": False,
        "others": [(one.id, one.name) for one in index.rules],
    }
    if facts.over == "cases":
        return {**here, **_over_cases(viewer, filters, index, facts)}
    limit = index.thresholds(filters.threshold)[facts.id]
    matrix = index.matrix(filters.group).only([facts.id])
    return {
        **here,
        "over": [],
        "grid": [
            {**row, "address": address("/rule", replace(filters, threshold=row["threshold"]).query())}
            for row in curve(matrix, index.grids[facts.relation]).iter_rows(named=True)
        ],
        "slices": _slices(index, filters, facts, limit),
        **_severities(viewer, filters, index, facts),
    }


def _severities(viewer: Viewer, filters: Filters, index: Index, facts: RuleFacts) -> dict[str, object]:
    """How the cases fare under a rule that is judged case by case: its rate, how severities are spread, and examples
    along them."""
    pairs = index.group(filters.group).pairs
    limit = index.thresholds(filters.threshold)[facts.id]
    number = index.rules.index(facts)
    own = np.flatnonzero((pairs.rule == number) & (pairs.status == OK))
    severity = pairs.severity[own]
    floor = next((row for row in index.noise().iter_rows(named=True) if row["relation"] == facts.relation), None)
    order = own[np.argsort(-severity, kind="stable")]
    places = sorted({round(place) for place in np.linspace(0, len(order) - 1, EXAMPLES).tolist()}) if len(order) else []
    examples = worded(viewer, filters, index, pairs, order[np.array(places, np.int64)])
    for place, example in zip(places, examples, strict=True):
        example["quantile"] = 100 - round(100 * place / max(1, len(order) - 1))
    matrix = index.matrix(filters.group).only([facts.id])
    of_rule = replace(filters, rule=facts.id)
    return {
        "shown": facts,
        "rate": rates(matrix, {facts.id: limit}).row(0, named=True),
        "limit": limit,
        "precision": [precision_sentence(row) for row in precision_rows(index, filters) if row["name"] == facts.id],
        "links": {state: address("/gallery", replace(of_rule, status=state).query()) for state in STATES},
        "histogram": charts.histogram(severity, limit, unit_name(facts.unit), (floor or {}).get("floor")),
        "noise": floor,
        "infinite": bool(np.isinf(severity).any()),
        "examples": examples,
    }


def _over_cases(viewer: Viewer, filters: Filters, index: Index, facts: RuleFacts) -> dict[str, object]:
    """A rule over many cases: what it measured, beside the other rules of its relation, and the cases that it is
    measured on, level by level. Of several levels the last one is shown."""
    known = {rule.id: rule for rule in index.rules}
    measured = {row["rule"]: row for row in index.over_cases.iter_rows(named=True)}
    made_of = [level.id for level in levels_of(named_rule(facts.id), index.manifest.system.kind)]
    levels = [known[level] for level in made_of if level in known]
    limits = index.thresholds(filters.threshold)
    rated = rates(index.matrix(), {level.id: limits[level.id] for level in levels}).iter_rows(named=True)
    alike = [row for row in over_cases_rows(index, filters) if row["relation"] == facts.relation]
    return {
        "over": [measured[facts.id]] if facts.id in measured else [],
        "alike": [{**row, "here": row["rule"] == facts.id} for row in alike] if len(alike) > 1 else [],
        "levels": [
            {
                **row,
                "name": known[row["rule"]].name,
                "words": known[row["rule"]].words,
                "address": address("/rule", {**filters.query(*SHARED), "rule": row["rule"]}),
            }
            for row in rated
        ],
        **(_severities(viewer, filters, index, levels[-1]) if levels else {"rate": None, "shown": None}),
    }


def over_cases_rows(index: Index, filters: Filters) -> list[Row]:
    """What the rules over many cases measured, worst first, each with the address of its page."""
    known = {rule.id: rule for rule in index.rules}
    rows = [
        {
            **row,
            "name": known[row["rule"]].name,
            "words": known[row["rule"]].words,
            "relation": known[row["rule"]].relation,
            "limit": known[row["rule"]].threshold,
            "bar": _lost(row),
            "address": address("/rule", {**filters.query(*SHARED), "rule": row["rule"]}),
        }
        for row in index.over_cases.iter_rows(named=True)
        if row["rule"] in known
    ]
    return sorted(rows, key=lambda row: -(row["severity"] or 0.0))


def _lost(row: Row) -> Row | None:
    """What is lost of a measure as a bar shows it, where it is a share: from nothing to all."""
    if row.get("lost") is None or not 0 <= row["baseline"] <= 1:
        return None
    ends = {"rate": row["lost"], "low": row["lost_low"], "high": row["lost_high"]}
    return {"judged": row["cases"], **{name: min(1.0, max(0.0, end)) for name, end in ends.items()}}


def _slices(index: Index, filters: Filters, facts: RuleFacts, limit: float) -> list[Row]:
    """How cases that violate the rule differ from the others, each with the pairs of that slice."""
    if index.described.width < 2:
        return []
    rows: list[Row] = []
    table = slices(index.described, index.matrix(filters.group).only([facts.id]), {facts.id: limit})
    for row in table.head(MOST_SLICES).iter_rows(named=True):
        part = {IS: f"= {row['value']}", ABOVE: "> median", FROM: "≥ median"}[row["kind"]]
        link = replace(filters, slice=f"{row['property']} {part}", status="violated")
        rows.append({**row, "judged": row["cases"], "address": address("/gallery", link.query())})
    return rows
