"""From which severity on a rule counts as violated, in words: every table of violations says it."""

from __future__ import annotations

import math

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.report.section import heading_of
from instar.report.words import ONE_SIDED, threshold_text

LONG = 200
"""Letters from which on the thresholds of several relations are said once, and in a sentence of their own."""


def limit_words(
    run: Run, *, threshold: float | None = None, p: float | None = None, judging: str = DEFAULT, rule: str | None = None
) -> str:
    """From which severity on the rules of a run, or one of them, count as violated: a clause for a caption."""
    known = run.rules(judging).filter((pl.col("over") == "case") & (pl.col("family") != "identity"))
    if rule is not None:
        known = run.rules(judging).filter(rule=run.rule_id(rule))
    limits, alphas = run.thresholds(threshold), run.alphas(p)
    several = known["relation"].n_unique() > 1
    clauses = []
    for (relation, unit), part in known.group_by("relation", "unit", maintain_order=True):
        where = f" for {heading_of(str(relation))}" if several else ""
        if set(part["rule"]) & set(alphas):
            clauses.append(f"where p is at most {p:g}{where}")
        else:
            clauses.append(_clause(sorted({limits[one] for one in part["rule"]}), str(unit), where))
    return f"violated {', '.join(clauses)}" if clauses else "no rule changes anything"


def _clause(values: list[float], unit: str, where: str) -> str:
    if len(values) > 1:
        return f"from {threshold_text(values[0])} to {threshold_text(values[-1])} up{where}, each rule its own ({unit})"
    (value,) = values
    if math.isinf(value):
        return f"at ∞{where} ({ONE_SIDED})"
    return f"above 0{where} ({unit})" if value == 0 else f"from {threshold_text(value)} up{where} ({unit})"
