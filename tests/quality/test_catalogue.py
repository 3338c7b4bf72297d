"""How many faults and flawless systems there are over all kinds of output, counted from the tables of all tests."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LEAST = {"FAULTS": 100, "FLAWLESS": 20}
FOLDERS = {"FAULTS": "quality", "FLAWLESS": "perfect"}


def entries(table: str) -> dict[str, list[str]]:
    """The names in the tables of one kind, by module. A module without such a table is passed over."""
    names: dict[str, list[str]] = {}
    for path in sorted((TESTS / FOLDERS[table]).glob("test_*.py")):
        if path.stem == Path(__file__).stem:
            continue
        rows = getattr(import_module(f"tests.{FOLDERS[table]}.{path.stem}"), table, None)
        if isinstance(rows, Mapping):
            names[path.stem] = [str(name) for name in rows]
        elif isinstance(rows, Sized):
            names[path.stem] = [f"{path.stem} {number}" for number in range(len(rows))]
    return names


@pytest.mark.parametrize("table", LEAST)
def test_there_are_enough_of_them(table: str) -> None:
    """One that several tables have, as one suite and another catch it, counts once."""
    counts = {module: len(names) for module, names in entries(table).items()}
    different = {name for names in entries(table).values() for name in names}
    assert len(different) >= LEAST[table], counts


NO_FAULT = {"in another order", "a crowd in another order", "hands always exchanged", "in another language"}
"""Rows of the tables of faults that nothing is, or can be, said against."""


NAMED_BY = ("words", "says", "caught", "rule")
"""The fields of a row that say by which sentence or which rule a finding must name the fault."""


def test_every_fault_is_named_by_a_finding() -> None:
    for path in sorted((TESTS / "quality").glob("test_*_faults.py")):
        rows = getattr(import_module(f"tests.quality.{path.stem}"), "FAULTS", {})
        fields = {name: [getattr(row, each) for each in NAMED_BY if hasattr(row, each)] for name, row in rows.items()}
        assert {name for name, values in fields.items() if values and not any(values)} <= NO_FAULT, path


@pytest.mark.parametrize("table", LEAST)
def test_every_one_says_what_it_is(table: str) -> None:
    assert all(len(name) > 3 for names in entries(table).values() for name in names)
