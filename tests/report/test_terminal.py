"""Tables in a terminal of any width: words are folded, numbers are never cut, and every table says its threshold."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from types import SimpleNamespace
from typing import cast

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.analysis import Run
from instar.engine import Outcome
from instar.report.console import PlainConsole, headed_table
from instar.report.tables import Table, show_tables
from instar.report.terminal import _families, _rates, _unjudged, show_outcome, show_selection, show_slices
from instar.report.words import SPACE, severity_text

Row = tuple[int, int, float, float, int, int, int]
NUMBER = st.one_of(
    st.sampled_from([0.0, 2e-07, 1.23e-05, 0.000123, 0.0999, 123456.0, 9.99e11, math.inf]), st.floats(0, 1e12)
)
COUNT = st.integers(0, 10_000_000)
ROW = st.tuples(COUNT, COUNT, NUMBER, NUMBER, COUNT, COUNT, COUNT)
RULES = (
    "resolution(0.2)",
    "filtered(colour_wheel(90), background)",
    "obstacle(size=0.5) | mirror(h) => direction(avoid)",
)


def printed(width: int) -> PlainConsole:
    return PlainConsole(file=io.StringIO(), width=width)


def text_of(console: PlainConsole) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@settings(max_examples=40, deadline=None)
@given(st.integers(60, 200), st.lists(ROW, min_size=1, max_size=3))
def test_no_number_of_the_rates_is_cut(width: int, rows: list[Row]) -> None:
    """A severity of 2e-07 took so much room that the column *n/a* fell off the terminal's edge."""
    heads = ("violated", "judged", "median", "worst", "nothing_found", "not_applicable", "failed")
    table = pl.DataFrame(
        [{"rule": rule, **dict(zip(heads, row, strict=True))} for rule, row in zip(RULES, rows, strict=False)]
    ).with_columns(rate=pl.lit(0.998), low=pl.lit(0.1), high=pl.lit(1.0), threshold=pl.lit(0.2))
    console = printed(width)
    named = {rule: (rule, "whatever is done to the image, in a few words") for rule in RULES}
    _rates(console, table, named, None, "violated from 0.2 up (body lengths)")
    shown = text_of(console)
    cells = set(shown.replace("\n", " ").split(" "))
    for violated, judged, median, worst, *counts in rows:
        severities = [severity_text(median, 0.2), severity_text(worst, 0.2)]
        wanted = [f"{violated}/{judged}", *severities, *(str(n) for n in counts if n)]
        assert not set(wanted) - cells, shown
    assert f">99{SPACE}%" in shown
    assert all(head in shown for head in ("violated", "rate", "median", "worst"))
    assert "violated from 0.2 up (body lengths)" in " ".join(shown.split())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_number_of_a_task_s_table_is_cut(width: int) -> None:
    heads = ["change", *(f"a long head {number}" for number in range(12))]
    console = printed(width)
    show_tables(console, [Table("A caption", heads, [["filtered(greyscale, skin)", *["100.0 (72–100)"] * 12]])])
    assert text_of(console).count("100.0 (72–100)") == 12


@pytest.mark.parametrize(
    "name", ["filtered(greyscale, skin)", "blur", "a rule whose name has many words " * 5, "x" * 70]
)
@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_table_too_wide_for_a_terminal_goes_on_below_its_first_column(width: int, name: str) -> None:
    heads = ["change", *(f"a long head {number}" for number in range(8))]
    figures = [f"{number + 10}.5 (72–100)" for number in range(8)]
    console = PlainConsole(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    show_tables(console, [Table("A caption", heads, [[name, *figures], ["noise", *figures]])])
    lines = text_of(console).splitlines()
    assert max(map(len, lines)) <= width
    for figure in figures:
        assert sum(figure in line for line in lines) == 2
    parts = sum(line.startswith("change") for line in lines)
    assert parts == sum(line.startswith("noise") for line in lines) == lines.count("")
    assert (parts == 1) == (width == 200)


@pytest.mark.parametrize("again", ["", "A"], ids=["left empty", "repeated"])
def test_what_goes_on_below_has_all_columns_that_tell_the_rows_apart(again: str) -> None:
    rows = [[way, case, *[f"{way[0]}{case} {number:08}" for number in range(9)]] for way in "AB" for case in "12"]
    rows[1][0] = again
    console = PlainConsole(file=io.StringIO(), width=60, force_terminal=True, color_system=None)
    show_tables(console, [Table("caption", ["way", "case", *"abcdefghi"], rows)])
    lines = [re.match(r"(.*?) +([AB][12]) 0000", line) for line in text_of(console).splitlines()]
    named = Counter((line[1].split()[-1], line[2], len(line[1].split())) for line in lines if line)
    assert named == {
        (figure[1], figure, 1 if figure == "A2" and not again else 2): 3 for figure in ("A1", "A2", "B1", "B2")
    }


def test_a_table_of_one_column_of_numbers_is_never_cut() -> None:
    console = PlainConsole(file=io.StringIO(), width=8, force_terminal=True, color_system=None)
    table = headed_table(["number"], words=())
    table.add_row("1234567890123")
    console.print(table)
    assert "1234567890123" in text_of(console)


def test_a_selection_that_has_not_found_the_share_yet_does_not_read_as_if_it_had() -> None:
    """`--share 0.95` read 95 % in a row that found 94.7 %, and another row came after it."""
    names = ["gamma(2)", "noise(8)"]
    run = SimpleNamespace(rules=lambda: pl.DataFrame({"rule": names, "name": names}), changing_rules=lambda: names)
    found = {"rule": names, "found": [36, 1], "total": [36, 37], "share": [36 / 38, 37 / 38], "cost": [0.1, 0.1]}
    console = printed(120)
    show_selection(console, cast(Run, run), pl.DataFrame(found), proven=True, share=0.95, limits="violated from 0.2 up")
    shown = text_of(console)
    assert f" 94.7{SPACE}%" in shown
    assert f" 97{SPACE}%" in shown


@pytest.mark.parametrize("width", [60, 80, 200])
def test_slices_with_long_names_keep_their_numbers(width: int) -> None:
    row = {
        "property": "an attribute with a very long name of its own",
        "kind": "is",
        "value": "and_a_value_without_any_space_at_all_that_is_longer_than_most",
        "failing": 123456,
        "cases": 7654321,
        "rate": 0.5,
        "low": 0.25,
        "high": 1.0,
        "elsewhere": 0.004,
        "effect": -0.25,
        "p_corrected": 0.0123,
    }
    console = printed(width)
    show_slices(console, pl.DataFrame([row]), limits="violated from 0.2 up (body lengths)")
    shown = text_of(console)
    for number in ("123456/7654321", f"50{SPACE}%", "25–100", f"<1{SPACE}%", "-0.25", "0.012"):
        assert number in shown
    assert "violated from 0.2 up (body lengths)" in " ".join(shown.split())
    assert "…" not in shown


def test_a_share_is_not_parted_from_its_sign() -> None:
    shares = {"judged": [9] * 3, "violated": [3, 0, 3], "rate": [1 / 3, 0, 1 / 3]}
    families = pl.DataFrame({"group": ["stretch", "zone skin", "any rule"], **shares})
    for width in range(12, 40):
        console = printed(width)
        _families(console, families, None)
        assert f"33{SPACE}%" in text_of(console) and f"0{SPACE}%" in text_of(console), width


def test_the_worst_pairs_fit_into_80_columns() -> None:
    """A row that the terminal breaks is no row."""
    heads = ("severity", "rule", "case", "target", "kind", "scores")
    table = headed_table(heads, words=heads[1:])
    row = ("1", "pad(0.2, sides=left_right)", "000000037666.jpg", "the whole image", "invented", "no match → 0.51")
    table.add_row(*row)
    console = printed(80)
    console.print(table)
    lines = text_of(console).splitlines()
    assert max(map(len, lines)) <= 80 and any(line.endswith("0.51") for line in map(str.rstrip, lines))


def test_words_are_folded_before_anything_else_gives_way() -> None:
    table = headed_table(("rule", "violated"), words=["rule"])
    table.add_row("a_name_without_spaces_that_is_much_longer_than_the_line", "12/34")
    console = printed(40)
    console.print(table)
    lines = text_of(console).splitlines()
    assert max(map(len, lines)) <= 40
    assert "12/34" in lines[1]
    assert "".join(line[:30].strip() for line in lines[1:]).startswith("a_name_without_spaces_that_is")


def test_only_predictions_that_were_made_can_fail() -> None:
    """Where the source failed, a rule about its objects makes no follow-up: of those that were asked, all failed."""
    console = printed(200)
    outcome = Outcome(5, 1.0, {"error": 2, "not applicable": 3}, 1, 0, False, (), {"ValueError: no hands": 2})
    show_outcome(console, outcome, "run")
    assert "2 of 2 predictions failed (100 %):" in text_of(console).replace(SPACE, " ")


def test_inputs_that_cannot_be_read_and_failures_of_the_system_are_told_apart() -> None:
    """One list of reasons left open which of them are the dataset's and which the system's."""
    console = printed(200)
    reasons, unread = {"ValueError: no hands": 3}, {"it is empty": 2, "it is damaged": 1}
    outcome = Outcome(7, 1.0, {"ok": 4, "error": 2, "timeout": 1}, 9, 3, False, (), reasons, unread)
    show_outcome(console, outcome, "run")
    lines = [line.replace(SPACE, " ") for line in text_of(console).splitlines()]
    assert lines[:5] == [
        "3 of 9 cases cannot be read:",
        "  2 times: it is empty",
        "  1 time: it is damaged",
        "3 of 7 predictions failed (43 %):",
        "  3 times: ValueError: no hands",
    ]
    assert "run: 9 cases, 3 of them unreadable; predictions: 4 ok, 2 errors, 1 timeout." in lines


def test_reasons_that_are_not_shown_are_counted() -> None:
    """Else the pairs of those that are do not add up, and nobody knows that there are more."""
    pairs = [9, 8, 7, 6, 5, 4, 3, 2]
    reasons = [f"reason {number}" for number in range(len(pairs))]
    table = pl.DataFrame({"status": "not applicable", "reason": reasons, "pairs": pairs, "rules": 1})
    whole, cut = printed(200), printed(200)
    _unjudged(whole, table.head(6))
    _unjudged(cut, table)
    assert text_of(cut) == f"{text_of(whole)}… and 5 more pairs for 2 other reasons: the report lists all.\n"


def test_slices_say_how_many_cases_a_question_takes() -> None:
    console = printed(300)
    show_slices(console, pl.DataFrame(), limits="violated from 0.2 up")
    assert "at least 5 cases that fail and 5 that do not" in text_of(console)


@pytest.mark.parametrize("width", [60, 80, 130])
def test_a_word_is_cut_only_where_that_keeps_lines_short(width: int) -> None:
    """`underexposur` and `e` below it, in a table that had room, or that was too wide for it all the same."""
    heads = ("severity", "rule", "case", "target", "kind", "of", "judged", "failed cases", "many more")
    table = headed_table(heads, words=("rule", "case", "target", "kind"))
    words = ("underexposure(0.3)", "000000000790.jpg", "potted plant, 3rd", "class_change, decrease")
    table.add_row("0.5", *words, "12", "34", "5", "6")
    table.add_row("0.5", "background_noise(0.5) | rotation(5)", "000000000791.jpg", "person 1", "lost", *"1234")
    console = printed(width)
    console.print(table)
    for word in ("underexposure(0.3)", "background_noise(0.5)", "000000000790.jpg", "class_change,", "decrease"):
        assert word in text_of(console)
