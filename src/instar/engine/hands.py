"""Who works on a run: workers that make follow-ups and predict them, or makers and predictors."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from instar.engine.crew import CaseWork
from instar.engine.messages import Setup, WorkerInfo
from instar.engine.process import Here, Process, Site, greeted, launched, start
from instar.engine.ray_site import RaySite
from instar.engine.split import TRAY_INPUTS, Trays, TrayWork
from instar.engine.worker import Worker

LOCAL, RAY = "local", "ray"
"""The engines: processes of this machine, and actors of a Ray cluster."""


def refuse_engine(engine: str, address: str | None, workers: int | None, predictors: int | None) -> None:
    """Raise ValueError where what was asked for does not go together."""
    if engine not in (LOCAL, RAY):
        raise ValueError(f"engine is {engine!r}; allowed are: {LOCAL}, {RAY}")
    if engine == LOCAL:
        if address is not None:
            raise ValueError(f"an address is of a Ray cluster; give `engine` {RAY}, or leave out `address`")
    elif workers == 0:
        raise ValueError(f"0 workers work in this process; give `workers` for the engine {RAY}, or leave it out")
    elif predictors:
        raise ValueError(
            f"predictors share memory with workers of the same machine; with the engine {RAY} every worker holds the "
            "system: leave out `predictors`"
        )


@dataclass(frozen=True, slots=True)
class Hands:
    """Processes that are started already, and how many there may be of each kind."""

    site: Site
    setup: Setup
    workers: Sequence[Process[CaseWork]]
    predictor: Setup | None = None
    predictors: Sequence[Process[TrayWork]] = ()
    trays: Trays | None = None


def enlisted(stack: ExitStack, setup: Setup, workers: int, predictors: int | None) -> tuple[Hands | Worker, WorkerInfo]:
    """Whoever works, and what they loaded. `predictors` is how many processes hold the system: one for each GPU where
    it says that it lives on one, and otherwise each worker holds its own. One that takes tensors of a GPU has a worker
    for each. They end with the stack."""
    if not workers:
        if predictors:
            raise ValueError("predictors are processes of their own, and there are none without workers; give workers")
        worker = Worker(setup)
        return worker, worker.info()
    if predictors is None:
        gpus = visible_gpus()
        loaded = _own_words(setup) if gpus else None
        on_gpu = loaded is not None and loaded.device.startswith("cuda")
        predictors = len(gpus) if on_gpu else 0
        if loaded is not None and on_gpu and loaded.takes_tensors:  # it makes its follow-ups where it predicts them
            processes = [_kept(stack, start(replace(setup, environment=_gpu(gpus, n)))) for n in range(len(gpus))]
            return Hands(Here(), setup, processes), greeted(processes[0])
    if predictors:
        return _split(stack, setup, workers, predictors)
    processes = [_kept(stack, start(setup)) for _ in range(workers)]
    return Hands(Here(), setup, processes), greeted(processes[0])


def enlisted_on(site: RaySite, stack: ExitStack, setup: Setup) -> tuple[Hands, WorkerInfo]:
    """Whoever works in a cluster: one at first, which says what the system is and whether it lives on a GPU. The others
    follow while there is work for them."""
    first = _kept(stack, site.start(setup))
    info = greeted(first)
    if site.gpus and not info.device.startswith("cuda"):
        first.kill()
        site.close()
        site.gpus = 0
        first = _kept(stack, site.start(setup))
        info = greeted(first)
    return Hands(site, setup, [first]), info


def _own_words(setup: Setup) -> WorkerInfo:
    """What the system says of itself, asked of one process, which ends again: many copies of a model that is made for
    one GPU might not fit into it."""
    process = start(replace(setup, role="predictor", providers={}, code=()))
    try:
        return greeted(process)
    finally:
        process.kill()


def _split(stack: ExitStack, setup: Setup, workers: int, predictors: int) -> tuple[Hands, WorkerInfo]:
    trays = Trays(workers, predictors)
    stack.callback(trays.close)
    gpus = visible_gpus()
    predictor = replace(setup, role="predictor", providers={}, code=(), trays=trays.descriptors)
    holders = [_kept(stack, start(replace(predictor, environment=_gpu(gpus, number)))) for number in range(predictors)]
    maker = replace(setup, role="maker", system=None, trays=trays.descriptors)
    makers = [_kept(stack, launched(maker)) for _ in range(workers)]  # they start while the system is loaded
    system = greeted(holders[0])
    maker = replace(maker, answers=system.system, tray_inputs=max(TRAY_INPUTS, system.batch))
    for process in makers:
        process.load(maker)
    other = greeted(makers[0])
    info = replace(system, providers=other.providers, code=other.code, files={**other.files, **system.files})
    return Hands(Here(), maker, makers, predictor, holders, trays), info


def _kept(stack: ExitStack, process: Process[Any]) -> Process[Any]:
    stack.callback(process.kill)
    return process


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [one.strip() for one in named.split(",") if one.strip() not in ("", "-1")]
    devices = (re.fullmatch(r"nvidia(\d+)", path.name) for path in Path("/dev").glob("nvidia*"))
    return sorted((match[1] for match in devices if match), key=int)


def _gpu(gpus: Sequence[str], number: int) -> dict[str, str]:
    """The environment of a predictor: one GPU each, in turn."""
    return {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]} if len(gpus) > 1 else {}
