"""Worst first, each rule and case in turn: as `instar.analysis.worst` picks a few pairs, here all of them in one order.

What a page shows must not take longer the more pairs there are: only so many of each rule come in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from instar.viewer.index import Codes

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
TURNS = 12
"""As many pairs of each rule come in turn, with ∞ and without; the rest follow by severity."""
AHEAD = 2 * TURNS
"""How many of a rule's worst pairs are looked through for a case that was shown less often."""
AS_BAD = 0.5
"""A rule shows such a case in place of its worst where that is at least half as bad."""


def in_turn(order: Places, case: Codes, rule: Codes, severity: Floats, families: Sequence[str]) -> Places:
    """The same places, given worst first, with one pair of each rule, then the next of each …

    Pairs with ∞ and with finite severities alternate: either alone would hide the other. Within a turn the worst rule
    of each family comes first. `severity` is in units of each rule's threshold.
    """
    if len(order) < 2:
        return order
    worth = severity[order]
    # a rule's pairs stand in two queues: those with ∞ and those without
    code = (2 * rule[order] + np.isfinite(worth)).astype(np.uint16 if len(families) < 1 << 15 else np.int32)
    by_code = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(code[by_code].astype(np.int32)) != 0]))
    queues = {
        int(code[by_code[start]]): by_code[start : min(start + AHEAD, end)].tolist()
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True)
    }
    places = _queue_places({one: float(worth[queue[0]]) for one, queue in queues.items()}, families)
    ahead = [queues[one] for one in sorted(queues, key=lambda one: places[one])]
    taken = _taken(ahead, case[order], worth)
    rest = np.ones(len(order), bool)
    rest[taken] = False
    return np.concatenate([order[taken], order[rest]])


def _taken(queues: Sequence[list[int]], case: Codes, worth: Floats) -> list[int]:
    """One member of each queue, then another of each …: its worst, or one about as bad of a case that came less."""
    taken: list[int] = []
    came: Counter[int] = Counter()
    owner = {member: int(case[member]) for queue in queues for member in queue}
    value = {member: float(worth[member]) for member in owner}
    for _ in range(TURNS):
        for queue in filter(None, queues):
            least = AS_BAD * value[queue[0]]
            as_bad = (member for member in queue if value[member] >= least)
            best = min(as_bad, key=lambda member: came[owner[member]])
            queue.remove(best)
            came[owner[best]] += 1
            taken.append(best)
    return taken


def _queue_places(worst: Mapping[int, float], families: Sequence[str]) -> dict[int, int]:
    """The place of each queue in a turn: ∞ and finite ones alternate, and in both the worst rule of a family is first.

    A queue has the number of its rule, twice, and one more where severities are finite.
    """
    places: dict[int, int] = {}
    for finite in (0, 1):
        ranks: Counter[str] = Counter()
        rank_of = {}
        for one in sorted((one for one in worst if one % 2 == finite), key=lambda one: -worst[one]):
            rank_of[one] = ranks[families[one // 2]]
            ranks[families[one // 2]] += 1
        ranked = sorted(rank_of, key=lambda one: rank_of[one])
        places |= {one: 2 * number + finite for number, one in enumerate(ranked)}
    return places
