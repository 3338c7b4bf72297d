"""The functions of `plain` on CUDA: every one starts a kernel, on a group of rules at once.

How many pixels a program works on and with how many warps was tried on an H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
import triton
from torch import Tensor

from instar.tensors import kernels
from instar.tensors.plain import Size, State, Taps, Target, Zones, axis, circle, leap, on


def _blocks(count: int, block: int) -> int:
    return -(-count // block)


@lru_cache(maxsize=256)
def _numbers(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    return on(np.array(numbers, np.int32), device)


# --- pixel by pixel ---------------------------------------------------------------------------------


def looked_up(source: Tensor, tables: Tensor, order: tuple[int, int, int], zones: Zones) -> Tensor:
    cells = source if zones.cells is None else zones.cells
    count, block = source.numel(), 4096
    made = source.new_empty((len(tables), *source.shape))
    moves = sum((place - at + 4) << 3 * at for at, place in enumerate(order))
    kernels.look_up[_blocks(count, block), len(tables)](
        source, made, tables, cells, _numbers(zones.of, source.device), count, source.shape[1] * source.shape[2],
        cells.shape[-1], moves, order != (0, 1, 2), zones.cells is not None, block, num_warps=4,
    )  # fmt: skip
    return made


def _in_words(source: Tensor, whole: int) -> tuple[Tensor, int]:
    """The source as words of 32 bits, padded to a whole number of parts of so many bytes, and how many of them."""
    count = source.numel()
    parts = -(-count // whole)
    flat = source.reshape(-1)
    if count % whole or flat.storage_offset() % 4:  # one of many follow-ups may begin anywhere
        flat = torch.nn.functional.pad(flat, (0, whole * parts - count)) if count % whole else flat.clone()
    return flat.view(torch.int32), parts


def _as_images(made: Tensor, source: Tensor) -> Tensor:
    return made.view(torch.uint8)[:, : source.numel()].view(-1, *source.shape)


def _one_by_one(source: Tensor, zones: Zones) -> bool:
    """Whether images must be worked on one by one, for a mask's words would not fit those of the second."""
    return zones.cells is not None and len(source) > 1 and source.shape[1] * source.shape[2] % 4 != 0


def mixed(source: Tensor, matrices: Tensor, shift: int, tables: Tensor | None, grey: bool, zones: Zones) -> Tensor:
    if _one_by_one(source, zones):
        return torch.cat([mixed(each[None], matrices, shift, tables, grey, zones) for each in source], 1)
    words, groups = _in_words(source, 12)
    cells = words if zones.cells is None else zones.cells.view(torch.int32)
    made = words.new_empty((len(matrices), 3 * groups))
    block = 256 if grey else 512
    kernels.mix[_blocks(groups, block), len(matrices)](
        words, made, matrices, source if tables is None else tables, cells, _numbers(zones.of, source.device), groups,
        cells.shape[-1], shift, tables is not None, grey, zones.cells is not None, block, num_warps=block // 64,
    )  # fmt: skip
    return _as_images(made, source)


def hue_turned(source: Tensor, turns: Tensor, zones: Zones) -> Tensor:
    if _one_by_one(source, zones):
        return torch.cat([hue_turned(each[None], turns, zones) for each in source], 1)
    words, groups = _in_words(source, 12)
    cells = words if zones.cells is None else zones.cells.view(torch.int32)
    made = words.new_empty((len(turns), 3 * groups))
    block = 128
    kernels.turn_hue[_blocks(groups, block), len(turns)](
        words, made, turns, cells, _numbers(zones.of, source.device), groups, cells.shape[-1], zones.cells is not None,
        block, num_warps=1,
    )  # fmt: skip
    return _as_images(made, source)


# --- neighbours -------------------------------------------------------------------------------------


def filtered(source: Tensor, taps: Taps) -> Tensor:
    images, height, width, _ = source.shape
    made = source.new_empty((len(taps.counts), *source.shape))
    block = 256
    kernels.filter[images * height, _blocks(width, block), len(taps.counts)](
        source, made, taps.places, taps.weights, taps.counts, images, height, width, taps.weights.shape[1],
        taps.reach < min(height, width), block, num_warps=1,
    )  # fmt: skip
    return made


def smoothed(source: Tensor, kernel: Tensor) -> Tensor:
    images, height, width, _ = source.shape
    sums, made = torch.empty_like(source, dtype=torch.uint16), torch.empty_like(source)
    reach = len(kernel) // 2
    kernels.smooth_across[images * height, _blocks(3 * width, 256)](
        source, sums, kernel, len(kernel), width, reach < width, 256, num_warps=1
    )
    kernels.smooth_down[images * height, _blocks(3 * width, 1024)](
        sums, made, kernel, len(kernel), height, width, reach < height, 1024, num_warps=1
    )
    return made[None]


@lru_cache(maxsize=64)
def _circle(radius: int, device: torch.device) -> Tensor:
    return on(np.array(circle(radius), np.int32), device)


def bilateral(source: Tensor, scales: Tensor, radius: int) -> Tensor:
    images, height, width, _ = source.shape
    taps, rules = _circle(radius, source.device), triton.next_power_of_2(len(scales))
    made = source.new_empty((len(scales), *source.shape))
    block = max(64, 256 // rules)
    kernels.bilateral[images * height, _blocks(width, block)](
        source, made, taps, scales, len(taps), images, height, width, len(scales), rules,
        radius < min(height, width), block, num_warps=1,
    )  # fmt: skip
    return made


# --- other places -----------------------------------------------------------------------------------


def placed(source: Tensor, matrices: Tensor, size: Size) -> Tensor:
    images, height, width, _ = source.shape
    made = source.new_empty((len(matrices), images, size[1], size[0], 3))
    block = 256
    kernels.place[images * size[1], _blocks(size[0], block), len(matrices)](
        source, made, matrices, images, height, width, size[1], size[0], block, num_warps=1
    )
    return made


@lru_cache(maxsize=64)
def _scalings(targets: tuple[Target, ...], old: Size, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Of every rule eight numbers, and what they lead to: first lines and columns, and weights.

    The numbers are the new height and width, where the follow-up begins, where its first lines and after them columns
    begin, how many weights a line and a column have, and where those begin.
    """
    rules, firsts, weights = [], [], []
    begin = first = weight = 0
    for (width, height), area in targets:
        (lines, down), (columns, across) = axis(old[1], height, area), axis(old[0], width, area)
        rules.append((height, width, begin, first, down.shape[1], across.shape[1], weight, weight + down.size))
        firsts += [lines, columns]
        weights += [down.ravel(), across.ravel()]
        begin, first, weight = begin + 3 * height * width, first + height + width, weight + down.size + across.size
    return on(np.array(rules), device), on(np.concatenate(firsts), device), on(np.concatenate(weights), device)


def resampled(source: Tensor, targets: tuple[Target, ...]) -> list[Tensor]:
    images, height, width, _ = source.shape
    rules, firsts, weights = _scalings(targets, (width, height), source.device)
    pixels = [3 * images * wide * high for (wide, high), _ in targets]
    widest, highest = (max(size[side] for size, _ in targets) for side in (0, 1))
    made = source.new_empty(sum(pixels))
    block = 256
    kernels.resample[images * highest, _blocks(widest, block), len(targets)](
        source, made, rules, firsts, weights, images, height, width, block, num_warps=2
    )
    ends = np.cumsum(pixels).tolist()
    return [
        made[end - count : end].view(images, high, wide, 3)
        for end, count, ((wide, high), _) in zip(ends, pixels, targets, strict=True)
    ]


def projected(source: Tensor, inverses: Tensor, size: Size) -> Tensor:
    images, height, width, _ = source.shape
    made = source.new_empty((len(inverses), images, size[1], size[0], 3))
    block = 256
    kernels.project[images * size[1], _blocks(size[0], block), len(inverses)](
        source, made, inverses, images, height, width, size[1], size[0], block, num_warps=2
    )
    return made


# --- chance -----------------------------------------------------------------------------------------

_NEAR = 1024
_MASK = (1 << 64) - 1


@lru_cache(maxsize=16)
def _leaps(stride: int, count: int, first: int, device: torch.device) -> Tensor:
    """Leaps of `first`, `first` + `stride`, … steps of PCG64, as words of 64 bits."""
    numbers = [number for place in range(count) for number in leap(first + place * stride)]
    return on(_halves(numbers), device)


def _halves(numbers: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([half for number in numbers for half in (number & _MASK, number >> 64)], np.uint64).view(np.int64)


def noisy(source: Tensor, tables: Tensor, states: Sequence[State]) -> Tensor:
    values, words = _in_words(source, 4)
    device = source.device
    near, far = _leaps(1, _NEAR, 1, device), _leaps(_NEAR, triton.next_power_of_2(_blocks(words, _NEAR)), 0, device)
    made = values.new_empty((len(tables), words))
    first = on(_halves([number for state in states for number in state]), device)
    block = 256
    kernels.add_noise[_blocks(words, block), len(tables)](
        values, made, tables, first, near, far, words, _NEAR, block, num_warps=8
    )
    return _as_images(made, source)
