"""The search for combinations: what it asks, what it keeps apart, and that a stop costs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import instar
from instar import Detections
from instar.analysis.combinations import combinable, combined, parts_of, sets_of, turned, turns, weakened
from instar.analysis.comparison import sides
from instar.analysis.found import found_combinations
from instar.analysis.onlooker import Onlooker
from instar.analysis.until import random_order
from instar.datasets import dataset
from instar.engine import Conflict, Progress
from instar.gate import NoWorse, Policy, checked, new_policy
from instar.image import Pixels
from instar.store import Store
from instar.transforms import transformation
from tests.quality.combined_faults import dark_and_soft, darkness, photos, softness
from tests.toys import image_system, rectangles

RULES = "mirror(h)+brightness(0, 0.75)+blur(1)+noise(4)+shift(0.1, 0.05)"
CASES, BUDGET = 12, 150


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photos(tmp_path_factory.mktemp("search") / "photos", CASES)


def searched(
    pictures: Path,
    out: Path,
    *,
    rules: str = RULES,
    fault: Callable[[Pixels], Detections] = dark_and_soft,
    **more: object,
) -> instar.Run:
    given = {"budget": BUDGET, "visual": 0.5, "workers": 0, **more}
    return instar.search(image_system(fault, "detections"), rules, pictures, out=out, **given)  # type: ignore[arg-type]


def dark_and_soft_or_dim(pixels: Pixels) -> Detections:
    """Nothing is found in dark and soft images, nor in dim ones: less darkness does more harm."""
    dark = darkness(pixels)
    lost = 0.1 < dark < 0.4 or (dark >= 0.4 and softness(pixels) > 0.25)
    return Detections.from_xyxy(np.empty((0, 4)), []) if lost else rectangles(pixels)


@pytest.fixture(scope="module")
def searched_run(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    return searched(pictures, tmp_path_factory.mktemp("search") / "run")


def asked(run: instar.Run) -> list[tuple[str, str]]:
    return sorted(run.predictions().select("case", "follow_up").iter_rows())


def test_it_finds_what_takes_two_and_shrinks_it(searched_run: instar.Run) -> None:
    worst = found_combinations(searched_run).row(0, named=True)
    assert worst["name"] == "brightness(0, 0.75) | blur(1)"
    assert worst["members"] == ["brightness(0, 0.75)", "blur(1)"]
    smallest = [step.values for step in transformation(worst["shrunk"]).steps]
    assert 0.75 < float(smallest[0]["multiply"]) < 1 and 0 < float(smallest[1]["sigma"]) <= 1
    verdicts = searched_run.verdicts().filter(rule=f"{worst['shrunk']} => detections")
    assert (verdicts.group_by("case").max()["severity"] >= 0.5).all()


def test_of_a_smallest_form_no_rule_breaks_the_case_alone(pictures: Path, tmp_path: Path) -> None:
    rules = "brightness(0, 0.75)+blur(1)+shift(0.1, 0.05)"
    run = searched(pictures, tmp_path / "run", rules=rules, fault=dark_and_soft_or_dim)
    worst = found_combinations(run).row(0, named=True)
    assert worst["name"] == "brightness(0, 0.75) | blur(1)" != worst["shrunk"]
    for part in (worst["shrunk"], *worst["shrunk"].split(" | ")):
        verdicts = run.verdicts().filter(rule=f"{part} => detections", case=worst["cases"][0])
        assert (verdicts["severity"].max() >= 0.5) is (part == worst["shrunk"]), part  # type: ignore[operator]
    assert run.outcome is not None
    (words,) = [note for note in run.outcome.notes if "A weaker form of a rule alone breaks" in note]
    assert "brightness(0, 0.866) (0" in words and "blur" not in words
    again = searched(pictures, tmp_path / "run", rules=rules, fault=dark_and_soft_or_dim)
    assert again.outcome is not None and again.outcome.fresh == 0 and words in again.outcome.notes
    assert found_combinations(again).equals(found_combinations(run)) and len(asked(again)) <= BUDGET


def test_a_part_of_three_rules_is_also_two_of_them() -> None:
    rules = combinable(instar.suite("gamma(0.5)+mirror(h)|blur(1)+noise(2)").rules).rules
    members = [one.for_output("detections") for one in rules]
    steps = combined(members).transformations[0].steps
    names = [" | ".join(step.family.name for step in part) for part in parts_of(members, steps, 2)]
    assert names == ["mirror | blur", "gamma | mirror | blur", "mirror | blur | noise"]


def test_a_rate_is_of_cases_that_the_search_did_not_see(searched_run: instar.Run) -> None:
    order = random_order([f"{number:03}.png" for number in range(CASES)], 0)
    searching, others = set(order[: CASES // 2]), set(order[CASES // 2 :])
    tried = {rule.left for rule in searched_run.bound_rules()} - {
        named.partition(" => ")[0]
        for named in searched_run.manifest.search.members  # type: ignore[union-attr]
    }
    names = set(found_combinations(searched_run)["name"])
    assert {case for case, follow_up in asked(searched_run) if follow_up in tried - names} <= searching
    worst = found_combinations(searched_run).row(0, named=True)
    judged = searched_run.verdicts().filter(rule=worst["rule"])
    counted = judged.filter(judged["case"].is_in(list(others)))
    assert worst["judged"] == counted["case"].n_unique() == len(others)
    assert worst["broken"] == counted.filter(counted["severity"] >= 0.5)["case"].n_unique()
    assert worst["low"] < worst["share"] <= worst["high"]


def test_what_it_tried_counts_in_no_headline(searched_run: instar.Run) -> None:
    assert searched_run.any_rule()["violated"] == 0
    assert set(searched_run.changing_rules()) == set(searched_run.manifest.search.members)  # type: ignore[union-attr]


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(
    searched_run: instar.Run, pictures: Path, tmp_path: Path
) -> None:
    class Stopped(Exception): ...

    for stop in (5, 60, 40):

        def stopping(progress: Progress, stop: int = stop) -> None:
            if progress.fresh >= stop:
                raise Stopped

        with pytest.raises(Stopped):
            searched(pictures, tmp_path / "run", on_progress=stopping)
    again = searched(pictures, tmp_path / "run")
    assert asked(again) == asked(searched_run)
    assert found_combinations(again).equals(found_combinations(searched_run))
    assert again.outcome is not None and 0 < again.outcome.fresh < len(asked(searched_run))
    idle = searched(pictures, tmp_path / "run")
    assert idle.outcome is not None and idle.outcome.fresh == 0


def test_the_budget_counts_what_is_stored_and_a_larger_one_searches_on(pictures: Path, tmp_path: Path) -> None:
    first = len(asked(searched(pictures, tmp_path / "run", budget=60)))
    more = len(asked(searched(pictures, tmp_path / "run", budget=110)))
    assert 40 < first <= 60 < 90 < more <= 110


def test_a_flawless_system_has_no_combination(pictures: Path, tmp_path: Path) -> None:
    run = searched(pictures, tmp_path / "run", fault=rectangles)
    assert found_combinations(run).is_empty()
    assert run.outcome is not None and any("were tried" in note for note in run.outcome.notes)


def test_rules_that_a_person_sees_too_much_of_are_weaker_in_combinations(pictures: Path, tmp_path: Path) -> None:
    run = searched(pictures, tmp_path / "run", rules="mirror(h)+brightness(0, 0.2)+blur(4)+noise(2)", visual=0.35)
    assert run.outcome is not None
    (words,) = [note for note in run.outcome.notes if "weaker form" in note]
    assert "brightness(0, 0.2) as brightness(0, " in words and "blur(4) as blur(" in words and "noise(2)" not in words
    looker = Onlooker.of(run.store, dataset(pictures).cases())
    cases = [f"{number:03}.png" for number in range(CASES)]
    tried = [one for one in run.bound_rules() if len(one.transformations[0].steps) > 1]
    assert tried
    for one in tried:
        seen = looker(one.transformations[0], cases)
        assert seen is not None and seen <= 0.37  # of all cases, where the search looks at a sample


def test_a_search_and_a_run_do_not_go_on_with_each_other(
    searched_run: instar.Run, pictures: Path, tmp_path: Path
) -> None:
    system = image_system(dark_and_soft, "detections")
    with pytest.raises(Conflict, match="is a search for combinations"):
        instar.run(system, RULES, pictures, out=searched_run.folder, workers=0)
    instar.run(system, "mirror(h)", pictures, out=tmp_path / "run", workers=0)
    with pytest.raises(Conflict, match="no search for combinations"):
        searched(pictures, tmp_path / "run")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"rules": "mirror(h)"}, "1 rule that can be combined"),
        ({"rules": "mirror(h)+identity"}, "1 rule that can be combined"),
        ({"rules": "mirror(h)+erase(1) => presence(gone)"}, "about another answer than the source's"),
        ({"rules": "mirror(h)+noise(1..3) => correlation(f1)"}, "judged over many cases"),
        ({"budget": 20}, "`budget` of 20 predictions is too small for 5 rules"),
        ({"visual": 1.5}, "`visual` is above 0 and at most 1"),
        ({"most": 4}, "2 or 3 rules"),
        ({"combinations": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_searched_is_said(pictures: Path, tmp_path: Path, more: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        searched(pictures, tmp_path / "run", **more)  # type: ignore[arg-type]
    assert not Store(tmp_path / "run").exists


def test_two_rules_of_one_family_are_no_combination() -> None:
    rules = combinable(instar.suite("gamma(0.5)+gamma(2)+mirror(h)+blur(1)").rules).rules
    bound = [one.for_output("detections") for one in rules]
    names = {combined([bound[one] for one in chosen]).left for chosen in sets_of(bound, 3)}
    assert "gamma(0.5) | mirror(h) | blur(1)" in names and len(names) == 7
    assert not any(name.count("gamma") > 1 for name in names)


@pytest.mark.parametrize(
    "spelling",
    ["gamma(0.5)", "brightness(20, 0.5)", "jpeg(20)", "motion(9, 0)", "filtered(blur(3), skin)", "crop(0.8, middle)"],
)
def test_a_weaker_form_is_nearer_to_no_change_and_is_spelled(spelling: str) -> None:
    (rule,) = combinable(instar.suite(spelling).rules).rules
    bound = rule.for_output("detections")
    half = weakened(bound, 0.5)
    assert half is not None and transformation(half.left).id == half.left != spelling
    steps = bound.transformations[0].steps
    for turn in turns(steps):
        near, far = turned(steps, turn, 0.25), turned(steps, turn, 0.75)
        assert near is not None and far is not None
        ways = [
            abs(next(each.value for each in turns(made) if each.name == turn.name) - turn.value) for made in (near, far)
        ]
        assert ways[0] > ways[1] > 0


def test_what_has_nothing_to_turn_has_no_weaker_form() -> None:
    (rule,) = combinable(instar.suite("mirror(h)").rules).rules
    assert weakened(rule.for_output("detections"), 0.5) is None


def test_scenes_are_searched_without_a_limit_and_the_run_says_so(tmp_path: Path) -> None:
    """Nobody sees how much of a scene is changed."""
    from tests.engine.test_scenes import in_memory, people, system
    from tests.perfect.walker import Walker

    rules = "mirror(h) => hvc + rotate90(1) => hvc + rescale(0.5) => hvc"
    walkers = system(Walker(), deterministic=False)
    run = instar.search(walkers, rules, in_memory(*people(4)), out=tmp_path / "run", budget=120, workers=0)
    assert run.outcome is not None and run.manifest.search is not None
    assert any("The inputs are no images" in note for note in run.outcome.notes)
    assert run.predictions().height <= 120, "each source is asked several times"
    assert any(f"; {run.predictions().height} of 120 predictions" in note for note in run.outcome.notes)
    assert run.manifest.search.visual is None
    assert any(" | " in str(name) for name in run.predictions()["follow_up"])


def test_a_change_that_several_rules_judge_is_named_once_where_they_are_left_out() -> None:
    (words,) = combinable(instar.suite("detections").rules).left_out
    names = words.partition("(")[2].partition("): they are")[0]
    listed = re.findall(r"\w+\([^()]*\)", names)
    assert listed and len(listed) == len(set(listed)), words


def test_a_search_is_no_run_to_gate_or_to_compare(searched_run: instar.Run, pictures: Path, tmp_path: Path) -> None:
    system = image_system(rectangles, "detections")
    plain = instar.run(system, RULES, pictures, out=tmp_path / "plain", workers=0)
    words = f"{re.escape(str(searched_run.folder))} is a search for combinations: its rules were tried because they"
    for refused in (
        lambda: new_policy(searched_run),
        lambda: checked(searched_run, Policy()),
        lambda: checked(plain, Policy(no_worse=(NoWorse("any rule", 1, 0.1),)), searched_run),
        lambda: sides(plain, searched_run),
    ):
        with pytest.raises(ValueError, match=words):
            refused()
