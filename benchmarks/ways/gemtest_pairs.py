"""Tests that pytest runs for `gemtest_relations.as_in_its_examples`: a relation for every rule."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.ways.gemtest_relations import PATHS, estimate, kept, loader, timed_makers
from benchmarks.ways.rules import Pixels, Points

gemtest: Any = import_module("gemtest")


def _relation(rule: str, maker: Any) -> Any:
    def followed(pixels: Pixels) -> Any:
        return maker(pixels)

    def same(source: Points, follow_up: Points) -> bool:
        return kept(rule, source, follow_up)

    return gemtest.create_metamorphic_relation(name=rule, data=PATHS, transform=followed, relation=same)


RELATIONS = [_relation(rule, maker) for rule, maker in timed_makers().items()]


@gemtest.system_under_test(*RELATIONS, data_loader=loader())  # type: ignore[untyped-decorator]
def test_estimator(pixels: Pixels) -> Points:
    return estimate(pixels)
