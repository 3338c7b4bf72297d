"""Rows of predictions on their way to the store: column by column, and what a row does not have is None."""

from __future__ import annotations

from instar.engine.messages import Rows
from instar.store import rows_frame
from instar.store.tables import PREDICTION, columns_frame

KEYED = {"case": "a", "draw": 0, "repeat": 0}
WELL = {**KEYED, "follow_up": "source", "status": "ok", "width": 4, "height": 3, "warp": b"\0" * 72}
MOVED = {**KEYED, "follow_up": "shift(0.1)", "status": "ok", "width": 4, "height": 3, "warp": b"\1" * 72}
FAILED = {**KEYED, "follow_up": "gamma(0.5)", "status": "error", "message": "it fell over"}


def test_rows_that_differ_in_what_they_have_come_back_as_they_were() -> None:
    rows = Rows.of([WELL, FAILED])
    assert len(rows) == 2
    assert rows.keys == [("source", 0, 0), ("gamma(0.5)", 0, 0)]
    assert rows.row(0) == {**WELL, "message": None}
    assert rows.row(1) == {**dict.fromkeys(WELL), **FAILED}
    assert rows.only([1]).row(0) == rows.row(1)
    assert len(rows.only([])) == 0


def test_rows_are_stored_alike_whether_they_came_one_by_one_or_together() -> None:
    """A message without a failure has no column for its text; one without an answer has none for a warp."""
    together = Rows.joined([Rows.of([WELL, MOVED]), Rows.of([FAILED]), Rows.of([MOVED])])
    one_by_one = rows_frame([WELL, MOVED, FAILED, MOVED], PREDICTION)
    assert columns_frame(together, PREDICTION).equals(one_by_one)
    whole = Rows.joined([Rows.of([WELL, MOVED])])
    assert columns_frame(whole, PREDICTION).equals(rows_frame([WELL, MOVED], PREDICTION))
