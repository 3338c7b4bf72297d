"""Questions about coordinates: are they pixels, in which order, which side is left, do they follow the image's size?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from instar.case import Input
from instar.outputs import Output
from instar.outputs.marks import Mark
from instar.outputs.shares import SMALLEST, normalised
from instar.systems.check.examination import (
    Examination,
    Floats,
    Followed,
    Skip,
    distances,
    matched,
    outvoted,
    percent,
    size_text,
    skeleton_of,
    swapped_sides,
    votes_missing,
)
from instar.systems.check.readings import (
    ADRIFT,
    ASTRAY,
    FEWEST,
    FRAMES,
    ORDERS,
    ORIENTATIONS,
    SCALED,
    Measured,
    explained,
    fitting,
    orientation,
    scales_of,
)
from instar.systems.check.results import Result, ok, problem, unsure, warning
from instar.warp import inside

PIXEL = 1.05
"""Offsets up to here are those of pixel centres; larger ones have another cause."""


def coordinates(examined: Examination) -> Result:
    examined.need_places()
    large = [(image, answer) for image, answer in examined.with_marks if min(image.size) >= SMALLEST]
    if not large:
        raise Skip(f"images of at least {SMALLEST}×{SMALLEST} are needed")
    places = np.concatenate([mark.places for _, answer in large for mark in answer.marks()])
    places = places[np.isfinite(places).all(1)]
    reached = {"low": places.min(axis=0), "high": places.max(axis=0)}
    if normalised(places):
        size = size_text(large[0][0].size)
        return problem(
            "coordinates.normalised",
            f"coordinates lie between {places.min():.2f} and {places.max():.2f} in an image of {size}: they look "
            "normalised. Multiply x by width and y by height",
            **reached,
        )
    examined.pixels = True
    try:
        own, fits = fitting(examined, ORDERS)
    except Skip:
        own, fits = None, []
    if own and fits:
        examined.astray = True
        return explained("coordinates", own, fits)
    middles = [
        bool(inside(np.nanmean(mark.places, axis=0)[None], image.size)[0])
        for image, answer in large
        for mark in examined.sure_marks(answer)
    ]
    if np.mean(middles) < 0.5:
        return problem(
            "coordinates.outside",
            f"most of what is found lies outside the frame ({_reach(places, ', ')}; the first image is "
            f"{size_text(large[0][0].size)}): "
            "they must be pixels of the image given, not of the model's input or of a crop",
            **reached,
        )
    reach = max(
        float(np.nanmax(np.abs(mark.places / image.size))) for image, answer in large for mark in answer.marks()
    )
    if reach > 4:
        words = f"a place lies {reach:.0f} times the image's size away; leave out what has no place (NaN)"
        return warning("coordinates.far", words, times=reach)
    return ok("coordinates.ok", f"pixels, {_reach(places, ' and ')}", **reached)


def _reach(places: npt.NDArray[np.float64], between: str) -> str:
    """From where to where places are."""
    low, high = places.min(axis=0), places.max(axis=0)
    return between.join(f"{axis} {round(low[n])} to {round(high[n])}" for n, axis in enumerate("xy"))


KINDS = {"mirror": "mirrored", "stretch": "squeezed", "pad": "padded"}
"""What the images of a probe are called."""


def aspect(examined: Examination) -> Result:
    """Ask whether answers follow an image that is mirrored, squeezed or has margins."""
    examined.need_pixels()
    own, fits = fitting(examined, FRAMES)
    if fits:
        examined.astray = True
        return explained("places", own, fits)
    off = _by_kind(own)
    figures = {"errors": off, "scales": scales_of(own.fits)}
    failed, follow = ([kind for kind in off if (off[kind] > ADRIFT) == bad] for bad in (True, False))
    if failed:
        kind, number, far = max(
            (
                (KINDS[probe.partition("(")[0]], number, far)
                for probe, some in own.errors.items()
                for number, far in some.items()
                if KINDS[probe.partition("(")[0]] in failed
            ),
            key=lambda each: each[2],
        )
        name = examined.images[number][0]
        others = max((off[each] for each in follow), default=0.0)
        rest = f", in {_either(follow, 'and')} ones at most {percent(others, 1)}" if follow else ""
        mirrored = failed == ["mirrored"]
        see = (
            "see whether the system treats a mirrored image in another way, or whether all places are off to one side, "
            "which a mirror doubles"
            if mirrored
            else "see whether places go back through the same scaling and margins as the image, or whether the model "
            "fails on such images"
        )
        return warning(
            "aspect.mirrored" if mirrored else "aspect.astray",
            f"in {_either(failed, 'and')} images, places are off by {_percents(off, failed)} of the image's size{rest}."
            f" The worst is {name}, {kind}: {percent(far)}. Check the adapter: {see}",
            worst={"image": name, "probe": kind, "error": far},
            **figures,
        )
    scaled = [fit for fit in own.fits if fit.off and fit.images >= FEWEST]
    if scaled:
        fit = max(scaled, key=lambda each: each.off)
        kind = KINDS[fit.probe.partition("(")[0]]
        x, y = (f"{each:.2f}" for each in fit.scale)
        return warning(
            "aspect.scaled",
            f"in {kind} {fit.orientation} images, places are scaled about the image's centre, x by {x} and y by {y}, "
            "as if margins (letterbox) stayed on or an aspect was lost. See whether places go back through the same "
            "scaling and margins as the image",
            **figures,
        )
    worst = max(off.values())
    most = max(off, key=lambda kind: off[kind])
    follows = f"places follow a {_either(list(off), 'or')} image, within {percent(worst, 1)} of its size"
    if worst >= ASTRAY:
        follows += f" (most in {most} ones)"
    known = [fit for fit in own.fits if fit.images >= FEWEST and max(fit.margin) < SCALED]
    if scales := [scale for fit in known for scale in fit.scale]:
        follows += f" and a scale of {min(scales):.2f} to {max(scales):.2f} about its centre"
    counts = Counter(own.orientations.values())
    if absent := [kind for kind in ("portrait", "landscape") if not counts[kind]]:
        follows += f"; no {_either(absent, 'or')} image was among them"
    figures["orientations"] = counts
    if missing := [kind for kind in KINDS.values() if kind not in off]:
        return unsure("aspect.unsure", f"{follows}; {_either(missing, 'and')} ones could not be compared", **figures)
    return ok("aspect.ok", follows, **figures)


def _by_kind(own: Measured) -> dict[str, float]:
    """The worse error of probes of one kind."""
    off: dict[str, float] = {}
    for probe, far in own.medians().items():
        kind = KINDS[probe.partition("(")[0]]
        off[kind] = max(far, off.get(kind, 0.0))
    return off


def _either(words: Sequence[str], between: str) -> str:
    *others, last = words
    return f"{', '.join(others)} {between} {last}" if others else last


def _percents(off: Mapping[str, float], kinds: Sequence[str]) -> str:
    return _either([percent(off[kind]) for kind in kinds], "and")


@dataclass(frozen=True, slots=True)
class _Votes:
    """Subjects whose sides a change exchanged, as it should, and those that kept theirs; how far off both would be."""

    exchanged: int
    kept: int
    off: tuple[float, float]

    @property
    def total(self) -> int:
        return self.exchanged + self.kept


def sides(examined: Examination) -> Result:
    examined.need_pixels()
    bones = next((skeleton_of(answer) for _, answer in examined.with_marks), None)
    if bones is None:
        raise examined.unsuited()
    unpaired = _unpaired(bones.landmarks, bones.swap)
    if unpaired:
        return problem(
            "sides.unpaired",
            f"skeleton {bones.name} does not pair {unpaired[0]} with {unpaired[1]}: add it to pairs, or mirrored "
            "images are judged wrong",
            landmarks=unpaired,
        )
    paired = bones.swap != np.arange(len(bones.landmarks))
    if not paired.any():
        raise Skip(f"skeleton {bones.name} has no left/right pairs")
    mirrored = examined.followed("mirror(h)")
    votes = _votes(mirrored, paired, examined, ADRIFT)
    if not votes.total:
        if not any(pair.after.marks() for pair in mirrored):
            raise Skip("nothing was found in the mirrored images")
        apart = [_pair_distance(pair.before.marks(), bones.pairs) for pair in mirrored]
        if 0 < float(np.median(apart)) < APART:
            raise Skip(f"left and right landmarks are less than {APART:g} px apart here")
    figures: dict[str, Any] = {"exchanged": votes.exchanged, "kept": votes.kept}
    missing = votes_missing(votes.exchanged, votes.total)
    off, off_kept = votes.off
    seen = f"in mirrored images, {votes.exchanged} of {subjects_text(votes.total)} change sides as they should"
    if not votes.total:
        seen = "in mirrored images, no subject is found again in its place"
    if np.isfinite([off, off_kept]).all():
        seen += f" (off by {off:.1f} px with the sides exchanged, {off_kept:.1f} px without)"
    if outvoted(votes.kept, votes.total):
        return problem(
            "sides.kept",
            f"{seen}; the others keep theirs: a left hand stays a left one. Exchange left and right in the output: "
            "they are the subject's own. Or see whether the skeleton's names and pairs are in the order of the model's "
            "output",
            **figures,
        )
    if not outvoted(votes.exchanged, votes.total):
        return unsure("sides.few", f"{seen}: too few to tell. {_more(missing)}", missing=missing, **figures)
    facing, upright = _facing(examined)
    figures |= {"facing": facing, "upright": upright}
    behind = (
        f"in {upright - facing} of {subjects_text(upright)} the left side is at the image's left, as of someone seen "
        "from behind"
    )
    if outvoted(upright - facing, upright) and facing <= upright / 3:
        return warning(
            "sides.swapped",
            f"{behind}. If they face the camera, left and right are exchanged in the output: they are the subject's "
            "own, not the viewer's",
            **figures,
        )
    if upright and facing <= upright / 3:
        missing = votes_missing(facing, upright)
        return unsure(
            "sides.maybe_swapped",
            f"{seen}; but {behind}. If they face the camera, left and right are exchanged in the output. "
            f"{_more(missing)} Take people who face the camera",
            missing=missing,
            **figures,
        )
    half_turned = examined.followed("mirror(both)")  # which leaves sides as they are
    down = _votes(half_turned, paired, examined, ASTRAY)
    figures |= {"upside_down": {"stay": down.kept, "exchanged": down.exchanged}}
    if down.exchanged > down.kept:
        return unsure(
            "sides.by_picture",
            f"{seen}; but {down.exchanged} of {subjects_text(down.total)} turned upside down have them exchanged. "
            "Either sides are named by the picture (left is always the larger x), and must be the person's own, or the "
            "model mistakes people who are upside down",
            **figures,
        )
    if not down.kept:
        words = f"{seen}. Sides named by the picture would not show: nobody was found again upside down"
        return ok("sides.ok", words, **figures)
    return ok("sides.ok", f"{seen}; upside down they stay with the person", **figures)


def _more(missing: int) -> str:
    return f"At least {missing} more {'subject is' if missing == 1 else 'subjects are'} needed: ask more images."


def subjects_text(count: int) -> str:
    return f"{count} subject{'' if count == 1 else 's'}"


APART = 4.0
"""Pixels between left and right landmarks from which on their sides can be told."""


def _votes(pairs: Sequence[Followed], paired: npt.NDArray[np.bool_], examined: Examination, near: float) -> _Votes:
    """Count subjects that a change carries to where they should be with their sides exchanged, and with them kept.

    A subject votes if it is found again, within `near` of the image's size, and one of both fits much better than the
    other: models that are right fail on some images, such as people who are upside down.
    """
    exchanged = kept = 0
    every: list[tuple[float, float]] = []
    for _, before, after, warp in pairs:
        swap = swapped_sides(before)
        left = list(examined.sure_marks(after))
        for mark in examined.sure_marks(before):
            at = warp.points(mark.places)
            ways = [(_off(at[swap], other, paired), _off(at, other, paired)) for other in left]
            if not ways:
                break
            best = min(range(len(ways)), key=lambda n: min(ways[n]))
            with_swap, without = ways[best]
            better, worse = sorted((with_swap, without))
            if better > near * max(warp.target) or not (worse - better > APART / 2 and better < 0.5 * worse):
                continue
            left.pop(best)
            exchanged += with_swap < without
            kept += without < with_swap
            every.append((with_swap, without))
    off = tuple(float(np.median(some)) for some in zip(*every, strict=True)) if every else (np.inf, np.inf)
    return _Votes(exchanged, kept, off)  # type: ignore[arg-type]


def _off(expected: Floats, actual: Mark, paired: npt.NDArray[np.bool_]) -> float:
    """The median distance of landmarks that have a side; ∞ if none was found in both."""
    far = np.linalg.norm(expected - actual.places, axis=1)[paired]
    far = far[np.isfinite(far)]
    return float(np.median(far)) if len(far) else np.inf


def _unpaired(landmarks: Sequence[str], swap: npt.NDArray[np.intp]) -> tuple[str, str] | None:
    """The first landmark called left that has a namesake called right and is not paired."""
    place = {name: i for i, name in enumerate(landmarks)}
    for i, name in enumerate(landmarks):
        other = place.get(re.sub(r"(?<![a-z])left(?![a-z])", "right", name), i)
        if other != i and swap[i] == i:
            return name, landmarks[other]
    return None


def _pair_distance(marks: Sequence[Mark], pairs: Sequence[tuple[int, int]]) -> float:
    left, right = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    apart = [np.linalg.norm(mark.places[left] - mark.places[right], axis=1) for mark in marks]
    every = np.concatenate(apart)
    every = every[np.isfinite(every)]
    return float(np.median(every)) if len(every) else 0.0


def _facing(examined: Examination) -> tuple[int, int]:
    """How many upright subjects have their left at the image's right, as people do who face the camera; of how many."""
    votes = []
    for _, answer in examined.with_marks:
        bones = skeleton_of(answer)
        if bones is None:
            continue
        plain = [name.rsplit(".", 1)[-1] for name in bones.landmarks]
        top = next((plain.index(n) for n in ("nose", "head_top", "neck") if n in plain), None)
        if top is None or "left_hip" not in plain:
            return 0, 0
        hip = plain.index("left_hip")
        for mark in examined.sure_marks(answer):
            upright = mark.places[hip, 1] > mark.places[top, 1]
            lean = np.array([mark.places[a, 0] - mark.places[b, 0] for a, b in bones.pairs])
            lean = lean[np.isfinite(lean)]
            if upright and len(lean) and abs(lean.sum()) > 0.6 * np.abs(lean).sum():  # not seen from the side
                votes.append(lean.sum() > 0)
    return sum(votes), len(votes)


def scale(examined: Examination) -> Result:
    examined.need_pixels()
    shifts: list[tuple[str, Floats]] = []
    fixed, moved, answers = [], [], []
    for factor in sorted({fitting_factor(image, 2.0) for image, _ in examined.with_marks}):
        for image, answer in examined.with_marks:
            if fitting_factor(image, 2.0) != factor:
                continue
            after, warp = examined.changed(image, f"rescale({factor:g})")
            if isinstance(after, Exception):
                continue
            expected, actual = examined.sure_marks(answer.warped(warp)), examined.sure_marks(after)
            far = distances(expected, actual)
            if len(far):
                answers += [answer, after]
                kind = orientation(warp.source)
                moved.append((kind, float(np.median(far)) / max(warp.target), examined.name_of(image), factor))
                fixed.append(float(np.median(distances(examined.sure_marks(answer), actual))) / max(warp.target))
                shifts += [(kind, (b - a) / (1 - factor)) for a, b in matched(expected, actual)]
    if not shifts:
        raise Skip("nothing was found in the scaled images")
    error = float(np.median([far for _, far, _, _ in moved]))
    _, worst, name, factor = max(moved, key=lambda each: each[1])
    half = "half" if factor < 1 else "twice"
    if error > 0.05 and np.median(fixed) < 0.5 * error:
        return problem(
            "scale.model_pixels",
            f"in an image {half} as large the answer stays at the same coordinates: they seem to be pixels of the "
            "model's input. Multiply x by image width / input width, and y likewise",
            error=error,
        )
    size = float(np.median([max(image.size) for image, _ in examined.with_marks]))
    flips = [
        (orientation(warp.source), number, (b - a) / 2)
        for number, before, after, warp in examined.followed("mirror(h)")
        for a, b in matched(examined.sure_marks(before.warped(warp)), examined.sure_marks(after))
    ]
    precise = not _rounded(answers)
    kinds = Counter(kind for kind, *_ in moved)
    for chosen in (ORIENTATIONS, *((kind,) for kind in ORIENTATIONS if kinds[kind] >= FEWEST)):
        some = [shift for kind, shift in shifts if kind in chosen]
        steady = _offset(np.concatenate(some), size, precise) if some else (0.0, 0.0)
        turned = [(number, shift) for kind, number, shift in flips if kind in chosen]
        mirrored = _offset(np.concatenate([shift for _, shift in turned]), size, precise)[0] if turned else 0.0
        x, y = max((steady[0], mirrored), key=abs), steady[1]  # a mirror says nothing about y
        if x or y:
            where = "" if chosen == ORIENTATIONS else f" in {chosen[0]} images"
            return _offset_found(x, y, where, [] if any(steady) else _widths(examined, turned))
    if error > 0.05:
        return warning(
            "scale.astray",
            f"in a rescaled image places are {percent(error)} of its size from where they should be (most in {name}, "
            f"{half} as large: {percent(worst)}): see whether the coordinates go back through the same scaling and "
            "padding as the image",
            error=error,
            worst={"image": name, "factor": factor, "error": worst},
        )
    return ok("scale.ok", f"places follow the image's size, within {percent(error, 1)} of it", error=error)


def _widths(examined: Examination, turned: Sequence[tuple[int, Floats]]) -> list[tuple[int, float]]:
    """Widths of images with the offset that the mirror shows in them, the smallest first."""
    by_image: dict[int, list[Floats]] = {}
    for number, shift in turned:
        by_image.setdefault(number, []).append(shift[:, 0])
    offsets: dict[int, list[float]] = {}
    for number, some in by_image.items():
        image = examined.images[number][1]
        offsets.setdefault(image.size[0], []).append(float(np.nanmedian(np.concatenate(some))))
    return sorted((width, float(np.median(some))) for width, some in offsets.items())


def grows(offsets: Sequence[tuple[int, float]]) -> bool:
    """Whether offsets in images of at least three widths rise with the width, and in proportion to it."""
    if len(offsets) < FEWEST:
        return False
    width, off = np.array(offsets, np.float64).T
    rises = bool((np.diff(np.abs(off)) > 0).all())
    slope = float((width * off).sum() / (width**2).sum())
    return rises and float(np.abs(off - slope * width).max()) < 0.5 * float(np.ptp(off))


def _offset_found(x: float, y: float, where: str, widths: Sequence[tuple[int, float]]) -> Result:
    """Describe an offset. `widths` has the offsets by width, if only a mirror shows it."""
    ways = (x, "right" if x > 0 else "left"), (y, "down" if y > 0 else "up")
    off = " and ".join(f"{abs(far):.2g} px too far {way}" for far, way in ways if far)
    figures: dict[str, Any] = {"x": x, "y": y}
    if max(abs(x), abs(y)) <= PIXEL:
        return warning(
            "scale.half_pixel",
            f"all places{where} sit {off}. The centre of pixel (row i, column j) is (j + 0.5, i + 0.5): add 0.5 to "
            "pixel indices, and resize without aligning corners",
            **figures,
        )
    if widths:
        growing = grows(widths)
        (small, least), (large, most) = widths[0], widths[-1]
        more = (
            f", the more the wider the image is ({abs(least):.2g} px at a width of {small}, {abs(most):.2g} px at "
            f"{large})"
            if growing
            else ", as mirrored images show"
        )
        return warning(
            "scale.growing_offset" if growing else "scale.mirror_offset",
            f"all places{where} sit {off}{more}. See whether the image is put into the middle of the model's frame, "
            "and the answer is taken back from there",
            widths=widths,
            **figures,
        )
    return warning(
        "scale.offset",
        f"all places{where} sit {off}, and by as many pixels in rescaled images: something is added that does not "
        "belong there, such as the corner of a crop or a margin. Take it off",
        **figures,
    )


def _rounded(answers: Sequence[Output]) -> bool:
    """Whether all places are whole pixels, or all the middles of pixels: rounding is off by half a pixel itself."""
    every = np.concatenate([mark.places for answer in answers for mark in answer.marks()])
    parts = every[np.isfinite(every)] % 1
    return bool(len(parts)) and float(np.ptp(parts)) < 1e-6


def _offset(shifts: Floats, size: float, precise: bool) -> tuple[float, float]:
    """What all landmarks are off by in x and y, 0 if they do not agree.

    A precise system shows half a pixel; one that is not must be off by more than one, and by 0.5 % of the image's size.
    """
    offsets = []
    for axis in (0, 1):
        every = shifts[:, axis][np.isfinite(shifts[:, axis])]
        if len(every) < 4:
            offsets.append(0.0)
            continue
        middle = float(np.median(every))
        spread = float(np.median(np.abs(every - middle)))
        agreed = float(np.mean(np.sign(every) == np.sign(middle)))
        large = abs(middle) > max(1.0, 0.005 * size)
        sure = (large and spread < 0.5 * abs(middle) and agreed > 0.8) or (
            precise and abs(middle) > 0.3 and spread < 0.1
        )
        offsets.append(middle if sure else 0.0)
    return offsets[0], offsets[1]


def fitting_factor(image: Input, factor: float) -> float:
    """The factor, or its inverse for images so large that enlarging them would only test memory."""
    return factor if image.size[0] * image.size[1] <= 4_000_000 else 1 / factor
