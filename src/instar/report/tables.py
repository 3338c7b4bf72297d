"""The papers' tables of a run, for a terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

__all__ = ["Prepared", "markdown_lines", "objects_prepared", "prepared", "show_tables"]

Prepared = tuple[str, list[str], list[list[str]]]
"""A table as text: a line that says what its numbers are, the heads, the rows."""
CAPTION_KINDS = ("misclassification", "omission", "number")

_WORDS = {"best_ade": "best ADE", "best_fde": "best FDE", "mean_ade": "mean ADE", "mean_fde": "mean FDE"}


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


def captions_prepared(table: pl.DataFrame) -> Prepared:
    """What insertions did to captions, per change."""
    exact = not table["verbatim"].is_null().all()
    rows = [
        [
            row["change"],
            *(f"{row[name]:,}" for name in ("pairs", "objects", "numbers", "either")),
            _with_interval({**row, "share_low": row["low"], "share_high": row["high"]}, "share"),
            *(f"{row[name]:,}" for name in CAPTION_KINDS),
            *(["–" if row["verbatim"] is None else f"{row['verbatim']:,}"] if exact else []),
        ]
        for row in table.iter_rows(named=True)
    ]
    return (
        "Pairs that break the relation of objects (MR1), of numbers (MR2), or either, its share in % with the 95 % "
        "interval; and by kind of error",
        [
            "change",
            "pairs",
            "objects",
            "numbers",
            "either",
            "share",
            *CAPTION_KINDS,
            *(["changed at all"] if exact else []),
        ],
        rows,
    )


def prepared(tables: Mapping[str, pl.DataFrame], p: float) -> list[Prepared]:
    """The tables of TrajTest."""
    prepared = [_preserving(tables["preserving"], p), _map(tables["map"])]
    if "agreement" in tables:
        prepared += [_agreement(tables["agreement"]), _displacement(tables["displacement"])]
    return prepared


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    if row[name] is None:
        return "–"
    return f"{_percent(row[name])} ({100 * row[f'{name}_low']:.0f}–{100 * row[f'{name}_high']:.0f})"


def _mean(middle: float | None, spread: float | None) -> str:
    if middle is None:
        return "–"
    return f"{middle:.3f}" if spread is None else f"{middle:.3f} ± {spread:.3f}"


def _preserving(table: pl.DataFrame, p: float) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [
            row["change"],
            str(row["judged"]),
            _with_interval(row, "wvc"),
            *(_percent(row[name]) for name in _WORDS),
            _mean(row["hvc"], row["hvc_sd"]),
        ]
        for row in table.iter_rows(named=True)
    ]
    return (
        f"What moves all alike: violations at p ≤ {p:g} in %, with the 95 % interval of wvc; hvc: mean ± deviation",
        ["change", "judged", "wvc", *_WORDS.values(), "hvc"],
        rows,
    )


def _map(table: pl.DataFrame) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [
            f"{row['change']}, {row['effect']}",
            str(row["judged"]),
            str(row["not_applicable"]),
            _with_interval(row, "confirmed"),
            _percent(row["inconclusive"]),
            _percent(row["wrong_way"]),
            _percent(row["cases_crossing"]),
            _percent(row["paths_crossing"]),
            _mean(row["hellinger"], row["hellinger_sd"]),
        ]
        for row in table.iter_rows(named=True)
    ]
    return (
        "What changes the map: outcomes in % of the judged pairs, confirmed with its 95 % interval; ×: crossing",
        ["change, effect", "judged", "n/a", "confirmed", "unclear", "wrong way", "pairs ×", "paths ×", "Hellinger"],
        rows,
    )


def _agreement(table: pl.DataFrame) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [
            f"{row['p']:g}",
            _WORDS[row["measure"]],
            str(row["pairs"]),
            *(_percent(row[name]) for name in ("accuracy", "precision", "recall")),
        ]
        for row in table.iter_rows(named=True)
    ]
    return (
        "wvc as a predictor of a changed displacement from the truth, in %, by the level of p",
        ["p", "measure", "pairs", "accuracy", "precision", "recall"],
        rows,
    )


def _displacement(table: pl.DataFrame) -> tuple[str, list[str], list[list[str]]]:
    means = table.select(*_WORDS).mean().row(0, named=True) if not table.is_empty() else {}
    rows = [[_WORDS[name], f"{value:.2f}"] for name, value in means.items()]
    return (
        f"Displacement of the source's predictions from the truth, mean over {table['case'].n_unique()} cases",
        ["measure", "pixels"],
        rows,
    )
