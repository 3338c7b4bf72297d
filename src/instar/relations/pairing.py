"""What relations over one case share: who is compared with whom, where points went, one verdict over all draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Row, Schema
from instar.relations.relation import NOTHING_FOUND, VERDICT_COLUMNS, Evidence
from instar.spelling import Parameter

Floats = npt.NDArray[np.float64]

DRAWS = (
    Parameter("draws", "int", 1, low=1, high=1000, help="follow-ups of a random transformation"),
    Parameter("repeats", "int", 1, low=1, high=1000, help="predictions of each by a stochastic system"),
)

HANDEDNESS = Parameter(
    "handedness", "choice", "auto", choices=("auto", "kept", "swapped"),
    help="auto: left and right change places where the determinant is negative",
)  # fmt: skip


def handedness_words(handedness: str) -> str:
    """What must become of left and right, where a rule says it."""
    return {"kept": "left and right must stay", "swapped": "left and right must change places"}.get(handedness, "")


MARGIN = Parameter(
    "margin", "float", 0.2, low=0, high=1,
    help="what one image shows with confidence is faint if its match in the other scores below the confidence and by "
         "more than this less; 0: what scores below the confidence does not count",
)  # fmt: skip
"""Scores near the confidence cross it by chance; a score of 0.9 that falls to 0.45 does not."""
ROUNDING = 1e-6
"""Stored scores are rounded: a change may exceed the margin by so much."""
FAINT = "the match scores far lower in one of the two images"
SHARE = Parameter(
    "share", "float", 0.5, low=0, high=1,
    help="least share of a subject or an object that must stay in the frame for it to be judged",
)  # fmt: skip
"""Of less than a half, nobody can be asked to find the whole."""


def paired(evidence: Evidence) -> pl.DataFrame:
    """Follow-ups with the row number of the source they are compared with: the same repeat, else the first."""
    keys = evidence.sources.select("case", "repeat").with_row_index("source")
    first = keys.filter(pl.col("repeat") == 0).select("case", pl.col("source").alias("first"))
    return (
        evidence.follow_ups.join(keys, on=["case", "repeat"], how="left")
        .join(first, on="case", how="left")
        .with_columns(pl.coalesce("source", "first").alias("source"))
        .filter(pl.col("source").is_not_null())
    )


def matrices_of(follow_ups: pl.DataFrame) -> Floats:
    """The warp of each follow-up, (follow-ups, 3, 3)."""
    return follow_ups["warp"].explode().to_numpy().reshape(-1, 3, 3).astype(np.float64)


def projected(matrices: Floats, points: npt.NDArray[np.floating]) -> Floats:
    """Each row's points (K, L, 2) through its own matrix (K, 3, 3). Most rules move nothing."""
    moved = np.flatnonzero((matrices != np.eye(3)).any((1, 2)))
    out = np.asarray(points, dtype=np.float64)
    if len(moved):
        out = out.copy()
        m = matrices[moved][:, :, :, None]
        x, y = out[moved, :, 0], out[moved, :, 1]
        divisor = m[:, 2, 0] * x + m[:, 2, 1] * y + m[:, 2, 2]
        out[moved, :, 0] = (m[:, 0, 0] * x + m[:, 0, 1] * y + m[:, 0, 2]) / divisor
        out[moved, :, 1] = (m[:, 1, 0] * x + m[:, 1, 1] * y + m[:, 1, 2]) / divisor
    return out


def touched(places: Floats, regions: pl.Series) -> npt.NDArray[np.bool_]:
    """Which places (rows, points, 2) of follow-ups lie in the boxes that their change touched, given by row."""
    within = np.zeros(places.shape[:2], bool)
    for row in np.flatnonzero((regions.list.len().fill_null(0) > 0).to_numpy()):
        for x0, y0, x1, y1 in np.reshape(regions[int(row)].to_numpy(), (-1, 4)):
            x, y = places[row, :, 0], places[row, :, 1]
            within[row] |= (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
    return within


def _quantile(how: str) -> float:
    try:
        share = float(how)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(
            f"aggregate {how!r} is not allowed; it takes median, mean, max, min, median+mean, or a quantile from 0 to 1"
        )
    return share


def aggregated(distance: Floats, how: str) -> Floats:
    """One number per row over its numbers that are not NaN; NaN for a row without any. ∞ is a number here."""
    count = (~np.isnan(distance)).sum(-1)
    none = count == 0
    if how == "max":
        out = np.where(np.isnan(distance), -np.inf, distance).max(-1)
    elif how == "min":
        out = np.where(np.isnan(distance), np.inf, distance).min(-1)
    elif how == "mean":
        out = np.where(np.isnan(distance), 0, distance).sum(-1) / np.maximum(count, 1)
    else:
        if how == "median+mean":
            distance = np.concatenate([distance, aggregated(distance, "mean")[:, None]], -1)
            count = np.where(none, 0, count + 1)
        ordered = np.sort(distance, -1)  # NaN last
        place = (count - 1).clip(0) * (0.5 if how.startswith("median") else _quantile(how))
        low = np.floor(place).astype(np.int64)
        below = np.take_along_axis(ordered, low[:, None], -1)[:, 0]
        above = np.take_along_axis(ordered, np.ceil(place).astype(np.int64)[:, None], -1)[:, 0]
        part = place - low
        with np.errstate(invalid="ignore"):
            out = np.where((part == 0) | (below == above), below, below + part * (above - below))
        out = np.where((part > 0) & np.isinf(above), np.inf, out)
    return np.where(none, np.nan, out)


def per_pair(rows: Sequence[Row], follow_ups: pl.DataFrame, measures: Schema) -> pl.DataFrame:
    """Verdicts of numbered rows of follow-ups as those of their keys, one per target over all draws and repeats."""
    own = {name: kind for name, kind in VERDICT_COLUMNS.items() if name not in ("case", "follow_up")}
    keys = follow_ups.select("case", "follow_up", "draw", "repeat").with_row_index("row")
    verdicts = pl.DataFrame(rows, schema={"row": pl.UInt32, **own, **measures}, orient="row")
    return over_draws(verdicts.join(keys, on="row", maintain_order="left"), keys, measures)


def over_draws(verdicts: pl.DataFrame, keys: pl.DataFrame, measures: Schema) -> pl.DataFrame:
    """One verdict per target over all draws and repeats: the median severity.

    The median of three is at least t exactly when two of three are: a majority vote at every threshold.
    A target missing from a draw (nothing was invented there) counts as 0 in it, and so does one of which nothing was
    found in either image, unless that is so in every draw. Kind and measures are those of the worst draw.
    """
    columns = [*VERDICT_COLUMNS, *measures]
    if not keys.select((pl.col("draw") + pl.col("repeat") > 0).any()).item():
        return verdicts.select(columns)
    group = ["case", "follow_up", "target"]
    tries = keys.group_by("case", "follow_up").len("tries")
    empty = pl.col("severity").is_null() & (pl.col("reason") == NOTHING_FOUND)
    some = pl.col("severity").is_not_null().any().over(group)
    verdicts = verdicts.with_columns(
        pl.when(empty & some).then(0.0).otherwise(pl.col("severity")).alias("severity"),
        pl.when(empty & some).then(None).otherwise(pl.col("reason")).alias("reason"),
    )
    worst_first = verdicts.sort("severity", descending=True, nulls_last=True, maintain_order=True)
    merged = worst_first.group_by(group, maintain_order=True).agg(
        pl.col("severity").alias("all"), pl.all().exclude([*group, "severity"]).first()
    )
    merged = merged.join(tries, on=["case", "follow_up"], maintain_order="left")
    severity = [
        None
        if (judged := [v for v in values if v is not None]) == []
        else float(aggregated(np.asarray([judged + [0.0] * (tried - len(values))]), "median")[0])
        for values, tried in zip(merged["all"].to_list(), merged["tries"], strict=True)
    ]
    return (
        merged.with_columns(pl.Series("severity", severity, pl.Float64))
        .with_columns(pl.when(pl.col("severity") > 0).then(pl.col("kind")).alias("kind"))
        .select(columns)
    )
