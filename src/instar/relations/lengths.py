"""Body lengths: what distances between landmarks are divided by, so that near and far subjects compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.skeleton import Length, Part, Skeleton
from instar.spelling import Parameter

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BOX_SHARE = 0.25
"""Of the diagonal of the box around a part: a trunk is about that of a person, so that one who points at the camera, or
of whom only some landmarks are there, is measured by about the same."""
FRAME_SHARE = 0.01
"""Of the image's diagonal: landmarks that all lie in one place have a length too, and are judged."""

# fmt: off
NORMALISER = Parameter(
    "normaliser", "choice", "body", choices=("body", "part", "box", "image", "pixels"),
    help="what one body length is: the longest of the skeleton's lengths and spans (body), the first of its lengths "
         "that is there (part, as published: shoulders), the diagonal of the box or of the image, or a pixel",
)
# fmt: on
UNITS = {
    "part": "lengths of the part",
    "box": "diagonals of the box",
    "image": "diagonals of the image",
    "pixels": "pixels",
}
"""What severities are measured in where that is no length of a body, by normaliser."""


def unit_under(options: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    """Return the unit of severities, such as shoulder widths; None for body lengths."""
    normaliser = options.get("normaliser", "")
    if normaliser == "part" and "skeleton" in header:
        bones = Skeleton.from_dict(header["skeleton"])
        names = {_width(part, bones) for part, _ in bones.select(options.get("landmarks") or bones.default)}
        return names.pop() if len(names) == 1 else UNITS["part"]
    return UNITS.get(normaliser)


def _width(part: Part, bones: Skeleton) -> str:
    """Name a part's first length if it leads from the left to the right of the same landmark."""
    ends = [[bones.landmarks[i] for i in end] for end in part.lengths[0]] if part.lengths else []
    match ends:
        case [[one], [other]] if {one.partition("_")[0], other.partition("_")[0]} == {"left", "right"}:
            name = one.partition("_")[2]
            return f"{name} widths" if name == other.partition("_")[2] else UNITS["part"]
    return UNITS["part"]


def body_length(
    points: npt.NDArray[np.float32],
    subjects: Ints,
    scale: Floats,
    part: Part,
    bones: Skeleton,
    normaliser: str,
    frames: Floats,
) -> Floats:
    """What one body length is for each of some subjects. NaN where it has none, which only `part` and `box` know.

    `body` is the longest of the part's lengths and spans; where none of them is there, its longest edge; and at least a
    share of its box and of the image. It stays about the same when a person turns or a shoulder is missing.
    """

    def landmarks(indices: tuple[int, ...], some: Ints = subjects, by: Floats = scale) -> Floats:
        return np.asarray(points[some[:, None], indices].astype(np.float64) / by[:, None])

    def far(length: Length, some: Ints = subjects, by: Floats = scale) -> Floats:
        one, other = length
        gap = landmarks(one, some, by).mean(1) - landmarks(other, some, by).mean(1)
        return np.asarray(np.hypot(gap[:, 0], gap[:, 1]))

    if normaliser == "pixels":
        return np.ones(len(subjects))
    if normaliser == "image":
        return np.asarray(np.linalg.norm(frames, axis=-1))
    if normaliser == "part":
        length = np.full(len(subjects), np.nan)
        for one in part.lengths:
            length = np.where(np.isnan(length), far(one), length)
        return _known(length)
    box = diagonals(landmarks(part.landmarks))
    if normaliser == "box":
        return _known(box)
    length = _longest((far(one) for one in (*part.lengths, *part.spans)), len(subjects))
    bare = np.flatnonzero(np.isnan(length))
    if len(bare):
        edges = [((a,), (b,)) for a, b in bones.edges if {a, b} <= set(part.landmarks)]
        length[bare] = _longest((far(one, subjects[bare], scale[bare]) for one in edges), len(bare))
    floor = np.fmax(BOX_SHARE * box, FRAME_SHARE * np.linalg.norm(frames, axis=-1))
    return np.asarray(np.fmax(length, floor))


def diagonals(points: Floats) -> Floats:
    """Of the boxes around the landmarks of subjects (subjects, landmarks, 2) that are there; NaN where none is."""
    across = np.ascontiguousarray(points.T)  # over many subjects at a time, four times as fast
    x, y = np.fmax.reduce(across, 1) - np.fmin.reduce(across, 1)
    return np.asarray(np.hypot(x, y))


def _longest(lengths: Iterable[Floats], count: int) -> Floats:
    """The longest of some lengths that are there (each one per subject); NaN where none is."""
    longest = np.full(count, np.nan)
    for length in lengths:
        longest = np.fmax(longest, length)
    return longest


def _known(length: Floats) -> Floats:
    return np.where((length > 0) & np.isfinite(length), length, np.nan)
