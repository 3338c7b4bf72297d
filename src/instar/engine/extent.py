"""How far a run is: how many of its predictions there are, and which part of its plan it is."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from instar.engine.plan import bound_rules, make_plan
from instar.store import Shard, Store


@dataclass(frozen=True, slots=True)
class Extent:
    """How many predictions there are, of how many in the end; a case that cannot be read counts with all of its own.

    `whole` says whether that is the whole run: of a folder of an earlier version only the cases begun are known.
    `shard` is the shard of its plan that the run is, `absent` are those that it was merged without.
    """

    done: int
    planned: int
    whole: bool
    shard: Shard | None = None
    absent: tuple[Shard, ...] = ()

    @classmethod
    def of(cls, store: Store) -> Extent:
        manifest, cases = store.manifest(), store.cases(["status"])["status"]
        rows = store.predictions(["status"], query=lambda table: table.select(pl.len())).item()
        rules = bound_rules(manifest.rules, manifest.system.kind)
        each = len(make_plan(rules, seed=0, deterministic=manifest.system.deterministic).keys())
        done = rows + each * int((cases != "ok").sum())
        known = manifest.planned is not None
        planned = each * len(cases) if manifest.planned is None else manifest.planned
        return cls(done, max(done, planned), known, manifest.shard, manifest.absent)

    @property
    def missing(self) -> int:
        """How many predictions are still to come."""
        return self.planned - self.done
