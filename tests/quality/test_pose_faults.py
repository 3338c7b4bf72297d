"""Seeded faults of pose estimators: our own suite `poses` catches each at its defaults, and says what it is.

`caught` are rules that must be violated, `kind` what they must name it; a fault of single landmarks that the median
over all of them hides is named by these. Rules that a fault has nothing to do with (`spared`) must not be violated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import instar
from instar.datasets import Dataset
from instar.tasks.met_pose.landmarks import landmark_table
from tests.perfect.scenes import ZONES, Scene, View, one_person, perfect, portrait, system_of, three_people
from tests.quality import faults as f
from tests.quality.words import (
    accusations,
    assert_accused,
    assert_checked,
    assert_shown,
    assert_shown_and_reported,
    named_rules,
)

RULES = tuple(rule.id for rule in instar.suite("poses").rules)
SKIN, CLOTHES = "filtered(colour_wheel(90), skin)", "filtered(colour_wheel(90), clothes)"
LEFT_RIGHT, TOP_BOTTOM, SHIFT = "pad(0.25, sides=left_right)", "pad(0.25, sides=top_bottom)", "shift(0.1, y=0.1)"
DARK, BRIGHT, BLUR = ("gamma(2.5)",), ("gamma(0.3)",), ("motion(11, 0)", "motion(11, 90)")
PHOTOMETRIC = (*DARK, *BRIGHT, *BLUR, "noise(16)", "jpeg(10)", "greyscale", SKIN, CLOTHES)
SPATIAL = tuple(rule for rule in RULES if rule not in PHOTOMETRIC)


@dataclass(frozen=True)
class Fault:
    answer: Callable[[View], instar.Poses]
    caught: tuple[str, ...]
    kind: str | None = None
    also: tuple[str | None, ...] = ()
    """Kinds beside it, of other targets."""
    landmarks: tuple[str, ...] = ()
    """Those that stray, and no others, where the median over all hides them."""
    spared: tuple[str, ...] = ("identity",)
    scene: Callable[[], Scene] = one_person
    deterministic: bool = True
    purpose: str = field(default="", kw_only=True)
    """What the suite says that a rule which catches it looks for."""
    words: str = field(default="", kw_only=True)
    """What must be said of landmarks that the median hides, as a regular expression."""
    check: str = field(default="", kw_only=True)
    """What `instar check` must say of it, where it can see it in a few images."""


def others(*caught: str) -> tuple[str, ...]:
    return tuple(rule for rule in RULES if rule not in caught)


FAULTS = {
    "never exchanges left and right": Fault(
        f.never_exchanges, ("mirror(h)",), "exchanged", spared=others("mirror(h)"), check="sides.few"
    ),
    "exchanges them for any flip": Fault(
        f.exchanges_for_any_flip,
        ("mirror(both)",),
        "exchanged",
        spared=others("mirror(both)"),
        purpose="named by the image",
    ),
    "names them by the picture": Fault(
        f.names_by_the_picture,
        ("mirror(both)",),
        "exchanged",
        spared=others("mirror(both)"),
        purpose="named by the image instead of by the person",
    ),
    "exchanges them in the dark": Fault(
        f.exchanged_in_the_dark, DARK, "exchanged", spared=others(*DARK), purpose="dark images"
    ),
    "does not move in a mirror": Fault(
        f.place_not_mirrored, ("mirror(h)",), "exchanged", spared=others("mirror(h)"), check="sides.few"
    ),
    "ankles are not exchanged": Fault(
        f.ankles_not_exchanged,
        ("mirror(h)",),
        landmarks=("left_ankle", "right_ankle"),
        spared=RULES,
        words=r"Left ankle and right ankle stray .*100 % .*mirror\(h\), although none",
    ),
    "ears are not exchanged": Fault(
        f.ears_not_exchanged,
        ("mirror(h)",),
        landmarks=("left_ear", "right_ear"),
        spared=RULES,
        words=r"Left ear and right ear stray .*100 % .*mirror\(h\), although none",
    ),
    "rotates about another centre": Fault(
        f.rotates_about_another_centre, ("rotation(25)",), spared=others("rotation(25)"), purpose="another centre"
    ),
    "x and y exchanged": Fault(
        f.x_and_y_exchanged,
        ("mirror(h)", "stretch(1.25, 1)", "mirror(both)"),
        spared=PHOTOMETRIC,
        check="coordinates.exchanged",
    ),
    "answers in its own size": Fault(
        f.answers_in_its_own_size,
        ("stretch(1.25, 1)", "resolution(0.2)", LEFT_RIGHT),
        spared=PHOTOMETRIC,
        purpose="coordinates of another size",
        check="scale.model_pixels",
    ),
    "on a grid of pixels": Fault(
        f.on_a_grid_of_pixels, ("resolution(0.2)",), spared=PHOTOMETRIC, purpose="coarse grids"
    ),
    "wrong when small": Fault(
        f.wrong_when_small, ("resolution(0.2)",), spared=others("resolution(0.2)"), purpose="small people"
    ),
    "leans on the middle": Fault(
        f.leans_on_the_middle, (SHIFT,), spared=PHOTOMETRIC, purpose="lean on the middle of the frame"
    ),
    "a letterbox of thirty pixels": Fault(
        f.letterbox_of_thirty_pixels,
        (LEFT_RIGHT, TOP_BOTTOM, "stretch(1.25, 1)"),
        spared=PHOTOMETRIC,
        purpose="letterbox offsets to the sides",
        check="aspect.astray",
    ),
    "the aspect ratio is ignored": Fault(
        f.aspect_ignored,
        (LEFT_RIGHT, TOP_BOTTOM, "stretch(1.25, 1)"),
        spared=PHOTOMETRIC,
        purpose="an aspect ratio that is ignored",
        check="aspect.astray",
    ),
    "a border that is not taken off": Fault(
        f.border_not_taken_off,
        (LEFT_RIGHT, TOP_BOTTOM),
        spared=PHOTOMETRIC,
        purpose="letterbox offsets above and below",
        check="aspect.astray",
    ),
    "always in the same place": Fault(
        f.always_in_the_same_place,
        ("mirror(both)", "rotation(25)", SHIFT, LEFT_RIGHT, "resolution(0.2)"),
        spared=PHOTOMETRIC,
        check="scale.model_pixels",
    ),
    "the mean pose of the frame": Fault(
        f.mean_pose_of_the_frame,
        (SHIFT, TOP_BOTTOM, "rotation(25)"),
        spared=PHOTOMETRIC,
        purpose="lean on the middle of the frame",
    ),
    "nobody at the border": Fault(
        f.nobody_at_the_border, (SHIFT,), "lost", spared=PHOTOMETRIC, purpose="people at its edge"
    ),
    "nobody who leans": Fault(
        f.nobody_who_leans, ("rotation(25)",), "lost", spared=others("rotation(25)"), purpose="people who lean"
    ),
    "drifts with the light": Fault(f.drifts_with_the_light, BRIGHT, spared=SPATIAL, purpose="bright images"),
    "drawn along a streak": Fault(f.drawn_along_a_streak, BLUR, spared=SPATIAL, purpose="blur"),
    "in one place along a streak": Fault(f.in_one_place_along_a_streak, BLUR, spared=SPATIAL, purpose="blur"),
    "in one place but along a streak": Fault(
        f.in_one_place_except_along_a_streak, BLUR, spared=SPATIAL, purpose="blur", check="extent.none"
    ),
    # the stripes are upright, and outlive blur along them
    "nobody without fine texture": Fault(
        f.nobody_without_fine_texture,
        ("resolution(0.2)", "motion(11, 0)"),
        "lost",
        spared=("mirror(h)", *BRIGHT),
        purpose="what needs fine detail",
    ),
    "nobody in another shirt": Fault(
        f.nobody_in_another_shirt, ("greyscale", CLOTHES), "lost", spared=SPATIAL, purpose="the colour of clothes"
    ),
    "nobody of another skin": Fault(
        f.nobody_of_another_skin, (SKIN,), "lost", spared=SPATIAL, purpose="the colour of skin"
    ),
    "nobody in grain": Fault(f.nobody_in_grain, ("noise(16)",), "lost", spared=SPATIAL, purpose="grain"),
    "a ghost in grain": Fault(f.a_ghost_in_grain, ("noise(16)",), "invented", spared=SPATIAL, purpose="grain"),
    "drawn to blocks": Fault(f.drawn_to_blocks, ("jpeg(10)",), spared=SPATIAL, purpose="blocks of strong compression"),
    "loses somebody in the dark": Fault(
        f.loses_somebody_in_the_dark, DARK, "lost", spared=others(*DARK), scene=three_people, purpose="dark images"
    ),
    "sees a ghost in the light": Fault(
        f.sees_a_ghost_in_the_light,
        BRIGHT,
        "invented",
        spared=others(*BRIGHT),
        scene=three_people,
        purpose="bright images",
    ),
    "sees double when large": Fault(
        f.sees_double_when_large,
        ("stretch(1.25, 1)",),
        "doubled",
        spared=others("stretch(1.25, 1)"),
        scene=three_people,
        purpose="people who are larger",
    ),
    "sees double in the dark": Fault(
        f.sees_double_in_the_dark, DARK, "doubled", spared=others(*DARK), scene=three_people, purpose="dark images"
    ),
    "two become one in the dark": Fault(
        f.two_become_one_in_the_dark, DARK, "lost", (None,), spared=SPATIAL, scene=three_people, purpose="dark images"
    ),
    "limbs of somebody else in the dark": Fault(
        f.limbs_of_somebody_else_in_the_dark,
        DARK,
        landmarks=f.LIMBS,
        spared=RULES,
        scene=three_people,
        words=r"Left ankle, left elbow, .* stray .*100 % .*gamma\(2.5\), although none",
    ),
    "no legs when small": Fault(
        f.no_legs_when_small,
        ("resolution(0.2)",),
        "partly lost",
        spared=others("resolution(0.2)"),
        purpose="small people",
    ),
    "no arms without colour": Fault(
        f.no_arms_without_colour, ("greyscale",), "partly lost", spared=SPATIAL, purpose="colour that is relied on"
    ),
    "legs appear in the light": Fault(
        f.legs_appear_in_the_light, BRIGHT, "partly invented", spared=SPATIAL, purpose="bright images"
    ),
    "unsure in the dark": Fault(f.unsure_in_the_dark, DARK, "faint", spared=others(*DARK), purpose="dark images"),
    "upside down in the light": Fault(f.upside_down_in_the_light, BRIGHT, None, spared=others(*BRIGHT)),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., instar.Run]:
    @cache
    def run_of(answer: Callable[[View], instar.Poses], scene: Callable[[], Scene]) -> instar.Run:
        made = scene()
        folder = tmp_path_factory.mktemp("fault") / "run"
        return instar.run(system_of(made, answer), "poses", made.dataset, out=folder, workers=0, zones=ZONES)

    return run_of


def violated(run: instar.Run) -> dict[str, set[str | None]]:
    """The kinds of what is violated at the default threshold, by rule."""
    assert run.predictions()["status"].unique().to_list() == ["ok"]
    kinds: dict[str, set[str | None]] = {}
    for rule, kind in run.verdicts().filter(pl.col("severity") >= 0.2).select("rule", "kind").iter_rows():
        kinds.setdefault(rule.partition(" => ")[0], set()).add(kind)
    return kinds


@pytest.mark.parametrize(
    "name", ["never exchanges left and right", "a border that is not taken off", "unsure in the dark"]
)
def test_a_fault_is_caught_of_a_portrait_too(name: str, runs: Callable[..., instar.Run]) -> None:
    """Although the system puts most of the person outside the frame before anything is changed."""
    assert_caught_and_named(replace(FAULTS[name], scene=portrait), runs)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_and_named(name: str, runs: Callable[..., instar.Run]) -> None:
    assert_caught_and_named(FAULTS[name], runs)


def assert_caught_and_named(fault: Fault, runs: Callable[..., instar.Run]) -> None:
    run = runs(fault.answer, fault.scene)
    kinds = violated(run)
    assert not kinds.keys() & set(fault.spared), "rules that have nothing to do with it"
    if not fault.landmarks:
        assert kinds.keys() >= set(fault.caught)
        assert {kind for rule in fault.caught for kind in kinds[rule]} == {fault.kind, *fault.also}
        purposes = instar.suite("poses").purposes
        told = {rule.removesuffix(" => poses"): kinds for rule, kinds in named_rules(run).items()}
        assert fault.kind is None or any(fault.kind in told[rule] for rule in fault.caught if rule in told)
        assert any(rule in told and re.search(fault.purpose, purposes[rule]) for rule in fault.caught)
        return
    assert accusations(run) == [], "one image is not enough to be sure of single landmarks"
    table = landmark_table(run, grid=(0.2,))
    for rule in fault.caught:
        strayed = table.filter(pl.col("rule") == f"{rule} => poses", pl.col("violated") > 0)["landmark"]
        assert set(strayed) == set(fault.landmarks)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.landmarks])
def test_what_the_median_hides_is_said_of_several_images(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    scene = fault.scene()
    (case,) = scene.dataset.cases()
    copies = [replace(case, id=str(number)) for number in range(12)]
    rules = instar.suite(" + ".join(("identity", *fault.caught)))
    data = Dataset("copies", "", lambda: iter(copies))
    run = instar.run(system_of(scene, fault.answer), rules, data, out=tmp_path / "run", workers=0, zones=ZONES)
    assert_accused(run, fault.words)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.check])
def test_check_says_it_of_a_few_images(name: str) -> None:
    scene = FAULTS[name].scene()
    inputs = [(case.id, case.input) for case in scene.dataset.cases()]
    assert_checked(system_of(scene, FAULTS[name].answer), inputs, FAULTS[name].check)


def test_show_and_the_report_say_all_of_it(runs: Callable[..., instar.Run]) -> None:
    assert_shown_and_reported(runs(f.always_in_the_same_place, one_person))
    assert_shown(runs(perfect, one_person))


@pytest.mark.parametrize("scene", [one_person, three_people])
def test_the_perfect_system_violates_nothing(scene: Callable[[], Scene], runs: Callable[..., instar.Run]) -> None:
    run = runs(perfect, scene)
    assert violated(run) == {}
    verdicts = run.verdicts()
    assert set(verdicts["rule"].str.replace(" => poses", "", literal=True)) == set(RULES)
    assert verdicts["severity"].null_count() == 0, "everything was judged"


def test_every_rule_of_the_suite_is_there_for_some_fault() -> None:
    """But identity, which shows chance, and the frames that move with others."""
    caught = {rule for fault in FAULTS.values() for rule in fault.caught}
    assert set(RULES) - caught <= {"identity", "crop(0.9)", "stretch(1.25, 1)"}
    assert all(instar.suite("poses").purposes[rule] for rule in RULES)
