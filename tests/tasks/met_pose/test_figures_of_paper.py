"""Figures 4 to 8 and Table II of MET-POSE, made of one's own run, and what classic testing leaves out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import instar
from instar import Run
from instar.analysis import classic, classic_vs_metamorphic
from instar.case import Case
from instar.cli.app import app
from instar.datasets import Dataset
from instar.report.panels import Choice, TaskTables, figures_of, paper_figure
from instar.skeleton import skeleton
from instar.spelling import UnknownName
from instar.suites import Suite, suites
from instar.tasks.met_pose.beside_truth import left_out, left_out_sentences
from instar.tasks.met_pose.rule_sets import RuleSet, chosen_sets
from tests.missing import module
from tests.toys import scene, shaky, steady, write_scenes

SPELLED = ("identity", "mirror(h)", "greyscale", "gamma(0.5)", "rotation(15)", "motion(11, 0)", "motion(11, 100)")
RULES = Suite("mine", tuple(instar.rule(text) for text in SPELLED), panels=("violated-counts", "classic", "landmarks"))


def colour_blind(pixels: np.ndarray, seed: int) -> instar.Poses:
    """It needs colour, and fails where an image is wide: then it raises."""
    if pixels.shape[1] > 200:
        raise RuntimeError("too wide")
    return shaky(pixels, seed)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Five cases: three annotated, one without a subject, and one that the system does not answer."""
    folder = tmp_path_factory.mktemp("annotated")
    photos = write_scenes(folder / "photos", 4, (80, 60))
    write_scenes(folder / "wide", 1, (240, 60))
    (folder / "wide" / "000.png").rename(photos / "wide.png")
    cases = []
    for number, path in enumerate(sorted(photos.iterdir())):
        truth = steady(scene(number, (240, 60) if path.name == "wide.png" else (80, 60)).pixels)
        nobody = instar.Poses.from_array(np.zeros((0, 17, 2)), skeleton="coco-17")
        cases.append(Case(path.name, path=str(path), truth=nobody if number == 3 else truth))
    data = Dataset("annotated", str(photos), lambda: iter(cases), "poses")
    return instar.run(colour_blind, RULES, data, out=folder / "run", workers=0)


def made(run: Run, number: str, *rules: str, threshold: float | None = None) -> TaskTables:
    return paper_figure([run], number, Choice(rules, threshold))


def typed(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    return result.exit_code, result.output if result.exception is None else f"{result.output}{result.exception}"


# --- sets of rules


def test_the_papers_sets_are_what_the_run_has_of_them(run: Run) -> None:
    sets, notes = chosen_sets(run, (), ("all", "sub", "grey", "mirror-h"))
    assert [(each.name, len(each.rules)) for each in sets] == [
        ("all (6 rules)", 6),
        ("sub (5 of 18 rules)", 5),
        ("grey", 1),
        ("mirror-h", 1),
    ]
    assert notes == []
    (both,), _ = chosen_sets(run, ["grey + mirror-h"], ())
    assert both.rules == ("greyscale => poses", "mirror(h) => poses")


def test_suites_and_any_rules_are_sets_too(run: Run) -> None:
    (of_suite,), _ = chosen_sets(run, ["met-pose/colour"], ())
    assert (of_suite.rules, of_suite.name.split()[1:3]) == (("greyscale => poses",), ["(1", "of"])
    (spelled,), _ = chosen_sets(run, ["identity + gamma(0.5)"], ())
    assert spelled.rules == ("identity => poses", "gamma(0.5) => poses"), "identity counts where it is named"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gray", "unknown set of rules 'gray'; did you mean 'grey'"),
        ("gamma(0.6)", r"unknown rule of this run 'gamma\(0.6\)'; did you mean 'gamma\(0.5\)'"),
        ("meta-ic", "has no rule of 'meta-ic'"),
    ],
)
def test_a_set_that_the_run_does_not_have_is_told(run: Run, text: str, message: str) -> None:
    with pytest.raises((ValueError, UnknownName), match=message):
        chosen_sets(run, [text], ())


def test_the_rules_of_the_paper_mode_are_the_papers_sets_too() -> None:
    """Its rules are spelled otherwise: a centre that is exchanged, kernels that do not sum to 1."""
    from instar.tasks.met_pose.rule_sets import NAMED

    for name in ("met-pose/sub", "met-pose/sub@paper"):
        assert {one.left for one in suites()[name].rules} <= {instar.rule(text).left for text in NAMED["sub"]}


# --- figures


def test_figure_4_has_the_curves_of_each_set(run: Run) -> None:
    content = made(run, "4")
    curves = content.frames["curves"]
    assert curves["set"].unique(maintain_order=True).to_list() == [
        "all (6 rules)",
        "sub (5 of 18 rules)",
        "grey + mirror-h (2 rules)",
    ]
    own = run.curves("poses", sets={"x": ["greyscale", "mirror(h)"]})
    assert curves.filter(set="grey + mirror-h (2 rules)").drop("set").equals(own.drop("group"))
    (table,) = content.tables
    assert table.heads[1:] == [f"{name}, 4 cases" for name in curves["set"].unique(maintain_order=True)]


def test_figure_5_is_by_the_landmarks_of_hands(run: Run, tmp_path: Path) -> None:
    needs = (
        r"this figure needs the landmark group hands, and the skeleton coco-17 of .* has none; it has body, .*arms.* "
        r"Figure 4 shows the same"
    )
    with pytest.raises(ValueError, match=needs):
        made(run, "5")
    bones = skeleton("mediapipe-holistic")
    hand = [place for _, places in bones.select("left_hand") for place in places]

    def one_hand_is_lost_in_grey(pixels: np.ndarray) -> instar.Poses:
        points = np.random.default_rng(0).uniform(10, 50, (1, len(bones.landmarks), 2))
        if bool((pixels.max(2) == pixels.min(2)).all()):
            points[:, hand] = np.nan
        return instar.Poses.from_array(points, skeleton=bones)

    photos = write_scenes(tmp_path / "photos", 2, (80, 60))
    suite = Suite("grey", (instar.rule("greyscale"),), panels=("violated-counts",))
    lost = instar.run(one_hand_is_lost_in_grey, suite, photos, out=tmp_path / "run", workers=0)
    content = made(lost, "5")
    assert content.frames["curves"]["rate"].to_list()[-1] == 1
    assert content.after == ["This run has no rule of mirror-h, which is left out."]
    assert made(lost, "4").frames["curves"]["rate"].to_list()[-1] == 0, "the body, which is judged by default, stays"


def test_figure_6_counts_by_set_and_says_what_is_left_out(run: Run) -> None:
    content = made(run, "6")
    frame = content.frames["classic"]
    for name, rules in {"all (6 rules)": run.changing_rules("poses"), "grey": ["greyscale => poses"]}.items():
        expected = classic_vs_metamorphic(classic(run), run.severities().only(rules), run.grids()["poses"])
        assert frame.filter(set=name).drop("set").equals(expected)
    assert len(content.tables) == 4
    assert content.after == [
        "3 of 5 cases are compared. Left out: 1 case in which the system gave no answer to the source; "
        "1 case in which no subject is annotated."
    ]
    assert content.chart is not None
    bars = content.chart.tables["classic"]
    sums = bars.group_by("set", "threshold").agg(pl.col("number").sum())["number"]
    assert set(sums) == {3}, "both, one of them or neither: every compared case is in one bar"


def test_every_case_is_compared_or_left_out_for_one_reason(run: Run) -> None:
    """Also where no rule of a set could be judged in a case."""
    table = left_out(run, [RuleSet("none", ()), RuleSet("all", tuple(run.changing_rules("poses")))])
    assert set(table.group_by("set").agg(pl.col("cases").sum())["cases"]) == {5}
    none, every = left_out_sentences(table)
    assert none.startswith("none: 0 of 5 cases are compared. Left out: ") and "3 cases in which no rule is" in none
    assert every.startswith("all: 3 of 5 cases are compared.")


def test_the_tables_of_classic_testing_say_it_too(run: Run) -> None:
    code, text = typed("tables", run.folder)
    assert code == 0 and "3 of 5 cases are compared. Left out: 1 case in which" in " ".join(text.split())


def test_figures_7_and_8_are_the_coverage_of_any_rules(run: Run) -> None:
    frame = made(run, "7", threshold=0.05).frames["coverage"]
    rules = [rule for rule in run.changing_rules("poses") if not rule.startswith("rotation(15)")]
    expected = run.coverage(0.05).filter(pl.col("of").is_in(rules) & pl.col("by").is_in(rules))
    assert frame["covered"].to_list() == expected["covered"].to_list()
    every = made(run, "7", "all")
    assert every.frames["coverage"]["of"].n_unique() == 6
    assert set(made(run, "8").frames["coverage"]["of"]) == {"motion(11, 0)", "motion(11, 100)"}
    assert set(made(run, "8", "gamma(0.5) + greyscale").frames["coverage"]["of"]) == {"gamma(0.5)", "greyscale"}


def test_table_ii_has_the_bins_of_each_set(run: Run) -> None:
    content = made(run, "II", "all", "sub")
    assert [table.rows[-1][0] for table in content.tables] == ["6", "5"]
    counts = content.frames["violated counts"].filter(set="all (6 rules)").drop("set")
    assert counts.equals(run.violated_counts("poses"))


# --- the command


@pytest.mark.parametrize("number", ["4", "6", "7", "8"])
def test_a_figure_is_written_in_every_form(run: Run, number: str, tmp_path: Path) -> None:
    module("vl_convert")
    for kind, beginning in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".html", b"<!doctype html>")):
        file = tmp_path / f"figure{kind}"
        code, text = typed("tables", run.folder, "--figure", number, "--out", file)
        assert code == 0 and f"The figure is in {file}" in text, text
        assert file.read_bytes().startswith(beginning)
    page = file.read_text("utf-8")
    assert "<svg" in page and "<table>" in page and "http://" not in page.replace("http://www.w3.org", "")


def test_the_numbers_of_a_figure_are_written(run: Run, tmp_path: Path) -> None:
    for name in ("figure.csv", "figure.json"):
        code, text = typed("tables", run.folder, "--figure", "6", "--rules", "grey", "--out", tmp_path / name)
        assert code == 0, text
    with (tmp_path / "figure.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["set"] for row in rows} == {"grey"} and [row["threshold"] for row in rows][-1] == "inf"
    numbers = json.loads((tmp_path / "figure.json").read_text("utf-8"))
    assert set(numbers) == {"classic", "left out"} and numbers["classic"][-1]["threshold"] == "inf"


def test_an_unknown_figure_lists_those_that_there_are(run: Run) -> None:
    assert list(figures_of([run])) == ["4", "5", "7", "8", "II", "6"]
    code, text = typed("tables", run.folder, "--figure", "9")
    assert code != 0
    assert "there is no figure '9' of a run of" in text
    assert "There are: 4: cases that violate at least one rule, against the threshold; 5: " in text
    assert text.index("; 6: ") < text.index("; 7: ") < text.index("; II: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--figure", "4", "--threshold", "0.2"), "takes no threshold"),
        (("--rules", "sub"), "it belongs to --figure"),
        (("--figure", "II", "--out", "table.svg"), "a table is not drawn"),
        (("--figure", "4", "--out", "figure.pdf"), "unknown ending of a figure's file '.pdf'"),
    ],
)
def test_what_cannot_be_done_is_said(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, text = typed("tables", run.folder, *arguments)
    assert code != 0 and message in " ".join(text.split()).replace("│ ", "")
