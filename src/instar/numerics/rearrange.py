"""Operators that only move elements: every element of the result is one of the operand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from instar.numerics.domain import Call, Floats, Fold, Operands, Shape, count_of, inferred, optional

Move = Callable[[Floats, Fold], Floats]
"""Of an array of bounds and of how several become one, the array of the result's bounds."""

Moved = tuple[Shape, Move]

_WIDEST = 1 << 20
"""Elements that a move may spell out one by one."""


def moving(call: Call, shape: Shape, operands: Operands) -> Moved | None:
    """The result's shape and the move itself; None where not even its rank can be said."""
    return MOVES[call.operator](call, shape, operands)


def _whole_operand(operands: Operands, index: int) -> list[int] | None:
    operand = optional(operands, index)
    return operand.whole() if operand is not None else None


def _axes(call: Call, operands: Operands, index: int, rank: int) -> list[int] | None:
    """Axes as an attribute or as an operand; None where they are not known."""
    if "axes" in call.attributes:
        return [axis % rank for axis in call.attributes["axes"]]
    known = _whole_operand(operands, index)
    return None if known is None else [axis % rank for axis in known]


# --- the order of axes and elements ----------------------------------------------------------------


def _transpose(call: Call, shape: Shape, operands: Operands) -> Moved:
    order = list(call.attributes.get("perm") or range(len(shape))[::-1])
    return tuple(shape[axis] for axis in order), lambda cells, fold: cells.transpose(order)


def _squeeze(call: Call, shape: Shape, operands: Operands) -> Moved | None:
    if "axes" in call.attributes or optional(operands, 1) is not None:
        axes = _axes(call, operands, 1, len(shape))
    else:
        axes = None if None in shape else [axis for axis, size in enumerate(shape) if size == 1]
    if axes is None:
        return None
    left = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return left, lambda cells, fold: cells.squeeze(tuple(axes))


def _unsqueeze(call: Call, shape: Shape, operands: Operands) -> Moved | None:
    count = len(call.attributes["axes"]) if "axes" in call.attributes else len(_whole_operand(operands, 1) or [])
    axes = _axes(call, operands, 1, len(shape) + count)
    if axes is None:
        return None
    sizes = iter(shape)
    new = tuple(1 if axis in axes else next(sizes) for axis in range(len(shape) + count))
    return new, lambda cells, fold: np.expand_dims(cells, tuple(axes))


def _flatten(call: Call, shape: Shape, operands: Operands) -> Moved | None:
    axis = call.attributes.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    new = tuple(count_of(part) for part in (shape[:axis], shape[axis:]))
    return new, lambda cells, fold: _regrouped(cells, fold, shape, new)


def _reshape(call: Call, shape: Shape, operands: Operands) -> Moved | None:
    wanted_shape = operands[1] if len(operands) > 1 else None
    if wanted_shape is None or wanted_shape.shape is None or None in wanted_shape.shape or len(wanted_shape.shape) != 1:
        return None
    bounds = [
        np.broadcast_to(side, (wanted_shape.shape[0] or 0,)) for side in (wanted_shape.span.low, wanted_shape.span.high)
    ]
    keep = not call.attributes.get("allowzero", 0)
    sizes: list[int | None] = []
    for axis, (low, high) in enumerate(zip(*bounds, strict=True)):
        known = low == high and not wanted_shape.span.nan
        copied = keep and known and low == 0 and axis < len(shape)
        sizes.append(shape[axis] if copied else int(low) if known else None)
    new = tuple(sizes)
    if -1 in new:
        rest = [n for n in new if n != -1]
        open_size = None
        if None not in shape and None not in rest:
            open_size = prod(n or 0 for n in shape) // max(prod(n or 0 for n in rest), 1)
        elif None in shape and rest == [*shape[: len(rest)]]:  # leading axes stay, the others become one
            open_size = count_of(shape[len(rest) :])
        new = tuple(open_size if n == -1 else n for n in new)
    return new, lambda cells, fold: _regrouped(cells, fold, shape, new)


def _regrouped(cells: Floats, fold: Fold, old: Shape, new: Shape) -> Floats:
    """A reshape, group of axes by group: one that has a single part keeps it, others are spelled out."""
    if cells.size == 1:
        return cells.reshape((1,) * len(new))
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:  # leading axes, also those of unknown size
        start += 1
    if None in old[start:] or None in new[start:]:
        whole = fold(cells, tuple(range(start, len(old))), keepdims=True) if start < len(old) else cells
        return np.asarray(whole.reshape(whole.shape[:start] + (1,) * (len(new) - start)))
    before, after = [n or 0 for n in old], [n or 0 for n in new]
    pieces, wanted = list(cells.shape[:start]), list(cells.shape[:start])
    folded: list[int] = []
    i, j = start, start
    while i < len(before) or j < len(after):
        first = i, j
        i, j = min(i + 1, len(before)), min(j + 1, len(after))
        while (left := prod(before[first[0] : i])) != (right := prod(after[first[1] : j])):
            if left < right and i < len(before):
                i += 1
            elif j < len(after):
                j += 1
            else:
                return np.asarray(fold(cells)).reshape((1,) * len(new))
        group = cells.shape[first[0] : i]
        spelled = prod(group) > 1 and left <= _WIDEST
        if prod(group) > 1 and not spelled:
            folded += range(first[0], i)
        pieces += before[first[0] : i] if spelled else [1] * (i - first[0])
        wanted += after[first[1] : j] if spelled else [1] * (j - first[1])
    one = fold(cells, tuple(folded), keepdims=True) if folded else cells
    if prod(pieces) > _WIDEST:
        return np.asarray(fold(cells)).reshape((1,) * len(new))
    return np.broadcast_to(one, pieces).reshape(wanted)


# --- parts and repetitions -------------------------------------------------------------------------


def _expand(call: Call, shape: Shape, operands: Operands) -> Moved | None:
    wanted_shape = operands[1] if len(operands) > 1 else None
    if wanted_shape is None or wanted_shape.shape is None or None in wanted_shape.shape:
        return None
    wanted = _whole_operand(operands, 1)
    sizes: list[int | None] = [None] * prod(n or 0 for n in wanted_shape.shape) if wanted is None else [*wanted]
    rank = max(len(shape), len(sizes))
    old, new = (1,) * (rank - len(shape)) + shape, [1] * (rank - len(sizes)) + sizes
    merged = tuple(b if a == 1 else a if a is not None or b in (1, None) else b for a, b in zip(old, new, strict=True))
    return merged, lambda cells, fold: cells.reshape((1,) * (rank - cells.ndim) + cells.shape)


def _tile(call: Call, shape: Shape, operands: Operands) -> Moved:
    times = _whole_operand(operands, 1)
    new = tuple(None if n is None or times is None else n * times[axis] for axis, n in enumerate(shape))

    def move(cells: Floats, fold: Fold) -> Floats:
        for axis, parts in enumerate(cells.shape):
            if parts > 1 and (times is None or cells.size * times[axis] > _WIDEST):
                cells = fold(cells, axis, keepdims=True)
            elif parts > 1 and times is not None and times[axis] != 1:
                cells = np.concatenate([cells] * times[axis], axis)
        return cells

    return new, move


def sections(call: Call, shape: Shape, operands: Operands) -> tuple[int, list[tuple[int, int]]] | None:
    """Axis and (start, end) of each result of a Split, or of a Slice of one axis in steps of 1."""
    if call.operator == "Split":
        axis = call.attributes.get("axis", 0) % len(shape)
        size = shape[axis]
        parts = call.attributes.get("split") or _whole_operand(operands, 1)
        if not parts:
            if size is None or optional(operands, 1) is not None:
                return None
            each = -(-size // call.results)
            parts = [max(min(each, size - each * k), 0) for k in range(call.results)]
        ends = np.cumsum(parts).tolist()
        return axis, list(zip([0, *ends[:-1]], ends, strict=True))
    cut = _cuts(call, shape, operands)
    if cut is None or len(cut) != 1 or cut[0][3] != 1:
        return None
    axis, start, end, _ = cut[0]
    size = shape[axis]
    if size is None:
        return None
    first, last, _ = slice(start, end).indices(size)
    return axis, [(first, max(first, last))]


def _cuts(call: Call, shape: Shape, operands: Operands) -> list[tuple[int, int, int, int]] | None:
    """(axis, start, end, step) of a Slice."""
    if "starts" in call.attributes:
        starts, ends = call.attributes["starts"], call.attributes["ends"]
        axes, steps = call.attributes.get("axes", range(len(starts))), [1] * len(starts)
    else:
        if any(optional(operands, index) is not None and _whole_operand(operands, index) is None for index in (3, 4)):
            return None
        starts, ends, own_axes, own_steps = (_whole_operand(operands, index) for index in (1, 2, 3, 4))
        if starts is None or ends is None:
            return None
        axes, steps = own_axes or range(len(starts)), own_steps or [1] * len(starts)
    return [
        (axis % len(shape), start, end, step) for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    ]


def _slice(call: Call, shape: Shape, operands: Operands) -> Moved:
    cuts = _cuts(call, shape, operands)
    if cuts is None:  # somewhere in there
        return (None,) * len(shape), lambda cells, fold: np.asarray(fold(cells)).reshape((1,) * len(shape))
    sizes = list(shape)
    chosen = [slice(None)] * len(shape)
    for axis, start, end, step in cuts:
        size = sizes[axis]
        if size is not None:
            first, last, stride = slice(start, end if end > -(1 << 60) else None, step).indices(size)
            sizes[axis] = len(range(first, last, stride))
            chosen[axis] = slice(first, last if last >= 0 else None, stride)
    return tuple(sizes), lambda cells, fold: cells[
        tuple(cut if parts > 1 else slice(None) for cut, parts in zip(chosen, cells.shape, strict=True))
    ]


def _take(call: Call, shape: Shape, operands: Operands) -> Moved:
    axis, start, end = (call.attributes[name] for name in ("axis", "start", "end"))
    chosen = (slice(None),) * axis + (slice(start, end),)
    new = (*shape[:axis], end - start, *shape[axis + 1 :])
    return new, lambda cells, fold: cells[chosen] if cells.shape[axis] > 1 else cells


def _gather(call: Call, shape: Shape, operands: Operands) -> Moved | None:
    indices = operands[1]
    axis = call.attributes.get("axis", 0) % len(shape)
    if indices is None or indices.shape is None:
        return None
    known = indices.constant()
    rank = len(indices.shape)

    def move(cells: Floats, fold: Fold) -> Floats:
        if cells.shape[axis] > 1 and known is not None:
            return np.asarray(np.take(cells, known.astype(np.int64), axis, mode="wrap"))
        one = fold(cells, axis, keepdims=True)
        return np.asarray(one.reshape(one.shape[:axis] + (1,) * rank + one.shape[axis + 1 :]))

    return (*shape[:axis], *indices.shape, *shape[axis + 1 :]), move


def _anywhere(
    axes: Callable[[Call, Shape], Sequence[int]], sizes: Callable[[Call, Shape, Operands], Shape | None]
) -> Callable[[Call, Shape, Operands], Moved | None]:
    """Elements change their places along some axes in a way that does not matter or is not known."""

    def moved(call: Call, shape: Shape, operands: Operands) -> Moved | None:
        new, mixed = sizes(call, shape, operands), tuple(axes(call, shape))

        def move(cells: Floats, fold: Fold) -> Floats:
            one = fold(cells, mixed, keepdims=True)
            return np.asarray(one if new is None or len(new) == cells.ndim else fold(one).reshape((1,) * len(new)))

        return None if new is None else (new, move)

    return moved


def _axis(call: Call, shape: Shape) -> Sequence[int]:
    return [call.attributes.get("axis", 0) % len(shape)]


def _every(call: Call, shape: Shape) -> Sequence[int]:
    return range(len(shape))


def _like_indices(call: Call, shape: Shape, operands: Operands) -> Shape | None:
    return operands[1].shape if operands[1] is not None else None


def _inferred(call: Call, shape: Shape, operands: Operands) -> Shape | None:
    return inferred(call)


def _depth_to_space(call: Call, shape: Shape, operands: Operands) -> Moved:
    block, (batch, channels, *sides) = call.attributes["blocksize"], shape
    depth = None if channels is None else channels // block**2
    new = (batch, depth, *[None if n is None else n * block for n in sides])
    first = call.attributes.get("mode", b"DCR") == b"DCR"

    def move(cells: Floats, fold: Fold) -> Floats:
        flat = fold(cells, (2, 3), keepdims=True)
        if flat.shape[1] == 1:
            return np.asarray(flat)
        parts = (block**2, -1) if first else (-1, block**2)
        grouped = fold(flat.reshape(flat.shape[0], *parts), 1 if first else 2)
        return np.asarray(grouped.reshape(flat.shape[0], -1, 1, 1))

    return new, move


def _space_to_depth(call: Call, shape: Shape, operands: Operands) -> Moved:
    block, (batch, channels, *sides) = call.attributes["blocksize"], shape
    depth = None if channels is None else channels * block**2
    new = (batch, depth, *[None if n is None else n // block for n in sides])

    def move(cells: Floats, fold: Fold) -> Floats:
        flat = fold(cells, (2, 3), keepdims=True)
        return np.concatenate([flat] * block**2, 1) if flat.shape[1] > 1 else np.asarray(flat)

    return new, move


# fmt: off
MOVES: Mapping[str, Callable[[Call, Shape, Operands], Moved | None]] = {
    "Transpose": _transpose, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Flatten": _flatten, "Reshape": _reshape,
    "Expand": _expand, "Tile": _tile, "Slice": _slice, "Take": _take, "Gather": _gather,
    "DepthToSpace": _depth_to_space, "SpaceToDepth": _space_to_depth, "GatherElements": _anywhere(_axis, _like_indices),
    "GatherND": _anywhere(_every, _inferred), "Compress": _anywhere(_every, _inferred),
    "ReverseSequence": _anywhere(_every, lambda call, shape, operands: shape),
}
# fmt: on
