"""The command line. No logic of its own: commands read arguments, call the API and print."""

from instar.cli.app import app, main

__all__ = ["app", "main"]
