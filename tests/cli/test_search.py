"""`instar search` as a user types it, and what other commands make of its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instar.report.words import SPACE
from tests.cli.conftest import Type
from tests.quality.combined_faults import photos as paint

DARK = "tests.quality.combined_faults:dark_and_soft"
RULES = "mirror(h)+brightness(0, 0.75)+blur(1)+noise(4)"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint(tmp_path_factory.mktemp("search") / "photos", 8)


@pytest.fixture(scope="module")
def folder(pictures: Path, typed: Type) -> Path:
    out = pictures.parent / "search"
    ran = typed("search", DARK, RULES, pictures, "--out", out, "--budget", 120, "--visual", 0.5, "--workers", 0)
    assert ran.code == 0, ran.stderr
    return out


def test_it_prints_what_it_found_on_a_narrow_terminal(folder: Path, pictures: Path, typed: Type) -> None:
    again = typed(
        "search", DARK, RULES, pictures, "--out", folder, "--budget", 120, "--visual", 0.5, "--workers", 0, COLUMNS="80"
    )
    assert again.code == 0 and "Nothing is left to do" in again.words
    table = again.stdout[again.stdout.index("combination ") :].splitlines()[:2]
    assert all(len(line) <= 80 for line in table)
    assert table[1].startswith("brightness(0, 0.75) | blur(1)") and f"100{SPACE}% (51–100)" in table[1]
    assert "Smallest form: brightness(0, 0.777) | blur(" in again.words
    assert f"instar draw {folder} --rule 'brightness(0, 0.75) | blur(1)' --case " in again.words
    assert "what changes colours counts nothing" in again.words


def test_the_command_that_it_prints_draws_the_pair(folder: Path, typed: Type, tmp_path: Path) -> None:
    made = json.loads(typed("search", DARK, RULES, folder.parent / "photos", "--out", folder, "--budget", 120,
        "--visual", 0.5, "--workers", 0, "--json").stdout)  # fmt: skip
    worst = made["combinations"][0]
    assert worst["judged"] == 4 and made["used"] <= made["budget"] == 120
    drawn = typed("draw", folder, "--rule", worst["name"], "--case", worst["cases"][0], "--out", tmp_path / "pics")
    assert drawn.code == 0 and len(list((tmp_path / "pics").glob("*.png"))) == 1


def test_show_and_report_open_it(folder: Path, typed: Type, tmp_path: Path) -> None:
    shown = typed("show", folder)
    assert (
        "The worst one, brightness(0, 0.75) | blur(1), breaks 4 of 4 cases that the search did not see" in shown.words
    )
    assert "its rules break 4 of these only together." in shown.words
    assert "brightness(0, 0.75) | blur(1)" in shown.words and "0 of 8 cases violate at least one rule" in shown.words
    assert typed("report", folder, "--out", tmp_path / "report.html").code == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Combinations that break answers" in page and "Combinations in pictures" in page
    assert "instar search" in page


def test_it_says_why_cases_were_not_asked_and_predictions_not_used(pictures: Path, typed: Type, tmp_path: Path) -> None:
    """Nothing breaks a detector that sees every change, and the budget reaches two of the four cases."""
    ran = typed("search", "tests.toys:rectangles", "mirror(h)+gamma(0.7)", pictures, "--out", tmp_path / "run",
        "--budget", 25, "--workers", 0)  # fmt: skip
    assert ran.code == 0, ran.stderr
    assert "2 of 8 cases were searched with" in ran.words
    assert "on the 4 cases kept apart: these were not asked" in ran.words


def test_wrong_use_names_the_flags(pictures: Path, typed: Type, tmp_path: Path) -> None:
    small = typed("search", DARK, RULES, pictures, "--out", tmp_path / "run", "--budget", 10)
    assert small.code == 2 and "--budget" in small.stderr and "give 40 or more" in small.words
    many = typed("search", DARK, RULES, pictures, "--out", tmp_path / "run", "--most", 5)
    assert many.code == 2 and "--most" in many.stderr
