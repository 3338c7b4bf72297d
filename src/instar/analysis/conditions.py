"""Count the cases in which the condition of a rule occurred: if it never did, a rule that passes has tested nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.engine import DEFAULT, SOURCE_ANSWERED, chunks
from instar.outputs import Schema, output_kind
from instar.relations.pairing import matrices_of, projected
from instar.suites import declared

if TYPE_CHECKING:
    from instar.analysis.run import Run

Floats = npt.NDArray[np.float64]

LEAST_CUT = 0.05
"""A subject is cut if at least this share of its box leaves the frame."""
FEWEST, LEAST_SHARE = 3, 0.05
"""A condition is absent if fewer cases, or a smaller share of them, meet it. Of 1 or 2 cases all have to."""

SCHEMA: Schema = {"rule": pl.String, "condition": pl.String, "judged": pl.Int64, "met": pl.Int64, "absent": pl.Boolean}
_PAIR = ("case", "rule", "target")
_NUMBER = pl.col("target").str.extract(r"^(\d+)(?:/|$)", 1).cast(pl.UInt32)


def condition_counts(run: Run, judging: str = DEFAULT) -> pl.DataFrame:
    """Count the judged cases that meet the condition of their rule, as `Run.conditions` describes.

    The frame is empty if the outputs have no subjects.
    """
    conditions = declared(run.manifest.suites, run.manifest.rules, lambda suite: suite.conditions)
    cut = _cut_subjects(run, list(conditions)) if conditions else None
    if cut is None:
        return pl.DataFrame(schema=SCHEMA)
    rules = pl.col("rule").is_in(list(conditions)) & pl.col("severity").is_not_null()
    parts = run.store.verdict_parts(judging, [*_PAIR, "severity"], rules)
    pairs = pl.concat([cut.clear(), *(part.select("case", "rule", target=_NUMBER) for part in parts)])
    by_case = (
        pairs.join(cut.with_columns(cut=True), on=_PAIR, how="left", maintain_order="left")
        .group_by("rule", "case", maintain_order=True)
        .agg(met=pl.col("cut").any())
    )
    counts = by_case.group_by("rule", maintain_order=True).agg(
        condition=pl.col("rule").first().replace_strict(conditions, return_dtype=pl.String),
        judged=pl.len().cast(pl.Int64),
        met=pl.col("met").sum().cast(pl.Int64),
    )
    judged, met = pl.col("judged"), pl.col("met")
    absent = (met < pl.min_horizontal(judged, FEWEST)) | (met < LEAST_SHARE * judged)
    ordered = pl.DataFrame({"rule": list(conditions)}).join(counts, on="rule", maintain_order="left")
    return ordered.with_columns(absent=absent).select(list(SCHEMA))


def _cut_subjects(run: Run, rules: list[str]) -> pl.DataFrame | None:
    """Return the subjects that the frame cuts: `case`, `rule` and the subject's number in the source as `target`.

    Returns None if the outputs have no subjects, or nothing was predicted yet.
    """
    manifest = run.manifest
    if manifest.output is None:
        return None
    kind = output_kind(manifest.system.kind)
    asked = [(one.transformations[0].id, one.id) for one in run.bound_rules() if one.id in rules]
    names = pl.DataFrame(asked, {"follow_up": pl.String, "rule": pl.String}, orient="row")
    answered = (pl.col("repeat") == 0) & (pl.col("status") == "ok")
    moved = pl.col("follow_up").is_in(names["follow_up"].implode()) & answered
    cut = [pl.DataFrame(schema={"case": pl.String, "rule": pl.String, "target": pl.UInt32})]
    for piece in chunks(run.store, SOURCE_ANSWERED | moved):
        sources = piece.predictions(["case", "width", "height", *kind.columns], SOURCE_ANSWERED)
        subjects = kind.subjects(sources, manifest.header)
        if subjects is None:
            return None
        subjects = subjects.with_columns(target=pl.int_range(pl.len(), dtype=pl.UInt32).over("row"))
        subjects = subjects.join(sources.select("case", "width", "height").with_row_index("row"), on="row")
        follow_ups = piece.predictions(["case", "follow_up", "warp", "width", "height"], moved)
        pairs = follow_ups.join(subjects, on="case", suffix="_source", maintain_order="left")
        if pairs.height:
            lost = pairs.filter(_share_outside(pairs) >= LEAST_CUT).unique(["case", "follow_up", "target"])
            cut.append(lost.join(names, on="follow_up").select(_PAIR))
    return pl.concat(cut)


def _share_outside(pairs: pl.DataFrame) -> pl.Series:
    """Return the share of each subject's box, as far as the source shows it, that leaves the follow-up's frame."""
    boxes = pairs.select("x0", "y0", "x1", "y1").to_numpy().astype(np.float64)
    shown = _clipped(boxes, pairs.select("width_source", "height_source").to_numpy())
    corners = projected(matrices_of(pairs), shown[:, [[0, 1], [2, 1], [2, 3], [0, 3]]])
    moved = np.concatenate([corners.min(1), corners.max(1)], -1)
    kept = _areas(_clipped(moved, pairs.select("width", "height").to_numpy()))
    whole = _areas(moved)
    return pl.Series(1 - np.divide(kept, whole, out=np.ones_like(kept), where=whole > 0))


def _clipped(boxes: Floats, sizes: npt.NDArray[np.number]) -> Floats:
    return np.asarray(np.clip(boxes, 0, np.tile(sizes, 2)))


def _areas(boxes: Floats) -> Floats:
    return np.asarray(np.prod(boxes[:, 2:] - boxes[:, :2], -1))
