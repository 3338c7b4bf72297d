"""What a report shows of object relevance: which objects are found because of themselves."""

from __future__ import annotations

from collections.abc import Mapping

from instar.analysis import Run
from instar.report.panel_figures import object_curves
from instar.report.panels import Panel, PanelContent, Table
from instar.report.section import Section
from instar.report.tables import objects_prepared
from instar.tasks.object_relevance.analysis import object_table

__all__ = ["PANELS"]


def _objects(run: Run, section: Section, judging: str) -> PanelContent | None:
    if section.relation != "presence":
        return None
    table = object_table(run, judging=judging)
    own = (
        ""
        if run.manifest.truth
        else (" Nothing is annotated: objects are what the system found in the source with a score of at least 0.5.")
    )
    return PanelContent(
        "Is it found because of itself?",
        "An inference is unreliable where at least two of three follow-ups break the relation: an object that nothing "
        "relevant happened to is missing, or incorrectly found; one that was erased persists. An image counts once in "
        "each outcome it shows." + own,
        object_curves(table, section),
        [Table(*objects_prepared(table))],
    )


PANELS: Mapping[str, Panel] = {"objects": Panel(of_relation=_objects)}
