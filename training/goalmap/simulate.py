"""Simulated walkers over generated maps: what goalmap is trained on. Needs numpy alone.

A world is a square grid of classes that looks like a campus from above. Walkers follow least-cost ways to goals
(walking costs depend on the class, structures and trees are walked around), with inertia, wandering, changes of
speed, stops and changes of mind. Half of the samples show the world as the walkers knew it all along; for the other
half it changed at the present moment (an obstacle on the way, another class of ground), so that the past says
nothing of the change and the future must.

Everything is scale-free: lengths are given in cells of the world, and a sample is a patch in units of its own size.
The same seed gives the same samples.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

BACKGROUND, PAVEMENT, ROAD, STRUCTURE, TERRAIN, TREE = range(6)
NAMES = ("background", "pavement", "road", "structure", "terrain", "tree")
SIDE = 64
"""Cells along a side of a patch."""
PAST = 8
"""Past positions that the network sees at most."""
REACH = 1.5
"""Half the side of a patch, in units of the way walked at the recent speed during all future steps."""
FUTURES = 4
"""Simulated futures of each walker: the target is their mean."""

Floats = npt.NDArray[np.float32]
Points = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Classes = npt.NDArray[np.uint8]
Samples = dict[str, npt.NDArray[np.generic]]

_WORLD = 336
_COARSE = _WORLD // 2
_COST = {BACKGROUND: 1.6, PAVEMENT: 1.0, ROAD: 3.0, STRUCTURE: 40.0, TERRAIN: 2.0, TREE: 40.0}
_WALKABLE = (PAVEMENT, ROAD, TERRAIN)
_GOALS = 14
_WALKERS = 104
_MARGIN = 40
"""Cells of the world on every side of the part that is shown: who leaves the map goes on walking."""
_BURN_IN = 10


# --- what the network is shown ---------------------------------------------------------------------


def recent_speed(past: Points) -> float:
    """Length of a step (P, 2): the mean of the past, or that of its last three steps where it is larger."""
    steps = np.linalg.norm(np.diff(past, axis=0), axis=1)
    last = past[-min(4, len(past)) :]
    return float(max(steps.mean(), np.linalg.norm(last[-1] - last[0]) / (len(last) - 1)))


def described(past: Points, steps: int, half: float) -> tuple[Floats, Floats]:
    """The past as the network takes it: the last 8 positions (x, y, 1; zeros where there are fewer) relative to the
    present in units of half a patch, and where the mean of the last 2 and the last 5 steps would lead in all."""
    near = (past[-PAST:] - past[-1]) / half
    shown = np.zeros((PAST, 3), np.float32)
    shown[PAST - len(near) :, :2] = near
    shown[PAST - len(near) :, 2] = 1
    motion = np.stack([(near[-1] - near[-n]) / (n - 1) * steps for n in (min(3, len(near)), min(6, len(near)))])
    return shown, motion.astype(np.float32)


def overlaps(start: float, half: float, length: int) -> tuple[int, int, Floats]:
    """How much each of the patch's cells along one axis covers of each pixel: pixels from, to, and (SIDE, pixels)."""
    edges = start + half * np.linspace(-1, 1, SIDE + 1)
    low, high = max(0, math.floor(edges[0])), min(length, math.ceil(edges[-1]))
    if high <= low:
        return 0, 0, np.zeros((SIDE, 0), np.float32)
    pixels = np.arange(low, high)
    shared = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return low, high, (np.maximum(shared, 0) * (SIDE / (2 * half))).astype(np.float32)


def patch(classes: Classes, centre: Points, half: float) -> Floats:
    """Area fractions (5, SIDE, SIDE) of pavement … tree in the square of half-side `half` around a point.

    What is missing to 1 is background, which is also all that lies outside of the map.
    """
    x0, x1, across = overlaps(float(centre[0]), half, classes.shape[1])
    y0, y1, down = overlaps(float(centre[1]), half, classes.shape[0])
    part = classes[y0:y1, x0:x1]
    found = np.zeros((5, SIDE, SIDE), np.float32)
    for label in np.flatnonzero(np.bincount(part.ravel(), minlength=6)[1:]) + 1:
        found[label - 1] = down @ (part == label).astype(np.float32) @ across.T
    return found


# --- maps ------------------------------------------------------------------------------------------

_Y, _X = np.mgrid[0:_WORLD, 0:_WORLD].astype(np.float32) + np.float32(0.5)


def make_map(rng: np.random.Generator) -> Classes:
    """A campus seen from above, or something odder."""
    kind = rng.random()
    world = np.full((_WORLD, _WORLD), rng.choice([TERRAIN, PAVEMENT, ROAD], p=[0.5, 0.4, 0.1]), np.uint8)
    turn = rng.uniform(0, math.pi) if rng.random() < 0.4 else rng.choice([0, math.pi / 2]) + rng.normal(0, 0.03)
    if kind < 0.9:
        _areas(world, turn, rng)
        _ways(world, turn, rng)
        _buildings(world, turn, rng)
        _trees(world, turn, rng)
    if kind > 0.75 or rng.random() < 0.3:
        for _ in range(rng.integers(3, 14)):
            radius = math.exp(rng.uniform(math.log(1.5), math.log(18)))
            stamp(world, rng.uniform(0, _WORLD, 2), radius, rng.choice([STRUCTURE, TREE]), rng)
    return _recoloured(world, rng)


def _frame(at: Points, turn: float) -> tuple[Floats, Floats]:
    """Every cell's coordinates in a frame turned about a point."""
    c, s = np.float32(math.cos(turn)), np.float32(math.sin(turn))
    x, y = _X - np.float32(at[0]), _Y - np.float32(at[1])
    return x * c + y * s, y * c - x * s


def _band(at: Points, turn: float, rng: np.random.Generator, bend: float) -> Floats:
    """Distance of every cell to a gently curved line across the world."""
    across: Floats | npt.NDArray[np.float64]
    along, across = _frame(at, turn)
    if bend:
        across = across + np.float32(rng.normal(0, bend)) * (along / 100) ** 2 * 20
        if rng.random() < 0.4:
            wave, phase = (np.float32(v) for v in (rng.uniform(0.01, 0.04), rng.uniform(0, 6)))
            across = across + np.float32(rng.normal(0, bend) * 12) * np.sin(along * wave + phase)
    return np.abs(across)


def _areas(world: Classes, turn: float, rng: np.random.Generator) -> None:
    """Plazas and lawns."""
    for _ in range(rng.integers(0, 5)):
        label = rng.choice(_WALKABLE, p=[0.45, 0.1, 0.45])
        centre, a, b = rng.uniform(0, _WORLD, 2), rng.uniform(15, 90), rng.uniform(15, 90)
        x, y = _frame(centre, turn)
        inside = (x / a) ** 2 + (y / b) ** 2 < 1 if rng.random() < 0.25 else (np.abs(x) < a) & (np.abs(y) < b)
        world[inside] = label


def _ways(world: Classes, turn: float, rng: np.random.Generator) -> None:
    """Roads with pavements beside them, some with a roundabout, and paths of every width."""
    roads = []
    for _ in range(rng.choice([0, 1, 2, 3], p=[0.25, 0.4, 0.25, 0.1])):
        angle = turn + rng.choice([0, math.pi / 2]) + rng.normal(0, 0.05 if rng.random() < 0.7 else 0.6)
        at = rng.uniform(0.1, 0.9, 2) * _WORLD
        roads.append((_band(at, angle, rng, rng.choice([0, 0.3, 1.0])), rng.uniform(8, 30), rng.uniform(3, 20)))
        if rng.random() < 0.15:
            ring = np.hypot(_X - np.float32(at[0]), _Y - np.float32(at[1]))
            roads.append((ring, rng.uniform(25, 50), rng.uniform(4, 14)))
    for distance, half, pavement in roads:
        world[distance < half + pavement] = PAVEMENT
    for distance, half, _ in roads:
        world[distance < half] = ROAD
    for _ in range(rng.integers(0, 7)):
        angle = turn + rng.choice([0, math.pi / 2]) if rng.random() < 0.6 else rng.uniform(0, math.pi)
        near = _band(rng.uniform(0, _WORLD, 2), angle, rng, rng.choice([0, 0.3, 1.5])) < rng.uniform(2.5, 14)
        if rng.random() < 0.7:
            near &= world == TERRAIN
        world[near] = PAVEMENT


def _buildings(world: Classes, turn: float, rng: np.random.Generator) -> None:
    for _ in range(rng.integers(0, 8)):
        centre = rng.uniform(-0.05, 1.05, 2) * _WORLD
        a, b = rng.uniform(8, 70, 2)
        x, y = _frame(centre, turn if rng.random() < 0.8 else rng.uniform(0, math.pi))
        margin = rng.uniform(0, 14)
        if rng.random() < 0.5:
            world[(np.abs(x) < a + margin) & (np.abs(y) < b + margin) & (world != ROAD)] = PAVEMENT
        body = (np.abs(x) < a) & (np.abs(y) < b)
        if rng.random() < 0.35:
            body &= ~((x > a * rng.uniform(-0.3, 0.7)) & (y > b * rng.uniform(-0.3, 0.7)))
        # A building seldom stands on a road.
        world[body & (world != ROAD) if rng.random() < 0.85 else body] = STRUCTURE


def _trees(world: Classes, turn: float, rng: np.random.Generator) -> None:
    for _ in range(rng.integers(0, 10)):
        stamp(world, rng.uniform(0, _WORLD, 2), rng.uniform(3, 20), TREE, rng)
    for _ in range(rng.integers(0, 3)):
        at, angle, gap = rng.uniform(0, _WORLD, 2), turn + rng.choice([0, math.pi / 2]), rng.uniform(14, 40)
        label, radius = rng.choice([TREE, TREE, STRUCTURE]), rng.uniform(2, 8)
        for number in range(rng.integers(3, 9)):
            stamp(world, at + number * gap * np.array([math.cos(angle), math.sin(angle)]), radius, label, rng)
    for _ in range(rng.integers(0, 4)):
        x, y = _frame(rng.uniform(0, _WORLD, 2), turn)
        strips = (np.abs(x) < rng.uniform(15, 60)) & (np.abs(y) < rng.uniform(10, 50))
        world[strips & (y % rng.uniform(16, 40) < rng.uniform(3, 9))] = rng.choice([TREE, TERRAIN, PAVEMENT])


def stamp(world: Classes, centre: Points, radius: float, label: int, rng: np.random.Generator) -> None:
    """One isolated thing: a 12-gon turned at random, or a box."""
    box = rng.random() < 0.2
    corners, apothem = (4, radius * rng.uniform(0.5, 0.8)) if box else (12, radius * math.cos(math.pi / 12))
    x0, x1 = (int(np.clip(v, 0, _WORLD)) for v in (centre[0] - 1.6 * radius - 1, centre[0] + 1.6 * radius + 2))
    y0, y1 = (int(np.clip(v, 0, _WORLD)) for v in (centre[1] - 1.6 * radius - 1, centre[1] + 1.6 * radius + 2))
    x, y = _X[y0:y1, x0:x1] - np.float32(centre[0]), _Y[y0:y1, x0:x1] - np.float32(centre[1])
    inside = np.ones(x.shape, bool)
    start = rng.uniform(0, math.pi)
    for corner in range(corners):
        angle = start + corner * 2 * math.pi / corners
        inside &= x * math.cos(angle) + y * math.sin(angle) <= apothem
    world[y0:y1, x0:x1][inside] = label


def _recoloured(world: Classes, rng: np.random.Generator) -> Classes:
    """Classes in unusual places, so that costs are learned and not what usually lies where."""
    kind, table = rng.random(), np.arange(6, dtype=np.uint8)
    if kind < 0.22:
        table[list(_WALKABLE)] = rng.permutation(_WALKABLE)
    elif kind < 0.3:
        table[list(_WALKABLE)] = rng.choice(_WALKABLE, p=[0.6, 0.2, 0.2])
    elif kind < 0.36:
        table[[STRUCTURE, TREE]] = rng.choice([STRUCTURE, TREE])
    world = table[world]
    if rng.random() < 0.15:
        _, across = _frame(rng.uniform(0.2, 0.8, 2) * _WORLD, rng.uniform(0, 2 * math.pi))
        ground = np.isin(world, _WALKABLE)
        width = rng.uniform(6, 80) if rng.random() < 0.6 else _WORLD
        world[ground & (across > 0) & (across < width)] = rng.choice(_WALKABLE)
    return world


# --- ways ------------------------------------------------------------------------------------------


def walking_cost(world: Classes, rng: np.random.Generator, clearance: int) -> Floats:
    """Cost per length on the coarse grid; somewhat higher beside obstacles, which people do not touch."""
    table = np.array([_COST[label] for label in range(6)], np.float32)
    table[[PAVEMENT, ROAD, TERRAIN]] *= np.exp(rng.normal(0, 0.1, 3)).astype(np.float32)
    fine = table[world].reshape(_COARSE, 2, _COARSE, 2)
    cost = fine.mean((1, 3))
    near = _box_mean((cost > 10).astype(np.float32), clearance)
    return np.asarray(cost * (1 + 1.5 * np.minimum(near * 2, 1)))


def _box_mean(values: Floats, radius: int) -> Floats:
    """Mean over a square of 2·radius + 1 cells; outside counts as 0."""
    width = 2 * radius + 1
    for axis in (0, 1):
        sums = np.cumsum(np.pad(values, [(radius + 1, radius) if a == axis else (0, 0) for a in (0, 1)]), axis)
        values = (sums[width:] - sums[:-width]) if axis == 0 else (sums[:, width:] - sums[:, :-width])
    return values / np.float32(width * width)


def arrival(cost: Floats, goals: npt.NDArray[np.intp]) -> Floats:
    """Least cost from every cell of a grid to each goal (row, column): (G, n, n).

    Solves |∇u| = cost by raster scans (Weber et al. 2008): four directions, again until nothing changes. A scan
    updates a whole row from the one before it, for all goals at once.
    """
    n = len(cost)
    rows = np.full((n, len(goals), n), 1e6, np.float32)  # a row of all goals lies together
    for number, (i, j) in enumerate(goals):
        rows[max(0, i - 1) : i + 2, number, max(0, j - 1) : j + 2] = 0
    turned = np.ascontiguousarray(cost.T)
    for _ in range(12):
        before = rows.copy()
        _scan(rows, cost)
        columns = np.ascontiguousarray(rows.transpose(2, 1, 0))
        _scan(columns, turned)
        rows = np.ascontiguousarray(columns.transpose(2, 1, 0))
        if np.abs(rows - before).max() < 0.05:
            break
    return np.ascontiguousarray(rows.transpose(1, 0, 2))


def _scan(rows: Floats, cost: Floats) -> None:
    """Down and up: each row from its neighbour, entered between two of that row's cells."""
    n = len(rows)
    least = np.empty_like(rows[0])
    for order in (range(1, n), range(n - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for i in order:
            a, f = rows[i - step], cost[i]
            least[:, 1:-1] = np.minimum(a[:, :-2], a[:, 2:])
            least[:, 0], least[:, -1] = a[:, 1], a[:, -2]
            slope = a - least
            bound = f * np.float32(math.sqrt(0.5))
            inner = np.minimum(np.maximum(slope, 0), bound)
            reached = a - np.maximum(slope - bound, 0) + np.sqrt(f * f - inner * inner)
            np.minimum(rows[i], reached, out=rows[i])


def downhill(times: Floats) -> Floats:
    """Unit vectors (G, n, n, 2) as x, y that lead to each goal."""
    dy, dx = np.gradient(times, axis=(1, 2))
    length = np.maximum(np.hypot(dx, dy), 1e-6)
    return np.stack([-dx / length, -dy / length], -1)


def _pick_goals(cost: Floats, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Cells (G, 2): two thirds at the border of the world, the others anywhere, all where walking is easy."""
    attraction = np.where(cost < 10, 1 / cost**2, 0)
    rim = np.zeros_like(cost)
    rim[:6], rim[-6:], rim[:, :6], rim[:, -6:] = 1, 1, 1, 1
    chosen = []
    for weights, count in ((attraction * rim, _GOALS * 2 // 3), (attraction, _GOALS - _GOALS * 2 // 3)):
        total = weights.sum()
        flat = weights.ravel() / total if total > 0 else np.full(weights.size, 1 / weights.size)
        chosen.append(rng.choice(flat.size, count, p=flat.astype(np.float64) / flat.astype(np.float64).sum()))
    return np.stack(np.unravel_index(np.concatenate(chosen), cost.shape), 1)


# --- walkers ---------------------------------------------------------------------------------------


@dataclass
class Ground:
    """What walkers walk on: the classes, and the ways to the goals."""

    world: Classes
    ways: Floats
    times: Floats

    @classmethod
    def of(cls, world: Classes, goals: npt.NDArray[np.intp], rng: np.random.Generator, clearance: int) -> Ground:
        cost = walking_cost(world, rng, clearance)
        times = arrival(cost, goals)
        return cls(world, downhill(times), times)

    def blocked(self, at: Floats) -> npt.NDArray[np.bool_]:
        label = self.world[_cells(at, _WORLD)]
        return np.asarray((label == STRUCTURE) | (label == TREE))


def _cells(at: Floats | npt.NDArray[np.float64], size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Row and column of positions in cells of a grid, those outside at its rim."""
    index = np.clip(at, 0, size - 1).astype(np.intp)
    return index[..., 1], index[..., 0]


@dataclass
class Crowd:
    """Walkers at one moment: everything that decides where they go."""

    at: Floats
    heading: Floats
    goal: npt.NDArray[np.intp]
    pace: Floats
    """Usual length of a step, in cells."""
    factor: Floats
    """What share of the pace they walk now; 0 is standing."""
    wish: Floats
    """The share that they change to."""
    drift: Floats
    """The wandering of the heading, in radians."""
    wander: Floats
    """How far it usually goes."""
    curve: Floats
    """Radians per step that the walker bears to one side."""

    def __getitem__(self, which: npt.NDArray[np.generic]) -> Crowd:
        return Crowd(**{name: value[which] for name, value in vars(self).items()})


def _crowd(ground: Ground, cost: Floats, window: tuple[slice, slice], pace: float, rng: np.random.Generator) -> Crowd:
    """Walkers in the part of the world that is shown."""
    part = tuple(slice(side.start // 2, side.stop // 2) for side in window)
    weights = np.zeros_like(cost)
    weights[part] = np.where(cost[part] < 10, 1 / cost[part], 1e-6)
    flat = weights.ravel().astype(np.float64)
    i, j = np.unravel_index(rng.choice(flat.size, _WALKERS, p=flat / flat.sum()), cost.shape)
    at = (np.stack([j, i], 1) * 2 + rng.uniform(0, 2, (_WALKERS, 2))).astype(np.float32)
    heading = rng.uniform(-math.pi, math.pi, _WALKERS).astype(np.float32)
    still = rng.random(_WALKERS) < 0.17
    factor = np.where(still, 0, rng.lognormal(0, 0.08, _WALKERS)).astype(np.float32)
    wander = np.deg2rad(rng.lognormal(math.log(6), 0.6, _WALKERS)).astype(np.float32)
    curve = np.where(rng.random(_WALKERS) < 0.12, rng.normal(0, math.radians(4), _WALKERS), 0).astype(np.float32)
    crowd = Crowd(
        at,
        heading,
        np.zeros(_WALKERS, np.intp),
        (pace * rng.lognormal(0, 0.2, _WALKERS)).astype(np.float32),
        factor,
        factor.copy(),
        np.zeros(_WALKERS, np.float32),
        wander,
        curve,
    )
    crowd.goal = _next_goal(crowd, ground, rng)
    way = ground.ways[(crowd.goal, *_cells(at / 2, _COARSE))]
    crowd.heading = np.arctan2(way[:, 1], way[:, 0])
    return crowd


def _next_goal(crowd: Crowd, ground: Ground, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Another goal that is not here, rather straight on than back."""
    i, j = _cells(crowd.at / 2, _COARSE)
    ways = ground.ways[:, i, j]  # (G, W, 2)
    straight = ways[..., 0] * np.cos(crowd.heading) + ways[..., 1] * np.sin(crowd.heading)
    liking = 2.5 * straight + rng.gumbel(size=straight.shape) - 50 * (ground.times[:, i, j] < 8)
    return np.asarray(liking.argmax(0))


def walk(crowd: Crowd, ground: Ground, steps: int, rng: np.random.Generator) -> Floats:
    """Positions (W, steps, 2) of the next steps; the crowd is moved along."""
    track = np.empty((len(crowd.at), steps, 2), np.float32)
    for step in range(steps):
        _change_of_mind(crowd, ground, rng)
        for _ in range(2):
            _advance(crowd, ground, 0.5, rng)
        track[:, step] = crowd.at
    return track


def _change_of_mind(crowd: Crowd, ground: Ground, rng: np.random.Generator) -> None:
    """Stops, starts, other speeds, other goals."""
    count = len(crowd.at)
    luck = rng.random((4, count))
    moving = crowd.wish > 0.05
    crowd.wish = np.where(moving & (luck[0] < 0.004), 0, crowd.wish).astype(np.float32)
    fresh = rng.lognormal(0, 0.12, count)
    crowd.wish = np.where(~moving & (luck[0] < 0.012), fresh, crowd.wish).astype(np.float32)
    crowd.wish = np.where(moving & (luck[1] < 0.02), rng.uniform(0.6, 1.4, count), crowd.wish).astype(np.float32)
    arrived = ground.times[(crowd.goal, *_cells(crowd.at / 2, _COARSE))] < 4
    if (other := arrived | (luck[2] < 0.004)).any():
        crowd.goal[other] = _next_goal(crowd[other], ground, rng)
    crowd.wish = np.where(arrived & (luck[3] < 0.15), 0, crowd.wish).astype(np.float32)


def _advance(crowd: Crowd, ground: Ground, part: float, rng: np.random.Generator) -> None:
    """Part of a step: turn towards the way, then go, sideways where something blocks it."""
    count = len(crowd.at)
    memory = np.float32(math.exp(-part / 5))
    noise = rng.standard_normal((2, count)).astype(np.float32)
    crowd.drift = memory * crowd.drift + np.sqrt(1 - memory**2) * crowd.wander * noise[0]
    crowd.factor += np.float32(part * 0.5) * (crowd.wish - crowd.factor)
    way = ground.ways[(crowd.goal, *_cells(crowd.at / 2, _COARSE))]
    aim = np.arctan2(way[:, 1], way[:, 0]) + crowd.drift
    error = (aim - crowd.heading + np.pi) % (2 * np.pi) - np.pi
    crowd.heading += np.clip(np.float32(0.7 * part) * error, -0.6, 0.6) + crowd.curve * np.float32(part)
    pace = crowd.factor * np.maximum(1 + 0.09 * noise[1], 0)
    length = np.where(crowd.factor < 0.04, 0, crowd.pace * pace) * np.float32(part)
    crowd.at = _moved(crowd, ground, length)


_ASIDE = tuple(math.radians(sign * angle) for angle in (25, 50, 75, 100, 130) for sign in (1, -1))


def _moved(crowd: Crowd, ground: Ground, length: Floats) -> Floats:
    """One move each. Who would enter an obstacle goes aside; who is inside of one may leave it."""

    def towards(heading: Floats, which: npt.NDArray[np.bool_] | slice) -> Floats:
        ahead = np.stack([np.cos(heading), np.sin(heading)], -1) * length[which, None]
        return np.asarray(crowd.at[which] + ahead, np.float32)

    target = towards(crowd.heading, slice(None))
    stuck = ground.blocked(target) & ~ground.blocked(crowd.at)
    for angle in _ASIDE:
        if not stuck.any():
            return target
        heading = crowd.heading[stuck] + np.float32(angle)
        aside = towards(heading, stuck)
        free = ~ground.blocked(aside)
        where = np.flatnonzero(stuck)[free]
        target[where], crowd.heading[where] = aside[free], heading[free]
        stuck[where] = False
    target[stuck] = crowd.at[stuck]
    return target


# --- one world's worth of cases --------------------------------------------------------------------


@dataclass
class Case:
    """A walker on a map: `past` (P, 2) as observed, the last is the present; `futures` (FUTURES, steps, 2)."""

    classes: Classes
    past: Floats
    futures: Floats
    steps: int
    floor: float
    """The least half-side of its patch."""


def cases(seed: int, *, steps: int | None = None) -> Iterator[Case]:
    """The cases of one world. Without `steps`, worlds differ in how many future steps are asked for."""
    rng = np.random.default_rng([20240, seed])
    asked = steps or int(rng.choice([12, 12, 12, 8, 16, 20, 30]))
    reach = rng.uniform(30, 66)
    pace = reach / asked
    before = make_map(rng)
    clearance = int(np.clip(round(pace * 0.4), 1, 2))
    cost = walking_cost(before, rng, clearance)
    goals = _pick_goals(cost, rng)
    ground = Ground.of(before, goals, rng, clearance)
    window = _window(rng)
    crowd = _crowd(ground, cost, window, pace, rng)
    walk(crowd, ground, _BURN_IN, rng)
    past = walk(crowd, ground, PAST, rng)
    usual = _futures(crowd, ground, asked, rng)
    after = _changed(before, usual, reach, rng)
    changed = _futures(crowd, Ground.of(after, goals, rng, clearance), asked, rng)
    seen = _observed(past, crowd.pace, rng)
    for world, futures in ((before, usual), (after, changed)):
        yield from _kept(world, window, seen, futures, asked, reach, rng)


def _futures(crowd: Crowd, ground: Ground, steps: int, rng: np.random.Generator) -> Floats:
    """Several futures (W, FUTURES, steps, 2) from the same present."""
    several = crowd[np.repeat(np.arange(len(crowd.at)), FUTURES)]
    return walk(several, ground, steps, rng).reshape(-1, FUTURES, steps, 2)


def _changed(world: Classes, futures: Floats, reach: float, rng: np.random.Generator) -> Classes:
    """The world after a change nobody could foresee: obstacles on ways, or a class of ground turned into another."""
    world, kind = world.copy(), rng.random()
    if kind > 0.75:
        old, new = rng.choice([PAVEMENT, ROAD, TERRAIN, STRUCTURE, TREE], 2, replace=False)
        world[world == old] = new
    if kind < 0.9:
        steps = futures.shape[2]
        for walker in rng.choice(len(futures), 14, replace=False):
            large = rng.random() < 0.6
            radius = reach * (rng.uniform(0.1, 0.27) if large else math.exp(rng.uniform(math.log(0.02), math.log(0.1))))
            at = futures[walker, rng.integers(FUTURES), int(rng.uniform(0.3, 1) * steps)]
            away = np.linalg.norm(futures[walker, 0, 0] - at)
            if radius + reach / steps < away:
                stamp(world, at + rng.normal(0, radius * 0.3, 2), radius, rng.choice([STRUCTURE, TREE]), rng)
    return world


def _observed(past: Floats, pace: Floats, rng: np.random.Generator) -> Floats:
    """What a tracker would say: with noise, and often rounded."""
    count = len(past)
    noise = rng.uniform(0, 0.06, (count, 1, 1)) * pace[:, None, None]
    seen = past + noise * rng.standard_normal(past.shape)
    grain = rng.uniform(0.02, 0.12, (count, 1, 1)) * pace[:, None, None]
    rounded = np.round(seen / grain) * grain
    return np.where(rng.random((count, 1, 1)) < 0.5, rounded, seen).astype(np.float32)


def _window(rng: np.random.Generator) -> tuple[slice, slice]:
    """The rows and columns of the world that are shown."""
    size = rng.integers(_WORLD // 2, _WORLD - 2 * _MARGIN + 1, 2)
    low = _MARGIN + (rng.random(2) * (_WORLD - 2 * _MARGIN - size + 1)).astype(int)
    return slice(int(low[0]), int(low[0] + size[0])), slice(int(low[1]), int(low[1] + size[1]))


def _kept(
    world: Classes,
    window: tuple[slice, slice],
    seen: Floats,
    futures: Floats,
    steps: int,
    reach: float,
    rng: np.random.Generator,
) -> Iterator[Case]:
    """The cases of walkers who are still in the part that is shown, some of them with less to see."""
    shown, corner = world[window], np.array([window[1].start, window[0].start], np.float32)
    for past, future in zip(seen - corner, futures - corner, strict=True):
        if not ((past[-1] > 0) & (past[-1] < shown.shape[::-1])).all():
            continue
        inside = np.isin(shown[_cells_in(past, shown)], (STRUCTURE, TREE))
        # Out of an obstacle that has just appeared people go; that they came through one is rare.
        if inside[:-1].any() and not inside[-1] and rng.random() < 0.8:
            continue
        known = PAST if rng.random() < 0.7 else int(rng.integers(2, PAST + 1))
        yield Case(_dimmed(shown, past[-1], reach, rng), past[-known:], future, steps, reach * rng.uniform(0.25, 1.0))


def _cells_in(at: Floats, shown: Classes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return (
        np.clip(at[:, 1], 0, shown.shape[0] - 1).astype(np.intp),
        np.clip(at[:, 0], 0, shown.shape[1] - 1).astype(np.intp),
    )


def _dimmed(shown: Classes, at: Floats, reach: float, rng: np.random.Generator) -> Classes:
    """Mostly the map itself; now and then an empty one, one without a class, or a tree's crown over the walker."""
    kind = rng.random()
    if kind < 0.03:
        return np.zeros_like(shown)
    if kind < 0.06:
        return np.where(shown == rng.integers(1, 6), BACKGROUND, shown).astype(np.uint8)
    if kind < 0.08:
        away = np.hypot(*np.meshgrid(np.arange(shown.shape[1]) + 0.5 - at[0], np.arange(shown.shape[0]) + 0.5 - at[1]))
        return np.where(away < reach * rng.uniform(0.05, 0.3), rng.choice([TREE, STRUCTURE]), shown).astype(np.uint8)
    return shown


# --- samples ---------------------------------------------------------------------------------------


def sample(case: Case) -> Samples:
    """A case as the network takes it: fractions as bytes, everything else in units of half a patch."""
    half = max(REACH * recent_speed(case.past) * case.steps, case.floor)
    shown, motion = described(case.past, case.steps, half)
    middle = (case.steps + 1) // 2 - 1
    ends = np.stack([case.futures[:, -1], case.futures[:, middle]], 1) - case.past[-1]  # (FUTURES, 2, 2)
    ends = ends / half
    # Who goes further than the patch is at its rim in that direction.
    ends /= np.maximum(np.abs(ends).max(-1, keepdims=True) * 1.02, 1)
    return {
        "classes": np.rint(patch(case.classes, case.past[-1], half) * 255).astype(np.uint8),
        "past": shown,
        "motion": motion,
        "ends": ends.astype(np.float32),
    }


def world_samples(seed: int) -> Samples:
    """All samples of one world."""
    made = [sample(case) for case in cases(seed)]
    empty: Samples = {
        "classes": np.zeros((0, 5, SIDE, SIDE), np.uint8),
        "past": np.zeros((0, PAST, 3), np.float32),
        "motion": np.zeros((0, 2, 2), np.float32),
        "ends": np.zeros((0, FUTURES, 2, 2), np.float32),
    }
    return {name: np.stack([one[name] for one in made]) for name in made[0]} if made else empty


def simulated(first: int, count: int, workers: int, *, say: Callable[[int], bool] = lambda made: True) -> Samples:
    """At least `count` samples from the worlds `first`, `first` + 1, …; fewer where `say(samples so far)` is False."""
    # One process per core: more threads inside each would only fight. New processes read this, this one does not.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    parts: list[Samples] = []
    made = 0
    with get_context("spawn").Pool(workers) as pool:
        # in order, so that the same seed gives the same samples with any number of workers
        for part in pool.imap(world_samples, range(first, first + max(4, count // 20)), chunksize=1):
            parts.append(part)
            made += len(part["past"])
            if made >= count or not say(made):
                pool.terminate()
                break
    return {name: np.concatenate([part[name] for part in parts])[:count] for name in parts[0]}
