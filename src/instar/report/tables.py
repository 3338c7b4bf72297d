"""Tables in words: of a run, for a terminal, a page or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as TerminalTable


@dataclass(frozen=True, slots=True)
class Table:
    """A table in words. Where `by_threshold`, the columns after the first are the grid's thresholds."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    by_threshold: bool = False

    def records(self) -> list[dict[str, str]]:
        """Every row by the heads."""
        return [dict(zip(self.heads, row, strict=True)) for row in self.rows]


def show_tables(console: Console, tables: Sequence[Table], *, markdown: bool = False) -> None:
    """Print the tables that have rows, each under its caption."""
    wide = Console(file=console.file, width=max(console.width, 130))  # a table is read whole or not at all
    for table in tables:
        if not table.rows:
            continue
        if markdown:
            print(f"**{table.caption}**\n")
            print("\n".join(markdown_lines(table.heads, table.rows)), end="\n\n")
            continue
        printed = TerminalTable(box=None, pad_edge=False, header_style="bold")
        for number, head in enumerate(table.heads):
            printed.add_column(head, justify="right" if number else "left", no_wrap=True)
        for row in table.rows:
            printed.add_row(*row)
        wide.print(f"[bold]{table.caption}[/]", highlight=False)
        wide.print(printed)
        wide.print()


def markdown_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---"] + ["---:"] * (len(heads) - 1)) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
