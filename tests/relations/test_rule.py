"""Rules with their relation filled in, and the levels of a rule over many cases."""

from __future__ import annotations

import pytest

import instar
from instar.engine import bound_rules
from instar.relations import BoundRule, levels_of


def test_a_rule_without_a_relation_takes_the_output_kinds_own() -> None:
    bare = instar.rule("mirror(h)")
    assert bare.relation is None
    bound = bare.for_output("poses")
    assert isinstance(bound, BoundRule)
    assert (bound.id, bound.relation.relation.name) == ("mirror(h) => poses", "poses")
    assert bare.for_output("detections").id == "mirror(h) => detections"


def test_a_rule_that_names_its_relation_keeps_it() -> None:
    named = instar.rule("mirror(h) => poses(handedness=kept)")
    assert named.for_output("poses").id == named.id
    assert named.for_output("poses") == named, "rules are equal by their ids"


def test_a_rule_takes_the_relation_that_its_transformation_has() -> None:
    assert instar.rule("turn_past").id == "turn_past => follows"
    assert instar.rule("obstacle(size=0.5) | rotate90(1)").id == "obstacle(size=0.5) | rotate90(1) => direction(avoid)"
    assert instar.rule("obstacle => wvc").id == "obstacle => wvc"
    with pytest.raises(ValueError, match=r"obstacle means => direction\(avoid\) and turn_past means => follows: write"):
        instar.rule("obstacle | turn_past")


def test_a_kind_without_an_equivariance_of_its_own_must_name_its_relation() -> None:
    with pytest.raises(ValueError, match="write the rule as transformation => relation"):
        instar.rule("mirror(h)").for_output("zones")


def test_the_levels_of_a_rule_over_many_cases_are_rules_of_the_relation_that_has_the_measure() -> None:
    severities = instar.rule("discs(n=1..3) => correlation")
    assert [level.id for level in levels_of(severities, "poses")] == [f"discs({n}) => poses" for n in (1, 2, 3)]
    f1 = instar.rule("discs(n=1..2) => correlation(f1)")
    assert [level.id for level in levels_of(f1, "poses")] == ["discs(1) => accuracy", "discs(2) => accuracy"]
    assert [one.id for one in bound_rules([f1], "poses")] == [*(one.id for one in levels_of(f1, "poses")), f1.id]
