"""What a function changes in itself while it answers, as a counter or a cache: that makes it no other version of it.

Values that anybody else changes do. So it is noted what they were before it answered and what they are afterwards, for
as long as this Python runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from instar.systems.closures import Holdings
from instar.systems.identity import SHOWN_PARTS

Function = Callable[..., object]
Change = tuple[str | None, str | None]
"""What stands for a part when the function was first loaded, and after it answered; None where there was none."""


@dataclass
class _State:
    """Of a function: its parts `before` it answers, as they were `at_first`, and what its answering changed."""

    owner: weakref.ref[object]
    before: Mapping[str, str]
    at_first: Mapping[str, str]
    changes: dict[str, Change] = field(default_factory=dict)


_states: dict[tuple[int, str], _State] = {}


def settled_parts(function: Function, parts: Mapping[str, str]) -> dict[str, str]:
    """The parts of a function that is loaded, each as it was at first where nothing but its answering changed it."""
    owner, key = _key(function)
    try:
        reference = weakref.ref(owner)
    except TypeError:  # not everything can be found again
        return dict(parts)
    earlier = _states.get(key)
    changes = earlier.changes if earlier is not None and earlier.owner() is owner else {}
    settled = dict(parts)
    for name, (first, last) in changes.items():
        if parts.get(name) == last:
            settled.pop(name, None)
            settled |= {} if first is None else {name: first}
    _states[key] = _State(reference, parts, settled, changes)
    return settled


@contextmanager
def noted_answering(system: object, say: Callable[[str], None] = lambda sentence: None) -> Iterator[None]:
    """Note what a function that was loaded changes in itself meanwhile, and say it once; no other system does."""
    try:
        yield
    finally:
        names = _changed(system) if callable(system) else []
        if names:
            say(
                f"{', '.join(names[:SHOWN_PARTS])} changed while the system answered. What a system changes itself "
                "makes it no other version: the same call goes on with this run. What anybody else changes does."
            )


def _changed(function: Function) -> list[str]:
    """The parts that changed since a function was loaded and began to answer, without those that did before."""
    owner, key = _key(function)
    state = _states.get(key)
    if state is None or state.owner() is not owner:
        return []
    now = Holdings(function).parts
    names = [name for name in {**state.before, **now} if not name.startswith("the code of ")]
    changed = [name for name in names if state.before.get(name) != now.get(name)]
    new = [name for name in changed if name not in state.changes]
    state.changes |= {name: (state.at_first.get(name), now.get(name)) for name in changed}
    return new


def _key(function: Function) -> tuple[object, tuple[int, str]]:
    """Whose values they are, and a name for it: a method is another object each time that it is looked up."""
    owner = getattr(function, "__self__", function)
    return owner, (id(owner), str(getattr(function, "__qualname__", "")))
