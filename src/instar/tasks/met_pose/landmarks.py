"""Which joints move: every landmark's own rate of violations, and a figure of the skeleton to draw them on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT, SOURCE_ANSWERED, chunks, evidence, with_right_zones
from instar.outputs.poses import PoseBatch, Poses
from instar.relations import BoundRule, LandmarkErrors, aggregated, own_equivariance, pose_pairs
from instar.skeleton import Part, Skeleton
from instar.stats import clustered_interval
from instar.store import KEY

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Complexes = npt.NDArray[np.complex128]
Counts = npt.NDArray[np.int32] | npt.NDArray[np.bool_]
"""Of each case and landmark; truth values where a case has one pair."""

# fmt: off
_SCHEMA = {
    "rule": pl.String, "landmark": pl.String, "part": pl.String, "threshold": pl.Float64, "judged": pl.Int64,
    "violated": pl.Int64, "rate": pl.Float64, "low": pl.Float64, "high": pl.Float64, "median": pl.Float64,
}
# fmt: on
_COLUMNS = (*KEY, "status", "message", "width", "height", "warp", *Poses.columns)

_LOWEST, _DECADES, _STEPS = -4, 9, 100
_MIDDLES = 10 ** ((np.arange(_DECADES * _STEPS) + 0.5) / _STEPS + _LOWEST)
_VALUES = np.array([0.0, *_MIDDLES, np.inf])
"""What a bin of distances stands for: nothing to speak of, a hundred steps to a decade, on one side only."""


def landmark_table(run: Run, *, grid: Sequence[float] | None = None, judging: str = DEFAULT) -> pl.DataFrame:
    """How often each landmark violates each rule: one row per rule, landmark and threshold of the grid.

    A null `rule` stands for all rules together but identity. Every pair of subjects counts for itself, of every draw
    and repeat. A landmark is `judged` where it was expected or found and its place is inside the frame; it is
    `violated` where its own severity, in body lengths, is at least the threshold and above 0. Severities are those of
    the relation `poses` with the options of the judging, before it aggregates them: a landmark on one side only is ∞,
    also where its whole subject was lost, and any other is judged only where the subject has a body length. Subjects
    that were invented are not counted.

    `median` is the median severity within 1.2 % (0 below 0.0001): it is taken from a histogram, since the distances
    of a large run do not fit into memory. Rates are exact. The pairs of one case, of all its subjects, draws and rules,
    are no independent trials: intervals take them as a cluster (`clustered_interval`).
    """
    manifest = run.manifest
    kind = manifest.system.kind
    if kind != Poses.kind:
        raise ValueError(f"landmarks are those of poses; the system of {run.folder} answers with {kind}")
    own = own_equivariance(kind).relation
    rules = [rule for rule in run.bound_rules() if rule.relation.relation.name == own.name]
    if manifest.output is None or not rules:
        return pl.DataFrame(schema=_SCHEMA)
    bones = Skeleton.from_dict(manifest.header["skeleton"])
    judged_by = run.judging(judging)
    chosen = bones.select(str(judged_by.of(own)["landmarks"] or bones.default))
    tally = _Tally(rules, [i for _, indices in chosen for i in indices], grid or own.grid)
    alike: dict[str, dict[str, int]] = {}
    for number, rule in enumerate(rules):
        alike.setdefault(rule.relation.id, {})[rule.transformations[0].id] = number
    for piece in chunks(run.store):
        rows = with_right_zones(run.store, piece.predictions(_COLUMNS), manifest, own, judged_by)
        cases = rows["case"].unique()
        tally.begin(len(cases))
        for numbers in alike.values():
            members = [rules[number] for number in numbers.values()]
            pairs = pose_pairs(evidence(members, rows, pl.DataFrame(), manifest, judged_by)[0])
            rule_of = pairs.follow_ups["follow_up"].replace_strict(numbers, return_dtype=pl.Int64).to_numpy()
            case_of = (
                pairs.follow_ups["case"].replace_strict(cases, range(len(cases)), return_dtype=pl.Int64).to_numpy()
            )
            for errors in pairs.errors():
                tally.add(rule_of[errors.rows], case_of[errors.rows], errors)
        tally.end()
    names = [(bones.landmarks[i], part.name) for part, indices in chosen for i in indices]
    return tally.table(names)


class _Tally:
    """Counts per rule and landmark, and last of all rules that change something together, of a size that does not grow
    with the run: of the pairs of each case their sums, squares and products, which are all that an interval takes."""

    def __init__(self, rules: Sequence[BoundRule], landmarks: Sequence[int], grid: Sequence[float]) -> None:
        self.rules = rules
        self.changing = [number for number, rule in enumerate(rules) if rule.left != "identity"]
        self.grid = [float(threshold) for threshold in grid]
        self.column = {landmark: number for number, landmark in enumerate(landmarks)}
        shape = len(rules) + 1, len(landmarks)
        # clusters, trials, squared trials; hits, squared hits, products of both
        self.tried = np.zeros((3, *shape), np.int64)
        self.violated = np.zeros((3, *shape, len(self.grid)), np.int64)
        self.bins = np.zeros((*shape, len(_VALUES)), np.uint32)
        self.begin(0)

    def begin(self, cases: int) -> None:
        """So many cases come next, which are counted under all rules together once all of their pairs were seen."""
        self.tries = np.zeros((cases, len(self.column)), np.int32)
        self.hits = np.zeros((cases, len(self.column), len(self.grid)), np.int32)

    def end(self) -> None:
        every = slice(0, len(self.column))
        self._count(len(self.rules), every, self.tries)
        for number in range(len(self.grid)):
            self._count_hits(len(self.rules), every, number, self.hits[..., number], self.tries)

    def add(self, rules: Ints, cases: Ints, errors: LandmarkErrors) -> None:
        """Count pairs, of which each has the number of its rule and that of its case."""
        first = self.column[int(errors.landmarks[0])]
        columns = slice(first, first + len(errors.landmarks))
        for rule in np.unique(rules):
            at = np.flatnonzero(rules == rule)
            at = at[np.argsort(cases[at], kind="stable")]
            severity = errors.severity[at]
            owners, starts = np.unique(cases[at], return_index=True)
            several = len(owners) < len(at)  # else each case has one pair, and there is nothing to add up
            judged = ~np.isnan(severity)
            tries = np.add.reduceat(judged, starts, axis=0, dtype=np.int32) if several else judged
            self._count(rule, columns, tries)
            self.bins[rule, columns] += _binned(severity)
            together = rule in self.changing
            if together:
                self.tries[owners, columns] += tries
            for number, threshold in enumerate(self.grid):
                hit = (severity >= threshold) & (severity > 0)
                hits = np.add.reduceat(hit, starts, axis=0, dtype=np.int32) if several else hit
                self._count_hits(rule, columns, number, hits, tries)
                if together:
                    self.hits[owners, columns, number] += hits

    def _count(self, rule: int, columns: slice, tries: Counts) -> None:
        if tries.dtype == np.bool_:  # the square of one is one
            self.tried[:, rule, columns] += tries.sum(0)
            return
        for place, power in enumerate((tries > 0, tries, tries**2)):
            self.tried[place, rule, columns] += power.sum(0)

    def _count_hits(self, rule: int, columns: slice, number: int, hits: Counts, tries: Counts) -> None:
        if hits.dtype == np.bool_:
            self.violated[:, rule, columns, number] += hits.sum(0)
            return
        for place, product in enumerate((hits, hits**2, hits * tries)):
            self.violated[place, rule, columns, number] += product.sum(0)

    def table(self, landmarks: Sequence[tuple[str, str]]) -> pl.DataFrame:
        rows: list[tuple[object, ...]] = []
        clusters, tried, tried_squared = self.tried[..., None]
        hits, squared, products = self.violated
        low, high = clustered_interval((clusters, hits, tried, squared, products, tried_squared))
        self.bins[-1] = self.bins[self.changing].sum(0)
        for number, rule in enumerate([*(one.id for one in self.rules), None]):
            for place, (landmark, part) in enumerate(landmarks):
                tries, median = int(tried[number, place, 0]), _median(self.bins[number, place].astype(np.int64))
                for t, threshold in enumerate(self.grid):
                    at = number, place, t
                    rate = int(hits[at]) / tries if tries else None
                    ends = float(low[at]), float(high[at])
                    rows.append((rule, landmark, part, threshold, tries, int(hits[at]), rate, *ends, median))
        return pl.DataFrame(rows, orient="row", schema=_SCHEMA)


def _binned(severity: Floats) -> npt.NDArray[np.uint32]:
    """How many of each landmark's severities (pairs, landmarks) fall into each bin; NaN into none."""
    judged = ~np.isnan(severity)
    values = severity[judged]
    with np.errstate(divide="ignore"):
        place = np.clip((np.log10(values) - _LOWEST) * _STEPS + 1, 0, len(_VALUES) - 2)
    place = np.where(np.isinf(values), len(_VALUES) - 1, place).astype(np.int64)
    column = np.broadcast_to(np.arange(severity.shape[1]), severity.shape)[judged]
    counts = np.bincount(column * len(_VALUES) + place, minlength=severity.shape[1] * len(_VALUES))
    return counts.reshape(-1, len(_VALUES)).astype(np.uint32)


def _median(counts: Ints) -> float | None:
    up_to = counts.cumsum()
    tries = int(up_to[-1])
    if not tries:
        return None
    middle = np.searchsorted(up_to, [(tries - 1) // 2, tries // 2], side="right")
    return float(_VALUES[middle].mean())


# --- a figure to draw them on ----------------------------------------------------------------------

SUBJECTS = 2000
"""Subjects that a figure is made of: more would not change it."""
NEARLY = 0.9
"""Those that show less than this share of what others show say little of how a part looks."""
ALIKE, AT_LEAST, ROUNDS = 0.2, 10, 10
"""The share of subjects that are drawn as one, and how many of a few; how often they are chosen anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A part of the skeleton as it is to be drawn: `xy` (landmarks, 2) from 0 to 1 on the longer side, y downwards."""

    part: str
    landmarks: tuple[str, ...]
    xy: Floats
    edges: tuple[tuple[str, str], ...]


def typical_pose(run: Run) -> tuple[Figure, ...]:
    """How the run's subjects typically look, one figure per part of the skeleton, to draw other things on.

    Subjects of source outputs and their mirror images are moved, turned and scaled onto each other; the figure is what
    the fifth of them agrees on that is most alike, standing as most subjects do. Left and right are drawn apart, as far
    as they usually are. Parts and landmarks that no source output shows are left out.
    """
    header = run.manifest.output
    if header is None or header["kind"] != Poses.kind:
        raise ValueError(f"{run.folder} has no poses to draw")
    bones = Skeleton.from_dict(header["skeleton"])
    return tuple(_figure(bones, part, points) for part, points in _shown(run, bones) if len(points))


def _shown(run: Run, bones: Skeleton) -> Iterator[tuple[Part, Floats]]:
    """The landmarks (subjects, landmarks, 2) of subjects that show nearly all of a part, and of their mirror images."""
    views = [
        (part, side, [int(bones.swap[i]) for i in part.landmarks] if side < 0 else list(part.landmarks))
        for part in bones.parts
        for side in (1, -1)
    ]
    shown: list[list[npt.NDArray[np.float32]]] = [[np.zeros((0, len(order), 2), np.float32)] for _, _, order in views]
    for piece in chunks(run.store, SOURCE_ANSWERED):
        if all(sum(map(len, poses)) >= SUBJECTS for poses in shown):
            break
        rows = piece.predictions(["case", *Poses.columns], where=SOURCE_ANSWERED).sort("case")
        points = PoseBatch.from_frame(rows, len(bones.landmarks)).points
        for (_, _, order), poses in zip(views, shown, strict=True):
            there = np.flatnonzero(~np.isnan(points[:, order, 0]).all(1))[: SUBJECTS - sum(map(len, poses))]
            poses.append(points[there[:, None], order])
    both = [np.concatenate(poses) * (side, 1.0) for (_, side, _), poses in zip(views, shown, strict=True)]
    for part, one, other in zip(bones.parts, both[::2], both[1::2], strict=True):
        points = np.concatenate([one, other])
        seen = (~np.isnan(points[..., 0])).sum(1)
        yield part, points[seen >= NEARLY * seen.max(initial=0)]


def _figure(bones: Skeleton, part: Part, points: Floats) -> Figure:
    place = {i: number for number, i in enumerate(part.landmarks)}
    pairs = [(place[a], place[b]) for a, b in bones.pairs if a in place and b in place]
    xy = _typical(points, np.array(pairs, np.int64).reshape(-1, 2))
    kept = [i for i, number in place.items() if not np.isnan(xy[number]).any()]
    shown = xy[[place[i] for i in kept]]
    shown = shown - shown.min(0)
    return Figure(
        part.name,
        tuple(bones.landmarks[i] for i in kept),
        shown / (shown.max() or 1.0),
        tuple((bones.landmarks[a], bones.landmarks[b]) for a, b in bones.edges if a in kept and b in kept),
    )


def _typical(points: Floats, pairs: Ints) -> Floats:
    """One pose (landmarks, 2) of many (subjects, landmarks, 2); NaN for landmarks that nobody shows."""
    absent = np.isnan(points[..., 0])
    poses = np.where(absent, 0, points[..., 0] + 1j * points[..., 1])  # complex: to turn and scale is to multiply
    poses = np.where(absent, 0, poses - (poses.sum(1) / (~absent).sum(1))[:, None])
    poses /= np.maximum(np.linalg.norm(poses, axis=1), 1e-9)[:, None]
    typical = np.linalg.eigh(poses.T @ poses.conj())[1][:, -1]  # the mean shape: most like all of them
    for _ in range(ROUNDS):
        like = poses.conj() @ typical
        near = np.argsort(-np.abs(like), kind="stable")[: max(AT_LEAST, round(ALIKE * len(poses)))]
        turned = np.where(absent, np.nan, poses * np.exp(1j * np.angle(like))[:, None])
        typical = np.nan_to_num(_medians(turned[near]))
    middle = _medians(turned[near])
    middle = np.where(np.isnan(middle), _medians(turned), middle)
    upright = np.exp(-1j * np.angle(np.exp(1j * np.angle(like)).sum()))
    return _apart(middle * upright, turned[near] * upright, pairs)


def _medians(poses: Complexes) -> Complexes:
    """Each landmark's median over those who show it; NaN where nobody does."""
    return aggregated(poses.real.T, "median") + 1j * aggregated(poses.imag.T, "median")


def _apart(typical: Complexes, poses: Complexes, pairs: Ints) -> Floats:
    """The typical of some poses, with left and right as far apart as they are in most of them.

    Legs that cross as often one way as the other would be one leg in a median.
    """
    xy = np.stack([typical.real, typical.imag], -1)
    width = aggregated(np.abs((poses[:, pairs[:, 0]] - poses[:, pairs[:, 1]]).real).T, "median")
    known = ~np.isnan(width)
    (left, right), width = pairs[known].T, width[known]
    side = np.sign((xy[left, 0] - xy[right, 0]).sum())
    centre = (xy[left, 0] + xy[right, 0]) / 2
    xy[left, 0], xy[right, 0] = centre + side * width / 2, centre - side * width / 2
    return xy
