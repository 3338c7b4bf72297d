"""Relations and rules: what must hold between source and follow-up."""

from instar.outputs import Row
from instar.relations.marks import Mark, MarkedPair, Segment, segments
from instar.relations.pairing import DRAWS, aggregated, matrices_of, paired, per_pair
from instar.relations.parts import PartSeverities
from instar.relations.poses import LandmarkErrors, PosePairs, pose_pairs
from instar.relations.registry import bound_relation, meant_relation, own_equivariance, relations
from instar.relations.relation import NOTHING_FOUND, VERDICT_COLUMNS, BoundRelation, Evidence, Relation, UnusableTruth
from instar.relations.rule import BoundRule, Rule, levels_of, named_rule, rule

# fmt: off
__all__ = [
    "DRAWS", "NOTHING_FOUND", "VERDICT_COLUMNS", "BoundRelation", "BoundRule", "Evidence", "LandmarkErrors", "Mark",
    "MarkedPair", "PartSeverities", "PosePairs", "Relation", "Row", "Rule", "Segment", "UnusableTruth",
    "aggregated", "bound_relation", "levels_of", "matrices_of", "meant_relation", "named_rule", "own_equivariance",
    "paired", "per_pair", "pose_pairs", "relations", "rule", "segments",
]
# fmt: on
