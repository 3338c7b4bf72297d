"""What a search for combinations found, in words: the tables and sentences of terminal and report, and the pictures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.console import Console

from instar.analysis import Run
from instar.analysis.found import found_combinations
from instar.analysis.search import Search
from instar.engine import DEFAULT
from instar.report.console import headed_table, show_sentence, show_title
from instar.report.gallery import PairShown, drawn_pair
from instar.report.panels import PanelContent
from instar.report.tables import Table
from instar.report.words import count_of, of_total, rate_text

TITLE = "Combinations that break answers"
MEANING = (
    "A combination changes an input by several rules one after the other. It was chosen because it broke cases that "
    "none of its rules breaks alone; what it breaks was counted on other cases, which the search did not see. The "
    "intervals have 95 % confidence."
)
PICTURES = 3
"""So many pairs of each combination are drawn in a report."""


def combinations_table(run: Run, best: pl.DataFrame) -> Table:
    """What was found, worst first."""
    rows = [
        [
            row["name"],
            rate_text(row["share"], row["low"], row["high"]),
            rate_text(row["alone_share"], row["alone_low"], row["alone_high"]),
            f"{row['judged']:,}",
            visual_text(row["visual"]),
            row["shrunk"],
        ]
        for row in best.iter_rows(named=True)
    ]
    heads = ["combination", "cases broken", "only together", "of cases", "visual change", "smallest form"]
    caption = (
        "Each combination on cases that the search did not see: how many it breaks, and how many its rules break only "
        "together"
    )
    return Table(caption, heads, rows)


def visual_text(visual: float | None) -> str:
    """A visual change with two digits.

    >>> visual_text(0.284), visual_text(0), visual_text(None)
    ('0.28', '0.00', '–')
    """
    return "–" if visual is None else f"{visual:.2f}"


def combination_notes(run: Run, best: pl.DataFrame) -> list[str]:
    """What the numbers do not say."""
    search = run.manifest.search
    assert search is not None
    notes = [] if search.ended else [unfinished_words(run)]
    if best.is_empty():
        none = "No combination was found that breaks a case which none of its rules breaks alone."
        return notes or [none]
    if search.ended and not best["judged"].sum():
        notes.append(
            "No other case was left to count on: nothing is known of how often these combinations break answers."
        )
    if not run.manifest.system.deterministic:
        notes.append(
            "The system answers the same input differently, so that some of these cases may have broken by chance; the "
            "rate of `identity` in an ordinary run says how many."
        )
    if search.visual is not None:
        notes.append(
            f"A person sees {visual_text(search.visual)} of a combination at the most, in the median over cases: 0 is "
            "nothing, 1 is all. It tells light from dark alone: what moves pixels (a mirror, a crop) is as strong "
            "as in the suite, and what changes colours counts nothing."
        )
    return notes


def unfinished_words(run: Run) -> str:
    """That a search goes on, or was stopped, and how far it came."""
    search = run.manifest.search
    assert search is not None
    done = run.store.predictions(["status"], query=lambda rows: rows.select(pl.len())).item()
    return (
        f"The search is not finished: {of_total(done, search.budget, 'prediction')} of its budget "
        f"{'is' if done == 1 else 'are'} there. What it finds is known when it has come to its end; the same command "
        "again goes on with it."
    )


def show_combinations(console: Console, run: Run) -> None:
    """What a search found, in the terminal; nothing of a run that is no search."""
    search, best, typed = run.manifest.search, found_combinations(run), shlex.quote(str(run.folder))
    if search is None:
        return
    if best.height:
        show_title(console, "Combinations", "counted on cases that the search did not see")
        table = headed_table(("combination", "broken", "only together", "of", "visual"), words=("combination",))
        for row in best.iter_rows(named=True):
            alone = rate_text(row["alone_share"], row["alone_low"], row["alone_high"])
            broken = rate_text(row["share"], row["low"], row["high"])
            table.add_row(row["name"], broken, alone, f"{row['judged']:,}", visual_text(row["visual"]))
        console.print(table)
        show_sentence(console, "broken: it breaks the case; only together: and none of its rules alone does.", "dim")
    for row in best.iter_rows(named=True):
        rule, case = shlex.quote(row["name"]), shlex.quote(row["cases"][0])
        same = row["shrunk"] == row["name"]
        console.print()
        for words, style in (
            (row["name"], "bold"),
            ("No smaller form breaks the same cases." if same else f"Smallest form: {row['shrunk']}", None),
            (f"It broke {of_total(row['hits'], row['searched'], 'case')} of the search.", None),
            (f"instar draw {typed} --rule {rule} --case {case} --out pics/", "dim"),
        ):
            show_sentence(console, words, style)
    console.print()
    for note in combination_notes(run, best):
        show_sentence(console, note)


def combinations_panel(run: Run) -> list[PanelContent]:
    """The section of a report; none where the run is no search."""
    search, best = run.manifest.search, found_combinations(run)
    if search is None:
        return []
    text = " ".join([MEANING, *combination_notes(run, best)])
    return [PanelContent(TITLE, text, tables=[combinations_table(run, best)] if best.height else [], leads=True)]


def combination_pairs(run: Run, judging: str = DEFAULT, dataset: Path | None = None) -> list[PairShown]:
    """The worst cases of every combination, drawn."""
    pairs = []
    for row in found_combinations(run).iter_rows(named=True):
        worst = run.worst(run.cases().height, judging=judging, rule=row["rule"]).filter(
            pl.col("case").is_in(row["cases"])
        )
        for verdict in worst.head(PICTURES).to_dicts():
            target = "" if verdict["target"] == "whole" else str(verdict["target"])
            pairs.append(drawn_pair(run, PairShown(verdict, row["name"], target, 0), judging, dataset))
    return pairs


def outcome_sentences(choice: Search, *, blind: bool) -> list[str]:
    """What a search did, and what to know of it."""
    limits = choice.limits
    size = "2" if limits.most == 2 else "2 or 3"
    notes = [
        f"{count_of(choice.tried, 'combination')} of {size} of {count_of(len(choice.members), 'rule')} "
        f"{'was' if choice.tried < 2 else 'were'} tried; "
        f"{of_total(choice.used, limits.budget, 'prediction')} of the budget were used."
    ]
    weaker = [f"{rule} as {mild}" for rule, mild in choice.weaker.items() if mild]
    gone = [rule for rule, mild in choice.weaker.items() if not mild]
    if weaker:
        notes.append(f"A person sees too much of these rules, and they are combined in a weaker form: {_some(weaker)}.")
    if gone:
        notes.append(f"A person sees too much of these rules, and they have no weaker form: {_some(gone)}.")
    if choice.turning:
        alone = [f"{rule} ({case})" for rule, case in choice.turning.items()]
        notes.append(
            "A weaker form of a rule alone breaks a case that the rule itself keeps, and so it is in no smallest form: "
            f"{_some(alone)}."
        )
    if blind:
        notes.append("The inputs are no images: what a person sees of a change is not defined, and limited nothing.")
    return notes


def _some(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
