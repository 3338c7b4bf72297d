"""Is the adapter of a predictor right? Questions about scenes with known answers, on maps that are made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import KDTree

from instar.outputs import Output
from instar.outputs.forecast import Forecast
from instar.outputs.heat import HeatMap
from instar.scene import Scene
from instar.systems.check.examination import Examination, Floats, Skip
from instar.systems.check.results import Result, ok, problem, unsure, warning

SIDE, STEPS, PACE = 160, 12, 4.0
SEEDS = (0, 1, 2, 3)
WALL = "structure"
NAMES = ("background", "pavement", WALL)


def walk(x: float, y: float, heading: float, *, wide: int = SIDE) -> Scene:
    """A person on an empty place who has walked straight on, eight positions long, and is now at (x, y)."""
    way = np.array([np.cos(heading), np.sin(heading)])
    past = np.array([x, y]) - way * PACE * np.arange(7, -1, -1)[:, None]
    return Scene(np.ones((SIDE, wide), np.uint8), NAMES, past, STEPS, 2.5, 0.3)


SCENES: Sequence[tuple[str, Scene]] = (
    ("to the right", walk(70, 40, 0.0)),
    ("down", walk(110, 60, np.pi / 2)),
    ("on a wide map", walk(120, 70, 0.3, wide=220)),
)


def _walled(scene: Scene, x0: int, y0: int, x1: int, y1: int) -> Scene:
    classes = scene.classes.copy()
    classes[y0:y1, x0:x1] = NAMES.index(WALL)
    return replace(scene, classes=classes)


def _forecasts(examined: Examination, scene: Scene) -> list[Forecast]:
    """The answers to each seed."""
    answers = [examined.ask([scene], seed)[0] for seed in SEEDS]
    forecasts = [answer for answer in answers if isinstance(answer, Forecast)]
    if not forecasts:
        raise Skip("the scene was not answered")
    return forecasts


def _means(forecasts: Sequence[Forecast]) -> Floats:
    """The mean future (T, 2) of each answer."""
    return np.stack([answer.futures.astype(np.float64).mean(0) for answer in forecasts])


def _paths(examined: Examination, scene: Scene) -> Floats:
    """The mean future (T, 2) of each seed."""
    return _means(_forecasts(examined, scene))


def _heats(forecasts: Sequence[Forecast], like: HeatMap) -> Floats:
    """The probability maps of some answers, on the grid of one."""
    return np.array([answer.heat.onto(like) for answer in forecasts if answer.heat is not None], np.float64)


def _hellinger(one: Floats, other: Floats) -> float:
    """How far two probability maps are apart, from 0 to 1."""
    return float(np.sqrt(((np.sqrt(one) - np.sqrt(other)) ** 2).sum() / 2))


def place(examined: Examination) -> Result:
    """Whether futures begin where the past ends."""
    examined.need_answers()
    # where the scale of a map is not known, metres fit nowhere
    readings: dict[str, Callable[[Floats, Scene], Floats]] = {
        "as they are": lambda at, scene: at,
        "(y, x)": lambda at, scene: at[..., ::-1],
        "displacements": lambda at, scene: at + scene.position,
        "shares of the map": lambda at, scene: at * scene.size,
        "metres": lambda at, scene: at / (scene.metres_per_pixel or np.nan),
        "displacements in metres": lambda at, scene: at / (scene.metres_per_pixel or np.nan) + scene.position,
    }
    advice = {
        "(y, x)": ("exchanged", "Exchange the two"),
        "displacements": ("displacements", "Add the last position of the past"),
        "shares of the map": ("shares", "Multiply x by the width and y by the height"),
        "metres": ("metres", "Divide by metres_per_pixel"),
        "displacements in metres": (
            "displacements_in_metres",
            "Divide by metres_per_pixel and add the last position of the past",
        ),
    }
    off: dict[str, list[float]] = {words: [] for words in readings}
    strides = dict.fromkeys(readings, 0.0)
    paces = 0.0
    for _, scene, answer in examined.answered:
        if isinstance(scene, Scene) and isinstance(answer, Forecast):
            pace = max(float(np.linalg.norm(np.diff(scene.past, axis=0), axis=1).mean()), 1.0)
            paces += pace
            start = np.broadcast_to(scene.position, (len(answer), 1, 2))
            for words, read in readings.items():
                path = np.concatenate([start, read(answer.futures.astype(np.float64), scene)], axis=1)
                hops = np.linalg.norm(np.diff(path, axis=1), axis=2)
                off[words].append(float(np.median(hops[:, 0])) / pace)
                strides[words] += float(np.median(hops.mean(1)))
    steps = {words: float(np.median(some)) for words, some in off.items()}
    own = steps.pop("as they are")
    fitting = [words for words, step in steps.items() if step < 0.35 * own and step < 4]
    examined.astray = own > 4
    if own > 4 and fitting:
        # small numbers, such as shares, fit as displacements too, of people who nearly stand: their pace tells, and of
        # metres only where it is twice as near, since people slow down
        unlike = {words: abs(float(np.log(max(strides[words], 1e-3) / paces))) for words in fitting}
        best = min(fitting, key=lambda words: unlike[words] + ("metres" in words) * np.log(2))
        kind, words = advice[best]
        return problem(
            f"coordinates.{kind}",
            f"the first position of a future is {own:.0f} steps from the last one of the past; read as {best} it is "
            f"{steps[best]:.1f}. {words}",
            steps=own,
            read=steps[best],
        )
    if own > 4:
        return problem(
            "coordinates.elsewhere",
            f"the first position of a future is {own:.0f} steps from the last one of the past: positions are pixels of "
            "the map given, not metres, and not of a crop or of the model's input",
            steps=own,
        )
    return ok("coordinates.ok", f"futures begin {own:.1f} steps from where the past ends", steps=own)


def samples(examined: Examination) -> Result:
    """Whether several futures are several. Who stands still may well go on so, and has one."""
    examined.need_answers()
    several = [(scene, answer) for _, scene, answer in examined.answered if isinstance(answer, Forecast)]
    several = [(scene, answer) for scene, answer in several if len(answer) > 1]
    if not several:
        raise Skip("each answer is one future")
    walking = [
        answer for scene, answer in several if isinstance(scene, Scene) and np.ptp(scene.past[-2:], axis=0).any()
    ]
    if not walking:
        raise Skip("everybody stands still at the end of the past")
    count = len(walking[0])
    if all(bool(np.ptp(answer.futures, axis=0).max() < 1e-3) for answer in walking):
        words = f"the {count} futures of an answer are all the same one: draw them, or return one"
        return warning("samples.same", words, futures=count)
    paths = [np.round(answer.futures, 3).reshape(len(answer), -1) for answer in walking]
    different = sorted(len(np.unique(each, axis=0)) for each in paths)
    usual = different[len(different) // 2]
    message = f"{count} different futures" if usual == count else f"{usual} of {count} futures are different"
    if fewer := sum(each < usual for each in different):
        message += f"; fewer in {fewer} of {len(different)} scenes, {different[0]} at the least"
    return ok("samples.ok", message, futures=count, different=usual, least=different[0], fewer=fewer)


def history(examined: Examination) -> Result:
    """Whether it matters where somebody came from."""
    examined.need_answers()
    scene = walk(80, 80, 0.0)
    back = replace(scene, past=2 * scene.position - scene.past)
    ahead, behind = _paths(examined, scene), _paths(examined, back)
    apart = float(np.linalg.norm(ahead.mean(0) - behind.mean(0), axis=1).max())
    chance = float(np.linalg.norm(ahead - ahead.mean(0), axis=2).max())
    if apart <= max(0.5 * PACE, chance):
        return warning(
            "past.ignored",
            "somebody who comes from the other side gets the same futures: the past is not looked at. See whether all "
            "of it is given to the model, and in the right order",
            apart=apart,
            chance=chance,
        )
    way = (ahead.mean(0)[-1] - scene.position) @ np.array([1.0, 0.0])
    if way < -PACE and (behind.mean(0)[-1] - scene.position)[0] > PACE:
        return problem(
            "past.reversed",
            "people walk back where they came from: the past is read from its end, the oldest comes first",
        )
    return ok("past.ok", "where somebody came from makes a difference", apart=apart, chance=chance)


AHEAD = (84, 20, 96, 60)
"""x0, y0, x1, y1 of the wall that the person of the first scene walks into."""


def map_read(examined: Examination) -> Result:
    """Whether a wall matters where it stands, or where it would stand on a map read in another way: to the futures, and
    where it does not to the probability map."""
    examined.need_answers()
    scene = walk(70, 40, 0.0)
    free = _forecasts(examined, scene)
    x0, y0, x1, y1 = AHEAD
    walls = {
        "": AHEAD,
        "with rows for columns": (y0, x0, y1, x1),
        "upside down": (x0, SIDE - y1, x1, SIDE - y0),
        "in a mirror": (SIDE - x1, y0, SIDE - x0, y1),
    }
    walled = {words: _forecasts(examined, _walled(scene, *wall)) for words, wall in walls.items()}
    by_futures = _futures_moved(free, walled).result()
    heat = free[0].heat
    if by_futures.state not in ("warning", "unsure") or heat is None:
        return by_futures
    by_heat = _heat_moved(free, walled, heat).result()
    return by_futures if by_heat.state == "warning" and by_futures.state == "unsure" else by_heat


@dataclass(frozen=True, slots=True)
class _Moved:
    """How far walls move an answer: the one ahead, that of those which would be ahead on a map read in another way that
    moves it most, and chance alone. What is not above `little` is no difference."""

    moved: str
    own: float
    others: Mapping[str, float]
    chance: float
    little: float
    pixels: bool
    nothing: str = ""

    def result(self) -> Result:
        reading = max(self.others, key=lambda words: self.others[words])
        worst = self.others[reading]
        own = f"a wall ahead moves {self.moved} {self._text(self.own)}"
        if worst > max(2 * self.own, 4 * self.little, self.chance):
            return problem(
                "map.misread",
                f"{own}, and one that would be ahead on a map read {reading} by {self._text(worst)}. scene.classes is "
                "(height, width): row y, column x",
                own=self.own,
                read=worst,
                reading=reading,
            )
        if self.own <= self.little:
            return warning(
                "map.ignored",
                f"a wall ahead, of the class {WALL}, makes no difference{self.nothing}: the system does not look at "
                "the map. If it should, see whether scene.classes gets to the model, and whether its classes are found "
                "by scene.names",
                own=self.own,
                chance=self.chance,
            )
        if self.own <= self.chance:
            words = f"{own}, and chance by {self._text(self.chance)}: too close to tell"
            return unsure("map.unsure", words, own=self.own, chance=self.chance)
        return ok("map.ok", f"{own}, one elsewhere by {self._text(worst)}", own=self.own, elsewhere=worst)

    def _text(self, far: float) -> str:
        return f"{far:.1f} px" if self.pixels else f"{far:.2f}"


def _futures_moved(free: Sequence[Forecast], walled: Mapping[str, Sequence[Forecast]]) -> _Moved:
    """By how many pixels the mean future goes elsewhere."""
    paths = _means(free)
    chance = float(np.linalg.norm(paths - paths.mean(0), axis=2).max())
    far = {
        words: float(np.linalg.norm(_means(answers).mean(0) - paths.mean(0), axis=1).max())
        for words, answers in walled.items()
    }
    return _Moved("the futures by", far.pop(""), far, chance, PACE / 2, pixels=True)


LITTLE = 0.05
"""A distance of probability maps that says nothing: they are rounded, or spread a little differently."""


def _heat_moved(free: Sequence[Forecast], walled: Mapping[str, Sequence[Forecast]], grid: HeatMap) -> _Moved:
    """How far the mean probability map is from the one without a wall, as a Hellinger distance."""
    maps = _heats(free, grid)
    mean = maps.mean(0)
    chance = max(_hellinger(each, mean) for each in maps)
    far = {}
    for words, answers in walled.items():
        heats = _heats(answers, grid)
        far[words] = _hellinger(heats.mean(0), mean) if len(heats) else 0.0
    moved, neither = "the probability map by a Hellinger distance of", " to the futures or to the probability map"
    return _Moved(moved, far.pop(""), far, chance, LITTLE, pixels=False, nothing=neither)


_READINGS: Mapping[str, Callable[[Floats], Floats]] = {
    "": lambda cells: cells,
    "with rows for columns": np.transpose,
    "upside down": np.flipud,
    "in a mirror": np.fliplr,
    "turned by half": lambda cells: cells[::-1, ::-1],
    "turned by a quarter to the right": lambda cells: np.rot90(cells, -1),
    "turned by a quarter to the left": np.rot90,
    "with rows for columns and turned by half": lambda cells: cells.T[::-1, ::-1],
}
EVEN = 48
"""So many points across and down stand for a map that is the same everywhere."""


def map_place(examined: Examination) -> Result:
    """Whether the probability map lies where the futures go, or would if its cells were read in another way."""
    examined.need_answers()
    if examined.astray:
        raise Skip("the futures themselves lie elsewhere")
    answered: list[tuple[Scene, Output | Exception]] = [
        (scene, answer) for _, scene, answer in examined.answered if isinstance(scene, Scene)
    ]
    made = [scene for _, scene in SCENES if all(scene is not other for other, _ in answered)]
    answered += [(scene, examined.one(scene)) for scene in made]
    far: dict[str, list[float]] = {words: [] for words in _READINGS}
    even = []
    for scene, answer in answered:
        if isinstance(answer, Forecast) and answer.heat is not None:
            futures = KDTree(np.concatenate([scene.position[None], answer.futures.reshape(-1, 2)]))
            box = answer.heat.warp.boxes([0, 0, *answer.heat.size])
            even.append(_away(futures, np.ones((EVEN, EVEN)), np.array([0, 0, *scene.size])))
            for words, read in _READINGS.items():
                far[words].append(_away(futures, read(answer.heat.cells), box))
    if not even:
        raise Skip("there is no probability map")
    shares = {words: float(np.mean(np.divide(some, even))) for words, some in far.items()}
    own = shares.pop("")
    best = min(shares, key=lambda words: shares[words])
    figures = {"pixels": np.mean(far[""]), "even": np.mean(even)}
    away = f"the probability map lies {np.mean(far['']):.0f} px from the futures in the mean"
    if own > max(4 * shares[best], FAR_SHARE / 3):
        return problem(
            "probability.misread",
            f"{away}; read {best} it is {np.mean(far[best]):.0f} px. A probability map is (height, width): row y, "
            "column x, from the upper left corner",
            reading=best,
            read=np.mean(far[best]),
            **figures,
        )
    if own > FAR_SHARE:
        accuse = warning if own > 0.9 else unsure
        return accuse(
            "probability.elsewhere",
            f"{away}, and one that is the same everywhere {np.mean(even):.0f} px: it hardly says where somebody "
            "goes, or its cells lie elsewhere. They cover the whole map, or the box that is given (x0, y0, x1, y1)",
            **figures,
        )
    return ok("probability.ok", f"{away}, one that is the same everywhere {np.mean(even):.0f} px", **figures)


FAR_SHARE = 0.4
"""From this share of the distance of an even map on, a map may lie elsewhere; those of predictors that are right are
at a quarter at most. Another reading that fits much better tells earlier."""


def _away(futures: KDTree, cells: Floats, box: Floats) -> float:
    """How far the cells (h, w) of a box are from the nearest position of a future, in the mean by their weights."""
    rows, columns = np.nonzero(cells)
    weights = cells[rows, columns]
    x0, y0, x1, y1 = box
    x = x0 + (columns + 0.5) / cells.shape[1] * (x1 - x0)
    y = y0 + (rows + 0.5) / cells.shape[0] * (y1 - y0)
    return float(np.average(futures.query(np.stack([x, y], -1))[0], weights=weights))
