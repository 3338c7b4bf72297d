"""What is said of predictors on scenes in which people slow down or stand still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from instar import Scene
from instar.systems.check import Finding, check_system
from instar.systems.check.scenes import SCENES, SIDE
from instar.systems.system import System
from tests.systems.test_check_table import ahead, walker


def finding_of(system: System, scenes: Sequence[Scene], name: str) -> Finding:
    findings, _ = check_system(system, [(str(number), scene) for number, scene in enumerate(scenes)])
    return next(one for one in findings if one.name == name)


def slower(scene: Scene) -> Scene:
    """Who came the same way with ever shorter steps, on a map whose pixels are nearly metres."""
    steps = np.diff(scene.past, axis=0) * np.linspace(1.4, 0.6, len(scene.past) - 1)[:, None]
    past = scene.position - np.concatenate([np.zeros((1, 2)), steps[::-1].cumsum(0)])[::-1]
    return replace(scene, past=past, metres_per_pixel=0.7)


def test_displacements_of_who_slows_down_are_not_taken_for_metres() -> None:
    moved = walker(lambda scene, rng: ahead(scene, rng) - scene.position)
    finding = finding_of(moved, [slower(scene) for _, scene in SCENES], "coordinates")
    assert finding.code == "coordinates.displacements", finding


def straight(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """Straight on, at twenty paces, which are one for who stands still; at few of them on a wide map."""
    paces = rng.normal(1, 0.1, (20, 1, 1)).round(1 if scene.size[0] > SIDE else 6)
    steps = np.arange(1, scene.steps + 1)[:, None]
    return np.asarray(scene.position + steps * (scene.position - scene.past[-2]) * paces)


def test_futures_are_counted_of_who_walks() -> None:
    """One person who stood still among forty spoke for all of them."""
    first, second, wide = (scene for _, scene in SCENES)
    still = replace(first, past=np.repeat(first.past[-1:], len(first.past), axis=0))
    system = walker(straight)
    same = finding_of(system, [first, still, second], "samples").figures
    assert (same["different"], same["fewer"]) == (20, 0)
    fewer = finding_of(system, [first, second, wide], "samples")
    assert fewer.code == "samples.ok"
    assert (fewer.figures["different"], fewer.figures["fewer"]) == (20, 1) and fewer.figures["least"] < 10, fewer
    assert finding_of(system, [still], "samples").state == "skipped"
