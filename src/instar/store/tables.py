"""The columns of the run folder's tables, and rows as frames."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.files import storable
from instar.outputs import Output, Schema
from instar.transforms import Change

Row = dict[str, Any]
"""A row of a table, by column."""
Columns = Mapping[str, list[Any]]
"""Rows of a table: what each has in a column, None where it has nothing."""

KEY = ("case", "follow_up", "draw", "repeat")

# fmt: off
PREDICTION: Schema = {
    "case": pl.String, "follow_up": pl.String, "draw": pl.Int32, "repeat": pl.Int32,
    "status": pl.String, "message": pl.String, "seconds": pl.Float32, **Change.columns,
}
CASE: Schema = {
    "case": pl.String, "path": pl.String, "frame": pl.Int64, "crop": pl.List(pl.Int64), "hash": pl.String,
    "width": pl.Int32, "height": pl.Int32, "status": pl.String, "message": pl.String, "track": pl.String,
    "attributes": pl.String,
    "properties": pl.Struct(dict.fromkeys(("brightness", "contrast", "sharpness", "saturation"), pl.Float32)),
}
APART: Schema = {"hash": pl.String, "content": pl.Binary}
NEED: Schema = dict.fromkeys(
    ("case", "need", "provider", "status", "message", "kind", "hash", "header", "facts"), pl.String
)
VERDICT: Schema = {
    "case": pl.String, "target": pl.String, "rule": pl.String, "severity": pl.Float64, "kind": pl.String,
    "reason": pl.String, "status": pl.String,
}
# fmt: on

_NUMPY: dict[object, type[np.floating]] = {pl.Float32: np.float32, pl.Float64: np.float64}


def of_cases(cases: pl.Series) -> pl.Expr:
    """Rows of some cases. Their range comes first, since a reader skips what lies outside of it without decoding it."""
    first, last = (pl.lit(end, pl.String) for end in (cases.min(), cases.max()))
    return pl.col("case").is_between(first, last) & pl.col("case").is_in(cases.implode())


def first_only(where: pl.Expr | None, deterministic: bool) -> pl.Expr | None:
    """Return the condition that a prediction meets `where` and is not a second one by a deterministic system."""
    if not deterministic:
        return where
    first = pl.col("repeat") == 0
    return first if where is None else first & where


def need_content(value: Output) -> bytes:
    """A need as it is kept: its one column, or a frame of them."""
    row = value.row()
    if len(value.columns) == 1:
        (content,) = row.values()
        return bytes(content)
    buffer = io.BytesIO()
    rows_frame([row], value.columns).write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def rows_frame(rows: Sequence[Mapping[str, object]], schema: Schema) -> pl.DataFrame:
    """Rows as a frame. What a row does not have is null, and an empty list in a column of lists.

    Numbers of a list may also come as the bytes of an array of the column's own type. Here every text of a run becomes
    one that a file can hold, whoever said it.
    """
    return columns_frame({name: [row.get(name) for row in rows] for name in schema}, schema)


def columns_frame(columns: Columns, schema: Schema) -> pl.DataFrame:
    """Rows as a frame, as `rows_frame`, of what they have in each column; a column that none has may be missing."""
    absent = [None] * max(map(len, columns.values()), default=0)
    series = []
    for name, kind in schema.items():
        values = columns.get(name, absent)
        series.append(_lists(name, values, kind) if isinstance(kind, pl.List) else _series(name, values, kind))
    return pl.DataFrame(series)


def _lists(name: str, values: list[Any], kind: pl.List) -> pl.Series:
    """A column of lists. Polars makes lists of Python's and numpy's one by one, which takes longer than all else that
    is done to a row: so columns without any, and numbers of equally many, are made at once."""
    if values and all(value is None for value in values):
        return pl.Series(name, [[]], dtype=kind).new_from_index(0, len(values))
    if kind.inner in _NUMPY:
        if all(type(value) is bytes for value in values) and len({len(value) for value in values}) == 1 and values[0]:
            numbers = np.frombuffer(b"".join(values), _NUMPY[kind.inner])
            return pl.Series(name, numbers.reshape(len(values), -1)).cast(kind)
        values = [_numbers(value, _NUMPY[kind.inner]) for value in values]
        lengths = {len(value) for value in values}
        if len(lengths) == 1 and 0 not in lengths:
            return pl.Series(name, np.concatenate(values).reshape(len(values), -1)).cast(kind)
    # the cast: equally long arrays would come out as polars' fixed-size type
    return _series(name, [[] if value is None else value for value in values], kind).cast(kind)


def _series(name: str, values: list[Any], kind: pl.DataType | type[pl.DataType]) -> pl.Series:
    try:
        return pl.Series(name, values, dtype=kind)
    except UnicodeEncodeError:  # rare, so that looking at every text beforehand would be dearer
        return pl.Series(name, [_storable(value) for value in values], dtype=kind)


def _storable(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    return [_storable(one) for one in value] if isinstance(value, list | tuple) else value


def _numbers(value: object, kind: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """A list column's value as an array; bytes are an array's own, as workers send them."""
    if isinstance(value, bytes):
        return np.frombuffer(value, kind)
    return np.asarray(() if value is None else value, kind)
