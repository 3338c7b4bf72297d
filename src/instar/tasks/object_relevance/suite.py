"""Object relevance: is an object found because of itself, or because of its background?

Mutations of the paper: random erase (MR-1), Gaussian noise on the object and on the background (MR-2). A rule is a
parameter of the paper's Tables 6 to 10; three follow-ups of each, of which two decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain

from instar.suites import Suite, listed_suite

# fmt: off
DETECTIONS = (
    "identity",
    "mirror(h)", "stretch(1, 0.8)", "stretch(1.25, 1)",
    "resolution(0.7)", "gamma(0.5)", "gamma(1.5)", "brightness(20, 0.8)", "contrast(0.7)", "bilateral(80, 7)",
    "motion(5, 0)", "noise(8)",
    "greyscale", "colour_wheel(90)",
)
# fmt: on

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
OBJECT_SIGMA = 16.0
"""The paper's "variance 160", which is σ = 16 in its code."""
BACKGROUND_SIGMAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

RELATIONS = ("presence(gone)", "presence(kept)")
PAPER_RELATIONS = (
    "presence(gone, strict=true, least=0, unfound=count, draws=1)",
    "presence(kept, strict=true, draws=1)",
)
"""MR-1 judged at every ratio, an answer that stays the same is a violation whether the object is found or not, IoU
above 0.3, and no vote: as the original's code had it."""
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
    """One follow-up per object, all others untouched: whether an object hangs on itself, not on its neighbours."""
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


# fmt: off
SUITES: Mapping[str, Callable[[], Suite]] = {
    name: partial(
        listed_suite, name, spellings, help, "detections", panels=("objects",),
        options=PAPER_OPTIONS if name.endswith("@paper") else {},
    )
    for name, spellings, help in (
        ("detections", DETECTIONS, "A first look at a detector: geometry, image quality, noise and colour."),
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
