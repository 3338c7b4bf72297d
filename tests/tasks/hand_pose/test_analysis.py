"""The measures of hand pose: they are those of the verdicts, intervals are paired, and slices are what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.outputs.poses import Poses
from instar.relations.over_cases import POOLED
from instar.stats import bootstrap
from instar.suites import suite
from instar.tasks.hand_pose.analysis import hand_counts, hand_frames
from instar.tasks.hand_pose.counts import GRID
from tests.perfect.test_hand_pose import HANDS, answer, data, guessing, known, mean_hand, seeing

CHANGES = [*(f"discs({n})" for n in range(1, 22)), "finger_discs(thumb)", "gamma(5)", "gamma(2)", "motion(20, 0)"]
ALL = "+".join(f"{change} => accuracy" for change in CHANGES)
"""The rules of the suite that are about single cases, without those over many: they take most of its time."""


def ran(system: Callable[[np.ndarray], Poses], out: Path, suite: str = ALL, cases: Dataset | None = None) -> instar.Run:
    return instar.run(system, suite, cases or data(), out=out, workers=0)


def clumsy(pixels: np.ndarray) -> Poses:
    """A little off everywhere, more so in dark pictures, and blind to every third hand."""
    points, shown = known(pixels)
    number = next(i for i, (_, truth) in enumerate(HANDS) if (truth.points[0] == points).all())
    if number % 3 == 0:
        return Poses.from_array([], skeleton="hand-21")
    dark = np.percentile(pixels, 99) < 60
    return answer(points + np.linspace(0, 20 if dark else 7, 21)[:, None] * [1, 0], shown)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    return ran(clumsy, tmp_path_factory.mktemp("clumsy"), f"{ALL}+gamma(5) => degradation(f1)")


@pytest.fixture(scope="module")
def frames(run: instar.Run) -> dict[str, pl.DataFrame]:
    return hand_frames(run)


def row(table: pl.DataFrame, **which: Any) -> dict[str, Any]:
    found = table.filter(*(pl.col(name) == value for name, value in which.items()))
    assert len(found) == 1, found
    return found.row(0, named=True)


def test_the_counts_are_those_of_the_verdicts(run: instar.Run, frames: dict[str, pl.DataFrame]) -> None:
    verdicts = run.verdicts().filter(pl.col("case").is_not_null())
    for (rule,), mine in verdicts.group_by("rule"):
        name = str(rule).partition(" => ")[0]
        sums = {column: mine[column].sum() for column in mine.columns if mine[column].dtype == pl.Float64}
        for measure in ("f1", "hand_f1", "error"):
            asked, pooled = POOLED[measure]
            told = row(frames["measures"], follow_up=name, measure=measure)
            if told["value"] is not None:
                assert told["value"] == pytest.approx(float(pooled(*(np.array(sums[c]) for c in asked))), rel=1e-5)
            assert told["baseline"] == pytest.approx(
                float(pooled(*(np.array(sums[f"source_{c}"]) for c in asked))), rel=1e-5
            )


def test_intervals_are_those_of_a_paired_bootstrap(run: instar.Run, frames: dict[str, pl.DataFrame]) -> None:
    mine = run.verdicts().filter(pl.col("rule") == "gamma(5) => accuracy").sort("case")
    rows = mine.select("source_tp", "source_fp", "source_fn", "tp", "fp", "fn").to_numpy()

    def lost(some: np.ndarray) -> float:
        counts = some.sum(0)
        return float(POOLED["f1"][1](*counts[:3]) - POOLED["f1"][1](*counts[3:]))

    told = row(frames["measures"], follow_up="gamma(5)", measure="f1")
    assert (told["lost_low"], told["lost_high"]) == pytest.approx(bootstrap(rows, lost), abs=1e-6)
    assert told["lost"] == pytest.approx(row(run.over_cases(), rule="gamma(5) => degradation(measure=f1)")["drop"])
    assert told["lost_low"] < told["lost"] < told["lost_high"]


def test_the_curve_of_distances(frames: dict[str, pl.DataFrame], run: instar.Run) -> None:
    curve = frames["pck"].filter(group="source")
    assert curve["t"].to_list() == list(GRID)
    assert (curve["value"].diff().drop_nulls() >= 0).all()
    counted = (
        run.verdicts()
        .filter(pl.col("rule") == "gamma(5) => accuracy")
        .select("source_tp", "source_fp", "source_fn")
        .sum()
        .row(0)
    )
    assert row(frames["pck"], group="source", t=0.2)["value"] == pytest.approx(counted[0] / sum(counted))
    area = row(frames["measures"], follow_up="source", measure="auc")["value"]
    assert area == pytest.approx((curve["value"].sum() - (curve["value"][0] + curve["value"][-1]) / 2) / 25)


def test_a_perfect_system_has_a_perfect_curve(tmp_path: Path) -> None:
    found = hand_frames(ran(guessing, tmp_path, "gamma(2) => accuracy"))
    assert row(found["measures"], follow_up="gamma(2)", measure="auc")["value"] == 1
    assert row(found["measures"], follow_up="source", measure="error")["value"] == pytest.approx(0, abs=1e-6)
    assert found["response"].is_empty() and found["crucial"].is_empty(), "nothing is covered in this run"


def test_fingers_and_landmarks(frames: dict[str, pl.DataFrame]) -> None:
    """The further from the wrist, the further it is off: the little finger is never right, the thumb always."""

    def right(finger: str) -> float:
        return float(row(frames["fingers"], of="source", finger=finger, measure="right")["value"])

    assert right("thumb") == right("wrist") == pytest.approx(8 / 12), "of the hands that it finds"
    assert right("little") < right("middle")
    assert row(frames["fingers"], of="source", finger="little", measure="recall")["value"] is not None
    tips = frames["landmarks"].filter(of="source", measure="right")
    assert len(tips) == 21
    assert tips["value"][0] == right("wrist")
    covered = row(frames["landmarks"], of="finger_discs(thumb)", landmark="thumb_tip", measure="right")
    assert covered["value"] == 0 == covered["high"]


def test_the_response_to_covering(tmp_path: Path) -> None:
    """What sees landmarks one by one loses one by one: no step costs more than another."""
    found = hand_frames(ran(seeing, tmp_path))
    recall = found["response"].filter(measure="recall")
    assert recall["n"].to_list() == list(range(22))
    assert recall["value"].to_list() == pytest.approx([(21 - n) / 21 for n in range(22)], abs=0.08), "discs overlap"
    assert recall["completes"].drop_nulls().to_list() == ["thumb", "index", "middle", "ring", "little"]
    crucial = row(found["crucial"], measure="recall")
    assert crucial["low"] <= 0 <= crucial["high"] or abs(crucial["value"]) < 0.03
    assert row(found["response"], measure="precision", n=21)["value"] is None, "no answer has no precision"


def test_crucial_points(tmp_path: Path) -> None:
    """A system that guesses a finger as long as it sees any of it loses where a finger is completed."""

    def brittle(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        whole = np.ones(21, bool)
        for first in range(1, 21, 4):
            whole[first : first + 4] = shown[first : first + 4].any()
        return answer(points, whole)

    found = hand_frames(ran(brittle, tmp_path))
    for measure in ("recall", "f1"):
        crucial = row(found["crucial"], measure=measure)
        assert crucial["low"] > 0.1
        assert crucial["completing"] > 5 * crucial["others"]


def test_hands_with_objects_are_in_the_baselines_only(tmp_path: Path) -> None:
    cases = [
        Case(f"{number:02d}", input=image, truth=truth, attributes={"object": number >= 8})
        for number, (image, truth) in enumerate(HANDS)
    ]
    taken = Dataset("held", "", lambda: iter(cases), truth="poses")

    def unhanded(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        number = next(i for i, (_, truth) in enumerate(HANDS) if (truth.points[0] == points).all())
        return answer(points, shown) if number < 8 else Poses.from_array([], skeleton="hand-21")

    held = ran(unhanded, tmp_path, "gamma(2) => accuracy", taken)
    found = hand_frames(held)
    table = {
        each: row(found["baselines"], hands=each, measure="recall")
        for each in ("all hands", "without objects", "with objects")
    }
    assert [one["cases"] for one in table.values()] == [12, 8, 4]
    assert [one["value"] for one in table.values()] == pytest.approx([8 / 12, 1, 0])
    assert row(found["measures"], follow_up="source", measure="recall") == {
        **row(found["measures"], follow_up="source", measure="recall"),
        "cases": 8,
        "value": 1,
    }
    everything = hand_frames(held, objects=None)["measures"]
    assert row(everything, follow_up="gamma(2)", measure="recall")["cases"] == 12
    assert row(hand_frames(held, objects=True)["measures"], follow_up="gamma(2)", measure="recall")["value"] == 0


def test_where_all_hands_hold_an_object_all_are_measured(tmp_path: Path) -> None:
    cases = [
        Case(f"{number:02d}", input=image, truth=truth, attributes={"object": True})
        for number, (image, truth) in enumerate(HANDS[:3])
    ]
    held = ran(seeing, tmp_path, "gamma(2) => accuracy", Dataset("held", "", lambda: iter(cases), truth="poses"))
    assert row(hand_frames(held)["measures"], follow_up="gamma(2)", measure="f1")["cases"] == 3


def test_two_relations_about_one_follow_up_count_once(tmp_path: Path, run: instar.Run) -> None:
    twice = ran(
        clumsy,
        tmp_path,
        "gamma(5) => accuracy+gamma(5) => accuracy(handedness=kept)+gamma(2) => accuracy(handedness=kept)",
    )
    assert list(hand_counts(twice).follow_ups) == ["source", "gamma(5)", "gamma(2)"]
    mine = hand_counts(run)
    some = [mine.follow_ups.index(name) for name in hand_counts(twice).follow_ups]
    assert np.array_equal(hand_counts(twice).counts, mine.counts[:, some])


def test_objects_that_nothing_is_known_of(run: instar.Run) -> None:
    assert set(hand_frames(run, objects=False)["baselines"]["hands"]) == {"all hands"}
    with pytest.raises(ValueError, match="attribute `object`"):
        hand_frames(run, objects=True)


def test_follow_ups_that_failed_leave_their_sources_out(tmp_path: Path) -> None:
    def moody(pixels: np.ndarray) -> Poses:
        points, shown = known(pixels)
        number = next(i for i, (_, truth) in enumerate(HANDS) if (truth.points[0] == points).all())
        if np.percentile(pixels, 99) < 60 and number < 3:
            raise RuntimeError("too dark")
        return answer(points, shown) if number >= 3 else Poses.from_array([], skeleton="hand-21")

    found = hand_frames(ran(moody, tmp_path, "gamma(5) => accuracy+gamma(2) => accuracy"))["measures"]
    assert row(found, follow_up="gamma(2)", measure="recall")["baseline"] == pytest.approx(9 / 12)
    dark = row(found, follow_up="gamma(5)", measure="recall")
    assert (dark["cases"], dark["baseline"], dark["lost"]) == (9, 1, 0)


def test_without_labels(tmp_path: Path) -> None:
    held = ran(clumsy, tmp_path, "gamma(5) => accuracy", data(annotated=False))
    found = hand_frames(held)["measures"]
    source = row(found, follow_up="source", measure="f1")
    assert (source["value"], source["cases"]) == (1, 8), "what it found in the source is right, the rest unjudged"
    assert 0 < row(found, follow_up="gamma(5)", measure="f1")["lost"] < 1
    assert set(hand_counts(held).cases["reference"]) == {"source"}


def test_distances_in_pixels_leave_the_curve_in_sizes_of_the_hand(run: instar.Run) -> None:
    other = run.judge(normaliser="pixels", within=37.795)
    assert hand_frames(run, judging=other)["pck"].equals(hand_frames(run)["pck"])
    assert row(hand_frames(run, judging=other)["measures"], follow_up="source", measure="precision")["value"] == 1
    assert row(hand_frames(run)["measures"], follow_up="source", measure="precision")["value"] < 1


def test_nothing_to_measure(tmp_path: Path) -> None:
    other = instar.run(mean_hand, "identity", data(count=2), out=tmp_path / "other", workers=0)
    with pytest.raises(ValueError, match="hand-pose DATASET"):
        hand_frames(other)


def test_titles_are_those_of_the_suites(tmp_path: Path) -> None:
    """A rule that a user added has none, and is shown by its spelling."""
    added = "gamma(3) => accuracy+gamma(5) | mirror(h) => accuracy+greyscale => accuracy+motion(5, 0) => accuracy"
    out = ran(seeing, tmp_path, f"hand-pose+{added}", data(count=2))
    titles = {each.follow_up: each.title for each in hand_counts(out).test_cases}
    expected = {
        "source": "baseline",
        "discs(7)": "TC1 landmarks covered: discs(7)",
        "finger_discs(thumb)": "TC2 thumb covered",
        "finger_discs(little)": "TC6 little covered",
        "gamma(5)": "TC7 strong underexposure",
        "gamma(0.2)": "TC10 strong overexposure",
        "motion(20, 90)": "TC11 vertical motion blur",
        "motion(20, 45)": "TC13 diagonal motion blur",
        **{name: name for name in ("gamma(3)", "motion(5, 0)", "greyscale", "gamma(5) | mirror(h)")},
    }
    assert {name: titles[name] for name in expected} == expected
    measures = hand_frames(out)["measures"]
    assert dict(measures.select("follow_up", "title").iter_rows()) == titles
    groups = dict(measures.select("follow_up", "group").iter_rows())
    assert [groups[name] for name in ("discs(7)", "gamma(3)", "motion(5, 0)", "greyscale", "gamma(5) | mirror(h)")] == [
        "response",
        "exposure",
        "blur",
        "other",
        "other",
    ]
    darker = {each.follow_up for each in hand_counts(out).test_cases if each.darker}
    assert darker == {"gamma(5)", "gamma(3)", "gamma(2)"}


def test_the_paper_calls_its_test_cases_the_same() -> None:
    own, paper = suite("hand-pose"), suite("hand-pose@paper")
    assert list(own.titles.values()) == list(paper.titles.values())
    assert [title.split()[0] for title in own.titles.values()] == [f"TC{number}" for number in range(1, 14)]
    assert paper.titles["finger_discs(little, wrist=true) => degradation(measure=f1, of=whole)"] == "TC6 little covered"
    assert list(suite("hand-pose/blur").titles.values()) == list(own.titles.values())[10:]
