"""Everything that may happen to a run, once: nothing committed is lost or predicted again, each pair ends as one row.

The long version is `python -m studies.ledger`, whose result is `studies/ledger.json`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from studies.ledger.calls import Line, account
from studies.ledger.faults import FAULTS
from studies.ledger.study import Ledger

ENTRIES = 2
"""Entries are what runs side by side."""


@cache
def ledger() -> Ledger:
    kinds = sum(not fault.real for fault in FAULTS.values())
    return Ledger(seed=13, faults=-(-kinds // ENTRIES), processes=0)


@pytest.mark.parametrize("number", range(ENTRIES))
def test_a_disturbed_run_ends_as_an_undisturbed_one_and_asks_for_nothing_twice(number: int) -> None:
    outcome = ledger().entry(number)
    assert not outcome.wrong, "\n".join((*outcome.events, *outcome.wrong))
    happened = {fault for fault, _, _ in outcome.ends}
    dealt = ledger().deck()[number * ledger().faults : (number + 1) * ledger().faults]
    assert happened >= set(dealt), "every kind of fault comes in one of the entries"
    assert set(ledger().kinds()) <= set(ledger().deck()[: ENTRIES * ledger().faults])


def test_the_ledger_sees_what_must_not_be() -> None:
    """A proof that nothing could refute would prove nothing."""
    key, row = ("a.png", "source", 0, 0), ("a.png", "source", "0", "0")
    asked, stored = Line(1, "asked", ("content", "")), Line(1, "stored", (*row, "ok"))
    forgotten = Line(2, "forgotten", row)

    def wrong(*lines: Line) -> list[str]:
        return account(lines, {"content": key}).wrong

    assert not wrong(asked, stored)
    assert not wrong(asked, asked, stored), "what is not committed may be asked again"
    assert not wrong(asked, stored, forgotten, Line(2, "asked", ("content", "")), Line(2, "stored", (*row, "ok")))
    assert not wrong(asked, Line(2, "stored", (*row, "ok")), asked), "a process of an earlier life may live a moment on"
    second = Line(1, "stored", ("a.png", "source", "0", "1", "ok"))
    assert not wrong(asked, stored, asked, second), "a violating pair is asked about again, once"
    assert "after second predictions" in wrong(asked, stored, asked, Line(1, "forgotten", row), asked)[0]
    assert "predicted again in 2" in wrong(asked, stored, asked, second, Line(2, "asked", ("content", "")))[0]
    assert "predicted again in 1" in wrong(asked, stored, asked, second, asked)[0], "in the same life, too"
    assert "an input that nobody made" in wrong(Line(1, "asked", ("another", "")))[0]
    assert "the status ok, and the system did []" in wrong(stored)[0], "a row without a call"
    assert "the status error" in wrong(asked, Line(1, "stored", (*row, "error")))[0]
    hung, timeout = Line(1, "asked", ("content", "hangs")), Line(1, "stored", (*row, "timeout"))
    assert "after 1 deaths" in wrong(hung, timeout)[0]
    assert not wrong(hung, hung, timeout)


def test_nothing_is_wrong_in_the_long_version() -> None:
    results = json.loads((Path(__file__).parents[2] / "studies/ledger.json").read_text())
    here = results["On one machine"]
    assert here["lives"] >= 60 and len(here["seeds"]) >= 3 and set(FAULTS) <= set(here["faults"])
    assert all(result["wrong"] == [] for result in results.values())
    nodes = results["On a Ray cluster"]["processes killed"]
    assert nodes["Node"] >= 4
