"""Reports: what a run found, in pictures and words."""

from instar.report.drawing import draw_shapes
from instar.report.export import write_report
from instar.report.finding import Finding
from instar.report.findings import findings
from instar.report.panels import Choice, Panel, PanelContent, PaperFigure, TaskTables
from instar.report.picture import Annotated, contact_sheet, pair_picture, write_png
from instar.report.rebuild import draw_pairs, load_pair, load_source
from instar.report.run_tables import run_table
from instar.report.tables import Table, show_tables
from instar.report.terminal import show_outcome, show_run, show_selection, show_slices

# fmt: off
__all__ = [
    "Annotated", "Choice", "Finding", "Panel", "PanelContent", "PaperFigure", "Table", "TaskTables", "contact_sheet",
    "draw_pairs", "draw_shapes", "findings", "load_pair", "load_source", "pair_picture", "run_table", "show_outcome",
    "show_run", "show_selection", "show_slices", "show_tables", "write_png", "write_report",
]
# fmt: on
