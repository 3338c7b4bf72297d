"""What a dataset holds, for tests to look at."""

from __future__ import annotations

from typing import Any

from instar.case import Case
from instar.datasets import Dataset
from instar.outputs.poses import Poses


def by_id(found: Dataset) -> dict[str, Case]:
    return {case.id: case for case in found.cases()}


def hand_points(case: Case) -> Any:
    assert isinstance(case.truth, Poses)
    assert case.truth.skeleton.name == "hand-21"
    return case.truth.points
