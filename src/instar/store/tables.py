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
    columns = []
    for name, kind in schema.items():
        if isinstance(kind, pl.List):
            values = [row.get(name) for row in rows]
            if kind.inner in _NUMPY:
                values = [_numbers(v, _NUMPY[kind.inner]) for v in values]
            # the cast: equally long arrays would come out as polars' fixed-size type
            columns.append(_series(name, [[] if v is None else v for v in values], kind).cast(kind))
        else:
            columns.append(_series(name, [row.get(name) for row in rows], kind))
    return pl.DataFrame(columns)


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
