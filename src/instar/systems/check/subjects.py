"""Questions about what was found: has it an extent, is it found twice, is it called by its name?"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from instar.outputs.labels import Labels
from instar.outputs.marks import found_twice, often_twice
from instar.systems.check.examination import SURE, Examination, Skip
from instar.systems.check.results import Result, ok, problem, warning

NO_CLASS = ("background", "__background__", "bg", "n/a", "")
"""What lists of names have in places that no object has: first of all, and for COCO's numbers that were never used."""
_NUMBER = re.compile(r"(?:(?:class|id|label)[ _-]*)?\d+")
SHOWN = 8
"""Classes that are listed with how often they were found."""
NEXT_TO_PERSON = {"bicycle": "one too high", "toothbrush": "one too low"}
"""What a list of COCO's 80 classes calls a person when class numbers are counted from somewhere else."""
THIN = 4.5
"""How many times higher than wide nobody is."""
OFTEN, MOSTLY = 0.3, 0.6
"""The share of images with something upright, and of upright ones of its class, from which on it may be a person."""
MANY = 0.25
"""The share of objects called *background* that is no accident, and no class which somebody asked for."""


def extent(examined: Examination) -> Result:
    """Landmarks in one place, and zeros that stand for nothing."""
    examined.need_places()
    marks = [mark for _, answer in examined.with_marks for mark in answer.marks()]
    spread = [mark.spread for mark in marks if np.isfinite(mark.places[:, 0]).sum() > 1]
    if spread and np.mean(np.array(spread) < 1e-3) > 0.5:
        what = "boxes have no area" if examined.boxes else "all landmarks of a subject lie in one place"
        flat = sum(each < 1e-3 for each in spread)
        return problem(
            "extent.none",
            f"{what}, in {flat} of {len(spread)}: see whether the right axis of the model's output is read, and return "
            "nothing where nothing is found",
            flat=flat,
            found=len(spread),
        )
    zeros = [int(np.isin(mark.places, (0.0, -1.0)).all(1).sum()) for mark in marks]
    whole = sum(count == len(mark.places) for count, mark in zip(zeros, marks, strict=True))
    if whole:
        return problem(
            "extent.zeros",
            f"{whole} of {len(marks)} that were found are nothing but zeros or −1: leave out what was not found",
            zeros=whole,
            found=len(marks),
        )
    if not examined.boxes and sum(zeros) > 1:
        return problem(
            "extent.zero_landmarks",
            f"{sum(zeros)} landmarks lie at exactly (0, 0) or (−1, −1), as if that meant not found: leave them out "
            "with NaN, or they count as found at the image's corner",
            zeros=sum(zeros),
        )
    return ok("extent.ok", "what is found has an extent, and nothing lies at (0, 0)", found=len(marks))


def doubled(examined: Examination) -> Result:
    """The same thing found twice."""
    examined.need_pixels()
    twice = every = 0
    for _, answer in examined.with_marks:
        marks = [mark for mark in examined.sure_marks(answer) if np.isfinite(mark.places).any()]
        every += len(marks)
        twice += found_twice(marks)
    if not every:
        raise Skip("nothing was found in any image")
    if often_twice(twice, every):
        return warning(
            "doubled.often",
            f"{twice} of {every} that were found lie on another one of the same class: objects are found twice. Switch "
            "on non-maximum suppression (NMS), or lower its overlap",
            twice=twice,
            found=every,
        )
    words = "nothing is found twice" if not twice else f"{twice} of {every} lie on another one of the same class"
    return ok("doubled.ok", words, twice=twice, found=every)


def classes(examined: Examination) -> Result:
    """Whether classes may be counted from another place than their names; else how often each was found."""
    if of_images := [(name, answer) for name, _, answer in examined.answered if isinstance(answer, Labels)]:
        firsts = ", ".join(f"{name}: {_first_class(answer)}" for name, answer in of_images)
        return ok(
            "classes.first",
            f"first classes are {firsts}: see whether the images show that",
            first={name: answer.classes[0] if len(answer) else None for name, answer in of_images},
        )
    examined.need_places()
    named = [(image, mark) for image, answer in examined.with_marks for mark in examined.sure_marks(answer)]
    labels = Counter(mark.label for _, mark in named)
    if not any(labels):
        raise Skip("nothing that was found has a class")
    if trouble := _without_name(labels):
        return trouble
    for label, direction in NEXT_TO_PERSON.items():
        if standing := _upright(examined, label):
            return warning(
                f"classes.{direction.replace(' ', '_')}",
                f"{standing}: class numbers look off by one, {direction}. COCO's person is number 0 in a list of 80 "
                "names and number 1 in its annotations. If the images show people, count from the other one",
                label=label,
                found=labels,
            )
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    counts = ", ".join(f"{count} × {name}" for name, count in labels.most_common(SHOWN))
    faint = sum(len(answer.marks()) for _, answer in examined.with_marks) - len(named)
    besides = f" (and {faint} that score below {SURE:g}, or below half of the best one)" if faint else ""
    return ok(
        "classes.ok", f"found were {counts}{more}{besides}: see whether the images show that", found=labels, faint=faint
    )


def _first_class(answer: Labels) -> str:
    return f"{answer.classes[0]} {answer.scores[0]:.2g}" if len(answer) else "none"


def _upright(examined: Examination, label: str) -> str:
    """In words how often things of a class stand upright as people do, where no person does; empty for other things.

    A bicycle is wider than high unless it is seen from the front, and a toothbrush is thinner than anybody.
    """
    forms = [
        [(mark.label, x1 - x0, y1 - y0) for mark in examined.sure_marks(answer) for x0, y0, x1, y1 in [mark.box]]
        for _, answer in examined.with_marks
    ]
    upright = [[name for name, width, height in each if width < height < THIN * width] for each in forms]
    every = sum(name == label for each in forms for name, _, _ in each)
    count, images = sum(each.count(label) for each in upright), sum(label in each for each in upright)
    seldom = images < max(2, OFTEN * len(forms)) or count < MOSTLY * every
    if seldom or any("person" in each for each in upright):
        return ""
    return f"{count} of {every} that are called {label} are taller than wide, in {images} images, and no person is"


def _without_name(labels: Counter[str]) -> Result | None:
    """Objects of a class that is none, or has no name: numbers and names are counted from different places."""
    none = [name for name in labels if name.strip().lower() in NO_CLASS]
    numbers = [name for name in labels if _NUMBER.fullmatch(name.strip().lower())]
    if none:
        count = sum(labels[name] for name in none)
        accuse = problem if count >= MANY * labels.total() else warning
        return accuse(
            "classes.background",
            f"{count} of {labels.total()} objects are called {none[0]!r}, which no object "
            "is. Class numbers and names are counted from different places: lists with a background begin at 1, others "
            "at 0, and COCO's own numbers go up to 90 with gaps",
            count=count,
            found=labels,
        )
    if numbers and len(numbers) < len(labels):
        return warning(
            "classes.without_name",
            f"{', '.join(sorted(numbers)[:SHOWN])} have no name, while other classes have: the list of names is too "
            "short. COCO's own numbers go up to 90 with gaps, and a list of 80 names leaves the gaps out: other names "
            "are then wrong as well",
            numbers=sorted(numbers),
            found=labels,
        )
    return None
