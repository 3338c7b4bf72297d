"""Predictors with one seeded fault each. Every one of them is right but for a line or two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from instar.outputs.forecast import Forecast
from instar.scene import Scene
from instar.warp import Warp
from tests.perfect.walker import Stroller, _velocity

Floats = npt.NDArray[np.float64]
Predictor = Callable[[Scene, int], Forecast]
RIGHT, BLIND = Stroller(), Stroller(sees_the_map=False, futures=20)


def _drawn(scene: Scene, seed: int, stroller: Stroller = BLIND, ahead: Floats | None = None) -> Floats:
    return stroller.drawn(scene, np.random.default_rng(seed), ahead)


def _turned(way: Floats, degrees: float) -> Floats:
    return np.asarray(Warp.rotation((1, 1), degrees, (0.0, 0.0)).points(way))


def biased(scene: Scene, seed: int) -> Forecast:
    return Forecast.from_array(_drawn(scene, seed, ahead=_turned(_velocity(scene), 3)))


def narrower(scene: Scene, seed: int) -> Forecast:
    leftwards = _velocity(scene)[0] < 0
    return Forecast.from_array(_drawn(scene, seed, replace(BLIND, heading=0.7 * BLIND.heading) if leftwards else BLIND))


def seed_ignored(scene: Scene, seed: int) -> Forecast:
    return RIGHT(scene, 7)


def identical(scene: Scene, seed: int) -> Forecast:
    return Forecast.from_array(np.repeat(_drawn(scene, seed, RIGHT)[:1], 10, 0))


def mean_only(scene: Scene, seed: int) -> Forecast:
    return Forecast.from_array(np.repeat(_drawn(scene, seed, RIGHT).mean(0, keepdims=True), 10, 0))


def transposed(scene: Scene, seed: int) -> Forecast:
    rows, columns = np.mgrid[: scene.size[1], : scene.size[0]]
    classes = scene.classes[columns.clip(0, scene.size[1] - 1), rows.clip(0, scene.size[0] - 1)]
    return RIGHT(replace(scene, classes=classes), seed)


def history_ignored(scene: Scene, seed: int) -> Forecast:
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi)
    pace = float(np.linalg.norm(_velocity(scene)))
    return Forecast.from_array(_drawn(scene, seed, ahead=pace * np.array([np.cos(angle), np.sin(angle)])))


def first_step_only(scene: Scene, seed: int) -> Forecast:
    """Takes the history from its wrong end: people walk back to where they came from."""
    return Forecast.from_array(_drawn(scene, seed, ahead=-_velocity(scene)))


def stands(scene: Scene, seed: int) -> Forecast:
    offsets = np.random.default_rng(seed).normal(0, 1, (10, scene.steps, 2)) * np.linalg.norm(_velocity(scene))
    return Forecast.from_array(scene.position + offsets)


def to_the_right(scene: Scene, seed: int) -> Forecast:
    return Forecast.from_array(_drawn(scene, seed, ahead=np.array([np.linalg.norm(_velocity(scene)), 0.0])))


def turn_not_mirrored(scene: Scene, seed: int) -> Forecast:
    """Expects everybody to bend to the left, as its training people did."""
    futures = _drawn(scene, seed)
    bend = np.linspace(0, 1, scene.steps)[:, None] ** 2 * 2 * _turned(_velocity(scene), 90)
    return Forecast.from_array(futures + bend)


def clipped(scene: Scene, seed: int) -> Forecast:
    ahead = _velocity(scene)
    return Forecast.from_array(_drawn(scene, seed, ahead=ahead * min(1.0, 2 / float(np.linalg.norm(ahead)))))


def in_pixels(scene: Scene, seed: int) -> Forecast:
    """Its errors are so many pixels, whatever a pixel is."""
    offsets = np.random.default_rng(seed).normal(0, 0.3, (20, 1, 2)) * np.arange(1, scene.steps + 1)[:, None]
    straight = scene.position + _velocity(scene) * np.arange(1, scene.steps + 1)[:, None]
    return Forecast.from_array(straight + offsets)


def always_straight(scene: Scene, seed: int) -> Forecast:
    return Forecast.from_array(_drawn(scene, seed, replace(BLIND, heading=0.0)))


def through_trees(scene: Scene, seed: int) -> Forecast:
    names = tuple("grass" if name == "tree" else name for name in scene.names)
    return RIGHT(replace(scene, names=names), seed)


def walls_forgotten_upright(scene: Scene, seed: int) -> Forecast:
    lies = scene.size[0] > scene.size[1]
    return Forecast.from_array(_drawn(scene, seed, RIGHT if lies else replace(RIGHT, sees_the_map=False)))


def not_numbers(scene: Scene, seed: int) -> Forecast:
    futures = _drawn(scene, seed)
    if _velocity(scene)[0] < 0:
        futures[3] = np.nan
    return Forecast.from_array(futures)


def on_a_grid(scene: Scene, seed: int) -> Forecast:
    return Forecast.from_array(np.round(_drawn(scene, seed) / 8) * 8)


def eight_ways(scene: Scene, seed: int) -> Forecast:
    ahead = _velocity(scene)
    angle = np.round(np.arctan2(ahead[1], ahead[0]) / (np.pi / 4)) * np.pi / 4
    snapped = np.linalg.norm(ahead) * np.array([np.cos(angle), np.sin(angle)])
    return Forecast.from_array(_drawn(scene, seed, ahead=snapped))


def to_the_middle(scene: Scene, seed: int) -> Forecast:
    pull = np.linspace(0, 0.2, scene.steps)[:, None]
    return Forecast.from_array(_drawn(scene, seed) * (1 - pull) + pull * np.array(scene.size) / 2)


def left_preferred(scene: Scene, seed: int) -> Forecast:
    """One future in five takes the next way to the left."""
    futures = _drawn(scene, seed)
    futures[:4] = _drawn(scene, seed, replace(BLIND, futures=4), ahead=_turned(_velocity(scene), 60))
    return Forecast.from_array(futures)


def to_the_border(scene: Scene, seed: int) -> Forecast:
    """One future in ten jumps to the nearest side of the frame."""
    futures, (width, height), (x, y) = _drawn(scene, seed), scene.size, scene.position
    sides = {x: (0.0, y), width - x: (float(width), y), y: (x, 0.0), height - y: (x, float(height))}
    futures[:2] = sides[min(sides)]
    return Forecast.from_array(futures)


def in_shares_of_the_frame(scene: Scene, seed: int) -> Forecast:
    """Works in shares of the frame, and gives its errors there: wide frames have wide errors."""
    offsets = np.random.default_rng(seed).normal(0, 0.004, (20, 1, 2)) * np.arange(1, scene.steps + 1)[:, None]
    straight = scene.position + _velocity(scene) * np.arange(1, scene.steps + 1)[:, None]
    return Forecast.from_array(straight + offsets * np.array(scene.size))
