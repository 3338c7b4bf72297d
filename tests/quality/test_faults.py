"""Seeded faults: each is caught by the rules that can see it, and by no other rule of MET-POSE.

`caught` are patterns over the rules' spellings. For every question asked of a fault, its rules must be
violated and all other rules of the suite must not; and the perfect system, judged alike, must violate none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest

import instar
from instar.report.findings import violated_rules
from tests.perfect.scenes import (
    ZONES,
    Scene,
    View,
    crowd,
    holistic_person,
    one_person,
    perfect,
    severities,
    system_of,
    three_people,
)
from tests.quality import faults as f

RULES = [rule.id for rule in instar.suite("met-pose").rules]

DARK = ("gamma(1.5)", "gamma(1.75)", "brightness(-20, 0.8)", "brightness(20, 0.4)")
BRIGHT = ("gamma(0.25)", "gamma(0.5)", "brightness(20, 1.6)")
OTHER_LIGHT = (*DARK, *BRIGHT, "brightness(-20, 1.6)", "brightness(20, 1.2)", "brightness(30, 1.15)")
STREAKS = ("motion(9, *)", "motion(11, *)")
PIXELS = {"aggregate": "max", "normaliser": "pixels"}
PAINTED: Mapping[str, Any] = {"zone_share": 1.0}
"""Crowds, hands and faces are not painted, so that the scenes' segmenter takes them for background: all is judged."""


@dataclass(frozen=True)
class Asked:
    """A judging, a threshold, the rules that are violated then, and what is said of it."""

    caught: tuple[str, ...]
    threshold: float = 0.2
    judging: Mapping[str, Any] = field(default_factory=dict)
    kind: str | None = None
    targets: tuple[str, ...] = ("0",)

    @property
    def rules(self) -> list[str]:
        for pattern in self.caught:
            assert any(fnmatchcase(rule, pattern) for rule in RULES), f"no rule is like {pattern}"
        return [rule for rule in RULES if any(fnmatchcase(rule, pattern) for pattern in self.caught)]


@dataclass(frozen=True)
class Fault:
    answer: Callable[[View], instar.Poses]
    asked: tuple[Asked, ...]
    scene: Callable[[], Scene] = one_person
    deterministic: bool = True
    words: str = field(kw_only=True)
    """What must be said of it, as a regular expression over the rules' sentences; empty where nothing is wrong."""


def lost(*caught: str, **more: object) -> Asked:
    return Asked(caught, math.inf, kind="lost", **more)  # type: ignore[arg-type]


HANDS, BODY = {"landmarks": "hands"}, {"landmarks": "body"}
BOTH_HANDS = ("0/left_hand", "0/right_hand")
FAULTS = {
    "never exchanges left and right": Fault(
        f.never_exchanges,
        (Asked(("mirror(h)", "mirror(v)"), kind="exchanged"),),
        words=r"mirror\(h\) \(.+\): left and right change places",
    ),
    "exchanges them for any flip": Fault(
        f.exchanges_for_any_flip,
        (Asked(("mirror(both)",), kind="exchanged"),),
        words=r"mirror\(both\) \(.+\): left and right change places",
    ),
    "names them by the picture": Fault(
        f.names_by_the_picture,
        (Asked(("mirror(v)", "mirror(both)"), kind="exchanged"),),
        words=r"mirror\(v\) \(.+\): left and right change places",
    ),
    "hands exchanged in the dark": Fault(
        f.hands_exchanged_in_the_dark,
        (Asked(DARK, judging=HANDS, kind="exchanged", targets=BOTH_HANDS), Asked((), judging=BODY)),
        holistic_person,
        words=r"gamma\(1.5\) \(.+\): left and right change places",
    ),
    # an error that is always the same is beyond metamorphic testing
    "hands always exchanged": Fault(f.hands_exchanged, (Asked((), judging=HANDS),), holistic_person, words=""),
    # the right hand in a mirror is the left hand of the source
    "no right hand in a mirror": Fault(
        f.no_right_hand_in_a_mirror,
        (lost("mirror(h)", "mirror(v)", judging=HANDS, targets=("0/left_hand",)), Asked((), judging=BODY)),
        holistic_person,
        words=r"mirror\(h\) \(.+\): what is found in the source has no match in the follow-up",
    ),
    "rotates about another centre": Fault(
        f.rotates_about_another_centre,
        (Asked(("rotation(*)",), 4, PIXELS), Asked(("rotation(*)",), 0.05)),
        words=r"rotation\(25\) \(.+\): by up to 24\.5",
    ),
    "rotates in unit coordinates": Fault(
        f.rotates_in_unit_coordinates,
        (Asked(("rotation(*)",), 2, PIXELS),),
        words=r"rotation\(25\) \(.+\): by up to 14\.9",
    ),
    # (1/scale − 1)·√½ px by scaling, 1 px by a mirror, √2·sin(θ/2) px by rotation
    "half a pixel off": Fault(
        f.half_a_pixel_off,
        (Asked(("mirror(*)", "resolution(0.[1-4])"), 0.9, PIXELS), Asked((), 0.2)),
        words=r"resolution\(0.1\) \(.+\): by up to 6\.4",
    ),
    "x and y exchanged": Fault(
        f.x_and_y_exchanged,
        (Asked(("stretch(*)", "mirror(*)", "rotation(*)"), 1, PIXELS),),
        words=r"mirror\(v\) \(.+\): by up to 241",
    ),
    "answers in its own size": Fault(
        f.answers_in_its_own_size,
        (Asked(("stretch(*)", "resolution(*)"), 1, PIXELS),),
        words=r"resolution\(0.5\) \(.+\): by up to 288",
    ),
    "on a grid of the frame": Fault(
        f.on_a_grid_of_the_frame, (Asked(("rotation(*)",), 2, PIXELS),), words=r"rotation\(15\) \(.+\): by up to 7\.98"
    ),
    "on a grid of pixels": Fault(
        f.on_a_grid_of_pixels,
        (Asked(("rotation(*)", "stretch(*)", "resolution(*)"), 2, PIXELS),),
        words=r"resolution\(0.1\) \(.+\): by up to 45\.6",
    ),
    "wrong when small": Fault(
        f.wrong_when_small, (Asked(("resolution(0.[1-4])",)),), words=r"resolution\(0.1\) \(.+\): by up to 0\.32"
    ),
    "drifts with the light": Fault(
        f.drifts_with_the_light, (Asked(OTHER_LIGHT, 4, PIXELS),), words=r"gamma\(0.25\) \(.+\): by up to 21\.4"
    ),
    "drawn along a streak": Fault(
        f.drawn_along_a_streak, (Asked(STREAKS),), words=r"motion\(9, 0\) \(.+\): by up to 0\.24"
    ),
    "nobody without fine texture": Fault(
        f.nobody_without_fine_texture,
        (
            # the weave's stripes are upright: it outlives a filter that spares it and a short streak along it
            lost(
                "resolution(0.[1-7])",
                "bilateral([358]0, *)",
                "bilateral(1??, *)",
                "motion(5, 0)",
                "motion(5, [47]0)",
                "motion(7, *)",
                *STREAKS,
            ),
        ),
        words=r"resolution\(0.1\) \(.+\): what is found in the source has no match in the follow-up",
    ),
    "nobody in another shirt": Fault(
        f.nobody_in_another_shirt,
        (
            lost(
                "greyscale",
                "filtered(colour_wheel(30), clothes)",
                "filtered(colour_wheel(90), clothes)",
                "filtered(colour_wheel(-45), clothes)",
                "filtered(colour_fill(*), clothes)",
            ),
        ),
        words=r"clothes\) \(.+\): what is found in the source has no match in the follow-up",
    ),
    "nobody of another skin": Fault(
        f.nobody_of_another_skin,
        (lost("filtered(*, skin)"),),
        words=r"skin\) \(.+\): what is found in the source has no match in the follow-up",
    ),
    "loses somebody in the dark": Fault(
        f.loses_somebody_in_the_dark,
        (lost(*DARK, targets=("1",)),),
        three_people,
        words=r"gamma\(1.5\) \(.+\): what is found in the source has no match in the follow-up",
    ),
    "sees a ghost in the light": Fault(
        f.sees_a_ghost_in_the_light,
        (Asked(BRIGHT, math.inf, kind="invented", targets=("whole",)),),
        three_people,
        words=r"gamma\(0.5\) \(.+\): what is found in the follow-up has no match in the source",
    ),
    "sees double when large": Fault(
        f.sees_double_when_large,
        (
            Asked(
                ("stretch(1.25, 1)", "stretch(1.4, 1)", "stretch(1, 1.25)", "stretch(1, 1.4)"),
                math.inf,
                kind="doubled",
                targets=("whole",),
            ),
        ),
        three_people,
        words=r"stretch\(1, 1.4\) \(.+\): one is found twice",
    ),
    "in another order": Fault(f.in_another_order, (Asked((), 1, PIXELS),), three_people, words=""),
    "a crowd in another order": Fault(f.in_another_order, (Asked((), 1, PIXELS),), crowd, words=""),
    "loses one of a crowd": Fault(
        f.loses_somebody_in_the_dark,
        (lost(*DARK, targets=("1",)),),
        crowd,
        words=r"gamma\(1.5\) \(.+\): what is found in the source has no match in the follow-up",
    ),
    "no left wrist without colour": Fault(
        f.no_left_wrist_without_colour,
        (
            Asked(("greyscale",), math.inf, {"aggregate": "max"}, kind="partly lost"),
            Asked((), 0.01),
            Asked(("greyscale",), math.inf, {"landmarks": "left_wrist"}, kind="lost"),
        ),
        words=r"greyscale \(.+\): landmarks of the source are missing in the follow-up",
    ),
    "unsure along a streak": Fault(
        f.unsure_along_a_streak,
        (
            Asked(STREAKS, math.inf, kind="faint"),
            Asked((), 0.01, {"confidence": 0.1}),
            Asked((), 0.01, {"margin": 0.8}),
        ),
        words=r"motion\(9, 0\) \(.+\): .*\(faint\)",
    ),
    "legs hardly visible in the dark": Fault(
        f.legs_hardly_visible_in_the_dark,
        (Asked(DARK, math.inf, {"visibility": 0.5}, kind="partly lost"), Asked((), 0.01, {"aggregate": "max"})),
        words=r"gamma\(1.5\) \(.+\): landmarks of the source are missing in the follow-up",
    ),
    "jittery": Fault(
        f.jittery(),
        (Asked(("identity", "*"), 0.5, PIXELS),),
        deterministic=False,
        words=r"identity \(.+\): by up to 4\.15",
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., instar.Run]:
    """A run of the whole suite, made once per fault."""

    @cache
    def run_of(
        answer: Callable[[View], instar.Poses], scene: Callable[[], Scene], deterministic: bool = True
    ) -> instar.Run:
        made = scene()
        return instar.run(
            system_of(made, answer, deterministic=deterministic),
            "met-pose",
            made.dataset,
            out=tmp_path_factory.mktemp("fault") / "run",
            workers=0,
            zones=ZONES,
        )

    return run_of


def violated(run: instar.Run, asked: Asked) -> list[str]:
    """The rules that are violated, from the rates that a user is shown."""
    rates = run.rates(asked.threshold, judging=run.judge(**PAINTED, **asked.judging))
    assert rates.height == len(RULES)
    assert rates["judged"].to_list() == [1] * len(RULES)
    found = {row["rule"].partition(" => ")[0] for row in rates.to_dicts() if row["rate"] > 0}
    return [rule for rule in RULES if rule in found]


def assert_worded(run: instar.Run, fault: Fault) -> None:
    """The findings say of the first question's rules what is wrong; nothing of a fault that nobody can see."""
    question = fault.asked[0]
    rates = run.rates(question.threshold, judging=run.judge(**PAINTED, **question.judging))
    sentences = [finding.words for finding in violated_rules(run, rates)]
    assert any(re.search(fault.words, sentence) for sentence in sentences) if fault.words else not sentences, sentences


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_the_rules_that_can_see_it(name: str, runs: Callable[..., instar.Run]) -> None:
    fault = FAULTS[name]
    run = runs(fault.answer, fault.scene, fault.deterministic)
    assert run.predictions()["status"].unique().to_list() == ["ok"]
    assert_worded(run, fault)
    for asked in fault.asked:
        assert violated(run, asked) == asked.rules, asked
        rows = run.verdicts(**PAINTED, **asked.judging).to_dicts()
        bad = [row for row in rows if row["severity"] >= asked.threshold and row["severity"] > 0]
        if asked.caught:
            assert {row["kind"] for row in bad} == {asked.kind}
            assert {row["target"] for row in bad} == set(asked.targets)


@pytest.mark.parametrize("scene", dict.fromkeys(fault.scene for fault in FAULTS.values()))
def test_the_perfect_system_passes_the_same_judging(
    scene: Callable[[], Scene], runs: Callable[..., instar.Run]
) -> None:
    """Every question that is asked of a fault of this scene, once."""
    questions = {
        (question.threshold, *question.judging.items()): question
        for fault in FAULTS.values()
        if fault.scene is scene
        for question in fault.asked
    }
    for question in questions.values():
        assert violated(runs(perfect, scene), question) == [], question


def test_half_a_pixel_is_measured_exactly(runs: Callable[..., instar.Run]) -> None:
    """A constant offset o is seen as |(A⁻¹ − 1)·o| by a rule whose map is A."""
    found = severities(runs(f.half_a_pixel_off, one_person), **PIXELS)
    half = math.sqrt(0.5)
    expected = {
        "identity": 0,
        "greyscale": 0,
        "mirror(h)": 1,
        "mirror(v)": 1,
        "mirror(both)": 2 * half,
        "resolution(0.1)": 9 * half,
        "resolution(0.2)": 4 * half,
        "resolution(0.5)": half,
        "stretch(1, 0.8)": 0.125,
        "stretch(1.25, 1)": 0.1,
        **{f"rotation({degrees})": 2 * half * math.sin(math.radians(degrees / 2)) for degrees in (5, 10, 15, 25)},
    }
    assert {rule: found[rule]["0"] for rule in expected} == pytest.approx(expected, abs=0.05)


def test_every_family_of_the_suite_catches_some_fault() -> None:
    caught = {
        rule.partition("(")[0]
        for fault in FAULTS.values()
        if fault.deterministic
        for asked in fault.asked
        for rule in asked.rules
    }
    assert caught == {rule.partition("(")[0] for rule in RULES} - {"identity"}  # which catches chance alone
