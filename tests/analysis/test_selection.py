"""The cheapest set of rules that finds the failing cases, against trying all sets."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import instar
from instar.analysis import costs, selected
from instar.cli import main
from tests.perfect.walker import Walker, dataset, system


def verdicts(hit: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """A verdict of severity 1 for every case (column) that a rule (row) finds, 0 for the others."""
    rules, cases = hit.shape
    return pl.DataFrame(
        {
            "case": [f"c{c}" for _ in range(rules) for c in range(cases)],
            "rule": [f"r{r}" for r in range(rules) for _ in range(cases)],
            "severity": hit.ravel().astype(float),
        }
    )


def asked(
    hit: npt.NDArray[np.bool_], needs: list[list[str]], price: dict[str, float], share: float = 1.0
) -> tuple[pl.DataFrame, bool]:
    names = [f"r{r}" for r in range(len(hit))]
    return selected(verdicts(hit), dict.fromkeys(names, 0.5), dict(zip(names, needs, strict=True)), price, share=share)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    rules=st.integers(1, 6),
    cases=st.integers(1, 8),
    share=st.sampled_from([0.5, 0.9, 1.0]),
)
def test_no_set_is_cheaper(seed: int, rules: int, cases: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    hit = rng.random((rules, cases)) < 0.35
    needs = [[f"f{n}" for n in sorted(set(rng.integers(0, 4, 2)))] for _ in range(rules)]
    price = {f"f{n}": float(rng.integers(1, 9)) for n in range(4)}
    table, proven = asked(hit, needs, price, share)
    assert proven
    failing = int(hit.any(0).sum())
    if not failing:
        assert table.is_empty()
        return
    enough = [
        ways
        for size in range(rules + 1)
        for ways in combinations(range(rules), size)
        if hit[list(ways)].any(0).sum() >= share * failing - 1e-9
    ]
    prices = [sum(price[name] for name in {name for r in ways for name in needs[r]}) for ways in enough]
    assert table["cost"].sum() == pytest.approx(min(prices))
    chosen = [int(name[1:]) for name in table["rule"]]
    assert int(table["total"][-1]) == hit[chosen].any(0).sum() >= share * failing - 1e-9
    fewest = min(len(ways) for ways, paid in zip(enough, prices, strict=True) if paid == pytest.approx(min(prices)))
    assert len(chosen) == fewest


def test_the_order_is_that_of_new_cases_for_their_cost() -> None:
    hit = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1]], bool)
    table, _ = asked(hit, [["a"], ["b"], ["c"]], {"a": 1.0, "b": 1.0, "c": 0.1})
    assert table.select("rule", "found", "total").rows() == [("r2", 1, 1), ("r0", 3, 4), ("r1", 2, 6)]
    assert table["share"].to_list() == pytest.approx([1 / 6, 4 / 6, 1])


def test_rules_that_share_a_follow_up_pay_it_once() -> None:
    hit = np.array([[1, 0], [0, 1], [1, 1]], bool)
    table, _ = asked(hit, [["a"], ["a"], ["b"]], {"a": 1.0, "b": 1.5})
    assert set(table["rule"]) == {"r0", "r1"}
    assert sorted(table["cost"]) == [0.0, 1.0]


def test_nothing_to_find_and_nothing_asked() -> None:
    table, proven = asked(np.zeros((2, 3), bool), [["a"], ["b"]], {})
    assert table.is_empty() and proven
    with pytest.raises(ValueError, match="share is above 0"):
        asked(np.ones((1, 1), bool), [["a"]], {}, share=0.0)


def test_a_run_selects_its_own_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = instar.run(
        system(Walker(turns_portrait_wrongly=True)), "trajtest/geometry", dataset(4), out=tmp_path / "run", workers=0
    )
    spent = costs(run.store)
    assert set(spent) == {t.id for rule in instar.suite("trajtest/geometry").rules for t in rule.transformations}
    assert all(seconds > 0 for seconds in spent.values())
    table, proven = run.select()
    assert proven
    assert len(table) == 1 and table["rule"][0].startswith(("rotate90(1)", "rotate90(3)"))
    assert table["share"][0] == 1
    monkeypatch.setattr(sys, "argv", ["instar", "select", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "1 of 14 rules is the cheapest set that finds 100 % of the failing cases" in " ".join(
        capsys.readouterr().out.split()
    )
