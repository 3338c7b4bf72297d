"""Poses: landmarks move as the image was moved; pairs of subjects, and how far each landmark of them strays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Row
from instar.outputs.poses import PoseBatch, Poses
from instar.relations.lengths import NORMALISER, body_length, diagonals, unit_under
from instar.relations.matching import Crowd, chosen, landmarks_of
from instar.relations.pairing import (
    DRAWS,
    FAINT,
    HANDEDNESS,
    MARGIN,
    ROUNDING,
    SHARE,
    aggregated,
    handedness_words,
    matrices_of,
    over_draws,
    paired,
    projected,
    touched,
)
from instar.relations.parts import PartSeverities
from instar.relations.relation import (
    EMPTY,
    NOTHING_FOUND,
    VERDICT_COLUMNS,
    ZONE_SHARE,
    Evidence,
    Relation,
    UnusableTruth,
)
from instar.skeleton import Part, Skeleton
from instar.spelling import Parameter
from instar.warp import inside

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Selected = tuple[tuple[Part, tuple[int, ...]], ...]

BLOCK = 4096
"""Pairs of subjects compared at a time: their landmarks fit into the processor's cache."""
# fmt: off
MEASURES = {
    "compared": pl.Int32, "missing": pl.Int32, "worst": pl.String, "length": pl.Float64, "source_score": pl.Float64,
    "follow_up_score": pl.Float64,
}
# fmt: on
ONE_PLACE = 0.001
"""Of the frame's diagonal, about a pixel: landmarks nearer to each other are no pose, however well they move along."""
MOST_LANDMARKS = 100
"""Of a part that is looked at although it is not judged by default: single points of a face mesh have no names."""
EXCHANGED_FROM = 0.05
"""Body lengths from which on it is asked whether left and right were exchanged."""


def poses(evidence: Evidence) -> pl.DataFrame:
    """Severity in body lengths of the source subject, per subject and part.

    Distances are in pixels of the source frame: actual landmarks are carried back. A landmark present on one
    side only is ∞, and so is a part of which the share `partly` is; landmarks that are outside the source's frame, or
    expected outside the follow-up's, are left out, and parts of which less than `share` of what was inside stays inside
    are not judged.
    """
    pairs = pose_pairs(evidence)
    if pairs.follow_ups.is_empty():
        return pl.DataFrame(schema={**VERDICT_COLUMNS, **MEASURES})
    verdicts = [_whole(pairs, evidence)]
    verdicts += [_part_verdicts(errors, pairs.bones, evidence.options) for errors in pairs.errors()]
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
    in_frame: Flags
    """Which of them lie in the source's frame: a system may also say where those are that nobody sees."""
    in_follow_up: Flags
    """Which landmarks the follow-up's output has."""
    scores: Floats
    """Of both subjects (pairs, 2), NaN for nobody."""
    exchanged: Flags
    """Which pairs agree better, by far, where the follow-up's left is taken for its right."""
    faint: Flags
    """Which pairs score below the confidence in one image, and by more than the margin less than in the other: all
    distances of theirs are ∞."""
    collapsed: Flags
    """Which pairs show three landmarks or more on either side, all in one place: nothing that could be judged."""

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
    selected: Selected
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
    twice: Flags
    """Which subjects of follow-ups, without a counterpart, lie upon one of the source."""
    numbers: Ints
    """The ordinal of each of `source_poses` in its source output, whatever the confidence."""

    @property
    def landmarks(self) -> Ints:
        """All chosen landmarks, part by part."""
        return np.concatenate([np.asarray(indices) for _, indices in self.selected])

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
        for part, indices in self.selected:
            take = np.asarray(indices)
            for at in range(0, len(subjects[0]), BLOCK):
                row, source, follow_up = (numbers[at : at + BLOCK] for numbers in subjects)
                sizes = self.source_sizes[row]
                scale = sizes if self.options["space"] == "normalised" else np.ones((len(row), 2))
                expected = chosen(self.source_poses.points[source], take).astype(np.float64)
                actual = landmarks_of(self.follow_up_poses, follow_up, self.swaps[row], self.bones, take)
                in_source, in_follow_up = ~np.isnan(expected[..., 0]), ~np.isnan(actual[..., 0])
                carried_back = projected(self.inverses[row], actual)
                judged, in_frame = in_source | in_follow_up, inside(expected, sizes[:, None])
                if self.options["outside"] == "leave":
                    places = np.where(in_source[..., None], projected(self.matrices[row], expected), actual)
                    judged &= inside(places, self.follow_up_sizes[row][:, None])
                    judged &= in_frame | (~in_source & inside(carried_back, sizes[:, None]))
                    judged &= ~self._covered(row, follow_up, places, in_follow_up)
                distance = _distances(expected, carried_back, scale)
                scores = self._scores(source, follow_up)
                faint = self._faint(scores)
                distance[(in_source ^ in_follow_up) | faint[:, None]] = np.inf
                distance[~judged] = np.nan
                length = self._lengths(part, source, sizes, scale)
                numbers = self.numbers[source]
                exchanged = self._exchanged(row, follow_up, expected, distance, length, scale, take)
                collapsed = _in_one_place(expected, sizes)
                collapsed &= _in_one_place(actual, self.follow_up_sizes[row])
                shown = in_source, in_frame, in_follow_up
                odd = exchanged, faint, collapsed
                yield LandmarkErrors(part, take, row, numbers, distance, length, *shown, scores, *odd)

    def _lengths(self, part: Part, source: Ints, sizes: Floats, scale: Floats) -> Floats:
        """One body length of each pair: worked out once for every source subject, whom every rule asks about."""
        _, first, which = np.unique(source, return_index=True, return_inverse=True)
        points, frames, normaliser = self.source_poses.points, (sizes / scale)[first], self.options["normaliser"]
        return body_length(points, source[first], scale[first], part, self.bones, normaliser, frames)[which]

    def _covered(self, row: Ints, follow_up: Ints, places: Floats, in_follow_up: Flags) -> Flags:
        """Landmarks that somebody who was found may leave out: they lie where the change touched the image."""
        if "share" not in self.options or "regions" not in self.follow_ups.columns:
            return np.zeros(in_follow_up.shape, bool)
        covered = touched(places, self.follow_ups["regions"][row])
        return np.asarray(covered & ~in_follow_up & (follow_up >= 0)[:, None])

    def _scores(self, source: Ints, follow_up: Ints) -> Floats:
        scores = np.full((len(source), 2), np.nan)
        there = follow_up >= 0
        scores[:, 0] = self.source_poses.scores[source]
        scores[there, 1] = self.follow_up_poses.scores[follow_up[there]]
        return scores

    def _faint(self, scores: Floats) -> Flags:
        change = np.abs(scores[:, 0] - scores[:, 1])
        low = scores.min(1) < self.options["confidence"]
        return np.asarray(low & (change > self.options.get("margin", 0.0) + ROUNDING))

    def _exchanged(
        self, row: Ints, follow_up: Ints, expected: Floats, distance: Floats, length: Floats, scale: Floats, take: Ints
    ) -> Flags:
        """Which pairs lie less than half as far apart where left and right are exchanged."""
        middle = aggregated(distance, "median")
        exchanged = np.zeros(len(row), bool)
        far = np.flatnonzero(np.isfinite(middle) & (middle >= EXCHANGED_FROM * length))
        if len(far) and (self.bones.swap[take] != take).any():
            other = landmarks_of(self.follow_up_poses, follow_up[far], ~self.swaps[row[far]], self.bones, take)
            swapped = _distances(expected[far], projected(self.inverses[row[far]], other), scale[far])
            exchanged[far] = aggregated(swapped, "median") < middle[far] / 2
        return exchanged


def _in_one_place(points: Floats, sizes: Floats) -> Flags:
    """Which subjects (subjects, landmarks, 2) show three landmarks or more, all in one place of their frame."""
    near = ONE_PLACE * np.hypot(sizes[:, 0], sizes[:, 1])
    first, last = points[:, 0], points[:, -1]
    together: Flags = ~(np.abs(first - last).max(1) > near)  # two that are apart are enough, of nearly everybody
    some = np.flatnonzero(together)
    shown = (~np.isnan(points[some, :, 0])).sum(1)
    together[some] = (diagonals(points[some]) < near[some]) & (shown > 2)
    return together


def _distances(expected: Floats, actual: Floats, scale: Floats) -> Floats:
    x, y = ((actual[..., axis] - expected[..., axis]) / scale[:, axis, None] for axis in (0, 1))
    return np.hypot(x, y)


def pose_pairs(evidence: Evidence) -> PosePairs:
    """The subjects of follow-ups matched with those of their sources, as a judging with these options sees them."""
    bones = Skeleton.from_dict(evidence.header["skeleton"])
    options = evidence.options
    selected = bones.select(options["landmarks"] or bones.default)
    follow_ups = paired(evidence)
    count = len(bones.landmarks)
    source_poses, numbers = _confident(PoseBatch.from_frame(evidence.sources, count), options)
    follow_up_poses, _ = _confident(PoseBatch.from_frame(follow_ups, count), options)
    source_of = follow_ups["source"].to_numpy().astype(np.int64)
    matrices = matrices_of(follow_ups)
    swaps, inverses = _swaps(matrices, evidence.parameters["handedness"]), _inverses(matrices)
    limits = options["confidence"], options.get("margin", 0.0)
    crowd = Crowd(bones, source_poses, follow_up_poses, source_of, inverses, swaps, *limits)
    matches = crowd.matches()
    return PosePairs(
        bones,
        selected,
        options,
        follow_ups,
        source_poses,
        follow_up_poses,
        source_of,
        _sizes(evidence.sources)[source_of],
        _sizes(follow_ups),
        matrices,
        inverses,
        swaps,
        matches.rows,
        matches.source,
        matches.follow_up,
        matches.twice,
        numbers,
    )


def landmark_severities(evidence: Evidence) -> Iterator[PartSeverities]:
    """Every landmark's own severity; where nobody chose landmarks, also that of parts which are not judged by default.

    So the hands of a whole body are looked at, each in its own length.
    """
    bones = Skeleton.from_dict(evidence.header["skeleton"])
    if not evidence.options["landmarks"]:
        others = (part.name for part in bones.parts if len(part.landmarks) <= MOST_LANDMARKS)
        evidence = replace(evidence, options={**evidence.options, "landmarks": ", ".join((bones.default, *others))})
    pairs = pose_pairs(evidence)
    keys = pairs.follow_ups.select("case", "follow_up", "draw", "repeat")
    swap = np.asarray(pairs.bones.swap)
    for errors in pairs.errors():
        names, twins = (
            tuple(pairs.bones.landmarks[i] for i in each) for each in (errors.landmarks, swap[errors.landmarks])
        )
        subjects = pl.Series("target", errors.subjects).cast(pl.String)
        yield PartSeverities(names, twins, keys[errors.rows].with_columns(subjects), errors.severity)


def named_as_truth(evidence: Evidence) -> Evidence:
    """The same evidence, whose sources are annotated poses, with the follow-ups' landmarks named as the annotation's.

    Only those count that both skeletons name, of the option `landmarks` where the relation has one. Raises
    `UnusableTruth` if there are none.
    """
    assert evidence.truth is not None
    bones, others = (Skeleton.from_dict(header["skeleton"]) for header in (evidence.truth, evidence.header))
    shared, shared_in_others = bones.mapping(others)
    counted = shared
    if evidence.options.get("landmarks"):
        chosen = [i for _, indices in others.select(str(evidence.options["landmarks"])) for i in indices]
        counted = shared[np.isin(shared_in_others, chosen)]
    if not len(counted):
        raise UnusableTruth(f"skeletons {bones.name} and {others.name} have none of the landmarks in common")
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
        # who annotates leaves out what is hidden, and a system that does not has invented nothing; annotations have no
        # score that could have changed
        options={
            **evidence.options,
            "partly": 1.0,
            "margin": 0.0,
            "landmarks": ", ".join(bones.landmarks[i] for i in counted),
        },
    )


def _sizes(rows: pl.DataFrame) -> Floats:
    return rows.select("width", "height").to_numpy().astype(np.float64)


def _confident(batch: PoseBatch, options: Row) -> tuple[PoseBatch, Ints]:
    """Return the subjects and landmarks that may count, with the ordinals that the subjects had.

    With a margin, a subject below the confidence may still match one that reaches it.
    """
    points, keep = batch.points, (batch.scores >= options["confidence"]) | (options.get("margin", 0.0) > 0)
    if options["visibility"] > 0:
        points = np.where((batch.visibility >= options["visibility"])[..., None], points, np.float32(np.nan))
        keep &= ~np.isnan(points[..., 0]).all(1)
    numbers = np.arange(len(keep)) - np.repeat(batch.offsets[:-1], batch.counts)
    if keep.all():
        return PoseBatch(points, batch.visibility, batch.scores, batch.offsets), numbers
    kept = np.concatenate([[0], np.cumsum(keep)])[batch.offsets]
    return PoseBatch(points[keep], batch.visibility[keep], batch.scores[keep], kept), numbers[keep]


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


def _whole(pairs: PosePairs, evidence: Evidence) -> pl.DataFrame:
    """Verdicts about the whole: who was invented or found twice, and two empty answers."""
    everybody = len(pairs.follow_ups)
    rows, shown = pairs.invented()
    new = shown.any(1)
    twice = pairs.twice[pairs.source_subjects < 0][new]
    scores = pairs.follow_up_poses.scores[pairs.follow_up_subjects[pairs.source_subjects < 0]][new]
    extra, doubled = np.bincount(rows[new], minlength=everybody), np.bincount(rows[new], twice, everybody)
    best = [_best(evidence.sources)[pairs.source_of], _best(pairs.follow_ups)]
    best = [np.where(extra > 0, np.nan, each) for each in best]
    np.fmax.at(best[1], rows[new], scores)
    silent = np.bincount(pairs.rows[pairs.source_subjects >= 0], minlength=everybody) == 0
    at = np.flatnonzero((extra > 0) | silent)
    strangers, kept = extra[at] > 0, evidence.options["empty"] == "keep"
    nothing = np.full(len(at), -1)
    return _verdicts(
        at,
        target=_named(["whole"], np.zeros(len(at), np.int64)),
        severity=np.where(strangers, np.inf, 0.0 if kept else np.nan),
        kind=_named(["invented", "doubled"], np.where(strangers, (doubled >= extra)[at], -1)),
        reason=_named([NOTHING_FOUND], np.where(strangers | kept, -1, 0)),
        compared=np.zeros(len(at), np.int64),
        missing=extra[at],
        worst=_named([], nothing),
        length=np.full(len(at), np.nan),
        source_score=best[0][at],
        follow_up_score=best[1][at],
    )


def _best(rows: pl.DataFrame) -> Floats:
    """The best score of each answer, whether it counts or not; NaN where there is none."""
    return rows["scores"].list.max().cast(pl.Float64).fill_null(float("nan")).to_numpy()


KINDS = ("lost", "invented", "faint", "partly lost", "partly invented", "exchanged")


def _part_verdicts(errors: LandmarkErrors, bones: Skeleton, options: Row) -> pl.DataFrame:
    """One part's verdicts: both empty not judged, one empty ∞, else the aggregated distance in body lengths."""
    part, distance = errors.part, errors.distance
    in_source, in_follow_up = errors.in_source.any(1), errors.in_follow_up.any(1)
    either, both = in_source | in_follow_up, in_source & in_follow_up
    reach = np.where(np.isnan(distance), -1.0, distance)
    one_sided = np.isinf(distance) & (errors.in_source ^ errors.in_follow_up)
    compared, farthest = (reach >= 0).sum(1), reach.max(1)
    middle = aggregated(distance, options["aggregate"])
    partly = both & (compared > 0) & (one_sided.sum(1) >= options["partly"] * compared) & one_sided.any(1)
    severity = np.where(np.isinf(middle) | partly, np.inf, middle / errors.length)
    severity = np.where(in_source ^ in_follow_up, np.inf, np.where(either, severity, 0.0))
    gone = either & (farthest < 0)
    staying = (errors.in_source & ~np.isnan(distance)).sum(1)
    mostly_out = in_source & ~gone & (staying < options["share"] * errors.in_frame.sum(1))
    mostly_out &= options["outside"] == "leave"
    never_in = gone & in_source & ~errors.in_frame.any(1)
    empty = ~either & (options["empty"] == "leave")
    unsized = ~gone & np.isnan(severity)
    severity[gone | empty | mostly_out | errors.collapsed] = np.nan
    ends = " or ".join(bones.landmarks[end[0]] for end in part.lengths[0]) if part.lengths else "its ends"
    reasons = [
        "every landmark was carried out of the frame",
        f"no body length: {ends} absent, or both at one place",
        NOTHING_FOUND,
        f"less than {100 * options['share']:.0f} % of its landmarks stayed in the frame",
        "all landmarks lie in one place, in both images",
        "every landmark lies outside the source's frame",
    ]
    label = f"/{part.name}" if len(bones.parts) > 1 else ""
    names = [f"{i}{label}" for i in range(errors.subjects.max(initial=-1) + 1)]
    more_lost = (one_sided & errors.in_source).sum(1) * 2 >= one_sided.sum(1)
    unjudged = [never_in, gone, mostly_out, errors.collapsed, unsized, empty]
    infinite = np.isinf(severity)
    one_empty = [infinite & ~in_follow_up, infinite & ~in_source]
    which = [*one_empty, infinite & errors.faint, infinite & more_lost, infinite, errors.exchanged]
    return _verdicts(
        errors.rows,
        target=_named(names, errors.subjects),
        severity=severity,
        kind=_named(list(KINDS), np.where(np.isnan(severity), -1, np.select(which, range(len(KINDS)), -1))),
        reason=_named(reasons, np.select(unjudged, [5, 0, 3, 4, 1, 2], -1)),
        compared=compared,
        missing=one_sided.sum(1),
        worst=_named([bones.landmarks[i] for i in errors.landmarks], np.where(farthest >= 0, reach.argmax(1), -1)),
        length=errors.length,
        source_score=errors.scores[:, 0],
        follow_up_score=errors.scores[:, 1],
    )


def _named(names: list[str], which: Ints) -> pl.Series:
    """Names by number, null for -1: far cheaper than an array of strings."""
    return pl.Series([*names, None], dtype=pl.String).gather(np.where(which < 0, len(names), which))


def _verdicts(rows: Ints, **columns: pl.Series | Floats | Ints) -> pl.DataFrame:
    types = {"row": pl.UInt32, "compared": pl.Int32, "missing": pl.Int32}
    return pl.DataFrame({"row": rows, **columns}).cast(types).with_columns(pl.col(pl.Float64).fill_nan(None))  # type: ignore[arg-type]


GRID = (0.01, 0.05, 0.1, 0.2, 0.3, 0.7, 1.0, 2.0, 5.0, 20.0, float("inf"))

# fmt: off
RELATIONS = (
    Relation(
        "poses", "poses", poses, unit="body lengths", threshold=0.2, grid=GRID, kinds=(*KINDS, "doubled"),
        meanings={
            "lost": "what is found in the source has no match in the follow-up",
            "invented": "what is found in the follow-up has no match in the source", "faint": FAINT,
            "partly lost": "landmarks of the source are missing in the follow-up",
            "partly invented": "landmarks of the follow-up are missing in the source",
            "exchanged": "left and right change places", "doubled": "one is found twice",
        },
        measures=MEASURES, parameters=(HANDEDNESS, *DRAWS), units=unit_under, words=handedness_words,
        details=("in one image alone: {missing} of {compared:landmark}", "{worst} strays furthest",
                 "a severity of 1 is {length:pixel} here"),
        options=(
            Parameter("landmarks", "text", "", help="a part, a group, landmarks, or all; empty: the skeleton's own"),
            Parameter("aggregate", "text", "median", help="median, mean, max, min, median+mean, or a quantile: 0.9"),
            NORMALISER,
            Parameter("confidence", "float", 0.5, low=0, high=1, help="subjects below this score are not there"),
            MARGIN,
            Parameter("visibility", "float", 0, low=0, high=1, help="landmarks below this are not there"),
            Parameter("outside", "choice", "leave", choices=("leave", "keep"),
                      help="landmarks outside the frame, or expected there: leave them out, or keep them"),
            Parameter("space", "choice", "pixels", choices=("pixels", "normalised"),
                      help="pixels of the source frame, or 0–1 coordinates as the original measured"),
            SHARE,
            Parameter("partly", "float", 0.2, low=0, high=1, open_low=True,
                      help="a part of which at least this share of landmarks is in one image only is partly lost: ∞"),
            EMPTY,
            ZONE_SHARE,
        ),
        against_truth=named_as_truth,
        parts=landmark_severities,
        help="Landmarks move as the image was moved; a reversal of handedness exchanges left and right.",
    ),
)
# fmt: on
