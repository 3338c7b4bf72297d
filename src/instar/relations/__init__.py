"""Relations and rules: what must hold between source and follow-up."""

from instar.relations.captions import Compared, Mark, compared, compared_rows, vocabulary_of
from instar.relations.equivariance import PosePairs, Strayed, aggregated, matrices_of, pose_pairs, renamed_poses
from instar.relations.forecasts import told_apart
from instar.relations.presence import object_in
from instar.relations.relation import VERDICT_COLUMNS, BoundRelation, Evidence, Relation
from instar.relations.rule import Rule, levels_of, rule
from instar.relations.table import bound_relation, own_equivariance, relations

__all__ = ["VERDICT_COLUMNS", "BoundRelation", "Compared", "Evidence", "Mark", "PosePairs", "Relation", "Rule",
           "Strayed", "aggregated", "bound_relation", "compared", "compared_rows", "levels_of", "matrices_of",
           "object_in", "own_equivariance", "pose_pairs", "relations", "renamed_poses", "rule", "told_apart",
           "vocabulary_of"]
