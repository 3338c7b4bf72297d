"""Numbers read alike in the report, the viewer and the terminal."""

from __future__ import annotations

from io import StringIO

import polars as pl
from markupsafe import Markup
from rich.console import Console

from instar.report.terminal import show_slices
from instar.report.words import percent
from instar.viewer.app import _ENVIRONMENT


def test_a_small_share_is_never_nothing() -> None:
    assert percent(0.004) == "<1\u00a0%"
    assert Markup(_ENVIRONMENT.from_string("{{ 0.004 | percent }}").render()).unescape() == percent(0.004)
    row = {"property": "size", "value": "large", "failing": 1, "cases": 250, "rate": 0.004, "low": 0.001, "high": 0.02}
    printed = StringIO()
    table = pl.DataFrame([{**row, "elsewhere": 0.998, "effect": -0.5, "p": 0.5, "p_corrected": 0.5}])
    show_slices(Console(file=printed, width=200), table, limits="a rule is violated from 0.2 on")
    assert percent(0.004) in printed.getvalue() and ">99" in printed.getvalue()
