"""The test that `pytest --instar SYSTEM SUITE DATASET` collects; the plug-in makes one of it for each rule."""

from instar.pytest_plugin import RuleTest


def test_instar(instar_rule: RuleTest) -> None:
    """Its rule is all that is tested."""
