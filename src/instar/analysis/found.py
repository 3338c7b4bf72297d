"""What a search for combinations found, with intervals."""

from __future__ import annotations

import polars as pl

from instar.analysis.run import Run
from instar.outputs import Schema
from instar.relations import named_rule
from instar.stats import wilson

# fmt: off
SCHEMA: Schema = {
    "rule": pl.String, "name": pl.String, "members": pl.List(pl.String), "shrunk": pl.String, "cases":
    pl.List(pl.String), "searched": pl.Int64, "hits": pl.Int64, "judged": pl.Int64, "broken": pl.Int64, "share":
    pl.Float64, "low": pl.Float64, "high": pl.Float64, "alone": pl.Int64, "alone_share": pl.Float64, "alone_low":
    pl.Float64, "alone_high": pl.Float64, "visual": pl.Float64,
}
# fmt: on


def found_combinations(run: Run) -> pl.DataFrame:
    """One row per combination, worst first; empty for a run that is no search.

    `searched` cases were asked in the search, and `hits` of them are broken by the combination and by none of its
    rules: it was chosen for that, and rates of these say too much. Of the cases that were kept apart `judged` were
    judged, and `broken` of them are broken, a `share` from `low` to `high` with 95 % confidence; `alone` of these are
    broken by none of its rules. `visual` is the median of what a person sees of the change, `shrunk` the smallest form
    that breaks the first of the `cases`.
    """
    search = run.manifest.search
    rows = []
    for one in search.combinations if search else ():
        (low, high), (alone_low, alone_high) = wilson(one.broken, one.judged), wilson(one.alone, one.judged)
        rows.append(
            {
                "rule": one.rule,
                "name": named_rule(one.rule).left,
                "members": [named_rule(member).left for member in one.members],
                "shrunk": named_rule(one.shrunk).left,
                "cases": list(one.cases),
                "searched": one.searched,
                "hits": one.hits,
                "judged": one.judged,
                "broken": one.broken,
                "share": one.broken / one.judged if one.judged else None,
                "low": low,
                "high": high,
                "alone": one.alone,
                "alone_share": one.alone / one.judged if one.judged else None,
                "alone_low": alone_low,
                "alone_high": alone_high,
                "visual": one.visual,
            }
        )
    return pl.DataFrame(rows, schema=SCHEMA)
