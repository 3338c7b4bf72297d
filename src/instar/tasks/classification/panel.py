"""What a report shows of a classifier: how often the class changes, into which, and how often it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT, SOURCE
from instar.report.panels import Panel, PanelContent, Table, TaskTables
from instar.report.section import Section
from instar.report.sentences import Finding
from instar.report.words import of_total, percent, rate_text
from instar.stats import wilson

MOST_CONFUSIONS = 20
RELATION = "class_kept"
FEWEST_CASES = 3
"""Images that must have the same answer before that is worth saying."""


def _verdicts(run: Run, judging: str) -> pl.DataFrame:
    rules = run.rules().filter(relation=RELATION)
    verdicts = run.verdicts(judging).filter(pl.col("severity").is_not_null())
    if rules.is_empty() or verdicts.is_empty():
        return pl.DataFrame(schema={"rule": pl.String, "name": pl.String})
    return verdicts.join(rules.select("rule", "name"), on="rule", maintain_order="left")


def class_changes(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Per rule: pairs, how many changed their class, the share with its 95 % interval, the median fall."""
    verdicts = _verdicts(run, judging)
    if verdicts.is_empty():
        return pl.DataFrame(schema={"rule": pl.String, "pairs": pl.Int64, "changed": pl.Int64})
    table = verdicts.group_by("rule", "name", maintain_order=True).agg(
        pairs=pl.len(),
        changed=pl.col("kind").is_not_null().sum(),
        median_fall=(1 - pl.col("follow_up_score") / pl.col("source_score")).clip(0).median(),
    )
    intervals = [wilson(row["changed"], row["pairs"]) for row in table.iter_rows(named=True)]
    return table.with_columns(
        share=pl.col("changed") / pl.col("pairs"),
        low=pl.Series([low for low, _ in intervals], dtype=pl.Float64),
        high=pl.Series([high for _, high in intervals], dtype=pl.Float64),
    ).sort("share", descending=True, maintain_order=True)


def confusions(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Which class becomes which, most frequent first, over all rules."""
    verdicts = _verdicts(run, judging)
    if verdicts.is_empty():
        return pl.DataFrame(schema={"source_class": pl.String, "class": pl.String, "pairs": pl.UInt32})
    return (
        verdicts.filter(pl.col("kind") == "class")
        .group_by("source_class", "class")
        .agg(pairs=pl.len())
        .sort("pairs", "source_class", "class", descending=[True, False, False])
    )


def correct(run: Run) -> pl.DataFrame:
    """Per follow-up: of the cases with a true class, how many answers name one first, and among their first five."""
    schema = {"follow_up": pl.String, "cases": pl.Int64, "top_1": pl.Float64, "top_5": pl.Float64}
    if run.manifest.truth_kind != "labels":
        return pl.DataFrame(schema=schema)
    truth = run.store.cases(["case", "truth_classes"]).filter(pl.col("truth_classes").list.len() > 0)
    answers = run.store.predictions(["case", "follow_up", "repeat", "status", "classes"]).filter(
        (pl.col("status") == "ok") & (pl.col("repeat") == 0)
    )
    first = pl.col("classes").list.first().is_in(pl.col("truth_classes"))
    among = pl.col("classes").list.head(5).list.set_intersection("truth_classes").list.len() > 0
    table = (
        answers.join(truth, on="case")
        .group_by("follow_up")
        .agg(cases=pl.len(), top_1=first.fill_null(False).mean(), top_5=among.fill_null(False).mean())
    )
    return table.sort(pl.col("follow_up") != SOURCE, "top_1", "follow_up")


def _tables(run: Run, judging: str) -> tuple[list[Table], dict[str, pl.DataFrame]]:
    changes, pairs, right = class_changes(run, judging=judging), confusions(run, judging=judging), correct(run)
    tables = [
        Table(
            "Pairs whose class changed, with the 95 % interval of the share; and how much of the score was lost",
            ["rule", "pairs", "class changed", "share", "median fall"],
            [
                [
                    row["name"],
                    f"{row['pairs']:,}",
                    f"{row['changed']:,}",
                    rate_text(row["share"], row["low"], row["high"]),
                    percent(row["median_fall"]),
                ]
                for row in changes.iter_rows(named=True)
            ],
        ),
        Table(
            f"Which class becomes which, over all rules: the {MOST_CONFUSIONS} most frequent",
            ["from", "to", "pairs"],
            [[*row[:2], f"{row[2]:,}"] for row in pairs.head(MOST_CONFUSIONS).iter_rows()],
        ),
    ]
    if right.height:
        tables.append(
            Table(
                "Answers that name a true class first, and among their first five",
                ["input", "cases", "first", "first five"],
                [[row[0], f"{row[1]:,}", percent(row[2]), percent(row[3])] for row in right.iter_rows()],
            )
        )
    frames = {"changes": changes, "confusions": pairs, "correct": right}
    return [table for table in tables if table.rows], frames


def remarks(run: Run, judging: str) -> list[Finding]:
    """What to know of a run as a whole: whether every image has the same class, and which class becomes which."""
    answers = run.store.predictions(["case", "status", "classes"]).filter(status="ok")
    cases, best = answers["case"].n_unique(), answers["classes"].list.first()
    if cases < FEWEST_CASES or best.n_unique() > 1 or best[0] is None:
        return _most_confused(run, judging)
    words = (
        f"The system named the same class, {best[0]}, for all {cases:,} images and every change of them. Unless "
        "they all show that, it does not look at the image: rules that it passes say nothing."
    )
    return [Finding(words, accuses=True)]


def _most_confused(run: Run, judging: str) -> list[Finding]:
    """Which class becomes which in most violated pairs."""
    limits = pl.col("rule").replace_strict(run.thresholds(), return_dtype=pl.Float64)
    changed = _verdicts(run, judging).filter(kind="class").filter(pl.col("severity") >= limits)
    if changed.is_empty():
        return []
    pairs = changed.group_by("source_class", "class").agg(pairs=pl.len())
    first, other, count = pairs.sort("pairs", "source_class", "class", descending=[True, False, False]).row(0)
    share = of_total(count, changed.height, "pair")
    return [Finding(f"Where the class changes, it is most often from {first} to {other}: in {share}.", accuses=True)]


def _of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    if section.relation != RELATION:
        return None
    tables, _ = _tables(run, judging)
    return PanelContent("Which classes change", tables=tables) if tables else None


def _of_runs(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    tables, frames = _tables(runs[0], judging)
    return TaskTables(tables, frames) if tables else None


PANELS: Mapping[str, Panel] = {"classes": Panel(of_relation=_of_relation, tables=_of_runs, remarks=remarks)}
