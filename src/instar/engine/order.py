"""The order in which a system is asked about a case: shuffled, so that its memory of the inputs before shows."""

from __future__ import annotations

from collections.abc import Iterable

import xxhash

from instar.engine.needs import with_source
from instar.engine.plan import SOURCE, Key, Plan


class Order:
    """The order of a case's keys, settled by the run's seed and the case alone.

    A system that answers from its memory of the input before would look steady if source, identity and rules always
    came in the same order. Draws of a follow-up, and the source's repeats, are scattered in ascending order; repeats of
    one follow-up stay together, so that it is made once. Where a transformation has to know what the system says of the
    source, the source comes before it.
    """

    def __init__(self, plan: Plan, kind: str) -> None:
        self._seed = str(plan.seed).encode()
        self._blocks: dict[str, list[tuple[Key, ...]]] = {
            SOURCE: [((SOURCE, 0, repeat),) for repeat in range(plan.sources)]
        }
        for follow_up in plan.follow_ups:
            name, repeats = follow_up.transformation.id, range(follow_up.repeats)
            self._blocks[name] = [tuple((name, draw, r) for r in repeats) for draw in range(follow_up.draws)]
        self._slots = [
            (name, f"{name}\x1f{number}".encode())
            for name, blocks in self._blocks.items()
            for number in range(len(blocks))
        ]
        self._waiting = {
            follow_up.transformation.id
            for follow_up in plan.follow_ups
            if "source" in with_source(follow_up.transformation.needs, None, kind)
        }

    def __call__(self, case: str) -> tuple[Key, ...]:
        """Every key of a case, in the order in which the system is asked."""
        chance = xxhash.xxh3_64_intdigest(self._seed + b"\x1f" + case.encode())
        lots = sorted((xxhash.xxh3_64_intdigest(text, seed=chance), name) for name, text in self._slots)
        names = [name for _, name in lots]
        first = min((names.index(name) for name in self._waiting), default=len(names))
        if names.index(SOURCE) > first:
            names.remove(SOURCE)
            names.insert(chance % (first + 1), SOURCE)
        blocks = {name: iter(blocks) for name, blocks in self._blocks.items()}
        return tuple(key for name in names for key in next(blocks[name]))

    def of(self, case: str, keys: Iterable[Key]) -> tuple[Key, ...]:
        """Return some keys of a case in that order, then second predictions in the opposite one: a system that
        remembers the input before has another one to remember."""
        wanted, every = set(keys), self(case)
        again = sorted(wanted.difference(every))
        if not again:
            return every if len(wanted) == len(every) else tuple(key for key in every if key in wanted)
        places = {(name, draw): place for place, (name, draw, _) in enumerate(every)}
        again.sort(key=lambda key: places[key[0], key[1]], reverse=True)
        return *(key for key in every if key in wanted), *again
