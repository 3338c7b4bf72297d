"""The viewer: a run's pairs in the browser, on this machine alone."""

from instar.report.viewer.app import application
from instar.report.viewer.server import serve

__all__ = ["application", "serve"]
