"""Questions about answers as such: are there any, do they repeat, is a batch like single inputs, what costs it?"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from instar.outputs import output_kind
from instar.outputs.labels import Labels
from instar.outputs.shares import gist
from instar.stats import wilcoxon
from instar.systems.check.examination import (
    COUNTS,
    FEWEST,
    Answer,
    Examination,
    Skip,
    State,
    described,
    difference,
    distances,
    images_text,
    percent,
    scores_of,
)
from instar.systems.check.geometry import fitting_factor
from instar.systems.scores import advised_scale, weak_words
from instar.transforms import transformation
from instar.warp import Size

GREY = "colour_fill((128, 128, 128))"
_READ_ONLY = re.compile(r"read-?only|writ(e)?able|WRITEABLE", re.IGNORECASE)


def answers(examined: Examination) -> tuple[State, str]:
    for _, image in examined.images:
        examined.first.append(examined.one(image))
    wrong = [
        (name, answer)
        for (name, _), answer in zip(examined.images, examined.first, strict=True)
        if isinstance(answer, Exception)
    ]
    count, inputs = len(examined.first), f"{examined.system.takes}s"
    begin = f"{count} of the {examined.offered} {inputs} were asked, the first; " if examined.offered > count else ""
    if not wrong:
        return "ok", f"{begin}{count} of {count} {inputs} answered with {examined.system.kind}"
    name, error = wrong[0]
    message = f"{begin}{len(wrong)} of {count} {inputs} failed, first {name}: {described(error)}"
    if re.search(r"^expected \w+|returned \d+ answers|not iterable", str(error)):
        message += f"; return one output of kind {examined.system.kind} per image"
    if re.search(r"^IndexError: (list|tuple|string) index out of range", described(error)):
        message += (
            ". Where a class number is looked up in a list of names: COCO's own numbers go up to 90 with gaps, and a "
            "list of 80 names has no such places"
        )
    return "problem", message


def untouched_input(examined: Examination) -> tuple[State, str]:
    errors = [answer for answer in examined.first if isinstance(answer, Exception)]
    if any(_READ_ONLY.search(str(error)) for error in errors):
        return "problem", (
            "the system writes into the image it is given, which is read-only; let it work on a copy: image = "
            "image.copy()"
        )
    if examined.writes:
        return "problem", (
            "the system changed the pixels it was given; later rules would see a changed picture. Let it work on a "
            "copy: image = image.copy()"
        )
    examined.need_answers()
    return "ok", "the pixels stay as they were"


def finds(examined: Examination) -> tuple[State, str]:
    examined.need_marks()
    examined.need_answers()
    answered = len(examined.answered)
    counts = [len(answer.marks()) for _, answer in examined.with_marks]
    remarks = [remark for _, _, answer in examined.answered if (remark := answer.remark())]
    if remarks:
        return "warning", (
            f"in {len(remarks)} of {images_text(answered)} {remarks[0]}. It counts as nothing found; see whether the "
            "model's numbers overflow, or return nothing where it finds nothing"
        )
    if not counts:
        return "warning", (
            f"nothing was found in any of {images_text(answered)}: use images that show what the system looks for, "
            "return answers of low confidence too, and see whether the colour channels and the size of the input are "
            "what it was trained on"
        )
    return "ok", f"something was found in {len(counts)} of {images_text(answered)}, {sum(counts)} in all"


def looks(examined: Examination) -> tuple[State, str]:
    """Whether the answer hangs on the image at all."""
    examined.need_answers()
    if not output_kind(examined.system.kind).has_marks or examined.with_marks:
        first = examined.answered[0][1]
        changed = [examined.changed(first, change)[0] for change in ("mirror(both)", "noise(60)", GREY)]
        sizes = [image.size for _, image, _ in examined.answered] + [first.size] * len(changed)
        every: list[Answer] = [*(answer for _, _, answer in examined.answered), *changed]
        if _same(every, sizes):
            images = len(every) - len(changed)
            unless = "" if examined.with_marks else ", unless all of them show the same"
            return "problem", (
                f"{images} image{'s' * (images != 1)} and {len(changed)} made from the first one have the same "
                f"answer, an evenly grey one among them: the system does not look at the image{unless}. See whether "
                "the image that is given is the one that is used"
            )
        return "ok", "different images have different answers"
    raise Skip("nothing was found in any image")


def _same(every: Sequence[Answer], sizes: Sequence[Size]) -> bool:
    """Whether all answers are one, as it is or in shares of each image's frame."""
    if not any(difference(every[0], other) for other in every[1:]):
        return True
    gists = [
        None if isinstance(answer, Exception) else gist(answer, size) for answer, size in zip(every, sizes, strict=True)
    ]
    return None not in gists and len(set(gists)) == 1


def scores(examined: Examination) -> tuple[State, str]:
    if of_classes := [answer for _, _, answer in examined.answered if isinstance(answer, Labels) and len(answer)]:
        return _class_scores(of_classes)
    examined.need_places()
    scores = np.concatenate([mark.scores for _, answer in examined.with_marks for mark in answer.marks()])
    low, high = float(scores.min()), float(scores.max())
    if low < 0 or high > 1:
        fix = advised_scale(low, high)
        return "problem", f"scores or visibilities lie between {low:.3g} and {high:.3g}, they must be 0 to 1: {fix}"
    of_images = [scores_of(answer) for _, answer in examined.with_marks]
    best = np.array([each.max() for each in of_images])
    low, high, weak = min(each.min() for each in of_images), best.max(), best < COUNTS
    if weak.mean() > 0.5:
        where = "" if weak.all() else f"In {weak.sum()} of {images_text(len(best))}"
        words = weak_words(float(best[weak].max()), COUNTS, where)
        return "warning", (
            f"{words[0].lower()}{words[1:]}. Or return probabilities, or see whether the images show what the system "
            "looks for"
        )
    if sum(map(len, of_images)) == 1:
        return "unsure", f"the only one is {high:.3g}, which tells nothing: ask more images"
    if low == high:
        return "ok", f"all are {low:.3g}: without scores of its own the system cannot be judged by confidence"
    return "ok", f"between {low:.2g} and {high:.2g}"


SAME_MEAN = 0.005
"""Mean scores that are no further apart are the same, as they are printed."""
TIED = 0.8
"""The share of the first class's score from which on rules take another class for as good, unless told otherwise."""


def _class_scores(answers: Sequence[Labels]) -> tuple[State, str]:
    """Whether any class stands out: what goes into a model in a wrong way often comes out with all classes alike."""
    first = [float(answer.scores[0]) for answer in answers]
    if len(answers) >= FEWEST and all(_flat(answer) for answer in answers):
        least = min(float(answer.scores[-1]) / best for answer, best in zip(answers, first, strict=True))
        return "warning", (
            f"in all {len(answers)} images no class stands out: the best scores {max(first):.2g} at most, and the "
            f"others that it names at least {percent(least)} of the best. Rules take classes for as good as each other "
            f"from {percent(TIED)} on. See whether the pixels go in as in training (RGB or BGR, 0 to 255 or 0 to 1, "
            "mean and deviation), and whether scores are the softmax of logits, taken once"
        )
    if all(len(answer) > 1 and answer.scores[-1] == answer.scores[0] for answer in answers):
        return "ok", "all classes of an answer score the same: rules see only classes that are no longer named"
    return "ok", f"first classes score between {min(first):.2g} and {max(first):.2g}"


def _flat(answer: Labels) -> bool:
    """Whether several classes are as likely as each other, and none is likely: no answer, and none of several tags."""
    return bool(
        len(answer) >= FEWEST and 0 < answer.scores[0] < COUNTS and answer.scores[-1] >= TIED * answer.scores[0]
    )


def channels(examined: Examination) -> tuple[State, str]:
    kind = output_kind(examined.system.kind)
    if not kind.has_marks and "scores" not in kind.columns:
        raise examined.unsuited()
    of_rgb, of_bgr = [], []
    for _, image, answer in examined.answered:
        other, _ = examined.changed(image, "colour_channels((1, 1, 1), encoding=bgr)")
        if not isinstance(other, Exception):
            of_rgb.append(scores_of(answer).max(initial=0.0))
            of_bgr.append(scores_of(other).max(initial=0.0))
    if not of_rgb:
        raise Skip("no image was answered")
    if not any(of_rgb) and not any(of_bgr):
        raise Skip("nothing was found in any image, whichever way the channels are")
    gains = np.subtract(of_bgr, of_rgb)
    means = f"{np.mean(of_bgr):.2f} instead of {np.mean(of_rgb):.2f}"
    if _clearly_more(gains):
        return "warning", (
            f"with red and blue exchanged the system is surer: the best score of an image is {means} in the mean, over "
            f"{len(gains)} images. Your model seems to expect BGR; images are RGB: image[..., ::-1]"
        )
    seen = f"best scores are {np.mean(of_rgb):.2f} in the mean, with red and blue exchanged {np.mean(of_bgr):.2f}"
    if gains.mean() > SAME_MEAN:
        return "unsure", (
            f"{seen}: the system is surer with them exchanged, but {images_text(len(gains))} cannot tell that from "
            "chance. Ask more images, in strong colours; images are RGB"
        )
    if gains.mean() >= -SAME_MEAN:
        return "unsure", f"{seen}: the scores do not show which order of the channels it expects; images are RGB"
    return "ok", seen


def _clearly_more(gains: npt.NDArray[np.float64]) -> bool:
    """Whether scores rise so often or so far that it is no chance: few images must all agree, and by a lot."""
    if len(gains) < FEWEST or gains.mean() < 0.1:
        return False
    return bool(gains.min() >= 0.2) or wilcoxon(np.zeros(len(gains)), gains) < 0.05


def batch(examined: Examination) -> tuple[State, str]:
    examined.need_answers()
    if not examined.steady or not (examined.system.deterministic or examined.system.seedable):
        raise Skip("answers to the same image differ already, one by one")
    pictures = [image for _, image, _ in examined.answered]
    alone: list[Answer] = [answer for _, _, answer in examined.answered]
    first = pictures[0]
    stretch = f"stretch({fitting_factor(first, 1.5):g}, {fitting_factor(first, 1.25):g})"
    odd, _ = transformation(stretch)(first)
    answer = examined.one(odd, what=f"{examined.name_of(first)} after {stretch}")
    if not isinstance(answer, Exception):
        pictures.insert(1, odd)  # images of different sizes, whatever was given
        alone.insert(1, answer)
    sizes = " of different sizes" if len({image.size for image in pictures}) > 1 else ""
    together = examined.ask(pictures, what=f"{images_text(len(pictures))} at once")
    failed = [answer for answer in together if isinstance(answer, Exception)]
    if failed:
        advice = (
            "Bring them to the model's size one by one before stacking them, or predict in a loop"
            if examined.system.batch > 1
            else "Each was answered alone: an answer must not depend on how many are asked, nor on what came before"
        )
        return "problem", f"{images_text(len(pictures))}{sizes} at once: {described(failed[0])}. {advice}"
    unlike = [words for a, b in zip(alone, together, strict=True) if (words := difference(a, b))]
    far = max(
        (
            float(distances(a.marks(), b.marks()).max(initial=0))
            for a, b in zip(alone, together, strict=True)
            if not isinstance(a, Exception) and not isinstance(b, Exception)
        ),
        default=0.0,
    )
    if unlike and (far > 0.5 or any("found" in words for words in unlike)):
        return "problem", (
            f"{len(unlike)} of {len(pictures)} images are answered differently in a batch: {unlike[0]}. Answers must "
            "not depend on the neighbours: scale each by its own size, keep the order, put normalisation layers in "
            "evaluation mode"
        )
    if unlike:
        return "ok", f"in a batch of {len(pictures)} nearly the same answers as one by one ({unlike[0]})"
    return "ok", f"a batch of {images_text(len(pictures))}{sizes} gets the same answers as one by one"


def empty(examined: Examination) -> tuple[State, str]:
    examined.need_marks()
    answer, _ = examined.changed(examined.images[0][1], GREY)
    if isinstance(answer, Exception):
        examined.need_answers()
        return "problem", (
            f"{described(answer)} on an evenly grey image: return an empty output where nothing is found"
        )
    scores = [mark.score for mark in answer.marks()]
    if not scores:
        return "ok", "nothing is found in an evenly grey image"
    if max(scores) < 0.3:
        return "ok", f"in an evenly grey image only weak answers, at most {max(scores):.2f}"
    return "warning", (
        f"{len(scores)} found in an evenly grey image, with scores up to {max(scores):.2f}: return the model's own "
        "score, or nothing where it finds nothing"
    )


def speed(examined: Examination) -> tuple[State, str]:
    examined.need_answers()
    first, rest = examined.seconds[0], examined.seconds[1:] or examined.seconds
    usual, warming = (_milliseconds(seconds) for seconds in (float(np.median(rest)), first))
    return "ok", f"{usual} per {examined.system.takes} (the first took {warming})"


def _milliseconds(seconds: float) -> str:
    """Three digits, and never an exponent."""
    return f"{1000 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1000 * seconds:.3g} ms"
