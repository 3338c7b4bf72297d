"""Suspicious pairs that people have marked: which of them are errors, and how precise the relations are."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from instar.relations import named_rule
from instar.report.tables import Table
from instar.report.words import count_of, of_total, rate_text
from instar.stats import wilson

PAIRS = "pairs.csv"
MARK = "is_error"
MARKS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""What the column of marks may hold, in capitals or not; an empty one is no mark."""
EVERY = "all"
_DELIMITERS = (",", ";", "\t")
_LISTED = 5
"""Bad marks that an error names."""

SCHEMA = {"by": pl.String, "name": pl.String, "pairs": pl.Int64, "marked": pl.Int64, "errors": pl.Int64}


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """A line of `pairs.csv`, and whether a person marked it as an error; None where nobody did."""

    cells: Mapping[str, str]
    is_error: bool | None

    @property
    def change(self) -> str:
        return named_rule(self.cells["rule"]).left

    @property
    def relations(self) -> list[str]:
        """The relations that the pair breaks; none in a file that does not say."""
        return [name.strip() for name in self.cells.get("relations", "").split(",") if name.strip()]

    @property
    def key(self) -> tuple[str, ...]:
        """What tells the pair from others, also in the file of another export."""
        return line_key(self.cells)


def line_key(cells: Mapping[str, object]) -> tuple[str, ...]:
    """Case, change, inserted object and both captions; a spreadsheet's apostrophe is none of them."""
    change = named_rule(str(cells["rule"])).left
    texts = (str(cells[name]) for name in ("case", "inserted", "source", "follow_up"))
    return change, *(text.lstrip("'") for text in texts)


def read_marks(path: Path) -> list[MarkedLine]:
    """The lines of a file of pairs, or of the one in a folder. A mark that is none is told with its line."""
    file = path / PAIRS if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"there is no {file}: `instar captions suspicious` writes suspicious pairs into a folder")
    text = file.read_bytes().decode("utf-8-sig", "replace")
    rows = _rows(text)
    needed = [name for name in ("pair", "case", "rule", MARK) if not rows or name not in rows[0]]
    if needed:
        raise ValueError(
            f"{file} has no column {', '.join(needed)}: it is not the {PAIRS} that suspicious pairs are written to, or "
            "it was not saved as CSV"
        )
    wrong = [
        f"line {number}: {row[MARK]!r}"
        for number, row in enumerate(rows, 2)
        if row[MARK].strip() and row[MARK].strip().lower() not in MARKS
    ]
    if wrong:
        more = f" and {len(wrong) - _LISTED} more" if len(wrong) > _LISTED else ""
        raise ValueError(
            f"{file} has {count_of(len(wrong), 'mark')} in {MARK} that cannot be read: "
            f"{', '.join(wrong[:_LISTED])}{more}. Allowed are true, yes or 1 for an error, false, no or 0 for none; "
            "leave it empty where you do not know"
        )
    _refuse_doubles(file, rows)
    return [MarkedLine(row, MARKS.get(row[MARK].strip().lower())) for row in rows]


def _rows(text: str) -> list[dict[str, str]]:
    """Spreadsheets put a semicolon or a tab between cells where a comma is part of numbers."""
    for delimiter in _DELIMITERS:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        if MARK in (reader.fieldnames or ()):
            return [{name: cell or "" for name, cell in row.items() if isinstance(name, str)} for row in reader]
    return []


def _refuse_doubles(file: Path, rows: Sequence[Mapping[str, str]]) -> None:
    lines: dict[str, int] = {}
    for number, row in enumerate(rows, 2):
        if row["pair"] in lines:
            raise ValueError(
                f"{file} has pair {row['pair']} in line {lines[row['pair']]} and in line {number}; a pair counts once: "
                "delete one of them"
            )
        lines[row["pair"]] = number


def precision_table(lines: Sequence[MarkedLine]) -> pl.DataFrame:
    """How many pairs are marked, how many of these are errors, and their share with its 95 % interval.

    All pairs; by the relation that they break (a pair may break several), and by the change that was made.
    """
    if not any(line.is_error is not None for line in lines):
        pairs = count_of(len(lines), "pair")
        raise ValueError(f"{pairs}, and none is marked: write true or false into the column {MARK}")
    sets: dict[tuple[str, str], list[MarkedLine]] = {(EVERY, EVERY): list(lines)}
    for line in lines:
        for name in line.relations:
            sets.setdefault(("relation", name), []).append(line)
    for line in lines:
        sets.setdefault(("change", line.change), []).append(line)
    rows = []
    for (by, name), some in sets.items():
        marked = [line for line in some if line.is_error is not None]
        errors = sum(line.is_error is True for line in marked)
        share = (errors / len(marked), *wilson(errors, len(marked))) if marked else (None, None, None)
        rows.append((by, name, len(some), len(marked), errors, *share))
    shares = dict.fromkeys(("precision", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, orient="row", schema={**SCHEMA, **shares})


def precision_in_words(table: pl.DataFrame) -> Table:
    rows = [
        [
            row["name"] if row["by"] == EVERY else f"{row['by']} {row['name']}",
            *(f"{row[name]:,}" for name in ("pairs", "marked", "errors")),
            rate_text(row["precision"], row["low"], row["high"], digits=1),
        ]
        for row in table.iter_rows(named=True)
    ]
    caption = (
        "Suspicious pairs that people marked: how many are errors, and which share of the marked ones that is, with "
        "its 95 % interval"
    )
    return Table(caption, ["pairs of", "pairs", "marked", "errors", "precision"], rows)


def precision_notes(lines: Sequence[MarkedLine]) -> list[str]:
    """What the numbers do not say: pairs that nobody marked, and those that were looked at first."""
    marked = [line.is_error is not None for line in lines]
    images = len({line.cells["case"] for line in lines if line.is_error is not None})
    notes = [f"The interval takes pairs to be independent; the marked ones are of {count_of(images, 'image')}."]
    if not all(marked):
        notes.append(f"{of_total(sum(marked), len(lines), 'pair')} {'is' if sum(marked) == 1 else 'are'} marked.")
        if all(marked[: sum(marked)]):
            notes.append(
                "The marked ones are the first of the file, where the worst are: they do not speak for the others. "
                "Mark all, or pairs drawn by chance."
            )
    return notes
