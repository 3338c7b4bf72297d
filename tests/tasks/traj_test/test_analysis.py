"""The tables of TrajTest on numbers worked out by hand, and how they are printed."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import instar
from instar.analysis import any_rule, rates
from instar.case import Case
from instar.cli import main
from instar.datasets import Dataset
from instar.outputs.forecast import Forecast
from instar.relations import rule
from instar.report.limits import limit_words
from instar.scene import Scene
from instar.stats import binomial_bounds
from instar.systems import System
from instar.tasks.traj_test.analysis import (
    DISPLACEMENTS,
    agreement,
    displacement,
    displacement_tests,
    map_table,
    preserving_table,
    trajectory_tables,
)
from instar.tasks.traj_test.panel import _preserving
from tests.analysis.frames import SCHEMA
from tests.missing import module
from tests.perfect.walker import Walker, dataset, predictor, system
from tests.toys import write_scenes

STEPS = 4
SIZE = (100, 60)
Command = Callable[..., tuple[int, str, str]]


# --- displacement ------------------------------------------------------------------------------------------


def straight(scene: Scene) -> npt.NDArray[np.float64]:
    """Where the person really goes: on as before."""
    return np.asarray(scene.position + (scene.past[-1] - scene.past[-2]) * np.arange(1, STEPS + 1)[:, None])


def two_ways(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[npt.NDArray[np.float64]]:
    """One future that is 5 pixels beside the truth all the way, one that is right up to its end, 10 pixels away."""
    answers = []
    for scene in inputs:
        beside, late = straight(scene) + np.array([3, 4]), straight(scene)
        late[-1, 0] += 10
        answers.append(np.stack([beside, late]))
    return answers


def walked(folder: Path, truths: Sequence[bool], *rules: str) -> instar.Run:
    scene = Scene(np.ones(SIZE[::-1], np.uint8), ("background", "pavement"), np.array([[40.0, 30], [44, 30]]), STEPS)
    truth = Forecast.from_array(straight(scene))
    cases = [Case(f"{i}", input=scene, truth=truth if known else None) for i, known in enumerate(truths)]
    data = Dataset("walks", "", lambda: iter(cases), truth="forecast" if any(truths) else None, inputs="scene")
    tested = System("two ways", "forecast", two_ways, "1", takes="scene")
    return instar.run(tested, instar.Suite("s", tuple(map(instar.rule, rules))), data, out=folder / "run", workers=0)


def test_displacement_of_the_best_and_of_all(tmp_path: Path) -> None:
    one = walked(tmp_path, [True], "mirror(h) => wvc", "rotate90(1) => wvc", "rescale(0.5) => wvc", "mirror(v) => wvc")
    outcome = {
        row["follow_up"]: tuple(row[name] for name in DISPLACEMENTS)
        for row in displacement(one.store, ["mirror(h)", "rotate90(1)", "rescale(0.5)"]).to_dicts()
    }
    by_hand = (10 / 4, 5, (5 + 10 / 4) / 2, (5 + 10) / 2)  # best ADE, best FDE, mean ADE, mean FDE
    assert outcome["source"] == pytest.approx(by_hand, abs=1e-4)
    assert outcome["mirror(h)"] == pytest.approx(by_hand, abs=1e-4)
    assert outcome["rotate90(1)"] == pytest.approx(by_hand, abs=1e-4)
    assert outcome["rescale(0.5)"] == pytest.approx([2 * value for value in by_hand], abs=1e-4), "pixels of the source"
    assert "mirror(v)" not in outcome


def test_a_unit_is_said_whole_also_beside_another_one(tmp_path: Path) -> None:
    """A worst severity of 1.2 stands in the same table: shares have no such number."""
    run = walked(tmp_path, [True], "mirror(h) => wvc", "turn_past => follows")
    assert "(shares of the turn not followed; above 1: turned the other way by the rest)" in limit_words(run)


def test_how_much_a_crossing_weighs_stands_beside_it() -> None:
    relation = rule("obstacle => direction(avoid)").relation
    assert relation is not None
    (clause,) = [each for each in relation.relation.details if "{crossing}" in each]
    assert "the more there are, the higher is the severity" in clause
    assert "the one of a deterministic system is 0.79" in relation.relation.help
    assert math.log(2) + 0.1 == pytest.approx(0.79, abs=0.005) and math.log(21) + 0.1 == pytest.approx(3.14, abs=0.005)


def test_cases_without_a_truth_are_left_out(tmp_path: Path) -> None:
    one = walked(tmp_path, [True, False, True], "mirror(h) => wvc")
    assert set(displacement(one.store)["case"]) == {"0", "2"}


def test_without_any_truth(tmp_path: Path) -> None:
    one = walked(tmp_path, [False], "mirror(h) => wvc")
    with pytest.raises(ValueError, match="no ground truth of forecasts"):
        displacement(one.store)
    assert set(trajectory_tables(one)) == {"preserving", "map"}
    assert trajectory_tables(one)["preserving"].select(DISPLACEMENTS).row(0) == (None,) * 4


def displacements(rows: Iterable[tuple[str, str, float]]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"case": case, "follow_up": name, **dict.fromkeys(DISPLACEMENTS, value)} for case, name, value in rows]
    )


def test_a_displacement_is_tested_against_the_source_runs() -> None:
    runs = [("a", "source", float(value)) for value in range(4)]
    far, same = ("a", "mirror(h)", 50.0), ("a", "mirror(v)", 1.5)
    outcome = displacement_tests(displacements([*runs, far, same, ("b", "source", 1.0), ("b", "mirror(h)", 9.0)]))
    p = {(row["case"], row["follow_up"]): row["p_best_ade"] for row in outcome.to_dicts()}
    assert set(p) == {("a", "mirror(h)"), ("a", "mirror(v)")}, "one source run says nothing"
    assert p["a", "mirror(h)"] == pytest.approx(1 / 5)
    assert p["a", "mirror(v)"] > 0.5
    assert outcome.columns[2:] == [*(f"p_{name}" for name in DISPLACEMENTS), "p_least"]
    assert set(outcome["p_least"]) == {1 / 5}


def test_as_published_a_displacement_has_a_z_test() -> None:
    """One follow-up run against mean and deviation of the source runs: its p may be as small as it likes."""
    runs = [("a", "source", float(value)) for value in range(4)]
    measured = displacements([*runs, ("a", "mirror(h)", 50.0), ("a", "mirror(v)", 2.5)])
    outcome = displacement_tests(measured, as_published=True)
    p = dict(outcome.select("follow_up", "p_mean_fde").iter_rows())
    assert p["mirror(h)"] < 1e-9
    assert p["mirror(v)"] == pytest.approx(math.erfc(1 / np.std(range(4)) / math.sqrt(2)))
    assert outcome["p_least"].null_count() == 2
    same = displacements([("a", "source", 7.0), ("a", "source", 7.0), ("a", "mirror(h)", 7.001)])
    assert displacement_tests(same, as_published=True)["p_best_ade"].to_list() == [1], "rounding is no difference"


# --- tables ------------------------------------------------------------------------------------------------


def verdicts(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Verdicts of relations on forecasts; without a severity one is not applicable."""
    schema = {
        **SCHEMA,
        "p": pl.Float64,
        "p_least": pl.Float64,
        "crossing": pl.Int32,
        "futures": pl.Int32,
        "hellinger": pl.Float64,
    }
    full = [{"target": "whole", "severity": None, **row} for row in rows]
    return pl.DataFrame(
        [{"status": "ok" if row["severity"] is not None else "not applicable", **row} for row in full], schema=schema
    )


def by_p(p: Iterable[float | None], *, rule: str = "mirror(h) => wvc", severity: float = 1.0) -> list[dict[str, Any]]:
    return [{"case": f"c{i}", "rule": rule, "severity": severity, "p": value} for i, value in enumerate(p)]


def truth(p: Iterable[float], rule: str = "mirror(h) => wvc", least: float | None = None) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"case": f"c{i}", "rule": rule, "p_least": least, **{f"p_{name}": value for name in DISPLACEMENTS}}
            for i, value in enumerate(p)
        ],
        schema_overrides={"p_least": pl.Float64},
    )


def test_what_moves_all_alike() -> None:
    maps = [{"case": f"c{i}", "rule": "mirror(h) => hvc", "severity": value} for i, value in enumerate((0.1, 0.3))]
    none = {"case": "c9", "rule": "mirror(h) => wvc", "reason": "no"}
    frame = verdicts([*by_p([0.01, 0.05, 0.06, None]), none, *maps, *by_p([0.5], rule="rotate90(1) => wvc")])
    outcome = {row["change"]: row for row in preserving_table(frame, truth([0.01, 0.5, 0.9, 0.04])).to_dicts()}
    row = outcome["mirror(h)"]
    assert (row["judged"], row["wvc"]) == (3, pytest.approx(2 / 3))
    assert (row["wvc_low"], row["wvc_high"]) == pytest.approx(binomial_bounds(2, 3, 0.975))
    assert [row[name] for name in DISPLACEMENTS] == [1 / 3] * 4, "of the cases that wvc judged: the fourth has no p"
    assert (row["cases"], row["displacement_cases"], row["hvc_cases"]) == (3, 3, 2)
    assert (row["hvc"], row["hvc_sd"]) == pytest.approx((0.2, np.std([0.1, 0.3], ddof=1)))
    other = outcome["rotate90(1)"]
    assert (other["wvc"], other["hvc"], other["best_ade"]) == (0, None, None)
    assert preserving_table(frame, None, p=0.01)["wvc"].to_list() == pytest.approx([1 / 3, 0])


def test_a_column_that_rests_on_other_cases_than_its_neighbour_says_on_how_many() -> None:
    """A case that is not applicable counts in no measure; one without a truth leaves ADE and FDE fewer cases."""
    out_of_sight = [{"case": f"c{i}", "rule": "mirror(h) => wvc", "reason": "out of sight"} for i in range(4, 10)]
    frame = verdicts([*by_p([0.5] * 4), *out_of_sight])
    whole = preserving_table(frame, truth([0.9] * 4 + [0.01] * 6))
    assert whole.select("cases", "displacement_cases", "mean_ade").row(0) == (4, 4, 0), "the six are in no column"
    assert _preserving(whole, 0.05).heads[-1] == "maps (hvc)", "all rest on the same cases"
    fewer = _preserving(preserving_table(frame, truth([0.9] * 3)), 0.05)
    assert (fewer.heads[-1], fewer.rows[0][-1]) == ("cases of ADE, FDE", "3")
    assert "rest on other numbers of cases" in fewer.caption


def test_cases_whose_test_cannot_reject_are_not_among_those_of_the_rate() -> None:
    rows = [{**row, "p_least": least} for row, least in zip(by_p([0.01, 0.5, 0.5]), (0.01, 0.01, 0.5), strict=True)]
    row = preserving_table(verdicts(rows), truth([0.01, 0.5, 0.01])).row(0, named=True)
    assert (row["cases"], row["judged"], row["wvc"], row["mean_ade"]) == (2, 2, 0.5, 0.5)


def test_comparisons_as_published_count_for_themselves() -> None:
    rule = "mirror(h) => wvc(sources=2, repeats=1, test=z)"
    frame = verdicts(
        [
            {"case": "a", "target": f"source {i}", "rule": rule, "severity": 1.0, "p": p}
            for i, p in enumerate((0.01, 0.2))
        ]
    )
    row = preserving_table(frame, None).row(0, named=True)
    assert (row["cases"], row["judged"], row["tests_per_case"], row["wvc"]) == (1, 2, 2, 0.5)


def test_where_no_test_can_reject_there_is_no_rate() -> None:
    rows = [{**row, "p_least": 1 / 9} for row in by_p([1 / 9, 0.5])]
    for level, expected in ((0.05, (0, None, None)), (0.2, (2, 0.5, 0.5))):
        row = preserving_table(verdicts(rows), truth([1 / 9, 0.5], least=1 / 9), p=level).row(0, named=True)
        assert (row["judged"], row["wvc"], row["best_ade"]) == expected
        assert row["p_least"] == pytest.approx(1 / 9)
    scored = agreement(verdicts(rows), truth([1 / 9, 0.5], least=1 / 9))
    assert scores(scored, 0.05)["accuracy"] is None, "two tests that cannot reject agree on nothing"
    assert scores(scored, 0.2)["accuracy"] == 1


def scores(frame: pl.DataFrame, p: float) -> dict[str, Any]:
    return frame.filter(p=p, measure="best_ade").row(0, named=True)


def test_agreement_with_the_truth() -> None:
    said = verdicts(by_p([0.001, 0.001, 0.5, 0.5]))
    perfect = scores(agreement(said, truth([0.001, 0.001, 0.5, 0.5])), 0.05)
    assert (perfect["pairs"], perfect["accuracy"], perfect["precision"], perfect["recall"]) == (4, 1, 1, 1)
    never = scores(agreement(said, truth([0.5, 0.5, 0.001, 0.001])), 0.05)
    assert (never["accuracy"], never["precision"], never["recall"]) == (0, 0, 0)
    mixed = scores(agreement(said, truth([0.001, 0.5, 0.5, 0.5])), 0.05)
    assert (mixed["accuracy"], mixed["precision"], mixed["recall"]) == (0.75, 0.5, 1)


def test_where_nothing_can_be_divided() -> None:
    quiet = scores(agreement(verdicts(by_p([0.5, 0.5])), truth([0.5, 0.5])), 0.05)
    assert (quiet["accuracy"], quiet["precision"], quiet["recall"]) == (1, None, None)
    for frame in (verdicts([]), verdicts(by_p([0.5], rule="identity => wvc"))):
        outcome = agreement(frame, truth([0.5]))
        assert set(outcome["pairs"]) == {0}
        assert outcome["accuracy"].null_count() == outcome.height


def test_what_changes_the_map() -> None:
    rule = "obstacle => direction(avoid)"
    held = [("confirmed", 0.0, 0, 0.2), ("confirmed", 0.0, 0, 0.4), ("crossing", 1.0, 5, 0.6), ("wrong way", 0.5, 0, 0)]
    rows = [
        {
            "case": f"c{i}",
            "rule": rule,
            "kind": kind,
            "severity": severity,
            "crossing": crossing,
            "futures": 10,
            "hellinger": apart,
        }
        for i, (kind, severity, crossing, apart) in enumerate(held)
    ]
    rows += [
        {"case": "c8", "rule": rule, "reason": "hardly moves", "crossing": 9, "futures": 10},
        {"case": "c9", "rule": rule, "status": "timeout"},
        {"case": "c0", "rule": "class_change(road, tree) => direction(avoid)", "reason": "no road"},
        {
            "case": "c0",
            "rule": "class_change(road, pavement) => direction(increase)",
            "severity": 0.0,
            "kind": "inconclusive",
            "crossing": 3,
            "futures": 10,
            "hellinger": 0.1,
        },
        {
            "case": "c0",
            "rule": "class_change(road, terrain) => direction(increase)",
            "severity": 0.0,
            "kind": "confirmed",
            "crossing": 3,
            "futures": 10,
            "hellinger": 0.3,
        },
    ]
    outcome = {(row["change"], row["effect"]): row for row in map_table(verdicts(rows)).to_dicts()}
    obstacle = outcome["obstacle", "avoid"]
    assert (obstacle["judged"], obstacle["not_applicable"]) == (4, 1)
    assert [obstacle[name] for name in ("confirmed", "inconclusive", "wrong_way", "crossing")] == [0.5, 0, 0.25, 0.25]
    assert (obstacle["confirmed_low"], obstacle["confirmed_high"]) == pytest.approx(binomial_bounds(2, 4, 0.975))
    assert (obstacle["cases_crossing"], obstacle["paths_crossing"]) == (0.25, 5 / 40)
    assert obstacle["hellinger"] == pytest.approx(0.3)
    nothing = outcome["class_change", "avoid"]
    assert (nothing["judged"], nothing["not_applicable"], nothing["confirmed"], nothing["paths_crossing"]) == (
        0,
        1,
        None,
        None,
    )
    gain = outcome["class_change", "increase"]
    assert (gain["judged"], gain["confirmed"], gain["inconclusive"]) == (2, 0.5, 0.5)
    assert gain["cases_crossing"] is None, "one may walk there"


def test_a_test_decides_where_there_is_a_level() -> None:
    frame = verdicts([*by_p([0.01, 0.2, None], severity=5.0), *by_p([0.001], rule="mirror(v) => wvc", severity=0)])
    limits = {"mirror(h) => wvc": 0.5, "mirror(v) => wvc": 0.5}

    def violated(**alphas: float) -> list[int]:
        return rates(frame, limits, alphas={f"mirror({axis}) => wvc": p for axis, p in alphas.items()})[
            "violated"
        ].to_list()

    assert violated() == [3, 0]
    assert violated(h=0.05, v=0.05) == [2, 1], "where there is no p the severity decides"
    assert violated(h=0.3) == [3, 0]
    assert any_rule(frame, limits, alphas=dict.fromkeys(limits, 0.05))["violated"] == 2
    assert any_rule(frame, limits)["violated"] == 3


# --- printed -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    rules = (
        "mirror(h) => wvc(6, 3)",
        "rotate90(1) => wvc(6, 3)",
        "rotate90(1) => hvc",
        "class_change(road, pavement) => direction(increase, 6)",
        "obstacle => direction(avoid, 6)",
    )
    return instar.run(
        system(Walker(turns_portrait_wrongly=True)),
        instar.Suite("s", tuple(map(instar.rule, rules))),
        dataset(5),
        out=tmp_path_factory.mktemp("run") / "run",
        workers=0,
    )


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def typed(*arguments: object) -> tuple[int, str, str]:
        """The exit status and what was printed."""
        monkeypatch.setattr(sys, "argv", ["instar", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return typed


def test_tables_in_a_terminal_and_as_markdown(finished: instar.Run, command: Command) -> None:
    tables = trajectory_tables(finished)
    turned = tables["preserving"].filter(change="rotate90(1)").row(0, named=True)
    assert turned["wvc"] == 1, "the fault must be seen"
    kept = tables["map"].filter(change="obstacle").row(0, named=True)
    level = tables["agreement"].filter(p=0.05, measure="mean_ade").row(0, named=True)
    numbers = [
        "100.0 (40–100)",  # of four: the fifth is walled in, never varies, and has no test
        f"{turned['hvc']:.3f} ± {turned['hvc_sd']:.3f}",
        f"{100 * kept['confirmed']:.1f} (",
        f"{100 * level['accuracy']:.1f}",
        f"{cast(float, tables['displacement']['mean_ade'].mean()):.2f}",
        "mean over 5 cases",
        "obstacle, avoid",
    ]
    for option in ((), ("--markdown",)):
        status, printed, _ = command("tables", finished.folder, *option)
        assert status == 0
        for number in numbers:
            assert number in printed
    lines = printed.splitlines()
    rows = [line for line in lines if line.startswith("| rotate90(1) |")]
    assert len(rows) == 1
    assert {line.count("|") for line in lines if "mirror(h)" in line or "rotate90" in line} == {11}
    assert rows[0].endswith("| 5 |") and rows[0].startswith("| rotate90(1) | 4 |"), "hvc judges a case more than wvc"


def test_the_level_can_be_chosen(finished: instar.Run, command: Command) -> None:
    """With nine runs p cannot fall below 1/84: at a smaller level there is no rate, and the table says why."""
    for level, share in ((0.05, 1), (0.001, None)):
        status, printed, _ = command("tables", finished.folder, "--p", level, "--json")
        assert status == 0
        outcome = json.loads(printed)["trajtest"]
        assert set(outcome) == {"preserving", "map", "agreement"}
        assert {row["change"]: row["wvc"] for row in outcome["preserving"]}["rotate90(1)"] == share
    _, printed, _ = command("tables", finished.folder, "--p", "0.001", "--markdown")
    assert "| rotate90(1) | 4 | 1 | p ≥ 0.012 | p ≥ 0.012 |" in printed
    assert "at this level nothing can be rejected" in printed
    status, _, errors = command("tables", finished.folder, "--p", "0")
    assert status == 2
    assert "p is above 0 and below 1" in errors


def test_figures_of_the_paper_by_number(finished: instar.Run, command: Command, tmp_path: Path) -> None:
    """Figure 5 is drawn, and its numbers are those of the tables; Tables 3 and 4 stand for themselves."""
    module("vl_convert")
    status, printed, _ = command("tables", finished.folder, "--figure", 5, "--json", "--out", tmp_path / "5.svg")
    assert status == 0
    assert json.loads(printed) == {"5": {"agreement": trajectory_tables(finished)["agreement"].to_dicts()}}
    assert "mean FDE" in (tmp_path / "5.svg").read_text("utf-8")
    _, printed, _ = command("tables", finished.folder, "--figure", "table-3", "--p", "0.001", "--markdown")
    assert "| rotate90(1) | 4 | 1 | p ≥ 0.012 |" in printed and "obstacle" not in printed
    _, printed, _ = command("tables", finished.folder, "--figure", "table-4", "--markdown")
    assert "| obstacle, avoid |" in printed and "rotate90" not in printed


def test_show_counts_by_test_where_asked(finished: instar.Run, command: Command) -> None:
    def violated(*options: object) -> dict[str, int]:
        status, printed, _ = command("show", finished.folder, "--json", *options)
        assert status == 0
        return {
            row["rule"].partition(" =>")[0]: row["violated"]
            for row in json.loads(printed)["rules"]
            if "wvc" in row["rule"]
        }

    assert violated("--threshold", "1000") == {"mirror(h)": 0, "rotate90(1)": 0}
    assert violated("--threshold", "1000", "--p", "0.02")["rotate90(1)"] == 4
    assert violated("--p", "0.001")["rotate90(1)"] == 1, "who is walled in has no test, and is judged by severity"
    assert violated("--p", "0.99")["mirror(h)"] > 0


def test_a_run_whose_suites_have_no_tables_says_so(tmp_path: Path, command: Command) -> None:
    photos = write_scenes(tmp_path / "photos", 1)
    instar.run("tests.toys:rectangles", "mirror(h)", photos, out=tmp_path / "boxes", workers=0, zones="none")
    status, printed, errors = command("tables", tmp_path / "boxes")
    assert (status, printed) == (2, "")
    assert "has no tables" in errors


def test_the_tables_of_poses_are_not_those_of_forecasts(tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 1)
    run = instar.run("tests.toys:steady", "mirror(h)", photos, out=tmp_path / "run", workers=0, zones="none")
    with pytest.raises(ValueError, match="is a run of poses; these tables are of forecasts"):
        trajectory_tables(run)


def test_changes_are_listed_in_the_order_of_the_suite(tmp_path: Path) -> None:
    """Not in the order in which questions were asked, which is shuffled, nor by severity."""
    changes = ["rotate90(3)", "mirror(h)", "rotate90(1)", "mirror(v)", "rotate90(2)"]
    rules = [f"{change} => wvc(2, 2)" for change in changes]
    rules += ["obstacle(tree) => direction(avoid, 4)", "class_change(road, pavement) => direction(increase, 4)"]
    run = instar.run("constant-velocity", " + ".join(rules), dataset(1), out=tmp_path / "run", workers=0)
    tables = trajectory_tables(run)
    assert tables["preserving"]["change"].to_list() == changes
    assert tables["map"]["change"].to_list() == ["obstacle", "class_change"]


def test_tables_of_a_deterministic_system_say_that_there_are_no_tests(tmp_path: Path, command: Command) -> None:
    rules = "mirror(h) => wvc(4, 2) + obstacle(tree) => direction(avoid, 4)"
    same = predictor(Walker(), deterministic=True)
    run = instar.run(same, rules, dataset(2), out=tmp_path / "run", workers=0)
    status, printed, _ = command("tables", run.folder)
    words = " ".join(printed.split())
    assert status == 0
    assert words.startswith("The system is deterministic: it answers the same scene with the same futures every time")
    assert "2 cases were judged by the distance between futures instead" in words
    assert "Changes that move everything alike: violations at p" not in words and "recall" not in words
    assert "Changes of the map" in words


def test_what_is_asked_as_published_is_counted_apart(tmp_path: Path) -> None:
    rules = "mirror(h) => wvc(4, 2) + mirror(h) => wvc(4, 1, test=z) + obstacle(tree) => direction(avoid, 4)"
    rules += " + obstacle(tree) => direction(avoid, 4, test=wilcoxon)"
    both = instar.run("constant-velocity", rules, dataset(2), out=tmp_path / "run", workers=0)
    tables = trajectory_tables(both, p=0.1)  # six runs cannot show a p below 1/15
    judged = dict(tables["preserving"].select("change", "judged").iter_rows())
    assert judged == {"mirror(h)": 2, "mirror(h), as published": 8}
    assert tables["map"]["change"].to_list() == ["obstacle", "obstacle, as published"]


def test_the_papers_suite_fills_its_columns_and_its_figure(tmp_path: Path) -> None:
    """A predictor that turns standing maps wrongly is wrong by every measure of Table 3, and Figure 5 shows it."""
    rules = "rotate90(1) => wvc(8, 1, test=z)"
    run = instar.run(system(Walker(turns_portrait_wrongly=True)), rules, dataset(4), out=tmp_path / "run", workers=0)
    tables = trajectory_tables(run)
    row = tables["preserving"].row(0, named=True)
    assert (row["cases"], row["judged"], row["tests_per_case"]) == (4, 32, 8)
    assert row["wvc"] == row["mean_ade"] == row["mean_fde"] == 1
    figure = tables["agreement"].filter(p=0.05, measure="mean_ade").row(0, named=True)
    assert (figure["pairs"], figure["accuracy"], figure["as_published"]) == (32, 1, True)
