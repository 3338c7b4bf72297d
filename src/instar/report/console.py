"""The console that commands print to: names from elsewhere are shown on it, and cannot speak to the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from instar.report.words import one_line, visible


class PlainConsole(Console):
    """Styles are its own: signs in a text that would move the cursor or turn the writing round are shown as �. A
    sentence and a cell of a table are one line, so that no name can pass for a sentence or a row."""

    def print(self, *objects: Any, **options: Any) -> None:
        for table in (one for one in objects if isinstance(one, Table)):
            for column in table.columns:
                column._cells = [_one_line(cell) for cell in column._cells]
        super().print(*map(_one_line, objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def _one_line(text: RenderableType) -> RenderableType:
    """A text in one line; empty lines before it are ours."""
    if isinstance(text, str):
        words = text.lstrip("\n")
        return text[: len(text) - len(words)] + one_line(words)
    if isinstance(text, Text) and re.search(r"[\r\n\t]", text.plain):
        line = text.copy()
        line.plain = re.sub(r"[\r\n\t]", " ", text.plain)  # sign by sign: its styles are by their places
        return line
    return text
