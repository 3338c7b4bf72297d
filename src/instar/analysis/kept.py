"""Of a large run, what takes seconds to find out is found out once, and kept beside its verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.answers import Answers, answers_of
from instar.analysis.conditions import condition_counts
from instar.analysis.parts import PartMatrix, part_matrix
from instar.analysis.rates import UNJUDGED, unjudged_pairs
from instar.analysis.severities import COLUMNS, Severities, severities
from instar.store import KeptColumns, basis_of, keep, kept

if TYPE_CHECKING:
    from instar.analysis.run import Run

T = TypeVar("T")

LARGE = 50_000
"""Pairs from which on something is kept: what is found out about fewer takes no longer than reading it."""


def kept_severities(run: Run, judging: str) -> Severities:
    """The severities of all cases and rules."""

    def make() -> Severities:
        return severities(run.store.verdict_parts(judging, COLUMNS), rules=run.manifest.rules)

    def columns(matrix: Severities) -> KeptColumns:
        numbers: dict[str, npt.NDArray[np.generic]]
        numbers = {"severity": matrix.severity, "status": matrix.status, "kind": matrix.kind}
        if matrix.p is not None:
            numbers["p"] = matrix.p
        texts = {"rules": matrix.rules, "cases": matrix.cases, "kinds": matrix.kinds}
        return {name: pl.Series(values.ravel()) for name, values in numbers.items()} | {
            name: pl.Series(values, dtype=pl.String) for name, values in texts.items()
        }

    def matrix(columns: KeptColumns) -> Severities:
        rules, cases = tuple(columns["rules"]), columns["cases"].alias("case")
        if rules != run.manifest.rules:
            raise ValueError("these are the severities of other rules")
        shape = len(rules), len(cases)
        severity, status, kind = (columns[name].to_numpy().reshape(shape) for name in ("severity", "status", "kind"))
        p = columns["p"].to_numpy().reshape(shape) if "p" in columns else None
        return Severities(rules, cases, severity, status, kind, tuple(columns["kinds"]), p)

    return _kept(run, judging, "severities", make, columns, matrix, lambda made: made.severity.size)


def kept_parts(run: Run, relation: str, judging: str) -> PartMatrix | None:
    """The parts of a relation's verdicts."""

    def columns(matrix: PartMatrix | None) -> KeptColumns:
        if matrix is None:  # which took no time to find out
            return {}
        return {
            "rules": pl.Series(matrix.rules, dtype=pl.String),
            "names": pl.Series(matrix.names, dtype=pl.String),
            "twins": pl.Series(matrix.twins, dtype=pl.Int64),
            "severity": pl.Series(matrix.severity.ravel()),
            "whole": pl.Series(matrix.whole.ravel()),
            "identity": pl.Series([matrix.identity], dtype=pl.Int64),
            "noisy": pl.Series([matrix.noisy]),
        }

    def matrix(columns: KeptColumns) -> PartMatrix:
        rules, names = tuple(columns["rules"]), tuple(columns["names"])
        whole = columns["whole"].to_numpy().reshape(len(rules), -1)
        severity = columns["severity"].to_numpy().reshape(*whole.shape, len(names))
        return PartMatrix(
            rules, names, tuple(columns["twins"]), severity, whole, columns["identity"][0], columns["noisy"][0]
        )

    name = f"parts-{quote(relation, safe='')}"
    return _kept(run, judging, name, lambda: part_matrix(run, relation, judging), columns, matrix)


def kept_answers(run: Run, judging: str) -> Answers:
    """What can be told from the answers alone."""
    return _kept(
        run,
        judging,
        "answers",
        lambda: answers_of(run, judging),
        lambda answers: {"json": pl.Series([json.dumps(asdict(answers))])},
        lambda columns: Answers(**json.loads(columns["json"][0])),
    )


def kept_unjudged(run: Run, judging: str) -> pl.DataFrame:
    """Why pairs have no severity."""

    def make() -> pl.DataFrame:
        return unjudged_pairs(run.store.verdict_parts(judging, UNJUDGED), run.changing_rules())

    return _kept_table(run, judging, "unjudged", ("status", "reason", "pairs", "rules", "case", "rule"), make)


def kept_conditions(run: Run, judging: str) -> pl.DataFrame:
    """Return in how many cases the conditions of rules occurred."""
    columns = ("rule", "condition", "judged", "met", "absent")
    return _kept_table(run, judging, "conditions", columns, lambda: condition_counts(run, judging))


def _kept_table(
    run: Run, judging: str, name: str, columns: Sequence[str], make: Callable[[], pl.DataFrame]
) -> pl.DataFrame:
    def table(kept: KeptColumns) -> pl.DataFrame:
        return pl.DataFrame([kept[column].alias(column) for column in columns])

    return _kept(run, judging, name, make, pl.DataFrame.to_dict, table)


def _kept(
    run: Run,
    judging: str,
    name: str,
    make: Callable[[], T],
    columns: Callable[[T], KeptColumns],
    value: Callable[[KeptColumns], T],
    pairs: Callable[[T], int] | None = None,
) -> T:
    """What was kept, or what is made now, and is then kept if the run is large and did not change meanwhile."""
    basis = basis_of(run.store, judging)
    there = None if basis is None else kept(run.store, judging, name, basis)
    if there is not None:
        with suppress(LookupError, TypeError, ValueError):  # whoever made the folder wrote what they liked
            return value(there)
    made = make()
    size = pairs(made) if pairs else run.severities(judging).severity.size
    if basis is not None and size >= LARGE and basis_of(run.store, judging) == basis:
        keep(run.store, judging, name, basis, columns(made))
    return made
