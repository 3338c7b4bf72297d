"""The system under check, what it answered so far, and how two answers are compared."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from instar.case import Input
from instar.image import Image
from instar.outputs import Output, Row, output_kind
from instar.outputs.marks import Mark
from instar.own import failed_at, place_of
from instar.skeleton import Skeleton
from instar.spelling import UnknownName
from instar.stats import binomial_excess
from instar.systems.check.patience import Unanswered, watched
from instar.systems.system import MissingExtra, System
from instar.transforms import transformation
from instar.warp import Size, Warp

Floats = npt.NDArray[np.float64]
Answer = Output | Exception
Marks = Sequence[Mark]

SAME = 0.01
"""Pixels within which two answers are the same: less than any threshold, more than a float's rounding."""
SAME_SCORE = 0.001
COUNTS = 0.5
"""The score from which on rules count an answer as something found, unless they are told otherwise."""
FEWEST = 3
"""Images that must agree before something is doubted that may be right."""
CHANCE = 0.05
"""Votes that would be as one-sided as this by chance prove nothing."""
SURE = 0.3
"""A score from which on an answer counts as one."""


class Skip(Exception):
    """A question that has no meaning here; the message says why."""


class Followed(NamedTuple):
    """The answers to an image and to a changed one, and where its points went; `number` is that of the image."""

    number: int
    before: Output
    after: Output
    warp: Warp


@dataclass
class Examination:
    """A system with the images it is asked about; `first` are its first answers to them.

    `steady`, `pixels` and `astray` are what earlier questions found out: the same image gets the same answer, the
    coordinates are pixels, they mean something else than they should. `writes`: it changed the pixels it was given.
    `offered`: of how many images these are the first. `timeout`: the seconds that an answer may take.
    `log` has what was asked about one input at a time, with the error where there was one; `leant_on` are the numbers
    of those by which the finding in hand is made.
    """

    system: System
    images: list[tuple[str, Input]]
    offered: int = 0
    timeout: float | None = None
    first: list[Answer] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    writes: bool = False
    steady: bool = False
    pixels: bool = False
    astray: bool = False
    log: list[tuple[str, Exception | None]] = field(default_factory=list)
    leant_on: set[int] = field(default_factory=set)
    _followed: dict[str, tuple[list[Followed], range]] = field(default_factory=dict)

    def ask(self, images: Sequence[Input], seed: int = 0, what: str = "") -> list[Answer]:
        """Answers to copies, so that a system that writes into its inputs spoils nothing but itself.

        `what` names them in words, where they are not one of the images.
        """
        copies = [Image(image.pixels.copy()) if isinstance(image, Image) else image for image in images]
        what = what or self.name_of(images[0])
        seconds = None if self.timeout is None else self.timeout * len(copies)
        waiting = f"question {len(self.seconds) + 1}, {what}, is not answered"
        start = time.perf_counter()
        try:
            with nullcontext() if seconds is None else watched(waiting, seconds):
                answers: list[Answer] = list(self.system.answer(copies, [seed] * len(copies)))
        except Unanswered as late:
            self.log.append((what, TimeoutError(f"no answer within {seconds:g} s").with_traceback(late.__traceback__)))
            raise
        except (Exception, SystemExit) as error:
            wrong = error if isinstance(error, Exception) else RuntimeError(f"it called sys.exit({error})")
            answers = [wrong] * len(copies)
        self.seconds.append((time.perf_counter() - start) / len(copies))
        self.writes |= any(a.content_hash() != b.content_hash() for a, b in zip(copies, images, strict=True))
        if len(answers) == 1:
            self.leant_on.add(len(self.log))
            self.log.append((what, answers[0] if isinstance(answers[0], Exception) else None))
        return answers

    def one(self, image: Input, seed: int = 0, what: str = "") -> Answer:
        return self.ask([image], seed, what)[0]

    def changed(self, image: Input, spelling: str) -> tuple[Answer, Warp]:
        """The answer to a transformed image, and where its points went."""
        made, change = transformation(spelling)(image)
        return self.one(made, what=f"{self.name_of(image)} after {spelling}"), change.warp

    def name_of(self, image: Input) -> str:
        return next((name for name, one in self.images if one is image), f"a {self.system.takes} that is made here")

    def failed(self, numbers: Collection[int]) -> tuple[str, dict[str, Any]]:
        """Describe in words and figures how many of some questions failed. Both are empty if none did.

        An image that failed unchanged fails each time and is reported once, and so is a system that always fails.
        """
        lost = [
            name for (name, _), answer in zip(self.images, self.first, strict=False) if isinstance(answer, Exception)
        ]
        others = [self.log[number] for number in sorted(numbers) if self.log[number][0] not in lost]
        wrong = [(what, error) for what, error in others if error is not None]
        if not wrong or len(lost) == len(self.images):
            return "", {}
        what, error = wrong[0]
        words = f"{len(wrong)} of {len(others)} questions failed, first {what}: {described(error)}"
        return words, {"failed": len(wrong), "questions": len(others), "first": what}

    @property
    def answered(self) -> list[tuple[str, Input, Output]]:
        """The images that were answered, with the first answer."""
        return [
            (name, image, answer)
            for (name, image), answer in zip(self.images, self.first, strict=False)
            if not isinstance(answer, Exception)
        ]

    @property
    def with_marks(self) -> list[tuple[Input, Output]]:
        """Images in which something was found, with the answer."""
        return [(image, answer) for _, image, answer in self.answered if answer.marks()]

    @property
    def boxes(self) -> bool:
        """Whether what it finds are boxes, and not landmarks."""
        return all(skeleton_of(answer) is None for _, answer in self.with_marks)

    def sure_marks(self, answer: Output) -> list[Mark]:
        """What an answer is sure of: ghosts of low score, which adapters are asked to return, say nothing of places."""
        marks = answer.marks()
        least = min(SURE, 0.5 * max((mark.score for mark in marks), default=0.0))
        return [mark for mark in marks if mark.score >= least] or marks  # scores below 0 are logits

    def need_answers(self) -> None:
        """Skip where every image failed."""
        if not self.answered:
            raise Skip("no image was answered")

    def unsuited(self) -> Skip:
        """That a question is none for this kind of output: always in the same words, so that they are told together."""
        return Skip(f"not asked of an output of kind {self.system.kind}")

    def need_marks(self) -> None:
        """Skip for a kind of output that finds nothing at places."""
        if not output_kind(self.system.kind).has_marks:
            raise self.unsuited()

    def need_places(self) -> None:
        """Skip unless something was found, and has a place."""
        self.need_marks()
        self.need_answers()
        if not self.with_marks:
            raise Skip("nothing was found in any image")

    def need_pixels(self) -> None:
        self.need_places()
        if not self.pixels:
            raise Skip("the coordinates must be pixels first")
        if self.astray:
            raise Skip("the coordinates must be right first")

    def followed(self, spelling: str) -> list[Followed]:
        """Each answer that found something with the one to the transformed image, if that was answered."""
        if spelling not in self._followed:
            pairs: list[Followed] = []
            begin = len(self.log)
            for image, answer in self.with_marks or [(image, answer) for _, image, answer in self.answered]:
                after, warp = self.changed(image, spelling)
                if not isinstance(after, Exception):
                    number = next(n for n, (_, one) in enumerate(self.images) if one is image)
                    pairs.append(Followed(number, answer, after, warp))
            self._followed[spelling] = pairs, range(begin, len(self.log))
        pairs, numbers = self._followed[spelling]
        self.leant_on.update(numbers)
        return pairs


def outvoted(hits: int, votes: int) -> bool:
    """Whether so many of the votes or more agree that it is no chance."""
    return float(binomial_excess(hits, votes, 0.5)) <= CHANCE


def votes_missing(hits: int, votes: int) -> int:
    """How many more votes decide if all of them agree with the majority of these."""
    most = max(hits, votes - hits)
    return next(more for more in range(votes + 10) if outvoted(most + more, votes + more))


def skeleton_of(output: Output) -> Skeleton | None:
    """The skeleton of an answer with landmarks; None where its places have no sides."""
    bones = getattr(output, "skeleton", None)
    return bones if isinstance(bones, Skeleton) else None


def scores_of(output: Output) -> Floats:
    """The scores by which rules count subjects, objects or classes, without the visibilities of landmarks."""
    scores = getattr(output, "scores", None)
    return np.asarray([mark.score for mark in output.marks()] if scores is None else scores, np.float64)


def images_text(count: int) -> str:
    return f"{count} image{'' if count == 1 else 's'}"


def swapped_sides(output: Output) -> npt.NDArray[np.intp] | None:
    """The order of an answer's landmarks with left and right exchanged."""
    bones = skeleton_of(output)
    return None if bones is None else np.asarray(bones.swap, np.intp)


def pairs_of(first: Marks, second: Marks) -> list[tuple[Mark, Mark]]:
    """The same subject or object in two answers, in whatever order they come; the nearest first."""
    costs = []
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            if one.label != other.label:
                continue
            apart = np.linalg.norm(one.places - other.places, axis=1)
            if np.isfinite(apart).any():
                costs.append((float(np.nanmean(apart)), abs(one.score - other.score), i, j))
    pairs, used_i, used_j = [], set(), set()
    for _, _, i, j in sorted(costs):
        if i not in used_i and j not in used_j:
            used_i.add(i)
            used_j.add(j)
            pairs.append((first[i], second[j]))
    return pairs


def matched(first: Marks, second: Marks) -> list[tuple[Floats, Floats]]:
    """Places of the same subject or object in two answers, the nearest first."""
    return [(one.places, other.places) for one, other in pairs_of(first, second)]


def distances(first: Marks, second: Marks, places: npt.NDArray[np.bool_] | None = None) -> Floats:
    """Distances in pixels between all matched places, or between some of them."""
    chosen = slice(None) if places is None else places
    apart = [np.linalg.norm(one - other, axis=1)[chosen] for one, other in matched(first, second)]
    every = np.concatenate(apart) if apart else np.array([])
    return np.asarray(every[np.isfinite(every)], dtype=np.float64)


def difference(a: Answer, b: Answer) -> str:
    """In words how two answers to the same input differ; empty where they are the same. Order is no difference."""
    return compared(a, b)[1]


def compared(a: Answer, b: Answer) -> tuple[float, str]:
    """How far two answers to the same input are apart (∞ where that has no number), and in words how they differ."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        wrong = next((e for e in (a, b) if isinstance(e, Exception)), None)
        both = isinstance(a, Exception) and isinstance(b, Exception)
        return (0.0, "") if both or wrong is None else (np.inf, f"one of them is an error ({described(wrong)})")
    one, other = a.row(), b.row()
    if one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one):
        return 0.0, ""
    first, second = a.marks(), b.marks()
    if len(first) != len(second):
        return np.inf, f"{len(first)} found in one and {len(second)} in the other"
    present = [
        sorted((mark.label, int(np.isfinite(mark.places[:, 0]).sum())) for mark in marks) for marks in (first, second)
    ]
    if present[0] != present[1]:
        return np.inf, "other classes or landmarks found"
    if not first:
        return _unplaced(one, other)
    pairs = pairs_of(first, second)
    worst = float(distances(first, second).max(initial=0))
    surer = max((abs(x.score - y.score) for x, y in pairs), default=0.0)
    if worst <= SAME and surer <= SAME_SCORE:
        return 0.0, ""
    return (worst, f"places up to {worst:.3g} px apart") if worst > SAME else (surer, f"scores up to {surer:.2g} apart")


def _equal(one: object, other: object) -> bool:
    return np.array_equal(one, other, equal_nan=isinstance(one, np.ndarray))  # type: ignore[arg-type]


def _unplaced(one: Row, other: Row) -> tuple[float, str]:
    """Answers without places: how far their numbers are apart where all else is equal."""
    numbers = [key for key in one if isinstance(one[key], float) or getattr(one[key], "dtype", None) is not None]
    if one.keys() != other.keys() or any(not _equal(one[key], other[key]) for key in one if key not in numbers):
        return np.inf, "the answers differ"
    if any(np.shape(one[key]) != np.shape(other[key]) for key in numbers):
        return np.inf, "the answers differ"
    worst = max(float(np.abs(np.subtract(one[key], other[key])).max(initial=0)) for key in numbers)
    return (0.0, "") if worst <= SAME_SCORE else (worst, f"numbers up to {worst:.2g} apart")


def described(error: BaseException) -> str:
    """An error in one line, with its place in the user's own code; what Instar itself says needs no name of a class."""
    lines = str(error).strip().splitlines()
    if lines and isinstance(error, MissingExtra | UnknownName):
        return lines[0][:200]
    frame = failed_at(error)
    where = f" ({place_of(frame)})" if frame else ""
    return (f"{type(error).__name__}: {lines[0][:500]}" if lines else type(error).__name__) + where


def percent(share: float, digits: int = 0) -> str:
    """A share in per cent, as reports write it."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def size_text(size: Size) -> str:
    return f"{size[0]}×{size[1]}"
