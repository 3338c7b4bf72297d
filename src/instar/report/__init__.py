"""Reports: what a run found, in pictures and words."""

from instar.report.pairs import draw_pairs, severity_text
from instar.report.picture import Panel, contact_sheet, draw_shapes, pair_picture, write_png
from instar.report.tables import show_tables
from instar.report.terminal import show_outcome, show_run, show_selection, show_slices

__all__ = ["Panel", "contact_sheet", "draw_pairs", "draw_shapes", "pair_picture", "severity_text", "show_outcome",
           "show_run", "show_selection", "show_slices", "show_tables", "write_png"]
