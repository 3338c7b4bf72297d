"""What is shown of MetaIC: what captions make of inserted objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import Run
from instar.engine import stored_judging
from instar.report.compared import run_names
from instar.report.finding import Finding
from instar.report.panels import Panel, PanelContent, Table, TaskTables
from instar.report.words import listed, rate_text
from instar.tasks.meta_ic.analysis import CAPTION_KINDS, UNCHANGED, caption_notes, caption_rules, caption_table
from instar.tasks.meta_ic.captioners import caption_comparison
from instar.tasks.meta_ic.comparison import PAPER_READERS
from instar.tasks.meta_ic.relations import RELATIONS

_ALWAYS = ("misclassification", "omission", "number")
"""The kinds that have a column also where they do not occur."""


def _of_run(run: Run, judging: str) -> PanelContent | None:
    numbers = _numbers(run, judging)
    if numbers is None:
        return None
    if not numbers["pairs"].sum():
        return None
    paper = stored_judging(run.store, judging).of(RELATIONS["objects"])["reader"] in PAPER_READERS
    return PanelContent(
        "What captions name after a change",
        "With an object inserted, a caption names what it named before, and that object; everything keeps its "
        f"grammatical number. Captions are understood {'as the code of MetaIC did' if paper else 'by Instar'}; "
        "`instar captions words` says how Instar reads a caption.",
        tables=[_in_words(numbers)],
    )


def _tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    if len(runs) > 1:
        return _side_by_side(runs, judging)
    numbers = _numbers(runs[0], judging)
    if numbers is None:
        return None
    notes = [note.words for note in _remarks(runs[0], judging)]
    return TaskTables([_in_words(numbers)], {"captions": numbers}, after=notes)


def _side_by_side(runs: Sequence[Run], judging: str) -> TaskTables | None:
    """Captioners by what changes did to their captions, by kind of error."""
    if any(caption_rules(run).is_empty() for run in runs):
        return None
    called = dict(zip(run_names(runs), runs, strict=True))
    numbers = caption_comparison(called, judging=judging)
    if numbers.is_empty():
        idle = [name for name, run in called.items() if not caption_table(run, judging=judging)["pairs"].sum()]
        raise ValueError(
            "the runs have no follow-up in common that all of them judge: nothing can be put side by side"
            + (f". No follow-up of {listed(idle, len(idle))} was judged" if idle else "")
        )
    kinds = [kind for kind in CAPTION_KINDS if kind in _ALWAYS or numbers[kind].sum()]
    counts = ("pairs", "objects", "numbers", "either")
    rows = [
        [
            row["change"],
            row["run"],
            *(f"{row[name]:,}" for name in counts),
            rate_text(row["share"], row["low"], row["high"]),
            *(f"{row[name]:,}" for name in kinds),
        ]
        for row in numbers.iter_rows(named=True)
    ]
    table = Table(
        "Captioners side by side, on the follow-ups that all of them were judged on: how many break the relation of "
        "objects (MR1), the relation of numbers (MR2), or either of them; the share that breaks either, with its 95 % "
        "interval; and how many show each kind of error",
        ["change", "system", "follow-ups", *counts[1:], "share", *kinds],
        rows,
    )
    notes = [f"{name}: {note.words}" for name, run in called.items() for note in _remarks(run, judging)]
    return TaskTables([table], {"captions": numbers}, after=notes)


def _remarks(run: Run, judging: str) -> list[Finding]:
    return [] if caption_rules(run).is_empty() else caption_notes(run, judging=judging)


def _numbers(run: Run, judging: str) -> pl.DataFrame | None:
    return None if caption_rules(run).is_empty() else caption_table(run, judging=judging)


def _in_words(numbers: pl.DataFrame) -> Table:
    """What changes did to captions, one row for each."""
    exact = not numbers["verbatim"].is_null().all()
    counts = ("pairs", "unjudged", "objects", "numbers", "either")
    kinds = [kind for kind in CAPTION_KINDS if kind in _ALWAYS or numbers[kind].sum()]
    rows = [
        [
            row["change"],
            *(f"{row[name]:,}" for name in counts),
            rate_text(row["share"], row["low"], row["high"]),
            *(f"{row[name]:,}" for name in kinds),
            *(["–" if row["verbatim"] is None else f"{row['verbatim']:,} of {row['exact']:,}"] if exact else []),
        ]
        for row in numbers.iter_rows(named=True)
    ]
    left_out = f". The row 'all' leaves out {UNCHANGED}" if {UNCHANGED, "all"} <= set(numbers["change"]) else ""
    return Table(
        "How many follow-ups break the relation of objects (MR1), the relation of numbers (MR2), or either of them; "
        "the share that breaks either, with its 95 % interval; and how many show each kind of error. Every draw is a "
        f"follow-up, and counts once however many rules judge it; a case that a change does not apply to has none, and "
        f"counts once as not judged{left_out}",
        ["change", "follow-ups", "not judged", *counts[2:], "share", *kinds, *(["changed at all"] if exact else [])],
        rows,
    )


PANELS: Mapping[str, Panel] = {
    "captions": Panel(of_run=_of_run, tables=_tables, several=True, remarks=_remarks, kind="caption")
}
