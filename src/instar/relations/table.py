"""The relations there are, by name."""

from __future__ import annotations

from instar.registry import find, from_entry_points
from instar.relations import accuracy, captions, direction, equivariance, forecasts, groups, presence
from instar.relations.relation import BoundRelation, Relation
from instar.spelling import Call, bind

__all__ = ["bound_relation", "own_equivariance", "relations"]

_ROOMS = (equivariance, forecasts, direction, groups, presence, accuracy, captions)
_BUILT_IN: dict[str, Relation] = {relation.name: relation for room in _ROOMS for relation in room.RELATIONS}
_OWN = {"poses": "poses", "detections": "detections", "forecast": "wvc", "caption": "objects"}


def relations() -> dict[str, Relation]:
    return {**_BUILT_IN, **from_entry_points("instar.relations", Relation)}


def bound_relation(call: Call) -> BoundRelation:
    found = find("relation", call.name, _BUILT_IN, "instar.relations", Relation)
    return BoundRelation(found, bind(call, found.parameters, what="relation"))


def own_equivariance(output: str) -> BoundRelation:
    """The relation that a rule without `=>` means, for a kind of output."""
    if output not in _OWN:
        raise ValueError(f"{output} have no equivariance of their own; write the rule as transformation => relation")
    return bound_relation(Call(_OWN[output]))
