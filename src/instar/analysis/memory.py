"""Memory: whether a system answers from what it was asked before, told without labels from the order of asking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.engine import DEFAULT, SOURCE, Key, Order, make_plan
from instar.outputs import output_kind
from instar.stats import randomisation_test
from instar.store import KEY, of_cases

if TYPE_CHECKING:
    from instar.analysis.run import Run

CASES = 100
"""How many cases are looked at; they tell memory from chance long before."""
LEAST = 3
LEVEL = 0.005
"""From which p on it is said: a system with noise alone is told so once in 200 runs."""
ORDERS = 300
"""How many other orders stand for all that the seed could have drawn."""
FAR = 1e6
"""How far apart answers are that cannot be compared: nothing found, and something."""

FIRST: Key = (SOURCE, 0, 0)
IDENTITY: Key = ("identity", 0, 0)

Answer = tuple[npt.NDArray[np.float64] | str, ...]
Distances = Mapping[Key, float]
Before = tuple[Key | None, Key | None]
"""What was asked just before the source, and just before identity; None: another case."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Of the `cases` whose unchanged input was answered in two ways, in how many both answers lean towards those just
    before them; and `p`, how often chance alone would have it so."""

    leaning: int
    cases: int
    p: float


def remembered(run: Run, judging: str = DEFAULT) -> Memory | None:
    """The evidence that the system answers from its memory of the input before; None where nothing speaks for it."""
    return run.cached(("memory", judging), lambda: _tested(run, judging))


def _tested(run: Run, judging: str) -> Memory | None:
    """The test of a system's memory.

    Source and `identity` are the same input, asked at places that the seed drew. A system without memory cannot know
    them, so that whatever tells its two answers apart is independent of what was asked before each. The test compares
    how far each answer leans towards the answer just before it with the same for other orders that could have been
    drawn: it needs neither a label nor a second prediction.
    """
    manifest = run.manifest
    cases = _differing(run, judging)[:CASES]
    if len(cases) < LEAST or manifest.recorded is not None:
        return None
    plan = make_plan(run.bound_rules(), seed=manifest.seed, deterministic=manifest.system.deterministic)
    order = Order(plan, manifest.system.kind)
    possible = [_before(order(str(number))) for number in range(ORDERS)]
    actual, others = [], []
    for case, (to_source, to_identity) in _distances(run, cases).items():
        actual.append(_lean(to_source, to_identity, _before(order(case))))
        others.append([_lean(to_source, to_identity, before) for before in possible])
    p = randomisation_test(actual, others) if actual else 1.0
    return Memory(sum(lean > 0 for lean in actual), len(actual), p) if p <= LEVEL else None


def _differing(run: Run, judging: str) -> list[str]:
    """The cases whose unchanged input was answered in two ways."""
    identity = run.noise(judging)["rule"].to_list()
    matrix = run.severities(judging).only(identity)
    return matrix.cases.filter(pl.Series((matrix.severity > 0).any(0), dtype=pl.Boolean)).drop_nulls().to_list()


def _before(keys: tuple[Key, ...]) -> Before:
    def before(key: Key) -> Key | None:
        place = keys.index(key)
        return keys[place - 1] if place else None

    return before(FIRST), before(IDENTITY)


def _lean(to_source: Distances, to_identity: Distances, before: Before) -> float:
    """How much nearer either answer is to the one just before it than the other answer is: −1 to 1, in distances
    between the two."""
    between, nearer = to_source[IDENTITY], 0.0
    for key, own, other in ((before[0], to_source, to_identity), (before[1], to_identity, to_source)):
        if between and key is not None and key in own and key not in (FIRST, IDENTITY):
            nearer += float(np.clip((other[key] - own[key]) / between, -1, 1)) / 2
    return nearer


def _distances(run: Run, cases: list[str]) -> dict[str, tuple[Distances, Distances]]:
    """For each case how far every answer is from that to the source, and from that to identity."""
    manifest = run.manifest
    kind = output_kind(manifest.system.kind)
    columns = [name for name in kind.columns if name not in kind.apart]
    known = of_cases(pl.Series(cases, dtype=pl.String)) & (pl.col("status") == "ok")
    rows = run.store.predictions(None if kind.has_marks else [*KEY, *columns], where=known)
    subjects = kind.subjects(rows, manifest.header) if kind.has_marks else None
    answers: list[Answer]
    if subjects is None:
        answers = [tuple(map(_leaf, row)) for row in rows.select(columns).iter_rows()]
    else:
        boxes = {
            number: part.select("x0", "y0", "x1", "y1").to_numpy()
            for (number,), part in subjects.group_by("row", maintain_order=True)
        }
        answers = [(boxes.get(number, np.zeros((0, 4))),) for number in range(rows.height)]
    by_case: dict[str, dict[Key, Answer]] = {}
    for (case, *key), answer in zip(rows.select(KEY).iter_rows(), answers, strict=True):
        by_case.setdefault(case, {})[key[0], key[1], key[2]] = answer
    pairs = {case: (own.get(FIRST), own.get(IDENTITY), own) for case, own in by_case.items()}
    return {
        case: (
            {key: _distance(answer, source) for key, answer in own.items()},
            {key: _distance(answer, identity) for key, answer in own.items()},
        )
        for case, (source, identity, own) in pairs.items()
        if source is not None and identity is not None
    }


def _leaf(value: object) -> npt.NDArray[np.float64] | str:
    """A column's value as numbers, else as text."""
    try:
        return np.nan_to_num(np.asarray(value, np.float64)).reshape(-1, 1)
    except (TypeError, ValueError):
        return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _distance(first: Answer, second: Answer) -> float:
    return sum(map(_apart, first, second))


def _apart(first: npt.NDArray[np.float64] | str, second: npt.NDArray[np.float64] | str) -> float:
    """Sets of boxes by the nearest of the other set, numbers one by one, texts by the words that only one has."""
    if isinstance(first, str) or isinstance(second, str):
        one, other = set(str(first).split()), set(str(second).split())
        return len(one ^ other) / max(1, len(one | other))
    if not len(first) or not len(second):
        return FAR * (len(first) != len(second))
    if first.shape[1] == 1:
        return float(np.abs(first - second).mean()) if first.shape == second.shape else FAR
    between = np.abs(first[:, None] - second[None]).sum(-1)
    return float(between.min(0).mean() + between.min(1).mean())
