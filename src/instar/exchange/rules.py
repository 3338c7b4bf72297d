"""The rules of an import: those of a suite, those of the export, or the kind's own equivariance for every follow-up."""

from __future__ import annotations

import polars as pl

from instar.datasets import shortened
from instar.engine.plan import SOURCE, bound_rules, make_plan
from instar.exchange.exported import ExportManifest
from instar.exchange.raw import NAMED, RawRows, spelled_key
from instar.outputs import output_kind
from instar.relations import BoundRelation, Rule, bound_relation, own_equivariance
from instar.spelling import Call, nearest
from instar.store import Manifest
from instar.suites import Suite
from instar.transforms import named_transformation


def import_rules(
    raw: RawRows, suite: Suite | None, export: ExportManifest | None, run: Manifest | None
) -> tuple[tuple[Rule, ...], bool]:
    """The rules to be added, and whether the system is deterministic. Every key must be in the plan of all rules."""
    old = bound_rules(run.rules, raw.kind) if run else ()
    new: tuple[Rule, ...]
    if suite is not None:
        new = bound_rules(suite.rules, raw.kind)
    elif export is not None:
        new = bound_rules(export.rules, raw.kind)
    else:
        new = _own_rules(raw, {one.id for rule in old for one in rule.transformations})
    repeated = bool((raw.keys["repeat"] > 0).any())
    stochastic = repeated or (export is not None and export.stochastic) or (run and not run.system.deterministic)
    plan = make_plan(bound_rules([*old, *new], raw.kind), seed=0, deterministic=not stochastic)
    schema = {"follow_up": pl.String, "draw": pl.Int32, "repeat": pl.Int32}
    absent = _absent_from(raw, pl.DataFrame(plan.keys(), schema=schema, orient="row"))
    if absent and raw.tables and export is None and run is None:
        raw.notes.append(f"the tables have nothing of {shortened(absent, NAMED)}")
    return new, not stochastic


def _own_rules(raw: RawRows, covered: set[str]) -> tuple[Rule, ...]:
    """What the kind asks of recorded follow-ups (its own equivariance unless it says more), for every one that no rule
    is about, with as many draws as there are."""
    counts = (
        raw.keys.filter(~pl.col("follow_up").is_in(covered))
        .group_by("follow_up", maintain_order=True)
        .agg(draws=pl.col("draw").max() + 1, repeats=pl.col("repeat").max() + 1)
    )
    named = [bound_relation(Call(name)) for name in output_kind(raw.kind).recorded]
    several_relations = named or [own_equivariance(raw.kind)]
    several = {name: {"draws": draws, "repeats": repeats} for name, draws, repeats in counts.iter_rows()}
    sources = several.pop(SOURCE, {"repeats": 1})["repeats"]
    rules = []
    for name, count in several.items():
        for own in several_relations:
            parameters = {one.name for one in own.relation.parameters}
            if "sources" in parameters:
                counts_of = {**count, "sources": sources}
            else:
                counts_of = {**count, "repeats": max(count["repeats"], sources)}
            values = {**own.values, **{one: number for one, number in counts_of.items() if one in parameters}}
            rules.append(Rule((named_transformation(name),), BoundRelation(own.relation, values), name))
    return tuple(rules)


def _absent_from(raw: RawRows, planned: pl.DataFrame) -> list[str]:
    """The follow-ups of the plan that the tables do not have; a key that is not in the plan is refused."""
    names = planned["follow_up"].unique().to_list()
    beside = raw.keys.join(planned, on=["follow_up", "draw", "repeat"], how="anti")
    if not beside.is_empty():
        at, row, more = raw.first(beside)
        why = (
            f"no rule asks for draw {row['draw']} and repeat {row['repeat']} of it; a rule says how many with "
            "draws=, repeats= and sources="
            if row["follow_up"] in names
            else f"no rule is about it{nearest(row['follow_up'], names)}; add one with the parameter suite"
        )
        raise ValueError(f"{at}: {spelled_key(row)} is not in the plan: {why}{more}")
    there = set(raw.keys["follow_up"])
    return [name for name in names if name not in there]
