"""Tables that leave the house: a spreadsheet that opens one computes nothing."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from instar.report.tables import write_csv

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
