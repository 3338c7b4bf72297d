"""Tests that pytest runs for `gemtest_relations.in_one_relation`: one relation, with all follow-ups of an image."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.ways.gemtest_relations import PATHS, estimate, kept, loader, timed_makers
from benchmarks.ways.rules import Pixels, Points

gemtest: Any = import_module("gemtest")
MAKERS = timed_makers()


def _followed(case: Any) -> tuple[Pixels, ...]:
    pixels = case.source_inputs[0]
    return tuple(maker(pixels) for maker in MAKERS.values())


def _same(case: Any) -> bool:
    source = case.source_outputs[0]
    return all(kept(rule, source, answer) for rule, answer in zip(MAKERS, case.followup_outputs, strict=True))


RELATION = gemtest.create_metamorphic_relation(
    name="all rules", data=PATHS, general_transform=_followed, general_relation=_same
)


@gemtest.system_under_test(RELATION, data_loader=loader())  # type: ignore[untyped-decorator]
def test_estimator(pixels: Pixels) -> Points:
    return estimate(pixels)
