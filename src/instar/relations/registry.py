"""The relations there are, by name."""

from __future__ import annotations

from instar.outputs import output_kind
from instar.registry import every, find
from instar.relations import accuracy, detections, over_cases, poses
from instar.relations.relation import BoundRelation, Relation
from instar.spelling import Call, bind

_BUILT_IN: dict[str, Relation] = {
    relation.name: relation for module in (poses, detections, over_cases, accuracy) for relation in module.RELATIONS
}


def relations() -> dict[str, Relation]:
    """Every relation by name: the general ones, those of tasks and those of installed packages."""
    return every("relations", Relation, _BUILT_IN)


def bound_relation(call: Call) -> BoundRelation:
    relation = find("relation", call.name, "relations", Relation, _BUILT_IN)
    return BoundRelation(relation, bind(call, relation.parameters, what="relation"))


def own_equivariance(output: str) -> BoundRelation:
    """The relation that a rule without `=>` means, for a kind of output."""
    name = output_kind(output).relation
    if name is None:
        raise ValueError(f"{output} have no equivariance of their own; write the rule as transformation => relation")
    return bound_relation(Call(name))
