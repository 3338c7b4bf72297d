"""Trainers: who turns a training set into weights, and weights into a system.

A trainer is a plain function in a module of yours,

    def train(dataset_folder: Path, out: Path, *, seed: int, start: Path | None) -> Path

which trains on an exported folder, writes what it likes into the folder `out` and returns the weights; and, in the
same module, a function `detector(weights)` that returns a System, or a function from an (H, W, 3) array to Detections.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from instar.files import place_file
from instar.outputs.detections import Detections
from instar.registry import loaded_object
from instar.spelling import unknown
from instar.systems import System, fingerprint_of, from_function, hash_file

REFERENCE = "reference"
"""The built-in trainer's name."""
_BUILT_IN = {REFERENCE: "instar.tasks.object_relevance.repair.reference:train"}

_DONE = "trained.json"


@dataclass(frozen=True, slots=True, eq=False)
class Trainer:
    """`train` as above; `detector` makes a system of its weights."""

    name: str
    train: Callable[..., Path]
    detector: Callable[[Path], System | Callable[..., object]]

    def system(self, weights: Path) -> System:
        made = self.detector(weights)
        system = made if isinstance(made, System) else _with_weights(from_function(made, self.name), weights)
        if system.kind != Detections.kind:
            raise ValueError(f"{self.name}: its detector answers with {system.kind}, a repair needs detections")
        return system


def _with_weights(system: System, weights: Path) -> System:
    """A function's module is the same whatever the weights; runs must be able to tell them apart."""
    content = hash_file(str(weights)) if weights.is_file() else str(weights)
    return replace(
        system, name=f"{system.name}({str(weights)!r})", fingerprint=fingerprint_of(system.fingerprint, content)
    )


def trainer(spelling: str = REFERENCE) -> Trainer:
    """The built-in trainer `reference`, or the function or Trainer that `package.module:object` names."""
    if spelling not in _BUILT_IN and ":" not in spelling:
        raise unknown("trainer", spelling, _BUILT_IN, see="Yours is written package.module:function.")
    place = _BUILT_IN.get(spelling, spelling)
    train = loaded_object(place)
    if isinstance(train, Trainer):
        return train
    if not callable(train):
        raise TypeError(f"{spelling} is a {type(train).__name__}, not a function or a Trainer")
    module, _, name = place.partition(":")
    beside = getattr(sys.modules[module], "detector", None)
    if not callable(beside):
        raise TypeError(
            f"{module} has no function detector(weights) beside {name}; it makes a system of what was trained"
        )
    return Trainer(spelling, train, beside)


def trained(by: Trainer, folder: Path, out: Path, *, seed: int, start: Path | None = None) -> Path:
    """The weights of a training, which is done only if it was not finished before."""
    done = out / _DONE
    if done.is_file():
        finished = out / str(json.loads(done.read_text("utf-8"))["weights"])
        if finished.exists():
            return finished
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    weights = Path(by.train(folder, out, seed=seed, start=start))
    if not weights.exists():
        raise FileNotFoundError(f"{by.name} returned {weights}, which is not there")
    inside = weights.relative_to(out) if weights.is_relative_to(out) else weights.absolute()
    record = json.dumps(
        {"weights": str(inside), "trainer": by.name, "seed": seed, "seconds": round(time.monotonic() - begun, 1)}
    )
    place_file(done, record.encode("utf-8"))
    return weights


def seconds(out: Path) -> float:
    """How long a finished training took."""
    return float(json.loads((out / _DONE).read_text("utf-8"))["seconds"])
