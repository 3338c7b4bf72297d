"""Two runs compared: an interval that leaves out 0 beside a p that calls nothing sure is explained."""

from __future__ import annotations

import io

import polars as pl
import pytest

from instar.report.console import PlainConsole
from instar.report.verdict import Verdict, show_verdict

ROW = {"name": "mirror(h)", "rule": "mirror(h) => poses", "group": "mirror", "cases": 12, "first": 1, "second": 5}


@pytest.mark.parametrize(
    ("low", "p", "explained"),
    [(0.02, 0.13, True), (-0.1, 0.13, False), (0.02, 0.01, False)],
    ids=["the interval leaves out 0", "it has 0", "both say so"],
)
def test_an_interval_that_contradicts_p_is_explained(low: float, p: float, explained: bool) -> None:
    rules = pl.DataFrame([{**ROW, "difference": 0.33, "low": low, "high": 0.6, "p_corrected": p}])
    console = PlainConsole(file=io.StringIO(), width=200)
    flips = pl.DataFrame(schema={"worse": pl.Boolean})
    show_verdict(console, Verdict("a", "b", (), (), 12, "violated from 0.2 up", rules, rules, flips))
    assert isinstance(console.file, io.StringIO)
    assert ("may be above 0.05 where the interval leaves out 0" in console.file.getvalue()) is explained


def test_a_pair_that_changed_does_not_read_as_if_it_had_not() -> None:
    """0.1997 is kept and 0.2003 is violated: both rounded to 0.2 they would look alike."""
    rules = pl.DataFrame([{**ROW, "difference": 0.33, "low": 0.1, "high": 0.6, "p_corrected": 0.01}])
    pair = {"case": "a.png", "rule": ROW["rule"], "worse": True, "first": 0.1997, "second": 0.2003, "threshold": 0.2}
    console = PlainConsole(file=io.StringIO(), width=200)
    show_verdict(console, Verdict("a", "b", (), (), 12, "violated from 0.2 up", rules, rules, pl.DataFrame([pair])))
    assert isinstance(console.file, io.StringIO)
    (line,) = (line.split() for line in console.file.getvalue().splitlines() if line.endswith("a.png"))
    assert line[:2] == ["0.1997", "0.2"]
