"""What the page of one rule shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from instar.analysis import curve, rates, slices
from instar.store import Row
from instar.viewer import charts
from instar.viewer.index import OK, Index, RuleFacts
from instar.viewer.pages import SHARED, Viewer, card, known_rule
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
        over = index.over_cases
        return {**here, "over": over.filter(rule=facts.id).to_dicts() if over.width else [], "rate": None}
    pairs = index.group(filters.group).pairs
    limit = index.thresholds(filters.threshold)[facts.id]
    matrix = index.matrix(filters.group).only([facts.id])
    number = index.rules.index(facts)
    own = np.flatnonzero((pairs.rule == number) & (pairs.status == OK))
    severity = pairs.severity[own]
    floor = next((row for row in index.noise().iter_rows(named=True) if row["relation"] == facts.relation), None)
    order = own[np.argsort(-severity, kind="stable")]
    places = sorted({round(place) for place in np.linspace(0, len(order) - 1, EXAMPLES).tolist()}) if len(order) else []
    examples = [
        {
            **card(index, filters, pairs, int(order[place])),
            "quantile": 100 - round(100 * place / max(1, len(order) - 1)),
        }
        for place in places
    ]
    viewer.pictures.expect(viewer.run(filters.run).store, [each["case"] for each in examples])
    grid = index.grids[facts.relation]
    links = {state: address("/gallery", replace(filters, status=state).query()) for state in STATES}
    return {
        **here,
        "over": [],
        "rate": rates(matrix, {facts.id: limit}).row(0, named=True),
        "limit": limit,
        "grid": [
            {**row, "address": address("/rule", replace(filters, threshold=row["threshold"]).query())}
            for row in curve(matrix, grid).iter_rows(named=True)
        ],
        "links": links,
        "histogram": charts.histogram(severity, limit, facts.unit, (floor or {}).get("floor")),
        "noise": floor,
        "examples": examples,
        "slices": _slices(index, filters, facts, limit),
    }


def _slices(index: Index, filters: Filters, facts: RuleFacts, limit: float) -> list[Row]:
    """How cases that violate the rule differ from the others, each with the pairs of that slice."""
    if index.described.width < 2:
        return []
    rows: list[Row] = []
    table = slices(index.described, index.matrix(filters.group).only([facts.id]), {facts.id: limit})
    for row in table.head(MOST_SLICES).iter_rows(named=True):
        number = row["value"].startswith("above ") and f"{row['property']} > median" in index.slices
        name = f"{row['property']} > median" if number else f"{row['property']} = {row['value']}"
        link = address("/gallery", replace(filters, slice=name, status="violated").query())
        rows.append({**row, "judged": row["cases"], "number": number, "address": link})
    return rows
