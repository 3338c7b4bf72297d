"""What the first page shows: all runs, how far they are, and what was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from instar.analysis import group_rates
from instar.analysis.comparison import search_words
from instar.engine import DEFAULT
from instar.report.finding import Finding
from instar.report.precision import label_notes
from instar.store import MARKS, Row
from instar.viewer import charts
from instar.viewer.header import extent_words
from instar.viewer.index import Index
from instar.viewer.marks import marks_of, precision_rows
from instar.viewer.pages import SHARED, Viewer
from instar.viewer.query import STATES, Filters, address
from instar.viewer.rules import over_cases_rows
from instar.viewer.searches import combinations_shown, limits_address, limits_shown
from instar.viewer.watch import PATIENCE, Unavailable, Watched

READING = [Finding("viewer.reading", "The findings are being read; this page looks again by itself.")]
"""What stands in the place of findings until they are there."""
_SHOWN = ("floor", "worst")
"""What is said of the system's own noise."""


def overview(viewer: Viewer, filters: Filters) -> dict[str, object]:
    """All runs: how far they are, and what they found."""
    shown = [_run_card(viewer, replace(filters, run=run.name)) for run in viewer.runs]
    return {
        "filters": filters,
        "canonical": address("/", filters.query("judging", "threshold")),
        "shown": shown,
        "indexes": [one["index"] for one in shown],
        "waiting": any(map(_unready, shown)),
    }


def _unready(card: Row) -> bool:
    """Whether something that a run's card shows is still being made."""
    return not card["index"] or card["findings"] is READING or any(panel.waiting for panel in card["panels"])


def _run_card(viewer: Viewer, filters: Filters) -> Row:
    run = viewer.run(filters.run)
    plain: Row = {
        "key": filters.run,
        "name": viewer.names()[filters.run],
        "folder": str(run.store.folder),
        "live": run.live,
        "index": None,
        "problem": run.problem,
        "extent": run.extent,
        "progress": extent_words(run),
    }
    try:
        index = run.index(filters.judging if filters.judging in run.store.judgings() else DEFAULT)
    except Unavailable as error:
        return {**plain, "problem": str(error)}
    chosen = filters.query("run", "judging", "threshold")
    sentences = index.findings(filters.threshold, PATIENCE)
    noise = [_noise(index, filters, row) for row in index.noise().iter_rows(named=True)]
    rows = _rate_rows(index, filters, {row["relation"]: row["floor"] for row in noise})
    return {
        **plain,
        "index": index,
        "manifest": index.manifest,
        "rows": rows,
        "infinite": any(row["worst"] == math.inf for row in rows),
        "noise": noise,
        "precision": _precision(index, filters),
        "labels": label_notes(marks_of(index.run.store).values()),
        "findings": READING if sentences is None else sentences,
        "violated": sum(row["violated"] for row in rows if row["changing"]),
        "tested": _tested(index),
        "over_cases": over_cases_rows(index, filters),
        # the rates of a search for limits are not those of all cases
        "curves": [] if index.run.searched else charts.curves(index),
        "limits": limits_address(index, filters),
        "panels": [*limits_shown(index, filters), *combinations_shown(index, filters)],
        "cases": index.facts.height,
        "unreadable_count": index.facts.filter(pl.col("status") != "ok").height,
        "families": [] if index.run.searched else _families(index, filters),
        "gallery": address("/gallery", chosen),
        "others": [
            (address("/compare", {"a": filters.run, "b": name, **filters.query("judging", "threshold")}), shown)
            for name, shown in viewer.names().items()
            if name != filters.run and _comparable(index, viewer.run(name))
        ],
        "predictions": dict(sorted(index.predictions.items(), key=lambda item: (item[0] != "ok", item[0]))),
        "reasons": _reasons(index),
    }


def _comparable(index: Index, other: Watched) -> bool:
    """Whether a rule of the run is one of another run's, as far as that one is read."""
    rules = {rule.id for rule in index.rules if rule.changing}
    known, manifest = other.newest, other.manifest
    if manifest is None or manifest.system.kind != index.manifest.system.kind:
        return False
    if search_words(index.manifest) or search_words(manifest):
        return False
    return known is None or any(rule.id in rules for rule in known.rules)


def _precision(index: Index, filters: Filters) -> list[Row]:
    """What people say of the violations, with the addresses of marked pairs."""
    rows = precision_rows(index, filters)
    for row in rows:
        one = replace(filters, rule=row["name"] if row["by"] == "rule" else "")
        one = replace(one, relation=row["name"] if row["by"] == "relation" else "")
        row["links"] = {mark: address("/gallery", replace(one, mark=mark).query()) for mark in MARKS}
    return rows


def _rate_rows(index: Index, filters: Filters, floors: Mapping[str, float | None]) -> list[Row]:
    """The rates of rules, most violated first, with the addresses of their pairs and pages."""
    rules, rows = {rule.id: rule for rule in index.rules}, []
    rates = index.rates(filters.threshold).sort(["rate", "median"], descending=True, nulls_last=True)
    for row in rates.iter_rows(named=True):
        rule = rules[row["rule"]]
        of_rule = replace(filters, rule=rule.id)
        floor = floors.get(rule.relation)
        rows.append(
            {
                **row,
                "name": rule.name,
                "words": rule.words,
                "unit": rule.unit,
                "changing": rule.changing,
                "links": {state: address("/gallery", replace(of_rule, status=state).query()) for state in STATES},
                "noisy": bool(floor) and row["threshold"] <= (floor or 0),
                "page": address("/rule", of_rule.query(*SHARED, "rule")),
            }
        )
    return rows


def _noise(index: Index, filters: Filters, row: Row) -> Row:
    """The system's own noise by one relation, with the threshold that each number is nearest below."""
    limits = index.thresholds(filters.threshold)
    own = sorted({limits[rule.id] for rule in index.rules if rule.relation == row["relation"]})
    above = {f"{name}_limit": next((limit for limit in own if limit > (row[name] or 0)), None) for name in _SHOWN}
    return {**row, **above}


def _tested(index: Index) -> list[Row]:
    """The tests of each rule, those that reject most often first."""
    names = {rule.id: rule.name for rule in index.rules}
    table = index.tests.filter(pl.col("rule").is_not_null()).sort("share", descending=True, nulls_last=True)
    return [{**row, "name": names[row["rule"]]} for row in table.iter_rows(named=True)]


def _families(index: Index, filters: Filters) -> list[Row]:
    """Per family the share of cases that violate at least one of its rules, highest first; identity is none. Nothing
    where no case was judged."""
    families: dict[str, list[str]] = {}
    for rule in index.rules:
        if rule.changing:
            families.setdefault(rule.family, []).append(rule.id)
    rates = group_rates(index.matrix(), families, index.thresholds(filters.threshold)).sort(
        "rate", descending=True, nulls_last=True
    )
    return [
        {**row, "address": address("/gallery", replace(filters, family=row["group"]).query())}
        for row in rates.iter_rows(named=True)
        if rates["judged"].sum()
    ]


def _reasons(index: Index) -> list[Row]:
    """Why pairs have no severity, most frequent first, in the words of the report; identity counts in no rate."""
    return index.run.unjudged(index.judging).head(6).to_dicts()
