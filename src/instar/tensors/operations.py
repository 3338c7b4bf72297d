"""Operations: what families do to pixels, as data, so that many follow-ups of one image are made by one launch.

A family names the function here that makes its operation of its values (`TransformationFamily.device`). Operations of
one `group` are made together: `made(source, operations, zones)` takes uint8 (N, H, W, 3) and gives (N, H', W', 3) for
each of them, the source outside of its zone. Tables, kernels and sampling are OpenCV's, to a grey level.

What operations need on the device is sent once, for every image that the same rules change: making a follow-up takes
less time than sending its table.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from instar.levels import brightness_table, channel_table, contrast_table, gamma_table, motion_kernel, noise_table
from instar.tensors import plain
from instar.tensors.plain import Size, State, Taps, Target, Zones, on

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]


class Operation:
    """What is done to pixels. Operations of equal `group` have one `made`: those of a class, unless it says more."""

    __slots__ = ()

    @property
    def group(self) -> Hashable:
        return (type(self),)

    @staticmethod
    def made(source: Tensor, operations: tuple[Any, ...], zones: Zones) -> Iterable[Tensor]:
        raise NotImplementedError


def together(source: Tensor, operations: Sequence[Operation], masks: Sequence[Tensor | None]) -> list[Tensor]:
    """What every operation makes of the source where its mask is not 0: those of a group by one launch.

    They are put into an order, so that those of another case, asked in another order, find what was sent for these.
    """
    order = sorted(range(len(operations)), key=lambda number: id(operations[number]))
    groups: dict[Hashable, list[int]] = {}
    for number in order:
        groups.setdefault(operations[number].group, []).append(number)
    zones = _zones(masks, order, source.device)
    made: dict[int, Tensor] = {}
    with torch.cuda.device(source.device) if source.is_cuda else nullcontext():  # kernels start on the current one
        for numbers in groups.values():
            alike = tuple(operations[number] for number in numbers)
            made.update(zip(numbers, alike[0].made(source, alike, zones.only(numbers)), strict=True))
    return [made[number] for number in range(len(operations))]


def _zones(masks: Sequence[Tensor | None], order: Sequence[int], device: torch.device) -> Zones:
    """The different masks, one below the other and padded to whole words."""
    different: dict[int, tuple[int, Tensor]] = {}
    for number in order:
        mask = masks[number]
        if mask is not None:
            different.setdefault(id(mask), (len(different), mask))
    if not different:
        return Zones.everywhere(len(masks))
    rows = [mask.reshape(-1) for _, mask in different.values()]
    cells = torch.nn.functional.pad(torch.stack(rows), (0, -len(rows[0]) % 4))
    return Zones(cells, tuple(-1 if mask is None else different[id(mask)][0] for mask in masks))


class Way(Protocol):
    """How operations are done: `plain` or, on CUDA, `launches`."""

    def looked_up(self, source: Tensor, tables: Tensor, order: tuple[int, int, int], zones: Zones, /) -> Tensor: ...
    def mixed(
        self, source: Tensor, matrices: Tensor, shift: int, tables: Tensor | None, grey: bool, zones: Zones, /
    ) -> Tensor: ...
    def hue_turned(self, source: Tensor, turns: Tensor, zones: Zones, /) -> Tensor: ...
    def filtered(self, source: Tensor, taps: Taps, /) -> Tensor: ...
    def smoothed(self, source: Tensor, kernel: Tensor, /) -> Tensor: ...
    def bilateral(self, source: Tensor, scales: Tensor, radius: int, /) -> Tensor: ...
    def placed(self, source: Tensor, matrices: Tensor, size: Size, /) -> Tensor: ...
    def resampled(self, source: Tensor, targets: tuple[Target, ...], /) -> list[Tensor]: ...
    def projected(self, source: Tensor, inverses: Tensor, size: Size, /) -> Tensor: ...
    def noisy(self, source: Tensor, tables: Tensor, states: Sequence[State], /) -> Tensor: ...


@cache
def _on_cuda() -> ModuleType:
    """Triton's kernels, where Triton is installed: it comes with PyTorch for CUDA, but on Windows."""
    if find_spec("triton") is None:
        return plain
    from instar.tensors import launches

    return launches


def _way(source: Tensor) -> Way:
    return cast(Way, _on_cuda() if source.is_cuda else plain)


# --- pixel by pixel ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LookUp(Operation):
    """Each channel by a table (256, 3), the channels taken in an order."""

    table: Bytes
    order: tuple[int, int, int] = (0, 1, 2)

    @property
    def group(self) -> Hashable:
        return LookUp, self.order

    @staticmethod
    def made(source: Tensor, operations: tuple[LookUp, ...], zones: Zones) -> Tensor:
        return _way(source).looked_up(source, _tables(operations, source.device), operations[0].order, zones)


@dataclass(frozen=True, slots=True, eq=False)
class Mix(Operation):
    """Channels mixed in whole numbers, (3, 3) in 2^-`shift`, and looked up in a table (256, 3) or taken as they are."""

    matrix: npt.NDArray[np.int32]
    shift: int
    table: Bytes | None
    grey: bool

    @property
    def group(self) -> Hashable:
        return Mix, self.shift, self.table is None, self.grey

    @staticmethod
    def made(source: Tensor, operations: tuple[Mix, ...], zones: Zones) -> Tensor:
        first, matrices = operations[0], _matrices(operations, source.device)
        tables = None if first.table is None else _tables(operations, source.device)
        return _way(source).mixed(source, matrices, first.shift, tables, first.grey, zones)


@lru_cache(maxsize=256)
def _tables(operations: tuple[LookUp | Mix, ...], device: torch.device) -> Tensor:
    return on(np.stack([each.table for each in operations if each.table is not None]), device)


@lru_cache(maxsize=256)
def _matrices(operations: tuple[Mix, ...], device: torch.device) -> Tensor:
    return on(np.stack([each.matrix for each in operations]), device)


@dataclass(frozen=True, slots=True, eq=False)
class TurnHue(Operation):
    degrees: float

    @staticmethod
    def made(source: Tensor, operations: tuple[TurnHue, ...], zones: Zones) -> Tensor:
        sixths = tuple(each.degrees % 360 / 60 for each in operations)
        return _way(source).hue_turned(source, _floats(sixths, source.device), zones)


@lru_cache(maxsize=256)
def _floats(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    return on(np.array(numbers, np.float32), device)


@dataclass(frozen=True, slots=True, eq=False)
class Noise(Operation):
    """A quantile of the normal distribution added to every value, chosen by 16 bits of numpy's generator."""

    sigma: float
    state: State

    @staticmethod
    def made(source: Tensor, operations: tuple[Noise, ...], zones: Zones) -> Tensor:
        tables = _noise_tables(tuple(each.sigma for each in operations), source.device)
        return zones.within(source, _way(source).noisy(source, tables, [each.state for each in operations]))


@lru_cache(maxsize=32)
def _noise_tables(sigmas: tuple[float, ...], device: torch.device) -> Tensor:
    return on(np.stack([noise_table(sigma) for sigma in sigmas]), device)


def _three(values: npt.ArrayLike) -> Bytes:
    """A table of all three channels."""
    return np.repeat(np.asarray(values, np.uint8)[:, None], 3, 1)


def gamma(*, gamma: float) -> Operation:
    return LookUp(_three(gamma_table(gamma)))


def brightness(*, add: float, multiply: float, overflow: str) -> Operation:
    return LookUp(_three(brightness_table(add, multiply, overflow)))


def contrast(*, factor: float) -> Operation:
    return LookUp(_three(contrast_table(factor)))


def greyscale() -> Operation:
    return Mix(np.array([[9798, 19235, 3735]] * 3, np.int32), 15, None, True)


_XYZ = np.array([[1689, 1465, 739], [871, 2929, 296], [79, 488, 3892]], np.int32)
"""Of 4096ths, as OpenCV mixes 8-bit RGB."""


def colour_channels(*, factors: tuple[float, float, float], encoding: str, overflow: str) -> Operation:
    table = channel_table(factors, overflow)
    if encoding == "xyz":
        return Mix(_XYZ, 12, table, False)
    return LookUp(table, (2, 1, 0) if encoding == "bgr" else (0, 1, 2))


def colour_fill(*, colour: tuple[int, int, int]) -> Operation:
    return LookUp(np.repeat(np.array([colour], np.uint8), 256, 0))


def colour_wheel(*, degrees: float) -> Operation:
    return TurnHue(degrees)


def noise(rng: np.random.Generator, *, sigma: float) -> Operation:
    numbers = rng.bit_generator.state["state"]
    return Noise(sigma, (numbers["state"], numbers["inc"]))


# --- neighbours -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Operation):
    """Pixels weighted by a kernel, which is anchored as OpenCV anchors it."""

    kernel: Floats

    @staticmethod
    def made(source: Tensor, operations: tuple[Filter, ...], zones: Zones) -> Tensor:
        return zones.within(source, _way(source).filtered(source, _taps(operations, source.device)))


@lru_cache(maxsize=64)
def _taps(operations: tuple[Filter, ...], device: torch.device) -> Taps:
    """The entries of the kernels that count."""
    counts = np.array([np.count_nonzero(each.kernel) for each in operations], np.int32)
    places = np.zeros((len(operations), counts.max(), 2), np.int32)
    weights = np.zeros((len(operations), counts.max()), np.float32)
    for number, (each, count) in enumerate(zip(operations, counts, strict=True)):
        lines, columns = np.nonzero(each.kernel)
        high, wide = each.kernel.shape
        places[number, :count] = np.stack([lines - high // 2, columns - wide // 2], -1)
        weights[number, :count] = each.kernel[lines, columns]
    return Taps(on(counts, device), on(places, device), on(weights, device), int(np.abs(places).max()))


@dataclass(frozen=True, slots=True, eq=False)
class Smooth(Operation):
    sigma: float

    @property
    def group(self) -> Hashable:
        return Smooth, self.sigma

    @staticmethod
    def made(source: Tensor, operations: tuple[Smooth, ...], zones: Zones) -> Tensor:
        each = _way(source).smoothed(source, _gaussian(operations[0].sigma, source.device))
        return zones.within(source, each if len(operations) == 1 else each.repeat(len(operations), 1, 1, 1, 1))


@lru_cache(maxsize=64)
def _gaussian(sigma: float, device: torch.device) -> Tensor:
    """OpenCV's kernel for 8-bit images: 256ths, each rounded with what the ones before it left over."""
    count = round(sigma * 6 + 1) | 1
    places = np.arange(count) - count // 2
    weights = np.exp(-0.5 / sigma**2 * places**2)
    weights /= weights.sum()
    kernel = np.zeros(count, np.int32)
    rest = 0.0
    for place in range(count // 2):
        exact = float(weights[place]) * 256 + rest
        kernel[place] = kernel[-1 - place] = round(exact)
        rest = exact - round(exact)
    kernel[count // 2] = 256 - 2 * kernel[: count // 2].sum()
    return on(kernel, device)


@dataclass(frozen=True, slots=True, eq=False)
class Bilateral(Operation):
    strength: float
    size: int

    @property
    def group(self) -> Hashable:
        return Bilateral, self.radius

    @property
    def radius(self) -> int:
        return max(1, self.size // 2)

    @staticmethod
    def made(source: Tensor, operations: tuple[Bilateral, ...], zones: Zones) -> Tensor:
        scales = _floats(tuple(-0.5 / each.strength**2 / math.log(2) for each in operations), source.device)
        return zones.within(source, _way(source).bilateral(source, scales, operations[0].radius))


def motion(*, size: int, direction: float, kernel: str) -> Operation:
    return Filter(motion_kernel(size, direction, kernel))


def blur(*, sigma: float) -> Operation:
    return Smooth(sigma)


def bilateral(*, strength: float, size: int) -> Operation:
    return Bilateral(strength, size)


# --- other places -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Place(Operation):
    """Pixels copied: a flip, a turn by quarters or a move by whole pixels; (2, 3) says where each comes from."""

    matrix: npt.NDArray[np.int32]
    size: Size

    @property
    def group(self) -> Hashable:
        return Place, self.size

    @staticmethod
    def made(source: Tensor, operations: tuple[Place, ...], zones: Zones) -> Tensor:
        return _way(source).placed(source, _whole(operations, source.device), operations[0].size)


@dataclass(frozen=True, slots=True, eq=False)
class Resample(Operation):
    """The whole frame onto another whole frame, bilinear or by area."""

    size: Size
    area: bool

    @staticmethod
    def made(source: Tensor, operations: tuple[Resample, ...], zones: Zones) -> list[Tensor]:
        return _way(source).resampled(source, tuple((each.size, each.area) for each in operations))


@dataclass(frozen=True, slots=True, eq=False)
class Project(Operation):
    """Bilinear samples where a matrix (3, 3) says that pixels come from, with pixel centres at whole numbers."""

    inverse: Floats
    size: Size

    @property
    def group(self) -> Hashable:
        return Project, self.size

    @staticmethod
    def made(source: Tensor, operations: tuple[Project, ...], zones: Zones) -> Tensor:
        return _way(source).projected(source, _inverses(operations, source.device), operations[0].size)


@lru_cache(maxsize=256)
def _whole(operations: tuple[Place, ...], device: torch.device) -> Tensor:
    return on(np.stack([each.matrix for each in operations]), device)


@lru_cache(maxsize=256)
def _inverses(operations: tuple[Project, ...], device: torch.device) -> Tensor:
    return on(np.stack([each.inverse for each in operations]).astype(np.float32), device)


@lru_cache(maxsize=1024)
def warp(matrix: bytes, source: Size, target: Size, area: bool) -> Operation:
    """As `instar.warp.warp_pixels`: copies where they are exact, a scaling of the frame, else bilinear samples.

    `matrix` are the nine numbers of the warp.
    """
    forth = np.frombuffer(matrix).reshape(3, 3)
    if np.allclose(forth, np.diag([target[0] / source[0], target[1] / source[1], 1.0]), rtol=1e-12, atol=1e-12):
        if source != target:
            return Resample(target, area)
        forth = np.eye(3)
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    back = np.linalg.inv(half) @ np.linalg.inv(forth) @ half
    near = np.rint(back)
    right_angled = np.array_equal(np.abs(forth[:2, :2]).sum(0), (1, 1)) and np.array_equal(forth, np.rint(forth))
    if right_angled and np.array_equal(forth[2], (0, 0, 1)):
        return Place(near[:2].astype(np.int32), target)
    return Project(back, target)


def operation(name: str, rng: np.random.Generator, values: Mapping[str, Any]) -> Operation:
    """The operation of a family, by the name of its function here; equal values have the same one."""
    return noise(rng, **values) if name == "noise" else _fixed(name, tuple(values.items()))


@lru_cache(maxsize=1024)
def _fixed(name: str, values: tuple[tuple[str, Any], ...]) -> Operation:
    made: Operation = globals()[name](**dict(values))
    return made
