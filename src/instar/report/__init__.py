"""Reports: what a run found, in pictures and words."""

from instar.report.drawing import draw_shapes
from instar.report.export import FORMATS, write_report
from instar.report.picture import Annotated, contact_sheet, encoded, pair_picture, panel_picture, write_png
from instar.report.rebuild import CannotDraw, Pair, draw_pairs, load_pair, load_source
from instar.report.run_tables import TABLES, run_table
from instar.report.spoken import ROLES, Segment, Spoken, spoken
from instar.report.tables import captions_prepared, objects_prepared, prepared, show_tables
from instar.report.terminal import show_outcome, show_run, show_selection, show_slices
from instar.report.words import severity_text
from instar.tasks.meta_ic.suspicious import Suspicious, export_suspicious
from instar.tasks.object_relevance.explain import Explained, explain, explanation_picture

__all__ = [
    "FORMATS",
    "ROLES",
    "TABLES",
    "Annotated",
    "CannotDraw",
    "Explained",
    "Pair",
    "Segment",
    "Spoken",
    "Suspicious",
    "captions_prepared",
    "contact_sheet",
    "draw_pairs",
    "draw_shapes",
    "encoded",
    "explain",
    "explanation_picture",
    "export_suspicious",
    "load_pair",
    "load_source",
    "objects_prepared",
    "pair_picture",
    "panel_picture",
    "prepared",
    "run_table",
    "severity_text",
    "show_outcome",
    "show_run",
    "show_selection",
    "show_slices",
    "show_tables",
    "spoken",
    "write_png",
    "write_report",
]
