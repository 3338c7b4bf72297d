"""The relations there are, by name."""

from __future__ import annotations

from collections.abc import Iterable

from instar.outputs import output_kind
from instar.registry import every, find, tasks
from instar.relations import accuracy, detections, over_cases, poses
from instar.relations.relation import BoundRelation, Relation
from instar.spelling import Call, bind, parse_call

_BUILT_IN: dict[str, Relation] = {
    relation.name: relation for module in (poses, detections, over_cases, accuracy) for relation in module.RELATIONS
}


def relations() -> dict[str, Relation]:
    """Every relation by name: the general ones, those of tasks and those of installed packages."""
    return every("relations", Relation, _BUILT_IN)


def bound_relation(call: Call) -> BoundRelation:
    relation = find("relation", call.name, "relations", Relation, _BUILT_IN)
    return BoundRelation(relation, bind(call, relation.parameters, what="relation"))


def meant_relation(written: Call | None, transformations: Iterable[str]) -> BoundRelation | None:
    """The relation that is written, else the one that these transformations have; None: the output's equivariance."""
    if written:
        return bound_relation(written)
    declared = {name: text for task in tasks().values() for name, text in task.own_relations.items()}
    own = {declared[name]: name for name in transformations if name in declared}
    if len(own) > 1:
        each = " and ".join(f"{name} means => {text}" for text, name in own.items())
        raise ValueError(f"{each}: write after => which relation the rule is judged by")
    return next((bound_relation(parse_call(text)) for text in own), None)


def own_equivariance(output: str) -> BoundRelation:
    """The relation that a rule means which names none, and whose change has none of its own: that of the output."""
    name = output_kind(output).relation
    if name is None:
        raise ValueError(f"{output} have no equivariance of their own; write the rule as transformation => relation")
    return bound_relation(Call(name))
