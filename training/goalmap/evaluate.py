"""How good goalmap is: on simulated walkers it was not trained on, and on SDD where that is at hand.

    PYTHONPATH=src python -m training.goalmap.evaluate [--model goalmap.onnx] [--cases 2000] [--markdown FILE]

Prints markdown tables, and one JSON object as the last line. The network is used through Instar's adapter.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from instar.outputs.forecast import Forecast
from instar.outputs.heat import HeatMap
from instar.scene import Scene
from instar.systems.system import System
from instar.tasks.traj_test.goalmap import FAMILIES
from training.goalmap import simulate

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Predictor = Callable[[Scene, int], Forecast]

HOLD_OUT = 20_000_000
TUNING = 0
"""Worlds of these numbers on: never seen in training or validation, and those of training."""
PIXELS = 4
"""Side of a simulated cell in pixels of a scene: maps have 672 to 1024 pixels along a side."""
PER_WORLD = 25
K = 20
MARGIN = 0.1
LEAST_MASS = 0.001
SDD = Path(__file__).resolve().parents[3] / "shared" / "data" / "sdd"
CLASS_RULES = (
    ("pavement", "road", "decrease"),
    ("terrain", "road", "decrease"),
    ("road", "pavement", "increase"),
    ("road", "terrain", "increase"),
    ("terrain", "pavement", "increase"),
    ("pavement", "terrain", "decrease"),
    *((old, new, "avoid") for old in ("pavement", "road", "terrain") for new in ("structure", "tree")),
    *((old, new, "increase") for old in ("structure", "tree") for new in ("pavement", "road", "terrain")),
)


@dataclass(frozen=True)
class Example:
    scene: Scene
    truth: Floats


# --- cases -----------------------------------------------------------------------------------------


def simulated(first: int, count: int) -> list[Example]:
    """Simulated cases with a whole past and 12 steps to go, at most 25 of each world."""

    def all_worlds() -> Iterator[Example]:
        for seed in range(first, first + count):
            rng = np.random.default_rng(seed)
            found = [case for case in simulate.cases(seed, steps=12) if len(case.past) == simulate.PAST]
            for number in rng.permutation(len(found))[:PER_WORLD]:
                case = found[number]
                classes = np.repeat(np.repeat(case.classes, PIXELS, 0), PIXELS, 1)
                scene = Scene(classes, simulate.NAMES, case.past * float(PIXELS), 12)
                yield Example(scene, case.futures[0].astype(np.float64) * PIXELS)

    return list(islice(all_worlds(), count))


def real(count: int) -> list[Example]:
    """Cases of the Stanford Drone Dataset, spread over its scenes; none where it is not at hand."""
    if not (SDD / "trajectories.npz").is_file():
        return []
    found = []
    with np.load(SDD / "trajectories.npz", allow_pickle=False) as tracks:
        for name in sorted(tracks.files):
            classes = cv2.imread(str(SDD / "maps" / f"{name}.png"), cv2.IMREAD_UNCHANGED)
            found += [
                Example(Scene(classes, simulate.NAMES, track[:8], 12), track[8:].astype(np.float64))
                for track in tracks[name]
            ]
    order = np.random.default_rng(0).permutation(len(found))[:count]
    return [found[number] for number in order]


# --- the baseline ----------------------------------------------------------------------------------


def constant_velocity(heading: float, speed: float) -> Predictor:
    """Straight on at the mean velocity of the last three steps, with errors of heading (radians) and speed (share)."""

    def predict(scene: Scene, seed: int) -> Forecast:
        rng = np.random.default_rng(seed)
        velocity = (scene.past[-1] - scene.past[-4]) / 3
        angle, factor = rng.normal(0, heading, K), 1 + rng.normal(0, speed, K)
        c, s = np.cos(angle) * factor, np.sin(angle) * factor
        turned = np.stack([c * velocity[0] - s * velocity[1], s * velocity[0] + c * velocity[1]], 1)
        return Forecast.from_array(scene.position + turned[:, None] * np.arange(1, scene.steps + 1)[:, None])

    return predict


def tuned(examples: Sequence[Example]) -> tuple[float, float]:
    """The errors that make constant velocity best in the best of 20."""
    grid = [
        (math.radians(heading), speed)
        for heading in (5, 10, 15, 20, 25, 30, 40, 50)
        for speed in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    ]
    return min(grid, key=lambda pair: errors(constant_velocity(*pair), examples)["best ADE"])


def errors(predict: Predictor, examples: Sequence[Example]) -> dict[str, float]:
    """Best-of-20 and mean average and final displacement, in pixels."""
    rows = []
    for number, example in enumerate(examples):
        away = np.linalg.norm(predict(example.scene, number).futures - example.truth, axis=-1)
        rows.append([away.mean(1).min(), away[:, -1].min(), away.mean(), away[:, -1].mean()])
    return dict(zip(("best ADE", "best FDE", "mean ADE", "mean FDE"), np.mean(rows, 0).tolist(), strict=True))


# --- rules -----------------------------------------------------------------------------------------


def obstacle(scene: Scene, source: Forecast, name: str, size: float, distance: float) -> tuple[Scene, Bools] | None:
    """The scene with a 12-gon on the medoid of the source's futures, and its cells; None where it cannot stand."""
    path = np.concatenate([scene.position[None], source.medoid])
    walked = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    length = float(walked[-1])
    if length < 4:
        return None
    centre = np.array([np.interp(distance * length, walked, path[:, axis]) for axis in (0, 1)])
    radius = size * length / 2
    if np.linalg.norm(scene.position - centre) <= radius:
        return None
    mask = _twelve_gon(centre, radius, scene.size) & ~scene.mask(name)
    return (_filled(scene, mask, name), mask) if mask.any() else None


def _twelve_gon(centre: Floats, radius: float, size: tuple[int, int]) -> Bools:
    mask = np.zeros(size[::-1], bool)
    (left, top), (right, bottom) = (
        np.clip(np.floor(centre + radius * sign + (sign > 0)), 0, size).astype(int) for sign in (-1, 1)
    )
    y, x = np.mgrid[top:bottom, left:right] + 0.5
    part = np.ones(x.shape, bool)
    for side in range(12):
        angle = side * math.pi / 6
        part &= (x - centre[0]) * math.cos(angle) + (y - centre[1]) * math.sin(angle) <= radius * math.cos(math.pi / 12)
    mask[top:bottom, left:right] = part
    return mask


def _filled(scene: Scene, mask: Bools, name: str) -> Scene:
    return replace(scene, classes=np.where(mask, np.uint8(scene.names.index(name)), scene.classes))


def outcome(scene: Scene, before: Forecast, after: Forecast, mask: Bools, effect: str) -> str:
    """confirmed, inconclusive, wrong way; for `avoid` also crossing."""
    if effect == "avoid" and crosses(scene, after, mask):
        return "crossing"
    assert before.heat is not None and after.heat is not None
    ratio = math.log((mass(after.heat, mask) + LEAST_MASS) / (mass(before.heat, mask) + LEAST_MASS))
    right = ratio if effect == "increase" else -ratio
    return "confirmed" if right >= MARGIN else "wrong way" if right <= -MARGIN else "inconclusive"


def mass(heat: HeatMap, mask: Bools) -> float:
    return float((heat.cells * heat.share(mask)).sum())


def crosses(scene: Scene, forecast: Forecast, mask: Bools) -> bool:
    futures = forecast.futures.astype(np.float64)
    paths = np.concatenate([np.broadcast_to(scene.position, (len(futures), 1, 2)), futures], 1)
    step = np.diff(paths, axis=1)
    parts = np.linspace(0, 1, math.ceil(float(np.linalg.norm(step, axis=-1).max()) / 0.5) + 2)
    return bool(_at(mask, paths[:, :-1, None] + step[:, :, None] * parts[:, None]).any())


def _at(mask: Bools, points: Floats) -> Bools:
    height, width = mask.shape
    column, line = np.floor(points[..., 0]).astype(int), np.floor(points[..., 1]).astype(int)
    there = (column >= 0) & (column < width) & (line >= 0) & (line < height)
    return np.asarray(mask[line.clip(0, height - 1), column.clip(0, width - 1)] & there)


def obstacle_rules(predict: Predictor, examples: Sequence[Example]) -> dict[str, Counter[str]]:
    """One rule per case, in turn: class, size and distance."""
    rules = list(product(("structure", "tree"), (0.25, 0.5), (0.5, 1.0)))
    found: dict[str, Counter[str]] = {}
    for number, example in enumerate(examples):
        name, size, distance = rules[number % len(rules)]
        source = predict(example.scene, number)
        placed = obstacle(example.scene, source, name, size, distance)
        if placed is not None:
            said = outcome(example.scene, source, predict(placed[0], number + 1), placed[1], "avoid")
            found.setdefault(f"size {size}, distance {distance}", Counter())[said] += 1
    return dict(sorted(found.items()))


def class_rules(predict: Predictor, examples: Sequence[Example]) -> dict[str, Counter[str]]:
    """One rule per case, in turn; those whose class the map has, and `avoid` where the person does not stand on it."""
    found: dict[str, Counter[str]] = {}
    for number, example in enumerate(examples):
        scene = example.scene
        old, new, effect = CLASS_RULES[number % len(CLASS_RULES)]
        mask = scene.mask(old)
        if not mask.any() or (effect == "avoid" and _at(mask, scene.position[None])[0]):
            continue
        source = predict(scene, number)
        assert source.heat is not None
        if mass(source.heat, mask) < 0.01 and effect != "increase":
            continue  # nothing there that could fall
        said = outcome(scene, source, predict(_filled(scene, mask, new), number + 1), mask, effect)
        found.setdefault(effect, Counter())[said] += 1
    return dict(sorted(found.items()))


# --- the report ------------------------------------------------------------------------------------


def errors_table(title: str, rows: dict[str, dict[str, float]]) -> str:
    columns = list(next(iter(rows.values())))
    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += [
        f"| {name} | " + " | ".join(f"{row[column]:.2f}" for column in columns) + " |" for name, row in rows.items()
    ]
    return "\n".join(lines)


def rules_table(title: str, rows: dict[str, Counter[str]]) -> str:
    kinds = ("confirmed", "inconclusive", "wrong way", "crossing")
    lines = [f"| {title} | cases | " + " | ".join(kinds) + " |", "|---|" + "---:|" * (len(kinds) + 1)]
    for name, counts in [*rows.items(), ("all", _total(rows))]:
        total = counts.total()
        shares = " | ".join(f"{100 * counts[kind] / max(total, 1):.1f} %" for kind in kinds)
        lines.append(f"| {name} | {total:,} | {shares} |")
    return "\n".join(lines)


def _total(rows: dict[str, Counter[str]]) -> Counter[str]:
    return sum(rows.values(), Counter())


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {name: round(count / counts.total(), 4) for name, count in counts.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m training.goalmap.evaluate")
    parser.add_argument("--model", help="an .onnx file, if not the one in Instar")
    parser.add_argument("--cases", type=int, default=2000, help="simulated cases")
    parser.add_argument("--sdd", type=int, default=1000, help="cases of SDD")
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    options = parser.parse_args(arguments)
    system: System = FAMILIES[0].build("goalmap", samples=K, model=options.model)

    def goalmap(scene: Scene, seed: int) -> Forecast:
        answer = system.answer([scene], [seed])[0]
        if not isinstance(answer, Forecast):
            raise TypeError(f"goalmap answered {answer!r}")
        return answer

    straight = tuned(simulated(TUNING, 400))
    predictors = {"goalmap": goalmap, "constant velocity": constant_velocity(*straight)}
    examples = simulated(HOLD_OUT, options.cases)
    pace = float(np.mean([np.linalg.norm(np.diff(one.scene.past, axis=0), axis=1).mean() for one in examples]))
    begin = time.perf_counter()
    goalmap(examples[0].scene, 0)
    held = {name: errors(predict, examples) for name, predict in predictors.items()}
    cost = (time.perf_counter() - begin) / len(examples)
    obstacles, changes = obstacle_rules(goalmap, examples), class_rules(goalmap, examples)
    tables = [
        errors_table(f"simulated hold-out, {len(examples):,} cases, pixels (a step is {pace:.0f})", held),
        rules_table("an obstacle on the predicted path", obstacles),
        rules_table("a class changed", changes),
    ]
    facts: dict[str, object] = {
        "cases": len(examples),
        "hold_out": held,
        "obstacle_rules": _shares(_total(obstacles)),
        "class_rules": _shares(_total(changes)),
        "ms_per_case": round(1000 * cost, 1),
        "noise": straight,
        "fingerprint": system.fingerprint,
    }
    if people := real(options.sdd):
        rows = {name: errors(predict, people) for name, predict in predictors.items()}
        tables.append(errors_table(f"SDD, {len(people):,} cases, pixels", rows))
        facts["sdd"] = rows
    text = "\n\n".join(tables)
    print(text + "\n")
    if options.markdown:
        options.markdown.write_text(text + "\n", "utf-8")
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
