"""The test that `pytest --instar SYSTEM SUITE DATASET` collects; the plug-in makes one of it for each rule."""


def test_instar() -> None:
    """Its rule is all that is tested."""
