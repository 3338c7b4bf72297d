"""Hand pose robustness: what occlusion, exposure and motion blur cost, over a whole dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.suites import Suite, listed_suite

__all__ = ["PAPER_JUDGING", "SUITES", "listed"]

PAPER_JUDGING = {"normaliser": "pixels", "within": 37.795}
"""The paper's 10 mm, which its code took for 37.795 pixels, the length of 10 mm at 96 dpi."""


def listed(*, only: str = "all", paper: bool = False) -> tuple[str, ...]:
    """The 13 test cases: TC1 asks for a response in proportion to what is covered, the others for next to none.

    As in the paper's code, the wrist is covered with every finger, and blur shifts the picture by a pixel.
    """
    more, kernel = (", wrist=true", ", kernel=square") if paper else ("", "")
    rules = {
        "occlusion": [
            "discs(1..21) => correlation(f1)",
            *(
                f"finger_discs({finger}{more}) => degradation(f1)"
                for finger in ("thumb", "index", "middle", "ring", "little")
            ),
        ],
        "exposure": [f"gamma({gamma:g}) => degradation(f1)" for gamma in (5, 2, 0.5, 0.2)],
        "blur": [f"motion(20, {direction}{kernel}) => degradation(f1)" for direction in (90, 0, 45)],
    }
    return tuple(one for name, listed in rules.items() if only in ("all", name) for one in listed)


def _made(name: str, help: str, *, only: str = "all", paper: bool = False) -> Suite:
    spellings = listed(only=only, paper=paper)
    every = listed(paper=paper)
    return listed_suite(
        name,
        spellings,
        help,
        "poses",
        panels=("hands",),
        options=PAPER_JUDGING if paper else {},
        titles={spelling: f"TC{every.index(spelling) + 1}" for spelling in spellings},
    )


SUITES: Mapping[str, Callable[[], Suite]] = {
    "hand-pose": lambda: _made("hand-pose", "Hand pose robustness: 13 cases of occlusion, exposure and motion blur."),
    "hand-pose/occlusion": lambda: _made(
        "hand-pose/occlusion", "Hand pose: landmarks and fingers covered.", only="occlusion"
    ),
    "hand-pose/exposure": lambda: _made("hand-pose/exposure", "Hand pose: under- and overexposed.", only="exposure"),
    "hand-pose/blur": lambda: _made("hand-pose/blur", "Hand pose: motion blur.", only="blur"),
    "hand-pose@paper": lambda: _made(
        "hand-pose@paper", "Hand pose with the original's distances, wrist and shifting blur.", paper=True
    ),
}
