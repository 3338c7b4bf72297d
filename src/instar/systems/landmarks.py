"""Landmark models in ONNX files: they take a picture that one subject fills, and say where its landmarks are."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs.poses import Poses
from instar.skeleton import skeleton as skeleton_of
from instar.spelling import Parameter
from instar.systems.boxes import Fit, fitted
from instar.systems.onnx import Layout, Network, frame_of
from instar.systems.system import System, SystemFamily, fingerprint_of, one_by_one
from instar.warp import Size, Warp

_ADAPTER = "1"
"""Part of the fingerprint; changes when the adapter's answers do."""

Cells = Literal["centre", "corner", "ends"]
Peak = Literal["quarter", "soft"]
Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Shape = tuple[int, ...]

_PLAIN = Layout("middle", pad=0)
_FURTHEST = 4.0
"""Shares further out than so many sides are no shares. A landmark of a hand that is cut off lies a little outside."""


# --- out of the network ----------------------------------------------------------------------------


def _fits(shape: Shape, count: int) -> bool:
    points = {(1, count, 2), (1, count, 3), (1, 2 * count), (1, 3 * count)}
    return shape in points or _maps_at(shape, count) is not None


def _maps_at(shape: Shape, count: int) -> int | None:
    """Along which axis heat maps of so many landmarks lie, one of the background after them or not; None for others."""
    axes = {4: (1, 3), 5: (2,)}.get(len(shape), ())
    at = next((axis for axis in axes if shape[axis] in (count, count + 1)), None)
    cells = [n for axis, n in enumerate(shape[-3:], len(shape) - 3) if axis != at]
    return at if shape[:1] == (1,) and min(cells, default=0) > 1 else None


def _maps(output: Floats32, count: int, axis: int) -> Floats32:
    """(landmarks, h, w): of a network of several stages those of the last."""
    maps: Floats32 = output[0, -1] if output.ndim == 5 else np.moveaxis(output[0], axis - 1, 0)
    return maps[:count]


def peaks(maps: Floats32, how: Peak) -> tuple[Floats, Floats]:
    """Where heat maps (landmarks, h, w) have their peak, as x, y in cells (landmarks, 2), and how high it is.

    The middle of the first cell is (0.5, 0.5). `quarter` takes the hottest cell, and goes a quarter of a cell towards
    the hotter one of its neighbours on both axes, not at the edge. `soft` takes the mean place under the softmax of
    the map.
    """
    count, height, width = maps.shape
    flat = maps.reshape(count, -1).astype(np.float64)
    if how == "soft":
        weights = np.exp(flat - flat.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        rows, columns = np.divmod(np.arange(height * width), width)
        return np.stack([weights @ columns, weights @ rows], 1) + 0.5, np.ones(count)
    row, column = np.divmod(flat.argmax(1), width)
    each, around = np.arange(count), np.pad(maps, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    right = np.sign(around[each, row + 1, column + 2] - around[each, row + 1, column])
    down = np.sign(around[each, row + 2, column + 1] - around[each, row, column + 1])
    return np.stack([column + right / 4, row + down / 4], 1) + 0.5, flat.max(1)


def cells_onto(cells: Cells, size: Size, frame: Size) -> Warp:
    """The map from heat maps of this size to the frame, by what the network was taught that a cell stands for.

    >>> [cells_onto(cells, (64, 64), (256, 256)).points([[0.5, 0.5]])[0, 0].item() for cells in ("centre", "corner")]
    [2.0, 0.5]
    """
    if cells == "centre":
        return Warp.resize(size, frame)
    x, y = [to / of if cells == "corner" else (to - 1) / (of - 1) for of, to in zip(size, frame, strict=True)]
    return Warp(np.array([[x, 0, 0.5 - x / 2], [0, y, 0.5 - y / 2], [0, 0, 1]]), size, frame)


def _coordinates(output: Floats32, count: int, frame: Size | None) -> Floats:
    """Points in pixels of the frame; where there is none, the output has them in pixels already."""
    points = output.reshape(count, -1)[:, :2].astype(np.float64)
    if frame is None:
        return points
    if (furthest := np.abs(points).max()) > _FURTHEST:
        raise ValueError(
            f"the model returned a coordinate of {furthest:.4g}, which is no share of the side; say unit=pixels"
        )
    return points * np.array(frame, np.float64)


# --- the system ------------------------------------------------------------------------------------


def _onnx_landmarks(
    name: str,
    *,
    model: str,
    skeleton: str,
    output: str | None,
    unit: str,
    peak: Peak,
    cells: Cells,
    fit: Fit,
    bgr: bool,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    size: int | None,
) -> System:
    path = Path(model).expanduser()
    bones = skeleton_of(skeleton)
    count = len(bones.landmarks)
    network = Network(path, name, "a landmark model")
    layout = Layout(fit, bgr, mean, std, pad=0)
    if network.bytes and (mean, std) != (_PLAIN.mean, _PLAIN.std):
        raise ValueError(f"{name}: {path} takes colours of 0 to 255 as they are; leave out mean and std")
    frame = frame_of(network, size, name, path)
    if frame is None:
        raise ValueError(f"{name}: {path} takes images of any size; say the one it was trained on, e.g. size=256")
    number = _settled(name, path, network, layout, frame, count, bones.name, output)

    def one(image: Image) -> Poses:
        pixels, warp = fitted(image, frame, layout.fit, layout.pad)
        output = network(pixels, layout)[number]
        axis = _maps_at(output.shape, count)
        if axis is None:
            points = _coordinates(output, count, None if unit == "pixels" else frame)
            return Poses.from_array(warp.inverse.points(points), skeleton=bones)
        maps = _maps(output, count, axis)
        places, heights = peaks(maps, peak)
        places[heights <= 0] = np.nan  # a map without any heat says nothing
        points = cells_onto(cells, (maps.shape[2], maps.shape[1]), frame).points(places)
        seen = heights.clip(0, 1)
        return Poses.from_array(
            warp.inverse.points(points), skeleton=bones, visibility=seen[None], scores=[seen.mean()]
        )

    configuration = (bones.to_dict(), network.outputs[number], unit, peak, cells, layout, frame)
    fingerprint = fingerprint_of("onnx-landmarks", _ADAPTER, *configuration, *network.weights)
    return System(name, Poses.kind, one_by_one(one), fingerprint)


def _settled(
    name: str, path: Path, network: Network, layout: Layout, frame: Size, count: int, bones: str, output: str | None
) -> int:
    """Which output holds the landmarks, by the shapes of its answer to an evenly grey image."""
    if output is not None and output not in network.outputs:
        raise ValueError(f"{name}: {path} has no output {output!r}; there are: {', '.join(network.outputs)}")
    outputs = network.of_grey(frame, layout, name, path)
    fitting = [
        number
        for number, each in enumerate(outputs)
        if _fits(each.shape, count) and output in (None, network.outputs[number])
    ]
    if len(fitting) == 1:
        return fitting[0]
    returns = ", ".join(f"{each} {part.shape}" for each, part in zip(network.outputs, outputs, strict=True))
    if fitting:
        raise ValueError(
            f"{name}: several outputs of {path} could be the landmarks: {returns}; say which, e.g. "
            f"output={network.outputs[fitting[-1]]}"
        )
    raise ValueError(
        f"{name}: {path} returns {returns}; for the {count} landmarks of {bones} that should be heat maps "
        f"(1, {count}, h, w), or with one of the background (1, {count + 1}, h, w), or of several stages "
        f"(1, stages, {count}, h, w), or coordinates (1, {count}, 2) or (1, {2 * count})"
    )


# fmt: off
FAMILIES = (
    SystemFamily("onnx-landmarks", Poses.kind, _onnx_landmarks, (
        Parameter("model", "text", help="the .onnx file"),
        Parameter("skeleton", "text", "hand-21", help="its landmarks in its order: a skeleton's name or a .toml file"),
        Parameter("output", "text", None, help="the name of the output that holds them, where several could"),
        Parameter("unit", "choice", "share", choices=("share", "pixels"),
                  help="of coordinates: shares of the frame's sides, or pixels of it, from the top-left corner"),
        Parameter("peak", "choice", "quarter", choices=("quarter", "soft"),
                  help="of heat maps: the hottest cell and a quarter of one towards the hotter neighbours, or the "
                       "mean under the softmax"),
        Parameter("cells", "choice", "centre", choices=("centre", "corner", "ends"),
                  help="what cell 0 of a heat map stands for: its own middle, the first pixel, or the first pixel "
                       "with the last cell for the last pixel"),
        Parameter("fit", "choice", "middle", choices=("middle", "stretch"),
                  help="the image lies in the middle of the frame, the rest black, or fills it"),
        Parameter("bgr", "bool", False, help="whether it takes blue first"),
        Parameter("mean", "floats", _PLAIN.mean, length=3, help="taken off the colours of 0 to 255"),
        Parameter("std", "floats", _PLAIN.std, length=3, low=0, open_low=True,
                  help="what they are then divided by; 255 makes them 0 to 1"),
        Parameter("size", "int", None, low=32, high=4096,
                  help="side of the square it takes, where its file does not tell"),
    ), help="A landmark model in an ONNX file, for pictures that one hand or person fills.", extra="onnx"),
)
# fmt: on
