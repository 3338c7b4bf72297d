"""Measures finger by finger and landmark by landmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from instar.tasks.hand_pose.counts import FINGERS, HandCounts, finger_of
from instar.tasks.hand_pose.measures import (
    ANSWERING,
    VALUE,
    Floats,
    Row,
    Sums,
    interval_columns,
    landmark_counts,
    pooled,
    ratio,
    sets_of,
)

__all__ = ["fingers_frame", "landmarks_frame", "parts_of", "right_share"]


def parts_of(counts: HandCounts) -> dict[str, list[int]]:
    """The places of the landmarks of each finger, and of the wrist."""
    names = list(enumerate(counts.landmarks))
    fingers = {finger: [place for place, name in names if finger_of(name) == finger] for finger in FINGERS}
    wrist = [place for place, name in names if name == "wrist"]
    return {name: places for name, places in {**fingers, "wrist": wrist}.items() if places}


def right_share(marks: Floats) -> Floats:
    """The share of the reference's landmarks that are right."""
    return ratio(marks[..., 0], marks[..., :3].sum(-1))


def _frame(sums: Sums, parts: Mapping[str, Sequence[int]], head: str) -> pl.DataFrame:
    """The measures of some landmarks each, per group of test cases and per follow-up."""
    each = {name: [place] for place, name in enumerate(sums.counts.follow_ups) if place}
    rows: list[Row] = []
    for name, which in {**sets_of(sums), **each}.items():
        marks = sums.columns(which).marks
        own = np.stack([marks[..., list(places), :].sum(-2) for places in parts.values()], 1)
        named = landmark_counts(own)
        measures = {measure: np.where(own.sum(-1) > 0, pooled(measure, named), np.nan) for measure in ANSWERING}
        measures["right"] = right_share(own)
        rows += [
            {"of": name, head: part, "measure": measure, **number}
            for measure, values in measures.items()
            for part, number in zip(parts, interval_columns(values), strict=True)
        ]
    return pl.DataFrame(
        rows, schema={"of": pl.String, head: pl.String, "measure": pl.String, **dict.fromkeys(VALUE, pl.Float64)}
    )


def fingers_frame(sums: Sums) -> pl.DataFrame:
    return _frame(sums, parts_of(sums.counts), "finger")


def landmarks_frame(sums: Sums) -> pl.DataFrame:
    return _frame(sums, {name: [place] for place, name in enumerate(sums.counts.landmarks)}, "landmark")
