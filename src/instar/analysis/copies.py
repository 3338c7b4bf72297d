"""Copies: cases whose inputs are the very same, which say no more than one of them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from instar.analysis.run import Run

MATTERS = 0.95
"""The share of different inputs below which it is said: then intervals are too narrow by more than a hair."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Of so many `cases` that were read, how many inputs are `different`; `example` is the first of the `most` cases
    that have the same."""

    cases: int
    different: int
    most: int
    example: str


def copies(run: Run) -> Copies | None:
    """How many different inputs a run's cases have, by the hash of their content; None where nearly all are."""
    known = run.store.cases(["case", "status", "hash"]).filter(pl.col("status") == "ok", pl.col("hash").is_not_null())
    if known["hash"].n_unique() >= MATTERS * known.height:
        return None
    alike = known.group_by("hash", maintain_order=True).agg(pl.len().alias("cases"), pl.col("case").first())
    most = alike.sort("cases", descending=True, maintain_order=True).row(0, named=True)
    return Copies(known.height, alike.height, most["cases"], most["case"])
