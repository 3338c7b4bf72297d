"""Tests and intervals. The only statistics in the project."""

from instar.stats.distributions import hellinger, permutation_test, randomisation_test, wasserstein
from instar.stats.linear import drawn_weights
from instar.stats.lines import robust_line
from instar.stats.samples import (
    bootstrap,
    clustered_difference,
    ends,
    median_interval,
    median_shift,
    pearson,
    quantile_bounds,
    rank_test,
    resamples,
    spearman,
    swapped_sides,
    wilcoxon,
)
from instar.stats.sequences import sequence_bounds, sequence_quantile_bounds
from instar.stats.shares import (
    binomial_bounds,
    binomial_excess,
    clustered_share,
    clustered_wilson,
    fisher,
    fisher_excess,
    holm,
    mcnemar,
    moments,
    paired_bound,
    paired_difference,
    wilson,
    z_test,
)
from instar.stats.survival import Survival, survival

__all__ = [
    "Survival",
    "binomial_bounds",
    "binomial_excess",
    "bootstrap",
    "clustered_difference",
    "clustered_share",
    "clustered_wilson",
    "drawn_weights",
    "ends",
    "fisher",
    "fisher_excess",
    "hellinger",
    "holm",
    "mcnemar",
    "median_interval",
    "median_shift",
    "moments",
    "paired_bound",
    "paired_difference",
    "pearson",
    "permutation_test",
    "quantile_bounds",
    "randomisation_test",
    "rank_test",
    "resamples",
    "robust_line",
    "sequence_bounds",
    "sequence_quantile_bounds",
    "spearman",
    "survival",
    "swapped_sides",
    "wasserstein",
    "wilcoxon",
    "wilson",
    "z_test",
]
