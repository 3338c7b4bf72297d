"""How far a run is: how many of its predictions there are."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from instar.engine import bound_rules, make_plan
from instar.store import Store


@dataclass(frozen=True, slots=True)
class Extent:
    """How many predictions there are, of how many in the end; a case that cannot be read counts with all of its own.

    `whole` says whether that is the whole run: of a folder of an earlier version only the cases begun are known.
    """

    done: int
    planned: int
    whole: bool

    @classmethod
    def of(cls, store: Store) -> Extent:
        manifest, cases = store.manifest(), store.cases(["status"])["status"]
        rows = store.predictions(["status"], query=lambda table: table.select(pl.len())).item()
        rules = bound_rules(manifest.rules, manifest.system.kind)
        each = len(make_plan(rules, seed=0, deterministic=manifest.system.deterministic).keys())
        done = rows + each * int((cases != "ok").sum())
        return cls(done, max(done, manifest.planned or each * len(cases)), bool(manifest.planned))
