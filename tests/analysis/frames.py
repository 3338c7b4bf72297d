"""Verdict frames for tests, from severities alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

SCHEMA = {
    "case": pl.String,
    "target": pl.String,
    "rule": pl.String,
    "severity": pl.Float64,
    "kind": pl.String,
    "reason": pl.String,
    "status": pl.String,
}


def verdicts(rows: Iterable[tuple[str | None, str, str, float | None]]) -> pl.DataFrame:
    """From (case, target, rule, severity); a null severity is not applicable."""
    full = [
        (case, target, rule, severity, None, None, "not applicable" if severity is None else "ok")
        for case, target, rule, severity in rows
    ]
    return pl.DataFrame(full, schema=SCHEMA, orient="row")


def table(severities: Mapping[str, Sequence[float | None]]) -> pl.DataFrame:
    """From each rule's severities, one per case."""
    return verdicts(
        (f"c{number}", "0", rule, severity)
        for rule, values in severities.items()
        for number, severity in enumerate(values)
    )
