"""`constant-velocity`: a person goes on as before. And the frame in which this and `social-force` are right.

Both work in the person's own frame: the origin where the person is, one axis along the way they walk and one
across it. Errors are drawn there, the same to the left as to the right and in proportion to the pace, and the
probability map lies on a grid with these axes. A scene that is mirrored, turned by any angle or rescaled has the
same numbers in that frame: this is why both can stand for a predictor that is exactly right under these changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from instar.outputs.forecast import Forecast
from instar.outputs.heat import HeatMap
from instar.scene import Scene
from instar.spelling import Parameter
from instar.systems.system import System, SystemFamily, fingerprint_of
from instar.warp import Size, Warp

VERSION = "1"
"""Part of both fingerprints; changes when the answers do."""

Floats = npt.NDArray[np.float64]

_RECENT = 3
"""How many of the last steps the velocity is the mean of. Of 1 to 7, 3 is nearest to the futures of SDD."""
_FINE = 2.0**-10
"""Positions on a rough ground are rounded to this many pixels."""


# --- the person's own frame ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """Where somebody is, which way they walk (`ahead`, of length 1) and how many pixels they make in a step."""

    origin: Floats
    ahead: Floats
    pace: float

    @classmethod
    def of(cls, scene: Scene, name: str) -> Person:
        past = scene.past
        if len(past) < 2:
            raise ValueError(f"{name.partition('(')[0]} needs two past positions, this scene has one")
        recent = min(_RECENT, len(past) - 1)
        step = (past[-1] - past[-1 - recent]) / recent
        pace = math.hypot(*step)
        return cls(past[-1], step / pace if pace else np.array([1.0, 0.0]), pace)

    @property
    def across(self) -> Floats:
        return np.array([-self.ahead[1], self.ahead[0]])

    def placed(self, along: Floats, across: Floats) -> Floats:
        """Lengths along and across the way, in pixels, as offsets (…, 2) in the map."""
        return along[..., None] * self.ahead + across[..., None] * self.across

    def along_across(self, xy: Floats) -> tuple[Floats, Floats]:
        """Positions (…, 2) in the map as lengths along and across the way, in pixels."""
        x, y = np.moveaxis(xy - self.origin, -1, 0)
        (ahead_x, ahead_y), (across_x, across_y) = self.ahead, self.across
        # not a matrix product: its rounding depends on how many points there are
        return x * ahead_x + y * ahead_y, x * across_x + y * across_y

    def rounded(self, xy: Floats) -> Floats:
        """Positions (…, 2) to about a thousandth of a pixel, along and across the way.

        Walking along a rough wall multiplies the last bit, in which a scene and its mirror image differ, from step
        to step until it is seen; here it is lost each time.
        """
        fine = _FINE * min(1.0, self.pace)
        along, across = (np.rint(length / fine) * fine for length in self.along_across(xy))
        return self.origin + self.placed(along, across)


# --- the fan: every heading and speed that is considered ---------------------------------------------

_WIDEST = 3.0
_HEADINGS, _SPEEDS = 21, 7
"""How many, from -3 to 3 standard deviations; odd, so that straight on is among them."""


@dataclass(frozen=True, slots=True, eq=False)
class Fan:
    """Ways to go on: `angle` in radians off the present heading, `factor` of the present pace, and how probable.

    A way stands for all that differ from it by at most half a `spacing`.
    """

    angle: Floats
    factor: Floats
    weight: Floats
    spacing: tuple[float, float]

    @property
    def fastest(self) -> float:
        return float(self.factor.max()) + self.spacing[1] / 2


@lru_cache(maxsize=16)
def fan_of(heading: float, speed: float) -> Fan:
    turn, quick = (np.arange(-(n // 2), n // 2 + 1) * (2 * _WIDEST / (n - 1)) for n in (_HEADINGS, _SPEEDS))
    turns, quicks = (grid.ravel() for grid in np.meshgrid(turn, quick, indexing="ij"))
    weight = np.exp(-(turns**2 + quicks**2) / 2)
    error = math.radians(heading), speed
    return Fan(
        turns * error[0],
        np.maximum(0, 1 + quicks * error[1]),
        weight / weight.sum(),
        ((turn[1] - turn[0]) * error[0], (quick[1] - quick[0]) * error[1]),
    )


def straight(person: Person, angle: Floats, factor: Floats, times: Floats) -> Floats:
    """Positions (N, T, 2) of walks (N,) that keep heading and speed, at times in steps."""
    length = person.pace * factor[:, None] * times
    return person.origin + person.placed(length * np.cos(angle)[:, None], length * np.sin(angle)[:, None])


# --- the probability map ---------------------------------------------------------------------------

_CELLS = 128
_SMEAR = 1.5
"""Standard deviation, in cells of the map, of the place of a person: closes the gaps between the fan's ways."""
_MARGIN = math.ceil(4 * _SMEAR) + 1
_BODY = 0.002
"""Standard deviation of the place of a person who stands, as a share of the frame (root of its area): 3 pixels
of a map of 1400 × 1900. A share, because pixels would not be rescaled with the map."""
_MOMENTS = 3
"""How many moments of each step are looked at."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The square around a person that the probability map covers; `cell` is the side of a cell in pixels."""

    cell: float

    @classmethod
    def of(cls, scene: Scene, person: Person, fan: Fan) -> Grid:
        reach = scene.steps * fan.fastest * person.pace
        body = _BODY * math.sqrt(scene.size[0] * scene.size[1])
        return cls(max(reach / (_CELLS / 2 - _MARGIN), body / _SMEAR))

    @property
    def reach(self) -> float:
        """Pixels from the person to the edge: further than anybody comes, by more than the smear."""
        return self.cell * _CELLS / 2

    def warp(self, person: Person, size: Size) -> Warp:
        """From cells to the frame: columns run ahead, rows across."""
        linear = np.stack([person.ahead, person.across], 1) * self.cell
        matrix = np.eye(3)
        matrix[:2, :2] = linear
        matrix[:2, 2] = person.origin - linear.sum(1) * (_CELLS / 2)
        return Warp(matrix, (_CELLS, _CELLS), size)

    def occupied(self, along: Floats, across: Floats, weight: Floats) -> Floats:
        """What lies in each cell of the weights (N, M) of positions (N, M) in pixels, smeared."""
        # From here on a position counts from the centre of the first cell.
        x, y = ((length / self.cell + (_CELLS / 2 - 0.5)).ravel() for length in (along, across))
        left, top = np.floor(x), np.floor(y)
        right, low = x - left, y - top
        first = (top * _CELLS + left).astype(np.intp)
        upper, lower = weight.ravel() * (1 - low), weight.ravel() * low
        sums = np.bincount(
            np.concatenate([first, first + 1, first + _CELLS, first + _CELLS + 1]),
            np.concatenate([upper * (1 - right), upper * right, lower * (1 - right), lower * right]),
            _CELLS * _CELLS,
        )
        taps = 2 * math.ceil(4 * _SMEAR) + 1
        return np.asarray(
            cv2.GaussianBlur(sums.reshape(_CELLS, _CELLS), (taps, taps), _SMEAR, borderType=cv2.BORDER_CONSTANT),
            np.float64,
        )


def between(origin: Floats, paths: Floats) -> Floats:
    """Positions (N, M, 2) at the moments of each step of paths (N, T, 2), which are straight from step to step."""
    before = np.concatenate([np.broadcast_to(origin, (len(paths), 1, 2)), paths[:, :-1]], 1)
    share = ((np.arange(_MOMENTS) + 0.5) / _MOMENTS)[:, None]
    return np.asarray((before[:, :, None] + (paths - before)[:, :, None] * share).reshape(len(paths), -1, 2))


# --- constant velocity -----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _straight_map(steps: int, heading: float, speed: float, pace: float) -> Floats:
    """Of a person who makes `pace` cells in a step, on plain ground."""
    fan = fan_of(heading, speed)
    person = Person(np.zeros(2), np.array([1.0, 0.0]), pace)
    moments = (np.arange(steps * _MOMENTS) + 0.5) / _MOMENTS
    along, across = np.moveaxis(straight(person, fan.angle, fan.factor, moments), -1, 0)
    cells = Grid(1.0).occupied(along, across, np.broadcast_to(fan.weight[:, None], along.shape))
    return np.asarray((cells + cells[::-1]) / 2)  # left is right, to the last bit


def _constant_velocity(name: str, *, samples: int, heading: float, speed: float) -> System:
    fan = fan_of(heading, speed)

    @lru_cache(maxsize=1)  # by the scene's identity: repeats of one come one after the other
    def prepared(scene: Scene) -> tuple[Person, HeatMap]:
        person = Person.of(scene, name)
        grid = Grid.of(scene, person, fan)
        # rounded, so that one map serves all who walk: they differ in the last bit only
        cells = _straight_map(scene.steps, heading, speed, round(person.pace / grid.cell, 9))
        return person, HeatMap.of(cells, grid.warp(person, scene.size))

    def one(scene: Scene, seed: int) -> Forecast:
        person, heat = prepared(scene)
        turn, quick = np.random.default_rng(seed).standard_normal((2, samples))
        futures = straight(
            person, turn * math.radians(heading), np.maximum(0, 1 + quick * speed), np.arange(1.0, scene.steps + 1)
        )
        return Forecast(np.asarray(futures, np.float32), heat)

    def predict(inputs: Sequence[Scene], seeds: Sequence[int]) -> list[Forecast]:
        return [one(scene, seed) for scene, seed in zip(inputs, seeds, strict=True)]

    return forecaster(name, predict)


def forecaster(name: str, predict: Callable[[Sequence[Scene], Sequence[int]], list[Forecast]]) -> System:
    return System(
        name,
        Forecast.kind,
        predict,
        fingerprint_of("walkers", VERSION, name),
        deterministic=False,
        seedable=True,
        batch=8,
        takes=Scene.kind,
    )


NOISE = (
    Parameter("samples", "int", 20, low=1, high=1000, help="sampled futures"),
    # Of 5 to 30 degrees and 0.1 to 0.5, these come nearest to the futures of SDD with the best of 20.
    Parameter("heading", "float", 15, low=0, high=60, help="standard deviation of the heading, in degrees"),
    Parameter("speed", "float", 0.2, low=0, high=1, help="standard deviation of the speed, as a share of the person's"),
)

FAMILIES: Mapping[str, SystemFamily] = {
    "constant-velocity": SystemFamily(
        "constant-velocity",
        Forecast.kind,
        _constant_velocity,
        NOISE,
        help="A person goes on as in the last three steps; each sampled future has its own heading and "
        "speed. The map is not looked at.",
    )
}
