"""Hands: a suite of our own, and the paper's: what occlusion, exposure and motion blur cost over a whole dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from instar.suites import Suite, listed_suite

PAPER_JUDGING = {"normaliser": "pixels", "within": 37.795, "empty": "keep"}
"""The paper's 10 mm, which its code took for 37.795 pixels, the length of 10 mm at 96 dpi."""
TEST_CASES = {
    "occlusion": {
        "TC1 landmarks covered": "discs(1..21) => correlation(f1{direction})",
        "TC2 thumb covered": "finger_discs(thumb{wrist}) => degradation(f1{of})",
        "TC3 index covered": "finger_discs(index{wrist}) => degradation(f1{of})",
        "TC4 middle covered": "finger_discs(middle{wrist}) => degradation(f1{of})",
        "TC5 ring covered": "finger_discs(ring{wrist}) => degradation(f1{of})",
        "TC6 little covered": "finger_discs(little{wrist}) => degradation(f1{of})",
    },
    "exposure": {
        "TC7 strong underexposure": "gamma(5) => degradation(f1{of})",
        "TC8 underexposure": "gamma(2) => degradation(f1{of})",
        "TC9 overexposure": "gamma(0.5) => degradation(f1{of})",
        "TC10 strong overexposure": "gamma(0.2) => degradation(f1{of})",
    },
    "blur": {
        "TC11 vertical motion blur": "motion(20, 90{kernel}) => degradation(f1{of})",
        "TC12 horizontal motion blur": "motion(20, 0{kernel}) => degradation(f1{of})",
        "TC13 diagonal motion blur": "motion(20, 45{kernel}) => degradation(f1{of})",
    },
}
"""TC1 asks for a response in proportion to what is covered, the others for next to none."""
_PAPER = {"wrist": ", wrist=true", "kernel": ", kernel=square", "direction": ", direction=either", "of": ", of=whole"}
"""As in the paper's code, the wrist is covered with every finger, and blur shifts the image by a pixel. Any correlation
is one, and what is lost counts in points of F1, however few there were to lose."""
_OWN = dict.fromkeys(_PAPER, "")


OWN_RULES = {
    "identity": (
        "unchanged",
        "the system's own noise; kept because only that tells chance, and a memory of the image before",
    ),
    "mirror(h)": ("mirrored", "left and right, x and y exchanged, and answers that do not look at the image"),
    "rotation(20)": (
        "turned a little",
        "hands that are found upright only, and a wrong centre; kept because hands lean more often than they turn",
    ),
    "rotate90(1)": (
        "turned by a quarter",
        "width and height exchanged; kept because hands come at any angle, and 20° are few",
    ),
    "shift(0.12, 0.08)": (
        "shifted",
        "answers that lean on the middle of the frame or on the mean hand; kept because it alone leaves size and "
        "frame as they are",
    ),
    "crop(0.85, bottom_right)": (
        "cropped",
        "hands missed at the border, and answers in a fixed size; kept because it alone takes a part of the frame away",
    ),
    "pad(0.25, left_right)": (
        "letterboxed",
        "an aspect lost on the way to the network and back; kept because nothing else brings a border of its own",
    ),
    "resolution(0.5)": ("half as large", "small hands that are missed, and answers in a fixed size"),
    "gamma(3)": ("dark", "hands lost in dim rooms"),
    "gamma(0.4)": ("bright", "hands lost in glaring light"),
    "motion(9, 45)": ("motion blur", "hands lost in motion, tips before palms"),
    "jpeg(20)": ("compressed", "answers that lean on single pixels"),
    "filtered(brightness(-20, 0.7), skin)": ("darker skin", "hands found by the colour of the skin"),
}
"""The suite `hands`: the fewest rules that show every fault that we have seeded, and what a purpose says is kept beside
them (`studies.suites`); a title, and what each is for."""


def _own() -> Suite:
    return listed_suite(
        "hands",
        tuple(OWN_RULES),
        "Hands: moved, mirrored and turned frames, light, blur, compression and skin; the default for hands.",
        "poses",
        panels=("hands",),
        titles={spelling: title for spelling, (title, _) in OWN_RULES.items()},
        purposes={spelling: purpose for spelling, (_, purpose) in OWN_RULES.items()},
        conditions={"crop(0.85, bottom_right)": "cut"},
    )


def _made(name: str, help: str, groups: tuple[str, ...]) -> Suite:
    paper = name.endswith("@paper")
    titles = {
        spelling.format(**(_PAPER if paper else _OWN)): title
        for group in groups
        for title, spelling in TEST_CASES[group].items()
    }
    options = PAPER_JUDGING if paper else {}
    return listed_suite(name, tuple(titles), help, "poses", panels=("hands",), options=options, titles=titles)


SUITES: Mapping[str, Callable[[], Suite]] = {
    "hands": _own,
    **{
        name: partial(_made, name, help, groups)
        for name, help, groups in (
            ("hand-pose", "Hand pose robustness: 13 cases of occlusion, exposure and motion blur.", tuple(TEST_CASES)),
            ("hand-pose/occlusion", "Hand pose: landmarks and fingers covered.", ("occlusion",)),
            ("hand-pose/exposure", "Hand pose: under- and overexposed.", ("exposure",)),
            ("hand-pose/blur", "Hand pose: motion blur.", ("blur",)),
            ("hand-pose@paper", "Hand pose with the original's distances, wrist and shifting blur.", tuple(TEST_CASES)),
        )
    },
}
