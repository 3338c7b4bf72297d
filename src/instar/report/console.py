"""The console that commands print to: names from elsewhere are shown on it, and cannot speak to the terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import replace
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

    A table that is wider than the console has its words folded, never its numbers (the columns that do not wrap): a
    number that is cut is another number. Where these alone are wider, a terminal, which would break the lines, gets
    the columns in several tables, each with what names the rows; in a file the lines are as long as they have to be. A
    word is cut only where that keeps lines short enough.

    `worded` puts sentences into the words of whoever reads them.
    """

    def __init__(self, *, worded: Callable[[str], str] = str, **options: Any) -> None:
        super().__init__(**options)
        self._worded = worded

    def print(self, *objects: Any, **options: Any) -> None:
        shown: list[Any] = []
        for one in objects:
            if isinstance(one, Table):
                parts = self._fitting(one)
                if any((part.width or 0) > self.width for part in parts):
                    options = {**options, "crop": False}
                shown += [one for part in parts for one in ("", part)][1:]  # an empty line between two
            else:
                shown.append(_one_line(self._worded(one) if isinstance(one, str) else one))
        super().print(*shown, **options)

    def _fitting(self, table: Table) -> list[Table]:
        """The table, no wider than the console if that can be."""
        for column in table.columns:
            column._cells = [_one_line(cell) for cell in column._cells]
            column.overflow = "fold"
        if _gaps(table) + sum(_wanted(self, column) for column in table.columns) <= self.width:
            return [table]
        _fold_heads(self, table)
        parts = _parts(self, table) if self.is_terminal else [table]
        for part in parts:
            _fold_words(self, part)
        return parts

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and SPACE in renderable.plain:
            renderable = renderable.copy()
            renderable.plain = renderable.plain.replace(SPACE, _KEPT)
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text.replace(_KEPT, SPACE)), segment.style)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(text.replace(SPACE, _KEPT), **options)


def _gaps(table: Table) -> int:
    _, right, _, left = table.padding
    return (left + right) * (len(table.columns) - 1)


def _parts(console: Console, table: Table) -> list[Table]:
    """The table as it is, where folding its words makes it as narrow as the console; else as many of its columns at
    a time as fit beside the first ones, which tell the rows apart."""
    if _gaps(table) + sum(_cut(console, column) for column in table.columns) <= console.width:
        return [table]
    _, right, _, left = table.padding
    names = _naming(table.columns)
    named = sum(left + right + _whole(console, column, console.width // 4) for column in names)
    parts: list[list[Column]] = []
    room = 0
    for column in table.columns[len(names) :]:
        width = left + right + _whole(console, column)
        if width > room:
            parts.append([*names])
            room = console.width + left + right - named
        parts[-1].append(column)
        room -= width
    return [_with_columns(table, columns) for columns in parts] or [table]


def _naming(columns: Sequence[Column]) -> Sequence[Column]:
    """The first columns of a table, as many as tell its rows apart; one where all together do not."""
    cells = [_filled(map(str, column._cells)) for column in columns]
    for count in range(1, len(columns)):
        if len(set(zip(*cells[:count], strict=True))) == len(cells[0]):
            return columns[:count]
    return columns[:1]


def _filled(cells: Iterable[str]) -> list[str]:
    """The cells of a column; an empty one goes on with the one above it."""
    filled = [""]
    for cell in cells:
        filled.append(cell or filled[-1])
    return filled[1:]


def _with_columns(table: Table, columns: Sequence[Column]) -> Table:
    part = copy(table)
    part.columns = [replace(column, _index=place) for place, column in enumerate(columns)]
    return part


def _fold_words(console: Console, table: Table) -> None:
    """Make columns of words as narrow as the console asks for, with as few words cut as can be."""
    wanted = [_wanted(console, column) for column in table.columns]
    whole = [_whole(console, column) for column in table.columns]
    cut = [_cut(console, column) for column in table.columns]
    room = console.width - _gaps(table)
    widths = cut if sum(cut) <= room else [*whole]
    for place in sorted(range(len(widths)), key=lambda place: whole[place] - widths[place]):
        if sum(widths) - widths[place] + whole[place] <= room:
            widths[place] = whole[place]
    more, spare = sum(wanted) - sum(widths), max(0, room - sum(widths))
    for column, want, width in zip(table.columns, wanted, widths, strict=True):
        column.width = width + (min(want - width, spare * (want - width) // more) if more else 0)
    table.width = _gaps(table) + sum(column.width or 0 for column in table.columns)


def _wanted(console: Console, column: Column) -> int:
    """How wide a column wants to be."""
    return _widest(console, [column.header, *column._cells])


def _whole(console: Console, column: Column, least: int = _LEAST) -> int:
    """How narrow a column can be without a word cut of usual length, and wherever it is folded at `least`."""
    if column.no_wrap:
        return _wanted(console, column)
    longest_word = max(_least(console, cell) for cell in (column.header, *column._cells))
    return min(_wanted(console, column), max(least, min(_WORD, longest_word)))


def _cut(console: Console, column: Column) -> int:
    """How narrow a column can be."""
    return _wanted(console, column) if column.no_wrap else min(_wanted(console, column), _LEAST)


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
