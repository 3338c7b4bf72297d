"""What a report shows of TrajTest: the tables of its paper."""

from __future__ import annotations

from collections.abc import Mapping

from instar.analysis import Run
from instar.report.panels import Panel, PanelContent, Table
from instar.report.tables import prepared
from instar.tasks.traj_test.analysis import trajectory_tables

__all__ = ["PANELS"]


def _trajtest(run: Run, judging: str) -> PanelContent | None:
    p = 0.05
    tables = [
        Table(title, heads, rows)
        for title, heads, rows in prepared(trajectory_tables(run, p=p, judging=judging), p)
        if rows
    ]
    return PanelContent("TrajTest's tables", tables=tables) if tables else None


PANELS: Mapping[str, Panel] = {"trajtest": Panel(of_run=_trajtest)}
