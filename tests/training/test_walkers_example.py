"""The walkers that come with the repository are there, and can be walked on."""

from __future__ import annotations

from pathlib import Path

import instar
from instar.case import read_input
from instar.scene import Scene

WALKERS = Path(__file__).parents[2] / "examples" / "walkers" / "walkers.csv"


def test_walkers_of_the_demo() -> None:
    data = instar.dataset(WALKERS)
    cases = list(data.cases())
    assert len(cases) == 30 and data.notes == ()
    for case in cases:
        scene, _ = read_input(case)
        assert isinstance(scene, Scene)
        assert scene.past.shape == (8, 2) and scene.steps == 12
        assert "pavement" in scene.names and len(set(scene.classes.ravel().tolist())) > 1
