"""Columns of lists are what their rows say, whichever way they are made: at once, or one list after another."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest

from instar.store import rows_frame

NOTHING: list[float] = []


@pytest.mark.parametrize(
    ("values", "lists"),
    [
        pytest.param([None, None], [NOTHING, NOTHING], id="none has any"),
        pytest.param([NOTHING, NOTHING], [NOTHING, NOTHING], id="all are empty"),
        pytest.param([[1.5, 2.0], [3.0, 4.0]], [[1.5, 2.0], [3.0, 4.0]], id="equally many"),
        pytest.param([[1.0], None, [2.0]], [[1.0], NOTHING, [2.0]], id="one has none"),
        pytest.param([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0]], id="one has more"),
        pytest.param([], [], id="no rows"),
    ],
)
def test_numbers_of_any_length_are_read_as_they_came(values: list[object], lists: list[list[float]]) -> None:
    """As lists, as arrays and as the bytes that workers send."""
    kind = pl.List(pl.Float32)
    expected = pl.DataFrame({"numbers": pl.Series(lists, dtype=kind)})
    for form in (lambda v: v, lambda v: np.array(v, np.float32), lambda v: np.array(v, np.float32).tobytes()):
        rows = [{"numbers": None if value is None else form(value)} for value in values]
        frame = rows_frame(rows, {"numbers": kind})
        assert frame.equals(expected) and frame.schema == expected.schema
        assert _file(frame) == _file(expected), "a part of a run is the same file"


def test_what_is_no_number_stays_none_of_them() -> None:
    frame = rows_frame([{"n": np.array([np.nan, 1], np.float32)}] * 2, {"n": pl.List(pl.Float32)})
    assert frame["n"].explode().is_nan().to_list() == [True, False] * 2


def _file(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", compression_level=1)
    return buffer.getvalue()
