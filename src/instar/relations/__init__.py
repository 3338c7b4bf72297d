"""Relations and rules: what must hold between source and follow-up."""

from instar.relations.equivariance import PosePairs, Strayed, aggregated, matrices_of, pose_pairs
from instar.relations.forecasts import told_apart
from instar.relations.presence import object_in
from instar.relations.relation import VERDICT_COLUMNS, BoundRelation, Evidence, Relation
from instar.relations.rule import Rule, rule
from instar.relations.table import bound_relation, own_equivariance, relations

__all__ = ["VERDICT_COLUMNS", "BoundRelation", "Evidence", "PosePairs", "Relation", "Rule", "Strayed", "aggregated",
           "bound_relation", "matrices_of", "object_in", "own_equivariance", "pose_pairs", "relations", "rule",
           "told_apart"]
