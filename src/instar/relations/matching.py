"""Who is who: subjects of a follow-up matched with those of its source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from instar.outputs.poses import PoseBatch
from instar.relations.lengths import diagonals
from instar.relations.pairing import ROUNDING, projected
from instar.skeleton import Skeleton

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NEAR = 0.2
"""Subjects whose landmarks are on average nearer than this, in diagonals of the larger one's box, may be one and the
same: who is found twice is, and neighbours who stand shoulder to shoulder are not."""
ALONE = 0.5
"""The same for the only subject of either image: where nobody else is there, bodies that overlap are one, and how far
it strays says more than that it was lost."""
_FAR = 1e12
_TRIFLE = 1e-9
BLOCK = 1 << 18
"""Distances between landmarks that are measured at a time: a few megabytes, however many subjects a run has."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Pairs of a row's subjects, -1 where a side has nobody, of whom at least one is sure.

    `twice` are those of a follow-up without a counterpart who lie upon a subject of the source.
    """

    rows: Ints
    source: Ints
    follow_up: Ints
    twice: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """The subjects of sources and follow-ups that may be matched; row r of the follow-ups belongs to `source_of[r]`."""

    bones: Skeleton
    source: PoseBatch
    follow_up: PoseBatch
    source_of: Ints
    inverses: Floats
    swaps: Flags
    confidence: float
    margin: float

    def matches(self) -> Matches:
        """Subjects are matched by the smallest total of mean landmark distances, in the source frame.

        Near subjects are matched first, if one of them is sure. Then come sure subjects that are far apart, and last
        near ones whose scores differ by more than the margin. Rows with equal numbers of subjects are matched together.
        """
        source_counts, follow_up_counts = self.source.counts[self.source_of], self.follow_up.counts
        widest = int(follow_up_counts.max(initial=0)) + 1
        unsure = self._unsure(self.source)[self.source_of] | self._unsure(self.follow_up)
        codes = (source_counts * widest + follow_up_counts) * 2 + unsure
        groups = [np.empty((4, 0), np.int64)]
        for code in np.unique(codes):
            members, (n, m) = np.flatnonzero(codes == code), divmod(int(code) // 2, widest)
            rows = max(1, BLOCK // max(1, n * m * len(self.bones.landmarks)))
            blocks = (members[at : at + rows] for at in range(0, len(members), rows))
            groups += [self._group(block, n, m, bool(code % 2)) for block in blocks]
        pairs = np.concatenate(groups, 1)
        sure = self._sure(self.source, pairs[1]) | self._sure(self.follow_up, pairs[2])
        rows, source, follow_up, twice = pairs[:, sure]
        return Matches(rows, source, follow_up, twice > 0)

    def _unsure(self, batch: PoseBatch) -> Flags:
        """Which rows have a subject that is not sure."""
        rows = np.repeat(np.arange(len(batch.counts)), batch.counts)
        return np.bincount(rows[batch.scores < self.confidence], minlength=len(batch.counts)) > 0

    def _sure(self, batch: PoseBatch, subjects: Ints) -> Flags:
        if not len(batch.scores):
            return np.zeros(subjects.shape, bool)
        return np.asarray((subjects >= 0) & (batch.scores[subjects.clip(0)] >= self.confidence))

    def _group(self, members: Ints, n: int, m: int, unsure: bool) -> Ints:
        """The pairs of rows that have n and m subjects: row, source subject, follow-up subject, whether found twice."""
        sources = self.source.offsets[self.source_of[members]][:, None] + np.arange(n)
        follow_ups = self.follow_up.offsets[members][:, None] + np.arange(m)
        near = np.zeros((len(members), n, m), bool)
        if n == 0 or m == 0:
            partner = np.full((len(members), n), -1)
        elif n == m == 1 and not unsure:
            partner = np.zeros((len(members), 1), np.int64)
        else:
            gaps, apart = self._gaps(members, sources, follow_ups)
            if n == m == 1:
                apart *= NEAR / ALONE
            near = apart <= 1
            partner = self._nearest(gaps, apart, sources, follow_ups) if unsure else assigned(gaps)
        matched = partner >= 0
        partners = np.where(matched, np.take_along_axis(follow_ups, partner.clip(0), 1) if m else -1, -1)
        known = np.stack([np.repeat(members, n), sources.ravel(), partners.ravel(), np.zeros(sources.size, np.int64)])
        taken = np.zeros((len(members), m), bool)
        at, _ = np.nonzero(matched)
        taken[at, partner[matched]] = True
        alone, which = np.nonzero(~taken)
        twice = near[alone, :, which].any(-1) if n else np.zeros(len(alone), bool)
        new = np.stack([members[alone], np.full(len(alone), -1), follow_ups[alone, which], twice])
        return np.concatenate([known, new], 1)

    def _nearest(self, gaps: Floats, apart: Floats, sources: Ints, follow_ups: Ints) -> Ints:
        """Match rows with an unsure subject: return for every source subject its follow-up subject, or -1.

        An unsure subject matches only near ones, so a ghost elsewhere doesn't excuse a lost subject.
        """
        source_sure, follow_up_sure = self._sure(self.source, sources), self._sure(self.follow_up, follow_ups)
        both = source_sure[:, :, None] & follow_up_sure[:, None]
        one = source_sure[:, :, None] ^ follow_up_sure[:, None]
        change = np.abs(self.source.scores[sources][:, :, None] - self.follow_up.scores[follow_ups][:, None])
        steady, near = change <= self.margin + ROUNDING, apart <= 1
        most = min(gaps.shape[1:]) + 1  # so many distances together weigh less than one who is sure
        cost = np.where(near, apart, 0.0) / most - 1 - 2 * both
        partner = _added(np.full(sources.shape, -1), near & (both | (one & steady)), cost, 0.0)
        partner = _added(partner, both, gaps, _FAR)
        return _added(partner, near & one & ~steady, cost, 0.0)

    def _gaps(self, members: Ints, sources: Ints, follow_ups: Ints) -> tuple[Floats, Floats]:
        """Mean landmark distances (rows, n, m) in the source frame, and the same in what is near: 1 is just near."""
        count, m = follow_ups.shape
        everything = np.arange(len(self.bones.landmarks))
        swapped, inverses = np.repeat(self.swaps[members], m), np.repeat(self.inverses[members], m, 0)
        actual = landmarks_of(self.follow_up, follow_ups.ravel(), swapped, self.bones, everything)
        actual = projected(inverses, actual).reshape(count, m, -1, 2)
        expected = self.source.points[sources].astype(np.float64)
        gaps = _mean_gaps(expected, actual)
        sizes = [diagonals(one.reshape(-1, *one.shape[2:])).reshape(one.shape[:2]) for one in (expected, actual)]
        larger = np.fmax(sizes[0][:, :, None], sizes[1][:, None])
        return gaps, gaps / np.fmax(NEAR * larger, 1e-9)


def landmarks_of(batch: PoseBatch, subjects: Ints, swapped: Flags, bones: Skeleton, take: Ints) -> Floats:
    """The chosen landmarks of some subjects, in the source's sense of left and right; NaN for no subject."""
    if not len(batch.points):
        return np.full((len(subjects), len(take), 2), np.nan)
    points = batch.points[np.maximum(subjects, 0)]
    points[swapped] = points[swapped][:, bones.swap]
    landmarks: Floats = chosen(points, take).astype(np.float64)
    landmarks[subjects < 0] = np.nan
    return landmarks


def chosen(points: npt.NDArray[np.float32], take: Ints) -> npt.NDArray[np.float32]:
    """Some landmarks of every subject; all of them, the usual case, without another copy."""
    return points if len(take) == points.shape[1] else points[:, take]


def _mean_gaps(expected: Floats, actual: Floats) -> Floats:
    """Mean distance over shared landmarks of subjects (R, n, L, 2) and (R, m, L, 2); huge where none is shared.

    Between subjects at the same distance, the one that shows the same landmarks is nearer by a trifle.
    """
    some = max(1, BLOCK // max(1, actual.size // 2))  # of the n: a crowd of thousands is more than a block by itself
    parts = [_gaps_of(expected[:, at : at + some], actual) for at in range(0, expected.shape[1], some)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, 1)


def _gaps_of(expected: Floats, actual: Floats) -> Floats:
    gap = expected[:, :, None] - actual[:, None]
    distance = np.hypot(gap[..., 0], gap[..., 1])
    both = ~np.isnan(distance)
    shared = both.sum(-1)
    shown = [(~np.isnan(each[..., 0])).sum(-1) for each in (expected, actual)]
    alone = shown[0][:, :, None] + shown[1][:, None] - 2 * shared
    mean = np.where(both, distance, 0).sum(-1) / np.maximum(shared, 1)
    return np.where(shared > 0, mean + _TRIFLE * alone, _FAR)


def _added(partner: Ints, allowed: Flags, cost: Floats, otherwise: float) -> Ints:
    """Match subjects that have no partner yet, if a pair is allowed; `otherwise` is the cost of all other pairs."""
    free = allowed.copy()
    at, who = np.nonzero(partner >= 0)
    free[at, who] = False
    free[at, :, partner[at, who]] = False
    if not free.any():
        return partner
    more = assigned(np.where(free, cost, otherwise))
    found = (more >= 0) & np.take_along_axis(free, more.clip(0)[..., None], 2)[..., 0]
    return np.where(found, more, partner)


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
