"""Deterministic predictors that take a seed: rightly the same answer for every seed is no seed that is ignored."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from rich.console import Console

import instar
from instar.outputs.forecast import Forecast
from instar.report import show_run
from instar.scene import Scene
from instar.systems.check import check_system
from tests.perfect.calibration import accused
from tests.perfect.walker import Stroller, predictor, strolls

_SURE = Stroller(heading=0, speed=0, futures=1)


def straight_on(scene: Scene, seed: int) -> Forecast:
    """One future, whatever the seed."""
    return _SURE(scene, seed)


def fixed_modes(scene: Scene, seed: int) -> Forecast:
    """The same five ways each time, one for each mode."""
    return Stroller(futures=5)(scene, 0)


FLAWLESS: Mapping[str, tuple[Callable[[Scene, int], Forecast], bool, str]] = {
    "one future": (straight_on, False, "It is taken to be deterministic"),
    "one future, and it says so": (straight_on, True, ""),
    "fixed modes, and it says so": (fixed_modes, True, ""),
}
"""The predictor, whether it is declared deterministic, and what is said of it in a note."""


@pytest.mark.parametrize("name", FLAWLESS)
def test_a_deterministic_predictor_does_not_ignore_its_seed(name: str, tmp_path: Path) -> None:
    function, declared, words = FLAWLESS[name]
    suite = instar.suite("identity => wvc + identity => varies + mirror(h) => wvc")
    system = predictor(function, name, deterministic=declared)
    run = instar.run(system, suite, strolls(3), out=tmp_path / "run", workers=0)
    assert not accused(run, share=0)
    printed = io.StringIO()
    show_run(Console(file=printed, width=400), run)
    assert "seed is ignored" not in printed.getvalue()
    assert words in printed.getvalue()
    findings, _ = check_system(system, [])
    assert {finding.state for finding in findings if finding.name == "determinism"} == {"ok"}


def test_several_futures_that_never_change_are_an_ignored_seed() -> None:
    findings, _ = check_system(predictor(fixed_modes), [])
    (determinism,) = [finding for finding in findings if finding.name == "determinism"]
    assert determinism.state == "warning" and determinism.code == "determinism.seed_ignored"
