"""The papers' tables of a run, for a terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

__all__ = ["Prepared", "markdown_lines", "objects_prepared", "show_tables"]

Prepared = tuple[str, list[str], list[list[str]]]
"""A table as text: a line that says what its numbers are, the heads, the rows."""


def show_tables(console: Console, tables: Sequence[Prepared], *, markdown: bool = False) -> None:
    """Print the tables, each with a line that says what its numbers are."""
    wide = Console(file=console.file, width=max(console.width, 130))  # a table is read whole or not at all
    for title, heads, rows in tables:
        if not rows:
            continue
        if markdown:
            print(f"**{title}**\n")
            print("\n".join(markdown_lines(heads, rows)), end="\n\n")
            continue
        table = Table(box=None, pad_edge=False, header_style="bold")
        for number, head in enumerate(heads):
            table.add_column(head, justify="right" if number else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        wide.print(f"[bold]{title}[/]", highlight=False)
        wide.print(table)
        wide.print()


def markdown_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---"] + ["---:"] * (len(heads) - 1)) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


_OBJECTS = ("objects", "missing", "incorrect", "persists")
_IMAGES = ("images", "images_missing", "images_incorrect", "images_persists", "images_none")


def objects_prepared(table: pl.DataFrame) -> Prepared:
    """The outcomes of object relevance, by object and by image."""
    rows = [
        [
            row["rule"].partition(" => ")[0],
            *(f"{row[name]:,}" for name in _OBJECTS),
            _with_interval({**row, "unreliable_low": row["low"], "unreliable_high": row["high"]}, "unreliable"),
            *(f"{row[name]:,}" for name in _IMAGES),
            _percent(row["still_found"]),
        ]
        for row in table.iter_rows(named=True)
    ]
    return (
        "Objects by outcome, the unreliable in % with their 95 % interval; images by outcome; of the objects found "
        "in the source, those still found in %",
        [
            "change",
            *_OBJECTS,
            "unreliable",
            "images",
            *(name.removeprefix("images_") for name in _IMAGES[1:]),
            "still found",
        ],
        rows,
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    if row[name] is None:
        return "–"
    return f"{_percent(row[name])} ({100 * row[f'{name}_low']:.0f}–{100 * row[f'{name}_high']:.0f})"
