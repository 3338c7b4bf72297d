"""Masks as COCO writes them: polygons, and run lengths plain or compressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Runs = npt.NDArray[np.int64]


def mask_from_polygons(polygons: Sequence[npt.ArrayLike], size: tuple[int, int]) -> Mask:
    """(H, W): the pixels whose centre is inside any of the polygons, each x0, y0, x1, y1, … in pixels.

    Inside is by the even-odd rule. `size` is (width, height).
    """
    width, height = size
    whole = np.zeros((height, width), dtype=bool)
    for polygon in polygons:
        xy = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
        (x0, y0), (x1, y1) = xy.T, np.roll(xy, -1, 0).T
        top = max(0, int(np.floor(y0.min())))
        rows = np.arange(top, min(height, int(np.ceil(y0.max()))))
        if not len(rows):
            continue
        centres = rows[:, None] + 0.5
        crossed = (np.minimum(y0, y1) <= centres) & (centres < np.maximum(y0, y1))
        row, edge = np.nonzero(crossed)
        # the division comes last, so that a crossing right at a pixel's centre is found there
        x = x0[edge] + (rows[row] + 0.5 - y0[edge]) * (x1[edge] - x0[edge]) / (y1[edge] - y0[edge])
        # From the first pixel whose centre is not left of the crossing on, inside and outside change places.
        low, high = (int(np.clip(edge, 0, width)) for edge in (np.floor(x0.min()), np.ceil(x0.max())))
        first = np.clip(np.ceil(x - 0.5) - low, 0, high - low).astype(np.intp)
        changes = np.zeros((len(rows), high - low + 1), dtype=np.uint8)
        np.add.at(changes, (row, first), 1)
        np.bitwise_xor.accumulate(changes & 1, 1, out=changes)
        whole[rows[0] : rows[-1] + 1, low:high] |= changes[:, :-1].view(bool)
    return whole


def runs_of(rle: Mapping[str, object], size: tuple[int, int]) -> Runs:
    """The runs of an RLE `{"size": [H, W], "counts": …}`, checked against an image's (width, height)."""
    counts = rle.get("counts")
    if isinstance(counts, str | bytes):
        runs = _decompressed(counts.encode() if isinstance(counts, str) else counts)
    elif isinstance(counts, list):
        runs = np.array(counts, dtype=np.int64)
    else:
        raise ValueError("an RLE has counts, a list or a string")
    width, height = size
    if rle.get("size") != [height, width]:
        raise ValueError(f"an RLE of size {rle.get('size')} belongs to no image of {height} × {width}")
    if (runs < 0).any() or (runs > width * height).any() or runs.sum() != width * height:
        raise ValueError(f"an RLE's runs do not make the {width * height:,} pixels that the image has")
    return runs


def _decompressed(text: bytes) -> Runs:
    """COCO's compressed counts: five bits a character, lowest first; from the fourth run on the difference
    from the run two before it."""
    runs: list[int] = []
    value = shift = 0
    for code in text:
        bits = code - 48
        if not 0 <= bits < 64:
            raise ValueError(f"{chr(code)!r} cannot be in compressed counts")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    if shift:
        raise ValueError("compressed counts end in the middle of a number")
    return np.array(runs, dtype=np.int64)


def mask_from_runs(runs: Runs, size: tuple[int, int]) -> Mask:
    """(H, W) from run lengths, down the columns, beginning with what is not inside."""
    width, height = size
    inside = np.arange(len(runs)) % 2 == 1
    return np.ascontiguousarray(np.repeat(inside, runs).reshape(width, height).T)
