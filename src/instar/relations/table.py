"""The relations there are, by name."""

from __future__ import annotations

from instar.registry import find, from_entry_points
from instar.relations import equivariance, groups
from instar.relations.relation import BoundRelation, Relation
from instar.spelling import Call, bind

__all__ = ["bound_relation", "own_equivariance", "relations"]

_BUILT_IN: dict[str, Relation] = {r.name: r for room in (equivariance, groups) for r in room.RELATIONS}


def relations() -> dict[str, Relation]:
    return {**_BUILT_IN, **from_entry_points("instar.relations", Relation)}


def bound_relation(call: Call) -> BoundRelation:
    found = find("relation", call.name, _BUILT_IN, "instar.relations", Relation)
    return BoundRelation(found, bind(call, found.parameters, what="relation"))


def own_equivariance(output: str) -> BoundRelation:
    """The relation that a rule without `=>` means, for a kind of output."""
    if output not in {r.output for r in _BUILT_IN.values()}:
        raise ValueError(f"{output} have no equivariance of their own; write the rule as transformation => relation")
    return bound_relation(Call(output))
