"""The command line. No logic of its own: commands read arguments, call the API and print."""

from instar.cli.main import app, main

__all__ = ["app", "main"]
