"""Relations over many cases: a response to levels, with its interval."""

from __future__ import annotations

import numpy as np
import polars as pl

from instar.relations.relation import Evidence, Relation
from instar.spelling import Parameter
from instar.stats import bootstrap, pearson

__all__ = ["RELATIONS"]


def correlation(evidence: Evidence) -> pl.DataFrame:
    """How far the measure's mean over cases follows the level: the shortfall of |r| below `least`.

    Cases that miss a level are left out; ∞ is taken as the largest finite value seen.
    """
    measure = evidence.parameters["measure"]
    if measure not in evidence.verdicts.columns:
        known = [c for c, kind in evidence.verdicts.schema.items() if kind.is_numeric()]
        raise ValueError(f"correlation: there is no measure {measure!r}; these levels have {', '.join(known)}")
    per_case = evidence.verdicts.group_by("case", "follow_up").agg(pl.col(measure).max())
    wide = per_case.pivot("follow_up", index="case", values=measure).drop_nulls()
    base = {"case": None, "follow_up": None, "target": None, "kind": None}
    missing = [level for level in evidence.levels if level not in wide.columns]
    if missing or wide.height < 2 or len(evidence.levels) < 2:
        why = f"no verdicts for {missing[0]}" if missing else "it takes two levels and two cases judged at all of them"
        return pl.DataFrame([{**base, "severity": None, "reason": why, "r": None, "low": None, "high": None,
                              "cases": wide.height}], schema_overrides=_SCHEMA)
    table = wide.select(evidence.levels).to_numpy().astype(np.float64)
    finite = table[np.isfinite(table)]
    table = np.where(np.isinf(table), finite.max() if len(finite) else 1.0, table)
    order = np.arange(len(evidence.levels), dtype=np.float64)

    def strength(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        return pearson(order, rows.mean(0))

    r = strength(table)
    low, high = bootstrap(table, strength)
    severity = max(0.0, evidence.parameters["least"] - abs(r))
    return pl.DataFrame([{**base, "severity": severity, "reason": None, "r": r, "low": low, "high": high,
                          "cases": wide.height}], schema_overrides=_SCHEMA)


_SCHEMA = {"case": pl.String, "follow_up": pl.String, "target": pl.String, "kind": pl.String, "severity": pl.Float64,
           "reason": pl.String, "r": pl.Float64, "low": pl.Float64, "high": pl.Float64, "cases": pl.Int32}

RELATIONS = (
    Relation(
        "correlation", "any", correlation, mapping=False, unit="shortfall of |r|", threshold=0.0,
        grid=(0.0, 0.05, 0.1, 0.2, 0.5), over="cases",
        measures={"r": pl.Float64, "low": pl.Float64, "high": pl.Float64, "cases": pl.Int32},
        parameters=(Parameter("measure", "text", "severity", help="a column of the levels' verdicts"),
                    Parameter("least", "float", 0.9, low=0, high=1, help="|r| from here up is strong")),
        help="A measure's mean over cases rises or falls in proportion to the level."),
)
