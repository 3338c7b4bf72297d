"""Poses: landmarks move as the image was moved; pairs of subjects, and how far each landmark of them strays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Row
from instar.outputs.poses import PoseBatch, Poses
from instar.relations.pairing import DRAWS, aggregated, matrices_of, over_draws, paired, projected
from instar.relations.relation import VERDICT_COLUMNS, ZONE_SHARE, Evidence, Relation
from instar.skeleton import Part, Skeleton
from instar.spelling import Parameter
from instar.warp import inside

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Chosen = tuple[tuple[Part, tuple[int, ...]], ...]

BLOCK = 4096
"""Pairs of subjects compared at a time: their landmarks fit into the processor's cache."""
MEASURES = {"compared": pl.Int32, "missing": pl.Int32, "worst": pl.String, "length": pl.Float64}


def poses(evidence: Evidence) -> pl.DataFrame:
    """Severity in body lengths of the source subject, per subject and part.

    Distances are in pixels of the source frame: actual landmarks are carried back. A landmark present on one
    side only is ∞; landmarks whose expected place is outside the follow-up's frame are left out.
    """
    pairs = pose_pairs(evidence)
    if pairs.follow_ups.is_empty():
        return pl.DataFrame(schema={**VERDICT_COLUMNS, **MEASURES})
    verdicts = [_whole(_invented(pairs), pairs.source_poses.counts[pairs.source_of])]
    verdicts += [_part_verdicts(errors, pairs.bones, evidence.options["aggregate"]) for errors in pairs.errors()]
    keys = pairs.follow_ups.select("case", "follow_up", "draw", "repeat").with_row_index("row")
    return over_draws(pl.concat(verdicts).join(keys, on="row", maintain_order="left"), keys, MEASURES)


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkErrors:
    """How far the chosen landmarks of one part are from where they are expected, in some pairs of subjects.

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
    in_source: Flags
    """Which landmarks (pairs, landmarks) the source output has."""
    in_follow_up: Flags
    """Which of them the follow-up's output has."""

    @property
    def comparable(self) -> Flags:
        """Which landmarks of the source (pairs, landmarks) are left to judge, of subjects whose length is known."""
        return self.in_source & ~np.isnan(self.distance) & ~np.isnan(self.length)[:, None]

    @property
    def severity(self) -> Floats:
        """Each landmark's own severity (pairs, landmarks): what a judging of that landmark alone would say of it."""
        return np.where(np.isinf(self.distance), np.inf, self.distance / self.length[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class PosePairs:
    """Which subject of a follow-up answers to which of its source.

    Follow-up r is compared with source `source_of[r]`. A pair is a follow-up (`rows`) and a subject of either side,
    numbered in `source_poses` and `follow_up_poses`; -1 is nobody.
    """

    bones: Skeleton
    chosen: Chosen
    options: Row
    follow_ups: pl.DataFrame
    source_poses: PoseBatch
    follow_up_poses: PoseBatch
    source_of: Ints
    source_sizes: Floats
    """The size of each follow-up's source."""
    follow_up_sizes: Floats
    matrices: Floats
    inverses: Floats
    swaps: Flags
    rows: Ints
    source_subjects: Ints
    follow_up_subjects: Ints

    @property
    def landmarks(self) -> Ints:
        """All chosen landmarks, part by part."""
        return np.concatenate([np.asarray(indices) for _, indices in self.chosen])

    def invented(self) -> tuple[Ints, Flags]:
        """Subjects of follow-ups without a counterpart: each one's follow-up, and which of `landmarks` it shows."""
        alone = self.source_subjects < 0
        points = self.follow_up_poses.points[self.follow_up_subjects[alone]]
        return self.rows[alone], ~np.isnan(points[:, self.landmarks, 0])

    def errors(self) -> Iterator[LandmarkErrors]:
        """Every part in turn, some pairs at a time. What was invented has no source subject, and is left out."""
        known = self.source_subjects >= 0
        subjects = self.rows[known], self.source_subjects[known], self.follow_up_subjects[known]
        # one function: arrays of one block are let go when those of the next are there, which spares the allocator
        # from giving their memory back in between (a quarter of the time)
        for part, indices in self.chosen:
            take = np.asarray(indices)
            for at in range(0, len(subjects[0]), BLOCK):
                row, source, follow_up = (numbers[at : at + BLOCK] for numbers in subjects)
                sizes = self.source_sizes[row]
                scale = sizes if self.options["space"] == "normalised" else np.ones((len(row), 2))
                expected = _chosen(self.source_poses.points[source], take).astype(np.float64)
                actual = _landmarks(self.follow_up_poses, follow_up, self.swaps[row], self.bones, take)
                in_source, in_follow_up = ~np.isnan(expected[..., 0]), ~np.isnan(actual[..., 0])
                judged = in_source | in_follow_up
                if self.options["outside"] == "leave":
                    places = np.where(in_source[..., None], projected(self.matrices[row], expected), actual)
                    judged &= inside(places, self.follow_up_sizes[row][:, None])
                gap = (projected(self.inverses[row], actual) - expected) / scale[:, None]
                distance = np.hypot(gap[..., 0], gap[..., 1])
                distance[in_source ^ in_follow_up] = np.inf
                distance[~judged] = np.nan
                points, normaliser = self.source_poses.points, self.options["normaliser"]
                length = _length(points, source, scale, part, normaliser, sizes / scale)
                numbers = source - self.source_poses.offsets[self.source_of[row]]
                yield LandmarkErrors(part, take, row, numbers, distance, length, in_source, in_follow_up)


def pose_pairs(evidence: Evidence) -> PosePairs:
    """The subjects of follow-ups matched with those of their sources, as a judging with these options sees them."""
    bones = Skeleton.from_dict(evidence.header["skeleton"])
    options = evidence.options
    chosen = bones.select(options["landmarks"] or bones.default)
    follow_ups = paired(evidence)
    count = len(bones.landmarks)
    source_poses = _confident(PoseBatch.from_frame(evidence.sources, count), options)
    follow_up_poses = _confident(PoseBatch.from_frame(follow_ups, count), options)
    source_of = follow_ups["source"].to_numpy().astype(np.int64)
    matrices = matrices_of(follow_ups)
    swaps = _swaps(matrices, evidence.parameters["handedness"])
    return PosePairs(
        bones,
        chosen,
        options,
        follow_ups,
        source_poses,
        follow_up_poses,
        source_of,
        _sizes(evidence.sources)[source_of],
        _sizes(follow_ups),
        matrices,
        _inverses(matrices),
        swaps,
        *_matches(source_poses, follow_up_poses, source_of, matrices, swaps, bones),
    )


def named_as_truth(evidence: Evidence) -> Evidence:
    """The same evidence, whose sources are annotated poses, with the follow-ups' landmarks named as the annotation's.

    Only those count that both skeletons name, of the option `landmarks` where the relation has one.
    """
    assert evidence.truth is not None
    bones, others = (Skeleton.from_dict(header["skeleton"]) for header in (evidence.truth, evidence.header))
    shared, shared_in_others = bones.mapping(others)
    counted = shared
    if evidence.options.get("landmarks"):
        chosen = [i for _, indices in others.select(str(evidence.options["landmarks"])) for i in indices]
        counted = shared[np.isin(shared_in_others, chosen)]
    if not len(counted):
        raise ValueError(f"skeletons {bones.name} and {others.name} have none of the landmarks in common")
    batch = PoseBatch.from_frame(evidence.follow_ups, len(others.landmarks))
    points = np.full((len(batch.points), len(bones.landmarks), 2), np.nan, np.float32)
    points[:, shared] = batch.points[:, shared_in_others]
    visibility = np.zeros(points.shape[:2], np.float32)
    visibility[:, shared] = batch.visibility[:, shared_in_others]
    columns = {"points": points, "visibility": visibility, "scores": batch.scores}
    renamed = [
        pl.Series(name, [values[a:b].ravel().tolist() for a, b in pairwise(batch.offsets)], pl.List(pl.Float32))
        for name, values in columns.items()
    ]
    return replace(
        evidence,
        header=evidence.truth,
        follow_ups=evidence.follow_ups.drop(list(Poses.columns)).hstack(renamed),
        options={**evidence.options, "landmarks": ", ".join(bones.landmarks[i] for i in counted)},
    )


def _sizes(rows: pl.DataFrame) -> Floats:
    return rows.select("width", "height").to_numpy().astype(np.float64)


def _confident(batch: PoseBatch, options: Row) -> PoseBatch:
    """Only subjects and landmarks that the system is sure enough of."""
    points, keep = batch.points, batch.scores >= options["confidence"]
    if options["visibility"] > 0:
        points = np.where((batch.visibility >= options["visibility"])[..., None], points, np.float32(np.nan))
        keep &= ~np.isnan(points[..., 0]).all(1)
    if keep.all():
        return PoseBatch(points, batch.visibility, batch.scores, batch.offsets)
    kept = np.concatenate([[0], np.cumsum(keep)])[batch.offsets]
    return PoseBatch(points[keep], batch.visibility[keep], batch.scores[keep], kept)


def _swaps(matrices: Floats, handedness: str) -> Flags:
    """Which rows exchange left and right: the determinant alone decides, unless a rule spells otherwise."""
    if handedness == "auto":
        first, which = _different(matrices)
        return np.asarray(np.linalg.det(matrices[first]) < 0)[which]
    return np.full(len(matrices), handedness == "swapped")


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
    chosen: Floats = _chosen(points, take).astype(np.float64)
    chosen[subjects < 0] = np.nan
    return chosen


def _chosen(points: npt.NDArray[np.float32], take: Ints) -> npt.NDArray[np.float32]:
    """Some landmarks of every subject; all of them, the usual case, without another copy."""
    return points if len(take) == points.shape[1] else points[:, take]


def _matches(
    source_poses: PoseBatch,
    follow_up_poses: PoseBatch,
    source_of: Ints,
    matrices: Floats,
    swaps: Flags,
    bones: Skeleton,
) -> tuple[Ints, Ints, Ints]:
    """Pairs of subjects as (row, source subject, follow-up subject); -1 where a side has none.

    Subjects are matched by the smallest total of mean landmark distances, in the source frame. Rows with equal
    numbers of subjects are matched together.
    """
    source_counts, follow_up_counts = source_poses.counts[source_of], follow_up_poses.counts
    pairs = [np.empty((3, 0), np.int64)]
    widest = follow_up_counts.max(initial=0) + 1
    for n, m in (divmod(int(code), int(widest)) for code in np.unique(source_counts * widest + follow_up_counts)):
        members = np.flatnonzero((source_counts == n) & (follow_up_counts == m))
        sources = source_poses.offsets[source_of[members]][:, None] + np.arange(n)
        follow_ups = follow_up_poses.offsets[members][:, None] + np.arange(m)
        if n == 0 or m == 0:
            partner = np.full((len(members), n), -1)
        elif n == m == 1:
            partner = np.zeros((len(members), 1), np.int64)
        else:
            everything = np.arange(len(bones.landmarks))
            actual = _landmarks(follow_up_poses, follow_ups.ravel(), np.repeat(swaps[members], m), bones, everything)
            actual = projected(_inverses(np.repeat(matrices[members], m, 0)), actual).reshape(len(members), m, -1, 2)
            partner = assigned(_mean_gaps(source_poses.points[sources].astype(np.float64), actual))
        matched = partner >= 0
        partners = np.where(matched, np.take_along_axis(follow_ups, partner.clip(0), 1) if m else -1, -1)
        pairs.append(np.stack([np.repeat(members, n), sources.ravel(), partners.ravel()]))
        taken = np.zeros((len(members), m), bool)
        at, _ = np.nonzero(matched)
        taken[at, partner[matched]] = True
        alone, which = np.nonzero(~taken)
        pairs.append(np.stack([members[alone], np.full(len(alone), -1), follow_ups[alone, which]]))
    rows, source_subjects, follow_up_subjects = np.concatenate(pairs, 1)
    return rows, source_subjects, follow_up_subjects


def _mean_gaps(expected: Floats, actual: Floats) -> Floats:
    """Mean distance over shared landmarks of subjects (R, n, L, 2) and (R, m, L, 2); huge where none is shared."""
    gap = expected[:, :, None] - actual[:, None]
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


def _invented(pairs: PosePairs) -> Ints:
    """How many subjects of each follow-up have no counterpart and show any of the chosen landmarks."""
    rows, shown = pairs.invented()
    return np.bincount(rows[shown.any(1)], minlength=len(pairs.follow_ups))


def _whole(invented: Ints, expected: Ints) -> pl.DataFrame:
    """Verdicts about the whole: what was invented, and the peace of two empty answers."""
    rows = np.flatnonzero((invented > 0) | (expected == 0))
    extra = invented[rows] > 0
    nothing = np.full(len(rows), -1)
    return _verdicts(
        rows,
        target=_named(["whole"], np.zeros(len(rows), np.int64)),
        severity=np.where(extra, np.inf, 0.0),
        kind=_named(["invented"], np.where(extra, 0, -1)),
        reason=_named([], nothing),
        compared=np.zeros(len(rows), np.int64),
        missing=invented[rows],
        worst=_named([], nothing),
        length=np.full(len(rows), np.nan),
    )


def _part_verdicts(errors: LandmarkErrors, bones: Skeleton, aggregate: str) -> pl.DataFrame:
    """One part's verdicts: both empty 0, one empty ∞, else the aggregated distance in body lengths."""
    part, distance = errors.part, errors.distance
    in_source, in_follow_up = errors.in_source.any(1), errors.in_follow_up.any(1)
    middle = aggregated(distance, aggregate)
    severity = np.where(np.isinf(middle), np.inf, middle / errors.length)
    severity = np.where(in_source ^ in_follow_up, np.inf, np.where(in_source | in_follow_up, severity, 0.0))
    reach = np.where(np.isnan(distance), -1.0, distance)
    farthest = reach.max(1)
    gone = (in_source | in_follow_up) & (farthest < 0)
    unsized = ~gone & np.isnan(severity)
    severity[gone] = np.nan
    ends = " or ".join(bones.landmarks[end[0]] for end in part.lengths[0]) if part.lengths else "its ends"
    reasons = ["every landmark was carried out of the frame", f"no body length: {ends} absent, or both at one place"]
    label = f"/{part.name}" if len(bones.parts) > 1 else ""
    names = [f"{i}{label}" for i in range(errors.subjects.max(initial=-1) + 1)]
    kind = np.where(gone | (in_source == in_follow_up), -1, np.where(in_source, 0, 1))
    return _verdicts(
        errors.rows,
        target=_named(names, errors.subjects),
        severity=severity,
        kind=_named(["lost", "invented"], kind),
        reason=_named(reasons, np.where(gone, 0, np.where(unsized, 1, -1))),
        compared=(reach >= 0).sum(1),
        missing=np.isinf(distance).sum(1),
        worst=_named([bones.landmarks[i] for i in errors.landmarks], np.where(farthest >= 0, reach.argmax(1), -1)),
        length=errors.length,
    )


def _named(names: list[str], which: Ints) -> pl.Series:
    """Names by number, null for -1: far cheaper than an array of strings."""
    return pl.Series([*names, None], dtype=pl.String).gather(np.where(which < 0, len(names), which))


def _verdicts(rows: Ints, **columns: pl.Series | Floats | Ints) -> pl.DataFrame:
    types = {"row": pl.UInt32, "compared": pl.Int32, "missing": pl.Int32}
    return pl.DataFrame({"row": rows, **columns}).cast(types).with_columns(pl.col("severity", "length").fill_nan(None))  # type: ignore[arg-type]


GRID = (0.01, 0.05, 0.1, 0.2, 0.3, 0.7, 1.0, 2.0, 5.0, 20.0, float("inf"))

# fmt: off
HANDEDNESS = Parameter("handedness", "choice", "auto", choices=("auto", "kept", "swapped"),
                       help="auto: left and right change places where the determinant is negative")

RELATIONS = (
    Relation(
        "poses", "poses", poses, unit="body lengths", threshold=0.2, grid=GRID, kinds=("lost", "invented"),
        measures=MEASURES, parameters=(HANDEDNESS, *DRAWS),
        options=(
            Parameter("landmarks", "text", "", help="a part, a group, landmarks, or all; empty: the skeleton's own"),
            Parameter("aggregate", "text", "median", help="median, mean, max, min, median+mean, or a quantile: 0.9"),
            Parameter("normaliser", "choice", "part", choices=("part", "box", "image", "pixels"),
                      help="what one body length is"),
            Parameter("confidence", "float", 0, low=0, high=1, help="subjects below this score are not there"),
            Parameter("visibility", "float", 0, low=0, high=1, help="landmarks below this are not there"),
            Parameter("outside", "choice", "leave", choices=("leave", "keep"),
                      help="landmarks whose expected place is outside the frame: leave them out, or keep them"),
            Parameter("space", "choice", "pixels", choices=("pixels", "normalised"),
                      help="pixels of the source frame, or 0–1 coordinates as the original measured"),
            ZONE_SHARE,
        ),
        against_truth=named_as_truth,
        help="Landmarks move as the image was moved; a reversal of handedness exchanges left and right.",
    ),
)
# fmt: on
