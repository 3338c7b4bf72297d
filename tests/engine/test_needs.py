"""Who provides what a transformation needs, told by what kinds of output declare."""

from __future__ import annotations

import numpy as np
import pytest

import instar
from instar.api import providers_of
from instar.case import Case
from instar.engine import provider
from instar.engine.needs import stored_provider, with_source
from instar.outputs.poses import Poses
from instar.registry import NotLoaded

HAND = Poses.from_array(np.zeros((1, 21, 2)), skeleton="hand-21")


def test_a_provider_answers_with_a_kind_that_meets_the_need() -> None:
    assert provider("zones", "tests.engine.zones:painted").name == "tests.engine.zones:painted"
    assert provider("zones", "masks").fingerprint == "dataset-masks"
    with pytest.raises(
        ValueError, match="answers with zones; who provides objects is a system that answers with detections"
    ):
        provider("objects", "tests.engine.zones:painted")
    with pytest.raises(ValueError, match="nobody can provide truth"):
        provider("truth", "tests.engine.zones:painted")


@pytest.mark.parametrize(
    ("kind", "truth", "stands_in"), [("poses", None, True), ("poses", HAND, False), ("detections", None, False)]
)
def test_the_source_stands_in_for_what_is_not_annotated(kind: str, truth: Poses | None, stands_in: bool) -> None:
    needs = frozenset({"landmarks"})
    assert ("source" in with_source(needs, Case("a", path="a.png", truth=truth), kind)) is stands_in


@pytest.mark.parametrize(
    "name",
    ['process("touch x")', 'http("service.toml")', 'onnx-classifier("weights.onnx")', "my.module:zones", "no-such"],
)
def test_a_file_starts_no_provider(name: str) -> None:
    """Whoever continues a run names again what has to be started, loaded or sent the images."""
    with pytest.raises(NotLoaded, match=r"zones came from .*; name it again as `zones`, or give `trust`"):
        stored_provider("zones", name)
    assert stored_provider("zones", "selfie-multiclass") == "selfie-multiclass", "it comes with Instar"
    assert stored_provider("zones", "boxes") == "boxes" and stored_provider("pool", "cut/out") == "cut/out"


def test_a_relation_about_the_systems_own_objects_takes_no_detector() -> None:
    suite = instar.suite("object-relevance")
    with pytest.raises(
        ValueError, match=r"presence is about annotated objects or what the system itself .*leave out `objects`"
    ):
        providers_of(suite, {}, objects="efficientdet-lite0")
    assert "objects" not in providers_of(suite, {}, objects="none", zones="none")
