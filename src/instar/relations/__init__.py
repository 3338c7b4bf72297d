"""Relations and rules: what must hold between source and follow-up."""

from instar.relations.equivariance import PosePairs, Strayed, aggregated, matrices_of, pose_pairs, renamed_poses
from instar.relations.registry import bound_relation, own_equivariance, relations
from instar.relations.relation import VERDICT_COLUMNS, BoundRelation, Evidence, Relation
from instar.relations.rule import BoundRule, Rule, levels_of, rule

__all__ = [
    "VERDICT_COLUMNS",
    "BoundRelation",
    "BoundRule",
    "Evidence",
    "PosePairs",
    "Relation",
    "Rule",
    "Strayed",
    "aggregated",
    "bound_relation",
    "levels_of",
    "matrices_of",
    "own_equivariance",
    "pose_pairs",
    "relations",
    "renamed_poses",
    "rule",
]
