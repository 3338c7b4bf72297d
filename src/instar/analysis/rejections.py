"""Relations that are statistical tests: how many of a run's tests reject, beside how many would by chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from instar.outputs import Row, Schema
from instar.stats import binomial_excess, clustered_interval, holm, moments, wilson

LEVEL = 0.05
"""A test rejects where its p is at most this, unless another level is asked for."""
COLUMNS = ("case", "rule", "p", "p_least")
"""What is read of verdicts."""

SCHEMA: Schema = {
    **dict.fromkeys(("rule", "family"), pl.String),
    **dict.fromkeys(("tests", "rejected"), pl.Int64),
    **dict.fromkeys(("share", "low", "high"), pl.Float64),
    "powerless": pl.Int64,
    **dict.fromkeys(("p_least", "p", "p_corrected"), pl.Float64),
}


def rejections(
    verdicts: Iterable[pl.DataFrame], rules: Mapping[str, str], exact: Sequence[str], level: float = LEVEL
) -> pl.DataFrame:
    """How often the tests of rules reject, and how likely that is by chance: per rule, per family, and all together.

    `rules` has the family of each rule whose relation is a test. A family's row has no rule, the last row neither rule
    nor family; identity is a row of its own, and part of nothing else.

    A case is one test of a rule: where it has several targets, its p is the least of theirs times their number.
    `powerless` counts the tests whose least possible p is above the level, which no answer could make reject; they are
    not among `tests`. `p` is the probability that so many of the tests reject by chance (binomial, each with the level
    as its probability): cases are answered independently of each other. Rules of one case are not, since they share
    its source, so that their tests are never pooled: `p_corrected` is p after Holm over all rules, which holds under
    any dependence, and that of a family is the least of its rules'. A rule of `exact` measures the least possible p;
    tests of it that have none are approximations that do not keep their level, and count nowhere.
    """
    cases = _per_case(verdicts, rules, exact)
    rows = [_row(rule, family, cases.filter(rule=rule), level) for rule, family in rules.items()]
    rows = [row for row in rows if row["tests"] or row["powerless"]]
    changing = [row for row in rows if row["family"] != "identity" and row["tests"]]
    corrected = dict(zip((row["rule"] for row in changing), holm([row["p"] for row in changing]), strict=True))
    own = [{**row, "p_corrected": corrected.get(row["rule"], row["p"])} for row in rows]
    families = dict.fromkeys(row["family"] for row in own if row["family"] != "identity")
    table = pl.DataFrame(
        [
            *own,
            *(_pooled([row for row in own if row["family"] == name], name, cases, level) for name in families),
            *([_pooled([row for row in own if row["family"] != "identity"], None, cases, level)] if families else []),
        ],
        schema=dict(SCHEMA),
    )
    return table


def _per_case(verdicts: Iterable[pl.DataFrame], rules: Mapping[str, str], exact: Sequence[str]) -> pl.DataFrame:
    """One row per case and rule that was tested: p and the least p it could have."""
    typed = {"case": pl.String, "rule": pl.String, "p": pl.Float64, "p_least": pl.Float64}
    frames = [pl.DataFrame(schema=typed)]
    for part in verdicts:
        if "p" not in part.columns:
            continue
        part = part if "p_least" in part.columns else part.with_columns(p_least=pl.lit(None, pl.Float64))
        levelled = pl.col("p_least").is_not_null() | ~pl.col("rule").is_in(list(exact))
        tested = pl.col("case").is_not_null() & pl.col("p").is_not_null() & pl.col("rule").is_in(list(rules))
        frames.append(
            part.filter(tested & levelled)
            .group_by("case", "rule", maintain_order=True)
            .agg(
                p=(pl.col("p").min() * pl.len()).clip(upper_bound=1.0),
                p_least=(pl.col("p_least").min() * pl.len()).clip(upper_bound=1.0),
            )
            .cast(typed)  # type: ignore[arg-type]
        )
    return pl.concat(frames)


def _row(rule: str, family: str, tests: pl.DataFrame, level: float) -> Row:
    able = tests.filter(_able(level))
    count, hits = able.height, able.filter(pl.col("p") <= level).height
    chance = float(binomial_excess(hits, count, level)) if count else None
    least = tests["p_least"].min()
    return {
        "rule": rule,
        "family": family,
        **_shared(hits, count, *wilson(hits, count)),
        "powerless": tests.height - count,
        "p_least": least,
        "p": chance,
        "p_corrected": None,
    }


def _able(level: float) -> pl.Expr:
    """Whether a test can reject at a level."""
    return pl.col("p_least").is_null() | (pl.col("p_least") <= level)


def _shared(hits: int, count: int, low: float, high: float) -> Row:
    return {"tests": count, "rejected": hits, "share": hits / count if count else None, "low": low, "high": high}


def _pooled(rows: Sequence[Row], family: str | None, cases: pl.DataFrame, level: float) -> Row:
    """All tests of some rules; the surest of them speaks for them. Those of one case are a cluster."""
    table = pl.DataFrame(rows, schema=dict(SCHEMA))
    least = table.select(pl.col("p_least", "p", "p_corrected").min()).row(0, named=True)
    able = cases.filter(pl.col("rule").is_in(table["rule"].to_list()) & _able(level))
    counts = able.group_by("case").agg(hits=(pl.col("p") <= level).sum(), tests=pl.len())
    ends = clustered_interval(moments(counts["hits"].to_numpy(), counts["tests"].to_numpy()))
    return {
        "rule": None,
        "family": family,
        **_shared(int(table["rejected"].sum()), int(table["tests"].sum()), *map(float, ends)),
        "powerless": int(table["powerless"].sum()),
        **least,
        "p": None,
    }
