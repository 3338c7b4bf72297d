"""Makes follow-ups: reads a case, has provided what its transformations need, and changes the input."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import cv2

from instar.case import Input
from instar.engine.cases import read_case
from instar.engine.follow_up import NoFollowUp, make_follow_up
from instar.engine.messages import Begin, CaseTask, InputRead, InputUnreadable, NeedProvided, Setup
from instar.engine.needs import Need, Provider, is_stored, provided, provider, with_source
from instar.engine.packing import packed_need
from instar.engine.plan import SOURCE, Key
from instar.outputs import Output
from instar.pool import Pool
from instar.registry import loaded_object
from instar.store import ProviderInfo, Row, SystemInfo
from instar.systems import System
from instar.systems.modules import own_modules
from instar.systems.system import end_copy
from instar.transforms import Change, NotApplicable, Transformation, draw_seed, transformation


class Made(NamedTuple):
    """An input that is to be predicted: the source or a follow-up, what was done to it, and the seed of its answer."""

    key: Key
    input: Input
    change: Change
    seed: int


@dataclass(frozen=True, slots=True)
class Unmade:
    """Why there is nothing to predict for a key."""

    key: Key
    reason: NoFollowUp

    def row(self) -> Row:
        return {"status": self.reason.status, "message": str(self.reason)}


Making = Begin | InputRead | InputUnreadable | NeedProvided | Made | Unmade
SourceAnswer = Callable[[], Output | None]
"""What the system says of the source; None where it could not say anything."""


class Maker:
    """Whoever provides needs, and the code behind the rules, loaded."""

    def __init__(self, setup: Setup) -> None:
        cv2.setNumThreads(1)
        owner = os.getpid()
        try:
            self.providers: dict[str, Provider] = {need: provider(need, name) for need, name in setup.providers.items()}
            for name in setup.code:
                loaded_object(name)
        finally:
            end_copy(owner)
        self.code, _ = own_modules(name.partition(":")[0] for name in setup.code)
        self._parsed: dict[str, Transformation] = {}

    def infos(self) -> Mapping[str, ProviderInfo]:
        """What the run's manifest says of the providers."""
        return {need: ProviderInfo(p.name, p.fingerprint, p.parts) for need, p in self.providers.items()}

    def close(self) -> None:
        for who in self.providers.values():
            if isinstance(who.source, System):
                who.source.close()

    def transformation(self, name: str) -> Transformation:
        if name not in self._parsed:
            self._parsed[name] = transformation(name)
        return self._parsed[name]

    def work(self, task: CaseTask, system: System | SystemInfo, source_answer: SourceAnswer) -> Iterator[Making]:
        """The input or why it cannot be read; then needs, which are stored before it goes on, and what is made.

        For a system that takes tensors, follow-ups are made where it takes them; of one that another process holds,
        what is known is enough. `source_answer` is asked where a transformation depends on it.
        """
        if task.single:
            yield Begin()
        source, reading = read_case(task.case)
        yield reading
        if source is not None:
            needs: dict[str, Need | NotApplicable] = dict(task.needs)
            if task.source is not None:
                needs["source"] = task.source
            yield from _CaseUnderWay(self, task, source, needs, system, source_answer).made()


@dataclass(frozen=True, slots=True)
class _CaseUnderWay:
    maker: Maker
    task: CaseTask
    source: Input
    needs: dict[str, Need | NotApplicable]
    system: System | SystemInfo
    source_answer: SourceAnswer

    def made(self) -> Iterator[Making]:
        task, system, source = self.task, self.system, self.source
        if task.lost:
            yield from self._provide(task.lost)
        if isinstance(system, System):
            source = system.placed([source])[0]  # sent once; follow-ups are made where it lies
        unchanged = (source, Change.none(source.size))
        made: tuple[Input, Change] | NoFollowUp = unchanged
        change: Transformation | str = SOURCE
        last = (SOURCE, 0)
        single, deterministic = task.single, system.deterministic
        for key in task.keys:
            name, draw, repeat = key
            if single:
                yield Begin(key)
            if name == SOURCE:
                last, change, made = (name, draw), SOURCE, unchanged
            elif (name, draw) != last:
                last, change = (name, draw), self.maker.transformation(name)
                if not change.needs <= self.needs.keys():
                    yield from self._provide(change.needs)
                    if single:
                        yield Begin(key)
                try:
                    made = make_follow_up(task.seed, task.case.id, source, change, draw, self.needs)
                except NoFollowUp as error:
                    made = error
            if isinstance(made, NoFollowUp):
                yield Unmade(key, made)
                continue
            # a deterministic system has no use for a seed
            seed = 0 if deterministic else draw_seed(task.seed, task.case.id, change, draw, repeat)
            yield Made(key, *made, seed)

    def _provide(self, wanted: frozenset[str]) -> Iterator[Making]:
        """Provide what is missing; what the source's answer stands in for waits until that is known."""
        task, needs, providers = self.task, self.needs, self.maker.providers
        unprovided = wanted - providers.keys()
        if "source" not in needs and "source" in with_source(unprovided, task.case, self.system.kind):
            answered = self.source_answer()  # nothing found is an answer, too
            needs["source"] = NotApplicable("the source could not be predicted") if answered is None else answered
        for need in sorted(wanted - needs.keys()):
            if task.single:
                yield Begin(need=need)
            answer, who = needs.get("source"), providers.get(need)
            assert not isinstance(answer, Pool)
            value = needs[need] = provided(need, who, task.case, self.source, answer)
            if who is not None and is_stored(who, value, task.case):
                yield packed_need(need, who, value)
