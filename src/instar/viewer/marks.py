"""Marks of pairs on pages: which pair has which, how many there are of each, and the pair before and after this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.precision import COUNTS, precision_of
from instar.report.words import of_total, rate_text
from instar.store import MARKS, DamagedMarks, Mark, Row, Store, stored_marks, why_unmarkable
from instar.store.marks import Key
from instar.viewer.index import Index, Pairs

if TYPE_CHECKING:
    from instar.viewer.query import Filters

UNMARKED = "unmarked"
CHOICES = (*MARKS, UNMARKED)
"""What pairs are filtered by."""
Codes = npt.NDArray[np.uint8]
READ_ONLY = "This viewer was started read-only: marks are shown, and cannot be changed."


def marks_of(store: Store) -> Mapping[Key, Mark]:
    """The marks of a run as they are now; none where they cannot be read, which `why_not` says."""
    try:
        return stored_marks(store)
    except DamagedMarks:
        return {}


def why_not(store: Store, token: str) -> str:
    """Why the pairs of a run cannot be marked here; empty where they can."""
    try:
        stored_marks(store)
    except DamagedMarks as damage:
        return str(damage)
    return why_unmarkable(store) if token else READ_ONLY


def mark_at(marks: Mapping[Key, Mark], verdict: Row) -> Mark | None:
    """The mark of what a pair is shown with, else that of the pair as a whole."""
    case, rule, target = verdict["case"], verdict["rule"], verdict["target"]
    return marks.get((case, rule, target)) or marks.get((case, rule, ""))


def others_at(marks: Mapping[Key, Mark], verdict: Row) -> list[Mark]:
    """Marks of the same pair about other targets, which were its worst by another judging, or of a part."""
    pair = verdict["case"], verdict["rule"]
    return [mark for mark in marks.values() if mark.key[:2] == pair and mark.target not in ("", verdict["target"])]


def mark_codes(index: Index, pairs: Pairs) -> Codes:
    """The mark of each pair, as its place among the marks, from 1; 0 is none."""
    codes = np.zeros(len(pairs), np.uint8)
    marks = sorted(marks_of(index.run.store).values(), key=lambda mark: mark.target != "")  # of a target at the end
    if not marks or not len(pairs):
        return codes
    rules = {rule.id: number for number, rule in enumerate(index.rules)}
    targets = {target: number for number, target in enumerate(index.targets)}
    names = pl.Series([mark.case for mark in marks], dtype=pl.String)
    case = np.minimum(index.cases.search_sorted(names).to_numpy().astype(np.int64), len(index.cases) - 1)
    there = (index.cases.gather(case) == names).to_numpy()
    rule = np.array([rules.get(mark.rule, -1) for mark in marks])
    keys = pairs.case.astype(np.int64) * len(rules) + pairs.rule
    wanted = case * len(rules) + rule
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    target = np.array([targets.get(mark.target, -1) for mark in marks])
    whole = np.array([mark.target == "" for mark in marks])
    known = there & (rule >= 0) & (keys[place] == wanted) & (whole | (pairs.target[place] == target))
    values = np.array([MARKS.index(mark.mark) + 1 for mark in marks], np.uint8)
    codes[place[known]] = values[known]
    return codes


def chosen_mask(codes: Codes, choice: str) -> npt.NDArray[np.bool_]:
    """Which pairs have the mark that a filter asks for."""
    if choice not in CHOICES:
        return np.zeros(len(codes), bool)
    return np.asarray(codes == (0 if choice == UNMARKED else MARKS.index(choice) + 1))


def mark_counts(codes: Codes) -> dict[str, int]:
    """How many pairs have each mark, and none."""
    counts = np.bincount(codes, minlength=len(MARKS) + 1).tolist()
    return {**dict(zip(MARKS, counts[1:], strict=True)), UNMARKED: counts[0]}


def precision_rows(index: Index, filters: Filters) -> list[Row]:
    """The precision of rules, as `instar marks` has it; none where no violated pair is marked."""
    if not marks_of(index.run.store):
        return []
    pairs = index.group().pairs
    limits = np.array([index.thresholds(filters.threshold)[rule.id] for rule in index.rules])
    hit = (pairs.severity >= limits[pairs.rule]) & (pairs.severity > 0)
    codes = mark_codes(index, pairs)
    places = np.flatnonzero(hit & (codes > 0))
    marks = pl.DataFrame(
        {
            "case": index.cases.gather(pairs.case[places]),
            "rule": [index.rules[number].id for number in pairs.rule[places]],
            "mark": [MARKS[code - 1] for code in codes[places]],
        },
        schema=dict.fromkeys(("case", "rule", "mark"), pl.String),
    )
    counts = np.bincount(pairs.rule[hit], minlength=len(index.rules)).tolist()
    violated = {rule.id: count for rule, count in zip(index.rules, counts, strict=True)}
    relations = {rule.id: rule.relation for rule in index.rules}
    changing = {rule.id for rule in index.rules if rule.changing}
    names = {rule.id: rule.name for rule in index.rules}
    return [
        {**row, "words": "all rules" if row["by"] == "all" else names.get(row["name"], f"relation {row['name']}")}
        for row in precision_of(marks, violated, relations, changing).to_dicts()
    ]


def precision_sentence(row: Row) -> str:
    """What people say of the violations of one rule."""
    decided = row["real"] + row["false_alarm"]
    counts = ", ".join(f"{row[name]:,} {mark}" for name, mark in zip(COUNTS[1:], MARKS, strict=True) if row[name])
    share = f" Precision: {rate_text(row['precision'], row['low'], row['high'])}." if decided else ""
    marked = decided + row["unclear"]
    verb = "is" if marked == 1 else "are"
    return f"{of_total(marked, row['violated'], 'violated pair')} {verb} marked: {counts}.{share}"


def pair_places(
    order: npt.NDArray[np.int64], codes: Codes, filters: Filters, at: int
) -> tuple[int | None, int, int | None, int | None]:
    """Of pairs in an order: which place a pair has among those with the mark that is filtered by, how many these are,
    and the pairs before and after it. A pair that lost its place because it was marked still has neighbours."""
    there = np.ones(len(order), bool) if not filters.mark else chosen_mask(codes[order], filters.mark)
    places = np.flatnonzero(order == at)
    if not len(places):
        return None, int(there.sum()), None, None
    here = int(places[0])
    before, after = np.flatnonzero(there[:here]), np.flatnonzero(there[here + 1 :])
    previous = int(order[before[-1]]) if len(before) else None
    following = int(order[here + 1 + after[0]]) if len(after) else None
    return (len(before) + 1 if there[here] else None), int(there.sum()), previous, following


def unfiltered(filters: Filters) -> Filters:
    """The same filters, whatever the mark."""
    return replace(filters, mark="")
