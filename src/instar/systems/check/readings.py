"""What coordinates may mean, besides what they should: each reading is tried, and the one that fits is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instar.outputs import Output
from instar.outputs.marks import Mark
from instar.stats import robust_line
from instar.systems.check.examination import Examination, Floats, Skip, distances, matched, percent, swapped_sides
from instar.systems.check.results import Result, problem
from instar.warp import Size, Warp

MIRROR = "mirror(h)"
PROBES = (MIRROR, "stretch(1, 0.6)", "pad(0.3, top_bottom)", "pad(0.3, left_right)", "pad(0.3) | shift(0.15, y=0.15)")
"""Everything stays in the image, and what goes wrong on the way into a model and back goes wrong differently."""
ASTRAY = 0.03
"""A share of the image's size: answers that are off by less follow the image."""
ADRIFT = 0.08
"""A share of the image's size: answers to changed images that are off by more need a word, whatever the cause."""
BETTER = 0.35
"""Another reading is believed where it leaves at most this share of the error."""
STRAIGHTER = 0.6
"""A larger share is enough if the reading also takes away a scale that is not 1: that is no inaccuracy."""
FEWEST = 3
"""Pairs of images that must have been compared."""
SCALED = 0.1
"""A scale that is off by this much, and by more than chance, is not the model's inaccuracy."""
ORIENTATIONS = ("landscape", "portrait", "square")


@dataclass(frozen=True)
class Reading:
    """What places (K, 2) of an image of some size may be, how they are read then, and what to change."""

    code: str
    words: str
    read: Callable[[Floats, Size], Floats]
    advice: str
    boxes: bool = False


def _margins(size: Size, side: int) -> Floats:
    return np.array([side - size[0], side - size[1]]) / 2


def _flipped(places: Floats, size: Size, axis: int) -> Floats:
    flipped = places.copy()
    flipped[:, axis] = size[axis] - places[:, axis]
    return np.sort(flipped, axis=0) if len(places) == 2 else flipped  # of a box, the upper left corner comes first


def _shares(size: Size, side: int) -> Floats:
    return np.array(size) / side


# fmt: off
ORDERS = (
    Reading("coordinates.exchanged", "(y, x)", lambda at, size: at[:, ::-1], "Exchange the two"),
    Reading(
        "coordinates.wrong_factors", "x multiplied by the height and y by the width",
        lambda at, size: at * size / np.array(size[::-1]),
        "Exchange the two factors: image.shape is (height, width, 3)",
    ),
    Reading(
        "coordinates.from_below", "y counted from the bottom", lambda at, size: _flipped(at, size, 1),
        "Subtract y from the height: y goes down from the top edge",
    ),
    Reading(
        "coordinates.from_the_right", "x counted from the right", lambda at, size: _flipped(at, size, 0),
        "Subtract x from the width: x goes right from the left edge",
    ),
    Reading(
        "coordinates.xywh", "x, y, width and height", lambda at, size: np.stack([at[0], at[0] + at[1]]),
        "A box is x0, y0, x1, y1: add x to the width and y to the height", boxes=True,
    ),
    Reading(
        "coordinates.middle_and_size", "the middle of the box, its width and its height",
        lambda at, size: np.stack([at[0] - at[1] / 2, at[0] + at[1] / 2]),
        "A box is x0, y0, x1, y1: take half of the width and height off the middle, and add it", boxes=True,
    ),
    Reading(
        "coordinates.middle_for_corner", "boxes that begin in the middle of what they show",
        lambda at, size: at - (at[1] - at[0]) / 2,
        "The model's x and y are the middle of the box: x0 is x − width / 2 and x1 is x + width / 2, y likewise",
        boxes=True,
    ),
    Reading(
        "coordinates.corner_for_middle", "boxes whose middle is the upper left corner of what they show",
        lambda at, size: at + (at[1] - at[0]) / 2,
        "The model's x and y are the upper left corner: x0 is x and x1 is x + width, y likewise", boxes=True,
    ),
)
"""The order of the numbers."""
FRAMES = (
    Reading(
        "aspect.margins", "places in an image with margins (letterbox)",
        lambda at, size: at - _margins(size, max(size)),
        "Take the margins off before you scale back",
    ),
    Reading(
        "aspect.letterbox", "shares of a square in whose middle the image lies (letterbox)",
        lambda at, size: at / _shares(size, max(size)) - _margins(size, max(size)),
        "Multiply x and y by the longer side, and take the margins off",
    ),
    Reading(
        "aspect.letterbox_corner", "shares of a square in whose corner the image lies (letterbox)",
        lambda at, size: at / _shares(size, max(size)),
        "Multiply x and y by the longer side, not by width and height",
    ),
    Reading(
        "aspect.no_margins", "margins that were never there (letterbox)",
        lambda at, size: (at + _margins(size, max(size))) * _shares(size, max(size)),
        "The image is stretched over the model's frame: multiply x by width and y by height, and take nothing off",
    ),
    Reading(
        "aspect.longer_side", "shares of the longer side", lambda at, size: at * _shares(size, max(size)),
        "The image is stretched over the model's frame: multiply x by the width and y by the height",
    ),
    Reading(
        "aspect.crop", "places in a square cut out of the middle", lambda at, size: at - _margins(size, min(size)),
        "Add what was cut off at the left and at the top",
    ),
    Reading(
        "aspect.crop_shares", "shares of a square cut out of the middle",
        lambda at, size: at / _shares(size, min(size)) - _margins(size, min(size)),
        "Multiply x and y by the shorter side, and add what was cut off at the left and at the top",
    ),
)
"""The frame in which the numbers are counted."""
# fmt: on
AS_IS = Reading("", "pixels", lambda at, size: at, "")


@dataclass(frozen=True, slots=True)
class Fit:
    """How actual places depend on the expected ones: `offset + scale · expected` for x and y.

    Places count from the image's centre, in shares of its size. `scale ± margin` is its 99.9 % interval.
    """

    probe: str
    orientation: str
    images: int
    scale: tuple[float, float]
    offset: tuple[float, float]
    margin: tuple[float, float]

    @property
    def off(self) -> float:
        """How far the scale of the worse axis is from 1, if that is no chance."""
        far = [(abs(scale - 1), margin) for scale, margin in zip(self.scale, self.margin, strict=True)]
        return max((off for off, margin in far if off >= SCALED and off > margin), default=0.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """Errors by probe and number of the image, in shares of the image's size, and a fit per probe and orientation."""

    errors: dict[str, dict[int, float]]
    fits: list[Fit]
    orientations: dict[int, str]

    def medians(self) -> dict[str, float]:
        """The median error under each probe: over all images, or over those of an orientation, if it is worse there."""
        worst = {}
        for probe, some in self.errors.items():
            kinds = {kind: [far for n, far in some.items() if self.orientations[n] == kind] for kind in ORIENTATIONS}
            groups = [list(some.values()), *(each for each in kinds.values() if len(each) >= FEWEST)]
            if some:
                worst[probe] = max(float(np.median(each)) for each in groups)
        return worst

    @property
    def worst(self) -> float:
        return max(self.medians().values(), default=np.inf)

    @property
    def off_scale(self) -> float:
        """How far places at the edge of an image are off because of a scale, in shares of its size."""
        return max((fit.off / 2 for fit in self.fits), default=0.0)


def measure(examined: Examination, reading: Reading) -> Measured:
    """Compare answers to changed images with where they should be.

    Boxes that end at the frame are left out: more of an object may show if there is more room.
    Which side is left is another question: of both the better one counts.
    """
    errors: dict[str, dict[int, float]] = {}
    fits: list[Fit] = []
    orientations: dict[int, str] = {}
    for probe in PROBES:
        errors[probe] = {}
        places: dict[str, list[tuple[int, Floats, Floats]]] = {}
        for number, before, after, warp in examined.followed(probe):
            orientations[number] = orientation(warp.source)
            pairs = _pairs(examined, before, after, warp, reading)
            if not pairs:
                continue
            far = np.concatenate([np.linalg.norm(one - other, axis=1) for one, other in pairs])
            errors[probe][number] = float(np.median(far[np.isfinite(far)])) / max(warp.target)
            some = places.setdefault(orientations[number], [])
            some += [(number, one / warp.target - 0.5, other / warp.target - 0.5) for one, other in pairs]
        if probe != MIRROR:  # a mirror shows no scale, and sides that are exchanged look like one
            fits += [fit for kind, some in places.items() if (fit := _fitted(probe, kind, some)) is not None]
    return Measured(errors, fits, orientations)


def orientation(size: Size) -> str:
    width, height = size
    return "square" if 0.95 < width / height < 1.05 else "landscape" if width > height else "portrait"


def _pairs(
    examined: Examination, before: Output, after: Output, warp: Warp, reading: Reading
) -> list[tuple[Floats, Floats]]:
    """Expected and actual places of each subject or object that was found in both images."""
    sources, actual = examined.sure_marks(before), _read(examined.sure_marks(after), reading, warp.target)
    clear = [mark for mark in _read(sources, reading, warp.source) if not _cut(mark, warp.source)]
    ways = [_carried(clear, warp)]
    swap = swapped_sides(before)
    if swap is not None and warp.mirrors:
        ways.append([Mark(m.label, m.places[swap], m.score, m.scores) for m in ways[0]])
    off = [(float(np.median(far)), n) for n, way in enumerate(ways) if len(far := distances(way, actual))]
    return matched(ways[min(off)[1]], actual) if off else []


def _fitted(probe: str, kind: str, places: Sequence[tuple[int, Floats, Floats]]) -> Fit | None:
    """Fit a scale and an offset per axis. None if there are too few places to tell."""
    numbers = np.concatenate([np.full(len(one), number) for number, one, _ in places])
    expected, actual = (np.concatenate([pair[which] for pair in places]) for which in (1, 2))
    # models guess at landmarks beyond the frame
    known = (np.abs(expected) <= 0.5).all(1) & (np.abs(actual) <= 0.5).all(1)
    lines = [_scale(expected[known, axis], actual[known, axis], numbers[known]) for axis in (0, 1)]
    if any(line is None for line in lines):
        return None
    scale, offset, margin = (tuple(line[n] for line in lines if line) for n in range(3))
    return Fit(probe, kind, len(set(numbers[known])), scale, offset, margin)  # type: ignore[arg-type]


def _scale(expected: Floats, actual: Floats, numbers: npt.NDArray[np.int_]) -> tuple[float, float, float] | None:
    """Scale, offset and margin of one axis. The margin includes the scale that a fit the other way round finds.

    A model that often fails flattens both fits: its errors look like a scale, on different sides of the true one.
    """
    line, back = robust_line(expected, actual, numbers), robust_line(actual, expected, numbers)
    if line is None or back is None:
        return None
    scale, offset, margin = line
    other = 1 / back[0] if back[0] > 0 else np.inf
    return scale, offset, max(margin, abs(scale - other))


def _read(marks: Sequence[Mark], reading: Reading, size: Size) -> list[Mark]:
    return [Mark(mark.label, reading.read(mark.places, size), mark.score, mark.scores) for mark in marks]


def _cut(mark: Mark, size: Size) -> bool:
    """Whether a box ends at the frame: whoever cuts boxes there shows more of the object where there is more room."""
    if len(mark.places) != 2:
        return False
    low, high = mark.places.min(0), mark.places.max(0)
    return bool((np.abs(low) < 1.5).any() or (np.abs(high - size) < 1.5).any())


def _carried(marks: Sequence[Mark], warp: Warp) -> list[Mark]:
    """Through a warp; the corners of a box stay its upper left and lower right."""
    moved = []
    for mark in marks:
        places = warp.points(mark.places)
        if len(places) == 2:
            places = np.stack([places.min(0), places.max(0)])
        moved.append(Mark(mark.label, places, mark.score, mark.scores))
    return moved


def fitting(examined: Examination, readings: Sequence[Reading]) -> tuple[Measured, list[tuple[Reading, float]]]:
    """How far answers are astray as they are, and the readings under which they are not, the best ones first."""
    own = measure(examined, AS_IS)
    if sum(map(len, own.errors.values())) < FEWEST:
        after = sum(bool(pair.after.marks()) for probe in PROBES for pair in examined.followed(probe))
        if after < FEWEST:
            raise Skip(f"{'too little' if after else 'nothing'} was found in the changed images")
        raise Skip("what was found ends at the frame, or is not found again in the changed images")
    if max(own.worst, own.off_scale) < ASTRAY:
        return own, []
    boxes = examined.boxes
    better = []
    for reading in readings:
        if reading.boxes and not boxes:
            continue
        other = measure(examined, reading)
        both = [
            (far, other.errors[probe][n])
            for probe in PROBES
            for n, far in own.errors[probe].items()
            if n in other.errors[probe]
        ]
        left = max(other.worst, other.off_scale)
        agreed = np.mean([b <= a + 0.005 for a, b in both]) if both else 0.0
        nearer = other.worst < BETTER * own.worst
        straighter = own.off_scale > 0 and other.worst <= max(STRAIGHTER * own.worst, ASTRAY)
        scaled = other.off_scale <= BETTER * own.off_scale
        if len(both) >= FEWEST and (nearer or straighter) and scaled and agreed >= 0.8:
            better.append((reading, left))
    better.sort(key=lambda pair: pair[1])
    return own, [(reading, left) for reading, left in better if left <= better[0][1] + 0.004]


def explained(what: str, own: Measured, fits: Sequence[tuple[Reading, float]]) -> Result:
    """The readings that fit, with what to change."""
    names = ", or ".join(reading.words for reading, _ in fits)
    advice = ". Or: ".join(reading.advice for reading, _ in fits)
    best, left = fits[0]
    edge = f" ({percent(own.off_scale)} at its edge)" if own.off_scale > own.worst else ""
    return problem(
        best.code,
        f"{what} look like {names}: in changed images they are off by {percent(own.worst)} of the image's size{edge}, "
        f"read so only by {percent(left, 1)}. {advice}",
        error=own.worst,
        edge=own.off_scale,
        read=left,
        readings=[reading.code for reading, _ in fits],
        scales=scales_of(own.fits),
    )


def scales_of(fits: Sequence[Fit]) -> list[dict[str, object]]:
    """The fits as figures."""
    return [
        {"probe": fit.probe, "orientation": fit.orientation, "images": fit.images, "scale": fit.scale,
         "offset": fit.offset, "margin": fit.margin}
        for fit in fits
    ]  # fmt: skip
