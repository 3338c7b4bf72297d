"""What verdicts say: rates with confidence, curves over thresholds, the worst cases, coverage and truth."""

from instar.analysis.coverage import coverage, default_bins, violated_counts
from instar.analysis.rates import any_rule, by_case, curve, group_rates, noise, rates, violated, worst, worst_pairs
from instar.analysis.run import ANY, Run, open_run
from instar.analysis.selection import costs, selected
from instar.analysis.severities import Severities, Verdicts, group_of, severities
from instar.analysis.slices import described, slices
from instar.analysis.subjects import subject_columns
from instar.analysis.truth import TRUTH, classic, classic_vs_metamorphic
from instar.tasks.hand_pose.analysis import FINGERS, GROUPS, PURPOSES, HandCounts, hand_comparison
from instar.tasks.met_pose.landmarks import Figure, landmark_table, typical_pose
from instar.tasks.traj_test.analysis import agreement, displacement, displacement_tests, map_table, preserving_table

__all__ = [
    "ANY",
    "FINGERS",
    "GROUPS",
    "PURPOSES",
    "TRUTH",
    "Figure",
    "HandCounts",
    "Run",
    "Severities",
    "Verdicts",
    "agreement",
    "any_rule",
    "by_case",
    "classic",
    "classic_vs_metamorphic",
    "costs",
    "coverage",
    "curve",
    "default_bins",
    "described",
    "displacement",
    "displacement_tests",
    "group_of",
    "group_rates",
    "hand_comparison",
    "landmark_table",
    "map_table",
    "noise",
    "open_run",
    "preserving_table",
    "rates",
    "selected",
    "severities",
    "slices",
    "subject_columns",
    "typical_pose",
    "violated",
    "violated_counts",
    "worst",
    "worst_pairs",
]
