"""Changes after which another answer is right: by which relation they are judged, and that they have no limits."""

from __future__ import annotations

from pathlib import Path

import pytest

import instar
from instar.report.boundary_words import boundary_findings
from tests.perfect.walker import Stroller, dataset, predictor

CASES = 6


@pytest.mark.parametrize(
    ("rule", "relation", "right", "wrong"),
    [
        ("obstacle(tree, 0.5, 0.5)", "direction(avoid)", "social-force", "constant-velocity"),
        ("turn_past", "follows", "constant-velocity", None),
    ],
)
def test_a_rule_that_names_no_relation_asks_for_the_other_answer(
    tmp_path: Path, rule: str, relation: str, right: str, wrong: str | None
) -> None:
    for name in filter(None, (right, wrong)):
        run = instar.run(name, rule, dataset(CASES), out=tmp_path / name, workers=0)
        (row,) = run.rates().rows(named=True)
        assert row["rule"] == f"{instar.rule(rule).left} => {relation}"
        assert row["judged"] > 0
        assert row["violated"] == (0 if name == right else row["judged"])


@pytest.mark.parametrize("family", ["obstacle", "turn_past", "obstacle => direction(avoid)", "turn_past => follows"])
def test_it_has_no_limit_to_search(tmp_path: Path, family: str) -> None:
    with pytest.raises(ValueError, match=r"has no limit to search: .* instar run SYSTEM"):
        instar.boundary("social-force", family, dataset(CASES), out=tmp_path / "run", workers=0)
    assert not (tmp_path / "run").exists()


def test_where_no_case_has_a_limit_it_is_said_why(tmp_path: Path) -> None:
    search = instar.boundary(
        predictor(Stroller()), "rotation => hvc", dataset(3), out=tmp_path, workers=0, visual=False
    )
    words = [one.words for one in boundary_findings(search)]
    assert "rotation degrees above 0: no case has a limit (3 not judged)." in words
    reason = "3 pairs were not judged: this system gives no probability map, which the relation compares."
    assert words.count(reason) == 1
