"""Which rules accuse a system at their defaults: by severities, by failures, or by how many of its tests reject."""

from __future__ import annotations

import polars as pl
from scipy.stats import binomtest

import instar

LEVEL, CERTAIN = 0.05, 0.001
"""A single test's level, and the least p, over all rules, at which more tests reject than chance explains."""


def accused(run: instar.Run, *, share: float = 0.2) -> dict[str, str]:
    """The rules of which at least this share of verdicts are violated or failed, or too many tests reject."""
    thresholds = run.thresholds()
    by_rule = {str(name): part for (name,), part in run.verdicts().group_by("rule", maintain_order=True)}
    tests = {rule: part["p"].drop_nulls() for rule, part in by_rule.items() if rule.endswith("=> wvc")}
    words: dict[str, str] = {}
    for rule, part in by_rule.items():
        severities = part["severity"].drop_nulls()
        violated = int(((severities >= thresholds[rule]) & (severities > 0)).sum())
        failed = int(part["status"].is_in(["error", "timeout", "crashed"]).sum())
        if violated and violated >= share * len(severities):
            words[rule] = f"{violated} of {len(severities)} violated"
        elif failed:
            words[rule] = f"{failed} failed"
        elif rejected := _too_many(tests.get(rule, pl.Series(dtype=pl.Float64)), len(tests)):
            words[rule] = rejected
    return words


def _too_many(p: pl.Series, rules: int) -> str:
    rejected = int((p <= LEVEL).sum())
    if not len(p) or binomtest(rejected, len(p), LEVEL, alternative="greater").pvalue * rules > CERTAIN:
        return ""
    return f"{rejected} of {len(p)} tests reject"
