"""How many violations are real, as people marked them: the precision of a rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from instar.analysis.rates import by_case
from instar.analysis.run import ANY, Run
from instar.engine import DEFAULT
from instar.stats import clustered_share
from instar.store import LABEL, MARKS, REAL, UNCLEAR, VERDICT, Mark, Row, of_cases, stored_marks

VIOLATED, KEPT, ANOTHER, UNJUDGED = "violated", "not violated", "about another target", "not judged"
"""What a mark is of now: a violated pair, for which it counts, or something else, for which it does not."""
MARK_COLUMNS = ("case", "rule", "target", "mark", "note", "made")
COUNTS = ("violated", *(mark.replace(" ", "_") for mark in MARKS))
"""The columns of precision that count pairs."""
_SHARES = ("precision", "low", "high")


def marked(run: Run, threshold: float | None = None, *, judging: str = DEFAULT) -> pl.DataFrame:
    """One row per mark: case, rule, target, mark, note, when it was made, severity and kind, and its `state`.

    The state is *violated* where the mark is of the worst target of a violated pair, or of the pair as a whole: only
    then does it count. Otherwise it says why not: the pair is not violated by this judging and threshold, it has no
    severity, or its worst target is another one now.
    """
    marks = _frame(mark for mark in stored_marks(run.store).values() if mark.rule != LABEL)
    if marks.is_empty():
        worst = pl.DataFrame(schema=VERDICT)
    else:
        run.severities(judging)  # which judges what is not judged yet
        worst = by_case(run.store.verdicts(judging, of_cases(marks["case"].unique())))
    shown = worst.select("case", "rule", "severity", "kind", worst="target")
    limit = pl.col("rule").replace_strict(run.thresholds(threshold), default=None, return_dtype=pl.Float64)
    own = pl.col("target") == pl.col("worst")
    # what is said of the worst target goes before what is said of the pair as a whole
    replaced = (pl.col("target") == "") & own.any().over("case", "rule")
    return (
        marks.join(shown, on=["case", "rule"], how="left", maintain_order="left")
        .with_columns(
            state=pl.when(pl.col("severity").is_null())
            .then(pl.lit(UNJUDGED))
            .when(~own & ((pl.col("target") != "") | replaced))
            .then(pl.lit(ANOTHER))
            .when((pl.col("severity") > 0) & (pl.col("severity") >= limit))
            .then(pl.lit(VIOLATED))
            .otherwise(pl.lit(KEPT))
        )
        .drop("worst")
    )


def marked_labels(marks: Iterable[Mark]) -> pl.DataFrame:
    """One row per mark of a label of the dataset, which is its target: *real* where the label is wrong."""
    return _frame(mark for mark in marks if mark.rule == LABEL)


def wrong_labels(labels: pl.DataFrame) -> Row:
    """How many labels that people looked at are wrong (`real`), right (`false_alarm`) or unclear, and the share of the
    wrong ones with its 95 % interval; the labels of one case are a cluster."""
    return dict(zip((*COUNTS[1:], *_SHARES), _shares(labels), strict=True))


def _frame(marks: Iterable[Mark]) -> pl.DataFrame:
    rows = [[getattr(mark, name) for name in MARK_COLUMNS] for mark in marks]
    return pl.DataFrame(rows, schema=dict.fromkeys(MARK_COLUMNS, pl.String), orient="row")


def precision(run: Run, threshold: float | None = None, *, judging: str = DEFAULT) -> pl.DataFrame:
    """Which share of the marked violations is real, with its 95 % interval; no row where no violated pair is marked.

    All rules together (without identity), each relation where there are several, each rule: how many pairs are
    violated, how many of them are marked real, a false alarm or unclear. What is unclear counts in no share. The
    interval of a rule is Clopper and Pearson's; where one case has several pairs, it takes them for a cluster.
    """
    counted = marked(run, threshold, judging=judging).filter(state=VIOLATED)
    violated = (
        dict(run.rates(threshold, judging=judging).select("rule", "violated").iter_rows()) if len(counted) else {}
    )
    relations = dict(run.rules().select("rule", "relation").iter_rows())
    return precision_of(counted, violated, relations, run.changing_rules())


def precision_of(
    marks: pl.DataFrame, violated: Mapping[str, int], relations: Mapping[str, str], changing: Collection[str]
) -> pl.DataFrame:
    """The same of marks that count (`case`, `rule`, `mark`), where one knows how many pairs of each rule are violated,
    the relation of each rule, and which rules change something."""
    there = set(marks["rule"])
    groups = [("all", ANY, [rule for rule in relations if rule in changing])] if there else []
    names = dict.fromkeys(relations.values())
    if len(names) > 1:
        own = {name: [rule for rule in changing if relations[rule] == name] for name in names}
        groups += [("relation", name, rules) for name, rules in own.items() if there.intersection(rules)]
    ranked = sorted((rule for rule in relations if rule in there), key=lambda rule: -violated[rule])
    groups += [("rule", rule, [rule]) for rule in ranked]
    rows = []
    for by, name, members in groups:
        total = sum(violated.get(rule, 0) for rule in members)
        rows.append((by, name, total, *_shares(marks.filter(pl.col("rule").is_in(members)))))
    return pl.DataFrame(rows, schema=_schema(), orient="row")


def _schema() -> dict[str, pl.DataType | type[pl.DataType]]:
    texts, counts = dict.fromkeys(("by", "name"), pl.String), dict.fromkeys(COUNTS, pl.Int64)
    return {**texts, **counts, **dict.fromkeys(_SHARES, pl.Float64)}


def _shares(marks: pl.DataFrame) -> tuple[int | float | None, ...]:
    """How many are of each mark, which share is real, and its interval; none of them where no mark says which."""
    counts = [int((marks["mark"] == mark).sum()) for mark in MARKS]
    decided = marks.filter(pl.col("mark") != UNCLEAR)
    if decided.is_empty():
        return *counts, None, None, None
    real = (pl.col("mark") == REAL).sum()
    by_cluster = decided.group_by("case", maintain_order=True).agg(real=real, trials=pl.len())
    low, high = clustered_share(by_cluster["real"], by_cluster["trials"])
    return *counts, counts[0] / decided.height, low, high
