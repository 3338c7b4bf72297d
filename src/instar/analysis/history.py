"""Runs of one model over time: which of them belong together, and the rates of families that can be held together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis.rates import group_rates
from instar.analysis.run import ANY, Run
from instar.engine import DEFAULT


def of_one_kind(runs: Sequence[Run]) -> list[Run]:
    """The runs that share a rule with the one that shares rules with most; of several such, with the last."""
    rules = [set(run.changing_rules()) for run in runs]
    alike = [sum(bool(own & other) for other in rules) for own in rules]
    chosen = max(range(len(runs)), key=lambda number: (alike[number], number), default=0)
    return [run for run, own in zip(runs, rules, strict=True) if own & rules[chosen]]


def common_families(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Each family with the rules that all runs asked that have it; last the rules that every run asked."""
    families: dict[str, list[str]] = {}
    for run in runs:
        for name, rules in run.families().items():
            known = families.setdefault(name, rules)
            families[name] = [rule for rule in known if rule in set(rules)]
    families = {name: rules for name, rules in families.items() if rules}
    everywhere = set.intersection(*(set(run.changing_rules()) for run in runs))
    return {**families, ANY: [rule for rules in families.values() for rule in rules if rule in everywhere]}


def history_rates(
    run: Run, families: Mapping[str, Sequence[str]], limits: Mapping[str, float], judging: str = DEFAULT
) -> pl.DataFrame:
    """The share of a run's cases that violate each family. A family whose rules the run did not all ask has no row."""
    own = set(run.changing_rules())
    whole = {name: rules for name, rules in families.items() if own.issuperset(rules)}
    return group_rates(run.severities(judging), whole, {**run.thresholds(), **limits})
