"""Object relevance: is an object found because of itself, or because of its background?

Mutations of the paper: random erase (MR-1), Gaussian noise on the object and on the background (MR-2). A rule is a
parameter of the paper's Tables 6 to 10; three follow-ups of each, of which two decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

from instar.suites import Suite, listed_suite

ASKED = 3
"""How many objects of an image the suite `detections` erases, one at a time; `object-relevance/each` goes further."""
PURPOSES = {
    "identity": "answers by chance, which differ for the same image",
    "mirror(h)": "misses on one side, a limited number of answers, and classes by their order",
    "shift(0.1, 0.1)": "x and y exchanged, boxes on a grid or drawn to the middle of the frame, and misses in a part "
    "of it; kept because it alone leaves size and frame as they are",
    "crop(0.8, top_left)": "mistakes in another frame, on objects that fill more of it or are cut, and in boxes "
    "relative to it",
    "pad(0.2, left_right)": "mistakes in another aspect, such as a letterbox or boxes in the model's size, and misses "
    "at the border",
    "resolution(0.7)": "misses of smaller objects, boxes that grow, and sizes that the model does not take",
    "gamma(0.5)": "misses and ghosts in more light",
    "brightness(0, 0.4)": "misses, other classes and scores that collapse in less light",
    "motion(9, 0)": "objects that are lost or found several times in blur",
    "jpeg(20)": "answers that depend on fine texture, which compression takes away",
    "noise(8)": "mistakes in the noise of a sensor",
    "greyscale": "classes that are colours (leave this rule out where they should be)",
    **{
        f"erase(1, only={number}) => presence({effect})": f"{purpose}; kept because any of three objects may be the one"
        for number in range(ASKED)
        for effect, purpose in (
            ("gone", "an erased object that is still found, because of what is around it"),
            ("others", "an object that is lost when another one is erased"),
        )
    },
}
"""The suite of our own and what each rule is for: the smallest set that catches every fault of detectors in
`tests/quality`, and what a purpose says is kept beside it (`studies.suites`)."""
LIMIT = 0.3
"""The severity from which boxes are wrong in this suite, an IoU of 0.7: boxes a fifth too large are (0.31), those
that are rounded to whole pixels are not, down to objects of 8 pixels."""

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
OBJECT_SIGMA = 16.0
"""The paper's "variance 160", which is σ = 16 in its code."""
BACKGROUND_SIGMAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

RELATIONS = ("presence(gone)", "presence(kept)")
PAPER_RELATIONS = (
    "presence(gone, strict=true, least=0, unfound=count, draws=1, shared=true)",
    "presence(kept, strict=true, draws=1, shared=true)",
)
"""MR-1 judged at every ratio, an answer that stays the same is a violation whether the object is found or not, IoU
above 0.3, a detection for every object that it overlaps, and no vote: as the original's code had it."""
PAPER_OPTIONS = {"empty": "keep", "margin": 0.0}
"""An object that is never found is a reliable inference there, and a score below the confidence is nothing."""


EACH = 50
"""How many objects of an image get follow-ups of their own in `object-relevance/each`; a report says how many have
none."""


def listed(relations: tuple[str, str], *, only: str = "all") -> tuple[str, ...]:
    """The spellings of the rules: `all`, `erase`, `object` or `background`."""
    gone, kept = relations
    rules = {
        "erase": [f"erase({ratio:g}) => {gone}" for ratio in (*RATIOS, 1.0)],
        "object": [f"object_noise({ratio:g}, {OBJECT_SIGMA:g}) => {kept}" for ratio in RATIOS],
        "background": [f"background_noise({sigma:g}) => {kept}" for sigma in BACKGROUND_SIGMAS],
    }
    return tuple(chain.from_iterable(spellings for part, spellings in rules.items() if only in ("all", part)))


def each() -> tuple[str, ...]:
    """One follow-up per object, all others untouched: whether an object depends on itself, not on its neighbours."""
    gone, kept = RELATIONS
    return tuple(
        spelling
        for number in range(EACH)
        for spelling in (
            f"erase(1, only={number}) => {gone}",
            f"erase(1, only={number}) => presence(others)",
            f"object_noise(0.9, {OBJECT_SIGMA:g}, only={number}) => {kept}",
        )
    )


def own_suite() -> Suite:
    """The suite of our own for detections."""
    help = "Detectors: place, size, light, compression, noise and colour, and whether each object is found for itself."
    suite = listed_suite(
        "detections",
        tuple(PURPOSES),
        help,
        "detections",
        panels=("objects",),
        purposes=PURPOSES,
        conditions={"crop(0.8, top_left)": "cut"},
    )
    return replace(suite, thresholds={rule.id: LIMIT for rule in suite.rules if rule.relation is None})


# fmt: off
SUITES: Mapping[str, Callable[[], Suite]] = {"detections": own_suite} | {
    name: partial(
        listed_suite, name, spellings, help, "detections", panels=("objects",),
        options=PAPER_OPTIONS if name.endswith("@paper") else {},
    )
    for name, spellings, help in (
        ("object-relevance", listed(RELATIONS),
         "Object relevance: objects are erased, and noise is put on objects and on the background."),
        ("object-relevance/erase", listed(RELATIONS, only="erase"),
         "Object relevance, MR-1: what is erased is not found any more."),
        ("object-relevance/object", listed(RELATIONS, only="object"), "Object relevance, MR-2: noise on the object."),
        ("object-relevance/background", listed(RELATIONS, only="background"),
         "Object relevance, MR-2: noise on the background."),
        ("object-relevance/each", each(),
         f"Object relevance with follow-ups for one object at a time, for the first {EACH} objects of an image: what "
         "is erased is not found any more, and the others stay."),
        ("object-relevance@paper", listed(PAPER_RELATIONS),
         "Object relevance as published: one follow-up, MR-1 at every ratio."),
    )
}
# fmt: on
