"""Our own suites are what the committed study says: the smallest that catch every seeded fault, and what is kept."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import instar
from studies.cover import alone, smallest
from studies.faulty import ELSEWHERE, KINDS, violated
from studies.suites import PAGE, RESULT, catching, chosen, given, naming, page, pool

STUDY: Mapping[str, Any] = json.loads(RESULT.read_text("utf-8"))
AGAIN = "run `python -m studies.suites` for this kind"
CELLS, FAULTS = 2, 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_suite_is_the_smallest_set_and_what_is_kept(kind: str) -> None:
    """Proven anew from the matrix: the suite can neither lose a rule nor exchange two for one."""
    rules = [one.id for one in instar.suite(kind).rules]
    assert set(STUDY[kind]["smallest"]) == set(rules), AGAIN
    anew = chosen(kind, STUDY[kind])
    assert {key: STUDY[kind][key] for key in anew} == anew, AGAIN
    assert instar.suite(kind).purposes.keys() == set(rules), "every rule says what it is for"


@pytest.mark.parametrize("kind", KINDS)
def test_without_any_one_rule_a_fault_is_missed(kind: str) -> None:
    row = STUDY[kind]
    caught = {name: naming(fault) for name, fault in row["faults"].items()}
    only = alone(caught, [one.id for one in instar.suite(kind).rules])
    assert [rule for rule in only if not only[rule] and rule not in given(instar.suite(kind))] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_is_in_the_matrix_and_told_by_something(kind: str) -> None:
    """A new fault that nothing catches fails here."""
    rows = STUDY[kind]["faults"]
    assert rows.keys() == KINDS[kind].faults().keys(), AGAIN
    assert [name for name, fault in rows.items() if not naming(fault) and not fault["channel"]] == []


def test_no_table_of_faults_is_left_out() -> None:
    studied = {(fault["table"], name) for row in STUDY.values() for name, fault in row["faults"].items()}
    names = {name for _, name in studied}
    for path in sorted((Path(__file__).parents[1] / "quality").glob("test_*.py")):
        if path.stem in ELSEWHERE:
            continue
        module = import_module(f"tests.quality.{path.stem}")
        for table in (value for key, value in vars(module).items() if key.endswith("FAULTS")):
            if isinstance(table, Mapping):
                assert set(table) <= names, f"{path.stem} has faults that studies/faulty.py does not run"


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_of_the_suite_accuses_a_flawless_system(kind: str) -> None:
    assert not STUDY[kind]["accusing the flawless"].keys() & {one.id for one in instar.suite(kind).rules}


@pytest.mark.parametrize("kind", KINDS)
def test_some_cells_are_as_the_matrix_says(kind: str, tmp_path: Path) -> None:
    """Faults and rules are drawn by a seed; what answers by chance, or is told by its landmarks, is left out."""
    dice, row, faults = random.Random(kind), STUDY[kind], KINDS[kind].faults()
    steady = [
        name
        for name, fault in row["faults"].items()
        if fault["caught"] and "chance" not in fault["about"] and faults[name].caught is violated
    ]
    candidates = pool(kind)
    for name in dice.sample(steady, FAULTS):
        caught = row["faults"][name]["caught"]
        others = [rule for rule in row["candidates"] if rule not in caught]
        drawn = {*dice.sample(caught, min(CELLS, len(caught))), *dice.sample(others, min(CELLS, len(others)))}
        sample = replace(candidates, rules=tuple(one for one in candidates.rules if one.id in drawn))
        assert catching(faults[name], sample) == drawn & set(caught), f"{name}: {AGAIN}"


def test_the_page_is_that_of_the_study() -> None:
    assert PAGE.read_text("utf-8") == page(STUDY), "run `python -m studies.suites --as-is`"


def test_the_smallest_set_is_smaller_than_a_greedy_one() -> None:
    """The rule that catches most is not in it: two others catch all."""
    by = {"a": "xz", "b": "xz", "c": "yz", "d": "yz", "e": "x", "f": "y"}
    caught = {name: frozenset(rules) for name, rules in by.items()}
    assert smallest(caught, dict.fromkeys("zxy", 1), (), ()) == ["x", "y"]
    assert smallest(caught, dict.fromkeys("zxy", 1), ("z",), ()) == ["z", "x", "y"]


def test_of_two_smallest_sets_the_cheaper_one_is_taken_then_that_of_today() -> None:
    either = {"a": frozenset({"draws => p", "once => p"})}
    assert smallest(either, {"draws => p": 3, "once => p": 1}, (), ("draws => p",)) == ["once => p"]
    assert smallest(either, {"draws => p": 1, "once => p": 1}, (), ("once => p",)) == ["once => p"]
    shared = {"a": frozenset({"draws => p"}), "b": frozenset({"draws => q", "once => q"})}
    costs = {"draws => p": 3, "draws => q": 3, "once => q": 1}
    assert smallest(shared, costs, (), ()) == ["draws => p", "draws => q"], "its answers are there already"
