"""Tables that leave the house: a spreadsheet that opens one computes nothing."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from instar.report.tables import Table, write_csv

FORMULAS = ['=HYPERLINK("http://evil")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1"]
NUMBERS = ["-5", "+0.25", "-1e-3", "-.5"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(tmp_path: Path, text: str) -> None:
    """Cases are called what their files are called, and captions are what anybody says."""
    path = write_csv(tmp_path / "table.csv", [text, "n"], [{text: text, "n": -3}])
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.reader(file)) == [[f"'{text}", "n"], [f"'{text}", "-3"]]


def test_numbers_stay_numbers_and_other_texts_stay_as_they_are(tmp_path: Path) -> None:
    texts = [*NUMBERS, "a = b", "don't", ""]
    path = write_csv(tmp_path / "table.csv", ["text", "number"], [{"text": text, "number": -0.5} for text in texts])
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert [row[0] for row in csv.reader(file)][1:] == texts
    assert "-0.5" in path.read_text("utf-8-sig")


def test_names_that_begin_with_digits_are_no_numbers() -> None:
    """Files of COCO stood at the right, and on a phone over the column beside them."""
    numbers = ["27/30", "0 % (0–28)", "1,492", "−9 to −40.5", "0.531, −20.5", "2.64 (2.64–2.64)", "1e-05", "<1 %", "∞"]
    names = ["000000069468.jpg", "12/im.png", "3d-scan", "campus-1/2@0", "7@0"]
    for cell, number in [(cell, True) for cell in numbers] + [(cell, False) for cell in names]:
        assert Table("", ["way", "level"], [["blur", cell]]).numbers[1] is number, cell
    assert not Table("", ["way", "case"], [["blur", "0017"]]).numbers[1], "a case, whatever it is called"
