"""Faults of single landmarks, which the median over landmarks hides: they are named, with the rule and how often."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from instar import Poses
from instar.cli import app
from instar.report.page import make_report, page
from instar.report.sentences import headline
from instar.viewer import application
from tests.missing import module
from tests.perfect.figures import PLACE, Answer, is_mirrored, points_of, pose, run_of
from tests.quality.words import assert_accused


def exchanged(pixels: np.ndarray, joints: Sequence[str]) -> Poses:
    """The sides of these joints change places in a mirror, where they must not."""
    points = points_of(pixels)
    if is_mirrored(pixels):
        for joint in joints:
            left, right = PLACE[f"left_{joint}"], PLACE[f"right_{joint}"]
            points[[left, right]] = points[[right, left]]
    return pose(points)


def ankles_reflected(pixels: np.ndarray) -> Poses:
    return exchanged(pixels, ["ankle"])


def face_not_exchanged(pixels: np.ndarray) -> Poses:
    return exchanged(pixels, ["eye", "ear"])


def ankles_lost_in_the_dark(pixels: np.ndarray) -> Poses:
    points = points_of(pixels)
    if pixels.mean() < 90:
        points[[PLACE["left_ankle"], PLACE["right_ankle"]]] = np.nan
    return pose(points)


def a_wrist_that_shakes_when_turned(pixels: np.ndarray) -> Poses:
    """In half of the turned images one wrist is far off; the corners of a turned frame are black."""
    points = points_of(pixels)
    if pixels[0, 0, 0] < 10 and int(pixels.sum()) % 2:
        points[PLACE["left_wrist"]] += 40
    return pose(points)


@dataclass(frozen=True)
class Fault:
    """What is wrong, under which rule alone, and which landmarks are to be named."""

    answer: Answer
    rule: str
    named: frozenset[str]
    words: str = field(kw_only=True)
    """What must be said of it, as a regular expression."""


def sides(*joints: str) -> frozenset[str]:
    return frozenset(f"{side}_{joint}" for side in ("left", "right") for joint in joints)


FAULTS = {
    "ankles reflected": Fault(
        ankles_reflected,
        "mirror(h)",
        sides("ankle"),
        words=r"Left ankle and right ankle stray beyond the threshold in 100 % .* under mirror\(h\), although none",
    ),
    "face not exchanged": Fault(
        face_not_exchanged,
        "mirror(h)",
        sides("eye", "ear"),
        words=r"Left ear, left eye, right ear and right eye stray .*100 % .* under mirror\(h\), although none",
    ),
    "ankles lost in the dark": Fault(
        ankles_lost_in_the_dark,
        "gamma(2)",
        sides("ankle"),
        words=r"Left ankle and right ankle stray .*100 % .* under gamma\(2\), although none",
    ),
    "a wrist that shakes": Fault(
        a_wrist_that_shakes_when_turned,
        "rotation(3)",
        frozenset({"left_wrist"}),
        words=r"Left wrist strays .*54 % .* under rotation\(3\), although none",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_the_median_hides_is_named(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    rules = ("identity", "mirror(h)", "gamma(2)", "greyscale", "rotation(3)")
    run = run_of(fault.answer, tmp_path, rules=rules)
    table = run.straying_parts()
    assert frozenset(table["part"]) == fault.named
    assert set(table["rule"]) == {f"{fault.rule} => poses"}
    assert (table["p_corrected"] <= 0.05).all()
    assert_accused(run, fault.words)


def test_json_report_and_viewer_name_them_too(tmp_path: Path) -> None:
    module("vl_convert")
    run = run_of(ankles_reflected, tmp_path, cases=20)
    sentence = (
        "Left ankle and right ankle stray beyond the threshold in 100 % of the judged pairs under mirror(h), although "
        "none of these pairs violates the rule as a whole."
    )
    printed = json.loads(CliRunner().invoke(app, ["show", str(run.folder), "--json"]).stdout)["straying"]
    assert [(row["part"], row["whole"]) for row in printed] == [("left_ankle", 0.0), ("right_ankle", 0.0)]
    made = make_report([run], images=0)
    section = made.runs[0].parts[0].section
    assert sentence in [words.replace("\xa0", " ") for words in headline(section, section.start)]
    assert "What the whole hides" in page(made)
    assert not section.straying[0].height, "below the usual threshold nothing is named"
    site = application([run.folder], port=8000)
    for one in site.state.viewer.runs:
        one.look()
    text = unescape(TestClient(site, base_url="http://127.0.0.1:8000").get("/").text)
    assert sentence in text.replace("\xa0", " ")
