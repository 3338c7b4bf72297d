"""Where it breaks: do failing cases differ from the others, in what was measured of them or in the user's columns?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.coverage import violations
from instar.analysis.severities import Verdicts
from instar.outputs import Schema
from instar.stats import fisher, holm, rank_test, wilson

LEAST = 5
"""Cases on each side below which a question is not asked: its answer would be noise."""
MOST_VALUES = 20
"""A column with more different texts is a name, not a slice."""

IS, ABOVE, FROM = "is", "above", "from"
"""Kinds of slices: the cases whose text is a `value`; those above a `cut`; those at it, when none is above it."""

_SCHEMA: Schema = {
    **dict.fromkeys(("property", "kind", "value"), pl.String),
    "cut": pl.Float64,
    **dict.fromkeys(("cases", "failing"), pl.Int64),
    **dict.fromkeys(("rate", "low", "high", "elsewhere", "effect", "p", "p_corrected"), pl.Float64),
}
Row = tuple[str, str, str | None, float | None, int, int, float | None, float, float, float | None, float, float]
"""The columns of the table up to `p`."""
Flags = npt.NDArray[np.bool_]


def described(cases: pl.DataFrame, subjects: pl.DataFrame | None = None) -> pl.DataFrame:
    """What is known of each case, one column each: measured properties, the frame's size, the user's attributes.

    `subjects` has more columns of each `case`: what was found in it.
    """
    table = cases.filter(pl.col("status") == "ok").select("case", "width", "height", "properties", "attributes")
    table = table.with_columns(pixels=pl.col("width") * pl.col("height"), aspect=pl.col("width") / pl.col("height"))
    measured = table["properties"].struct.unnest()
    parts = [table.select("case", "pixels", "aspect"), measured, _attributes(table["attributes"])]
    seen: dict[str, pl.Series] = {}
    for part in parts:
        for column in part.iter_columns():
            seen.setdefault(column.name, column)
    known = pl.DataFrame(list(seen.values()))
    if subjects is None:
        return known
    fresh = subjects.select("case", *(name for name in subjects.columns if name not in known.columns))
    return known.join(fresh, on="case", how="left", maintain_order="left")


def _attributes(texts: pl.Series) -> pl.DataFrame:
    """The user's attributes, one column each: of truth values or of numbers where all are, else of texts. Lists and
    objects are no slices."""
    known: dict[str | None, dict[str, Any]] = {text: json.loads(text) if text else {} for text in texts.unique()}
    rows = [known[text] for text in texts]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = (_column(name, [row.get(name) for row in rows]) for name in names)
    return pl.DataFrame([column for column in columns if column is not None])


def _column(name: str, values: list[Any]) -> pl.Series | None:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {int} and all(abs(value) < 1 << 63 for value in values if value is not None):
        return pl.Series(name, values, pl.Int64)
    if kinds <= {int, float}:
        return pl.Series(name, [None if value is None else _float(value) for value in values], pl.Float64)
    if kinds <= {int, float, bool, str}:
        spelled = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        return pl.Series(name, spelled, pl.String)
    return None


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf


def slices(properties: pl.DataFrame, verdicts: Verdicts, thresholds: Mapping[str, float]) -> pl.DataFrame:
    """How failing cases differ from the others, the surest difference first.

    Each row is a slice: its `kind` is `is` with a `value`, or `above` or `from` with a `cut`. A case fails where it
    violates any of the rules. For a number, `effect` is the probability that a failing case has a higher value than one
    that does not fail (0.5: no difference), and `rate` the share that fails among the cases above its median, or at it
    where none is above. For a text or a truth value each value is a slice of its own, `effect` the difference between
    its `rate` of failing cases and that `elsewhere`. `p_corrected` takes into account how many questions were asked
    (Holm).
    """
    _, cases, hit = violations(verdicts, thresholds)
    known = properties.join(pl.DataFrame({"case": cases, "fails": hit.any(0)}), on="case", maintain_order="left")
    rows: list[Row] = []
    for name in known.columns:
        if name in ("case", "fails"):
            continue
        part = known.select(pl.col(name).alias("value"), "fails").drop_nulls()
        if part["value"].dtype.is_numeric():
            rows += _number(name, part)
        elif 2 <= part["value"].n_unique() <= MOST_VALUES:
            for value in part["value"].unique().sort():
                rows += _text(name, str(value), (part["value"] == value).to_numpy(), part["fails"].to_numpy())
    corrected = holm([row[-1] for row in rows])
    table = pl.DataFrame([(*row, p) for row, p in zip(rows, corrected, strict=True)], schema=_SCHEMA, orient="row")
    return table.sort("p", "property", "value", "cut", maintain_order=True)


def _number(name: str, part: pl.DataFrame) -> list[Row]:
    values, fails = part["value"].to_numpy().astype(np.float64), part["fails"].to_numpy()
    finite = np.isfinite(values)
    values, fails = values[finite], fails[finite]
    if min(fails.sum(), (~fails).sum()) < LEAST or len(np.unique(values)) < 2:
        return []
    middle = float(np.median(values))
    kind, inside = ABOVE, values > middle
    if not inside.any():  # most cases have the highest value there is
        kind, inside = FROM, values == middle
    return [(name, kind, None, middle, *_counts(inside, fails), *rank_test(values[~fails], values[fails]))]


def _text(name: str, value: str, inside: Flags, fails: Flags) -> list[Row]:
    if min(inside.sum(), (~inside).sum()) < LEAST or fails.all() or not fails.any():
        return []
    table = [int((a & b).sum()) for a in (inside, ~inside) for b in (fails, ~fails)]
    difference = table[0] / (table[0] + table[1]) - table[2] / (table[2] + table[3])
    return [(name, IS, value, None, *_counts(inside, fails), difference, fisher(*table))]


def _counts(inside: Flags, fails: Flags) -> tuple[int, int, float | None, float, float, float | None]:
    """Return the columns from `cases` to `elsewhere`."""
    count, hits, others = int(inside.sum()), int((inside & fails).sum()), int((~inside).sum())
    rate = hits / count if count else None
    elsewhere = int((~inside & fails).sum()) / others if others else None
    return count, hits, rate, *wilson(hits, count), elsewhere
