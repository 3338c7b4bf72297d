"""What is shown of MET-POSE: violated rules per case, classic testing beside it, landmarks that stray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from instar.analysis import Run, classic_table, has_comparable_truth
from instar.outputs.poses import Poses
from instar.relations import own_equivariance
from instar.report.panels import Panel, PanelContent, Table, TaskTables
from instar.report.section import Section
from instar.report.words import landmark_words, of_total, rate_text, severity_text, threshold_text
from instar.tasks.met_pose.beside_truth import left_out, left_out_sentences
from instar.tasks.met_pose.figures import classic_bars, classic_shares, skeleton, worst_landmarks
from instar.tasks.met_pose.figures_of_paper import CLASSIC_FIGURES, counted_figures
from instar.tasks.met_pose.landmarks import Figure, landmark_table, typical_pose
from instar.tasks.met_pose.rule_sets import RuleSet, own_relation
from instar.tasks.met_pose.suite import PAPER_BINS

ALL_RULES = "all rules"
MOST_ROWS = 60_000
"""Of more rows (a face has 468 landmarks) a page has the sum over all rules only."""
WORST = 40
"""Landmarks that a table lists."""


def _is_of_own_relation(run: Run, section: Section) -> bool:
    return section.relation == own_equivariance(run.manifest.system.kind).relation.name


# --- how many rules a case violates ----------------------------------------------------------------


def _counts_of_relation(run: Run, section: Section, judging: str, *, paper: bool) -> PanelContent | None:
    if section.rules < 2 or not section.whole(section.start)["judged"]:
        return None
    frame = _counted(run, section.relation, section.grid, judging, paper=paper)
    text = "Cases by the number of rules that they violate, for each threshold."
    text += _fewer_rules(run, section.relation, judging)
    if paper and section.rules == PAPER_BINS[-1][1]:
        text += " As published: some bins overlap, and severities count above the threshold only."
    caption = f"How many cases violate so many rules, by threshold in {section.unit}"
    return PanelContent("How many rules a case violates", text, tables=[_counts_table(frame, caption)])


def _count_tables(runs: Sequence[Run], judging: str, p: float, *, paper: bool) -> TaskTables | None:
    run = runs[0]
    frames = {
        relation: _counted(run, relation, grid, judging, paper=paper)
        for relation, grid in run.grids().items()
        if len(run.changing_rules(relation)) > 1
    }
    what = "cases by the number of rules that they violate, by threshold in"
    tables = [_counts_table(frame, f"{name}: {what} {run.units(judging)[name]}") for name, frame in frames.items()]
    notes = [f"{name}:{words}" for name in frames if (words := _fewer_rules(run, name, judging))]
    return TaskTables(tables, frames, after=notes) if tables else None


def _fewer_rules(run: Run, relation: str, judging: str) -> str:
    """That some cases were judged under fewer rules than others: they can violate fewer of them."""
    matrix = run.severities(judging).only(run.changing_rules(relation))
    counts = (~np.isnan(matrix.severity)).sum(0)
    counts, rules = counts[counts > 0], len(matrix.rules)
    partly = counts[counts < rules]
    if not len(partly):
        return ""
    return (
        f" {of_total(len(partly), len(counts), 'case')} {'was' if len(partly) == 1 else 'were'} not judged under all "
        f"{rules} rules, but under {'as few as ' if len(partly) > 1 else ''}{partly.min()} of them, and can violate no "
        "more than these."
    )


def _counted(run: Run, relation: str, grid: Sequence[float], judging: str, *, paper: bool) -> pl.DataFrame:
    """The counts in Instar's bins, or in the original's where the run has all of its rules."""
    as_published = paper and len(run.changing_rules(relation)) == PAPER_BINS[-1][1]
    bins = PAPER_BINS if as_published else None
    return run.violated_counts(relation, grid=grid, bins=bins, strict=as_published, judging=judging)


def _counts_table(frame: pl.DataFrame, caption: str) -> Table:
    rows = [
        [str(name), *(f"{cases:,}" for cases in part["cases"])]
        for (name,), part in frame.group_by("violated", maintain_order=True)
    ]
    labels = [threshold_text(value) for value in frame["threshold"].unique(maintain_order=True)]
    return Table(caption, ["violated rules", *labels], rows, by_threshold=True)


# --- beside classic testing ------------------------------------------------------------------------


def _classic_of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    if not has_comparable_truth(run, judging) or not _is_of_own_relation(run, section):
        return None
    frame = classic_table(run, grid=section.grid, judging=judging)
    cases = int(frame["cases"][0])
    if not cases:
        return None
    return PanelContent(
        "Beside classic testing",
        "Classic testing compares the source outputs with the ground truth. Precision: of the cases that fail "
        "metamorphic testing, the share that fails classic testing; recall: of the cases that fail classic testing, "
        "the share that metamorphic testing finds without labels. Both with 95 % intervals. "
        + " ".join(_left_out(run, section.relation, judging)),
        [classic_bars(frame, section), classic_shares(frame, section)],
        [_classic_rows(frame, f"by threshold in {section.unit}, {cases:,} cases")],
    )


def _classic_tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    run = runs[0]
    if not has_comparable_truth(run, judging):
        return None
    frame = classic_table(run, judging=judging)
    caption = (
        "Cases that fail classic testing, which compares with the ground truth, and metamorphic testing, by threshold; "
        "precision and recall of metamorphic failure as a predictor of classic failure"
    )
    after = _left_out(run, own_relation(run), judging)
    return TaskTables([_classic_rows(frame, caption)], {"classic": frame}, after=after)


def _left_out(run: Run, relation: str, judging: str) -> list[str]:
    """How many cases are compared, and why others are not."""
    return left_out_sentences(left_out(run, [RuleSet(ALL_RULES, tuple(run.changing_rules(relation)))], judging))


def _classic_rows(frame: pl.DataFrame, caption: str) -> Table:
    rows = [
        [
            threshold_text(row["threshold"]),
            *(f"{row[name]:,}" for name in ("both", "classic_only", "metamorphic_only", "neither")),
            *(rate_text(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in ("precision", "recall")),
        ]
        for row in frame.iter_rows(named=True)
    ]
    heads = ["threshold", "both", "classic only", "metamorphic only", "neither", "precision", "recall"]
    return Table(caption, heads, rows)


# --- landmarks -------------------------------------------------------------------------------------


def _landmarks_of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    if run.manifest.system.kind != Poses.kind or not _is_of_own_relation(run, section):
        return None  # a suite for poses may test a detector too
    places = {value: t for t, value in enumerate(section.grid)}
    name = pl.col("rule").replace(dict(section.names)).fill_null(ALL_RULES)
    t = pl.col("threshold").replace_strict(places, return_dtype=pl.Int32).alias("t")
    table = landmark_table(run, grid=section.grid, judging=judging)
    words = {text: landmark_words(text) for column in ("landmark", "part") for text in table[column].unique()}
    shown_names = pl.col("landmark", "part").replace(words)
    frame = table.select(name, shown_names, t, "judged", "violated", "rate", "low", "high")
    together, by_rule = frame.filter(pl.col("rule") == ALL_RULES), frame.filter(pl.col("rule") != ALL_RULES)
    if not together["judged"].sum():
        return None
    few = len(by_rule) <= MOST_ROWS and section.rules > 1
    shown = pl.concat([together, by_rule] if few else [together])
    poses = [figure for figure in map(_worded, typical_pose(run)) if figure.part in set(together["part"])]
    return PanelContent(
        "Which landmarks stray",
        "Every landmark's own rate, over all pairs of subjects: it is violated where it alone strays by at least the "
        "threshold. Landmarks at a place outside the frame are not judged."
        + ("" if few or section.rules < 2 else " All rules together; for one rule there are too many landmarks here."),
        [
            *(skeleton(shown, figure, section, ALL_RULES) for figure in poses),
            worst_landmarks(shown, section, ALL_RULES),
        ],
        rules=[ALL_RULES, *sorted(set(by_rule["rule"]))] if few else (),
    )


def _worded(figure: Figure) -> Figure:
    """With the names of landmarks as people read them."""
    edges = tuple((landmark_words(a), landmark_words(b)) for a, b in figure.edges)
    names = tuple(map(landmark_words, figure.landmarks))
    return replace(figure, part=landmark_words(figure.part), landmarks=names, edges=edges)


def _landmark_tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    run = runs[0]
    own = own_equivariance(run.manifest.system.kind).relation.name
    limits = [run.thresholds()[one.id] for one in run.bound_rules() if one.relation.relation.name == own]
    if run.manifest.system.kind != Poses.kind or not limits:
        return None
    frame = landmark_table(run, grid=limits[:1], judging=judging).filter(pl.col("rule").is_null()).drop("rule")
    rows = [
        [
            landmark_words(row["landmark"]),
            landmark_words(row["part"]),
            f"{row['violated']:,} of {row['judged']:,}",
            rate_text(row["rate"], row["low"], row["high"]),
            severity_text(row["median"], limits[0]),
        ]
        for row in frame.drop_nulls("rate").sort("rate", descending=True).head(WORST).iter_rows(named=True)
    ]
    least = f"{threshold_text(limits[0])} {run.units(judging)[own]}"
    caption = f"Landmarks that stray by at least {least}, all rules together, the {len(rows)} worst"
    return TaskTables([Table(caption, ["landmark", "part", "pairs", "share", "median"], rows)], {"landmarks": frame})


def _counts(*, paper: bool) -> Panel:
    return Panel(
        of_relation=partial(_counts_of_relation, paper=paper),
        tables=partial(_count_tables, paper=paper),
        figures=counted_figures(paper=paper),
    )


PANELS: Mapping[str, Panel] = {
    "violated-counts": _counts(paper=False),
    "violated-counts@paper": _counts(paper=True),
    "classic": Panel(of_relation=_classic_of_relation, tables=_classic_tables, figures=CLASSIC_FIGURES),
    "landmarks": Panel(of_relation=_landmarks_of_relation, tables=_landmark_tables),
}
