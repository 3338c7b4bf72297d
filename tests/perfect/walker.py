"""A trajectory predictor that is exactly right, as a test may say what right is; and scenes for it to walk in.

A person goes straight on with a heading error and a speed error. Ways over less walkable ground are less probable,
ways through obstacles impossible; whoever cannot go anywhere stays. All of it is decided in the person's own frame, so
that mirrored, turned and rescaled scenes have the mirrored, turned and rescaled answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    mixes_up_ground: bool = False

    def __call__(self, scene: Scene, seed: int) -> Forecast:
        width, height = scene.size
        if self.turns_portrait_wrongly and height > width:
            return self._turned(scene, seed)
        if self.mirrors_map_only and scene.past[-1, 0] < scene.past[0, 0]:
            scene = replace(scene, classes=scene.classes[:, ::-1])
        paths, weights = _remembered(self, scene)
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
        """The mean cost of a way's ground, looked at in its middle and on both sides: a way that grazes is none."""
        way = np.linspace(0, scene.steps, 8 * scene.steps + 1)[1:]
        places = scene.position + step[:, None] * way[:, None]
        ahead = _velocity(scene)
        across = np.array([-ahead[1], ahead[0]])
        sides = 0.5 * np.array([[0.0, 0], ahead, -ahead, across, -across])
        cost = {**COST, "road": COST["pavement"], "pavement": COST["road"]} if self.mixes_up_ground else COST
        names = [cost.get(name, 1.0) for name in scene.names]
        ground = np.array([*names, 1.0])[_classes(scene, places[..., None, :] + sides)]
        ground = np.where(np.isinf(ground).any(-1), np.inf, ground[..., 0])
        if not self.stops_at_obstacles:
            ground = np.where(np.isinf(ground), 1.0, ground)
        return np.asarray(ground.mean(1))

    def _turned(self, scene: Scene, seed: int) -> Forecast:
        """Works on maps that lie; turns what stands, and turns the answer once more instead of back."""
        lying = scene.warped(Warp.rotate90(scene.size, 1))
        answer = replace(self, turns_portrait_wrongly=False)(lying, seed)
        wrong = Warp.rotate90(lying.size, 1)
        return Forecast.accept(answer, lying).warped(wrong)


_FANS: dict[tuple[Walker, str], tuple[Floats, Floats]] = {}


def _remembered(walker: Walker, scene: Scene) -> tuple[Floats, Floats]:
    """The fan of a scene, which depends neither on the seed nor on where its map is put: worked out once."""
    alike = replace(walker, turns_portrait_wrongly=False, mirrors_map_only=False, shift=0.0, gives_map=True)
    key = (alike, scene.content_hash())
    if key not in _FANS:
        if len(_FANS) > 500:
            _FANS.clear()
        _FANS[key] = walker.fan(scene)
    return _FANS[key]


def _classes(scene: Scene, places: Floats) -> npt.NDArray[np.int64]:
    """The class at places (…, 2); beyond the frame one more than there are."""
    column, row = np.floor(places[..., 0]).astype(int), np.floor(places[..., 1]).astype(int)
    width, height = scene.size
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    return np.where(inside, scene.classes[row.clip(0, height - 1), column.clip(0, width - 1)], len(scene.names))


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


def blocks(count: int, *, seed: int = 0) -> Iterator[Scene]:
    """Maps of pavement with a few large buildings and round trees; people in every place who walk every way."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:130, :180] + 0.5
    for _ in range(count):
        classes = np.full((130, 180), 1, np.uint8)
        classes[int(rng.uniform(10, 110)) :][:14] = 2
        for _ in range(3):
            left, top = rng.uniform(0, 150), rng.uniform(0, 100)
            classes[(x > left) & (x < left + 22) & (y > top) & (y < top + 18)] = 3
            centre = rng.uniform([0, 0], [180, 130])
            classes[np.hypot(x - centre[0], y - centre[1]) < 7] = 5
        here, heading, pace = rng.uniform([70, 50], [110, 80]), rng.uniform(-np.pi, np.pi), rng.uniform(1.2, 1.8)
        classes[np.hypot(x - here[0], y - here[1]) < 16] = 1
        ahead = pace * np.array([np.cos(heading), np.sin(heading)])
        yield Scene(classes, NAMES, here - ahead * np.arange(7, -1, -1)[:, None], STEPS)


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


def strolls(count: int, *, seed: int = 0) -> Dataset:
    """The people among blocks, as cases in memory."""
    return Dataset(
        "strolls",
        "",
        lambda: (Case(f"scene {number}", input=scene) for number, scene in enumerate(blocks(count, seed=seed))),
        inputs="scene",
    )


@dataclass(frozen=True)
class Stroller:
    """A cheaper one without a map of probabilities: ways are drawn, and those that meet an obstacle left out."""

    heading: float = 0.25
    speed: float = 0.15
    futures: int = 10
    sees_the_map: bool = True
    shuffles: bool = False
    ends_at_the_frame: bool = False

    def __call__(self, scene: Scene, seed: int) -> Forecast:
        rng = np.random.default_rng(seed)
        futures = self.drawn(scene, rng)
        if self.shuffles:
            futures = rng.permutation(futures)
        if self.ends_at_the_frame:
            futures = futures.clip(0, scene.size)
        return Forecast.from_array(futures)

    def drawn(self, scene: Scene, rng: np.random.Generator, ahead: Floats | None = None) -> Floats:
        """Futures (K, T, 2) of a person who goes on, or this many pixels a step."""
        ahead = _velocity(scene) if ahead is None else ahead
        across = np.array([-ahead[1], ahead[0]])
        tries = self.futures * (6 if self.sees_the_map else 1)
        angle, pace = rng.normal(0, 1, tries) * self.heading, 1 + rng.normal(0, 1, tries) * self.speed
        step = pace[:, None] * (np.cos(angle)[:, None] * ahead + np.sin(angle)[:, None] * across)
        free = self.free(scene, step, ahead) if self.sees_the_map else np.ones(tries, bool)
        if not free.any():
            return np.broadcast_to(scene.position, (self.futures, scene.steps, 2)).copy()
        chosen = step[np.resize(np.flatnonzero(free), self.futures)]
        return np.asarray(scene.position + chosen[:, None] * np.arange(1, scene.steps + 1)[:, None])

    def free(self, scene: Scene, step: Floats, ahead: Floats) -> npt.NDArray[np.bool_]:
        """Which ways meet no obstacle, with half a step to every side."""
        way = np.linspace(0, scene.steps, 6 * scene.steps + 1)[1:]
        across = np.array([-ahead[1], ahead[0]])
        sides = 0.5 * np.array([[0.0, 0], ahead, -ahead, across, -across])
        places = scene.position + (step[:, None] * way[:, None])[..., None, :] + sides
        blocked = np.array([np.isinf(COST.get(name, 1.0)) for name in (*scene.names, "")])
        return np.asarray(~blocked[_classes(scene, places)].any((1, 2)))


def predictor(
    function: Callable[[Scene, int], Forecast], name: str = "stroller", *, deterministic: bool = False
) -> System:
    def predict(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[Forecast]:
        return [function(scene, seed) for scene, seed in zip(inputs, seeds, strict=True)]

    return System(name, "forecast", predict, name, deterministic=deterministic, takes="scene", batch=4)


def system(walker: Walker) -> System:
    return predictor(walker, f"walker {walker!r}")
