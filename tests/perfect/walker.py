"""A trajectory predictor that is exactly right, as a test may say what right is; and scenes for it to walk in.

A person goes straight on with a heading error and a speed error. Ways over less walkable ground are less probable,
ways through obstacles impossible; whoever cannot go anywhere stays. All of it is decided in the person's own frame, so
that mirrored, turned and rescaled scenes have the mirrored, turned and rescaled answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from instar.case import Case
from instar.datasets import Dataset
from instar.outputs.forecast import Forecast
from instar.scene import Scene
from instar.systems import System
from instar.warp import Warp

Floats = npt.NDArray[np.float64]

NAMES = ("background", "pavement", "road", "structure", "terrain", "tree")
COST = {"background": 1.0, "pavement": 0.0, "terrain": 2.0, "road": 4.0, "structure": np.inf, "tree": np.inf}
HEADINGS = np.linspace(-0.9, 0.9, 37)
SPEEDS = np.linspace(0.7, 1.3, 5)
CELLS = 48
FUTURES = 20
STEPS = 12


@dataclass(frozen=True)
class Walker:
    """The predictor, and what may be wrong with it: each fault in one place of a right answer."""

    sees_the_map: bool = True
    stops_at_obstacles: bool = True
    spread_to_the_left: float = 1.0
    turns_portrait_wrongly: bool = False
    mirrors_map_only: bool = False
    shift: float = 0.0
    gives_map: bool = True

    def __call__(self, scene: Scene, seed: int) -> Forecast:
        width, height = scene.size
        if self.turns_portrait_wrongly and height > width:
            return self._turned(scene, seed)
        if self.mirrors_map_only and scene.past[-1, 0] < scene.past[0, 0]:
            scene = replace(scene, classes=scene.classes[:, ::-1])
        paths, weights = self.fan(scene)
        rng = np.random.default_rng(seed)
        futures = paths[rng.choice(len(paths), FUTURES, p=weights)]
        if not self.gives_map:
            return Forecast.from_array(futures)
        reach = 1.4 * float(np.linalg.norm(_velocity(scene))) * scene.steps + 1
        x, y = scene.position
        cells = _deposited((paths - scene.position) / reach, weights)
        box = (x - reach + self.shift, y - reach + self.shift, x + reach + self.shift, y + reach + self.shift)
        return Forecast.from_array(futures, cells, box=box)

    def fan(self, scene: Scene) -> tuple[Floats, Floats]:
        """Every way (F, T, 2), and how probable it is."""
        ahead = _velocity(scene)
        spread = self.spread_to_the_left if ahead[0] < 0 else 1.0
        heading, speed = (part.ravel() for part in np.meshgrid(HEADINGS, SPEEDS, indexing="ij"))
        heading, pace = heading * spread, 1 + (speed - 1) * spread
        across = np.array([-ahead[1], ahead[0]])
        step = pace[:, None] * (np.cos(heading)[:, None] * ahead + np.sin(heading)[:, None] * across)
        paths = scene.position + step[:, None] * np.arange(1, scene.steps + 1)[:, None]
        likely = -0.5 * ((heading / spread / 0.35) ** 2 + ((speed - 1) / 0.15) ** 2)
        if self.sees_the_map:
            likely = likely - self._cost(scene, step)
        if not np.isfinite(likely).any():
            return np.broadcast_to(scene.position, (1, scene.steps, 2)).copy(), np.ones(1)
        weights = np.exp(likely - likely.max())
        return paths, weights / weights.sum()

    def _cost(self, scene: Scene, step: Floats) -> Floats:
        """The mean cost of a way's ground, looked at often enough to miss no cell."""
        parts = int(np.ceil(np.linalg.norm(step, axis=1).max() * scene.steps / 0.4))
        way = np.linspace(0, scene.steps, parts + 1)[1:]
        places = scene.position + step[:, None] * way[:, None]
        column, row = np.floor(places[..., 0]).astype(int), np.floor(places[..., 1]).astype(int)
        width, height = scene.size
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        cost = np.array([COST.get(name, 1.0) for name in scene.names])[scene.classes]
        cost[_beside(np.isinf(cost))] = np.inf  # a way that grazes the corner of a wall is none
        ground = cost[row.clip(0, height - 1), column.clip(0, width - 1)]
        ground = np.where(inside, ground, 1.0)
        if not self.stops_at_obstacles:
            ground = np.where(np.isinf(ground), 1.0, ground)
        return np.asarray(ground.mean(1))

    def _turned(self, scene: Scene, seed: int) -> Forecast:
        """Works on maps that lie; turns what stands, and turns the answer once more instead of back."""
        lying = scene.warped(Warp.rotate90(scene.size, 1))
        answer = replace(self, turns_portrait_wrongly=False)(lying, seed)
        wrong = Warp.rotate90(lying.size, 1)
        return Forecast.accept(answer, lying).warped(wrong)


def _beside(cells: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The cells and their neighbours."""
    wide = np.pad(cells, 1)
    height, width = cells.shape
    return np.asarray(np.any([wide[y : y + height, x : x + width] for y in range(3) for x in range(3)], axis=0))


def _velocity(scene: Scene) -> Floats:
    return np.asarray((scene.past[-1] - scene.past[0]) / (len(scene.past) - 1))


def _deposited(places: Floats, weights: Floats) -> Floats:
    """Where the person will be at any of the steps: bilinear, on a grid from -1 to 1 about the person."""
    at = (places + 1) / 2 * CELLS - 0.5
    low = np.floor(at)
    part = at - low
    cells = np.zeros((CELLS, CELLS))
    each = np.broadcast_to(weights[:, None], places.shape[:2]) / places.shape[1]
    for right in (0, 1):
        for down in (0, 1):
            share = each * np.abs(1 - right - part[..., 0]) * np.abs(1 - down - part[..., 1])
            column, row = (low[..., 0] + right).astype(int), (low[..., 1] + down).astype(int)
            np.add.at(cells, (row, column), share)
    # sums in another order differ in their last digit, which must not decide how √p is rounded
    return np.round(cells, 12)


def scenes(count: int, *, seed: int = 0) -> Iterator[Scene]:
    """Maps of patches of every class, a person on open ground in the middle who walks to the right."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        height, width = 120, 160
        patches = rng.choice(6, (10, 14), p=[0.0, 0.26, 0.26, 0.1, 0.28, 0.1])
        classes = np.kron(patches, np.ones((12, 12), int))[:height, :width].astype(np.uint8)
        here = np.array([50.0, 60.0]) + rng.uniform(-6, 6, 2)
        heading, speed = rng.uniform(-0.4, 0.4), rng.uniform(2.0, 3.0)
        ahead = speed * np.array([np.cos(heading), np.sin(heading)])
        past = here - ahead * np.arange(7, -1, -1)[:, None]
        y, x = np.mgrid[:height, :width] + 0.5
        classes[np.hypot(x - here[0], y - here[1]) < 9] = 0
        yield Scene(classes, NAMES, past, STEPS)


def dataset(count: int, *, seed: int = 0) -> Dataset:
    """The scenes as cases in memory; what really happens is one of the ways."""

    def cases() -> Iterator[Case]:
        for number, scene in enumerate(scenes(count, seed=seed)):
            truth = Walker()(scene, 10_000 + number).futures[:1]
            yield Case(f"scene {number}", input=scene, truth=Forecast.from_array(truth))

    return Dataset("walks", "", cases, truth="forecast", inputs="scene")


def system(walker: Walker) -> System:
    def predict(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[Forecast]:
        return [walker(scene, seed) for scene, seed in zip(inputs, seeds, strict=True)]

    return System("walker", "forecast", predict, repr(walker), deterministic=False, takes="scene", batch=4)
