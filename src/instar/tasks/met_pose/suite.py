"""Pose estimation: our own suite, and MET-POSE's Table I, 122 rules and identity, in the paper's order.

A star marks the rules of the restricted set, SubRels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from instar.suites import Suite, listed_suite

Table = Mapping[str, tuple[str, ...]]

CLASSES: Table = {
    "spatial": ("identity", "stretch", "mirror", "rotation"),
    "quality": ("resolution", "gamma", "brightness", "bilateral", "motion"),
    "colour": ("greyscale", "colour_wheel", "colour_channels", "colour_fill"),
}

# fmt: off
TABLE: Table = {
    "identity": ("identity *",),
    "stretch": (  # height, width
        "stretch(0.6, 1)", "stretch(0.8, 1)", "stretch(0.9, 1.1)", "stretch(0.95, 1.05)",
        "stretch(1, 1.4)", "stretch(1, 1.25)", "stretch(1, 0.8) *", "stretch(1, 0.6) *",
        "stretch(1.05, 0.95)", "stretch(1.1, 0.9)", "stretch(1.25, 1) *", "stretch(1.4, 1)"),
    "mirror": ("mirror(h) *", "mirror(v)", "mirror(both)"),
    "rotation": ("rotation(5) *", "rotation(10) *", "rotation(15)", "rotation(25)"),
    "resolution": (
        "resolution(0.1)", "resolution(0.2) *", "resolution(0.3)", "resolution(0.4)", "resolution(0.5)",
        "resolution(0.6)", "resolution(0.7) *", "resolution(0.8)", "resolution(0.9)", "resolution(0.95)",
        "resolution(0.98)"),
    "gamma": (
        "gamma(0.25)", "gamma(0.5) *", "gamma(0.85)", "gamma(0.95)", "gamma(1.05)", "gamma(1.15)",
        "gamma(1.5)", "gamma(1.75)"),
    "brightness": (  # add, multiply
        "brightness(-20, 0.8)", "brightness(-20, 1.6)", "brightness(0, 1.05)", "brightness(0, 1.15)",
        "brightness(20, 0.4)", "brightness(20, 0.8) *", "brightness(20, 1.2)", "brightness(20, 1.6)",
        "brightness(30, 1.15)"),
    "bilateral": (  # strength, size
        "bilateral(10, 3) *", "bilateral(10, 5)", "bilateral(10, 7)", "bilateral(10, 9)",
        "bilateral(30, 3)", "bilateral(30, 5)", "bilateral(30, 7)", "bilateral(30, 9)",
        "bilateral(50, 3)", "bilateral(50, 5)", "bilateral(50, 7)", "bilateral(50, 9)",
        "bilateral(80, 3)", "bilateral(80, 5)", "bilateral(80, 7) *", "bilateral(80, 9)",
        "bilateral(125, 3)", "bilateral(125, 5) *", "bilateral(125, 7)", "bilateral(125, 9)",
        "bilateral(150, 3)", "bilateral(150, 5)", "bilateral(150, 7)", "bilateral(150, 9)",
        "bilateral(180, 3)", "bilateral(180, 5)", "bilateral(180, 7)", "bilateral(180, 9)"),
    "motion": (  # size, direction; the printed table lacks (11, 40)
        "motion(5, 0)", "motion(5, 40)", "motion(5, 70)", "motion(5, 100)",
        "motion(7, 0)", "motion(7, 40)", "motion(7, 70)", "motion(7, 100)",
        "motion(9, 0)", "motion(9, 40)", "motion(9, 70)", "motion(9, 100)",
        "motion(11, 0) *", "motion(11, 40)", "motion(11, 70)", "motion(11, 100) *"),
    "greyscale": ("greyscale *",),
    "colour_wheel": (
        "colour_wheel(10, skin)", "colour_wheel(30, skin)", "colour_wheel(90, skin)",
        "colour_wheel(-45, skin)",
        "colour_wheel(10, clothes)", "colour_wheel(30, clothes)", "colour_wheel(90, clothes)",
        "colour_wheel(-45, clothes)", "colour_wheel(90, hair) *", "colour_wheel(90, background) *"),
    "colour_channels": (
        "colour_channels((0.9, 1.1, 1.1), skin)", "colour_channels((1.1, 1.1, 0.9), skin)",
        "colour_channels((0.8, 1.3, 1.3), skin)", "colour_channels((1.3, 1.3, 0.8), skin)",
        "colour_channels((0.6, 1.4, 1), skin)", "colour_channels((1.4, 1, 0.6), skin)",
        "colour_channels((0.45, 1, 1.2), skin)", "colour_channels((1.2, 1, 0.45), skin)",
        "colour_channels((1, 1, 1), bgr, skin)", "colour_channels((1, 1, 1), xyz, skin)"),
    "colour_fill": (  # the printed table lacks (230, 120, 120)
        "colour_fill((0, 0, 255), background)", "colour_fill((255, 180, 120), background)",
        "colour_fill((33, 28, 27), background)", "colour_fill((0, 0, 255), skin)",
        "colour_fill((255, 180, 120), skin)", "colour_fill((33, 28, 27), skin)",
        "colour_fill((0, 0, 255), clothes)", "colour_fill((255, 180, 120), clothes)",
        "colour_fill((33, 28, 27), clothes)", "colour_fill((230, 120, 120), skin)"),
}

PAPER_TABLE: Table = {
    **TABLE,
    "mirror": (  # the original exchanged left and right for both and not for v
        "mirror(h) *", "mirror(v) => poses(handedness=kept)", "mirror(both) => poses(handedness=swapped)"),
    "rotation": (
        "rotation(5, centre=swapped) *", "rotation(10, centre=swapped) *", "rotation(15, centre=swapped)",
        "rotation(25, centre=swapped)"),
    "brightness": (
        "brightness(-20, 0.8, absolute)", "brightness(-20, 1.6, absolute)", "brightness(0, 1.05, absolute)",
        "brightness(0, 1.15, absolute)", "brightness(20, 0.4, absolute)", "brightness(20, 0.8, absolute) *",
        "brightness(20, 1.2, absolute)", "brightness(20, 1.6, absolute)", "brightness(30, 1.15, absolute)"),
    "motion": (  # (1, 40) is the original's typo for (11, 40)
        "motion(5, 0, unnormalised)", "motion(5, 40, unnormalised)", "motion(5, 70, unnormalised)",
        "motion(5, 100, unnormalised)", "motion(7, 0, unnormalised)", "motion(7, 40, unnormalised)",
        "motion(7, 70, unnormalised)", "motion(7, 100, unnormalised)", "motion(9, 0, unnormalised)",
        "motion(9, 40, unnormalised)", "motion(9, 70, unnormalised)", "motion(9, 100, unnormalised)",
        "motion(11, 0, unnormalised) *", "motion(1, 40, unnormalised)", "motion(11, 70, unnormalised)",
        "motion(11, 100, unnormalised) *"),
    "colour_wheel": (  # the original counted OpenCV's half degrees: 90 turned the hue by 180
        "colour_wheel(20, skin)", "colour_wheel(60, skin)", "colour_wheel(180, skin)",
        "colour_wheel(-90, skin)",
        "colour_wheel(20, clothes)", "colour_wheel(60, clothes)", "colour_wheel(180, clothes)",
        "colour_wheel(-90, clothes)", "colour_wheel(180, hair) *", "colour_wheel(180, background) *"),
    "colour_channels": (
        "colour_channels((0.9, 1.1, 1.1), rgb, wrap, skin)",
        "colour_channels((1.1, 1.1, 0.9), rgb, wrap, skin)",
        "colour_channels((0.8, 1.3, 1.3), rgb, wrap, skin)",
        "colour_channels((1.3, 1.3, 0.8), rgb, wrap, skin)",
        "colour_channels((0.6, 1.4, 1), rgb, wrap, skin)",
        "colour_channels((1.4, 1, 0.6), rgb, wrap, skin)",
        "colour_channels((0.45, 1, 1.2), rgb, wrap, skin)",
        "colour_channels((1.2, 1, 0.45), rgb, wrap, skin)",
        "colour_channels((1, 1, 1), bgr, wrap, skin)", "colour_channels((1, 1, 1), xyz, wrap, skin)"),
}
# fmt: on

POSES: Mapping[str, str] = {
    "identity": "answers that differ by chance, which is the system's own noise",
    "mirror(h)": "left and right taken for each other, in the body, the face or the hands",
    "mirror(both)": "left and right named by the image instead of by the person, and mistakes on people upside down",
    "rotation(25)": "another centre or another order of axes, and mistakes on people who lean",
    "stretch(1.25, 1)": "a wrong aspect ratio, coordinates of another size, and mistakes on people who are larger",
    "resolution(0.2)": "mistakes on small people, coarse grids, and what needs fine detail",
    "shift(0.1, 0.1)": "answers that lean on the middle of the frame, and mistakes on people at its edge",
    "crop(0.9)": "mistakes on people who are cut and in a smaller frame; kept because it alone takes a part of the "
    "frame away",
    "pad(0.25, left_right)": "letterbox offsets to the sides, and an aspect ratio that is ignored; kept because "
    "nothing else brings a border of its own",
    "pad(0.25, top_bottom)": "letterbox offsets above and below; kept because an offset may be wrong in one direction",
    "gamma(0.3)": "mistakes on bright images",
    "gamma(2.5)": "mistakes on dark images",
    "motion(11, 0)": "mistakes in blur along the image; kept because texture that lies along the other blur outlives "
    "it",
    "motion(11, 90)": "mistakes in blur across the image; kept because texture that lies along the other blur "
    "outlives it",
    "noise(16)": "mistakes in grain, as of a sensor in little light",
    "jpeg(10)": "mistakes in the blocks of strong compression",
    "greyscale": "colour that is relied on",
    "colour_wheel(90, clothes)": "answers that depend on the colour of clothes; kept because who loses one colour may "
    "well bear grey",
    "colour_wheel(90, skin)": "answers that depend on the colour of skin",
}
"""Our own suite: the smallest that shows every fault of a pose estimator that `tests/quality` seeds, and what a purpose
says is kept beside it (`studies.suites`). Nothing in it covers anybody: a landmark that is there stays where it can be
seen."""

PAPER_BINS = (*((number, number) for number in range(5)), (5, 30), (30, 61), (61, 91), (91, 121), (122, 122))
"""Numbers of violated rules as the original's Table II counted them: 30, 61 and 91 twice each."""

# fmt: off
PAPER_JUDGING: Mapping[str, object] = {
    "aggregate": "median+mean", "normaliser": "part", "outside": "keep", "space": "normalised",
    "confidence": 0.0, "margin": 0.0, "share": 0.0, "partly": 1.0, "empty": "keep", "zone_share": 1.0,
}
# fmt: on
"""As the original's code measured: in shoulder widths, of whoever was found at whatever score."""


def listed(table: Table, *, only: str = "all") -> tuple[str, ...]:
    """The spellings of a table: `all`, those of one class, or with `sub` those that have a star."""
    chosen = [
        spelling
        for family, spellings in table.items()
        for spelling in spellings
        if only in ("all", "sub") or family in CLASSES[only]
    ]
    return tuple(one.removesuffix(" *") for one in chosen if only != "sub" or one.endswith(" *"))


def _suite(name: str, help: str, *, only: str = "all") -> Suite:
    if not name.endswith("@paper"):
        panels = ("violated-counts", "classic", "landmarks")
        return listed_suite(name, listed(TABLE, only=only), help, "poses", panels=panels)
    panels = ("violated-counts@paper", "classic", "landmarks")
    return listed_suite(name, listed(PAPER_TABLE, only=only), help, "poses", options=PAPER_JUDGING, panels=panels)


def _own() -> Suite:
    help = "Poses: a small set of rules that shows every fault we know. The suite of pose estimators by default."
    panels = ("violated-counts", "classic", "landmarks")
    return listed_suite(
        "poses",
        tuple(POSES),
        help,
        "poses",
        panels=panels,
        purposes=POSES,
        conditions={"shift(0.1, 0.1)": "cut", "crop(0.9)": "cut"},
    )


SUITES: Mapping[str, Callable[[], Suite]] = {"poses": _own} | {
    name: partial(_suite, name, help, only=only)
    for name, help, only in (
        ("met-pose", "MET-POSE, Table I: 122 rules and identity.", "all"),
        ("met-pose/sub", "MET-POSE's restricted set: 18 rules and identity.", "sub"),
        ("met-pose/spatial", "MET-POSE: shape and orientation.", "spatial"),
        ("met-pose/quality", "MET-POSE: image quality.", "quality"),
        ("met-pose/colour", "MET-POSE: colours, in zones and everywhere.", "colour"),
        ("met-pose@paper", "MET-POSE as the original's code had it, defects included.", "all"),
        ("met-pose/sub@paper", "MET-POSE's restricted set as the original's code had it.", "sub"),
    )
}
