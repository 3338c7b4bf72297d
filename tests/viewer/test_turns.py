"""The gallery's order: worst first, without one rule, one case or ∞ before everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from instar.store import Store
from instar.viewer.index import build
from instar.viewer.query import Filters, matches
from instar.viewer.turns import TURNS, in_turn


def ordered(severity: np.ndarray, families: list[str] | None = None) -> list[tuple[int, int]]:
    """The (rule, case) of a matrix of severities, in turn; what is 0 is left out."""
    rules = len(severity)
    rule, case = (each.ravel().astype(np.int32) for each in np.indices(severity.shape))
    flat = severity.ravel()
    order = np.argsort(-flat, kind="stable")
    taken = in_turn(order[flat[order] > 0], case, rule, flat, families or [str(n) for n in range(rules)])
    assert len(set(taken.tolist())) == len(taken) == (flat > 0).sum()
    return [(int(rule[place]), int(case[place])) for place in taken]


def test_a_rule_that_loses_everything_does_not_fill_the_first_page() -> None:
    severity = np.full((5, 40), 0.0)
    severity[0] = np.inf
    severity[1:, 0] = [3.0, 2.0, 5.0, 4.0]
    first = ordered(severity)[:8]
    assert {rule for rule, _ in first} == {0, 1, 2, 3, 4}
    assert [rule for rule, _ in first[:2]] == [0, 3]  # ∞, then the worst that is finite


def test_infinite_and_finite_severities_alternate() -> None:
    rng = np.random.default_rng(0)
    severity = rng.uniform(1, 2, (6, 30))
    severity[:, :20] = np.inf
    first = ordered(severity)[:12]
    assert [bool(np.isinf(severity[pair])) for pair in first] == [True, False] * 6


def test_a_case_that_is_worst_under_every_rule_is_not_the_only_one_shown() -> None:
    severity = np.full((10, 20), 3.0)
    severity[:, 7] = 4.0
    first = ordered(severity)[:10]
    assert sorted(rule for rule, _ in first) == list(range(10))
    assert len({case for _, case in first}) == 10 and first[0][1] == 7


def test_the_only_violation_of_a_rule_comes_in_the_first_turn_whichever_case_it_is() -> None:
    severity = np.zeros((4, 9))
    severity[:3] = 2.0
    severity[3, 0], severity[:3, 0] = 1.1, 9.0
    assert (3, 0) in ordered(severity)[:4]


def test_the_worst_of_each_family_comes_before_a_second_rule_of_one() -> None:
    severity = np.array([[9.0], [8.0], [7.0], [2.0]])
    assert [rule for rule, _ in ordered(severity, ["motion", "motion", "motion", "grey"])] == [0, 3, 1, 2]


def test_what_follows_the_head_of_each_rule_comes_by_severity() -> None:
    severity = np.random.default_rng(1).uniform(1, 1.99, (2, TURNS + 50))
    rest = [severity[pair] for pair in ordered(severity)[2 * TURNS :]]
    assert len(rest) == 100 and rest == sorted(rest, reverse=True)


@pytest.mark.parametrize("status", ["violated", "all"])
def test_the_gallery_begins_with_a_pair_of_every_violated_rule(base: Path, status: str) -> None:
    index = build(Store(base / "poses"))
    chosen = matches(index, Filters(status=status))
    hit = matches(index, Filters())
    rules = set(hit.pairs.rule[hit.order].tolist())
    first = chosen.order[: 2 * len(rules)]
    assert set(chosen.pairs.rule[first].tolist()) == rules
    assert (chosen.order[: len(hit)] == hit.order).all()  # what is not violated comes after all that is
    plain = matches(index, Filters(status=status, sort="severity"))
    assert sorted(plain.order.tolist()) == sorted(chosen.order.tolist())
