"""The viewer: a run's pairs in the browser, on this machine alone."""

from instar.viewer.app import application
from instar.viewer.page import CaseLink, Page, ShownCase
from instar.viewer.server import serve

__all__ = ["CaseLink", "Page", "ShownCase", "application", "serve"]
