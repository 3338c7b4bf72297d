"""Reports: what a run found, in pictures and pages."""

from instar.report.picture import contact_sheet, draw_shapes, pair_picture, write_png

__all__ = ["contact_sheet", "draw_shapes", "pair_picture", "write_png"]
