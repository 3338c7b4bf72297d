"""The question whether a class map lies where the image is: turned, mirrored, with margins, or beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from instar.outputs.segmentation import UNKNOWN, Segmentation
from instar.systems.check.examination import Examination, Skip, percent
from instar.systems.check.results import Result, ok, problem, warning
from instar.warp import Size, Warp

Cells = npt.NDArray[np.uint8]
Pair = tuple[Segmentation, Segmentation, Warp]

PROBES = ("mirror(h)", "shift(0.15, 0.1)", "stretch(1, 0.6)", "pad(0.3, top_bottom)")
POOR = 0.7
"""A mean overlap of classes below this needs an explanation, if there is one."""
WRONG = 0.5
"""One below this needs a word, whatever the cause."""


def _inner(cells: Cells, size: Size, *, corner: bool) -> Cells:
    """The part of a square's map in which an image of some size lies, in the middle or in the corner."""
    height, width = cells.shape
    kept = round(width * size[0] / max(size)), round(height * size[1] / max(size))
    left, top = (0, 0) if corner else ((width - kept[0]) // 2, (height - kept[1]) // 2)
    return cells[top : top + max(kept[1], 1), left : left + max(kept[0], 1)]


READINGS: tuple[tuple[str, str, Callable[[Cells, Size], Cells], str], ...] = (
    (
        "map.transposed",
        "the columns of the image for rows",
        lambda cells, size: cells.T,
        "Transpose it: a map is (height, width)",
    ),
    ("map.upside_down", "the image upside down", lambda cells, size: cells[::-1], "Turn its rows round"),
    ("map.mirrored", "the image in a mirror", lambda cells, size: cells[:, ::-1], "Turn its columns round"),
    (
        "map.letterbox",
        "a square with the image in its middle (letterbox)",
        lambda cells, size: _inner(cells, size, corner=False),
        "Cut the margins off",
    ),
    (
        "map.letterbox_corner",
        "a square with the image in its corner (letterbox)",
        lambda cells, size: _inner(cells, size, corner=True),
        "Cut the margins off",
    ),
)


def class_map(examined: Examination) -> Result:
    examined.need_answers()
    if not all(isinstance(answer, Segmentation) for _, _, answer in examined.answered):
        raise examined.unsuited()
    if all(len(np.unique(each.cells)) < 2 for _, _, each in examined.answered if isinstance(each, Segmentation)):
        raise Skip("each map shows one class alone, which may lie anywhere")
    pairs = {probe: _pairs(examined, probe) for probe in PROBES}
    if not any(pairs.values()):
        raise Skip("no changed image was answered")
    own = _overlap(pairs, lambda cells, size: cells)
    if own >= POOR:
        words = f"the map follows the image: classes overlap by {percent(own)} at least"
        return _offset(pairs["mirror(h)"]) or ok("map.ok", words, overlap=own)
    others = [(_overlap(pairs, read), code, words, advice) for code, words, read, advice in READINGS]
    best, code, words, advice = max(others)
    if best > max(POOR, own + 0.5 * (1 - own)):
        return problem(
            code,
            f"the map looks like one of {words}: in changed images classes overlap by {percent(own)}, read so by "
            f"{percent(best)}. {advice}",
            overlap=own,
            read=best,
        )
    beside = _offset(pairs["mirror(h)"])
    if beside or own >= WRONG:
        words = f"the map follows the image, roughly: classes overlap by {percent(own)} and more"
        return beside or ok("map.roughly", words, overlap=own)
    return warning(
        "map.astray",
        "the map does not follow the image: where it is moved, mirrored, squeezed or padded, classes overlap by "
        f"{percent(own)} only. See whether the map goes back through the same scaling and margins as the image",
        overlap=own,
    )


def _pairs(examined: Examination, probe: str) -> list[Pair]:
    return [
        (before, after, warp)
        for _, before, after, warp in examined.followed(probe)
        if isinstance(before, Segmentation) and isinstance(after, Segmentation)
    ]


def _overlap(pairs: dict[str, list[Pair]], read: Callable[[Cells, Size], Cells]) -> float:
    """The median overlap under the probe that fares worst, with every map read in some way."""
    medians = []
    for some in pairs.values():
        overlaps = []
        for before, after, warp in some:
            source, actual = (
                Segmentation.from_classes(read(one.cells, size), one.names, size=size)
                for one, size in ((before, warp.source), (after, warp.target))
            )
            overlaps.append(_mean_iou(source.warped(warp).onto(actual), actual.cells))
        if overlaps:
            medians.append(float(np.median(overlaps)))
    return min(medians)


def _mean_iou(expected: Cells, actual: Cells) -> float:
    """Over the classes that take at least 1 % of the cells known on both sides."""
    known = (expected != UNKNOWN) & (actual != UNKNOWN)
    overlaps = []
    for number in np.unique(np.concatenate([expected[known], actual[known]])):
        one, other = expected[known] == number, actual[known] == number
        if max(one.mean(), other.mean()) > 0.01:
            overlaps.append(float((one & other).sum() / (one | other).sum()))
    return float(np.mean(overlaps)) if overlaps else 1.0


def _offset(pairs: Sequence[Pair]) -> Result | None:
    """Whether a mirror shows that every map sits beside its image: both are off, to different sides."""
    offsets, gains = [], []
    for before, after, warp in pairs:
        expected, width = before.warped(warp).onto(after), after.cells.shape[1]
        as_is = _mean_iou(expected, after.cells)
        tried = {}
        for cells in range(-(width // 5), width // 5 + 1):
            moved = np.full_like(expected, UNKNOWN)
            moved[:, max(cells, 0) : width + min(cells, 0)] = expected[:, max(-cells, 0) : width - max(cells, 0)]
            tried[cells] = _mean_iou(moved, after.cells)
        best = max(tried, key=lambda cells: (tried[cells], -abs(cells)))
        offsets.append(best / 2 * warp.target[0] / width)
        gains.append(tried[best] - as_is)
    if not offsets or np.median(gains) < 0.05 or np.ptp(np.sign(offsets)) > 0 or abs(np.median(offsets)) < 1:
        return None
    far = float(np.median(offsets))
    return problem(
        "map.offset",
        f"the map sits {abs(far):.2g} px too far {'right' if far > 0 else 'left'}: in a mirrored image it is off twice "
        "as far the other way. See where the image lies in the model's frame",
        pixels=far,
    )
