"""goalmap: a small learned trajectory predictor that comes with Instar, in the spirit of Y-net.

A network reads a square patch of the map around the person and their past, and says how probable each cell is half-way
and at the last step. Goals are drawn from the second map, waypoints from the first, and smooth paths lead through both.
It was trained on simulated walkers alone; `docs/model-card-goalmap.md` says what it can and cannot do.

The patch is measured in the person's own reach, so that neither pixels per metre nor the number of steps matter to it;
for people who hardly move, in a share of the map. What lies outside the map, and classes whose names are not pavement,
road, structure, terrain or tree, count as background: the network was shown such ground, and takes it as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from instar.outputs.forecast import Forecast
from instar.scene import Scene
from instar.spelling import Parameter
from instar.systems.onnx import onnx_session
from instar.systems.system import System, SystemFamily, fingerprint_of
from instar.systems.weights import loaded_from
from instar.warp import crossing

VERSION = "1"
"""Part of the fingerprint; changes when the adapter's answers do."""

WEIGHTS = Path(__file__).parent / "weights" / "goalmap.onnx"
CLASSES = ("background", "pavement", "road", "structure", "terrain", "tree")
OBSTACLES = ("structure", "tree")

_SIDE = 64
_PAST = 8
_REACH = 1.5
"""Half the side of the patch, in ways walked at the recent speed during all steps asked for."""
_FLOOR = 1 / 16
"""The least half-side of the patch, as a share of the map's longer side: what somebody who stands is shown."""
_ROUNDS, _WAYS = 8, 4
"""How often a path that would cross an obstacle is drawn anew: goals, and waypoints for each of them."""
_SPEEDS = (0.8, 0.6, 0.4, 0.2, 0.0)
"""Shares of its speed at which a path that finds no way round an obstacle is tried."""

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


# --- what the network is shown ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Patch:
    """The square around the person: its middle is exactly where they are, so that a scene that is mirrored or turned
    has the mirrored or turned patch."""

    centre: Floats
    half: float

    @classmethod
    def of(cls, scene: Scene) -> _Patch:
        return cls(scene.position, max(_REACH * _recent_speed(scene.past) * scene.steps, _FLOOR * max(scene.size)))

    @property
    def box(self) -> tuple[float, float, float, float]:
        (x, y), half = self.centre, self.half
        return x - half, y - half, x + half, y + half

    def fractions(self, scene: Scene) -> Floats32:
        """Area fractions (6, 64, 64) of the known classes; exact, so that no cell depends on which way is up."""
        width, height = scene.size
        x0, x1, across = _overlaps(float(self.centre[0]), self.half, width)
        y0, y1, down = _overlaps(float(self.centre[1]), self.half, height)
        part = scene.classes[y0:y1, x0:x1]
        shares = np.zeros((len(CLASSES), _SIDE, _SIDE), np.float32)
        for label in np.flatnonzero(np.bincount(part.ravel(), minlength=len(scene.names))):
            name = scene.names[label]
            if name in CLASSES[1:]:
                shares[CLASSES.index(name)] = down @ (part == label).astype(np.float32) @ across.T
        shares[0] = 1 - shares[1:].sum(0)
        return shares

    def described(self, scene: Scene) -> tuple[Floats32, Floats32]:
        """The last 8 positions (x, y, 1; zeros where there are fewer) relative to the present, in units of half a
        patch; and where the mean of the last 2 and the last 5 steps would lead in all steps."""
        near = (scene.past[-_PAST:] - self.centre) / self.half
        shown = np.zeros((_PAST, 3), np.float32)
        shown[_PAST - len(near) :, :2] = near
        shown[_PAST - len(near) :, 2] = 1
        motion = [(near[-1] - near[-n]) / (n - 1) * scene.steps for n in (min(3, len(near)), min(6, len(near)))]
        return shown, np.array(motion, np.float32)


def _recent_speed(past: Floats) -> float:
    """Length of a step: the mean of the past, or that of its last three steps where it is larger."""
    steps = np.linalg.norm(np.diff(past, axis=0), axis=1)
    last = past[-min(4, len(past)) :]
    return float(max(steps.mean(), np.linalg.norm(last[-1] - last[0]) / (len(last) - 1)))


def _overlaps(middle: float, half: float, length: int) -> tuple[int, int, Floats32]:
    """How much each of the patch's cells along one axis covers of each pixel: pixels from, to, and (64, pixels)."""
    edges = middle + half * np.linspace(-1, 1, _SIDE + 1)
    low, high = max(0, math.floor(edges[0])), min(length, math.ceil(edges[-1]))
    if high <= low:
        return 0, 0, np.zeros((_SIDE, 0), np.float32)
    pixels = np.arange(low, high)
    shared = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return low, high, (np.maximum(shared, 0) * (_SIDE / (2 * half))).astype(np.float32)


# --- obstacles -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Obstacles:
    """Where nobody walks, in the pixels of a patch."""

    blocked: Bools
    corner: tuple[int, int]
    margin: int
    """Pixels by which what is blocked is wider than obstacles are, so that no path slips through between two of the
    places at which it is looked at."""

    @classmethod
    def of(cls, scene: Scene, patch: _Patch) -> _Obstacles:
        (width, height), (x0, y0, x1, y1) = scene.size, patch.box
        left, top = (int(np.clip(math.floor(v), 0, n)) for v, n in ((x0, width), (y0, height)))
        right, bottom = (int(np.clip(math.ceil(v), 0, n)) for v, n in ((x1, width), (y1, height)))
        part, margin = scene.classes[top:bottom, left:right], max(1, round(patch.half / 200))
        solid = np.array([name in OBSTACLES for name in scene.names])[part].astype(np.uint8)
        if solid.any():
            column, line = math.floor(patch.centre[0]) - left, math.floor(patch.centre[1]) - top
            solid = _left_behind(solid, part, line, column)
            wide = np.asarray(cv2.dilate(solid, np.ones((2 * margin + 1, 2 * margin + 1), np.uint8)), np.uint8)
            near = tuple(slice(max(0, at - 2 * margin), max(0, at + 2 * margin + 1)) for at in (line, column))
            wide[near] = solid[near]  # who stands beside an obstacle may walk away from it
            solid = wide
        return cls(solid.astype(bool), (left, top), margin)

    def crossed(self, paths: Floats) -> Bools:
        """Which of the paths (…, T + 1, 2), in pixels of the map, cross an obstacle."""
        if not self.blocked.any():
            return np.zeros(paths.shape[:-2], bool)
        return crossing(self.blocked, paths - np.array(self.corner), self.margin)


def _left_behind(
    solid: npt.NDArray[np.uint8], part: npt.NDArray[np.uint8], line: int, column: int
) -> npt.NDArray[np.uint8]:
    """Without the obstacle that the person is inside of, by what the map says: under a tree, in a doorway. What is of
    another class and touches it still blocks."""
    if not (0 <= line < solid.shape[0] and 0 <= column < solid.shape[1] and solid[line, column]):
        return solid
    _, parts = cv2.connectedComponents((part == part[line, column]).astype(np.uint8), connectivity=8)
    return np.where(parts == parts[line, column], 0, solid).astype(np.uint8)


# --- drawing futures -------------------------------------------------------------------------------

_MIDDLES = (np.arange(_SIDE) + 0.5) * 2 / _SIDE - 1


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """All that is the same for every seed: the patch, the maps, the obstacles."""

    patch: _Patch
    steps: int
    velocity: Floats
    """The mean of the last two steps, in units of half a patch."""
    goal: Floats
    waypoint: Floats
    """Probabilities (64, 64) of where the person is at the last step, and half-way."""
    round_about: tuple[npt.NDArray[np.intp], Floats]
    """The cells of the goal map by their direction, and the probability up to each."""
    obstacles: _Obstacles

    @classmethod
    def of(cls, scene: Scene, answer: Callable[..., Sequence[Floats32]]) -> _View:
        if len(scene.past) < 2:
            raise ValueError(
                "goalmap needs at least two past positions to see which way the person walks; this scene has one"
            )
        patch = _Patch.of(scene)
        past, motion = patch.described(scene)
        # one scene at a time: an answer must not depend on what else was in the batch
        answers = answer(
            ["goal", "waypoint"], {"classes": patch.fractions(scene)[None], "past": past[None], "motion": motion[None]}
        )
        goal, waypoint = (np.asarray(cells[0], np.float64) for cells in answers)
        velocity, obstacles = motion[0].astype(np.float64) / scene.steps, _Obstacles.of(scene, patch)
        return cls(patch, scene.steps, velocity, goal, waypoint, _round_about(goal), obstacles)

    def forecast(self, samples: int, seed: int) -> Forecast:
        paths = self._futures(samples, np.random.default_rng(seed))
        return Forecast.from_array(paths[:, 1:], (self.goal + self.waypoint) / 2, box=self.patch.box)

    def _futures(self, samples: int, rng: np.random.Generator) -> Floats:
        """Paths (K, steps + 1, 2) in pixels from the present on. One that crosses an obstacle is drawn anew a few
        times, with other waypoints and another goal; who still finds no way goes only as far as it is free."""
        paths = np.empty((samples, self.steps + 1, 2))
        missing = np.arange(samples)
        for _ in range(_ROUNDS):
            goals = self._goals(len(missing), rng)
            ways = self._paths(goals, self._waypoints(goals, rng))
            clear = ~self.obstacles.crossed(ways)
            first = clear.argmax(1)
            paths[missing] = ways[np.arange(len(missing)), first]
            missing = missing[~clear.any(1)]
            if not len(missing):
                break
        for number in missing:
            paths[number] = self._slower(paths[number])
        return paths

    def _slower(self, path: Floats) -> Floats:
        """The same way at a lower speed, so that it ends before the first obstacle."""
        times = np.arange(len(path))
        for speed in _SPEEDS:
            slow = np.stack([np.interp(times * speed, times, path[:, axis]) for axis in (0, 1)], 1)
            if not self.obstacles.crossed(slow):
                return slow
        return slow

    def _goals(self, count: int, rng: np.random.Generator) -> Floats:
        """Points (count, 2) of the goal map in units of half a patch, by systematic sampling round the person: each
        direction gets its share of the samples, as nearly as whole numbers allow."""
        order, total = self.round_about
        at = (np.arange(count) + rng.random(count)) / count * total[-1]
        return _within(order[np.searchsorted(total, at).clip(0, total.size - 1)], rng)

    def _waypoints(self, goals: Floats, rng: np.random.Generator) -> Floats:
        """Points (K, ways, 2): the waypoint map near the middle between the person and each goal, as Y-net does."""
        width = 2 / _SIDE + 0.06 * np.linalg.norm(goals, axis=1)[:, None, None]
        near = np.exp(-0.5 * ((_MIDDLES - goals[..., None] / 2) / width) ** 2)  # (K, x|y, 64)
        chance = (self.waypoint + 1e-9) * near[:, 1, :, None] * near[:, 0, None, :]
        total = np.cumsum(chance.reshape(len(goals), -1), 1)
        at = rng.random((len(goals), _WAYS)) * total[:, -1:]
        cells = np.stack([np.searchsorted(row, some) for row, some in zip(total, at, strict=True)])
        return _within(cells.clip(0, _SIDE * _SIDE - 1), rng)

    def _paths(self, goals: Floats, waypoints: Floats) -> Floats:
        """Smooth paths (K, ways, steps + 1, 2) in pixels: cubic from here, with the present velocity, to the waypoint
        half-way, and on to the goal."""
        steps, half_way = self.steps, (self.steps + 1) // 2
        goals = np.broadcast_to(goals[:, None], waypoints.shape)
        if half_way == steps:  # a single step
            waypoints = goals
        cruise = goals / steps
        # who is about to stop does not overshoot
        pull = 2 * np.linalg.norm(waypoints, axis=-1, keepdims=True)
        start = self.velocity * np.minimum(1, pull / max(float(np.linalg.norm(self.velocity)) * half_way, 1e-9))
        parts = [_cubic(np.zeros_like(goals), start, waypoints, cruise, half_way)]
        if half_way < steps:
            left = steps - half_way
            parts.append(_cubic(waypoints, cruise, goals, (goals - waypoints) / left, left)[..., 1:, :])
        return np.concatenate(parts, -2) * self.patch.half + self.patch.centre


def _round_about(goal: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Begins opposite to where the map points on the whole, so that a mirrored or turned map is sampled alike."""
    y, x = np.meshgrid(_MIDDLES, _MIDDLES, indexing="ij")
    towards = math.atan2(float((goal * y).sum()), float((goal * x).sum()))
    order = np.argsort(((np.arctan2(y, x) - towards + math.pi) % (2 * math.pi)).ravel(), kind="stable")
    return order, np.cumsum(goal.ravel()[order])


def _within(cells: npt.NDArray[np.intp], rng: np.random.Generator) -> Floats:
    """Random points of cells (…, 2) as x, y in units of half a patch."""
    line, column = np.divmod(cells, _SIDE)
    return np.asarray((np.stack([column, line], -1) + rng.random((*cells.shape, 2))) * (2 / _SIDE) - 1)


def _cubic(a: Floats, speed_a: Floats, b: Floats, speed_b: Floats, steps: int) -> Floats:
    """Positions (…, steps + 1, 2) between two points with velocities per step (Hermite)."""
    t = np.linspace(0, 1, steps + 1)[:, None]
    a, speed_a, b, speed_b = (v[..., None, :] for v in (a, speed_a, b, speed_b))
    return np.asarray(
        (2 * t**3 - 3 * t**2 + 1) * a
        + (t**3 - 2 * t**2 + t) * steps * speed_a
        + (3 * t**2 - 2 * t**3) * b
        + (t**3 - t**2) * steps * speed_b
    )


# --- the system ------------------------------------------------------------------------------------


def _goalmap(name: str, *, samples: int, model: str | None) -> System:
    path = WEIGHTS if model is None else Path(model).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{name}: there is no model file {path}")
    session, [weights] = loaded_from([path], lambda: onnx_session(path))
    answer = session.run

    @lru_cache(maxsize=1)  # by the scene's identity: its repeats come one after the other, also in several calls
    def view(scene: Scene) -> _View:
        return _View.of(scene, answer)

    def predict(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[Forecast]:
        return [view(scene).forecast(samples, seed) for scene, seed in zip(inputs, seeds, strict=True)]

    return System(
        name,
        "forecast",
        predict,
        fingerprint_of("goalmap", VERSION, samples, weights),
        deterministic=False,
        batch=32,
        takes="scene",
    )


FAMILIES: Mapping[str, SystemFamily] = {
    "goalmap": SystemFamily(
        "goalmap",
        "forecast",
        _goalmap,
        (
            Parameter("samples", "int", 20, low=1, high=10_000, help="futures per prediction"),
            Parameter("model", "text", None, help="an .onnx file that training/goalmap made, if not Instar's own"),
        ),
        help="A small network, trained on simulated walkers: probability map, goals, paths.",
        extra="onnx",
    )
}
