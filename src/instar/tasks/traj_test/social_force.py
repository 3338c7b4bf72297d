"""`social-force`: as `constant-velocity`, and round obstacles, rather on pavement than on terrain and road."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.outputs.forecast import Forecast
from instar.outputs.heat import HeatMap
from instar.scene import Scene
from instar.spelling import Parameter
from instar.systems.system import System, SystemFamily
from instar.tasks.traj_test.constant_velocity import NOISE, Fan, Grid, Person, between, fan_of, forecaster, straight
from instar.warp import Warp

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


# --- the ground, as far as a person can come ---------------------------------------------------------

_OBSTACLES = ("structure", "tree")
_COST: Mapping[str, float] = {"terrain": 0.5, "road": 1.0, "structure": 3.0, "tree": 3.0}
"""What it costs to walk on a class all the way; pavement and every class that is not named here: nothing.
Obstacles cost those who stand in one."""

_CLEARANCE = 1.27
"""How near somebody comes to the centre of an obstacle's cell, in pixels: outside of the cell even where a path is
looked at only every half pixel. An odd number, because positions are often whole or half pixels, and rounding would
decide a tie."""
_LOOK, _LOOK_CLOSELY = 0.5, 0.1
"""A path is looked at every so many pixels; closely where somebody stands nearer to an obstacle than the clearance."""
_LONGER = 1.07
"""A slide may be longer than the move it is part of, by 2 %; and again no number that ends in a tie."""
_LOOSE = 0.01
"""Pixels that somebody nearer than the clearance may come nearer still: walking along a wall is no approach."""
_TOUCH = 1e-3
"""A position nearer than this to the edge of a cell, in pixels, touches both: rounding does not choose."""
_PAD = 4


@dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """The window of the map that a person can reach, with a rim of background: cell costs and distances to obstacles.

    `costs` and `gaps`, the distance to the centre of the nearest obstacle cell (None where there is no obstacle),
    are interpolated between the centres of cells: taking the cell that a position lies in would favour one side
    where it lies between two. Outside of the window lies plain ground.
    """

    corner: Floats
    costs: npt.NDArray[np.float32]
    gaps: npt.NDArray[np.float32] | None
    stands: Literal["free", "beside", "inside"] = "free"
    """Where the person is: in an obstacle, nearer to one than the clearance, or neither."""
    looks: int = 1
    """How often each move is looked at. The same for all, so that no way depends on which others are walked."""
    leaps: bool = False
    """Whether a step may be longer than the window: then only what lies in the window is looked at."""

    @classmethod
    def around(cls, scene: Scene, position: Floats, reach: float, fastest: float) -> _Ground:
        """Up to `reach` pixels away, for somebody who makes at most `fastest` pixels in a step."""
        low = np.clip(np.floor(position - reach), 0, scene.size).astype(int)
        high = np.clip(np.ceil(position + reach), low, scene.size).astype(int)
        classes = np.pad(scene.classes[low[1] : high[1], low[0] : high[0]], _PAD)
        table, solid = np.zeros(256, np.float32), np.zeros(256, np.uint8)
        table[: len(scene.names)] = [_COST.get(name, 0) for name in scene.names]
        solid[: len(scene.names)] = [name in _OBSTACLES for name in scene.names]
        costs, free = np.asarray(cv2.LUT(classes, table), np.float32), np.asarray(cv2.LUT(classes, 1 - solid), np.uint8)
        corner = low - float(_PAD)
        if free.all():
            return cls(corner, costs, None)
        ground = cls(corner, costs, _distances(free))
        stands: Literal["free", "beside", "inside"] = "free"
        if ground.gap(position) < _CLEARANCE:
            stands = "inside" if ground.touched(position).all() else "beside"
        diagonal = math.hypot(*costs.shape)
        looks = 1 + int(min(fastest, diagonal) * _LONGER / (_LOOK_CLOSELY if stands == "beside" else _LOOK))
        return replace(ground, stands=stands, looks=looks, leaps=fastest > diagonal)

    def cost(self, xy: Floats) -> Floats:
        """What it costs to be at positions (…, 2)."""
        return _interpolated(self.costs, *self._clamped(xy))

    def gap(self, xy: Floats) -> Floats:
        """Pixels from positions (…, 2) to the centre of the nearest obstacle cell."""
        if self.gaps is None:
            return np.full(xy.shape[:-1], np.inf)
        x, y = self._clamped(xy)
        left, top = self.corner + 0.5
        beyond = _length(xy[..., 0] - left - x, xy[..., 1] - top - y)
        return np.asarray(_interpolated(self.gaps, x, y) + beyond)

    def touched(self, xy: Floats) -> Bools:
        """Whether the cells that positions (…, 2) touch are obstacles: (4, …), up to four cells or one four times."""
        if self.gaps is None:
            return np.zeros((4, *xy.shape[:-1]), bool)
        x, y = self._clamped(xy)
        columns, rows = ([np.rint(place + side).astype(np.intp) for side in (-_TOUCH, _TOUCH)] for place in (x, y))
        return np.stack([self.gaps[row, column] == 0 for row in rows for column in columns])

    def gap_and_away(self, xy: Floats, apart: float) -> tuple[Floats, Floats]:
        """The gap at positions (N, 2), and the direction (N, 2) in which it grows: of length 1, 0 where it does not."""
        shifts = np.array([[[0.0, 0.0]], [[apart, 0.0]], [[-apart, 0.0]], [[0.0, apart]], [[0.0, -apart]]])
        here, right, left, low, top = self.gap(xy + shifts)
        slope = np.stack([right - left, low - top], -1)
        length = _lengths(slope)[:, None]
        return here, np.divide(slope, length, out=np.zeros_like(slope), where=length > 1e-6)

    def free_share(self, start: Floats, move: Floats, near: Floats) -> Floats:
        """How much of moves (N, 2) is free, from 0 to 1. `near` (N,) is the gap that each has at least had before."""
        share = np.tile(np.arange(self.looks + 1) / self.looks, (len(start), 1))
        if self.leaps:
            first, last = self._crossing(start, move)
            share = first[:, None] + (last - first)[:, None] * share
        before, share = share[:, :-1], share[:, 1:]
        places = start[:, None] + move[:, None] * share[..., None]
        gap = self.gap(places)
        # Who is too near already, or inside an obstacle, may go where the gap does not shrink.
        allowed = np.minimum(_CLEARANCE, np.maximum.accumulate(np.maximum(gap, near[:, None]), 1))
        blocked = gap < allowed - _LOOSE
        if self.stands == "beside":
            blocked |= self.touched(places).any(0)
        return np.where(blocked.any(1), before[np.arange(len(before)), blocked.argmax(1)], 1.0)

    def _clamped(self, xy: Floats) -> tuple[Floats, Floats]:
        """Positions counted from the centre of the window's first cell, and moved into the window."""
        height, width = self.costs.shape
        left, top = self.corner + 0.5
        return (
            np.minimum(np.maximum(xy[..., 0] - left, 0), width - 1),
            np.minimum(np.maximum(xy[..., 1] - top, 0), height - 1),
        )

    def _crossing(self, start: Floats, move: Floats) -> tuple[Floats, Floats]:
        """The part of each move that crosses the window, as shares from 0 to 1: only there can it meet an obstacle."""
        low, high = self.corner, self.corner + self.costs.shape[::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            one, two = (low - start) / move, (high - start) / move
        still = move == 0
        first = np.clip(np.where(still, 0, np.minimum(one, two)).max(1), 0, 1)
        last = np.clip(np.where(still, 1, np.maximum(one, two)).min(1), first, 1)
        return first, last


def _distances(free: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """From the centre of each cell to the centre of the nearest one that is not free."""
    distances = np.asarray(cv2.distanceTransform(free, cv2.DIST_L2, cv2.DIST_MASK_PRECISE), np.float32)
    # OpenCV's last digits depend on the direction; squares of distances between cells are whole numbers.
    np.rint(np.multiply(distances, distances, out=distances), out=distances)
    return np.sqrt(distances, out=distances)


def _interpolated(field: npt.NDArray[np.float32], x: Floats, y: Floats) -> Floats:
    """Bilinear, at positions counted from the centre of the first cell, which lie inside."""
    height, width = field.shape
    left, top = np.minimum(x.astype(np.intp), width - 2), np.minimum(y.astype(np.intp), height - 2)
    right, low = x - left, y - top
    first = top * width + left
    flat = field.ravel()
    upper = flat.take(first) * (1 - right) + flat.take(first + 1) * right
    lower = flat.take(first + width) * (1 - right) + flat.take(first + width + 1) * right
    return np.asarray(upper * (1 - low) + lower * low, np.float64)


def _length(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.sqrt(x * x + y * y))  # a third of the time of hypot


def _lengths(vectors: Floats) -> Floats:
    return _length(vectors[..., 0], vectors[..., 1])


# --- social force ----------------------------------------------------------------------------------

_RELAXATION = 0.5
"""Seconds in which somebody takes up the velocity they wish (Helbing and Molnár)."""
_RANGE = 1.0
"""Steps of the person over which the repulsion of an obstacle falls by e."""
_OFF = 0.2
"""Somebody who slides along a wall comes away from it by this much of the way: walls of cells are jagged."""
_LOST = 4.0
"""What it costs to get nowhere; coming half as far as wished costs half of it."""
_WITHIN = 0.61
"""Who is this near to the centre of an obstacle's cell, in pixels, has not come out of it; all others keep clear."""
_ROOM = 0.01
"""Less than this share of the map outside of obstacles is no room: a passage narrower than a cell of the map."""
_TINY = 1e-30


def _walked(scene: Scene, person: Person, ground: _Ground, angle: Floats, factor: Floats, repulsion: float) -> Floats:
    """Positions (N, T, 2), in pixels, of ways (N,) among the obstacles."""
    if ground.gaps is None or not person.pace:
        return straight(person, angle, factor, np.arange(1.0, scene.steps + 1))
    pace = (factor * person.pace)[:, None]
    velocity = person.placed(np.cos(angle), np.sin(angle)) * pace
    goal = person.origin + 2 * scene.steps * velocity  # twice as far as they come, so that they do not arrive
    kept = math.exp(-1 / (_RELAXATION * scene.rate))
    at = np.tile(person.origin, (len(angle), 1))
    near = np.zeros(len(angle))
    path = np.empty((len(angle), scene.steps, 2))
    for step in range(scene.steps):
        gap, away = ground.gap_and_away(at, max(1.0, person.pace / 4))
        near = np.minimum(_CLEARANCE, np.maximum(near, gap))
        push = repulsion * np.exp(-np.maximum(gap - _CLEARANCE, 0) / (_RANGE * person.pace))[:, None]
        there = goal - at
        wish = pace * (there / np.maximum(_lengths(there), _TINY)[:, None] + push * away)
        velocity = wish + (velocity - wish) * kept
        velocity *= np.minimum(1, pace / np.maximum(_lengths(velocity), _TINY)[:, None])  # no faster than they wish
        path[:, step] = there = person.rounded(_stepped(ground, at, velocity, near))
        at, velocity = there, there - at
    return path


def _stepped(ground: _Ground, at: Floats, move: Floats, near: Floats) -> Floats:
    """Where walkers (N, 2) come in one move: to its end, along an obstacle, or up to it. The way there is straight."""
    there = at + move
    # An obstacle further from the middle than this is met by no part of the move.
    close = np.flatnonzero(ground.gap(at + move / 2) < _lengths(move) / 2 + _CLEARANCE + 1)
    if not len(close):
        return there
    share = ground.free_share(at[close], move[close], near[close])
    there[close] = at[close] + move[close] * share[:, None]
    stopped = close[share < 1]
    if not len(stopped):
        return there
    stop, rest = there[stopped], (at + move - there)[stopped]
    _, wall = ground.gap_and_away(stop, 1.0)
    slide = rest - np.minimum(0, (rest * wall).sum(1))[:, None] * wall
    slide += wall * (_OFF * _lengths(slide))[:, None]
    slid = stop + slide * ground.free_share(stop, slide, near[stopped])[:, None]
    # From where they were to where they slid may be a corner that the two legs went round.
    direct = ground.free_share(at[stopped], slid - at[stopped], near[stopped]) == 1
    there[stopped[direct]] = slid[direct]
    return there


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """What social force knows of a scene: the same for every seed."""

    person: Person
    ground: _Ground
    heat: HeatMap
    weight: Floats
    """How probable each way of the fan is on this ground."""


def _plan(scene: Scene, name: str, fan: Fan, preference: float, repulsion: float) -> _Plan:
    """The ways of the fan, walked and weighed.

    The cost of a way is the mean over the same moments that the map is made of, and no class but an obstacle changes
    where a way leads: a class that becomes dearer can only lose probability, and one that becomes cheaper only gain.
    """
    person = Person.of(scene, name)
    grid = Grid.of(scene, person, fan)
    ground = _Ground.around(scene, person.origin, grid.reach, fan.fastest * person.pace)
    paths = _walked(scene, person, ground, fan.angle, fan.factor, repulsion)
    places = between(person.origin, paths)
    cost = preference * ground.cost(places).mean(1) + _LOST * _lost(scene, person, fan, paths)
    weight = fan.weight * np.exp(cost.min() - cost)
    weight /= weight.sum()
    warp = grid.warp(person, scene.size)
    return _Plan(person, ground, HeatMap.of(_map(grid, warp, person, ground, places, weight), warp), weight)


def _lost(scene: Scene, person: Person, fan: Fan, paths: Floats) -> Floats:
    """The share, 0 to 1, of the distance that each way of the fan wished to come and did not."""
    along, across = person.along_across(paths[:, -1])
    wished = scene.steps * fan.factor * person.pace
    came = along * np.cos(fan.angle) + across * np.sin(fan.angle)
    return np.asarray(np.clip(1 - np.divide(came, wished, out=np.ones_like(came), where=wished > 0), 0, 1))


def _map(grid: Grid, warp: Warp, person: Person, ground: _Ground, places: Floats, weight: Floats) -> Floats:
    """Where the ways (N,) with positions (N, M, 2) are, less what is smeared into obstacles."""
    along, across = person.along_across(places)
    share = np.repeat(weight[:, None], along.shape[1], 1)
    cells = grid.occupied(along, across, share)
    if ground.gaps is None:
        return cells
    rows, columns = np.nonzero(cells)
    gap = ground.gap(warp.points(np.stack([columns, rows], 1) + 0.5))
    open_to = np.zeros_like(cells)
    open_to[rows, columns] = np.clip((gap - 0.5) / max(1.0, grid.cell / 2), 0, 1)
    kept = cells * open_to
    if ground.stands == "inside":  # and may be there until they come out
        kept += grid.occupied(along, across, np.where(ground.gap(places) < _WITHIN, share, 0)) * (1 - open_to)
    return kept if kept.sum() > _ROOM * cells.sum() else cells


def _social_force(
    name: str, *, samples: int, heading: float, speed: float, preference: float, repulsion: float
) -> System:
    fan = fan_of(heading, speed)

    @lru_cache(maxsize=1)  # by the scene's identity: repeats of one come one after the other
    def prepared(scene: Scene) -> _Plan:
        return _plan(scene, name, fan, preference, repulsion)

    def of_one(scene: Scene, seeds: Sequence[int]) -> Iterator[Forecast]:
        plan = prepared(scene)
        drawn = np.stack([np.random.default_rng(seed).random((3, samples)) for seed in seeds], 1).reshape(3, -1)
        way = np.searchsorted(np.cumsum(plan.weight), drawn[0]).clip(max=len(plan.weight) - 1)
        angle = fan.angle[way] + (drawn[1] - 0.5) * fan.spacing[0]
        factor = np.maximum(0, fan.factor[way] + (drawn[2] - 0.5) * fan.spacing[1])
        futures = _walked(scene, plan.person, plan.ground, angle, factor, repulsion).astype(np.float32)
        return (Forecast(paths, plan.heat) for paths in futures.reshape(len(seeds), samples, scene.steps, 2))

    def predict(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[Forecast]:
        pairs = groupby(zip(inputs, seeds, strict=True), key=lambda pair: id(pair[0]))
        alike = [list(group) for _, group in pairs]
        return [one for group in alike for one in of_one(group[0][0], [seed for _, seed in group])]

    return forecaster(name, predict)


# fmt: off
FAMILIES: Mapping[str, SystemFamily] = {
    "social-force": SystemFamily(
        "social-force", Forecast.kind, _social_force,
        (
            *NOISE,
            Parameter(
                "preference", "float", 3, low=0, high=20,
                help="how much rarer a way on road is than one on pavement: e to this power; terrain half of it",
            ),
            Parameter(
                "repulsion", "float", 0.4, low=0, high=10,
                help="speed with which an obstacle drives off who touches it, as a share of the person's",
            ),
        ),
        help="As constant-velocity, and round structure and tree, never through them, and rather on pavement than on "
        "terrain, on terrain than on road. Background and classes of other names count as pavement.",
    ),
}
# fmt: on
