"""Questions about answers as such: are there any, do they repeat, is a batch like single inputs, what costs it?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from instar.image import Image
from instar.outputs import output_kind
from instar.outputs.labels import Labels
from instar.outputs.shares import gist
from instar.stats import wilcoxon
from instar.systems.check.examination import (
    CHANCE,
    COUNTS,
    FEWEST,
    Answer,
    Examination,
    Skip,
    described,
    difference,
    distances,
    images_text,
    percent,
    scores_of,
    votes_missing,
)
from instar.systems.check.geometry import fitting_factor
from instar.systems.check.results import Result, ok, problem, unsure, warning
from instar.systems.scores import advised_scale, weak_words
from instar.transforms import transformation
from instar.warp import Size

GREY = "colour_fill((128, 128, 128))"
_READ_ONLY = re.compile(r"read-?only|writ(e)?able|WRITEABLE", re.IGNORECASE)


def answers(examined: Examination) -> Result:
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
        words = f"{begin}{count} of {count} {inputs} answered with {examined.system.kind}"
        return ok("answers.ok", words, asked=count, offered=examined.offered)
    name, error = wrong[0]
    message = f"{begin}{len(wrong)} of {count} {inputs} failed, first {name}: {described(error)}"
    if re.search(r"^expected \w+|returned \d+ answers|not iterable", str(error)):
        message += f"; return one output of kind {examined.system.kind} per image"
    if re.search(r"^IndexError: (list|tuple|string) index out of range", described(error)):
        message += (
            ". Where a class number is looked up in a list of names: COCO's own numbers go up to 90 with gaps, and a "
            "list of 80 names has no such places"
        )
    return problem("answers.failed", message, failed=len(wrong), asked=count, offered=examined.offered, first=name)


def untouched_input(examined: Examination) -> Result:
    errors = [answer for answer in examined.first if isinstance(answer, Exception)]
    if any(_READ_ONLY.search(str(error)) for error in errors):
        return problem(
            "input.read_only",
            "the system writes into the image it is given, which is read-only; let it work on a copy: image = "
            "image.copy()",
        )
    if examined.writes:
        return problem(
            "input.changed",
            "the system changed the pixels it was given; later rules would see a changed picture. Let it work on a "
            "copy: image = image.copy()",
        )
    examined.need_answers()
    return ok("input.ok", "the pixels stay as they were")


def finds(examined: Examination) -> Result:
    examined.need_marks()
    examined.need_answers()
    answered = len(examined.answered)
    counts = [len(answer.marks()) for _, answer in examined.with_marks]
    remarks = [remark for _, _, answer in examined.answered if (remark := answer.remark())]
    if remarks:
        return warning(
            "found.nothing_usable",
            f"in {len(remarks)} of {images_text(answered)} {remarks[0]}. It counts as nothing found; see whether the "
            "model's numbers overflow, or return nothing where it finds nothing",
            images=len(remarks),
            answered=answered,
        )
    if not counts:
        return warning(
            "found.nothing",
            f"nothing was found in any of {images_text(answered)}: use images that show what the system looks for, "
            "return answers of low confidence too, and see whether the colour channels and the size of the input are "
            "what it was trained on",
            answered=answered,
        )
    words = f"something was found in {len(counts)} of {images_text(answered)}, {sum(counts)} in all"
    return ok("found.ok", words, images=len(counts), answered=answered, found=sum(counts))


def looks(examined: Examination) -> Result:
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
            return problem(
                "looks.same",
                f"{images} image{'s' * (images != 1)} and {len(changed)} made from the first one have the same "
                f"answer, an evenly grey one among them: the system does not look at the image{unless}. See whether "
                "the image that is given is the one that is used",
                images=images,
                made=len(changed),
            )
        return ok("looks.ok", "different images have different answers")
    raise Skip("nothing was found in any image")


def _same(every: Sequence[Answer], sizes: Sequence[Size]) -> bool:
    """Whether all answers are one, as it is or in shares of each image's frame."""
    if not any(difference(every[0], other) for other in every[1:]):
        return True
    gists = [
        None if isinstance(answer, Exception) else gist(answer, size) for answer, size in zip(every, sizes, strict=True)
    ]
    return None not in gists and len(set(gists)) == 1


DOUBLE_SIGMOID = (0.5, 0.7311)
"""The sigmoid of what lies between 0 and 1 already."""
MANY_SCORES = 8
"""Scores that must all lie there: fewer of a right model may well do so."""


def scores(examined: Examination) -> Result:
    if of_classes := [answer for _, _, answer in examined.answered if isinstance(answer, Labels) and len(answer)]:
        return _class_scores(of_classes)
    examined.need_places()
    scores = np.concatenate([mark.scores for _, answer in examined.with_marks for mark in answer.marks()])
    low, high = float(scores.min()), float(scores.max())
    if low < 0 or high > 1:
        fix = advised_scale(low, high)
        words = f"scores or visibilities lie between {low:.3g} and {high:.3g}, they must be 0 to 1: {fix}"
        return problem("scores.range", words, low=low, high=high)
    twice = _double_sigmoid(low, high, len(scores), len(examined.with_marks))
    of_images = [scores_of(answer) for _, answer in examined.with_marks]
    best = np.array([each.max() for each in of_images])
    low, high, weak = min(each.min() for each in of_images), best.max(), best < COUNTS
    if weak.mean() > 0.5:
        where = "" if weak.all() else f"In {weak.sum()} of {images_text(len(best))}"
        words = weak_words(float(best[weak].max()), COUNTS, where)
        return warning(
            "scores.weak",
            f"{words[0].lower()}{words[1:]}. Or return probabilities, or see whether the images show what the system "
            "looks for",
            highest=best[weak].max(),
            weak=weak.sum(),
            images=len(best),
        )
    if sum(map(len, of_images)) == 1:
        return unsure("scores.single", f"the only one is {high:.3g}, which tells nothing: ask more images", low=low)
    if low == high:
        words = f"all are {low:.3g}: without scores of its own the system cannot be judged by confidence"
        return ok("scores.constant", words, low=low, high=high)
    return twice or ok("scores.ok", f"between {low:.2g} and {high:.2g}", low=low, high=high)


def _double_sigmoid(low: float, high: float, count: int, images: int) -> Result | None:
    """Whether every score is one that a sigmoid gives for a number between 0 and 1."""
    least, most = DOUBLE_SIGMOID
    if low < least or high > most or low == high:
        return None
    figures = {"low": low, "high": high, "scores": count, "images": images}
    seen = f"all {count} scores lie between {low:.2f} and {high:.2f}, where a sigmoid taken twice puts them"
    if count < MANY_SCORES or images < FEWEST:
        return unsure(
            "scores.double_sigmoid",
            f"{seen}, but {count} scores in {images_text(images)} are too few to tell: at least {MANY_SCORES} scores "
            f"in {FEWEST} images are needed",
            **figures,
        )
    return warning(
        "scores.double_sigmoid",
        f"{seen} (0.50 to 0.73). Return the model's scores as they are if it ends in a sigmoid",
        **figures,
    )


SAME_MEAN = 0.005
"""Mean scores that are no further apart are the same, as they are printed."""
TIED = 0.8
"""The share of the first class's score from which on rules take another class for as good, unless told otherwise."""


def _class_scores(answers: Sequence[Labels]) -> Result:
    """Whether any class stands out: what goes into a model in a wrong way often comes out with all classes alike."""
    first = [float(answer.scores[0]) for answer in answers]
    figures = {"images": len(answers), "low": min(first), "high": max(first)}
    if twice := _double_softmax(answers, figures):
        return twice
    every = np.concatenate([answer.scores for answer in answers])
    if twice := _double_sigmoid(float(every.min()), float(every.max()), len(every), len(answers)):
        return twice
    if len(answers) >= FEWEST and all(_flat(answer) for answer in answers):
        least = min(float(answer.scores[-1]) / best for answer, best in zip(answers, first, strict=True))
        return warning(
            "scores.flat",
            f"in all {len(answers)} images no class stands out: the best scores {max(first):.2g} at most, and the "
            f"others that it names at least {percent(least)} of the best. Rules take classes for as good as each other "
            f"from {percent(TIED)} on. See whether the pixels go in as in training (RGB or BGR, 0 to 255 or 0 to 1, "
            "mean and deviation), and whether scores are the softmax of logits, taken once",
            least=least,
            **figures,
        )
    if all(len(answer) > 1 and answer.scores[-1] == answer.scores[0] for answer in answers):
        words = "all classes of an answer score the same: rules see only classes that are no longer named"
        return ok("scores.constant", words, **figures)
    return ok("scores.ok", f"first classes score between {min(first):.2g} and {max(first):.2g}", **figures)


def _double_softmax(answers: Sequence[Labels], figures: Mapping[str, object]) -> Result | None:
    """Whether the scores of every image are the softmax of probabilities.

    The logarithms of such scores, less the last one, are probabilities themselves: they add up to at most 1. Scores
    that are merely flat hardly ever do. One class must lead clearly, or the model knows nothing; of few classes, by
    nearly all that it can.
    """
    logs = [np.log(answer.scores / answer.scores[-1]) for answer in answers if answer.scores[-1] > 0]
    if len(logs) < len(answers) or any(
        len(log) < 2 or log.sum() > 1.02 or answer.scores.sum() > 1.01
        for log, answer in zip(logs, answers, strict=True)
    ):
        return None
    lead = [float(log[0]) for log in logs]
    if np.median(lead) < (0.5 if min(map(len, logs)) > 4 else 0.9):
        return None
    seen = (
        f"in {'all ' if len(answers) > 1 else ''}{images_text(len(answers))}, the best class scores at most "
        f"{np.exp(max(lead)):.2f} times as much as the last one, as after two softmaxes (2.72 at most)"
    )
    if len(answers) < FEWEST:
        words = f"{seen}. At least {FEWEST} images are needed to tell"
        return unsure("scores.double_softmax", words, factor=np.exp(max(lead)), **figures)
    return warning(
        "scores.double_softmax",
        f"{seen}: scores are probabilities to which a softmax was applied again. Return the softmax of the logits, or "
        "the model's output as it is if it ends in a softmax",
        factor=np.exp(max(lead)),
        **figures,
    )


def _flat(answer: Labels) -> bool:
    """Whether several classes are as likely as each other, and none is likely: no answer, and none of several tags."""
    return bool(
        len(answer) >= FEWEST and 0 < answer.scores[0] < COUNTS and answer.scores[-1] >= TIED * answer.scores[0]
    )


def channels(examined: Examination) -> Result:
    kind = output_kind(examined.system.kind)
    if not kind.has_marks and "scores" not in kind.columns:
        raise examined.unsuited()
    examined.need_answers()
    of_rgb, of_bgr = [], []
    for _, image, answer in examined.answered:
        if isinstance(image, Image) and (image.pixels[..., 0] == image.pixels[..., 2]).all():
            continue  # a grey image has no order of channels
        other, _ = examined.changed(image, "colour_channels((1, 1, 1), encoding=bgr)")
        if not isinstance(other, Exception):
            of_rgb.append(scores_of(answer).max(initial=0.0))
            of_bgr.append(scores_of(other).max(initial=0.0))
    if not of_rgb:
        raise Skip("no image in colour was answered")
    if not any(of_rgb) and not any(of_bgr):
        raise Skip("nothing was found in any image, whichever way the channels are")
    gains = np.subtract(of_bgr, of_rgb)
    needed = votes_missing(0, 0)
    figures = {"rgb": np.mean(of_rgb), "bgr": np.mean(of_bgr), "images": len(gains), "needed": needed}
    seen = (
        f"in {images_text(len(gains))} in colour, best scores are {np.mean(of_rgb):.2f} in the mean, with red and blue "
        f"exchanged {np.mean(of_bgr):.2f}"
    )
    if len(gains) < needed:
        words = f"{seen}. At least {needed} images in colour are needed to tell whether it expects RGB; images are RGB"
        return unsure("channels.few", words, **figures)
    if gains.mean() >= 0.1 and wilcoxon(np.zeros(len(gains)), gains) < CHANCE:
        return warning(
            "channels.bgr",
            f"{seen}: the system is surer with them exchanged. Your model seems to expect BGR; images are RGB: "
            "image[..., ::-1]",
            **figures,
        )
    if gains.mean() > SAME_MEAN:
        return unsure(
            "channels.maybe_bgr",
            f"{seen}: the system is surer with them exchanged, but these images cannot tell that from chance. Ask more "
            "images, in strong colours; images are RGB",
            **figures,
        )
    if gains.mean() >= -SAME_MEAN:
        words = f"{seen}: the scores do not show which order of the channels it expects; images are RGB"
        return unsure("channels.same", words, **figures)
    return ok("channels.ok", seen, **figures)


def batch(examined: Examination) -> Result:
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
        words = f"{images_text(len(pictures))}{sizes} at once: {described(failed[0])}. {advice}"
        return problem("batch.failed", words, images=len(pictures))
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
        return problem(
            "batch.differs",
            f"{len(unlike)} of {len(pictures)} images are answered differently in a batch: {unlike[0]}. Answers must "
            "not depend on the neighbours: scale each by its own size, keep the order, put normalisation layers in "
            "evaluation mode",
            differ=len(unlike),
            images=len(pictures),
        )
    if unlike:
        words = f"in a batch of {len(pictures)} nearly the same answers as one by one ({unlike[0]})"
        return ok("batch.nearly", words, images=len(pictures), differ=len(unlike))
    words = f"a batch of {images_text(len(pictures))}{sizes} gets the same answers as one by one"
    return ok("batch.ok", words, images=len(pictures))


def empty(examined: Examination) -> Result:
    examined.need_marks()
    answer, _ = examined.changed(examined.images[0][1], GREY)
    if isinstance(answer, Exception):
        examined.need_answers()
        words = f"{described(answer)} on an evenly grey image: return an empty output where nothing is found"
        return problem("empty.failed", words)
    scores = [mark.score for mark in answer.marks()]
    if not scores:
        return ok("empty.ok", "nothing is found in an evenly grey image")
    best = max(scores)
    if best < 0.3:
        return ok("empty.weak", f"in an evenly grey image only weak answers, at most {best:.2f}", best=best)
    return warning(
        "empty.found",
        f"{len(scores)} found in an evenly grey image, with scores up to {best:.2f}: return the model's own score, or "
        "nothing where it finds nothing",
        found=len(scores),
        best=best,
    )


def speed(examined: Examination) -> Result:
    examined.need_answers()
    first, rest = examined.seconds[0], examined.seconds[1:] or examined.seconds
    usual = float(np.median(rest))
    words = f"{_milliseconds(usual)} per {examined.system.takes} (the first took {_milliseconds(first)})"
    return ok("speed.ok", words, seconds=usual, first=first)


def _milliseconds(seconds: float) -> str:
    """Three digits, and never an exponent."""
    return f"{1000 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1000 * seconds:.3g} ms"
