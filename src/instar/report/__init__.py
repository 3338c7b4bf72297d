"""Reports: what a run found, in pictures and words."""

from instar.report.drawing import draw_shapes
from instar.report.export import FORMATS, write_report
from instar.report.marks import marked_pairs
from instar.report.panels import Panel, PanelContent, TaskTables
from instar.report.picture import Annotated, contact_sheet, encoded, pair_picture, panel_picture, write_png
from instar.report.rebuild import CannotDraw, Pair, draw_pairs, load_pair, load_source
from instar.report.run_tables import TABLES, run_table
from instar.report.tables import Table, show_tables
from instar.report.terminal import show_outcome, show_run, show_selection, show_slices
from instar.report.words import severity_text

# fmt: off
__all__ = [
    "FORMATS", "TABLES", "Annotated", "CannotDraw", "Pair", "Panel", "PanelContent", "Table", "TaskTables",
    "contact_sheet", "draw_pairs", "draw_shapes", "encoded", "load_pair", "load_source", "marked_pairs",
    "pair_picture", "panel_picture", "run_table", "severity_text", "show_outcome", "show_run", "show_selection",
    "show_slices", "show_tables", "write_png", "write_report",
]
# fmt: on
