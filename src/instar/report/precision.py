"""Which violations are real, as people marked them: the table and sentences of terminal, report and viewer."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
from rich.console import Console

from instar.analysis import Run
from instar.analysis.precision import (
    ANOTHER,
    COUNTS,
    KEPT,
    UNJUDGED,
    VIOLATED,
    marked,
    marked_labels,
    precision,
    wrong_labels,
)
from instar.engine import DEFAULT
from instar.report.console import show_sentence
from instar.report.limits import limit_words
from instar.report.panels import PanelContent
from instar.report.tables import Table, show_tables
from instar.report.words import count_of, of_total, rate_text
from instar.store import Mark, stored_marks

TITLE = "Which violations are real"
ALL = "all rules"
HEADS = ("rule", "violated", "real", "false alarm", "unclear", "precision, 95 % interval")
MARK_MEANINGS = {
    "real": "somebody looked at the pair and marked it as an error of the system",
    "false alarm": "somebody looked at the pair and marked it as no error",
    "unclear": "somebody looked at the pair and could not tell",
}
_WHY_NOT = {
    KEPT: "of pairs that are not violated by this judging and threshold",
    ANOTHER: "about another target than the worst of its pair",
    UNJUDGED: "of pairs that have no severity by this judging",
}


def precision_table(run: Run, shares: pl.DataFrame, *, threshold: float | None = None, judging: str = DEFAULT) -> Table:
    """What `precision` says, in words."""
    names = dict(run.rules().select("rule", "name").iter_rows())
    rows = [
        [
            names.get(row["name"], ALL if row["by"] == "all" else f"relation {row['name']}"),
            *(f"{row[name]:,}" for name in COUNTS),
            rate_text(row["precision"], row["low"], row["high"]) if row["precision"] is not None else "–",
        ]
        for row in shares.iter_rows(named=True)
    ]
    limits = limit_words(run, threshold=threshold, judging=judging)
    return Table(f"Violated pairs as people marked them; precision is the share that is real; {limits}", HEADS, rows)


def precision_notes(shares: pl.DataFrame, marks: pl.DataFrame) -> list[str]:
    """What the numbers do not say: what is not marked, and which marks do not count."""
    notes = []
    if shares.height:
        every = shares.row(0, named=True)
        decided = every["real"] + every["false_alarm"]
        count = decided + every["unclear"]
        notes.append(f"{of_total(count, every['violated'], 'violated pair')} {'is' if count == 1 else 'are'} marked.")
        if every["unclear"]:
            unclear = count_of(every["unclear"], "unclear pair").capitalize()
            notes.append(f"{unclear} {'counts' if every['unclear'] == 1 else 'count'} in no share.")
        if count < every["violated"]:
            notes.append(
                "The share holds for all violated pairs only if those that are marked were drawn by chance: the worst "
                "do not speak for the others."
            )
    states = marks["state"].value_counts(sort=True)
    others = [(state, count) for state, count in states.iter_rows() if state != VIOLATED]
    if others:
        total = sum(count for _, count in others)
        whys = ", ".join(f"{count:,} {_WHY_NOT[state]}" for state, count in others)
        notes.append(f"{count_of(total, 'mark')} {'counts' if total == 1 else 'count'} for nothing here: {whys}.")
    return notes


def label_notes(marks: Iterable[Mark]) -> list[str]:
    """How many labels of the dataset are wrong, of those that people looked at; nothing where they looked at none."""
    labels = marked_labels(marks)
    if labels.is_empty():
        return []
    row = wrong_labels(labels)
    decided = row["real"] + row["false_alarm"]
    unclear = f"; {row['unclear']:,} more {'is' if row['unclear'] == 1 else 'are'} unclear" if row["unclear"] else ""
    share = f" ({rate_text(row['precision'], row['low'], row['high'])})" if decided else ""
    return [
        f"Of the labels of the dataset that people looked at, {of_total(row['real'], decided, 'label')} "
        f"{'is' if row['real'] == 1 else 'are'} wrong{share}{unclear}. This is about the dataset, and counts "
        "for no rule."
    ]


def show_precision(console: Console, run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> bool:
    """The table and its notes in the terminal; whether any pair of the run is marked."""
    panels = precision_panel(run, threshold=threshold, judging=judging)
    for panel in panels:
        console.print()
        show_tables(console, panel.tables)
        show_sentence(console, panel.text)
    return bool(panels)


def precision_panel(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> list[PanelContent]:
    """The section of a report; none where no pair of the run is marked."""
    marks, of_labels = marked(run, threshold, judging=judging), label_notes(stored_marks(run.store).values())
    if marks.is_empty() and not of_labels:
        return []
    shares = precision(run, threshold, judging=judging)
    table = precision_table(run, shares, threshold=threshold, judging=judging)
    return [
        PanelContent(
            TITLE, " ".join([*precision_notes(shares, marks), *of_labels]), tables=[table] if shares.height else []
        )
    ]
