"""Poses: one set of landmarks per subject."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.case import Input
from instar.json_values import as_list, as_numbers, depth, short
from instar.outputs.arrays import floats, put
from instar.outputs.marks import Mark
from instar.outputs.output import UNPLACED, OutputDefaults, Row, Schema
from instar.outputs.subjects import subject_frame
from instar.shapes import Shape, Side
from instar.skeleton import Skeleton
from instar.skeleton import skeleton as named_skeleton
from instar.warp import Size, Warp

Floats = npt.NDArray[np.float32]
SURE = 0.5
"""The score from which on a system says that somebody is there."""


@dataclass(frozen=True, slots=True, eq=False)
class Poses(OutputDefaults):
    """What a pose estimator says of one input: a landmark set per subject, possibly none.

    `points` is (subjects, landmarks, 2) in pixels, NaN where a landmark is absent; `visibility`
    (subjects, landmarks) and `scores` (subjects,) are 0 to 1. Points outside the frame are allowed. A score says how
    sure it is that somebody is there: by default, who scores below 0.5 is not. A system that cannot say leaves it out.
    `unplaced` is the best score of those who were left out since not one of their landmarks is a number;
    it is about how the answer was made, and no part of it.
    """

    skeleton: Skeleton
    points: Floats
    visibility: Floats
    scores: Floats
    unplaced: float | None = field(default=None, compare=False, repr=False)

    kind: ClassVar[str] = "poses"
    relation: ClassVar[str | None] = "poses"
    suite: ClassVar[str | None] = "poses"
    has_marks: ClassVar[bool] = True
    need: ClassVar[str | None] = "landmarks"
    json_fields: ClassVar[Mapping[str, bool]] = {"points": True, "skeleton": True, "visibility": False, "scores": False}
    columns: ClassVar[Schema] = {
        "points": pl.List(pl.Float32),
        "visibility": pl.List(pl.Float32),
        "scores": pl.List(pl.Float32),
    }

    def __post_init__(self) -> None:
        bones = named_skeleton(self.skeleton) if isinstance(self.skeleton, str) else self.skeleton
        points, seen, sure = (
            floats(self.points, "points"),
            floats(self.visibility, "visibilities"),
            floats(self.scores, "scores"),
        )
        subjects, count = len(points), len(bones.landmarks)
        if points.shape != (subjects, count, 2):
            raise ValueError(
                f"poses of skeleton {bones.name} are (subjects, {count}, 2 or 3), got shape {points.shape}"
            )
        if seen.shape != (subjects, count) or sure.shape != (subjects,):
            raise ValueError(
                f"visibility must be ({subjects}, {count}) and scores ({subjects},), got {seen.shape} and {sure.shape}"
                ": a landmark has a visibility, and a subject a score"
            )
        if np.isinf(points).any():
            raise ValueError("a landmark has an infinite coordinate")
        if not np.isfinite(sure).all() or not np.isfinite(seen[~np.isnan(points[..., 0])]).all():
            raise ValueError("a score or visibility is not a number")
        put(self, skeleton=bones, points=points, visibility=seen, scores=sure)

    @classmethod
    def from_array(
        cls,
        points: npt.ArrayLike,
        *,
        skeleton: Skeleton | str,
        visibility: npt.ArrayLike | None = None,
        scores: npt.ArrayLike | None = None,
    ) -> Poses:
        """From pixel coordinates: (subjects, landmarks, 2), or (landmarks, 2) for one subject, or empty for none.

        A third coordinate is taken as the landmark's visibility. Both coordinates NaN: the landmark is absent.

        >>> Poses.from_array([[[1, 2]] * 17], skeleton="coco-17").scores
        array([1.], dtype=float32)
        """
        bones = named_skeleton(skeleton) if isinstance(skeleton, str) else skeleton
        array = floats(points, "points")
        count = len(bones.landmarks)
        if array.size == 0:
            array = np.zeros((0, count, 2), np.float32)
        if array.ndim == 2:
            array = array[None]
        if array.ndim != 3 or array.shape[1] != count or array.shape[2] not in (2, 3):
            raise ValueError(f"poses of skeleton {bones.name} are (subjects, {count}, 2 or 3), got shape {array.shape}")
        if array.shape[2] == 3 and visibility is None:
            visibility = array[..., 2]
        points = np.array(array[..., :2])
        points[np.isnan(points).any(-1)] = np.nan
        seen = np.ones(points.shape[:2], np.float32) if visibility is None else floats(visibility, "visibilities")
        sure = np.ones(len(points), np.float32) if scores is None else floats(scores, "scores")
        whole = cls(bones, points, seen, sure)
        present = ~np.isnan(points[..., 0]).all(1)  # a subject of which nothing is present was not found
        if present.all():
            return whole
        unplaced = None if scores is None else float(sure[~present].max())  # without scores, nobody is said to be there
        return cls(bones, points[present], seen[present], sure[present], unplaced)

    def __len__(self) -> int:
        return len(self.points)

    def warped(self, warp: Warp) -> Poses:
        """Carried by a warp; one that reverses handedness exchanges left and right landmarks."""
        order = self.skeleton.swap if warp.mirrors else slice(None)
        return Poses.from_array(
            warp.points(self.points[:, order]),
            skeleton=self.skeleton,
            visibility=self.visibility[:, order],
            scores=self.scores,
        )

    def confident(self, confidence: float) -> Poses:
        keep = self.scores >= confidence
        if keep.all():
            return self
        return Poses.from_array(
            self.points[keep], skeleton=self.skeleton, visibility=self.visibility[keep], scores=self.scores[keep]
        )

    def shapes(self, target: str | None = None) -> list[Shape]:
        """Every subject's bones and landmarks; for a target such as `0/left_hand`, of that part only.

        Scores are written beside them, unless all are 1: then the system does not say any.
        """
        part = (target or "").partition("/")[2]
        bones, sides = self.skeleton, self.skeleton.sides
        whole = range(len(bones.landmarks))
        shown = sorted(next((p.landmarks for p in bones.parts if p.name == part), whole))
        dots_of: dict[Side | None, list[int]] = {side: [i for i in shown if sides[i] == side] for side in sides}
        edges_of: dict[Side | None, list[tuple[int, int]]] = {}
        kept = set(shown)
        for a, b in bones.edges:
            if a in kept and b in kept:
                edges_of.setdefault(_side_of_edge(sides[a], sides[b]), []).append((a, b))
        shapes: list[Shape] = []
        scored = bool((self.scores != 1).any())
        for points, score in zip(self.points.astype(np.float64), self.scores, strict=True):
            for side, edges in edges_of.items():
                shapes.append(Shape("lines", _present(points[np.array(edges)].reshape(-1, 4)), side=side))
            for side, dots in dots_of.items():
                shapes.append(Shape("points", _present(points[dots]), side=side))
            if scored and len(places := _present(points[shown])):
                shapes.append(
                    Shape("text", places.min(0)[None], f"{score:.2f}", side="middle" if bones.pairs else None)
                )
        return shapes

    def remark(self) -> str | None:
        return UNPLACED if self.unplaced is not None and self.unplaced >= SURE else None

    def sizes(self) -> Mapping[str, int]:
        return {"subjects": len(self), "landmarks of all subjects": self.visibility.size}

    def to_json(self) -> dict[str, object]:
        return {
            "points": [
                [None if np.isnan(point).any() else point.tolist() for point in subject] for subject in self.points
            ],
            "skeleton": self.skeleton.to_dict(),
            "visibility": np.nan_to_num(self.visibility).tolist(),
            "scores": self.scores.tolist(),
        }

    def marks(self) -> list[Mark]:
        present = ~np.isnan(self.points[..., 0])
        return [
            Mark(
                "",
                points.astype(np.float64),
                float(score * visibility[there].mean()),
                np.append(visibility[there], score),
            )
            for points, visibility, score, there in zip(self.points, self.visibility, self.scores, present, strict=True)
        ]

    def inside(self, cells: npt.NDArray[np.bool_], options: Row) -> float:
        """Of the landmarks that the judging looks at, as far as they are visible and in the frame."""
        bones, (height, width) = self.skeleton, cells.shape
        chosen = [i for _, part in bones.select(options.get("landmarks") or bones.default) for i in part]
        shares = [0.0]
        for points, visibility, score in zip(self.points, self.visibility, self.scores, strict=True):
            places = points[chosen][visibility[chosen] >= options.get("visibility", 0)]
            within = (places >= 0).all(1) & (places[:, 0] < width) & (places[:, 1] < height)  # false for NaN
            columns, rows = places[within].astype(int).T
            if score >= options.get("confidence", 0) and len(rows):
                shares.append(float(cells[rows, columns].mean()))
        return max(shares)

    @classmethod
    def from_json(cls, fields: Mapping[str, object], frame: Size | None = None, *, truth: bool = False) -> Poses:
        """From the landmarks of each subject, or of one: `[x, y]` or `[x, y, visibility]`, null where one is absent."""
        bones = _skeleton_from_json(fields["skeleton"])
        points = _points_from_json(fields["points"], bones)
        visibility, scores = fields.get("visibility"), fields.get("scores")
        return cls.from_array(
            points,
            skeleton=bones,
            visibility=None
            if visibility is None
            else as_numbers(visibility, "visibility", points.shape[:2], "a number for each landmark"),
            scores=None
            if scores is None
            else as_numbers(scores, "scores", (len(points),), "a number for each subject"),
        )

    def header(self) -> Row:
        return _header(self.skeleton)

    def row(self) -> Row:
        return {"points": self.points.ravel(), "visibility": self.visibility.ravel(), "scores": self.scores}

    @classmethod
    def from_row(cls, row: Row, header: Row) -> Poses:
        bones = _known_skeleton(json.dumps(header["skeleton"]))
        count = len(bones.landmarks)
        return cls.from_array(
            np.asarray(row["points"], np.float32).reshape(-1, count, 2),
            skeleton=bones,
            visibility=np.asarray(row["visibility"], np.float32).reshape(-1, count),
            scores=np.asarray(row["scores"], np.float32),
        )

    @classmethod
    def accept(cls, answer: object, input: Input) -> Poses:
        """An answer of a user's function as Poses: an instance of it, nothing else says its skeleton."""
        if isinstance(answer, cls):
            return answer
        raise TypeError(f"expected Poses (see Poses.from_array), got {type(answer).__name__}")

    @classmethod
    def suite_of(cls, header: Row) -> str | None:
        """That of the skeleton, where it names one: hands are asked other things than bodies."""
        named: str | None = header.get("skeleton", {}).get("suite", cls.suite)
        return named

    @classmethod
    def subject(cls, header: Row) -> str:
        """A person where there are wrists, or else what the skeleton's only part is called: a hand, a face."""
        bones: Row = header.get("skeleton", {})
        parts, landmarks = list(bones.get("parts", ())), bones.get("landmarks", ())
        if len(parts) == 1 and parts != ["body"]:
            return str(parts[0]).replace("_", " ")
        return "person" if any("wrist" in name for name in landmarks) else "subject"

    @classmethod
    def stored_bytes(cls, header: Row) -> pl.Expr:
        landmarks = len(header["skeleton"]["landmarks"])
        return pl.col("scores").list.len().cast(pl.Int64).fill_null(0) * (12 * landmarks + 4)

    @classmethod
    def subjects(cls, rows: pl.DataFrame, header: Row) -> pl.DataFrame:
        """Every subject with the box around its landmarks."""
        batch = PoseBatch.from_frame(rows, len(header["skeleton"]["landmarks"]))
        # fmin and fmax pass over NaN
        boxes = np.concatenate([np.fmin.reduce(batch.points, 1), np.fmax.reduce(batch.points, 1)], -1)
        return subject_frame(batch.counts, boxes, batch.scores)


def _present(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return places[~np.isnan(places).any(1)]


def _side_of_edge(one: Side | None, other: Side | None) -> Side | None:
    """A limb has the side of its ends; the line between both shoulders has none, the one from nose to eye the eye's."""
    ends = {one, other} - {"middle"}
    return ends.pop() if len(ends) == 1 else "middle"


@lru_cache(maxsize=64)
def _header(bones: Skeleton) -> Row:
    """A face mesh has hundreds of names: spelled out once, not once per answer."""
    return {"kind": Poses.kind, "skeleton": bones.to_dict()}


def _skeleton_from_json(value: object) -> Skeleton:
    if isinstance(value, Skeleton):
        return value
    if not isinstance(value, str | dict):
        raise ValueError(f"skeleton is {short(value)}; it takes the name of a skeleton, or all of one")
    try:
        return _known_skeleton(json.dumps(value))
    except (KeyError, OSError) as error:
        raise ValueError(str(error)) from None


@lru_cache(maxsize=64)
def _known_skeleton(text: str) -> Skeleton:
    """It comes with every answer, and is always the same."""
    value = json.loads(text)
    return named_skeleton(value) if isinstance(value, str) else Skeleton.from_dict(value)


def _points_from_json(value: object, bones: Skeleton) -> npt.NDArray[np.float64]:
    """(subjects, landmarks, 2 or 3), NaN where a landmark is absent, also where that is said of its coordinates."""
    form = "landmarks [x, y] or [x, y, visibility] in pixels, null where one is absent"
    count = len(bones.landmarks)
    subjects: list[list[list[object] | None]] = []
    for number, subject in enumerate(_subjects(as_list(value, "points", "subjects, each a list of landmarks"), count)):
        landmarks = as_list(subject, f"subject {number} of points", "landmarks, each [x, y] or null")
        if len(landmarks) != count:
            raise ValueError(f"subject {number} of points has {len(landmarks)} landmarks; {bones.name} has {count}")
        subjects.append([_landmark(one, form) for one in landmarks])
    present = [landmark for subject in subjects for landmark in subject if landmark is not None]
    wide = 3 if present and all(len(landmark) == 3 for landmark in present) else 2
    absent = np.array([[one is None for one in subject] for subject in subjects], bool).reshape(-1, count)
    filled = [[[0] * wide if one is None else one for one in subject] for subject in subjects]
    points = as_numbers(filled, "points", (len(subjects), count, wide), form)
    points[absent] = np.nan
    return points


def _subjects(points: list[object], count: int) -> list[object]:
    """A list of subjects; one subject may stand for itself, without a list around it."""
    if depth(points) != 2:
        return points
    rows = [row for row in points if isinstance(row, list)]
    all_absent = all(value is None for row in rows for value in row) and all(len(row) == count for row in rows)
    return points if all_absent else [points]


def _landmark(value: object, form: str) -> list[object] | None:
    landmark = None if value is None else as_list(value, "a landmark of points", form)
    return None if landmark is None or None in landmark else landmark


@dataclass(frozen=True, slots=True, eq=False)
class PoseBatch:
    """The poses of many rows at once: subjects of all rows one after another.

    Row r owns subjects `offsets[r]` to `offsets[r + 1]`.
    """

    points: Floats
    visibility: Floats
    scores: Floats
    offsets: npt.NDArray[np.int64]

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, landmarks: int) -> PoseBatch:
        def flat(name: str) -> Floats:
            column = frame[name]
            full = column.filter(column.list.len() > 0).explode()  # an exploded empty list would be a null
            return full.to_numpy().astype(np.float32, copy=False)

        counts = frame["scores"].list.len().fill_null(0).to_numpy().astype(np.int64)
        return cls(
            flat("points").reshape(-1, landmarks, 2),
            flat("visibility").reshape(-1, landmarks),
            flat("scores"),
            np.concatenate([[0], np.cumsum(counts)]),
        )

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)


OUTPUT = Poses
