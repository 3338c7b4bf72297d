"""Is this adapter right? Questions with known answers, asked of a system before a night is spent on it.

Each finding says what was seen and what to change. A system that raises gets a finding, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from instar.image import Image
from instar.outputs import Output
from instar.outputs.detections import Detections
from instar.outputs.poses import Poses
from instar.systems.system import System
from instar.transforms import Transformation, transformation
from instar.warp import Size, Warp, inside

__all__ = ["Finding", "check_system"]

Floats = npt.NDArray[np.float64]
State = Literal["ok", "warning", "problem", "skipped"]
Answer = Output | Exception

SAME = 0.01
"""Pixels within which two answers are the same: less than any threshold, more than a float's rounding."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was seen and, where it is not ok, what to change."""

    name: str
    state: State
    message: str


def check_system(
    system: System, images: Sequence[tuple[str, Image]], *, samples: int = 8
) -> tuple[list[Finding], list[tuple[str, Image, Output]]]:
    """Findings about a system's adapter, always the same ones in one order, and its answers to the images.

    At most `samples` of the named images are used, each predicted about ten times. Photos that show what the
    system looks for, seen from the front, say most.
    """
    if not images:
        raise ValueError("checking a system needs at least one image")
    if samples < 1:
        raise ValueError(f"samples is at least 1, got {samples}")
    look = _Look(system, list(images[:samples]))
    findings = [_guarded(name, check, look) for name, check in _CHECKS]
    shown = [
        (name, image, answer)
        for (name, image), answer in zip(look.images, look.first, strict=True)
        if not isinstance(answer, Exception)
    ]
    return findings, shown


@dataclass
class _Look:
    """The system under check, what it was asked and what has come out so far."""

    system: System
    images: list[tuple[str, Image]]
    first: list[Answer] = field(default_factory=list)
    asked: dict[str, tuple[list[tuple[Output, Output, Warp]], str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    writes: bool = False
    steady: bool = False
    pixels: bool = False
    exchanged: bool = False

    def ask(self, images: Sequence[Image], seed: int = 0) -> list[Answer]:
        """Answers to copies, so that a system that writes into its inputs spoils nothing but itself."""
        given = [Image(image.pixels.copy()) for image in images]
        start = time.perf_counter()
        try:
            answers: list[Answer] = list(self.system.answer(given, [seed] * len(given)))
        except (Exception, SystemExit) as error:
            wrong = error if isinstance(error, Exception) else RuntimeError(f"it called sys.exit({error})")
            answers = [wrong] * len(given)
        self.seconds.append((time.perf_counter() - start) / len(given))
        same = all(np.array_equal(a.pixels, b.pixels) for a, b in zip(given, images, strict=True))
        self.writes |= not same
        return answers

    def one(self, image: Image, seed: int = 0) -> Answer:
        return self.ask([image], seed)[0]

    @property
    def found(self) -> list[tuple[Image, Output]]:
        """Images in which something was found, with the answer."""
        return [
            (image, answer)
            for (_, image), answer in zip(self.images, self.first, strict=True)
            if not isinstance(answer, Exception) and _marks(answer)
        ]

    def followed(self, how: str) -> tuple[list[tuple[Output, Output, Warp]], str]:
        """Each found answer with the one to the transformed image; and the first error there was."""
        if how in self.asked:
            return self.asked[how]
        pairs: list[tuple[Output, Output, Warp]] = []
        trouble = ""
        transform = transformation(how)
        for image, answer in self.found:
            changed, change = transform(image)
            after = self.one(changed)
            if isinstance(after, Exception):
                trouble = trouble or f"{_told(after)} on an image after {how}"
            else:
                pairs.append((answer, after, change.warp))
        self.asked[how] = pairs, trouble
        return pairs, trouble


class _Skip(Exception):
    """A check that has no meaning here; the message says why."""


_Check = Callable[[_Look], tuple[State, str]]


def _guarded(name: str, check: _Check, look: _Look) -> Finding:
    try:
        return Finding(name, *check(look))
    except _Skip as reason:
        return Finding(name, "skipped", str(reason))
    except Exception as error:  # an answer nobody thought of is a finding about the system, not a crash
        return Finding(name, "problem", f"the answers could not be compared: {_told(error)}")


# --- what an output holds, whatever its kind -------------------------------------------------------


@dataclass(frozen=True)
class _Mark:
    """One subject or object: its class, its places (K, 2), and how sure the system is of it."""

    label: str
    places: Floats
    score: float


def _marks(output: Output) -> list[_Mark]:
    if isinstance(output, Poses):
        seen = np.where(np.isnan(output.points[..., 0]), np.nan, output.visibility)
        sure = output.scores * np.nanmean(seen, axis=1) if len(output) else output.scores
        return [
            _Mark("", points.astype(np.float64), float(score))
            for points, score in zip(output.points, sure, strict=True)
        ]
    if isinstance(output, Detections):
        return [
            _Mark(label, box.reshape(2, 2).astype(np.float64), float(score))
            for box, label, score in zip(output.boxes, output.labels, output.scores, strict=True)
        ]
    return []


def _with_places(look: _Look) -> None:
    """Skip unless there are places to compare."""
    if look.system.kind not in (Poses.kind, Detections.kind):
        raise _Skip(f"{look.system.kind} have no coordinates to compare")
    if not look.found:
        raise _Skip("nothing was found in any image")


def _in_pixels(look: _Look) -> None:
    _with_places(look)
    if not look.pixels:
        raise _Skip("the coordinates must be pixels first")


def _matched(a: Output, b: Output) -> list[tuple[Floats, Floats]]:
    """Places of the same subject or object in two answers, the nearest first."""
    first, second = _marks(a), _marks(b)
    costs = []
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            if one.label != other.label:
                continue
            apart = np.linalg.norm(one.places - other.places, axis=1)
            if np.isfinite(apart).any():
                costs.append((float(np.nanmean(apart)), i, j))
    pairs, used_i, used_j = [], set(), set()
    for _, i, j in sorted(costs):
        if i not in used_i and j not in used_j:
            used_i.add(i)
            used_j.add(j)
            pairs.append((first[i].places, second[j].places))
    return pairs


def _apart(a: Output, b: Output) -> Floats:
    """Distances in pixels between all matched places."""
    found = [np.linalg.norm(one - other, axis=1) for one, other in _matched(a, b)]
    every = np.concatenate(found) if found else np.array([])
    return np.asarray(every[np.isfinite(every)], dtype=np.float64)


def _difference(a: Answer, b: Answer) -> str:
    """In words how two answers to the same input differ; empty where they are the same."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        wrong = next((e for e in (a, b) if isinstance(e, Exception)), None)
        both = isinstance(a, Exception) and isinstance(b, Exception)
        return "" if both or wrong is None else f"one of them is an error ({_told(wrong)})"
    if _rows_equal(a, b):
        return ""
    first, second = _marks(a), _marks(b)
    if len(first) != len(second):
        return f"{len(first)} found in one and {len(second)} in the other"
    present = [
        sorted((mark.label, int(np.isfinite(mark.places[:, 0]).sum())) for mark in marks) for marks in (first, second)
    ]
    if present[0] != present[1]:
        return "other classes or landmarks found"
    worst = float(_apart(a, b).max(initial=0)) if first else np.inf
    surer = max((abs(x.score - y.score) for x, y in zip(first, second, strict=True)), default=0.0)
    if worst <= SAME and surer <= 0.001:
        return ""
    if not first:
        return "the answers differ"
    return f"places up to {worst:.3g} px apart" if worst > SAME else f"scores up to {surer:.2g} apart"


def _rows_equal(a: Output, b: Output) -> bool:
    one, other = a.row(), b.row()
    return one.keys() == other.keys() and all(
        np.array_equal(one[key], other[key], equal_nan=isinstance(one[key], np.ndarray)) for key in one
    )


def _told(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def _size(size: Size) -> str:
    return f"{size[0]}×{size[1]}"


# --- the checks ------------------------------------------------------------------------------------

_READ_ONLY = re.compile(r"read-?only|writ(e)?able|WRITEABLE", re.IGNORECASE)


def _answers(look: _Look) -> tuple[State, str]:
    look.first = [look.one(image) for _, image in look.images]
    wrong = [
        (name, answer)
        for (name, _), answer in zip(look.images, look.first, strict=True)
        if isinstance(answer, Exception)
    ]
    if not wrong:
        return "ok", f"{len(look.first)} of {len(look.first)} images answered with {look.system.kind}"
    name, error = wrong[0]
    message = f"{len(wrong)} of {len(look.first)} images failed, first {name}: {_told(error)}"
    if re.search(r"^expected \w+|returned \d+ answers|not iterable", str(error)):
        message += f"; return one output of kind {look.system.kind} per image"
    return "problem", message


def _input(look: _Look) -> tuple[State, str]:
    errors = [answer for answer in look.first if isinstance(answer, Exception)]
    if any(_READ_ONLY.search(str(error)) for error in errors):
        return "problem", (
            "the system writes into the image it is given, which is read-only; "
            "let it work on a copy: image = image.copy()"
        )
    if look.writes:
        return "problem", (
            "the system changed the pixels it was given; later rules would see a changed "
            "picture. "
            "Let it work on a copy: image = image.copy()"
        )
    if len(errors) == len(look.first):
        raise _Skip("no image was answered")
    return "ok", "the pixels stay as they were"


def _finds(look: _Look) -> tuple[State, str]:
    if look.system.kind not in (Poses.kind, Detections.kind):
        raise _Skip(f"{look.system.kind} have no subjects to count")
    answered = sum(not isinstance(answer, Exception) for answer in look.first)
    if not answered:
        raise _Skip("no image was answered")
    counts = [len(_marks(answer)) for _, answer in look.found]
    if not counts:
        return "warning", (
            f"nothing was found in any of {answered} images: use images that show what the "
            "system "
            "looks for, return answers of low confidence too, and see whether the colour "
            "channels and the size of the input are what it was trained on"
        )
    return "ok", f"something was found in {len(counts)} of {answered} images, {sum(counts)} in all"


def _repeats(look: _Look) -> tuple[State, str]:
    if all(isinstance(answer, Exception) for answer in look.first):
        raise _Skip("no image was answered")
    pictures = [image for _, image in look.images]
    # Backwards and forwards again: a system that remembers the last image (tracking) shows itself.
    again = [look.one(image) for image in reversed(pictures)][::-1]
    third = [look.one(image) for image in pictures]
    unlike = next(
        (
            words
            for answers in (again, third)
            for a, b in zip(look.first, answers, strict=True)
            if (words := _difference(a, b))
        ),
        "",
    )
    look.steady = not unlike
    if look.system.deterministic:
        if unlike:
            return "problem", (
                "declared deterministic, but the same image was answered differently: "
                f"{unlike}. "
                "Switch off tracking from image to image and anything random, "
                "or declare it with deterministic=False"
            )
        return "ok", "the same image gets the same answer, three times and in any order"
    if look.system.seedable and unlike:
        return "problem", (
            f"the same image with the same seed was answered differently: {unlike}. Hand the "
            "seed to "
            "every random generator the model uses, or declare seedable=False"
        )
    other = [look.one(image, seed) for seed in (1, 2) for image in pictures] if look.system.seedable else []
    varied = unlike or any(_difference(a, b) for a, b in zip(look.first * 2, other, strict=False))
    if not varied:
        seeds = ", whatever the seed" if look.system.seedable else ""
        return "warning", (
            f"declared stochastic, but three predictions never differed{seeds}: "
            "declare deterministic=True and repeats cost nothing"
        )
    if look.system.seedable:
        return "ok", "answers differ from seed to seed and repeat with the same seed"
    return "ok", "answers differ from prediction to prediction, as declared"


def _coordinates(look: _Look) -> tuple[State, str]:
    _with_places(look)
    large = [(image, answer) for image, answer in look.found if min(image.size) >= 16]
    if not large:
        raise _Skip("images of at least 16×16 are needed")
    places = np.concatenate([mark.places for _, answer in large for mark in _marks(answer)])
    places = places[np.isfinite(places).all(1)]
    if len(places) > 1 and np.abs(places).max() <= 2.5 and np.median(np.abs(places)) <= 1:
        size = _size(large[0][0].size)
        return "problem", (
            f"coordinates lie between {places.min():.2f} and {places.max():.2f} in an image "
            "of "
            f"{size}: they look normalised. Multiply x by width and y by height"
        )
    look.pixels = True
    kept, turned = _readings(look)
    if turned < 0.5 * kept and kept > 0.03:
        look.exchanged = True
        return "problem", (
            f"coordinates look like (y, x): in a mirrored image they are {kept:.0%} of the "
            "image's "
            f"size from where they should be, read as (y, x) only {turned:.0%}. Exchange the "
            "two"
        )
    outside = [
        (~inside(mark.places, image.size))[np.isfinite(mark.places[:, 0])].mean()
        for image, answer in large
        for mark in _marks(answer)
    ]
    if np.median(outside) > 0.5:
        return "problem", (
            f"most places lie outside the frame (x {places[:, 0].min():.0f} to "
            f"{places[:, 0].max():.0f}, y {places[:, 1].min():.0f} to "
            f"{places[:, 1].max():.0f}; the "
            f"first image is {_size(large[0][0].size)}): they must be pixels of the image "
            "given, "
            "not of the model's input or of a crop"
        )
    reach = max(
        float(np.nanmax(np.abs(mark.places / image.size))) for image, answer in large for mark in _marks(answer)
    )
    if reach > 4:
        return "warning", (f"a place lies {reach:.0f} times the image's size away; leave out what has no place (NaN)")
    return "ok", (
        f"pixels, x {places[:, 0].min():.0f} to {places[:, 0].max():.0f} and "
        f"y {places[:, 1].min():.0f} to {places[:, 1].max():.0f}"
    )


def _exchanged(output: Output) -> Output:
    """The answer with x and y exchanged."""
    if isinstance(output, Poses):
        return replace(output, points=output.points[..., ::-1])
    if isinstance(output, Detections):
        return replace(output, boxes=output.boxes[:, [1, 0, 3, 2]], masks=None)
    return output


def _kept_sides(output: Output, warp: Warp) -> Output:
    """The answer carried by a warp, left and right not exchanged."""
    if isinstance(output, Poses):
        return replace(output, points=warp.points(output.points).astype(np.float32))
    return output.warped(warp)


def _readings(look: _Look) -> tuple[float, float]:
    """How far mirrored answers are from where they should be, read as (x, y) and as (y, x).

    In shares of the image's size. Which side is left is another question: each takes the better of both.
    """
    pairs, _ = look.followed("mirror(h)")
    shares: list[list[float]] = [[], []]
    for before, after, warp in pairs:
        for number, read in enumerate((lambda o: o, _exchanged)):
            a, b = read(before), read(after)
            off = [_apart(a.warped(warp), b), _apart(_kept_sides(a, warp), b)]
            if all(len(each) for each in off):
                shares[number].append(min(float(np.median(each)) for each in off) / max(warp.source))
    return (float(np.median(shares[0])), float(np.median(shares[1]))) if all(shares) else (0.0, 0.0)


def _scores(look: _Look) -> tuple[State, str]:
    _with_places(look)
    every = []
    for _, answer in look.found:
        if isinstance(answer, Poses):
            every += [answer.scores, answer.visibility[~np.isnan(answer.points[..., 0])]]
        elif isinstance(answer, Detections):
            every.append(answer.scores)
    scores = np.concatenate([np.ravel(each) for each in every])
    low, high = float(scores.min()), float(scores.max())
    if low < 0 or high > 1:
        fix = "divide by 100" if low >= 0 and 1.5 < high <= 100 else "pass logits through a sigmoid, or clip"
        return "problem", (f"scores or visibilities lie between {low:.3g} and {high:.3g}, they must be 0 to 1: {fix}")
    if low == high:
        return "ok", f"all are {low:.3g}: without scores of its own the system cannot be judged by confidence"
    return "ok", f"between {low:.2g} and {high:.2g}"


def _channels(look: _Look) -> tuple[State, str]:
    if look.system.kind not in (Poses.kind, Detections.kind):
        raise _Skip(f"{look.system.kind} have no scores to compare")
    swap = transformation("colour_channels((1, 1, 1), encoding=bgr)")
    ours, theirs = [], []
    for (_, image), answer in zip(look.images, look.first, strict=True):
        other = look.one(swap(image)[0])
        if not isinstance(answer, Exception) and not isinstance(other, Exception):
            ours.append(sum(mark.score for mark in _marks(answer)))
            theirs.append(sum(mark.score for mark in _marks(other)))
    if not ours:
        raise _Skip("no image was answered")
    if not any(ours) and not any(theirs):
        raise _Skip("nothing was found in any image, whichever way the channels are")
    rgb, bgr = float(np.mean(ours)), float(np.mean(theirs))
    better = np.mean([b > a for a, b in zip(ours, theirs, strict=True)])
    if bgr > 1.2 * rgb and bgr - rgb > 0.1 and better >= 0.6:
        return "warning", (
            "with red and blue exchanged the system finds more: its scores add up to "
            f"{bgr:.2f} per "
            f"image instead of {rgb:.2f}. Your model seems to expect BGR; images are RGB: "
            "image[..., ::-1]"
        )
    return "ok", f"scores add up to {rgb:.2f} per image, with red and blue exchanged to {bgr:.2f}"


def _sides(look: _Look) -> tuple[State, str]:
    if look.system.kind != Poses.kind:
        raise _Skip(f"{look.system.kind} have no left and right")
    _in_pixels(look)
    bones = next(answer.skeleton for _, answer in look.found if isinstance(answer, Poses))
    unpaired = _unpaired(bones.landmarks, bones.swap)
    if unpaired:
        return "problem", (
            f"skeleton {bones.name} does not pair {unpaired[0]} with {unpaired[1]}: add it "
            "to pairs, "
            "or mirrored images are judged wrong"
        )
    paired = bones.swap != np.arange(len(bones.landmarks))
    if not paired.any():
        raise _Skip(f"skeleton {bones.name} has no left/right pairs")
    pairs, trouble = look.followed("mirror(h)")
    swapped, kept, width = [], [], []
    for before, after, warp in pairs:
        a, b = (_exchanged(before), _exchanged(after)) if look.exchanged else (before, after)
        carried = [_only(_matched(each, b), paired) for each in (a.warped(warp), _kept_sides(a, warp))]
        if len(carried[0]) and len(carried[1]):
            swapped.append(float(np.median(carried[0])))
            kept.append(float(np.median(carried[1])))
            width.append(_pair_distance(a, bones.pairs))
    if not swapped:
        if trouble:
            return "problem", trouble
        raise _Skip("nothing was found in the mirrored images")
    with_swap, without, apart = (float(np.median(each)) for each in (swapped, kept, width))
    if apart < 4:
        raise _Skip("left and right landmarks are less than 4 px apart here")
    if without < 0.5 * with_swap:
        return "problem", (
            "in mirrored images landmarks keep their side: exchanged they are "
            f"{with_swap:.1f} px off, "
            f"kept only {without:.1f} px. The skeleton's left and right names or its pairs "
            "are "
            "probably wrong, or in another order than the model's output"
        )
    behind = _from_behind(look)
    if behind:
        return "warning", behind
    seen = f"mirrored answers are {with_swap:.1f} px off with the sides exchanged, {without:.1f} px without"
    if with_swap > 0.5 * without:
        return "ok", f"{seen}: too close to tell"
    return "ok", seen


def _unpaired(landmarks: Sequence[str], swap: npt.NDArray[np.intp]) -> tuple[str, str] | None:
    """The first landmark called left that has a namesake called right and is not paired."""
    place = {name: i for i, name in enumerate(landmarks)}
    for i, name in enumerate(landmarks):
        other = place.get(re.sub(r"(?<![a-z])left(?![a-z])", "right", name), i)
        if other != i and swap[i] == i:
            return name, landmarks[other]
    return None


def _only(pairs: list[tuple[Floats, Floats]], chosen: npt.NDArray[np.bool_]) -> Floats:
    found = [np.linalg.norm(a - b, axis=1)[chosen] for a, b in pairs]
    every = np.concatenate(found) if found else np.array([])
    return np.asarray(every[np.isfinite(every)], dtype=np.float64)


def _pair_distance(output: Output, pairs: Sequence[tuple[int, int]]) -> float:
    left, right = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    apart = [np.linalg.norm(mark.places[left] - mark.places[right], axis=1) for mark in _marks(output)]
    every = np.concatenate(apart)
    every = every[np.isfinite(every)]
    return float(np.median(every)) if len(every) else 0.0


def _from_behind(look: _Look) -> str:
    """A remark where upright subjects all have their left at the image's left."""
    votes = []
    for _, answer in look.found:
        if not isinstance(answer, Poses):
            continue
        bones = answer.skeleton
        plain = [name.rsplit(".", 1)[-1] for name in bones.landmarks]
        top = next((plain.index(n) for n in ("nose", "head_top", "neck") if n in plain), None)
        if top is None or "left_hip" not in plain:
            return ""
        hip = plain.index("left_hip")
        for mark in _marks(_exchanged(answer) if look.exchanged else answer):
            upright = mark.places[hip, 1] > mark.places[top, 1]
            lean = np.array([mark.places[a, 0] - mark.places[b, 0] for a, b in bones.pairs])
            lean = lean[np.isfinite(lean)]
            if upright and len(lean) and abs(lean.sum()) > 0.6 * np.abs(lean).sum():  # not seen from the side
                votes.append(lean.sum() > 0)
    if not votes or np.mean(votes) > 1 / 3:
        return ""
    return (
        f"in {len(votes) - sum(votes)} of {len(votes)} subjects the left side is at the image's left, "
        "as of someone seen from behind. If they face the camera, left and right are exchanged in the "
        "output: they are the subject's own, not the viewer's"
    )


def _batch(look: _Look) -> tuple[State, str]:
    if all(isinstance(answer, Exception) for answer in look.first):
        raise _Skip("no image was answered")
    if not look.steady or not (look.system.deterministic or look.system.seedable):
        raise _Skip("answers to the same image differ already, one by one")
    pictures = [
        image for (_, image), answer in zip(look.images, look.first, strict=True) if not isinstance(answer, Exception)
    ]
    alone: list[Answer] = [answer for answer in look.first if not isinstance(answer, Exception)]
    odd = transformation(f"stretch({_fit(pictures[0], 1.5):g}, {_fit(pictures[0], 1.25):g})")(pictures[0])[0]
    pictures.insert(1, odd)  # images of different sizes, whatever was given
    alone.insert(1, look.one(odd))
    together = look.ask(pictures)
    failed = [
        answer
        for answer, single in zip(together, alone, strict=True)
        if isinstance(answer, Exception) and not isinstance(single, Exception)
    ]
    if failed:
        return "problem", (
            f"{len(pictures)} images of different sizes at once: {_told(failed[0])}. Bring "
            "them to "
            "the model's size one by one before stacking them, or predict in a loop"
        )
    unlike = [words for a, b in zip(alone, together, strict=True) if (words := _difference(a, b))]
    far = max(
        (
            float(_apart(a, b).max(initial=0))
            for a, b in zip(alone, together, strict=True)
            if not isinstance(a, Exception) and not isinstance(b, Exception)
        ),
        default=0.0,
    )
    if unlike and (far > 0.5 or any("found" in words for words in unlike)):
        return "problem", (
            f"{len(unlike)} of {len(pictures)} images are answered differently in a batch: "
            f"{unlike[0]}. Answers must not depend on the neighbours: scale each by its own "
            "size, "
            "keep the order, put normalisation layers in evaluation mode"
        )
    if unlike:
        return "ok", f"in a batch of {len(pictures)} nearly the same answers as one by one ({unlike[0]})"
    return "ok", f"a batch of {len(pictures)} images of different sizes gets the same answers as one by one"


def _fit(image: Image, factor: float) -> float:
    """The factor, or its inverse for images so large that enlarging them would only test memory."""
    return factor if image.size[0] * image.size[1] <= 4_000_000 else 1 / factor


def _scale(look: _Look) -> tuple[State, str]:
    _in_pixels(look)
    if look.exchanged:
        raise _Skip("x and y must be in order first")
    shifts, fixed, moved = [], [], []
    trouble = ""
    for factor in sorted({_fit(image, 2.0) for image, _ in look.found}):
        how: Transformation = transformation(f"rescale({factor:g})")
        for image, answer in look.found:
            if _fit(image, 2.0) != factor:
                continue
            changed, change = how(image)
            after = look.one(changed)
            if isinstance(after, Exception):
                trouble = trouble or f"{_told(after)} on an image after {how.id}"
                continue
            expected = answer.warped(change.warp)
            far = _apart(expected, after)
            if len(far):
                moved.append(float(np.median(far)) / max(changed.size))
                fixed.append(float(np.median(_apart(answer, after))) / max(changed.size))
                shifts += [(b - a) / (1 - factor) for a, b in _matched(expected, after)]
    if not shifts:
        if trouble:
            return "problem", trouble
        raise _Skip("nothing was found in the scaled images")
    if np.median(moved) > 0.05:
        if np.median(fixed) < 0.5 * np.median(moved):
            return "problem", (
                "in an image twice as large the answer stays at the same coordinates: they "
                "seem to be "
                "pixels of the model's input. Multiply x by image width / input width, and y "
                "likewise"
            )
        return "warning", (
            f"in a rescaled image places are {np.median(moved):.0%} of its size from where "
            "they "
            "should be: see whether the coordinates go back through the same scaling and "
            "padding "
            "as the image"
        )
    mirrored, _ = look.followed("mirror(h)")
    flips = [(b - a) / 2 for before, after, warp in mirrored for a, b in _matched(before.warped(warp), after)]
    offset = [_offset(np.concatenate(shifts))]
    if flips:
        offset.append((_offset(np.concatenate(flips))[0], 0.0))  # a mirror says nothing about y
    x, y = (max((each[axis] for each in offset), key=abs) for axis in (0, 1))
    if x or y:
        where = " and ".join(
            words
            for words in (
                f"{abs(x):.2g} px too far {'right' if x > 0 else 'left'}" if x else "",
                f"{abs(y):.2g} px too far {'down' if y > 0 else 'up'}" if y else "",
            )
            if words
        )
        return "warning", (
            f"all places sit {where}. The centre of pixel (row i, column j) is (j + 0.5, i + "
            "0.5): "
            "add 0.5 to pixel indices, and resize without aligning corners"
        )
    return "ok", f"places follow the image's size, within {np.median(moved):.1%} of it"


def _offset(shifts: Floats) -> tuple[float, float]:
    """What all landmarks are off by in x and y, 0 where they do not agree.

    A precise system shows half a pixel; one that is not must be off by more than one.
    """
    found = []
    for axis in (0, 1):
        every = shifts[:, axis][np.isfinite(shifts[:, axis])]
        if len(every) < 4:
            found.append(0.0)
            continue
        middle = float(np.median(every))
        spread = float(np.median(np.abs(every - middle)))
        agreed = float(np.mean(np.sign(every) == np.sign(middle)))
        sure = (abs(middle) > 1 and spread < 0.5 * abs(middle) and agreed > 0.8) or (abs(middle) > 0.3 and spread < 0.1)
        found.append(middle if sure else 0.0)
    return found[0], found[1]


def _empty(look: _Look) -> tuple[State, str]:
    if look.system.kind not in (Poses.kind, Detections.kind):
        raise _Skip(f"{look.system.kind} have no subjects to count")
    flat, _ = transformation("colour_fill((128, 128, 128))")(look.images[0][1])
    answer = look.one(flat)
    if isinstance(answer, Exception):
        if all(isinstance(each, Exception) for each in look.first):
            raise _Skip("no image was answered")
        return "problem", (f"{_told(answer)} on an evenly grey image: return an empty output where nothing is found")
    scores = [mark.score for mark in _marks(answer)]
    if not scores:
        return "ok", "nothing is found in an evenly grey image"
    if max(scores) < 0.3:
        return "ok", f"in an evenly grey image only weak answers, at most {max(scores):.2f}"
    return "warning", (
        f"{len(scores)} found in an evenly grey image, with scores up to {max(scores):.2f}: "
        "return "
        "the model's own score, or nothing where it finds nothing"
    )


def _speed(look: _Look) -> tuple[State, str]:
    if all(isinstance(answer, Exception) for answer in look.first):
        raise _Skip("no image was answered")
    first, rest = look.seconds[0], look.seconds[1:] or look.seconds
    return "ok", f"{1000 * np.median(rest):.3g} ms per image (the first took {1000 * first:.3g} ms)"


_CHECKS: tuple[tuple[str, _Check], ...] = (
    ("answers", _answers),
    ("input", _input),
    ("found", _finds),
    ("determinism", _repeats),
    ("coordinates", _coordinates),
    ("scores", _scores),
    ("channels", _channels),
    ("left/right", _sides),
    ("batch", _batch),
    ("scale", _scale),
    ("empty", _empty),
    ("speed", _speed),
)
"""In order: later checks lean on what earlier ones found out."""
