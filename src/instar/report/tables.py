"""Tables in words: of a run, for a terminal, a page, as Markdown or as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from instar.files import place_file
from instar.report.words import markdown_text

_NUMBER = re.compile(
    r"[<>±≤≥]?\s*[-+−]?(∞|\d[\d,]*(\.\d+)?(e[-+]?\d+)?|\.\d+)(?![\w.@]|/\D)|[–-]?$|(beyond|no change)$"
)
"""How a cell begins that holds a number, nothing, or the end of a scale; a file may be called `12.jpg`."""
CASES = "case"
"""The head over the names of cases, which are no numbers even where they are spelled like some."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in words. Where `by_threshold`, the columns after the first are the grid's thresholds."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    by_threshold: bool = False

    @property
    def numbers(self) -> list[bool]:
        """Which columns hold numbers, so that they stand at the right; the first one names the rows.

        >>> Table("", ["from", "to", "pairs", "share"], [["cat", "dog", "1", "<1 %"], ["cat", "cow", "2", "–"]]).numbers
        [False, False, True, True]
        >>> Table("", ["way", "file", "case"], [["blur", "12.jpg", "7"]]).numbers
        [False, False, False]
        """
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.heads)
        named = zip(self.heads[1:], columns[1:], strict=True)
        return [False, *(head != CASES and all(_NUMBER.match(cell) for cell in column) for head, column in named)]

    def records(self) -> list[dict[str, str]]:
        """Every row by the heads."""
        return [dict(zip(self.heads, row, strict=True)) for row in self.rows]


WORDS = 20
"""A column with a longer cell holds words, which may be folded; the others hold numbers or names as short."""


def show_tables(console: Console, tables: Sequence[Table], *, markdown: bool = False) -> None:
    """Print the tables that have rows, each under its caption."""
    for table in tables:
        if not table.rows:
            continue
        if markdown:
            print(f"**{markdown_text(table.caption)}**\n")
            print("\n".join(markdown_lines(table.heads, table.rows)), end="\n\n")
            continue
        printed = TerminalTable(box=None, pad_edge=False, header_style="bold")
        for number, head in enumerate(table.heads):
            longest = max(len(row[number]) for row in table.rows)
            printed.add_column(head, justify="right" if number else "left", no_wrap=longest <= WORDS)
        for row in table.rows:
            printed.add_row(*map(Text, row))
        console.print(Text(table.caption, style="bold"))
        console.print(printed)
        console.print()


def markdown_lines(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table in Markdown, with all cells escaped."""
    lines = [_markdown_row(heads), "|" + "|".join(["---"] + ["---:"] * (len(heads) - 1)) + "|"]
    return [*lines, *map(_markdown_row, rows)]


def _markdown_row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(markdown_text, cells))} |"


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a text begins with that a spreadsheet takes for a formula."""
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> Path:
    """Write a table for people and their spreadsheets: nothing in it is a formula, whatever a case is called."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([_cell(name) for name in columns])
    writer.writerows([_cell(row.get(name, "")) for name in columns] for row in rows)
    return place_file(path, text.getvalue().encode("utf-8-sig", "backslashreplace"))


def _cell(value: object) -> object:
    """Numbers stay numbers, also in words; any other text that begins like a formula begins with an apostrophe."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    return value if NUMBER.fullmatch(value) else f"'{value}"
