"""The kinds' own equivariance: the output moves as the input was moved, and does not change otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.detections import Detections
from instar.outputs.poses import PoseBatch
from instar.relations.relation import VERDICT_COLUMNS, Evidence, Relation
from instar.skeleton import Part, Skeleton
from instar.spelling import Parameter
from instar.warp import boxes_iou, inside

__all__ = [
    "DRAWS",
    "RELATIONS",
    "PosePairs",
    "Strayed",
    "matrices_of",
    "over_draws",
    "paired",
    "per_pair",
    "pose_pairs",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Chosen = tuple[tuple[Part, tuple[int, ...]], ...]

DRAWS = (
    Parameter("draws", "int", 1, low=1, high=1000, help="follow-ups of a random transformation"),
    Parameter("repeats", "int", 1, low=1, high=1000, help="predictions of each by a stochastic system"),
)

BLOCK = 4096
"""Pairs of subjects compared at a time: their landmarks fit into the processor's cache."""

# --- poses -----------------------------------------------------------------------------------------

POSE_MEASURES: dict[str, Any] = {"compared": pl.Int32, "missing": pl.Int32, "worst": pl.String, "length": pl.Float64}


def poses(evidence: Evidence) -> pl.DataFrame:
    """Severity in body lengths of the source subject, per subject and part.

    Distances are in pixels of the source frame: actual landmarks are carried back. A landmark present on one
    side only is ∞; landmarks whose expected place is outside the follow-up's frame are left out.
    """
    pairs = pose_pairs(evidence)
    if pairs.follow_ups.is_empty():
        return pl.DataFrame(schema={**VERDICT_COLUMNS, **POSE_MEASURES})
    found = [_whole(_invented(pairs), pairs.told.counts[pairs.source_of])]
    found += [_part_verdicts(strayed, pairs.bones, evidence.options["aggregate"]) for strayed in pairs.strayed()]
    keys = pairs.follow_ups.select("case", "follow_up", "draw", "repeat").with_row_index("row")
    return over_draws(pl.concat(found).join(keys, on="row", maintain_order="left"), keys, POSE_MEASURES)


@dataclass(frozen=True, slots=True, eq=False)
class Strayed:
    """How far the chosen landmarks of one part strayed, in some pairs of subjects.

    `distance` (pairs, landmarks) is in pixels of the source frame, or in its 0–1 coordinates where the judging says so:
    ∞ on one side only, NaN where there is nothing to judge. `length` (pairs,) is one body length, NaN where unknown.
    """

    part: Part
    landmarks: Ints
    rows: Ints
    """The follow-up of each pair."""
    subjects: Ints
    """The source subject of each pair, as its ordinal in the source output."""
    distance: Floats
    length: Floats
    before: Flags
    """Whether any of the landmarks was in the source output."""
    after: Flags
    """Whether any of them was in the follow-up's."""
    judged: Flags
    """Whether any of them is left to judge."""
    told: Flags
    """Which landmarks (pairs, landmarks) the source has."""

    @property
    def severity(self) -> Floats:
        """Each landmark's own severity (pairs, landmarks): what a judging of that landmark alone would say of it."""
        return np.where(np.isinf(self.distance), np.inf, self.distance / self.length[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class PosePairs:
    """Which subject of a follow-up answers to which of its source.

    Follow-up r is compared with source `source_of[r]`. A pair is a follow-up (`rows`), a source subject (`first`) and a
    follow-up's subject (`second`), numbered in `told` and `said`; -1 is nobody.
    """

    bones: Skeleton
    chosen: Chosen
    options: Mapping[str, Any]
    follow_ups: pl.DataFrame
    told: PoseBatch
    said: PoseBatch
    source_of: Ints
    frames: Floats
    """The size of each follow-up's source."""
    sizes: Floats
    """The size of each follow-up."""
    matrices: Floats
    backs: Floats
    swaps: Flags
    rows: Ints
    first: Ints
    second: Ints

    def strayed(self) -> Iterator[Strayed]:
        """Every part in turn, so many pairs at a time. What was invented has no source subject, and is left out."""
        known = self.first >= 0
        rows, first, second = self.rows[known], self.first[known], self.second[known]
        # one function: arrays of one block are let go when those of the next are there, which spares the allocator
        # from giving their memory back in between (a quarter of the time)
        for part, indices in self.chosen:
            take = np.asarray(indices)
            for at in range(0, len(rows), BLOCK):
                row, mine, theirs = (pairs[at : at + BLOCK] for pairs in (rows, first, second))
                frames = self.frames[row]
                scale = frames if self.options["space"] == "normalised" else np.ones((len(row), 2))
                expected = _chosen(self.told.points[mine], take).astype(np.float64)
                actual = _landmarks(self.said, theirs, self.swaps[row], self.bones, take)
                there, here = ~np.isnan(expected[..., 0]), ~np.isnan(actual[..., 0])
                seen = there | here
                if self.options["outside"] == "leave":
                    places = np.where(there[..., None], projected(self.matrices[row], expected), actual)
                    seen &= inside(places, self.sizes[row][:, None])
                gap = (projected(self.backs[row], actual) - expected) / scale[:, None]
                distance = np.hypot(gap[..., 0], gap[..., 1])
                distance[there ^ here] = np.inf
                distance[~seen] = np.nan
                length = _length(self.told.points, mine, scale, part, self.options["normaliser"], frames / scale)
                yield Strayed(
                    part,
                    take,
                    row,
                    mine - self.told.offsets[self.source_of[row]],
                    distance,
                    length,
                    _some(there),
                    _some(here),
                    _some(seen),
                    there,
                )


def pose_pairs(evidence: Evidence) -> PosePairs:
    """The subjects of follow-ups matched with those of their sources, as a judging with these options sees them."""
    bones = Skeleton.from_dict(evidence.header["skeleton"])
    options = evidence.options
    chosen = bones.select(options["landmarks"] or bones.default)
    follow = paired(evidence)
    count = len(bones.landmarks)
    told = _confident(PoseBatch.from_frame(evidence.sources, count), options)
    said = _confident(PoseBatch.from_frame(follow, count), options)
    source_of = follow["source"].to_numpy().astype(np.int64)
    matrices = matrices_of(follow)
    swaps = _swaps(matrices, evidence.parameters["handedness"])
    rows, first, second = _matches(told, said, source_of, matrices, swaps, bones)
    return PosePairs(
        bones,
        chosen,
        options,
        follow,
        told,
        said,
        source_of,
        _sizes(evidence.sources)[source_of],
        _sizes(follow),
        matrices,
        _inverses(matrices),
        swaps,
        rows,
        first,
        second,
    )


def renamed_poses(found: pl.DataFrame, others: Skeleton, bones: Skeleton) -> list[pl.Series]:
    """Stored poses of one skeleton as those of another, by the names of landmarks; NaN where it has none."""
    mine, theirs = bones.mapping(others)
    batch = PoseBatch.from_frame(found, len(others.landmarks))
    points = np.full((len(batch.points), len(bones.landmarks), 2), np.nan, np.float32)
    points[:, mine] = batch.points[:, theirs]
    seen = np.zeros(points.shape[:2], np.float32)
    seen[:, mine] = batch.visibility[:, theirs]
    columns = {"points": points, "visibility": seen, "scores": batch.scores}
    return [
        pl.Series(name, [values[a:b].ravel().tolist() for a, b in pairwise(batch.offsets)], pl.List(pl.Float32))
        for name, values in columns.items()
    ]


def _sizes(rows: pl.DataFrame) -> Floats:
    return rows.select("width", "height").to_numpy().astype(np.float64)


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


def _confident(batch: PoseBatch, options: Mapping[str, Any]) -> PoseBatch:
    """Only subjects and landmarks that the system is sure enough of."""
    points, keep = batch.points, batch.scores >= options["confidence"]
    if options["visibility"] > 0:
        points = np.where((batch.visibility >= options["visibility"])[..., None], points, np.float32(np.nan))
        keep &= ~np.isnan(points[..., 0]).all(1)
    if keep.all():
        return PoseBatch(points, batch.visibility, batch.scores, batch.offsets)
    kept = np.concatenate([[0], np.cumsum(keep)])[batch.offsets]
    return PoseBatch(points[keep], batch.visibility[keep], batch.scores[keep], kept)


def matrices_of(follow: pl.DataFrame) -> Floats:
    return follow["warp"].explode().to_numpy().reshape(-1, 3, 3).astype(np.float64)


def _swaps(matrices: Floats, handedness: str) -> Flags:
    """Which rows exchange left and right: the determinant alone decides, unless a rule spells otherwise."""
    if handedness == "auto":
        first, which = _different(matrices)
        return np.asarray(np.linalg.det(matrices[first]) < 0)[which]
    return np.full(len(matrices), handedness == "swapped")


def projected(matrices: Floats, points: npt.NDArray[Any]) -> Floats:
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


def _inverses(matrices: Floats) -> Floats:
    first, which = _different(matrices)
    return np.asarray(np.linalg.inv(matrices[first]))[which]


def _different(matrices: Floats) -> tuple[Ints, Ints]:
    """Where each different matrix occurs first, and which of them each row has: a run has few different warps."""
    flat = np.ascontiguousarray(matrices.reshape(-1, 9))
    _, first, which = np.unique(
        flat.view(np.dtype((np.void, flat.dtype.itemsize * 9))), return_index=True, return_inverse=True
    )
    return first, which.reshape(-1)


def _landmarks(batch: PoseBatch, subjects: Ints, swapped: Flags, bones: Skeleton, take: Ints) -> Floats:
    """The chosen landmarks of some subjects, in the source's sense of left and right; NaN for no subject."""
    if not len(batch.points):
        return np.full((len(subjects), len(take), 2), np.nan)
    points = batch.points[np.maximum(subjects, 0)]
    points[swapped] = points[swapped][:, bones.swap]
    found: Floats = _chosen(points, take).astype(np.float64)
    found[subjects < 0] = np.nan
    return found


def _some(landmarks: Flags) -> Flags:
    """Which subjects (K, L) have any of these landmarks."""
    return np.asarray(landmarks.any(1))


def _chosen(points: npt.NDArray[np.float32], take: Ints) -> npt.NDArray[np.float32]:
    """Some landmarks of every subject; all of them, the usual case, without another copy."""
    return points if len(take) == points.shape[1] else points[:, take]


def _matches(
    told: PoseBatch, said: PoseBatch, source_of: Ints, matrices: Floats, swaps: Flags, bones: Skeleton
) -> tuple[Ints, Ints, Ints]:
    """Pairs of subjects as (row, source subject, follow-up subject); -1 where a side has none.

    Subjects are matched by the smallest total of mean landmark distances, in the source frame. Rows with equal
    numbers of subjects are matched together.
    """
    many, more = told.counts[source_of], said.counts
    rows, first, second = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    widest = more.max(initial=0) + 1
    for n, m in (divmod(int(code), int(widest)) for code in np.unique(many * widest + more)):
        members = np.flatnonzero((many == n) & (more == m))
        mine = told.offsets[source_of[members]][:, None] + np.arange(n)
        theirs = said.offsets[members][:, None] + np.arange(m)
        if n == 0 or m == 0:
            partner = np.full((len(members), n), -1)
        elif n == m == 1:
            partner = np.zeros((len(members), 1), np.int64)
        else:
            everything = np.arange(len(bones.landmarks))
            actual = _landmarks(said, theirs.ravel(), np.repeat(swaps[members], m), bones, everything)
            actual = projected(_inverses(np.repeat(matrices[members], m, 0)), actual).reshape(len(members), m, -1, 2)
            partner = assigned(_mean_gaps(told.points[mine].astype(np.float64), actual))
        paired = partner >= 0
        rows.append(np.repeat(members, n))
        first.append(mine.ravel())
        second.append(np.where(paired, np.take_along_axis(theirs, partner.clip(0), 1) if m else -1, -1).ravel())
        taken = np.zeros((len(members), m), bool)
        at, _ = np.nonzero(paired)
        taken[at, partner[paired]] = True
        alone, which = np.nonzero(~taken)
        rows.append(members[alone])
        first.append(np.full(len(alone), -1))
        second.append(theirs[alone, which])
    return np.concatenate(rows), np.concatenate(first), np.concatenate(second)


def _mean_gaps(mine: Floats, theirs: Floats) -> Floats:
    """Mean distance over shared landmarks of subjects (R, n, L, 2) and (R, m, L, 2); huge where none is shared."""
    gap = mine[:, :, None] - theirs[:, None]
    distance = np.hypot(gap[..., 0], gap[..., 1])
    both = ~np.isnan(distance)
    shared = both.sum(-1)
    return np.where(shared > 0, np.where(both, distance, 0).sum(-1) / np.maximum(shared, 1), 1e12)


def assigned(cost: Floats) -> Ints:
    """The cheapest one-to-one assignment of each cost matrix (R, n, m): for every row its column, or -1."""
    count, n, m = cost.shape
    if n > m:
        columns = assigned(np.swapaxes(cost, 1, 2))
        partner = np.full((count, n), -1)
        np.put_along_axis(partner, columns, np.broadcast_to(np.arange(m), columns.shape), 1)
        return partner
    if math.perm(m, n) <= 120:  # few enough to try them all, for all rows at once
        orders = np.array(list(permutations(range(m), n)))
        return np.asarray(orders[cost[:, np.arange(n), orders].sum(-1).argmin(1)])
    from scipy.optimize import linear_sum_assignment

    return np.array([linear_sum_assignment(one)[1] for one in cost], np.int64).reshape(count, n)


def _length(
    points: npt.NDArray[np.float32], subjects: Ints, scale: Floats, part: Part, normaliser: str, frames: Floats
) -> Floats:
    """What one body length is for each of some subjects: NaN where it has none."""

    def landmarks(indices: tuple[int, ...]) -> Floats:
        return np.asarray(points[subjects[:, None], indices].astype(np.float64) / scale[:, None])

    if normaliser == "pixels":
        return np.ones(len(subjects))
    if normaliser == "image":
        return np.asarray(np.linalg.norm(frames, axis=-1))
    if normaliser == "box":
        own = landmarks(part.landmarks)
        absent = np.isnan(own)
        length = np.linalg.norm(np.where(absent, -np.inf, own).max(1) - np.where(absent, np.inf, own).min(1), axis=-1)
    else:
        length = np.full(len(subjects), np.nan)
        for one, other in part.lengths:
            ends = np.linalg.norm(landmarks(one).mean(1) - landmarks(other).mean(1), axis=-1)
            length = np.where(np.isnan(length), ends, length)
    return np.where((length > 0) & np.isfinite(length), length, np.nan)


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


def _invented(pairs: PosePairs) -> Ints:
    """How many subjects of each follow-up have no counterpart and show any of the chosen landmarks."""
    alone = pairs.first < 0
    rows, subjects = pairs.rows[alone], pairs.second[alone]
    take = np.concatenate([np.asarray(indices) for _, indices in pairs.chosen])
    shows = ~np.isnan(pairs.said.points[subjects][:, take, 0]).all(1) if len(subjects) else np.zeros(0, bool)
    return np.bincount(rows[shows], minlength=len(pairs.follow_ups))


def _whole(invented: Ints, told: Ints) -> pl.DataFrame:
    """Verdicts about the whole: what was invented, and the peace of two empty answers."""
    rows = np.flatnonzero((invented > 0) | (told == 0))
    extra = invented[rows] > 0
    nothing = np.full(len(rows), -1)
    return _verdicts(
        rows,
        _named(["whole"], np.zeros(len(rows), np.int64)),
        np.where(extra, np.inf, 0.0),
        _named(["invented"], np.where(extra, 0, -1)),
        _named([], nothing),
        np.zeros(len(rows), np.int64),
        invented[rows],
        _named([], nothing),
        np.full(len(rows), np.nan),
    )


def _part_verdicts(strayed: Strayed, bones: Skeleton, aggregate: str) -> pl.DataFrame:
    """One part's verdicts: both empty 0, one empty ∞, else the aggregated distance in body lengths."""
    part, distance, before, after = strayed.part, strayed.distance, strayed.before, strayed.after
    middle = aggregated(distance, aggregate)
    severity = np.where(np.isinf(middle), np.inf, middle / strayed.length)
    severity = np.where(before ^ after, np.inf, np.where(before | after, severity, 0.0))
    gone = (before | after) & ~strayed.judged
    unsized = ~gone & np.isnan(severity)
    severity[gone] = np.nan
    ends = " or ".join(bones.landmarks[end[0]] for end in part.lengths[0]) if part.lengths else "its ends"
    reasons = ["every landmark was carried out of the frame", f"no body length: {ends} absent, or both at one place"]
    reach = np.where(np.isnan(distance), -1.0, distance)
    label = f"/{part.name}" if len(bones.parts) > 1 else ""
    names = [f"{i}{label}" for i in range(strayed.subjects.max(initial=-1) + 1)]
    return _verdicts(
        strayed.rows,
        _named(names, strayed.subjects),
        severity,
        _named(["lost", "invented"], np.where(gone | (before == after), -1, np.where(before, 0, 1))),
        _named(reasons, np.where(gone, 0, np.where(unsized, 1, -1))),
        (reach >= 0).sum(1),
        np.isinf(distance).sum(1),
        _named([bones.landmarks[i] for i in strayed.landmarks], np.where(reach.max(1) >= 0, reach.argmax(1), -1)),
        strayed.length,
    )


def _named(names: list[str], which: Ints) -> pl.Series:
    """Names by number, null for -1: far cheaper than an array of strings."""
    return pl.Series([*names, None], dtype=pl.String).gather(np.where(which < 0, len(names), which))


def _verdicts(
    rows: Ints,
    target: pl.Series,
    severity: Floats,
    kind: pl.Series,
    reason: pl.Series,
    compared: Ints,
    missing: Ints,
    worst: pl.Series,
    length: Floats,
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "row": rows.astype(np.uint32),
            "target": target,
            "severity": severity,
            "kind": kind,
            "reason": reason,
            "compared": compared.astype(np.int32),
            "missing": missing.astype(np.int32),
            "worst": worst,
            "length": length,
        }
    ).with_columns(pl.col("severity", "length").fill_nan(None))


def per_pair(rows: list[dict[str, Any]], follow: pl.DataFrame, measures: Mapping[str, Any]) -> pl.DataFrame:
    """Verdicts of numbered rows of follow-ups as those of their keys, one per target over all draws and repeats."""
    own = {name: kind for name, kind in VERDICT_COLUMNS.items() if name not in ("case", "follow_up")}
    keys = follow.select("case", "follow_up", "draw", "repeat").with_row_index("row")
    found = pl.DataFrame(rows, schema={"row": pl.UInt32, **own, **measures}, orient="row")
    return over_draws(found.join(keys, on="row", maintain_order="left"), keys, measures)


def over_draws(found: pl.DataFrame, keys: pl.DataFrame, measures: Mapping[str, Any]) -> pl.DataFrame:
    """One verdict per target over all draws and repeats: the median severity.

    The median of three is at least t exactly when two of three are: a majority vote at every threshold.
    A target missing from a draw (nothing was invented there) counts as 0 in it. Kind and measures are those
    of the worst draw.
    """
    columns = [*VERDICT_COLUMNS, *measures]
    if not keys.select((pl.col("draw") + pl.col("repeat") > 0).any()).item():
        return found.select(columns)
    group = ["case", "follow_up", "target"]
    tries = keys.group_by("case", "follow_up").len("tries")
    worst_first = found.sort("severity", descending=True, nulls_last=True, maintain_order=True)
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


# --- detections ------------------------------------------------------------------------------------

DETECTION_MEASURES: dict[str, Any] = {"iou": pl.Float64, "lost": pl.Int32, "invented": pl.Int32}


def detections(evidence: Evidence) -> pl.DataFrame:
    """1 − mean IoU over objects matched one to one; a lost or invented object counts as 0.

    Every source object is a target of its own; what was invented belongs to the whole.
    """
    follow = paired(evidence).drop("masks", strict=False)
    sources = evidence.sources.drop("masks", strict=False).to_dicts()
    sure = evidence.options["confidence"]
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(follow.iter_rows(named=True)):
        source = sources[row["source"]]
        told = Detections.from_row(source, evidence.header).confident(sure)
        said = Detections.from_row(row, evidence.header).confident(sure)
        matrix = np.reshape(row["warp"], (1, 3, 3))
        size = (row["width"], row["height"])
        corners = told.boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]].astype(np.float64).reshape(1, -1, 2)
        corners = projected(matrix, corners).reshape(-1, 4, 2)
        expected = np.concatenate([corners.min(1), corners.max(1)], -1)
        inner = np.clip(expected, 0, [*size, *size])
        gone = ((inner[:, 2:] - inner[:, :2]) <= 0).any(1)
        rows += _object_verdicts(number, told, said, inner, gone)
    return per_pair(rows, follow, DETECTION_MEASURES)


def _object_verdicts(
    row: int, told: Detections, said: Detections, expected: Floats, gone: Flags
) -> list[dict[str, Any]]:
    from scipy.optimize import linear_sum_assignment

    iou = boxes_iou(expected, said.boxes)
    same = np.array([[a == b for b in said.labels] for a in told.labels], bool).reshape(iou.shape)
    # a right class is worth more than any overlap, so that a class error is named only where no match was right
    gain = np.where(iou > 0, iou + same, 0.0)
    gain[gone] = 0
    mine, theirs = linear_sum_assignment(gain, maximize=True)
    match = {int(a): int(b) for a, b in zip(mine, theirs, strict=True) if gain[a, b] > 0}
    base: dict[str, Any] = {"row": row, "reason": None, "iou": None, "lost": 0, "invented": 0}
    found = []
    for number in range(len(told)):
        if gone[number]:
            found.append(
                {
                    **base,
                    "target": str(number),
                    "severity": None,
                    "kind": None,
                    "reason": "the object was carried out of the frame",
                }
            )
        elif number not in match:
            found.append({**base, "target": str(number), "severity": 1.0, "kind": "lost", "iou": 0.0, "lost": 1})
        elif not same[number, match[number]]:
            found.append(
                {
                    **base,
                    "target": str(number),
                    "severity": 1.0,
                    "kind": "class",
                    "iou": float(iou[number, match[number]]),
                }
            )
        else:
            overlap = float(iou[number, match[number]])
            found.append({**base, "target": str(number), "severity": 1.0 - overlap, "kind": None, "iou": overlap})
    extra = len(said) - len(match)
    if extra or not len(told):
        found.append(
            {
                **base,
                "target": "whole",
                "severity": 1.0 if extra else 0.0,
                "kind": "invented" if extra else None,
                "invented": extra,
            }
        )
    return found


GRID = (0.01, 0.05, 0.1, 0.2, 0.3, 0.7, 1.0, 2.0, 5.0, 20.0, float("inf"))

RELATIONS = (
    Relation(
        "poses",
        "poses",
        poses,
        unit="body lengths",
        threshold=0.2,
        grid=GRID,
        kinds=("lost", "invented"),
        measures=POSE_MEASURES,
        parameters=(
            Parameter(
                "handedness",
                "choice",
                "auto",
                choices=("auto", "kept", "swapped"),
                help="auto: left and right change places where the determinant is negative",
            ),
            *DRAWS,
        ),
        options=(
            Parameter("landmarks", "text", "", help="a part, a group, landmarks, or all; empty: the skeleton's own"),
            Parameter("aggregate", "text", "median", help="median, mean, max, min, median+mean, or a quantile: 0.9"),
            Parameter(
                "normaliser",
                "choice",
                "part",
                choices=("part", "box", "image", "pixels"),
                help="what one body length is",
            ),
            Parameter("confidence", "float", 0, low=0, high=1, help="subjects below this score are not there"),
            Parameter("visibility", "float", 0, low=0, high=1, help="landmarks below this are not there"),
            Parameter(
                "outside",
                "choice",
                "leave",
                choices=("leave", "keep"),
                help="landmarks whose expected place is outside the frame: leave them out, or keep them",
            ),
            Parameter(
                "space",
                "choice",
                "pixels",
                choices=("pixels", "normalised"),
                help="pixels of the source frame, or 0–1 coordinates as the original measured",
            ),
        ),
        help="Landmarks move as the image was moved; a reversal of handedness exchanges left and right.",
    ),
    Relation(
        "detections",
        "detections",
        detections,
        unit="1 − IoU of the matched box",
        threshold=0.5,
        grid=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0),
        kinds=("lost", "invented", "class"),
        measures=DETECTION_MEASURES,
        parameters=DRAWS,
        options=(Parameter("confidence", "float", 0.5, low=0, high=1, help="detections below this are not there"),),
        help="Boxes move as the image was moved, and keep their class.",
    ),
)
