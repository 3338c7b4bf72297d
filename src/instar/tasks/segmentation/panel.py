"""What a report shows of a segmenter: overlap and agreement per rule, and the classes that suffer most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT, SOURCE
from instar.outputs.segmentation import UNKNOWN
from instar.report.finding import Finding
from instar.report.panels import Panel, PanelContent, Table, TaskTables
from instar.report.section import Section
from instar.report.words import listed, of_total, percent
from instar.scene import decode_classes

RELATION = "class_overlap"
FEWEST_CASES = 3
"""Images that must have the same answer before that is worth saying."""
MOST_MAPS = 50
"""Different maps that are looked into: one with a class of its own is enough to answer."""


def overlaps(run: Run, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Per rule: pairs, mean mIoU, mean agreement of cells, and the class that is worst most often: in how many pairs,
    and its mean IoU in these.

    `unmatched` of the pairs have most of their cells in one image alone: they have no IoU, and are in no mean.
    """
    schema = {"rule": pl.String, "name": pl.String, "pairs": pl.UInt32}
    rules = run.rules().filter(relation=RELATION).select("rule", "name")
    verdicts = run.verdicts(judging).filter(pl.col("severity").is_not_null())
    if rules.is_empty() or verdicts.is_empty():
        return pl.DataFrame(schema=schema)
    named = verdicts.join(rules, on="rule", maintain_order="left")
    worst = (
        named.filter(pl.col("mean_iou").is_not_null())
        .group_by("rule", "worst")
        .agg(worst_pairs=pl.len(), worst_iou=pl.col("worst_iou").mean())
        .sort("worst_pairs", "worst_iou", "worst", descending=[True, False, False])
        .unique("rule", keep="first", maintain_order=True)
    )
    return (
        named.group_by("rule", "name", maintain_order=True)
        .agg(
            pairs=pl.len(),
            unmatched=pl.col("mean_iou").is_null().sum(),
            miou=pl.col("mean_iou").mean(),
            agreement=pl.col("pixel_accuracy").mean(),
        )
        .join(worst, on="rule", how="left", maintain_order="left")
        .sort("miou", maintain_order=True)
    )


def _table(frame: pl.DataFrame) -> Table:
    rows = []
    for row in frame.iter_rows(named=True):
        known = row["miou"] is not None
        share = of_total(row["worst_pairs"], row["pairs"] - row["unmatched"], "pair") if known else ""
        worst = f"{row['worst']}, in {share} ({row['worst_iou']:.2f})" if known and row["worst_iou"] < 1 else "–"
        counts = f"{row['pairs']:,}", f"{row['unmatched']:,}"
        rows.append([row["name"], *counts, f"{row['miou']:.3f}" if known else "–", percent(row["agreement"]), worst])
    return Table(
        "Mean IoU of the classes present, the share of cells that agree, and the class that is worst most often, with "
        "its mean IoU in those pairs. Unmatched pairs know most of their cells in one image alone: they are in no mean",
        ["rule", "pairs", "unmatched", "mean IoU", "cells that agree", "worst class"],
        rows,
    )


def remarks(run: Run, judging: str) -> list[Finding]:
    """What to know of a run as a whole: whether every image has the same map, and which class suffers most."""
    sources = run.store.predictions(["case", "follow_up", "status", "cells"]).filter(status="ok", follow_up=SOURCE)
    cases = sources["case"].n_unique()
    maps = run.store.whole(sources.unique("cells", maintain_order=True).head(MOST_MAPS))["cells"]
    suffers = _suffers(run, judging)
    if cases < FEWEST_CASES:
        return suffers
    values = {int(value) for cells in maps for value in np.unique(decode_classes(cells))[:2]}
    if len(values) > 1 and len(maps) > 1:
        return suffers
    name = run.manifest.header["names"][min(values)] if max(values) != UNKNOWN else "unknown"
    what = f"{name} everywhere" if len(values) == 1 else "the same map"
    words = (
        f"The system answered all {cases:,} images with {what}. Unless they all look like that, it does not look at "
        "the image: rules that it passes say nothing."
    )
    return [Finding("segmentation.same_map", words, True, {"images": cases, "map": what}), *suffers]


def _suffers(run: Run, judging: str) -> list[Finding]:
    """Which class overlaps least in most violated pairs."""
    limits = pl.col("rule").replace_strict(run.thresholds(), return_dtype=pl.Float64)
    violated = run.verdicts(judging).filter(pl.col("severity") >= limits)
    named = violated["worst"].drop_nulls() if "worst" in violated.columns else pl.Series(dtype=pl.String)
    if named.is_empty():
        return []
    counts = named.value_counts(name="pairs")
    most = counts.filter(pl.col("pairs") == pl.col("pairs").max())
    names = listed(most["worst"].sort().to_list())
    share = of_total(most["pairs"][0], violated.height, "pair")
    each = "" if most.height == 1 else "each "
    words = f"Of what is violated, the class that overlaps least is most often {names}: {each}in {share}."
    figures = {"classes": most["worst"].sort().to_list(), "pairs": most["pairs"][0], "violated": violated.height}
    return [Finding("segmentation.worst_class", words, True, figures)]


def _of_relation(run: Run, section: Section, judging: str) -> PanelContent | None:
    frame = overlaps(run, judging=judging) if section.relation == RELATION else pl.DataFrame()
    return PanelContent("How well the classes overlap", tables=[_table(frame)]) if frame.height else None


def _tables(runs: Sequence[Run], judging: str, p: float) -> TaskTables | None:
    frame = overlaps(runs[0], judging=judging)
    return TaskTables([_table(frame)], {"overlaps": frame}) if frame.height else None


PANELS: Mapping[str, Panel] = {
    "overlaps": Panel(of_relation=_of_relation, tables=_tables, remarks=remarks, kind="segmentation")
}
