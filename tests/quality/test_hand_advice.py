"""Advice on hand pose: systems with a seeded fault are told so by name, and a sound one is not accused of any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image
from instar.outputs.poses import Poses
from instar.tasks.hand_pose.advice import ADVICE_RULES
from instar.tasks.hand_pose.analysis import hand_advice, hand_comparison, hand_counts
from instar.tasks.hand_pose.sentences import ENOUGH, LEAST
from tests.perfect.test_hand_pose import (
    HANDS,
    SIZE,
    afraid_of_the_dark,
    answer,
    data,
    guessing,
    known,
    mean_hand,
    seeing,
    thumbless,
)

System = Callable[[np.ndarray], Poses]
NOBODY = Poses.from_array([], skeleton="hand-21")
QUICK = "+".join(
    f"{change} => accuracy"
    for change in ("discs(21)", "finger_discs(index)", "gamma(5)", "gamma(0.5)", "motion(20, 0)", "motion(20, 45)")
)
"""Some of the suite's test cases, judged case by case alone."""


def _over_all(*changes: str) -> str:
    """The suite's rules of some test cases, over all cases."""
    return " + ".join(f"{change} => degradation(f1)" for change in changes)


def ran(system: System, out: Path, suite: str = QUICK, cases: Dataset | None = None) -> instar.Run:
    return instar.run(system, suite, cases or data(), out=out, workers=0)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Callable[[System], instar.Run]:
    """A run of some of the test cases, made once per system."""
    return cache(lambda system: ran(system, tmp_path_factory.mktemp("quick") / "run"))


def advice(run: instar.Run) -> dict[str, list[str]]:
    """What was said, by its ground, each with the numbers that it follows from."""
    found: dict[str, list[str]] = {}
    for ground, says, because in hand_advice(run).iter_rows():
        assert any(sign.isdigit() for sign in because), "advice comes with its numbers"
        found.setdefault(ground, []).append(f"{says} {because}")
    return found


def severity(run: instar.Run) -> dict[str, float]:
    table = run.over_cases().with_columns(pl.col("rule").str.replace(r" => .*", ""))
    return dict(table.select("rule", "severity").iter_rows())


def baseline(run: instar.Run, change: str) -> float:
    """The source's F1 over the cases of a test case."""
    return float(run.over_cases().filter(pl.col("rule").str.starts_with(f"{change} => "))["baseline"].item())


def picture(number: int) -> Image:
    """One that shows no hand."""
    return Image(np.full((SIZE[1], SIZE[0], 3), 40 + number, np.uint8))


def many(copies: int, *, empty: int = 0) -> Dataset:
    """The same hands several times over, and pictures without any."""
    cases = [
        Case(f"{copy}-{number:02d}", input=image, truth=truth)
        for copy in range(copies)
        for number, (image, truth) in enumerate(HANDS)
    ]
    cases += [Case(f"empty-{number}", input=picture(number), truth=NOBODY) for number in range(empty)]
    return Dataset("many", "", lambda: iter(cases), truth="poses")


def number_of(pixels: np.ndarray) -> int:
    points, _ = known(pixels)
    return next(number for number, (_, truth) in enumerate(HANDS) if (truth.points[0] == points).all())


# --- one fault each


def test_a_system_that_ignores_the_thumb(tmp_path: Path) -> None:
    run = ran(thumbless, tmp_path, _over_all("finger_discs(thumb)", "finger_discs(index)", "gamma(2)"))
    found = severity(run)
    assert found["finger_discs(thumb)"] == 0 < found["finger_discs(index)"], "covering what it ignores costs nothing"
    assert baseline(run, "gamma(2)") == pytest.approx(2 * 17 / (2 * 17 + 4))
    told = advice(run)
    assert len(told["finger"]) == 1
    assert "ignores the thumb" in told["finger"][0] and "0\u00a0% (0–0)" in told["finger"][0]
    assert not told.keys() & {"unseeing", "invents", "dark"}


def test_that_shows_without_labels_too(tmp_path: Path) -> None:
    told = advice(ran(thumbless, tmp_path, cases=data(annotated=False)))
    assert "ignores the thumb" in told["finger"][0]
    assert "its own answers" in told["unlabelled"][0]


def test_a_system_that_always_answers(tmp_path: Path) -> None:
    run = ran(guessing, tmp_path, "gamma(2) => accuracy", many(1, empty=LEAST))
    false = run.verdicts().filter(pl.col("case").str.starts_with("empty") & (pl.col("rule") == "gamma(2) => accuracy"))
    assert false["hand_fp"].to_list() == [1.0] * LEAST, "the relation counts them"
    told = advice(run)
    assert "although nothing is there" in told["invents"][0] and "10 of 10 cases" in told["invents"][0]


def test_a_system_that_loses_dark_hands(tmp_path: Path) -> None:
    others = _over_all("motion(20, 90)", "finger_discs(ring)", "discs(21)")
    run = ran(afraid_of_the_dark, tmp_path, f"hand-pose/exposure + {others}")
    found = severity(run)
    assert (
        found["gamma(5)"] > 0.5 and found["gamma(0.5)"] == found["motion(20, 90)"] == found["finger_discs(ring)"] == 0
    )
    told = advice(run)
    assert "dark hands" in told["dark"][0] and "strong underexposure costs 100 of 100 points" in told["dark"][0]
    assert len(told["weak"]) == 1 and "exposure" in told["weak"][0]
    assert not told.keys() & {"unseeing", "invents", "finger"}


def test_a_system_that_always_answers_the_mean_hand(tmp_path: Path) -> None:
    run = ran(mean_hand, tmp_path, f"discs(1..21) => correlation(f1) + {_over_all('gamma(5)')}")
    assert severity(run)["discs(1..21)"] == pytest.approx(0.9), "it does not respond"
    assert severity(run)["gamma(5)"] == 0, "it does not look, so nothing can disturb it"
    assert baseline(run, "gamma(5)") < 0.5
    told = advice(run)
    assert "does not look at the image" in told["unseeing"][0] and "mean hand" in told["unseeing"][0]
    assert not told.keys() & {"precise", "sensitive", "robust", "weak"}, "nothing else is worth saying of it"
    unlabelled = advice(ran(mean_hand, tmp_path / "free", cases=data(annotated=False)))
    assert "changes nothing" in unlabelled["unseeing"][0], "without labels it is not known to be wrong"


def test_a_sound_system_is_accused_of_nothing(quick: Callable[[System], instar.Run]) -> None:
    sentences = advice(quick(seeing))
    assert sentences.keys() <= {"precise", "weak", "open"}
    assert all("covered finger" in text for text in sentences.get("weak", [])), "it does not see what is covered"


# --- precise, sensitive, weak, robust


def test_one_that_misses_and_one_that_guesses(tmp_path: Path) -> None:
    def silent(pixels: np.ndarray) -> Poses:
        return NOBODY if number_of(pixels) % 2 else seeing(pixels)

    def rash(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        return answer(points + (30 if number_of(pixels) % 2 else 0), shown)

    one, other = advice(ran(silent, tmp_path / "silent")), advice(ran(rash, tmp_path / "rash"))
    assert "misses rather than guesses" in one["precise"][0] and "sensitive" not in one
    assert "guesses rather than misses" in other["sensitive"][0] and "precise" not in other


def test_the_strongest_weakness_comes_first(tmp_path: Path) -> None:
    def fragile(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        if np.percentile(pixels, 99) < 60:
            return NOBODY
        blurred = pixels.max() < 255
        return answer(points, shown & (np.arange(21) > 9) if blurred else shown)

    said = advice(ran(fragile, tmp_path))["weak"]
    assert said[0].startswith("Weak against exposure")
    costs = [float(text.split("costs ")[1].split()[0]) for text in said]
    assert len(costs) == 3 and costs == sorted(costs, reverse=True)


def test_robust_takes_more_cases_than_weak(tmp_path: Path, quick: Callable[[System], instar.Run]) -> None:
    few = advice(quick(seeing))
    assert "robust" not in few and "motion blur" in few["open"][0]
    enough = advice(
        ran(
            seeing,
            tmp_path / "enough",
            "discs(21) => accuracy+motion(20, 0) => accuracy",
            many(-(-ENOUGH // len(HANDS))),
        )
    )
    assert "sign language" in enough["robust"][0]


def test_an_unsure_loss_is_no_weakness(tmp_path: Path) -> None:
    def sometimes(pixels: np.ndarray) -> Poses:
        blurred = pixels.max() < 255
        return NOBODY if blurred and number_of(pixels) == 1 else seeing(pixels)

    told = advice(ran(sometimes, tmp_path, "discs(21) => accuracy+motion(20, 0) => accuracy"))
    assert "weak" not in told and "motion(20, 0) costs" in told["open"][0], "what has no title is named by its spelling"


def test_with_few_cases_nothing_is_said(tmp_path: Path) -> None:
    told = advice(ran(afraid_of_the_dark, tmp_path, cases=data(count=LEAST - 1)))
    assert told.keys() == {"few"}
    assert "No advice yet" in told["few"][0] and "9 of 9 cases are such" in told["few"][0]
    assert "with an F1 of" in told["few"][0]


def test_few_cases_without_labels_have_no_f1(tmp_path: Path) -> None:
    """The source's F1 against itself is 100 % of any system."""
    cases = [Case(str(number), input=image) for number, (image, _) in enumerate(HANDS[:3])]
    sentences = advice(ran(seeing, tmp_path, "gamma(5) => accuracy", Dataset("bare", "", lambda: iter(cases))))
    assert sentences.keys() == {"few"}
    assert "10 cases in whose source it finds a hand" in sentences["few"][0]
    assert sentences["few"][0].endswith("it finds one in 3 of 3 cases"), "whose count it is: rules judge others too"


def test_the_conditions_are_documented_as_they_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hand-pose.md").read_text("utf-8")
    for rule in ADVICE_RULES:
        assert f"| {rule.name} | {rule.when} |" in page
    words = {rule.name: rule.when for rule in ADVICE_RULES}
    assert str(LEAST) in words["few"] and str(ENOUGH) in words["robust"]


# --- several systems


def compared(runs: Iterable[tuple[str, instar.Run]]) -> pl.DataFrame:
    return hand_comparison({name: hand_counts(run) for name, run in runs})["advice"]


def test_which_one_for_what(quick: Callable[[System], instar.Run]) -> None:
    systems: dict[str, System] = {"seeing": seeing, "fearful": afraid_of_the_dark, "dull": mean_hand}
    runs = {name: quick(system) for name, system in systems.items()}
    told = [f"{says} {because}" for _, says, because in compared(runs.items()).iter_rows()]

    def about(words: str) -> str:
        return next(text for text in told if text.startswith(words))

    assert "prefer seeing to fearful" in about("Where the light is poor")
    assert "fearful 67\u00a0%, 33 points less (33 to 33)" in about("Where the light is poor"), "half of it is dark"
    assert "no sure difference of a point or more between seeing and fearful" in about("For gestures in fast motion")
    assert "prefer fearful to seeing" in about("Where fingers are covered")
    assert all("dull does not look at the image" in text for text in told[:6])
    assert "prefer dull" not in " ".join(told)
    assert any(text.startswith("fearful: It loses dark hands") for text in told), "each is advised on too"


def test_resamples_in_which_a_run_has_no_recall_are_left_out(tmp_path: Path) -> None:
    """Hands far from those of the truth are neither right nor missing: most resamples have a recall of 1, some none."""

    def misses_half(pixels: np.ndarray) -> Poses:
        return NOBODY if number_of(pixels) % 2 else seeing(pixels)

    def mostly_elsewhere(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        return answer(points if number_of(pixels) in (1, 3) else points + 500.0, shown)

    systems = {"misses": misses_half, "elsewhere": mostly_elsewhere}
    runs = {
        name: hand_counts(ran(system, tmp_path / name, "gamma(0.5) => accuracy")) for name, system in systems.items()
    }
    frames = hand_comparison(runs)
    (row,) = frames["differences"].filter(purpose="no missed hands").to_dicts()
    assert (row["best"], row["run"], row["run_value"]) == ("elsewhere", "misses", 0.5)
    assert 0.05 < row["undefined"] < 0.25, "neither of the two cases is drawn: (10 / 12) to the 12th is 0.11"
    assert 0.15 < row["low"] < row["value"] == 0.5 < row["high"] < 0.85
    because = frames["advice"].filter(pl.col("says").str.contains("a missed hand is worse"))["because"].item()
    assert "resamples in which one of the two has none" in because
    assert "no sure difference" in frames["advice"].filter(because=because)["says"].item(), "too few have a recall"


def test_a_run_that_misses_no_hand_and_has_poor_landmarks_is_preferred_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def misses_most(pixels: np.ndarray) -> Poses:
        return seeing(pixels) if number_of(pixels) % 4 == 0 else NOBODY

    def elsewhere(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        return answer(points if number_of(pixels) % 3 == 0 else points + 500.0, shown)

    monkeypatch.setattr("instar.tasks.hand_pose.comparison.LOW", 0.6)  # its F1 is 0.5
    systems = {"misses": misses_most, "elsewhere": elsewhere}
    runs = [(name, ran(system, tmp_path / name, "gamma(0.5) => accuracy")) for name, system in systems.items()]
    (says,) = compared(runs).filter(pl.col("says").str.contains("a missed hand is worse"))["says"]
    assert "prefer elsewhere to misses, though its landmarks are poor: F1 " in says


def test_a_comparison_is_paired(tmp_path: Path) -> None:
    """Two systems that fail on the same hard cases: far apart for certain, though each by itself is not sure at all."""

    def first(pixels: np.ndarray) -> Poses:
        return NOBODY if number_of(pixels) % 2 else answer(known(pixels)[0])

    def second(pixels: np.ndarray) -> Poses:
        return NOBODY if number_of(pixels) % 2 else answer(known(pixels)[0], np.arange(21) < 17)

    runs = {
        system.__name__: ran(system, tmp_path / system.__name__, "gamma(0.5) => accuracy") for system in (first, second)
    }
    found = hand_comparison({name: hand_counts(run) for name, run in runs.items()})
    general = found["differences"].filter(purpose="in general").row(0, named=True)
    assert general["paired"] and general["low"] > 0
    ends = {
        row["run"]: (row["low"], row["high"])
        for row in found["measures"].filter(follow_up="source", measure="f1").iter_rows(named=True)
    }
    assert ends["second"][1] > ends["first"][0], "their own intervals overlap"


def test_runs_on_other_cases_are_compared_with_care(tmp_path: Path, quick: Callable[[System], instar.Run]) -> None:
    there = [
        Case(f"other-{number}", input=Image(image.pixels.copy() // 2 * 2), truth=truth)
        for number, (image, truth) in enumerate(HANDS)
    ]
    other = Dataset("other", "", lambda: iter(there), truth="poses")
    runs = {"here": quick(seeing), "there": ran(seeing, tmp_path / "there", cases=other)}
    told = compared(runs.items())
    assert "no case in common" in told.filter(ground="unpaired")["says"][0]
    few = {"here": runs["here"], "few": ran(seeing, tmp_path / "few", cases=data(count=4))}
    assert "in common, and that takes at least 10." in compared(few.items())["says"][0]
