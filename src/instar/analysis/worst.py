"""Which pairs are shown first where not all can be: the worst, without one rule or one case before all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.severities import Bools, Floats, Severities

AS_BAD = 0.5
"""A rule shows a case that was seen less in place of its worst, where that is at least half as bad."""
AHEAD = 100
"""How many of a rule's worst pairs are looked through for such a case."""

Queues = dict[int, list[int]]
"""Of each rule, by its number, the cases that it has left to show, worst first."""


def worst_in_turn(
    severities: Severities,
    count: int,
    thresholds: Mapping[str, float],
    *,
    families: Mapping[str, str] | None = None,
    alphas: Mapping[str, float] | None = None,
) -> pl.DataFrame:
    """The worst pairs (case, rule, severity, violated): first what violates its rule, then what else strays.

    The rules take turns: the next one is that of which the fewest pairs were taken. Among equals pairs with ∞ and with
    finite severities alternate, since either alone would hide the other; then comes the family of which the fewest
    were taken, then the highest severity in units of its rule's threshold, then the rule that is violated most often.
    It gives its worst pair; one of a case that was taken less often goes before it where it is at least half as bad,
    then one of a kind (*lost*, *invented*) that was. Equal severities come by their cases' ids, in whatever order the
    cases are stored, and asking for more pairs changes none of the first.
    """
    matrix = severities.per_case()
    violated = matrix.violated(thresholds, alphas)
    alone = np.isinf(matrix.severity)
    units = np.array([thresholds[rule] or 1.0 for rule in matrix.rules]).reshape(-1, 1)
    groups = [(families or {}).get(rule, rule) for rule in matrix.rules]
    turns = _Turns(matrix.severity / units, matrix.kind, groups, violated.sum(1))
    place = matrix.cases.rank("ordinal").to_numpy()
    turns.take([_queues(matrix.severity, violated & part, place, count) for part in (alone, ~alone)], count)
    if len(turns.taken) < count:
        strays = (matrix.severity > 0) & ~violated
        turns.take([_queues(matrix.severity, strays & part, place, count) for part in (alone, ~alone)], count)
    rows, columns = (np.array([pair[side] for pair in turns.taken], np.int64) for side in (0, 1))
    names = pl.Series([matrix.rules[row] for row in rows], dtype=pl.String)
    return pl.DataFrame(
        {
            "case": matrix.cases.gather(columns),
            "rule": names,
            "severity": matrix.severity[rows, columns],
            "violated": violated[rows, columns],
        }
    )


class _Turns:
    """The pairs taken so far, as numbers of rules and cases; how often each rule, lane, family, case and kind was."""

    def __init__(
        self, severity: Floats, kind: npt.NDArray[np.uint8], families: Sequence[str], violated: npt.NDArray[np.int64]
    ) -> None:
        self.severity, self.kind, self.families, self.violated = severity, kind, families, violated
        self.taken: list[tuple[int, int]] = []
        self.times: Counter[tuple[str, int | str]] = Counter()

    def take(self, lanes: Sequence[Queues], count: int) -> None:
        """Take from the queues of these lanes, until there are so many pairs or none is left."""
        while len(self.taken) < count and any(lanes):
            _, lane, row = min(
                (self._place(lane, row, queue[0]), lane, row)
                for lane, queues in enumerate(lanes)
                for row, queue in queues.items()
            )
            queue = lanes[lane][row]
            least = AS_BAD * self.severity[row, queue[0]]
            as_bad = [column for column in queue[:AHEAD] if self.severity[row, column] >= least]
            kinds = {column: int(self.kind[row, column]) for column in as_bad}
            column = min(as_bad, key=lambda one: (self.times["case", one], self.times["kind", kinds[one]]))
            queue.remove(column)
            if not queue:
                del lanes[lane][row]
            self.taken.append((row, column))
            self.times.update([("rule", row), ("lane", lane), ("family", self.families[row])])
            self.times.update([("case", column), ("kind", kinds[column])])

    def _place(self, lane: int, row: int, column: int) -> tuple[int, int, int, float, int]:
        times = self.times["rule", row], self.times["lane", lane], self.times["family", self.families[row]]
        return *times, -float(self.severity[row, column]), -int(self.violated[row])


def _queues(severity: Floats, pairs: Bools, place: npt.NDArray[np.uint32], count: int) -> Queues:
    """The columns of these pairs by row, worst first, equals by their place; as many of each as may be looked at."""
    most = count + AHEAD if count else 0
    queues = {row: _highest(severity[row], np.flatnonzero(pairs[row]), place, most) for row in range(len(severity))}
    return {row: queue for row, queue in queues.items() if queue}


def _highest(severity: Floats, columns: npt.NDArray[np.int64], place: npt.NDArray[np.uint32], count: int) -> list[int]:
    if 0 < count < len(columns):  # a run may have a million cases
        least = np.partition(severity[columns], -count)[-count]
        columns = columns[severity[columns] >= least]
    ranked: list[int] = columns[np.lexsort((place[columns], -severity[columns]))][:count].tolist()
    return ranked
