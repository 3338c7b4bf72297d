"""What a report shows of MetaIC: what captions make of inserted objects."""

from __future__ import annotations

from collections.abc import Mapping

from instar.analysis import Run
from instar.report.panels import Panel, PanelContent, Table
from instar.report.tables import captions_prepared
from instar.tasks.meta_ic.analysis import caption_table

__all__ = ["PANELS"]


def _captions(run: Run, judging: str) -> PanelContent | None:
    table = caption_table(run, judging=judging)
    if not table["pairs"].sum():
        return None
    read = "as MetaIC's code had it" if run.manifest.options.get("reader") == "paper" else "by Instar"
    return PanelContent(
        "What captions make of it",
        "With an object inserted, a caption names what it named before, and that object; everything keeps its "
        f"grammatical number. Captions are understood {read}: `instar words` says how a caption is read.",
        tables=[Table(*captions_prepared(table))],
    )


PANELS: Mapping[str, Panel] = {"captions": Panel(of_run=_captions)}
