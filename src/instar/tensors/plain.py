"""What operations do to pixels, with PyTorch on any device. `launches` has the same functions for CUDA.

`source` is uint8 (N, H, W, 3); what is made is (R, N, H', W', 3): every rule of a group on every image. What rules need
besides lies on the device already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]
Size = tuple[int, int]


def on(array: Array, device: torch.device) -> Tensor:
    """A small array of numpy's on a device; pinned, so that sending it does not wait for what the device does."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


@dataclass(frozen=True, slots=True)
class Zones:
    """Where the rules of a group change pixels: `of` each the number of a mask in `cells`, or -1 for everywhere.

    `cells` are masks one below the other, uint8 (Z, H · W) and up to three more, for whole words of 32 bits.
    """

    cells: Tensor | None
    of: tuple[int, ...]

    @classmethod
    def everywhere(cls, count: int) -> Zones:
        return cls(None, (-1,) * count)

    def only(self, numbers: Sequence[int]) -> Zones:
        return Zones(self.cells, tuple(self.of[number] for number in numbers))

    def within(self, source: Tensor, made: Tensor) -> Tensor:
        """What was made inside of the zones, and the source elsewhere."""
        height, width = source.shape[1:3]
        for number, zone in enumerate(self.of):
            if zone >= 0 and self.cells is not None:
                inside = self.cells[zone, : height * width].view(height, width, 1) != 0
                made[number] = torch.where(inside, made[number], source)
        return made


# --- pixel by pixel ---------------------------------------------------------------------------------


def looked_up(source: Tensor, tables: Tensor, order: tuple[int, int, int], zones: Zones) -> Tensor:
    """Every value replaced by an entry of its channel's table; `tables` (R, 256, 3), channels taken in an order."""
    index = source[..., list(order)].long()
    channels = torch.arange(3, device=source.device)
    return zones.within(source, torch.stack([one[index, channels] for one in tables]))


def mixed(source: Tensor, matrices: Tensor, shift: int, tables: Tensor | None, grey: bool, zones: Zones) -> Tensor:
    """Channels mixed in whole numbers, `matrices` (R, 3, 3) in 2^-`shift`, rounded, saturated and looked up.

    Without `tables` mixtures are taken as they are; `grey` says that all channels have the first one's.
    """
    channels = torch.arange(3, device=source.device)
    pixels = source.int()
    made = []
    for number, matrix in enumerate(matrices.tolist()):
        rows = [sum(part * pixels[..., at] for at, part in enumerate(row)) for row in matrix]
        levels = torch.stack([((row + (1 << shift >> 1)) >> shift).clamp(0, 255) for row in rows], -1)
        made.append(levels.byte() if tables is None else tables[number][levels.long(), channels])
    return zones.within(source, torch.stack(made))


def hue_turned(source: Tensor, turns: Tensor, zones: Zones) -> Tensor:
    """Hue turned by sixths of the colour wheel, in floating point."""
    levels = source.float()
    red, green, blue = levels.unbind(-1)
    value = levels.amax(-1)
    spread = value - levels.amin(-1)
    share = 1 / spread.clamp(min=1)
    of_green, of_blue = (blue - red) * share + 2, (red - green) * share + 4
    hue = torch.where(value == red, (green - blue) * share, torch.where(value == green, of_green, of_blue))
    hue = torch.where(hue < 0, hue + 6, hue)
    made = []
    for turn in turns.tolist():
        # each channel falls, stays and rises over the wheel, a third of it after the one before
        places = [(offset + hue + turn) % 6 for offset in (5, 3, 1)]
        parts = [value - spread * torch.minimum(place, 4 - place).clamp(0, 1) for place in places]
        made.append(torch.stack(parts, -1).round().byte())
    return zones.within(source, torch.stack(made))


# --- neighbours -------------------------------------------------------------------------------------


def reflected(places: Tensor, count: int) -> Tensor:
    """Indices beyond the ends mirrored at the first and the last pixel, which are not repeated."""
    if count == 1:
        return torch.zeros_like(places)
    period = 2 * (count - 1)
    wrapped = places % period
    return torch.minimum(wrapped, period - wrapped)


def bordered(source: Tensor, above: int, below: int, left: int, right: int) -> Tensor:
    """With a mirrored border, as floating point."""
    height, width = source.shape[1:3]
    lines = reflected(torch.arange(-above, height + below, device=source.device), height)
    columns = reflected(torch.arange(-left, width + right, device=source.device), width)
    return source[:, lines][:, :, columns].float()


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """The pixels that make one: of every rule so many `counts`, rows below and columns to the right (R, T, 2), and
    their weights (R, T); `reach` is how far the farthest is."""

    counts: Tensor
    places: Tensor
    weights: Tensor
    reach: int


def filtered(source: Tensor, taps: Taps) -> Tensor:
    """Weighted sums of neighbours, with mirrored borders."""
    height, width = source.shape[1:3]
    made = []
    for count, places, weights in zip(taps.counts.tolist(), taps.places, taps.weights, strict=True):
        down, across = places[:count].T.tolist()
        above, left = max(0, -min(down)), max(0, -min(across))
        wide = bordered(source, above, max(0, *down, 0), left, max(0, *across, 0))
        total = torch.zeros(source.shape, device=source.device)
        for y, x, weight in zip(down, across, weights[:count].tolist(), strict=True):
            total += weight * wide[:, above + y : above + y + height, left + x : left + x + width]
        made.append(total.round().clamp(0, 255).byte())
    return torch.stack(made)


def smoothed(source: Tensor, kernel: Tensor) -> Tensor:
    """Sums of 256ths across, then down, rounded once: whole numbers below 2^24, exact in 32-bit floats."""
    height, width = source.shape[1:3]
    reach, weights = len(kernel) // 2, kernel.tolist()
    wide = bordered(source, 0, 0, reach, reach)
    sums = torch.zeros(source.shape, device=source.device)
    for at, weight in enumerate(weights):
        sums += weight * wide[:, :, at : at + width]
    lines = reflected(torch.arange(-reach, height + reach, device=source.device), height)
    high = sums[:, lines]
    totals = torch.full(source.shape, 32768.0, device=source.device)
    for at, weight in enumerate(weights):
        totals += weight * high[:, at : at + height]
    return (totals / 65536).floor().clamp(0, 255).byte()[None]


def circle(radius: int) -> list[tuple[int, int]]:
    """Rows and columns to the pixels within a radius."""
    reach = range(-radius, radius + 1)
    return [(y, x) for y in reach for x in reach if y * y + x * x <= radius * radius]


def bilateral(source: Tensor, scales: Tensor, radius: int) -> Tensor:
    """Neighbours within a radius weighted by 2^(scale · (distance² + difference²)), for every rule's scale."""
    height, width = source.shape[1:3]
    wide = bordered(source, radius, radius, radius, radius)
    centre = source.float()
    totals = torch.zeros((len(scales), *source.shape), device=source.device)
    weights = torch.zeros((len(scales), *source.shape[:3]), device=source.device)
    for y, x in circle(radius):
        near = wide[:, radius + y : radius + y + height, radius + x : radius + x + width]
        far = (near - centre).abs().sum(-1).square() + (y * y + x * x)
        for number, scale in enumerate(scales.tolist()):
            weight = torch.exp2(scale * far)
            totals[number] += weight[..., None] * near
            weights[number] += weight
    return (totals / weights[..., None]).round().clamp(0, 255).byte()


# --- other places -----------------------------------------------------------------------------------


def placed(source: Tensor, matrices: Tensor, size: Size) -> Tensor:
    """Pixels copied from where whole numbers (R, 2, 3) say: turns, flips and moves. Black where there is nothing."""
    height, width = source.shape[1:3]
    columns = torch.arange(size[0], device=source.device)
    lines = torch.arange(size[1], device=source.device)[:, None]
    made = []
    for across, down in matrices.tolist():
        x = across[0] * columns + across[1] * lines + across[2]
        y = down[0] * columns + down[1] * lines + down[2]
        there = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        made.append(source[:, y.clamp(0, height - 1), x.clamp(0, width - 1)] * there[..., None])
    return torch.stack(made)


Axis = tuple[Array, Array]
"""Of every new line: the first old one it is made of (int32), and the weights of that and those after (float32)."""
Target = tuple[Size, bool]
"""A new size, and whether pixels are averaged by area."""


@lru_cache(maxsize=256)
def axis(old: int, new: int, area: bool) -> Axis:
    """How so many lines become so many others, as OpenCV has it."""
    if not area:
        places = (np.arange(new) + 0.5) * (old / new) - 0.5
        first = np.floor(places)
        share = places - first
        share[(first < 0) | (first >= old - 1)] = 0
        weights = np.stack([1 - share, share], -1).astype(np.float32)
        return first.clip(0, old - 1).astype(np.int32), weights
    begin = np.arange(new) * (old / new)
    end = np.minimum(begin + old / new, old)
    lowest = np.floor(begin + 1e-9).astype(np.int32)
    line = lowest[:, None] + np.arange(math.ceil(old / new - 1e-9) + 1)
    parts = (np.minimum(end[:, None], line + 1) - np.maximum(begin[:, None], line)).clip(0, None)
    parts[parts < 1e-3] = 0  # as OpenCV leaves out
    return lowest, (parts / parts.sum(1, keepdims=True)).astype(np.float32)


def resampled(source: Tensor, targets: tuple[Target, ...]) -> list[Tensor]:
    """Scaled: every line a weighted sum of old lines, and every column of old columns."""
    height, width = source.shape[1:3]
    made = []
    for (wide, high), area in targets:
        across = on(_matrix(axis(width, wide, area), width), source.device)
        down = on(_matrix(axis(height, high, area), height), source.device)
        sums = torch.einsum("yk,nkxc->nyxc", down, torch.einsum("xk,nykc->nyxc", across, source.float()))
        made.append(sums.round().clamp(0, 255).byte())
    return made


def _matrix(lines: Axis, count: int) -> npt.NDArray[np.float32]:
    first, weights = lines
    matrix = np.zeros((len(first), count), np.float32)
    for step in range(weights.shape[1]):
        np.add.at(matrix, (np.arange(len(first)), np.minimum(first + step, count - 1)), weights[:, step])
    return matrix


def projected(source: Tensor, inverses: Tensor, size: Size) -> Tensor:
    """Bilinear samples where `inverses` (R, 3, 3) say that pixels come from; black outside of the source."""
    height, width = source.shape[1:3]
    columns = torch.arange(size[0], device=source.device, dtype=torch.float64)
    lines = torch.arange(size[1], device=source.device, dtype=torch.float64)[:, None]
    made = []
    for matrix in inverses.tolist():
        x, y, scale = (row[0] * columns + row[1] * lines + row[2] for row in matrix)
        x, y = x / scale, y / scale
        left, top = x.floor(), y.floor()
        across, down = (x - left).float()[..., None], (y - top).float()[..., None]
        total = torch.zeros((len(source), size[1], size[0], 3), device=source.device)
        for right, below in ((0, 0), (1, 0), (0, 1), (1, 1)):
            column, line = left + right, top + below
            there = (column >= 0) & (column < width) & (line >= 0) & (line < height)
            values = source[:, line.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()].float()
            weight = (across if right else 1 - across) * (down if below else 1 - down)
            total += values * weight * there[..., None]
        made.append(total.round().clamp(0, 255).byte())
    return torch.stack(made)


# --- chance -----------------------------------------------------------------------------------------

State = tuple[int, int]
"""Of numpy's generator PCG64: the state and the increment."""
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


def leap(steps: int) -> tuple[int, int]:
    """How PCG64 goes so many steps at once: its state becomes state · first + increment · second, modulo 2^128."""
    power, total, factor, part = 1, 0, _MULTIPLIER, 1
    while steps:
        if steps & 1:
            power, total = power * factor % (1 << 128), (total * factor + part) % (1 << 128)
        factor, part = factor * factor % (1 << 128), part * (factor + 1) % (1 << 128)
        steps >>= 1
    return power, total


def noisy(source: Tensor, tables: Tensor, states: Sequence[State]) -> Tensor:
    """Entries of tables (R, 65536) of int16 added, each chosen by 16 bits of a generator, which numpy draws."""
    count = source.numel()
    made = []
    for table, (state, increment) in zip(tables, states, strict=True):
        generator = np.random.PCG64()
        generator.state = {**generator.state, "state": {"state": state, "inc": increment}}
        words = generator.random_raw(-(-count // 4)).astype("<u8", copy=False)
        chosen = on(words.view(np.int16)[:count], source.device).int() & 0xFFFF
        made.append((source.reshape(-1).short() + table[chosen]).clamp(0, 255).byte().view(source.shape))
    return torch.stack(made)
