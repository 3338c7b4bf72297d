"""Instar: metamorphic testing of perception systems."""

__version__ = "0.1.0"
