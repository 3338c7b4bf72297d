"""A hundred random disturbances of runs: each run ends in exactly the undisturbed result, or is refused with a reason.

The long version is `python -m studies.ledger`, whose result is `studies/ledger.json`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from studies.ledger import DISTURBED, Ledger

ENTRIES, GROUPS = 100 // DISTURBED, 10
"""Groups are what runs side by side."""


@cache
def ledger() -> Ledger:
    return Ledger(seed=14)


@pytest.mark.parametrize("group", range(GROUPS))
def test_disturbed_runs_end_as_undisturbed_ones(group: int) -> None:
    lines = [ledger().entry(number) for number in range(group, ENTRIES, GROUPS)]
    assert not [line for line in lines if line.wrong]
    assert DISTURBED * ENTRIES == 100 and all(len(line.events) >= DISTURBED for line in lines), (
        "something happened to each"
    )


def test_nothing_is_wrong_in_the_long_version() -> None:
    study = json.loads((Path(__file__).parents[2] / "studies/ledger.json").read_text())
    assert study["entries"] >= 400 and study["wrong"] == []
