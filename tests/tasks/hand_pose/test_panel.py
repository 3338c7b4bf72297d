"""The panel of hand pose: its numbers are those of the analysis, its figures can be drawn, and it ends in advice."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import instar
from instar.cli import main
from instar.datasets import Dataset
from instar.report import write_report
from instar.report.chart import printed
from instar.report.export import _markdown
from instar.report.page import Report, make_report, page
from instar.report.panels import Choice, PanelContent, TaskTables
from instar.report.section import Section
from instar.suites import suites
from instar.tasks.hand_pose.analysis import hand_frames
from instar.tasks.hand_pose.panel import PANELS
from tests.missing import module
from tests.perfect.test_hand_pose import afraid_of_the_dark, data, known, mean_hand, seeing

RULES = [
    *(f"discs({n})" for n in range(1, 22)),
    "finger_discs(thumb)",
    "finger_discs(little)",
    "gamma(5)",
    "gamma(0.5)",
    "motion(20, 90)",
    "motion(20, 45)",
]

OF_ONE = ["hands-response", "hands-tests", "hands-pck", "hands-fingers"]


def ran(system: Callable[[np.ndarray], instar.Poses], out: Path, rules: list[str] = RULES, **how: Any) -> instar.Run:
    titles = {rule.partition(" => ")[0]: title for rule, title in suites()["hand-pose"].titles.items()}
    own = {instar.rule(f"{one} => accuracy"): titles.get(one, one) for one in rules}
    suite = instar.Suite(
        "some hands", tuple(own), panels=("hands",), titles={rule.id: title for rule, title in own.items()}
    )
    return instar.run(system, suite, data(**how), out=out, workers=0)


@pytest.fixture(scope="module")
def fearful(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    return ran(afraid_of_the_dark, tmp_path_factory.mktemp("runs") / "fearful")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    return ran(seeing, tmp_path_factory.mktemp("runs") / "seeing")


@pytest.fixture(scope="module")
def report(fearful: instar.Run) -> Report:
    return make_report([fearful], images=0)


def panel_of(report: Report) -> PanelContent:
    (found,) = report.runs[0].parts[0].panels
    return found


def compared(runs: list[instar.Run], names: list[str], section: Section, judging: str) -> PanelContent | None:
    of_runs = PANELS["hands"].of_runs
    assert of_runs is not None
    return of_runs(runs, names, section, judging)


def test_the_suites_ask_for_it() -> None:
    there = suites()
    assert {name for name, one in there.items() if "hands" in one.panels} == {
        name for name in there if name.startswith("hand-pose") or name == "hands"
    }


def test_its_advice_is_among_what_was_found(report: Report) -> None:
    panel = panel_of(report)
    advice = [finding.words for finding in report.runs[0].findings]
    assert any("loses dark hands" in words and "100 points" in words for words in advice)
    assert "ground truth" in panel.text and "0.2 sizes of the hand" in panel.text
    module("vl_convert")
    assert "loses dark hands" in unescape(re.sub(r"<script.*?</script>", "", page(report), flags=re.S))


def test_the_numbers_are_those_of_the_analysis(report: Report, fearful: instar.Run) -> None:
    costs = next(table for table in panel_of(report).tables if table.heads[0] == "test case")
    rows = {row[0]: row for row in costs.rows}
    assert list(rows) == [
        "baseline",
        "TC2 thumb covered",
        "TC6 little covered",
        "TC7 strong underexposure",
        "TC9 overexposure",
        "TC11 vertical motion blur",
        "TC13 diagonal motion blur",
    ]
    for row in (
        hand_frames(fearful)["measures"]
        .filter(pl.col("measure") == "f1", pl.col("group") != "response")
        .iter_rows(named=True)
    ):
        shown = rows[row["title"]]
        assert shown[1] == str(row["cases"])
        assert float(shown[2].split()[0]) == pytest.approx(100 * row["value"], abs=0.05)
        assert row["group"] == "source" or float(shown[3].split()[0]) == pytest.approx(100 * row["lost"], abs=0.05)
    figures = {chart.name: chart for chart in panel_of(report).charts}
    drawn = figures["hands-tests"].tables["tests"].filter(measure="f1")
    assert (
        drawn["rate"].to_list()
        == hand_frames(fearful)["measures"]
        .filter(pl.col("measure") == "f1", pl.col("group") != "response")["value"]
        .to_list()
    )
    assert figures["hands-response"].tables["response"].filter(series="F1")["n"].to_list() == list(range(22))
    assert figures["hands-response"].tables["completed"]["n"].to_list() == [5, 9, 13, 17, 21]


def test_the_figures_of_one_run_and_of_several(report: Report, fearful: instar.Run, other: instar.Run) -> None:
    """That those of one run can be drawn is shown where its report writes them."""
    convert = module("vl_convert")
    section = report.runs[0].parts[0].section
    both = compared([fearful, other], ["fearful", "seeing"], section, "default")
    assert both is not None
    assert [chart.name for chart in panel_of(report).charts] == OF_ONE
    assert [chart.name for chart in both.charts] == ["hands-compared", "hands-purposes"]
    for chart in both.charts:
        svg = convert.vegalite_to_svg(printed(chart), vl_version=convert.get_vegalite_versions()[-1])
        assert svg.count("<path") > 10, chart.name


def test_several_runs_beside_each_other(report: Report, fearful: instar.Run, other: instar.Run) -> None:
    section = report.runs[0].parts[0].section
    both = compared([fearful, other], ["fearful", "seeing"], section, "default")
    assert both is not None
    tables = {table.heads[0]: table for table in both.tables}
    assert any("prefer seeing to fearful" in cell for (cell,) in tables["advice"].rows)
    assert [row[0] for row in tables["system"].rows] == ["fearful", "seeing"]
    dark = [row for row in tables["test case"].rows if row[1] == "seeing"]
    assert len(dark) == 7


def test_a_report_of_several_runs_compares_them(fearful: instar.Run, other: instar.Run) -> None:
    module("vl_convert")
    both = make_report([fearful, other], images=0)
    html, text = page(both), "\n".join(_markdown(both, "figures", "svg"))
    assert "Which one for what" in html and 'data-figure="comparison-accuracy-hands-purposes"' in html
    assert "Which one for what" in text and "prefer tests.perfect.test_hand_pose:seeing" in text.replace("\\", "")


def test_a_report_in_every_format(fearful: instar.Run, tmp_path: Path) -> None:
    module("vl_convert")
    files = write_report([fearful], tmp_path / "hands.html", formats=("html", "md", "svg"), images=0)
    assert {path.name for path in files} >= {"hands.html", "hands.md", "accuracy-hands_response.svg"}
    for name in OF_ONE:
        drawn = tmp_path / "hands-figures" / f"accuracy-{name.replace('-', '_', 1)}.svg"
        assert drawn.read_text("utf-8").count("<path") > 10, name
    text = (tmp_path / "hands.md").read_text("utf-8")
    assert "How well it finds hands" in text and "It loses dark hands" in text


def test_what_is_not_there_is_not_shown(tmp_path: Path) -> None:
    """No TC1, no finger, nothing annotated: neither curve nor baseline."""
    report = make_report([ran(seeing, tmp_path, ["gamma(5)"], annotated=False)], images=0)
    panel = panel_of(report)
    assert "hands-response" not in {chart.name for chart in panel.charts}
    assert not any(table.caption.startswith(("Baseline", "TC1")) for table in panel.tables)
    assert any("its own answers" in finding.words for finding in report.runs[0].findings)


def test_a_system_that_finds_nothing(tmp_path: Path) -> None:
    def blind(pixels: np.ndarray) -> instar.Poses:
        return instar.Poses.from_array([], skeleton="hand-21")

    panel = panel_of(make_report([ran(blind, tmp_path, ["discs(21)", "gamma(5)"])], images=0))
    costs = next(table for table in panel.tables if table.heads[0] == "test case")
    assert costs.rows[0][2].startswith("0.0") and costs.rows[0][4] == "–", "it has no precision"
    unjudged = make_report([ran(blind, tmp_path / "free", ["gamma(5)"], annotated=False)], images=0)
    assert not unjudged.runs[0].parts[0].panels


# --- the command

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    def typed(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["instar", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return typed


def test_tables_in_the_terminal(fearful: instar.Run, other: instar.Run, command: Typed) -> None:
    status, said, _ = command("tables", fearful.folder)
    assert status == 0 and "…" not in said, "nothing is cut off"
    flat = " ".join(said.split())
    assert "Baseline of all hands" in flat and "TC13" in flat and "crucial points" in flat, "long titles may be folded"
    assert "* It loses dark hands" in flat
    status, said, _ = command("tables", fearful.folder, other.folder, "--markdown")
    assert status == 0
    assert (
        r"test\_hand\_pose:afraid\_of\_the\_dark | 0.0 (0–0) | 100.0 (100 to 100) | – | 0.0 (0–0) | 0.0 (0–0) |" in said
    )
    assert r"prefer tests.perfect.test\_hand\_pose:seeing" in said


def test_tables_as_json(fearful: instar.Run, other: instar.Run, command: Typed) -> None:
    def frames(*runs: instar.Run) -> dict[str, list[dict[str, Any]]]:
        status, printed, _ = command("tables", *(run.folder for run in runs), "--json")
        assert status == 0
        tables = json.loads(printed)
        of_hands: dict[str, list[dict[str, Any]]] = tables["hands"]
        return of_hands

    of_one, of_both = frames(fearful), frames(fearful, other)
    assert {"baselines", "measures", "pck", "fingers", "landmarks", "response", "crucial", "advice"} <= of_one.keys()
    assert of_one["advice"][0].keys() == {"ground", "says", "because"}
    assert {row["run"] for row in of_both["measures"]} == {
        "tests.perfect.test_hand_pose:afraid_of_the_dark",
        "tests.perfect.test_hand_pose:seeing",
    }


def tables_of(*runs: instar.Run) -> TaskTables | None:
    panel = PANELS["hands"]
    assert panel.several and panel.tables is not None
    return panel.tables(runs, "default", 0.05)


def test_what_is_printed_of_a_run(fearful: instar.Run) -> None:
    printed = tables_of(fearful)
    assert printed is not None
    assert "Measured against the ground truth" in printed.before[0]
    heads = [(table.caption.split(",")[0], table.heads[0], len(table.rows)) for table in printed.tables]
    assert heads == [
        ("Baseline of all hands", "cases", 1),
        ("Test cases", "test case", 7),
        ("Landmarks that are right", "finger", 6),
        ("TC1", "measure", 2),
    ]
    assert any(sentence.startswith("* It loses dark hands") for sentence in printed.after)
    assert {name: len(frame) for name, frame in printed.frames.items()} == {
        name: len(frame) for name, frame in hand_frames(fearful).items()
    }


def test_a_score_that_falls_just_below_the_confidence_is_missing_and_the_caption_says_why(tmp_path: Path) -> None:
    """A rule allows a margin and calls nothing lost; who cuts at 0.5 misses the hand: both numbers are right."""

    def wavering(pixels: np.ndarray) -> instar.Poses:
        dark = np.percentile(pixels, 99) < 60
        return instar.Poses.from_array(known(pixels)[0], skeleton="hand-21", scores=[0.4998 if dark else 0.501])

    run = instar.run(wavering, "gamma(5)", data(count=2), out=tmp_path, workers=0)
    assert run.rates(0.5)["violated"].to_list() == [0]
    printed = tables_of(run)
    assert printed is not None and "with a score of at least 0.5 is missing" in printed.before[0]
    costs = next(table for table in printed.tables if table.heads[0] == "test case")
    assert costs.rows[1][2].startswith("0.0"), "F1: both hands are below 0.5"
    assert "a hand that scores less than 0.5 is missing" in costs.caption and "no more than 0.2" in costs.caption


def test_where_the_rules_have_no_margin_the_caption_is_silent_about_it(fearful: instar.Run) -> None:
    printed = tables_of(fearful)
    assert printed is not None and not any("margin" in table.caption for table in printed.tables)


def test_what_is_printed_of_several_runs(fearful: instar.Run, other: instar.Run) -> None:
    printed = tables_of(fearful, other)
    assert printed is not None
    assert [table.heads[0] for table in printed.tables] == ["system", "test case"]
    assert len(printed.tables[1].rows) == 14
    assert any("prefer tests.perfect.test_hand_pose:seeing" in sentence for sentence in printed.after)
    assert set(printed.frames) == {"baselines", "measures", "groups", "differences", "advice"}


def test_every_row_of_runs_of_different_suites_names_its_test_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs without a common case keep the test cases that each has."""
    one = ran(seeing, tmp_path / "one", ["gamma(5)", "gamma(0.5)"])
    cases = [replace(case, id=f"x{case.id}") for case in data().cases()]
    others = Dataset("other spots", "", lambda: iter(cases), truth="poses")
    monkeypatch.setattr(sys.modules[__name__], "data", lambda: others)
    two = ran(afraid_of_the_dark, tmp_path / "two", ["motion(20, 90)", "motion(20, 45)"])
    printed = tables_of(one, two)
    assert printed is not None
    named = [row[0] for row in printed.tables[1].rows]
    assert named[1] == "" and len({*named[2:]}) == 4 and all(named[2:])


def test_none_is_better_that_is_measured_against_something_else(tmp_path: Path) -> None:
    """Against its own answers, a system is perfect in every source."""
    rules = ["gamma(5)", "gamma(0.5)", "motion(20, 90)"]
    truth = ran(afraid_of_the_dark, tmp_path / "truth", rules)
    own = ran(seeing, tmp_path / "own", rules, annotated=False)
    printed = tables_of(truth, own)
    assert printed is not None
    table = printed.tables[-1]
    assert table.heads[:3] == ["test case", "system", "against"]
    assert [row[2] for row in table.rows[:2]] == ["the ground truth", "the system's own answers to the source"]
    assert printed.frames["differences"].is_empty()
    assert "the runs are not measured against the same" in printed.after[0]
    assert not any("prefer" in sentence for sentence in printed.after)


def test_no_run_is_the_best_on_a_few_cases(tmp_path: Path) -> None:
    runs = [ran(system, tmp_path / system.__name__, ["gamma(5)"], count=3) for system in (afraid_of_the_dark, seeing)]
    printed = tables_of(*runs)
    assert printed is not None and printed.frames["differences"].is_empty()
    assert "compared on the 3 cases that all runs have" in printed.before[0]


def test_tables_of_runs_that_are_not_all_of_hands(tmp_path: Path, fearful: instar.Run, command: Typed) -> None:
    plain = instar.run(mean_hand, "identity", data(count=1), out=tmp_path, workers=0)
    assert tables_of(plain) is None
    with pytest.raises(ValueError, match="no rules about the accuracy of hands"):
        tables_of(fearful, plain)
    for runs in ((plain, fearful), (fearful, plain)):
        status, _, errors = command("tables", *(run.folder for run in runs))
        assert status == 2 and errors


# --- figures of the paper


def test_tc1_of_several_systems_is_one_figure(
    fearful: instar.Run, other: instar.Run, tmp_path: Path, command: Typed
) -> None:
    """Figure 4, of landmarks and of hands, each a panel: the same numbers as those of each run alone."""
    made = PANELS["hands"].figures["4"].make([fearful, other], Choice())
    frame = made.frames["response"]
    names = frame["run"].unique(maintain_order=True).to_list()
    assert [name.rpartition(":")[2] for name in names] == ["afraid_of_the_dark", "seeing"]
    assert set(frame["measure"]) == {"precision", "recall", "f1", "hand_precision", "hand_recall", "hand_f1"}
    for name, run in zip(names, (fearful, other), strict=True):
        of_run = hand_frames(run)["response"]
        assert frame.filter(run=name).drop("run").equals(of_run)
    assert made.chart is not None and made.chart.tables["responses"]["measure"].n_unique() == 6, (
        "no place of the figure is empty"
    )
    assert len(made.tables[0].rows) == 2 * 22, "the source and every level, of each system"
    module("vl_convert")
    out = tmp_path / "tc1.svg"
    status, printed_text, notes = command("tables", fearful.folder, other.folder, "--figure", 4, "--out", out)
    assert status == 0 and "precision, recall and F1 of landmarks and of hands" in " ".join(printed_text.split()), notes
    assert f"The figure is in {out}" in notes
    drawn = out.read_text("utf-8")
    assert "recall of hands" in drawn and "seeing" in drawn


def test_the_curves_of_a_report_have_no_measures_of_hands(report: Report) -> None:
    figures = {chart.name: chart for chart in panel_of(report).charts}
    assert set(figures["hands-response"].tables["response"]["series"]) == {"F1", "precision", "recall"}


def test_a_run_without_levels_has_no_response(tmp_path: Path) -> None:
    few = ran(seeing, tmp_path / "few", ["gamma(5)"])
    with pytest.raises(ValueError, match=r"no case was judged at every level of TC1, discs\(1\) to discs\(21\)"):
        PANELS["hands"].figures["4"].make([few], Choice())
