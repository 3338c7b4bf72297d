"""Rules by the family of their transformation, by the zone that they change, and by the suites they come from."""

from __future__ import annotations

from instar.analysis.families import OTHERS, family_name, rules_by_suite
from instar.suites import suite


def test_rules_in_zones_are_families_by_their_zone() -> None:
    """Thirty rules of met-pose change a zone; as one family called *filtered* they said nothing of where it fails."""
    names = {family_name(one) for one in suite("met-pose").rules if one.id.startswith("filtered(")}
    assert names >= {"zone skin", "zone clothes", "zone background"}
    assert not any("filtered" in name for name in names)


def test_suites_that_a_run_joins_stay_apart() -> None:
    rules = ["mirror(h) => poses", "rotation(5) => poses", "contrast(0.5) => poses"]
    sets = rules_by_suite(["met-pose/spatial + contrast(0.5)", "met-pose/sub"], rules, "poses")
    assert sets["met-pose/spatial"] == rules[:2], "a rule of two suites counts in both"
    assert sets["met-pose/sub"] == rules[:2]
    assert sets["contrast(0.5)"] == rules[2:]
    assert list(rules_by_suite(["mirror(h) + rotation(5)"], rules[:2], "poses")) == ["mirror(h) + rotation(5)"]
    assert list(rules_by_suite(["mirror(h) + rotation(5) + a + b"], rules[:2], "poses")) == [OTHERS]
