"""Object relevance in numbers: per rule, how many objects and images show which outcome."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np
import polars as pl

from instar.analysis import Run
from instar.analysis.clusters import clustered
from instar.engine import DEFAULT, SOURCE_ANSWERED
from instar.tasks.object_relevance.relations import ONLY_MEASURED, OUTCOMES, RELATIONS
from instar.warp import boxes_iou

RELATION = "presence"
"""The relation whose verdicts are about objects."""


def presence_rules(run: Run) -> list[str]:
    """The rules of a run about the presence of objects, in their order. Raises ValueError where there are none."""
    rules = run.rules().filter(relation=RELATION)["rule"].to_list()
    if not rules:
        raise ValueError(
            f"{run.folder} has no rules about the presence of objects; `instar run DETECTOR object-relevance DATASET` "
            "makes such a run"
        )
    return rules


def object_table(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """Tables 6 to 10: one row per rule of the relation `presence`, in the order of the rules.

    Rules about one object each, which differ by its number alone, share a row.

    `annotated` counts all objects (those that the system found, where nothing is annotated), an object once for every
    change that is about it: about the others, once for each other one that was erased. `objects` is what was judged
    of them, and `found` what was judged and is found in the source. `missing`, `incorrect`, `persists` and `unfound`
    are the objects with that outcome in at least `threshold` of their follow-ups. `of_found` is the share of unreliable
    inferences among the objects found in the source, with its 95 % interval `low` to `high`, which
    takes the objects of one image as a cluster; `of_annotated` the share
    of all annotated objects with any outcome. `images` counts images with a judged object, `images_…` those with such
    an outcome: an image counts once in each that it shows. `images_none` has at least one reliable inference, as in
    the paper, and `images_clean` no violation at all. `still_found` is the response curve: of the `tried` objects, how
    often they are found in follow-ups. Those are the objects `found`; where too little is erased for anything to be
    judged, all that are found in the source. Objects of which nothing is claimed for another reason are in neither.
    """
    limits = run.thresholds(threshold)
    return outcome_table(run.verdicts(judging), {rule: limits[rule] for rule in presence_rules(run)})


def outcome_table(verdicts: pl.DataFrame, limits: Mapping[str, float]) -> pl.DataFrame:
    """The same of some verdicts; `limits` are the rules in their order with their thresholds."""
    for name, dtype in (("found_source", pl.Boolean), ("found", pl.Float64), ("label", pl.String)):
        if name not in verdicts.columns:
            verdicts = verdicts.with_columns(pl.lit(None, dtype).alias(name))
    of_rules = (
        pl.LazyFrame({"rule": list(limits), "limit": list(limits.values())}, {"rule": pl.String, "limit": pl.Float64})
        .join(verdicts.lazy(), on="rule", maintain_order="left")
        .with_columns(pl.col("rule").str.replace(r"only=\d+", "each object"))
    )
    judged = pl.col("severity").is_not_null()
    broken = judged & (pl.col("severity") >= pl.col("limit")) & (pl.col("severity") > 0)
    tried = (judged | pl.col("reason").str.starts_with(ONLY_MEASURED)) & pl.col("found_source")
    shows = {name: broken & (pl.col("kind") == name) for name in OUTCOMES}
    of_objects = of_rules.group_by("rule", maintain_order=True).agg(
        annotated=pl.col("label").is_not_null().sum().cast(pl.Int64),
        objects=judged.sum().cast(pl.Int64),
        **{name: hit.sum().cast(pl.Int64) for name, hit in shows.items()},
        broken=broken.sum().cast(pl.Int64),
        broken_found=(broken & pl.col("found_source")).sum().cast(pl.Int64),
        judged_found=(judged & pl.col("found_source")).sum().cast(pl.Int64),
        tried=tried.sum().cast(pl.Int64),
        still_found=pl.col("found").filter(tried).mean(),
    )
    images = _image_counts(of_rules.filter(judged).with_columns(broken=broken, **shows))
    table = (
        of_objects.join(images, on="rule", how="left", maintain_order="left")
        .with_columns(pl.col("^images.*$").fill_null(0))
        .rename({"judged_found": "found"})
        .collect()
    )
    of_found = of_rules.filter(judged & pl.col("found_source")).select("rule", "case", hit=broken).collect()
    table = table.join(clustered(of_found, "rule"), on="rule", how="left", maintain_order="left")
    share = pl.when(pl.col("found") > 0)
    numbers = ("images", *(f"images_{name}" for name in OUTCOMES), "images_none", "images_clean")
    return table.with_columns(
        of_found=share.then(pl.col("broken_found") / pl.col("found")),
        of_annotated=pl.when(pl.col("objects") > 0).then(pl.col("broken") / pl.col("annotated")),
    ).select(
        "rule", "annotated", "objects", "found", *OUTCOMES, "of_found", "low", "high", "of_annotated",
        *numbers, "tried", "still_found",
    )  # fmt: skip


def _image_counts(judged: pl.LazyFrame) -> pl.LazyFrame:
    """How many images of a rule show each outcome, at least one reliable inference, and no violation."""
    return (
        judged.group_by("rule", "case")
        .agg(pl.col(*OUTCOMES).any(), reliable=(~pl.col("broken")).any(), clean=(~pl.col("broken")).all())
        .group_by("rule")
        .agg(
            images=pl.len().cast(pl.Int64),
            **{f"images_{name}": pl.col(name).sum().cast(pl.Int64) for name in OUTCOMES},
            images_none=pl.col("reliable").sum().cast(pl.Int64),
            images_clean=pl.col("clean").sum().cast(pl.Int64),
        )
    )


def objects_beyond(run: Run) -> tuple[int, int]:
    """Of a run with rules about one object each: how many annotated objects no rule reaches, and in how many images."""
    numbers = [int(n) for rule in presence_rules(run) for n in re.findall(r"only=(\d+)", rule)]
    cases = run.store.cases()
    if not numbers or "truth_labels" not in cases.columns:
        return 0, 0
    more = cases["truth_labels"].list.len().cast(pl.Int64) - (max(numbers) + 1)
    beyond = more.filter(more > 0)
    return int(beyond.sum()), beyond.len()


PLACED = 0.5
"""The overlap from which a box lies on an annotated object."""


def class_names(run: Run, judging: str = DEFAULT) -> tuple[int, int, Counter[tuple[str, str]]]:
    """How many objects are annotated in the sources that were answered, on how many lies a box of their own class, and
    on the others that have a box on them: the class of the annotation, and what the system calls it.

    Boxes count that score at least the confidence of the judging; of several, the one that fits best.
    """
    cases, every, own = run.store.cases(), 0, 0
    others: Counter[tuple[str, str]] = Counter()
    if not {"truth_boxes", "truth_labels"} <= set(cases.columns):
        return every, own, others
    confidence = float(run.judging(judging).of(RELATIONS[RELATION])["confidence"])
    answers = run.store.predictions(["case", "boxes", "labels", "scores"], where=SOURCE_ANSWERED)
    rows = answers.join(cases.select("case", "truth_boxes", "truth_labels"), on="case")
    for row in rows.filter(pl.col("truth_labels").list.len() > 0).iter_rows(named=True):
        sure = np.asarray(row["scores"]) >= confidence
        boxes = np.asarray(row["boxes"], np.float64).reshape(-1, 4)[sure]
        labels = [label for label, counts in zip(row["labels"], sure, strict=True) if counts]
        truth = np.asarray(row["truth_boxes"], np.float64).reshape(-1, 4)
        every += len(truth)
        for label, overlap in zip(row["truth_labels"], boxes_iou(truth, boxes), strict=True):
            placed = sorted(np.flatnonzero(overlap >= PLACED), key=lambda box: -overlap[box])
            if any(labels[box] == label for box in placed):
                own += 1
            elif placed:
                others[label, labels[placed[0]]] += 1
    return every, own, others
