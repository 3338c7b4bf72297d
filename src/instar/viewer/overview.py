"""What the first page shows: all runs, how far they are, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from instar.analysis import group_rates
from instar.engine import DEFAULT
from instar.store import Row
from instar.viewer import charts
from instar.viewer.header import extent_words
from instar.viewer.index import OK, Index
from instar.viewer.pages import SHARED, Viewer
from instar.viewer.query import STATES, Filters, address
from instar.viewer.watch import Unavailable


def overview(viewer: Viewer, filters: Filters) -> dict[str, object]:
    """All runs: how far they are, and what they found."""
    shown = [_run_card(viewer, replace(filters, run=run.name)) for run in viewer.runs]
    return {
        "filters": filters,
        "canonical": address("/", filters.query("judging", "threshold")),
        "shown": shown,
        "indexes": [one["index"] for one in shown],
        "waiting": any(not one["index"] for one in shown),
    }


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
    unreadable = index.facts.filter(pl.col("status") != "ok")
    chosen = filters.query("run", "judging", "threshold")
    noise = index.noise().to_dicts()
    rows = _rate_rows(index, filters, {row["relation"]: row["floor"] for row in noise})
    return {
        **plain,
        "index": index,
        "manifest": index.manifest,
        "rows": rows,
        "noise": noise,
        "findings": index.findings(filters.threshold),
        "violated": sum(row["violated"] for row in rows),
        "tested": _tested(index),
        "over_cases": index.over_cases.to_dicts(),
        "curves": charts.curves(index),
        "cases": index.facts.height,
        "unreadable": unreadable.head(3).to_dicts(),
        "unreadable_count": unreadable.height,
        "families": _families(index, filters),
        "gallery": address("/gallery", chosen),
        "others": [
            (address("/compare", {"a": filters.run, "b": name, **filters.query("judging", "threshold")}), shown)
            for name, shown in viewer.names().items()
            if name != filters.run and viewer.run(name).system[1] == run.system[1]
        ],
        "predictions": sorted(index.predictions.items(), key=lambda item: (item[0] != "ok", item[0])),
        "reasons": _reasons(index),
    }


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
                "links": {state: address("/gallery", replace(of_rule, status=state).query()) for state in STATES},
                "noisy": bool(floor) and row["threshold"] <= (floor or 0),
                "page": address("/rule", of_rule.query(*SHARED, "rule")),
            }
        )
    return rows


def _tested(index: Index) -> list[Row]:
    """The tests of each rule, those that reject most often first."""
    names = {rule.id: rule.name for rule in index.rules}
    table = index.tests.filter(pl.col("rule").is_not_null()).sort("share", descending=True, nulls_last=True)
    return [{**row, "name": names[row["rule"]]} for row in table.iter_rows(named=True)]


def _families(index: Index, filters: Filters) -> list[Row]:
    """Per family the share of cases that violate at least one of its rules, highest first; identity is none."""
    families: dict[str, list[str]] = {}
    for rule in index.rules:
        if rule.over == "case" and rule.family != "identity":
            families.setdefault(rule.family, []).append(rule.id)
    rates = group_rates(index.matrix(), families, index.thresholds(filters.threshold)).sort(
        "rate", descending=True, nulls_last=True
    )
    return [
        {**row, "address": address("/gallery", replace(filters, family=row["group"]).query())}
        for row in rates.iter_rows(named=True)
    ]


def _reasons(index: Index) -> list[Row]:
    """Why pairs have no severity, most frequent first."""
    pairs = index.group().pairs
    bare = pairs.at(pairs.status != OK)
    table = (
        pl.DataFrame({"status": bare.status, "reason": bare.reason, "rule": bare.rule})
        .group_by("status", "reason")
        .agg(pairs=pl.len(), rules=pl.col("rule").n_unique())
        .sort("pairs", "status", "reason", descending=[True, False, False])
    )
    return [
        {**row, "status": index.statuses[row["status"]], "reason": index.reasons[row["reason"]]}
        for row in table.head(6).iter_rows(named=True)
    ]
