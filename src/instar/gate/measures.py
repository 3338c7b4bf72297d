"""Measures over many cases held to a limit: how far answers change with a level, and how much is lost."""

from __future__ import annotations

import polars as pl

from instar.gate.check import Check
from instar.gate.policy import Limit, PolicyError
from instar.report.words import percent, severity_text
from instar.spelling import unknown

ENDS = {"r": ("low", "high"), "drop": ("low", "high"), "lost": ("lost_low", "lost_high")}
"""The columns of the interval of a measure; the others have none."""
MOST_CONFIDENCE = 0.975
"""What each side of those intervals has: they are of 95 %."""
_NO_MEASURES = frozenset({"severity", "draw", "repeat"})


def measured_check(rows: pl.DataFrame, limit: Limit, name: str, place: str, confidence: float) -> Check:
    """A measure of the verdicts of a rule over many cases. Raises PolicyError where they have no such measure."""
    measure = limit.measure or ""
    numbers = [one for one, kind in rows.schema.items() if kind.is_numeric() and rows[one].null_count() < rows.height]
    measures = [one for one in numbers if one not in _NO_MEASURES and not one.endswith(("low", "high"))]
    if measure not in measures:
        raise PolicyError(f"{place}: {unknown(f'measure of {limit.of}', measure, measures)}")
    if limit.sure != "plain" and measure not in ENDS:
        raise PolicyError(f'{place}: {measure} of {limit.of} has no interval; say sure = "plain"')
    if limit.sure != "plain" and confidence > MOST_CONFIDENCE:
        raise PolicyError(
            f"{place}: the interval of {measure} has 95 %, {percent(MOST_CONFIDENCE, digits=1)} on each side; "
            f'a confidence of {confidence:g} takes a measure without one (sure = "plain")'
        )
    column = measure if limit.sure == "plain" else ENDS[measure][limit.sure == "upper"]
    at_most = limit.at_most is not None
    allowed = limit.at_most if limit.at_most is not None else limit.at_least
    assert allowed is not None
    worst = pl.col(column).max() if at_most else pl.col(column).min()
    row = rows.filter(pl.col(column) == rows.select(worst).item()).row(0, named=True)
    figure, bound = float(row[measure]), float(row[column])
    few = "cases" in row and row["cases"] < limit.cases
    end = "" if limit.sure == "plain" else f", the {limit.sure} end of its 95 % interval {severity_text(bound)}"
    over = f" over {row['cases']:,} cases" if "cases" in row else ""
    demand = f"at {'most' if at_most else 'least'} {severity_text(allowed)} is allowed"
    words = f"{measure} of {name} is {severity_text(figure)}{over}{end}; {demand}."
    if few:
        words = f"{measure} of {name} was measured{over}; at least {limit.cases:,} must be."
    holds = (bound <= allowed if at_most else bound >= allowed) and not few
    return Check(f"{measure} of {name}", holds, words, limit.line, (row["rule"],), figure, bound, allowed)
