"""What a report shows of MET-POSE: violated rules per case, classic testing beside it, landmarks that stray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from instar.analysis import Run
from instar.outputs.poses import Poses
from instar.relations import own_equivariance
from instar.report.panel_figures import classic_bars, classic_shares, skeleton, worst_landmarks
from instar.report.panels import Panel, PanelContent, Table
from instar.report.section import Section
from instar.report.words import interval, percent
from instar.tasks.met_pose.suite import PAPER_BINS

__all__ = ["PANELS"]


def _violated_counts(run: Run, section: Section, judging: str, *, paper: bool = False) -> PanelContent | None:
    if section.rules < 2 or not section.whole(section.start)["judged"]:
        return None
    asked: dict[str, Any] = {"bins": PAPER_BINS, "strict": True} if paper and section.rules == PAPER_BINS[-1][1] else {}
    table = run.violated_counts(section.relation, grid=section.grid, judging=judging, **asked)
    bins: list[str] = table["violated"].unique(maintain_order=True).to_list()
    counts = {(row["violated"], row["threshold"]): row["cases"] for row in table.iter_rows(named=True)}
    rows = [[name, *(f"{counts[name, value]:,}" for value in section.grid)] for name in bins]
    text = "Cases by the number of rules that they violate, for each threshold."
    if asked:
        text += " As published: some bins overlap, and severities count above the threshold only."
    return PanelContent(
        "How many rules a case violates",
        text,
        tables=[Table(f"threshold in {section.unit}", ["violated rules", *section.labels], rows, by_threshold=True)],
    )


def _paper_counts(run: Run, section: Section, judging: str) -> PanelContent | None:
    return _violated_counts(run, section, judging, paper=True)


def _classic(run: Run, section: Section, judging: str) -> PanelContent | None:
    if not run.has_truth or section.relation != own_equivariance(run.manifest.system.kind).relation.name:
        return None
    table = run.classic(grid=section.grid, judging=judging)
    cases = int(table.row(0, named=True)["cases"])
    if not cases:
        return None
    rows = [
        [
            label,
            *(f"{row[name]:,}" for name in ("both", "classic_only", "metamorphic_only", "neither")),
            *(
                f"{percent(row[name])} ({interval(row[f'{name}_low'], row[f'{name}_high'])})"
                if row[name] is not None
                else "–"
                for name in ("precision", "recall")
            ),
        ]
        for label, row in zip(section.labels, table.iter_rows(named=True), strict=True)
    ]
    return PanelContent(
        "Beside classic testing",
        "Classic testing compares the source outputs with the ground truth. Precision: of the cases that fail "
        "metamorphic testing, the share that fails classic testing; recall: of the cases that fail classic testing, "
        "the share that metamorphic testing finds without labels. Both with 95 % intervals.",
        [classic_bars(table, section), classic_shares(table, section)],
        [
            Table(
                f"by threshold in {section.unit}, {cases:,} cases",
                ["threshold", "both", "classic only", "metamorphic only", "neither", "precision", "recall"],
                rows,
            )
        ],
    )


ALL_RULES = "all rules"
ROWS = 60_000
"""Of more rows (a face has 468 landmarks) a page has the sum over all rules only."""


def _landmarks(run: Run, section: Section, judging: str) -> PanelContent | None:
    kind = run.manifest.system.kind  # a suite for poses may test a detector too
    if kind != Poses.kind or section.relation != own_equivariance(kind).relation.name:
        return None
    places = {value: t for t, value in enumerate(section.grid)}
    found = run.landmarks(grid=section.grid, judging=judging).select(
        pl.col("rule").replace(dict(section.names)).fill_null(ALL_RULES),
        "landmark",
        "part",
        pl.col("threshold").replace_strict(places, return_dtype=pl.Int32).alias("t"),
        "judged",
        "violated",
        "rate",
        "low",
        "high",
    )
    together, table = found.filter(pl.col("rule") == ALL_RULES), found.filter(pl.col("rule") != ALL_RULES)
    if not together["judged"].sum():
        return None
    few = len(table) <= ROWS and section.rules > 1
    shown = pl.concat([together, table] if few else [together])
    poses = [figure for figure in run.figures() if figure.part in set(together["part"])]
    return PanelContent(
        "Which landmarks stray",
        "Every landmark's own rate, over all pairs of subjects: it is violated where it alone strays by at least the "
        "threshold. Landmarks at a place outside the frame are not judged."
        + ("" if few or section.rules < 2 else " All rules together; for one rule there are too many landmarks here."),
        [
            *(skeleton(shown, figure, section, ALL_RULES) for figure in poses),
            worst_landmarks(shown, section, ALL_RULES),
        ],
        rules=[ALL_RULES, *sorted(set(table["rule"]))] if few else (),
    )


PANELS: Mapping[str, Panel] = {
    "violated-counts": Panel(of_relation=_violated_counts),
    "violated-counts@paper": Panel(of_relation=_paper_counts),
    "classic": Panel(of_relation=_classic),
    "landmarks": Panel(of_relation=_landmarks),
}
