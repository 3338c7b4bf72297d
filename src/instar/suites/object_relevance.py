"""Object relevance: is an object found because of itself, or because of its background?

Mutations of the paper: random erase (MR-1), Gaussian noise on the object and on the background (MR-2). A rule is a
parameter of the paper's Tables 6 to 10; three follow-ups of each, of which two decide.
"""

from __future__ import annotations

__all__ = ["PAPER_RELATIONS", "RELATIONS", "each", "listed"]

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
OBJECT_SIGMA = 16.0
"""The paper's "variance 160", which is σ = 16 in its code."""
BACKGROUND_SIGMAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

RELATIONS = ("presence(gone)", "presence(kept)")
PAPER_RELATIONS = ("presence(gone, strict=true, least=0, unfound=count, draws=1)",
                   "presence(kept, strict=true, draws=1)")
"""MR-1 judged at every ratio, also where the source is not found, IoU above 0.3, and no vote: as the original's code
had it."""


EACH = 10
"""How many objects of an image get follow-ups of their own in `object-relevance/each`."""


def listed(relations: tuple[str, str], *, only: str = "all") -> tuple[str, ...]:
    """The spellings of the rules: `all`, `erase`, `object` or `background`."""
    gone, kept = relations
    rules = {
        "erase": [f"erase({ratio:g}) => {gone}" for ratio in (*RATIOS, 1.0)],
        "object": [f"object_noise({ratio:g}, {OBJECT_SIGMA:g}) => {kept}" for ratio in RATIOS],
        "background": [f"background_noise({sigma:g}) => {kept}" for sigma in BACKGROUND_SIGMAS]}
    return tuple(one for name, listed in rules.items() if only in ("all", name) for one in listed)


def each() -> tuple[str, ...]:
    """One follow-up per object, all others untouched: whether an object hangs on itself, not on its neighbours."""
    gone, kept = RELATIONS
    return tuple(one for number in range(EACH) for one in (
        f"erase(0.9, only={number}) => {gone}", f"erase(1, only={number}) => {gone}",
        f"object_noise(0.5, {OBJECT_SIGMA:g}, only={number}) => {kept}",
        f"object_noise(0.9, {OBJECT_SIGMA:g}, only={number}) => {kept}"))
