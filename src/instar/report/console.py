"""The console that commands print to: names from elsewhere are shown on it, and cannot speak to the terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from instar.report.words import SPACE, one_line, visible

_KEPT = "\ue000"
"""Stands for a space at which no line is broken, while lines are: for rich every space is one."""
_LEAST = 12
"""How narrow a column of words may become where lines would else be too long. Columns of numbers keep their width."""
_WORD = 24
"""Letters of a word that are not cut where lines are long enough, or too long anyhow."""


def headed_table(heads: Sequence[str], *, words: Collection[str]) -> Table:
    """A table whose columns of words may be folded; the others hold numbers, and never are."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, justify="left" if head in words else "right", no_wrap=head not in words)
    return table


def show_title(console: Console, name: str, what: str) -> None:
    """The line above a table: its name, and what it counts."""
    console.print(f"\n[bold]{name}[/], {escape(what)}", highlight=False)


def show_sentence(console: Console, words: str, style: str | None = None) -> None:
    """A sentence as it is; a file, or a program that reads it, gets it in one line."""
    console.print(words, style=style, markup=False, highlight=False, soft_wrap=not console.is_terminal)


class PlainConsole(Console):
    """Styles are its own: signs in a text that would move the cursor or turn the writing round are shown as �. A
    sentence and a cell of a table are one line, so that no name can pass for a sentence or a row.

    A table that is wider than the console has its words folded, never its numbers (the columns that do not wrap);
    where these alone are wider, so are its lines: a number that is cut is another number. A word is cut only where
    that keeps lines short enough.

    `worded` puts sentences into the words of whoever reads them.
    """

    def __init__(self, *, worded: Callable[[str], str] = str, **options: Any) -> None:
        super().__init__(**options)
        self._worded = worded

    def print(self, *objects: Any, **options: Any) -> None:
        for table in (one for one in objects if isinstance(one, Table)):
            for column in table.columns:
                column._cells = [_one_line(cell) for cell in column._cells]
                column.overflow = "fold"
            if _table_width(self, table) > self.width:
                _fold_heads(self, table)
                if _fold_words(self, table) > self.width:
                    options = {**options, "crop": False}
        texts = (self._worded(one) if isinstance(one, str) else one for one in objects)
        super().print(*map(_one_line, texts), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and SPACE in renderable.plain:
            renderable = renderable.copy()
            renderable.plain = renderable.plain.replace(SPACE, _KEPT)
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text.replace(_KEPT, SPACE)), segment.style)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(text.replace(SPACE, _KEPT), **options)


def _table_width(console: Console, table: Table) -> int:
    """How wide a table wants to be."""
    return _gaps(table) + sum(_widest(console, [column.header, *column._cells]) for column in table.columns)


def _gaps(table: Table) -> int:
    _, right, _, left = table.padding
    return (left + right) * (len(table.columns) - 1)


def _fold_words(console: Console, table: Table) -> int:
    """Make columns of words as narrow as the console asks for, with as few words cut as can be; returns how wide the
    table is."""
    wanted = [_widest(console, [column.header, *column._cells]) for column in table.columns]
    whole = [
        want if column.no_wrap else min(want, max(_LEAST, min(_WORD, _longest_word(console, column))))
        for want, column in zip(wanted, table.columns, strict=True)
    ]
    cut = [want if column.no_wrap else min(want, _LEAST) for want, column in zip(wanted, table.columns, strict=True)]
    room = console.width - _gaps(table)
    widths = cut if sum(cut) <= room else [*whole]
    for place in sorted(range(len(widths)), key=lambda place: whole[place] - widths[place]):
        if sum(widths) - widths[place] + whole[place] <= room:
            widths[place] = whole[place]
    more, spare = sum(wanted) - sum(widths), max(0, room - sum(widths))
    for column, want, width in zip(table.columns, wanted, widths, strict=True):
        column.width = width + (min(want - width, spare * (want - width) // more) if more else 0)
    table.width = _gaps(table) + sum(column.width or 0 for column in table.columns)
    return table.width


def _longest_word(console: Console, column: Column) -> int:
    return max((_least(console, cell) for cell in (column.header, *column._cells)), default=0)


def _least(console: Console, cell: RenderableType) -> int:
    return Measurement.get(console, console.options.update_width(10_000), cell).minimum


def _widest(console: Console, cells: Iterable[RenderableType]) -> int:
    options = console.options.update_width(10_000)
    return max((Measurement.get(console, options, cell).maximum for cell in cells), default=0)


def _fold_heads(console: Console, table: Table) -> None:
    """Write the heads of columns that do not wrap in several lines, where they are wider than what stands below."""
    for column in table.columns:
        if column.no_wrap and isinstance(column.header, str):
            longest = max(map(cell_len, column.header.split(" ")))
            lines = textwrap.wrap(column.header, max(longest, _widest(console, column._cells)), break_on_hyphens=False)
            column.header = "\n".join(lines)


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
