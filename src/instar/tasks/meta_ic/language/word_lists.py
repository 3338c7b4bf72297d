"""Lists of words are data: TOML files beside this module, read when they are used for the first time."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def read_table(name: str) -> dict[str, Any]:
    """The content of a TOML file beside this module."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))


def word_sets(name: str) -> dict[str, frozenset[str]]:
    """The lists of a file that stand outside of its tables, by name: texts with white space between the words."""
    return {key: frozenset(text.split()) for key, text in read_table(name).items() if isinstance(text, str)}
