"""What a person sees of transformations: on some cases, by the needs that a run stored of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

import polars as pl

from instar.case import Case, Input, read_input
from instar.engine import Need, NoFollowUp, visible_change
from instar.image import Unreadable
from instar.store import Store
from instar.transforms import NotApplicable, Transformation

KEPT = 32
"""So many inputs are kept in memory."""


@dataclass(slots=True)
class Onlooker:
    """Looks at follow-ups of a run's cases, and remembers what was seen of each."""

    store: Store
    cases: dict[str, Case]
    changes: dict[tuple[str, str], float | None] = field(default_factory=dict)
    inputs: dict[str, Input | None] = field(default_factory=dict)

    @staticmethod
    def of(store: Store, cases: Iterable[Case]) -> Onlooker:
        return Onlooker(store, {case.id: case for case in cases})

    def __call__(self, transformation: Transformation, cases: Sequence[str]) -> float | None:
        """The median over these cases; None where it is defined for none."""
        seen = [change for case in cases if (change := self.change(transformation, case)) is not None]
        return median(seen) if seen else None

    def change(self, transformation: Transformation, case: str) -> float | None:
        """The visual change of a case's follow-up, by its steps that leave pixels where they are."""
        key = transformation.id, case
        if key not in self.changes:
            source = self._input(case)
            self.changes[key] = None if source is None else self._seen(transformation, case, source)
        return self.changes[key]

    def _seen(self, transformation: Transformation, case: str, source: Input) -> float | None:
        needs: dict[str, Need | NotApplicable] = {}
        if transformation.needs:
            stored = self.store.needs((pl.col("case") == case) & (pl.col("status") == "ok"))
            needs = {row["need"]: self.store.need_value(row) for row in stored.iter_rows(named=True)}
            truth = self.cases[case].truth
            needs |= {need: truth for need in transformation.needs if getattr(truth, "need", None) == need}  # type: ignore[misc]
        try:
            return visible_change(self.store.manifest().seed, case, source, transformation, needs)
        except NoFollowUp:
            return None

    def _input(self, case: str) -> Input | None:
        if case not in self.inputs:
            if len(self.inputs) >= KEPT:
                del self.inputs[next(iter(self.inputs))]
            try:
                self.inputs[case] = read_input(self.cases[case])[0]
            except Unreadable:
                self.inputs[case] = None
        return self.inputs[case]
