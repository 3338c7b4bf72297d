"""Warp: where every point of the source went. The only geometry in the project.

Coordinates are continuous pixels: the origin is the top-left *corner* of the frame, x runs right, y down,
the centre of pixel (row i, column j) is (j + 0.5, i + 0.5), and the frame is [0, W] × [0, H]. OpenCV puts
pixel centres at integers; the half-pixel between the two lives in `warp_pixels` and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import cv2
import numpy as np
import numpy.typing as npt

Size = tuple[int, int]
"""(width, height) in pixels."""

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[Any]
Resampling = Literal["linear", "area", "nearest"]
_CV = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA, "nearest": cv2.INTER_NEAREST_EXACT}


@dataclass(frozen=True, slots=True, eq=False)
class Warp:
    """A projective map from a source frame to a target frame.

    >>> Warp.mirror((640, 480), "h").points([[10.0, 20.0]])
    array([[630.,  20.]])
    """

    matrix: Floats
    source: Size
    target: Size

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
            raise ValueError(f"a warp is a finite 3×3 matrix, got shape {matrix.shape}")
        if min(*self.source, *self.target) < 1:
            raise ValueError(f"sizes must be at least 1×1, got {self.source} and {self.target}")
        if abs(_determinant(*matrix.tolist())) < 1e-12:
            raise ValueError("a warp must be invertible, this matrix is singular")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Warp)
            and self.source == other.source
            and self.target == other.target
            and np.array_equal(self.matrix, other.matrix)
        )

    def __hash__(self) -> int:
        return hash((self.matrix.tobytes(), self.source, self.target))

    # -- the maps there are

    @staticmethod
    def identity(size: Size) -> Warp:
        return _identity(size)

    @classmethod
    def mirror(cls, size: Size, axis: Literal["h", "v", "both"]) -> Warp:
        """`h` exchanges left and right, `v` top and bottom, `both` is half a turn."""
        width, height = size
        matrix = np.eye(3)
        if axis in ("h", "both"):
            matrix[0] = [-1, 0, width]
        if axis in ("v", "both"):
            matrix[1] = [0, -1, height]
        return cls(matrix, size, size)

    @classmethod
    def rotation(cls, size: Size, degrees: float, centre: tuple[float, float] | None = None) -> Warp:
        """Counter-clockwise as seen, in the same frame, about `centre` in pixels (the middle by default)."""
        cx, cy = centre if centre is not None else (size[0] / 2, size[1] / 2)
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        return cls(np.array([[c, s, cx - c * cx - s * cy], [-s, c, cy + s * cx - c * cy], [0, 0, 1]]), size, size)

    @classmethod
    def rotate90(cls, size: Size, quarters: int) -> Warp:
        """Quarter turns, counter-clockwise as seen; the frame turns too."""
        width, height = size
        matrix, target = {
            0: ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], (width, height)),
            1: ([[0, 1, 0], [-1, 0, width], [0, 0, 1]], (height, width)),
            2: ([[-1, 0, width], [0, -1, height], [0, 0, 1]], (width, height)),
            3: ([[0, -1, height], [1, 0, 0], [0, 0, 1]], (height, width)),
        }[quarters % 4]
        return cls(np.array(matrix, dtype=np.float64), size, target)

    @classmethod
    def resize(cls, size: Size, target: Size) -> Warp:
        """The whole frame onto another whole frame."""
        return cls(np.diag([target[0] / size[0], target[1] / size[1], 1.0]), size, target)

    @classmethod
    def scale(cls, size: Size, x: float, y: float) -> Warp:
        """Resize by factors; the target is whole pixels, and the map is exact for that target."""
        return cls.resize(size, (max(1, round(size[0] * x)), max(1, round(size[1] * y))))

    @classmethod
    def shear(cls, size: Size, x: float, y: float) -> Warp:
        """x += `x`·y and y += `y`·x about the middle, in the same frame."""
        cx, cy = size[0] / 2, size[1] / 2
        return cls(np.array([[1, x, -x * cy], [y, 1, -y * cx], [0, 0, 1]], dtype=np.float64), size, size)

    # -- algebra

    def then(self, after: Warp) -> Warp:
        """This warp followed by another."""
        if self.target != after.source:
            raise ValueError(f"this warp ends at {self.target}, the next starts at {after.source}")
        return Warp(after.matrix @ self.matrix, self.source, after.target)

    @property
    def inverse(self) -> Warp:
        return Warp(np.asarray(np.linalg.inv(self.matrix), np.float64), self.target, self.source)

    @property
    def mirrors(self) -> bool:
        """Whether left and right change places: the determinant alone decides."""
        return bool(np.linalg.det(self.matrix) < 0)

    @property
    def is_identity(self) -> bool:
        if self.source != self.target:
            return False
        plain = _identity(self.source)
        return self is plain or self.matrix.tobytes() == plain.matrix.tobytes()

    # -- what can be carried

    def points(self, xy: npt.ArrayLike) -> Floats:
        """Points (…, 2) of the source frame in the target frame. NaN stays NaN."""
        points = np.asarray(xy, dtype=np.float64)
        moved = points @ self.matrix[:2, :2].T + self.matrix[:2, 2]
        if not np.array_equal(self.matrix[2], (0.0, 0.0, 1.0)):
            moved /= points @ self.matrix[2, :2, None] + self.matrix[2, 2]
        return np.asarray(moved, dtype=np.float64)

    def boxes(self, xyxy: npt.ArrayLike) -> Floats:
        """Boxes (…, 4) as the axis-parallel boxes around their four moved corners."""
        box = np.asarray(xyxy, dtype=np.float64)
        corners = self.points(np.stack([box[..., [0, 1]], box[..., [2, 1]], box[..., [2, 3]], box[..., [0, 3]]], -2))
        return np.concatenate([corners.min(-2), corners.max(-2)], -1)


def _determinant(first: Sequence[float], second: Sequence[float], third: Sequence[float]) -> float:
    """Of three rows: many warps are made of each prediction, and numpy takes ten times as long over nine numbers."""
    (a, b, c), (d, e, f), (g, h, i) = first, second, third
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


@lru_cache(maxsize=1024)
def _identity(size: Size) -> Warp:
    """Most follow-ups stay where they were: one immutable warp per size serves them all."""
    return Warp(np.eye(3), size, size)


def inside(xy: npt.ArrayLike, size: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which points (…, 2) lie in the frame [0, W] × [0, H]; NaN does not. `size` may be (…, 2) too."""
    points, limits = np.asarray(xy), np.asarray(size)
    x, y = points[..., 0], points[..., 1]
    # each for itself: to reduce over two takes longer than all else that judging does with a point
    return np.asarray((x >= 0) & (x <= limits[..., 0]) & (y >= 0) & (y <= limits[..., 1]))


def mask_at(mask: npt.NDArray[np.bool_], xy: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether points (…, 2) lie in cells of a mask (H, W); outside the frame they do not."""
    points, (height, width) = np.asarray(xy), mask.shape
    column, line = np.floor(points[..., 0]).astype(np.int64), np.floor(points[..., 1]).astype(np.int64)
    there = (column >= 0) & (column < width) & (line >= 0) & (line < height)
    return np.asarray(mask[line.clip(0, height - 1), column.clip(0, width - 1)] & there)


def crossing(mask: npt.NDArray[np.bool_], paths: npt.ArrayLike, apart: float) -> npt.NDArray[np.bool_]:
    """Which paths (…, T, 2) cross a cell of the mask, looked at every `apart` pixels and at their last point."""
    points = np.asarray(paths, np.float64)
    step = np.diff(points, axis=-2)
    longest = float(np.linalg.norm(step, axis=-1).max(initial=0.0))
    parts = np.linspace(0, 1, max(2, min(4096, math.ceil(longest / apart) + 1)))
    places = points[..., :-1, None, :] + step[..., None, :] * parts[:, None]
    return np.asarray(mask_at(mask, places).any((-2, -1)) | mask_at(mask, points[..., -1, :]))


def boxes_iou(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Intersection over union of every box of `a` (N, 4) with every box of `b` (M, 4)."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    overlap = np.ones((len(first), len(second)))
    for low, high in ((0, 2), (1, 3)):  # one side after the other: of thousands of boxes both are a lot of memory
        ends = np.minimum(first[:, None, high], second[None, :, high])
        overlap *= np.clip(ends - np.maximum(first[:, None, low], second[None, :, low]), 0, None)
    areas = [np.prod(np.clip(x[:, 2:] - x[:, :2], 0, None), -1) for x in (first, second)]
    union = areas[0][:, None] + areas[1][None] - overlap
    return np.asarray(np.divide(overlap, union, out=np.zeros_like(union), where=union > 0))


def warp_pixels(pixels: Cells, warp: Warp, resampling: Resampling = "linear") -> Cells:
    """The picture (H, W) or (H, W, C) carried by a warp; what comes from outside the source is 0.

    Flips and quarter turns are exact copies, whole-frame scalings use the resampling asked for, and
    everything else is bilinear (or nearest for class maps).
    """
    height, width = pixels.shape[:2]
    if (width, height) != warp.source:
        raise ValueError(f"the picture is {width}×{height}, the warp starts at {warp.source[0]}×{warp.source[1]}")
    turned = _exact_turn(pixels, warp)
    if turned is not None:
        return turned
    centred = _centred(warp)
    if centred is None:
        return np.asarray(cv2.resize(pixels, warp.target, interpolation=_CV[resampling]))
    flags = cv2.INTER_NEAREST if resampling == "nearest" else cv2.INTER_LINEAR
    if len(centred) == 2:
        return np.asarray(cv2.warpAffine(pixels, centred, warp.target, flags=flags))
    return np.asarray(cv2.warpPerspective(pixels, centred, warp.target, flags=flags))


@lru_cache(maxsize=1024)
def _centred(warp: Warp) -> Floats | None:
    """The matrix between pixels' centres, as OpenCV has it: two rows of an affine warp, three of another; None where
    the whole frame is scaled. Images of a dataset are mostly of one size, and finding out takes as long as scaling."""
    matrix = warp.matrix
    whole = np.diag([warp.target[0] / warp.source[0], warp.target[1] / warp.source[1], 1.0])
    if np.allclose(matrix, whole, rtol=1e-12, atol=1e-12):
        return None
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    centred = np.asarray(np.linalg.inv(half) @ matrix @ half, np.float64)
    return centred[:2] if np.array_equal(matrix[2], (0.0, 0.0, 1.0)) else centred


def _exact_turn(pixels: Cells, warp: Warp) -> Cells | None:
    """The eight flips and quarter turns of a frame, without resampling; None for any other warp."""
    turn = _turn(warp)
    if turn is None:
        return None
    transposed, flip = turn
    out = cv2.transpose(pixels) if transposed else pixels
    # OpenCV flips 50 times faster than numpy copies a reversed view of an interleaved picture
    return np.asarray(out if flip is None else cv2.flip(out, flip))


@lru_cache(maxsize=1024)
def _turn(warp: Warp) -> tuple[bool, int | None] | None:
    """Whether a flip or quarter turn of the frame exchanges its sides, and OpenCV's number of how it flips then."""
    width, height = warp.source
    linear = warp.matrix[:2, :2]
    if not np.array_equal(np.abs(linear), np.eye(2)) and not np.array_equal(np.abs(linear), np.eye(2)[::-1]):
        return None
    frame = warp.boxes([0, 0, width, height])
    if not np.array_equal(frame, [0, 0, *warp.target]) or not np.array_equal(warp.matrix[2], (0, 0, 1)):
        return None
    x_sign, y_sign = linear.sum(1)
    flip = {(True, True): -1, (True, False): 1, (False, True): 0}.get((bool(x_sign < 0), bool(y_sign < 0)))
    return bool(linear[0, 0] == 0), flip


def carried_mass(cells: Cells, warp: Warp) -> Floats:
    """What lies in cells (h, w), spread evenly over each, carried into the cells of the target; nothing is lost inside.

    Flips and quarter turns are exact copies; other warps along the axes divide every cell among those it falls
    into, exactly. The rest are bilinear.

    >>> carried_mass(np.ones((2, 4)), Warp.resize((4, 2), (2, 1)))
    array([[4., 4.]])
    """
    mass = np.asarray(cells, np.float64)
    matrix = np.where(np.abs(warp.matrix - np.rint(warp.matrix)) < 1e-9, np.rint(warp.matrix), warp.matrix)
    turned = _exact_turn(mass, Warp(matrix, warp.source, warp.target))
    if turned is not None:
        return np.asarray(turned, np.float64)
    if not np.array_equal(matrix[2], (0.0, 0.0, 1.0)) or (matrix[0, 0] != 0 and (matrix[0, 1] or matrix[1, 0])):
        density = warp_pixels(mass.astype(np.float32), warp, "linear")
        return np.asarray(density, np.float64) / abs(float(np.linalg.det(warp.matrix[:2, :2])))
    if matrix[0, 0] == 0:  # a quarter turn beside the scaling
        mass, matrix = mass.T, matrix @ np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    across = _divided(mass, matrix[0, 0], matrix[0, 2], warp.target[0])
    return np.ascontiguousarray(_divided(across.T, matrix[1, 1], matrix[1, 2], warp.target[1]).T)


def _divided(mass: Floats, scale: float, shift: float, count: int) -> Floats:
    """Rows of cells (n, w) carried along x to `scale`·x + `shift`, into `count` cells."""
    width = mass.shape[1]
    below = np.concatenate([np.zeros((len(mass), 1)), np.cumsum(mass, 1)], 1)
    edges = np.clip((np.arange(count + 1) - shift) / scale, 0, width)
    cell = np.minimum(edges.astype(np.int64), width - 1)
    part = below[:, cell] + (edges - cell) * mass[:, cell]
    return np.asarray(np.abs(np.diff(part, axis=1)))
