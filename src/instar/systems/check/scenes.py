"""Is the adapter of a predictor right? Questions about scenes with known answers, on maps that are made here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from instar.outputs.forecast import Forecast
from instar.scene import Scene
from instar.systems.check.examination import Examination, Floats, Skip, State

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


def _paths(examined: Examination, scene: Scene, seeds: Sequence[int] = SEEDS) -> Floats:
    """The mean future (T, 2) of each seed."""
    means = []
    for seed in seeds:
        answer = examined.ask([scene], seed)[0]
        if isinstance(answer, Forecast):
            means.append(answer.futures.astype(np.float64).mean(0))
    if not means:
        raise Skip("the scene was not answered")
    return np.stack(means)


def place(examined: Examination) -> tuple[State, str]:
    """Whether futures begin where the past ends."""
    examined.need_answers()
    readings: dict[str, Callable[[Floats, Scene], Floats]] = {
        "as they are": lambda at, scene: at,
        "(y, x)": lambda at, scene: at[..., ::-1],
        "displacements": lambda at, scene: at + scene.position,
        "shares of the map": lambda at, scene: at * scene.size,
        "metres": lambda at, scene: at / (scene.metres_per_pixel or np.inf),
    }
    advice = {
        "(y, x)": "Exchange the two",
        "displacements": "Add the last position of the past",
        "shares of the map": "Multiply x by the width and y by the height",
        "metres": "Divide by metres_per_pixel",
    }
    off: dict[str, list[float]] = {words: [] for words in readings}
    for _, scene, answer in examined.answered:
        if isinstance(scene, Scene) and isinstance(answer, Forecast):
            pace = max(float(np.linalg.norm(np.diff(scene.past, axis=0), axis=1).mean()), 1.0)
            first = answer.futures[:, 0].astype(np.float64)
            for words, read in readings.items():
                off[words].append(float(np.median(np.linalg.norm(read(first, scene) - scene.position, axis=1))) / pace)
    steps = {words: float(np.median(some)) for words, some in off.items()}
    own = steps.pop("as they are")
    best = min(steps, key=lambda words: steps[words])
    if own > 4 and steps[best] < 0.35 * own and steps[best] < 4:
        return "problem", (
            f"the first position of a future is {own:.0f} steps from the last one of the past; read as {best} it is "
            f"{steps[best]:.1f}. {advice[best]}"
        )
    if own > 4:
        return "problem", (
            f"the first position of a future is {own:.0f} steps from the last one of the past: positions are pixels of "
            "the map given, not of a crop or of the model's input"
        )
    return "ok", f"futures begin {own:.1f} steps from where the past ends"


def samples(examined: Examination) -> tuple[State, str]:
    """Whether several futures are several."""
    examined.need_answers()
    forecasts = [answer for _, _, answer in examined.answered if isinstance(answer, Forecast) and len(answer) > 1]
    if not forecasts:
        raise Skip("each answer is one future")
    alike = [bool(np.ptp(answer.futures, axis=0).max() < 1e-3) for answer in forecasts]
    if all(alike):
        return "warning", f"the {len(forecasts[0])} futures of an answer are all the same one: draw them, or return one"
    count = len(forecasts[0])
    paths = [np.round(answer.futures, 3).reshape(len(answer), -1) for answer in forecasts]
    different = min(len(np.unique(each, axis=0)) for each in paths)
    return "ok", f"{count} different futures" if different == count else f"{different} of {count} futures are different"


def history(examined: Examination) -> tuple[State, str]:
    """Whether it matters where somebody came from."""
    examined.need_answers()
    scene = walk(80, 80, 0.0)
    back = replace(scene, past=2 * scene.position - scene.past)
    ahead, behind = _paths(examined, scene), _paths(examined, back)
    apart = float(np.linalg.norm(ahead.mean(0) - behind.mean(0), axis=1).max())
    chance = float(np.linalg.norm(ahead - ahead.mean(0), axis=2).max())
    if apart <= max(0.5 * PACE, chance):
        return "warning", (
            "somebody who comes from the other side gets the same futures: the past is not looked at. See whether all "
            "of it is given to the model, and in the right order"
        )
    way = (ahead.mean(0)[-1] - scene.position) @ np.array([1.0, 0.0])
    if way < -PACE and (behind.mean(0)[-1] - scene.position)[0] > PACE:
        return (
            "problem",
            "people walk back where they came from: the past is read from its end, the oldest comes first",
        )
    return "ok", "where somebody came from makes a difference"


def map_read(examined: Examination) -> tuple[State, str]:
    """Whether a wall matters where it stands, or where it would stand on a map read in another way."""
    examined.need_answers()
    scene = walk(70, 40, 0.0)
    free = _paths(examined, scene)
    chance = float(np.linalg.norm(free - free.mean(0), axis=2).max())
    x0, y0, x1, y1 = 84, 20, 96, 60
    walls = {
        "": (x0, y0, x1, y1),
        "with rows for columns": (y0, x0, y1, x1),
        "upside down": (x0, SIDE - y1, x1, SIDE - y0),
        "in a mirror": (SIDE - x1, y0, SIDE - x0, y1),
    }
    moved = {
        words: float(np.linalg.norm(_paths(examined, _walled(scene, *wall)).mean(0) - free.mean(0), axis=1).max())
        for words, wall in walls.items()
    }
    own = moved.pop("")
    worst = max(moved, key=lambda words: moved[words])
    if moved[worst] > max(2 * own, 2 * PACE, chance):
        return "problem", (
            f"a wall ahead moves the futures by {own:.1f} px, and one that would be ahead on a map read {worst} by "
            f"{moved[worst]:.1f} px. scene.classes is (height, width): row y, column x"
        )
    if own <= PACE / 2:
        return "warning", (
            f"a wall ahead, of the class {WALL}, makes no difference: the system does not look at the map. If it "
            "should, see whether scene.classes gets to the model, and whether its classes are found by scene.names"
        )
    if own <= chance:
        return (
            "unsure",
            f"a wall ahead moves the futures by {own:.1f} px, and chance by {chance:.1f} px: too close to tell",
        )
    return "ok", f"a wall ahead moves the futures by {own:.1f} px, one elsewhere by {moved[worst]:.1f} px"
