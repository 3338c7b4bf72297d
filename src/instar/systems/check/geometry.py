"""Questions about coordinates: are they pixels, in which order, which side is left, do they follow the image's size?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from instar.case import Input
from instar.outputs import Output
from instar.outputs.marks import Mark
from instar.outputs.shares import SMALLEST, normalised
from instar.systems.check.examination import (
    Examination,
    Floats,
    Skip,
    State,
    distances,
    images_text,
    matched,
    percent,
    size_text,
    skeleton_of,
    swapped_sides,
)
from instar.systems.check.readings import AS_IS, ASTRAY, FRAMES, ORDERS, errors, explained, fitting
from instar.warp import Warp, inside

ADRIFT = 0.08
"""A share of the image's size: answers to changed images that are off by more need a word, whatever the cause."""
PIXEL = 1.05
"""Offsets up to here are those of pixel centres; larger ones have another cause."""


def carried(output: Output, warp: Warp, sides: Literal["swap", "keep"]) -> list[Mark]:
    """The marks of an answer carried by a warp.

    With `swap` a mirror exchanges left and right landmarks, as it should; with `keep` it does not. The corners of a box
    stay its upper left and lower right.
    """
    bones = skeleton_of(output)
    moved = []
    for mark in output.marks():
        places = warp.points(mark.places)
        if bones is None:
            places = np.stack([places.min(0), places.max(0)])
        elif warp.mirrors and sides == "swap":
            places = places[bones.swap]
        moved.append(Mark(mark.label, places, mark.score, mark.scores))
    return moved


def coordinates(examined: Examination) -> tuple[State, str]:
    examined.need_places()
    large = [(image, answer) for image, answer in examined.with_marks if min(image.size) >= SMALLEST]
    if not large:
        raise Skip(f"images of at least {SMALLEST}×{SMALLEST} are needed")
    places = np.concatenate([mark.places for _, answer in large for mark in answer.marks()])
    places = places[np.isfinite(places).all(1)]
    if normalised(places):
        size = size_text(large[0][0].size)
        return "problem", (
            f"coordinates lie between {places.min():.2f} and {places.max():.2f} in an image of {size}: they look "
            "normalised. Multiply x by width and y by height"
        )
    examined.pixels = True
    try:
        worst, fits = fitting(examined, ORDERS)
    except Skip:
        fits = []
    if fits:
        examined.astray = True
        return "problem", explained("coordinates", worst, fits)
    middles = [
        bool(inside(np.nanmean(mark.places, axis=0)[None], image.size)[0])
        for image, answer in large
        for mark in examined.sure_marks(answer)
    ]
    if np.mean(middles) < 0.5:
        return "problem", (
            f"most of what is found lies outside the frame ({_reach(places, ', ')}; the first image is "
            f"{size_text(large[0][0].size)}): "
            "they must be pixels of the image given, not of the model's input or of a crop"
        )
    reach = max(
        float(np.nanmax(np.abs(mark.places / image.size))) for image, answer in large for mark in answer.marks()
    )
    if reach > 4:
        return "warning", (f"a place lies {reach:.0f} times the image's size away; leave out what has no place (NaN)")
    return "ok", f"pixels, {_reach(places, ' and ')}"


def _reach(places: npt.NDArray[np.float64], between: str) -> str:
    """From where to where places are."""
    low, high = places.min(axis=0), places.max(axis=0)
    return between.join(f"{axis} {round(low[n])} to {round(high[n])}" for n, axis in enumerate("xy"))


def aspect(examined: Examination) -> tuple[State, str]:
    """Whether answers follow an image that is squeezed or has margins: the way into the model and back."""
    examined.need_pixels()
    worst, fits = fitting(examined, FRAMES)
    if fits:
        examined.astray = True
        return "problem", explained("places", worst, fits)
    if worst > ADRIFT:
        return "warning", (
            f"in a squeezed or padded image places are {percent(worst)} of its size from where they should be: see "
            "whether they go back through the same scaling and margins as the image, or whether the model cannot bear "
            "it"
        )
    kinds = {"mirror": "mirrored", "stretch": "squeezed", "pad": "padded"}
    compared = [probe.partition("(")[0] for probe, some in errors(examined, AS_IS).items() if some]
    *others, last = (words for kind, words in kinds.items() if kind in compared)
    seen = f"{', '.join(others)} or {last}" if others else last
    follow = f"places follow a {seen} image, within {percent(worst, 1)} of its size"
    if missing := " and ".join(words for kind, words in kinds.items() if kind not in compared):
        return "unsure", f"{follow}; {missing} ones could not be compared"
    return "ok", follow


def sides(examined: Examination) -> tuple[State, str]:
    examined.need_pixels()
    bones = next((skeleton_of(answer) for _, answer in examined.with_marks), None)
    if bones is None:
        raise examined.unsuited()
    unpaired = _unpaired(bones.landmarks, bones.swap)
    if unpaired:
        return "problem", (
            f"skeleton {bones.name} does not pair {unpaired[0]} with {unpaired[1]}: add it to pairs, or mirrored "
            "images are judged wrong"
        )
    paired = bones.swap != np.arange(len(bones.landmarks))
    if not paired.any():
        raise Skip(f"skeleton {bones.name} has no left/right pairs")
    pairs = examined.followed("mirror(h)")
    swapped, kept, width, only = [], [], [], {"swap": 0, "keep": 0}
    for before, after, warp in pairs:
        off = {side: distances(carried(before, warp, side), after.marks(), paired) for side in ("swap", "keep")}
        if len(off["swap"]) and len(off["keep"]):
            swapped.append(float(np.median(off["swap"])))
            kept.append(float(np.median(off["keep"])))
            width.append(_pair_distance(before.marks(), bones.pairs))
        for side in off:
            only[side] += len(off[side]) > 0
    if only["keep"] > 2 * only["swap"]:
        return "problem", (
            f"in {only['keep']} mirrored images what was found keeps its side: a left hand stays a left one. Exchange "
            "left and right in the output: they are the subject's own, as the image shows them"
        )
    if not swapped and only["swap"]:
        return "ok", f"in {only['swap']} mirrored images what was found changes its side"
    if not swapped:
        raise Skip("nothing was found in the mirrored images")
    with_swap, without, apart = (float(np.median(each)) for each in (swapped, kept, width))
    if apart < 4:
        raise Skip("left and right landmarks are less than 4 px apart here")
    if without < 0.5 * with_swap:
        return "problem", (
            f"in mirrored images landmarks keep their side: exchanged they are {with_swap:.1f} px off, kept only "
            f"{without:.1f} px. The skeleton's left and right names or its pairs are probably wrong, or in another "
            "order than the model's output"
        )
    behind = _from_behind(examined)
    if behind:
        return "warning", behind
    seen = f"mirrored answers are {with_swap:.1f} px off with the sides exchanged, {without:.1f} px without"
    if with_swap > 0.5 * without:
        return "unsure", f"{seen}: too close to tell. Ask more images, of subjects whose sides are far apart"
    stay, exchanged = _upside_down(examined, paired)
    if exchanged > stay:
        return "unsure", (
            f"{seen}; but in {exchanged} of {images_text(stay + exchanged)} turned upside down they are exchanged. "
            "Either sides are named by the picture (left is always the larger x), where they must be the person's own, "
            "or the model mistakes people who are upside down"
        )
    if not stay:
        return "ok", f"{seen}. Sides named by the picture would not show: nobody was found again upside down"
    return "ok", f"{seen}; upside down they stay with the person"


def _upside_down(examined: Examination, paired: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """In how many images that are turned by 180° the sides stay with the person, and in how many they are exchanged.

    Images count in which the landmarks are where they should be, whatever their side: many models that are right fail
    on people who are upside down. A system that takes the side from the picture exchanges them there, and in a mirror
    it looks right.
    """
    votes = []
    for before, after, warp in examined.followed("mirror(both)"):
        swap = swapped_sides(before)
        expected, actual = examined.sure_marks(before.warped(warp)), examined.sure_marks(after)
        other = [Mark(mark.label, mark.places[swap], mark.score, mark.scores) for mark in expected]
        off = [far for marks in (expected, other) if len(far := distances(marks, actual, paired))]
        if len(off) == 2:
            stay, exchanged = (float(np.median(far)) for far in off)
            if min(stay, exchanged) < min(ASTRAY * max(warp.target), 0.5 * max(stay, exchanged)):
                votes.append(stay < exchanged)
    return sum(votes), len(votes) - sum(votes)


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


def _from_behind(examined: Examination) -> str:
    """A remark where upright subjects all have their left at the image's left."""
    votes = []
    for _, answer in examined.with_marks:
        bones = skeleton_of(answer)
        if bones is None:
            continue
        plain = [name.rsplit(".", 1)[-1] for name in bones.landmarks]
        top = next((plain.index(n) for n in ("nose", "head_top", "neck") if n in plain), None)
        if top is None or "left_hip" not in plain:
            return ""
        hip = plain.index("left_hip")
        for mark in answer.marks():
            upright = mark.places[hip, 1] > mark.places[top, 1]
            lean = np.array([mark.places[a, 0] - mark.places[b, 0] for a, b in bones.pairs])
            lean = lean[np.isfinite(lean)]
            if upright and len(lean) and abs(lean.sum()) > 0.6 * np.abs(lean).sum():  # not seen from the side
                votes.append(lean.sum() > 0)
    if not votes or np.mean(votes) > 1 / 3:
        return ""
    return (
        f"in {len(votes) - sum(votes)} of {len(votes)} subjects the left side is at the image's left, as of someone "
        "seen from behind. If they face the camera, left and right are exchanged in the output: they are the "
        "subject's own, not the viewer's"
    )


def scale(examined: Examination) -> tuple[State, str]:
    examined.need_pixels()
    shifts, fixed, moved = [], [], []
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
                moved.append(float(np.median(far)) / max(warp.target))
                fixed.append(float(np.median(distances(examined.sure_marks(answer), actual))) / max(warp.target))
                shifts += [(b - a) / (1 - factor) for a, b in matched(expected, actual)]
    if not shifts:
        raise Skip("nothing was found in the scaled images")
    if np.median(moved) > 0.05 and np.median(fixed) < 0.5 * np.median(moved):
        return "problem", (
            "in an image twice as large the answer stays at the same coordinates: they seem to be pixels of the "
            "model's input. Multiply x by image width / input width, and y likewise"
        )
    flips = [
        (b - a) / 2
        for before, after, warp in examined.followed("mirror(h)")
        for a, b in matched(examined.sure_marks(before.warped(warp)), examined.sure_marks(after))
    ]
    size = float(np.median([max(image.size) for image, _ in examined.with_marks]))
    steady = _offset(np.concatenate(shifts), size)
    growing = (_offset(np.concatenate(flips), size)[0] if flips else 0.0, 0.0)  # a mirror says nothing about y
    x, y = (max((steady[axis], growing[axis]), key=abs) for axis in (0, 1))
    if x or y:
        return "warning", _offset_words(x, y, growing=not any(steady))
    if np.median(moved) > 0.05:
        return "warning", (
            f"in a rescaled image places are {percent(np.median(moved))} of its size from where they should be: see "
            "whether the coordinates go back through the same scaling and padding as the image"
        )
    return "ok", f"places follow the image's size, within {percent(np.median(moved), 1)} of it"


def _offset_words(x: float, y: float, *, growing: bool) -> str:
    ways = (x, "right" if x > 0 else "left"), (y, "down" if y > 0 else "up")
    where = " and ".join(f"{abs(off):.2g} px too far {way}" for off, way in ways if off)
    if max(abs(x), abs(y)) <= PIXEL:
        return (
            f"all places sit {where}. The centre of pixel (row i, column j) is (j + 0.5, i + 0.5): add 0.5 to pixel "
            "indices, and resize without aligning corners"
        )
    if growing:
        return (
            f"all places sit {where}, the more the larger the image is: the image is not put into the middle of the "
            "model's frame, or the answer is not taken back from there"
        )
    return (
        f"all places sit {where}, in images of any size: something is added that does not belong there, as the corner "
        "of a crop or a margin. Take it off"
    )


def _offset(shifts: Floats, size: float) -> tuple[float, float]:
    """What all landmarks are off by in x and y, 0 where they do not agree.

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
        sure = (large and spread < 0.5 * abs(middle) and agreed > 0.8) or (abs(middle) > 0.3 and spread < 0.1)
        offsets.append(middle if sure else 0.0)
    return offsets[0], offsets[1]


def fitting_factor(image: Input, factor: float) -> float:
    """The factor, or its inverse for images so large that enlarging them would only test memory."""
    return factor if image.size[0] * image.size[1] <= 4_000_000 else 1 / factor
