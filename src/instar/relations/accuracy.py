"""Accuracy: what a system finds in a follow-up, against the ground truth or against what it found in the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Schema
from instar.outputs.poses import Poses
from instar.relations.pairing import DRAWS, HANDEDNESS, projected
from instar.relations.poses import PosePairs, named_as_truth, pose_pairs
from instar.relations.relation import EMPTY, NOTHING_FOUND, VERDICT_COLUMNS, Evidence, Relation
from instar.skeleton import Skeleton
from instar.spelling import Parameter

Floats = npt.NDArray[np.float64]

COUNTS = ("tp", "fp", "fn", "hand_tp", "hand_fp", "hand_fn", "near", "distance")
"""Landmarks that are right (tp), wrong (fp) and missing (fn), and subjects likewise (`hand_`, for the hands that these
measures were published of; they count any subject). `near` counts landmarks found on both sides, `distance` is the sum
of their distances."""
MEASURES: Schema = {
    **{f"{side}{name}": pl.Float64 for side in ("", "source_") for name in COUNTS},
    "reference": pl.String,
    "exchanged": pl.String,
}
_NO_TRUTH = "this case has no ground truth of the system's kind, which alone is compared (reference=truth)"
_HOLDING = "the hand holds an object; holding=judge takes such hands too"
_IDENTITY = np.eye(3).ravel().tolist()


def accuracy(evidence: Evidence) -> pl.DataFrame:
    """How much of F1 a case loses: that of its source less that of the follow-up, over all landmarks of all subjects.

    The reference is the ground truth, carried along by the change, or else the source's answer, which is then right by
    definition. A landmark of the reference is right where it lies nearer than `within`, wrong where it lies further
    away, missing where it is not found; a subject is right where the boxes of its landmarks overlap by more than `iou`.
    Subjects that nothing in the reference answers to are wrong, and so are their landmarks. Where two limbs of the
    skeleton (two fingers) lie where the other is expected, the kind is *exchanged*, and `exchanged` names them.
    """
    tables = []
    base = evidence.sources.filter(pl.col("repeat") == 0)
    as_follow_up = base.with_columns(
        follow_up=pl.lit("source"), draw=pl.lit(0, pl.Int32), warp=pl.lit(_IDENTITY, pl.List(pl.Float64))
    )
    for name in ("truth", "source"):
        follow_up = reference_of(evidence, evidence.follow_ups, name)
        source = reference_of(evidence, as_follow_up, name)
        if follow_up is None or source is None:
            continue
        first = _summed(source).drop("follow_up", "exchanged")
        baseline = first.rename({each: f"source_{each}" for each in COUNTS})
        counts = _summed(follow_up).join(baseline, on="case", maintain_order="left")
        tables.append(counts.with_columns(reference=pl.lit(name)))
    typed = pl.DataFrame(schema={**VERDICT_COLUMNS, **MEASURES})
    judged = _lost(pl.concat(tables), evidence) if tables else typed
    answered = evidence.follow_ups.join(base, on="case", how="semi")
    pairs = answered.select("case", "follow_up").unique(maintain_order=True)
    unlabelled = pairs.join(judged, on=["case", "follow_up"], how="anti")
    unjudged = unlabelled.with_columns(target=pl.lit("whole"), reason=pl.lit(_NO_TRUTH))
    return pl.concat([typed, judged, unjudged], how="diagonal_relaxed")


def _lost(counts: pl.DataFrame, evidence: Evidence) -> pl.DataFrame:
    """The verdicts that counts of source and follow-up give."""
    nothing = (pl.col("reference") == "source") & (pl.col("source_hand_tp") == 0)
    answers = pl.sum_horizontal(f"{side}hand_{kind}" for side in ("", "source_") for kind in ("tp", "fp"))
    empty = (answers == 0) & (evidence.options["empty"] == "leave")
    holding = pl.col("case").is_in(_holding(evidence).implode())
    lost = (_f1("source_") - _f1("")).clip(0.0)
    return counts.with_columns(
        severity=pl.when(~nothing & ~holding & ~empty).then(lost),
        target=pl.lit("whole"),
        kind=pl.when((lost > 0) & pl.col("exchanged").is_not_null()).then(pl.lit("exchanged")),
        reason=pl.when(holding)
        .then(pl.lit(_HOLDING))
        .when(empty)
        .then(pl.lit(NOTHING_FOUND))
        .when(nothing)
        .then(pl.lit("nothing was found in the source")),
    ).select(*VERDICT_COLUMNS, *MEASURES)


def _holding(evidence: Evidence) -> pl.Series:
    """The cases that the relation leaves out: their attribute `object` says that the hand holds one."""
    if evidence.options["holding"] == "judge" or "attributes" not in evidence.cases.columns:
        return pl.Series(dtype=pl.String)
    object_attribute = pl.col("attributes").cast(pl.String).str.json_path_match("$.object")
    return evidence.cases.filter(object_attribute == "true")["case"]


def _f1(side: str) -> pl.Expr:
    """1 where nothing is there and nothing was found."""
    hits = 2 * pl.col(f"{side}tp")
    every = hits + pl.col(f"{side}fp") + pl.col(f"{side}fn")
    return pl.when(every > 0).then(hits / every).otherwise(1.0)


def reference_of(evidence: Evidence, follow_ups: pl.DataFrame, name: str) -> Evidence | None:
    """The same follow-ups with the ground truth, or the source's answer, in the place of the source.

    Which cases are compared with what is the option `reference`'s to say; None where there are none. A ground truth
    whose skeleton has no landmark in common with the system's counts as none.
    """
    wanted, truth = evidence.options["reference"], evidence.truth
    poses = truth is not None and truth["kind"] == evidence.header["kind"] and "truth_scores" in evidence.cases.columns
    if poses and truth is not None:
        bones, others = (Skeleton.from_dict(header["skeleton"]) for header in (truth, evidence.header))
        poses = len(bones.mapping(others)[0]) > 0
    annotated = (
        evidence.cases.filter(pl.col("truth_scores").is_not_null())
        if poses and wanted != "source"
        else evidence.cases.clear()
    )
    base = evidence.sources.filter(pl.col("repeat") == 0)
    if name == "source":
        if wanted == "truth":
            return None
        sources = base.join(annotated, on="case", how="anti")
    else:
        own = {f"truth_{column}": column for column in Poses.columns}
        sources = base.select("case", "repeat", "width", "height")
        sources = sources.join(annotated.select("case", *own).rename(own), on="case") if poses else sources.clear()
    follow_ups = follow_ups.join(sources, on="case", how="semi", maintain_order="left")
    if follow_ups.is_empty():
        return None
    names = ", ".join(Skeleton.from_dict(evidence.header["skeleton"]).landmarks)
    options = {**evidence.options, "landmarks": names, "space": "pixels"}
    compared = replace(evidence, sources=sources, follow_ups=follow_ups, options=options)
    return compared if name == "source" else named_as_truth(compared)


def _summed(evidence: Evidence) -> pl.DataFrame:
    """The counts of each case and follow-up, over its draws and repeats."""
    pairs = pose_pairs(evidence)
    counts = counted_pairs(pairs)
    keys = pairs.follow_ups.select("case", "follow_up")
    return (
        keys.with_columns(
            exchanged=pl.Series(exchanged_limbs(pairs), dtype=pl.String),
            **{name: pl.Series(counts[name]) for name in COUNTS},
        )
        .group_by("case", "follow_up", maintain_order=True)
        .agg(pl.col(COUNTS).sum(), pl.col("exchanged").drop_nulls().first())
    )


def exchanged_limbs(pairs: PosePairs) -> list[str | None]:
    """Of each follow-up, which two limbs of a subject lie where the other is expected; None where none do.

    A limb is a group of the skeleton that its edges make a chain of: a finger. Two of equal length are exchanged where
    both lie more than a tenth of the subject's size off, and less than half as far from the other's place.
    """
    names: list[str | None] = [None] * pairs.follow_ups.height
    matched = (pairs.source_subjects >= 0) & (pairs.follow_up_subjects >= 0)
    rows = pairs.rows[matched]
    expected = pairs.source_poses.points[pairs.source_subjects[matched]].astype(np.float64)
    actual = pairs.follow_up_poses.points[pairs.follow_up_subjects[matched]].astype(np.float64)
    actual[pairs.swaps[rows]] = actual[pairs.swaps[rows]][:, pairs.bones.swap]
    actual = projected(pairs.inverses[rows], actual)
    boxes = _boxes(expected)
    size = np.linalg.norm(boxes[:, 2:] - boxes[:, :2], axis=1)

    def gap(one: tuple[int, ...], other: tuple[int, ...]) -> Floats:
        return np.asarray(np.linalg.norm(actual[:, one] - expected[:, other], axis=-1).mean(1))

    for (a, one), (b, other) in combinations(_limbs(pairs.bones).items(), 2):
        if len(one) != len(other):
            continue
        own, across = (
            np.stack(gaps) for gaps in ((gap(one, one), gap(other, other)), (gap(one, other), gap(other, one)))
        )
        for row in rows[(own > size / 10).all(0) & (across < own / 2).all(0)]:
            names[row] = names[row] or f"{a} and {b}"
    return names


@cache
def _limbs(bones: Skeleton) -> Mapping[str, tuple[int, ...]]:
    """The groups of a skeleton whose landmarks its edges join to a chain, as the group lists them."""
    edges = {frozenset(edge) for edge in bones.edges}
    limbs: dict[str, tuple[int, ...]] = {}
    for name, members in bones.groups.items():
        if not set(members) <= set(bones.landmarks):
            continue
        chain = tuple(bones.index(member) for member in members)
        if len(chain) > 1 and all(frozenset(step) in edges for step in pairwise(chain)):
            limbs[name] = chain
    return limbs


def counted_pairs(pairs: PosePairs) -> Mapping[str, Floats]:
    """The counts of each follow-up."""
    rows = pairs.follow_ups.height
    counts = {name: np.zeros(rows) for name in COUNTS}
    for errors in pairs.errors():
        severity = errors.severity
        judged = errors.comparable
        both = judged & np.isfinite(errors.distance)
        near = both & (severity < pairs.options["within"])
        for name, what in (("tp", near), ("fp", both & ~near), ("fn", judged & ~both), ("near", both)):
            counts[name] += np.bincount(errors.rows, what.sum(1), rows)
        counts["distance"] += np.bincount(errors.rows, np.where(both, severity, 0.0).sum(1), rows)
    invented, lost = pairs.source_subjects < 0, pairs.follow_up_subjects < 0
    matched = ~invented & ~lost
    right = np.zeros(len(pairs.rows), bool)
    right[matched] = _overlap(pairs, matched) > pairs.options["iou"]
    for name, who in (("hand_tp", right), ("hand_fp", (matched & ~right) | invented), ("hand_fn", lost)):
        counts[name] += np.bincount(pairs.rows[who], minlength=rows)
    of_follow_up, shown = pairs.invented()
    counts["fp"] += np.bincount(of_follow_up, shown.sum(1), rows)
    return counts


def _overlap(pairs: PosePairs, matched: npt.NDArray[np.bool_]) -> Floats:
    """The IoU of the boxes around the landmarks that were expected and those that were found, in the follow-up."""
    take = pairs.landmarks
    source = pairs.source_poses.points[pairs.source_subjects[matched]][:, take]
    actual = pairs.follow_up_poses.points[pairs.follow_up_subjects[matched]][:, take].astype(np.float64)
    a, b = _boxes(projected(pairs.matrices[pairs.rows[matched]], source)), _boxes(actual)
    cut = np.clip(np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]), 0, None).prod(1)
    areas = (a[:, 2:] - a[:, :2]).prod(1) + (b[:, 2:] - b[:, :2]).prod(1)
    return np.asarray(np.where(areas > cut, cut / np.where(areas > cut, areas - cut, 1.0), 0.0))


def _boxes(points: Floats) -> Floats:
    """The box around each subject's landmarks, empty where it has none: fmin and fmax pass over NaN."""
    return np.asarray(np.nan_to_num(np.concatenate([np.fmin.reduce(points, 1), np.fmax.reduce(points, 1)], -1)))


# fmt: off
RELATIONS = (
    Relation(
        "accuracy", "poses", accuracy, unit="F1 lost", threshold=0.1, grid=(0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        kinds=("exchanged",), meanings={"exchanged": "two fingers lie in each other's place"},
        measures=MEASURES, parameters=(HANDEDNESS, *DRAWS), title="landmarks that are right",
        details=(
            "landmarks that are right: {source_tp} in the source, {tp} in the follow-up",
            "wrong: {source_fp} in the source, {fp} in the follow-up",
            "missing: {source_fn} in the source, {fn} in the follow-up",
            "exchanged: {exchanged}", "measured against the {reference}",
        ),
        options=(
            Parameter("reference", "choice", "auto", choices=("auto", "truth", "source"),
                      help="what answers are compared with; auto: the ground truth where a case has one"),
            Parameter("within", "float", 0.2, low=0, open_low=True, high=1e6,
                      help="a landmark is right nearer than this, in lengths of its part or what the normaliser says"),
            Parameter("normaliser", "choice", "part", choices=("part", "box", "image", "pixels"),
                      help="what a distance is divided by; pixels: nothing"),
            Parameter("iou", "float", 0.5, low=0, high=1, help="a subject is right above this overlap of boxes"),
            Parameter("confidence", "float", 0.5, low=0, high=1, help="subjects below this are not there"),
            Parameter("visibility", "float", 0.0, low=0, high=1, help="landmarks below this are not there"),
            Parameter("holding", "choice", "leave", choices=("leave", "judge"),
                      help="cases whose attribute `object` is true are left out, as in the paper, or judged"),
            Parameter("outside", "choice", "leave", choices=("leave", "keep"),
                      help="landmarks expected outside the frame are left out, or judged"),
            EMPTY,
        ),
        words="as many landmarks must be right",
        help="A system finds in the follow-up what it finds in the source, measured against the ground truth "
             "where there is one.",
    ),
)
# fmt: on
