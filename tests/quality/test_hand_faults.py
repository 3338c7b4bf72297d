"""Seeded faults of hand systems: each is caught by the suite `hands`, by the advice, or by both, and named in words.

A fault names rules that must be violated, and of its advice the ground with words that must be said. Faults that are
the same in every image show only against labels; `annotated=False` are those that show without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import instar
from instar import Poses
from instar.report.section import make_section
from instar.report.sentences import headline
from instar.tasks.hand_pose.panel import PANELS
from tests.perfect.hands import COUNT, HANDS, TWO_HANDS, Answer, View, advice, ran, violated
from tests.quality.words import accusations, assert_accused, assert_shown_and_reported, said

FINGERS = np.arange(1, 21).reshape(5, 4)
TIPS = FINGERS[:, 3]
DARK, BRIGHT, BLUR, SKIN = "gamma(3)", "gamma(0.4)", "motion(9, 45)", "filtered(brightness(-20, 0.7), skin)"
SHIFT, CROP, PAD = "shift(0.12, y=0.08)", "crop(0.85, at=bottom_right)", "pad(0.25, sides=left_right)"
MOVED = {"mirror(h)", "rotation(20)", "rotate90(1)", SHIFT, CROP, PAD, "resolution(0.5)"}
NOBODY = Poses.from_array([], skeleton="hand-21")


@dataclass(frozen=True)
class Fault:
    answer: Answer
    rules: tuple[str, ...] = ()
    """Rules that are violated; all others may be."""
    says: Mapping[str, str] = field(default_factory=dict)
    """Grounds of advice, and words that must be in it."""
    silent: tuple[str, ...] = ()
    """Grounds of advice that would be wrong."""
    annotated: bool = True
    empty: int = 0
    words: str = ""
    """What must be said of it, as a regular expression, where advice does not say it."""


# --- answers ---------------------------------------------------------------------------------------


def lost(*follow_ups: str) -> Answer:
    """Nobody is found in some follow-ups."""
    return lambda view: NOBODY if view.follow_up in follow_ups else view.answer()


def spoilt(change: Callable[[View, np.ndarray], np.ndarray]) -> Answer:
    """The right answer, changed."""
    return lambda view: view.answer(change(view, view.points.copy()) if view.case is not None else view.points)


def ordered(order: np.ndarray) -> Answer:
    return spoilt(lambda view, points: points[:, order])


def without(view: View, points: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    points[:, landmarks] = np.nan
    return points


def always(view: View) -> Poses:
    return view.answer() if view.case is not None else view.answer(HANDS[0][1][:1])


MEAN = np.mean([points[0] for _, points in HANDS], 0)[None]


def swapped_fingers(one: int, other: int) -> np.ndarray:
    order = np.arange(21)
    order[FINGERS[one]], order[FINGERS[other]] = FINGERS[other], FINGERS[one]
    return order


def always_right_handed(view: View) -> Poses:
    """In images of right hands that is right, and in a mirror it is not."""
    both = np.full((len(view.points), 42, 2), np.nan)
    both[:, 21:] = view.points
    return Poses.from_array(both, skeleton=TWO_HANDS)


def drifting_wrist(view: View, points: np.ndarray) -> np.ndarray:
    if view.follow_up not in ("source", "identity"):
        points[:, 0] += 25
    return points


def frozen_tips(view: View, points: np.ndarray) -> np.ndarray:
    points[:, TIPS] = view.source[:, TIPS]
    return points


def misses_at_the_border(view: View) -> Poses:
    inside = ((view.points > 10) & (view.points < np.array(view.size) - 10)).all((1, 2))
    return view.answer(view.points[inside])


def in_the_middle(view: View, points: np.ndarray) -> np.ndarray:
    return np.asarray(points - points.mean((0, 1)) + np.array(view.size) / 2)


def of_a_square(view: View, points: np.ndarray) -> np.ndarray:
    return np.asarray(points * 256 / np.array(view.size))


def aspect_lost(view: View, points: np.ndarray) -> np.ndarray:
    """It letterboxes to a square and forgets the borders on the way back."""
    longest = max(view.size)
    border = (longest - np.array(view.size)) / 2
    return np.asarray((points + border) * np.array(view.size) / longest)


def rare(view: View) -> Poses:
    return view.answer() if view.case == 0 else NOBODY


def rare_and_fragile(view: View) -> Poses:
    """Answers one image alone, not when it is blurred or dark, and without fingertips in bright light."""
    if view.case != 1 or view.follow_up in (BLUR, DARK):
        return NOBODY
    return view.answer(without(view, view.points.copy(), TIPS) if view.follow_up == BRIGHT else view.points)


FAULTS = {
    "ignores the thumb": Fault(
        spoilt(lambda v, p: without(v, p, FINGERS[0])), says={"finger": "ignores the thumb"}, silent=("unseeing",)
    ),
    "ignores the thumb, without labels": Fault(
        spoilt(lambda v, p: without(v, p, FINGERS[0])), says={"finger": "ignores the thumb"}, annotated=False
    ),
    "loses the little finger in the dark": Fault(
        spoilt(lambda v, p: without(v, p, FINGERS[4]) if v.follow_up in (DARK, BLUR, "jpeg(20)", BRIGHT, SKIN) else p),
        says={"finger": "loses the little finger when the image changes"},
        annotated=False,
    ),
    "always answers": Fault(always, says={"invents": "although nothing is there"}, empty=10),
    "loses dark hands": Fault(lost(DARK), (DARK,), {"dark": "loses dark hands"}),
    "loses bright hands": Fault(lost(BRIGHT), (BRIGHT,), {"weak": "bright costs 100 of 100 points"}),
    "loses hands under blur": Fault(lost(BLUR), (BLUR,), {"weak": "fast motion"}),
    "loses dark skin": Fault(lost(SKIN), (SKIN,), {"weak": "another skin"}),
    "loses small hands": Fault(lost("resolution(0.5)"), ("resolution(0.5)",), {"weak": "half as large costs 100"}),
    "loses compressed hands": Fault(lost("jpeg(20)"), ("jpeg(20)",), {"weak": "compressed costs 100"}),
    "only upright": Fault(
        lost("rotation(20)", "rotate90(1)"),
        ("rotation(20)", "rotate90(1)"),
        {"weak": "turned a little costs 100 of 100 points of F1"},
    ),
    "mean hand": Fault(lambda view: view.answer(MEAN + 30), (SHIFT, "mirror(h)"), {"unseeing": "mean hand"}),
    "mean hand, without labels": Fault(
        lambda view: view.answer(MEAN), (SHIFT, "mirror(h)"), {"unseeing": "looks at the image at all"}, annotated=False
    ),
    "exchanged fingers": Fault(
        ordered(swapped_fingers(1, 2)), says={"exchanged": "exchanges the index finger and the middle finger"}
    ),
    "exchanged thumb and little finger in a mirror": Fault(
        spoilt(lambda v, p: p[:, swapped_fingers(0, 4)] if v.follow_up == "mirror(h)" else p),
        says={"exchanged": "exchanges the thumb and the little finger"},
        annotated=False,
    ),
    "left hand labelled right": Fault(
        always_right_handed, ("mirror(h)",), annotated=False, words=r"mirror\(h\) \(.+\): .*left and right, x and y"
    ),
    "mirror not followed": Fault(
        lambda v: v.answer(v.source if v.follow_up == "mirror(h)" else v.points),
        ("mirror(h)",),
        {"follows": "under mirrored, its answers stay where they were"},
    ),
    "wrist drifts": Fault(spoilt(drifting_wrist), says={"finger": "loses the wrist when the image changes"}),
    "wrist drifts, without labels": Fault(spoilt(drifting_wrist), says={"finger": "the wrist"}, annotated=False),
    "wrist always wrong": Fault(
        spoilt(lambda v, p: np.concatenate([p[:, :1] + 30, p[:, 1:]], 1)), says={"finger": "ignores the wrist"}
    ),
    "tips frozen": Fault(spoilt(frozen_tips), says={"finger": "fingertips when the image changes"}),
    "0-1 coordinates": Fault(
        spoilt(lambda v, p: p / np.array(v.size)), says={"misread": "from 0 to 1"}, silent=("unseeing", "weak")
    ),
    "0-1 coordinates, without labels": Fault(
        spoilt(lambda v, p: p / np.array(v.size)), says={"misread": "from 0 to 1"}, annotated=False
    ),
    "another image's size": Fault(
        spoilt(of_a_square), (CROP, PAD), {"misread": "pixels of an image of 256 × 256"}, silent=("unseeing",)
    ),
    "another image's size, without labels": Fault(
        spoilt(of_a_square),
        (SHIFT, CROP, PAD),
        annotated=False,
        words=r"resolution\(0.5\) \(.+\): by up to .*answers in a fixed size",
    ),
    "(y, x)": Fault(spoilt(lambda v, p: p[..., ::-1]), ("mirror(h)",), {"misread": "(y, x)"}, silent=("unseeing",)),
    "fingers from the tip": Fault(
        ordered(np.concatenate([[0], FINGERS[:, ::-1].ravel()])), says={"misread": "from the tip to the knuckle"}
    ),
    "aspect lost": Fault(
        spoilt(aspect_lost), (PAD,), annotated=False, words=r"pad\(.*by up to .*aspect lost on the way to the network"
    ),
    "never answers": Fault(
        lambda view: NOBODY, says={"silent": "never answers"}, silent=("unseeing", "robust", "precise")
    ),
    "never answers, without labels": Fault(lambda v: NOBODY, says={"silent": "none of 12 images"}, annotated=False),
    "is never sure": Fault(
        lambda view: view.answer(scores=[0.3] * len(view.points)), says={"silent": "below 0.5 does not count"}
    ),
    "hardly ever answers": Fault(
        rare,
        says={"few": "No advice yet"},
        silent=("unseeing",),
        annotated=False,
        words="found nothing in 11 of 12 source images",
    ),
    "hardly ever answers, and less when it changes": Fault(
        rare_and_fragile,
        says={"poor": "Poor as it is", "open": "answers the source in 1 of 12 images: that is too little to say"},
        silent=("weak", "dark", "precise", "robust"),  # one answer is lost: no interval is wholly above 5 %
    ),
    "all points in one place": Fault(
        spoilt(lambda v, p: p.mean(1, keepdims=True) + 0 * p), says={"one place": "in one place"}, silent=("unseeing",)
    ),
    "misses at the border": Fault(misses_at_the_border, (CROP,), {"weak": "cropped costs"}),
    "follows the frame's middle": Fault(spoilt(in_the_middle), (SHIFT, CROP), {"follows": "shifted"}, annotated=False),
    "doubles a hand": Fault(
        lambda v: v.answer(np.concatenate([v.points, v.points + 1])),
        says={"doubled": "one hand twice"},
        annotated=False,
    ),
    "poor": Fault(
        spoilt(lambda v, p: p + np.array([40.0, 0]) * (1 if (v.case or 0) % 2 else -1)), says={"poor": "Poor as it is"}
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_and_named(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    run = ran(fault.answer, tmp_path / "run", annotated=fault.annotated, empty=fault.empty)
    assert set(run.predictions()["status"]) <= {"ok", "not applicable"}
    assert set(fault.rules) <= violated(run), "rules of the suite"
    spoken = advice(run)
    for ground, words in fault.says.items():
        assert words in spoken.get(ground, ""), spoken
    assert not spoken.keys() & set(fault.silent), spoken
    assert fault.says or fault.words, "a fault must be said in words"
    if fault.words:
        assert_accused(run, fault.words)
    for words in fault.says.values():
        assert any(words.lower() in each.words.lower() for each in said(run)), words
    assert accusations(run)
    if name == "loses dark hands":
        assert_shown_and_reported(run)


def test_every_rule_of_the_suite_catches_something() -> None:
    needed = {rule for fault in FAULTS.values() for rule in fault.rules}
    known = {rule.id for rule in instar.suite("hands").rules}
    assert needed <= known and known - needed == {"identity"}, "which catches chance alone"


def test_never_answering_is_no_clean_bill(tmp_path: Path) -> None:
    run = ran(lambda view: NOBODY, tmp_path / "run", "hand-pose/exposure")
    assert run.any_rule()["judged"] == 0
    assert "so that nothing could be judged" in headline(make_section(run, "accuracy"), 0)[0]
    assert run.over_cases().filter(severity=0.0).is_empty(), "nothing was there to be lost"


def test_advice_is_in_tables_and_report_of_the_own_suite(tmp_path: Path) -> None:
    run = ran(lost(DARK), tmp_path / "run")
    panel = PANELS["hands"]
    assert panel.tables is not None
    printed = panel.tables([run], "default", 0.05)
    assert printed is not None and any("loses dark hands" in line for line in printed.after)
    assert run.panels() == ["hands"] and run.cases().height == COUNT
