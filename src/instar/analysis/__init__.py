"""What verdicts say: rates with confidence, curves over thresholds, the worst cases, coverage and truth."""

from instar.analysis.coverage import coverage, default_bins, violated_counts
from instar.analysis.forecasts import agreement, displacement, displacement_tests, map_table, preserving_table
from instar.analysis.rates import any_rule, by_case, curve, rates, violated, worst
from instar.analysis.selection import costs, selected
from instar.analysis.slices import described, slices
from instar.analysis.truth import TRUTH, classic, classic_vs_metamorphic

__all__ = ["TRUTH", "agreement", "any_rule", "by_case", "classic", "classic_vs_metamorphic", "costs", "coverage",
           "curve", "default_bins", "described", "displacement", "displacement_tests", "map_table",
           "preserving_table", "rates", "selected", "slices", "violated", "violated_counts", "worst"]
