"""What verdicts say: rates with confidence, curves over thresholds, the worst cases, coverage and truth."""

from instar.analysis.answers import Answers
from instar.analysis.coverage import coverage, default_bins, violated_counts
from instar.analysis.memory import Memory, remembered
from instar.analysis.rates import any_rule, by_case, curve, group_rates, judged_pairs, kind_counts, noise, rates
from instar.analysis.repeats import Repeated, Repeats, repeated
from instar.analysis.run import ANY, Run, open_run
from instar.analysis.selection import costs, selected
from instar.analysis.severities import Severities, severities
from instar.analysis.slices import described, slices
from instar.analysis.subjects import subject_columns
from instar.analysis.truth import classic, classic_table, classic_vs_metamorphic, has_comparable_truth, unusable_truth
from instar.analysis.worst import worst_in_turn

# fmt: off
__all__ = [
    "ANY", "Answers", "Memory", "Repeated", "Repeats", "Run", "Severities", "any_rule", "by_case", "classic",
    "classic_table", "classic_vs_metamorphic", "costs", "coverage", "curve", "default_bins", "described",
    "group_rates", "has_comparable_truth", "judged_pairs", "kind_counts", "noise", "open_run", "rates",
    "remembered", "repeated", "selected", "severities", "slices", "subject_columns", "unusable_truth",
    "violated_counts", "worst_in_turn",
]
# fmt: on
