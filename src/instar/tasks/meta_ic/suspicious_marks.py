"""Suspicious pairs that people mark in `pairs.csv`: which mark is whose, in a file and in the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from instar.relations import named_rule
from instar.report.mark_files import file_rows, mark_of
from instar.report.words import count_of
from instar.store import FALSE_ALARM, REAL, Mark

PAIRS = "pairs.csv"
MARK, COMMENT = "is_error", "comment"
CELLS = {REAL: "true", FALSE_ALARM: "false"}
"""How a mark is written there; what is unclear has none."""

Written = tuple[str, str]
"""What a person wrote to a pair: the mark, and the comment."""


def line_key(cells: Mapping[str, object]) -> tuple[str, ...]:
    """Case, change, inserted object and both captions; a spreadsheet's apostrophe is none of them."""
    change = named_rule(str(cells["rule"])).left
    texts = (str(cells[name]) for name in ("case", "inserted", "source", "follow_up"))
    return change, *(text.lstrip("'") for text in texts)


def written_marks(file: Path) -> dict[tuple[str, ...], list[Written]]:
    """What people wrote into a file of pairs. A mark that is none is told with its line."""
    written: dict[tuple[str, ...], list[Written]] = {}
    wrong = []
    for number, row in file_rows(file):
        if mark_of(row["mark"]) is None:
            wrong.append(f"line {number}: {row['mark']!r}")
        elif row["mark"].strip() or row.get("note"):
            written.setdefault(line_key(row), []).append((row["mark"], row.get("note", "")))
    if wrong:
        raise ValueError(
            f"{file} has {count_of(len(wrong), 'mark')} in {MARK} that cannot be read: {', '.join(wrong[:5])}. Allowed "
            "are true, yes or 1 for an error, false, no or 0 for none; leave it empty where you do not know"
        )
    return written


def cells_of(mark: Mark) -> dict[str, str]:
    """A mark of the run as it stands in a file of pairs."""
    return {MARK: CELLS.get(mark.mark, ""), COMMENT: mark.note}
