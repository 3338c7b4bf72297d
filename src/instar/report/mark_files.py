"""Marks of pairs in files: CSV for spreadsheets, JSON Lines for programs. What is read must be pairs of the run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl

from instar.analysis import Run
from instar.analysis.precision import MARK_COLUMNS, marked, marked_labels
from instar.engine import DEFAULT
from instar.files import place_file, storable
from instar.relations import named_rule
from instar.report.tables import FORMULA, NUMBER, write_csv
from instar.report.words import count_of
from instar.spelling import nearest
from instar.store import FALSE_ALARM, LABEL, MARKS, REAL, Mark, changing_marks, new_mark, of_cases, stored_marks
from instar.store.marks import Key

WORDS = {
    **{mark: mark for mark in MARKS},
    **dict.fromkeys(("true", "yes", "1"), REAL),
    **dict.fromkeys(("false", "no", "0"), FALSE_ALARM),
}
"""What may stand for a mark in a file, in capitals or not; nothing is no mark."""
NAMES = {"is_error": "mark", "comment": "note"}
"""What columns are called in lists of suspicious pairs, and what they are here."""
COLUMNS = (*MARK_COLUMNS, "severity", "kind", "system")
SUFFIXES = (".csv", ".jsonl")
_DELIMITERS = (",", ";", "\t")
_LISTED = 5
"""Lines that an error names."""


class Conflict(ValueError):
    """Marks in a file that are others than those of the run."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file of marks: how many are new, replaced, the same as before; lines without a mark."""

    new: int
    replaced: int
    same: int
    empty: int


# --- writing ---------------------------------------------------------------------------------------


def export_marks(
    run: Run, path: Path, *, unmarked: bool = False, threshold: float | None = None, judging: str = DEFAULT
) -> int:
    """Write the marks of a run, as .csv or .jsonl; returns how many lines there are. With `unmarked` the violated pairs
    that nobody marked are there too, with an empty mark to be filled in."""
    _refuse_suffix(path)
    rows = marked(run, threshold, judging=judging)
    if unmarked:
        rows = pl.concat([rows, _unmarked(run, rows, threshold, judging)], how="diagonal")
    rows = rows.with_columns(system=pl.lit(run.manifest.system.fingerprint))
    rows = pl.concat([rows, marked_labels(stored_marks(run.store).values())], how="diagonal").select(COLUMNS)
    lines = [{name: "" if value is None else value for name, value in row.items()} for row in rows.to_dicts()]
    if path.suffix == ".csv":
        write_csv(path, COLUMNS, lines)
    else:
        texts = (json.dumps(_finite(line), ensure_ascii=False) + "\n" for line in lines)
        place_file(path, storable("".join(texts)).encode())
    return len(lines)


def _unmarked(run: Run, marks: pl.DataFrame, threshold: float | None, judging: str) -> pl.DataFrame:
    """The violated pairs that nobody marked, in an order of chance: the first of them speak for all."""
    matrix = run.severities(judging).only(run.changing_rules()).per_case()
    rules, cases = np.nonzero(matrix.violated(run.thresholds(threshold)))
    names = pl.Series([matrix.rules[rule] for rule in rules], dtype=pl.String)
    pairs = pl.DataFrame({"case": matrix.cases.gather(cases), "rule": names}).sample(fraction=1, shuffle=True, seed=0)
    violated = run.verdicts_of(pairs, judging=judging).select("case", "rule", "target", "severity", "kind")
    for keys in (["case", "rule", "target"], ["case", "rule"]):
        there = marks if "target" in keys else marks.filter(target="")
        violated = violated.join(there, on=keys, how="anti", maintain_order="left")
    return violated


def _finite(line: Mapping[str, object]) -> dict[str, object]:
    """JSON has no ∞."""
    return {name: "inf" if value == float("inf") else value for name, value in line.items()}


def _refuse_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: marks are in a file that ends in {' or '.join(SUFFIXES)}")


# --- reading ---------------------------------------------------------------------------------------


def file_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The lines of a file of marks with their numbers, each cell by its column, which has a name of `MARK_COLUMNS`
    where it means that. Raises ValueError where there is no column of marks."""
    _refuse_suffix(path)
    try:
        text = path.read_bytes().decode("utf-8-sig", "replace")
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder; give the file in it that has the marks") from None
    rows = list(_json_rows(path, text) if path.suffix == ".jsonl" else _csv_rows(path, text))
    rows = [(number, _of_label(row)) for number, row in rows]
    needed = [name for name in ("case", "rule", "mark") if not all(name in row for _, row in rows)]
    if needed or not rows:
        raise ValueError(
            f"{path} has no {'line' if not rows else 'column ' + ', '.join(needed)}: a file of marks has the columns "
            "case, rule and mark (or is_error), and may have target and note; `instar marks` writes one"
        )
    return rows


def _of_label(row: dict[str, str]) -> dict[str, str]:
    """A line about a label of the dataset has the label in the place of a rule."""
    return {**row, "rule": LABEL, "target": row["label"]} if "label" in row and "rule" not in row else row


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Spreadsheets put a semicolon or a tab between cells where a comma is part of numbers."""
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    try:
        for row in reader:
            cells = {
                name: _plain(cell) for name, cell in row.items() if isinstance(name, str) and isinstance(cell, str)
            }
            yield reader.line_num, {NAMES.get(name, name): cell for name, cell in cells.items()}
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None


def _plain(cell: str) -> str:
    """A cell without the apostrophe that keeps a spreadsheet from taking it for a formula."""
    bare = cell[1:]
    return bare if cell[:1] == "'" and bare.startswith(FORMULA) and not NUMBER.fullmatch(bare) else cell


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise ValueError(f"{path}, line {number}: it is no JSON object")
        texts = {str(name): "" if value is None else str(value) for name, value in values.items()}
        yield number, {NAMES.get(name, name): text for name, text in texts.items()}


def mark_of(text: str) -> str | None:
    """The mark that a cell stands for; empty where it is, and None where it is no mark."""
    word = text.strip().lower()
    return WORDS.get(word) if word else ""


def import_marks(run: Run, path: Path, *, replace: bool = False) -> Imported:
    """Add the marks of a file to those of a run. All of them are stored, or none.

    Raises ValueError for cases, rules, targets and marks that are none, each with its line and the nearest, and
    Conflict where the run has another mark of the same pair, unless it may be `replaced`.
    """
    marks, empty = _checked(run, path, file_rows(path))
    with changing_marks(run.store) as stored:
        others = [key for key, mark in marks.items() if key in stored and _differs(stored[key], mark)]
        if others and not replace:
            listed = "; ".join(_both(stored[key], marks[key]) for key in others[:_LISTED])
            raise Conflict(
                f"{path} has {count_of(len(others), 'mark')} that {'is' if len(others) == 1 else 'are'} not what "
                f"{run.folder} has: {_with_more(listed, len(others))}. Nothing was stored; the parameter replace takes "
                "those of the file"
            )
        new = [key for key in marks if key not in stored]
        stored |= {key: marks[key] for key in (*new, *others)}
    return Imported(len(new), len(others), len(marks) - len(new) - len(others), empty)


def _differs(stored: Mark, mark: Mark) -> bool:
    """A file without a note does not take away the one that is there."""
    return stored.mark != mark.mark or mark.note not in ("", stored.note)


def _both(stored: Mark, mark: Mark) -> str:
    """Two marks of one pair, in words."""
    pair = f"the label {mark.target!r} of {mark.case}" if mark.rule == LABEL else f"{mark.case} under {mark.rule}"
    if stored.mark == mark.mark:
        return f"{pair} has the note {stored.note!r} here, and {mark.note!r} there"
    return f"{pair} is {stored.mark} here, and {mark.mark} there"


def _with_more(listed: str, count: int) -> str:
    return f"{listed}, and {count - _LISTED} more" if count > _LISTED else listed


def _checked(run: Run, path: Path, rows: list[tuple[int, dict[str, str]]]) -> tuple[dict[Key, Mark], int]:
    """The marks of a file by their keys, and how many lines have none."""
    known = _Known.of(run, {row["case"] for _, row in rows})
    marks: dict[Key, Mark] = {}
    lines: dict[Key, int] = {}
    wrong: list[str] = []
    empty = 0
    for number, row in rows:
        if not row["mark"].strip():
            empty += 1
            continue
        try:
            for mark in known.marks(row):
                if mark.key in marks and marks[mark.key].mark != mark.mark:
                    raise ValueError(f"line {lines[mark.key]} marks the same pair as {marks[mark.key].mark}")
                marks[mark.key], lines[mark.key] = mark, number
        except (ValueError, KeyError) as error:
            wrong.append(f"line {number}: {error}")
    if wrong:
        listed = _with_more("; ".join(wrong[:_LISTED]), len(wrong))
        raise ValueError(
            f"{path} has {count_of(len(wrong), 'line')} that cannot be taken, and nothing was stored: {listed}"
        )
    return marks, empty


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What can be marked in a run: its cases, and the targets of some that its judgings know."""

    run: Run
    cases: set[str]
    targets: Mapping[str, set[str]]

    @classmethod
    def of(cls, run: Run, wanted: set[str]) -> _Known:
        run.judged()  # by the default at least
        cases = set(run.cases()["case"])
        targets: dict[str, set[str]] = {}
        where = of_cases(pl.Series(sorted(wanted & cases), dtype=pl.String))
        for judging in run.store.judgings():
            for part in run.store.verdict_parts(judging, ["case", "target"], where):
                for case, target in part.unique().iter_rows():
                    targets.setdefault(case, set()).add(target)
        return cls(run, cases, targets)

    def marks(self, row: Mapping[str, str]) -> Iterator[Mark]:
        """The marks of a line: one, or one under each relation that the line names; or that of a label."""
        case, target, mark = row["case"], row.get("target", ""), mark_of(row["mark"])
        if mark is None:
            raise ValueError(f"{row['mark']!r} is no mark; allowed are {', '.join(WORDS)}, or nothing")
        if case not in self.cases:
            raise ValueError(f"unknown case {case!r}{nearest(case, self.cases)}")
        if row["rule"] == LABEL:
            if not target:
                raise ValueError(f"it names no label of {case}")
            yield new_mark(case, LABEL, target, mark, row.get("note", ""), _moment(row.get("made", "")))
            return
        targets = self.targets.get(case, set())
        if target and target not in targets:
            raise ValueError(f"unknown target {target!r} of {case}{nearest(target, targets)}")
        own = self.run.manifest.system.fingerprint
        if row.get("system", "") not in ("", own):
            raise ValueError(
                "it is about the answers of another system, or of another version of it; take out the column `system` "
                "if it holds for this run too"
            )
        for rule in self._rules(row):
            yield new_mark(case, rule, target, mark, row.get("note", ""), _moment(row.get("made", "")))

    def _rules(self, row: Mapping[str, str]) -> list[str]:
        """The rule of a line; where it names relations, the rules by which the same change was judged."""
        names = [name.strip() for name in row.get("relations", "").split(",")]
        rule = self.run.rule_id(row["rule"])
        change = named_rule(rule).left
        rules = {one.id: one.relation.relation.name for one in self.run.bound_rules() if one.left == change}
        return [one for one, relation in rules.items() if relation in names] or [rule]


def _moment(text: str) -> str:
    """When a mark was made, as far as the file says it; nothing where it does not."""
    with suppress(ValueError):
        return datetime.fromisoformat(text).isoformat() if text else ""
    return ""
