"""Relations over many cases: how a measure of the whole dataset answers to levels, with its interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs import Schema
from instar.relations.relation import Evidence, Relation
from instar.spelling import Parameter
from instar.stats import bootstrap, greatest_interval, pearson, resamples, spearman
from instar.transforms.words import digits, percentage

Floats = npt.NDArray[np.float64]


def _share(hits: Floats, every: Floats) -> Floats:
    """What nothing speaks against is 1: nothing there, nothing found."""
    return np.asarray(np.where(every > 0, hits / np.where(every > 0, every, 1.0), 1.0))


POOLED: dict[str, tuple[tuple[str, ...], Callable[..., Floats]]] = {
    "precision": (("tp", "fp"), lambda tp, fp: _share(tp, tp + fp)),
    "recall": (("tp", "fn"), lambda tp, fn: _share(tp, tp + fn)),
    "f1": (("tp", "fp", "fn"), lambda tp, fp, fn: _share(2 * tp, 2 * tp + fp + fn)),
    "hand_precision": (("hand_tp", "hand_fp"), lambda tp, fp: _share(tp, tp + fp)),
    "hand_recall": (("hand_tp", "hand_fn"), lambda tp, fn: _share(tp, tp + fn)),
    "hand_f1": (("hand_tp", "hand_fp", "hand_fn"), lambda tp, fp, fn: _share(2 * tp, 2 * tp + fp + fn)),
    "error": (
        ("distance", "near"),
        lambda distance, near: np.asarray(np.where(near > 0, distance / np.where(near > 0, near, 1.0), np.nan)),
    ),
}
"""Measures of a whole dataset by the counts they are made of, which are summed over cases first."""
SHARES = frozenset(POOLED) - {"error"}
"""The measures that are shares of what is right: more is better."""
WRONGS = frozenset({"error", "severity"})
"""The measures of what is wrong: less is better. Of other columns of verdicts nothing is known."""
_MADE_OF = dict.fromkeys(POOLED, "accuracy")
_MEASURE = Parameter(
    "measure",
    "text",
    "severity",
    help=f"{', '.join(POOLED)} of the whole dataset, or the mean over cases of a column of the levels' verdicts",
)
_BASE = dict.fromkeys(("case", "follow_up", "target", "kind"))
_OWN: Schema = {**dict.fromkeys(_BASE, pl.String), "severity": pl.Float64, "reason": pl.String}


def _levels(evidence: Evidence) -> tuple[Floats, Callable[[Floats], Floats]] | str:
    """One row of numbers per case, and how sums of rows become the measure at each level, with the source's last.

    Cases that miss a level are left out. A text says why there is nothing to compute. A column that is not counted but
    measured has no value for the source: 0, which is what a perfect system has.
    """
    measure, verdicts = str(evidence.parameters["measure"]), evidence.verdicts
    columns, pooled = POOLED.get(measure, ((measure,), None))
    missing = [name for name in columns if name not in verdicts.columns]
    if missing and verdicts.width:
        known = [c for c, kind in verdicts.schema.items() if kind.is_numeric()]
        raise ValueError(f"there is no measure {measure!r}; these levels have {', '.join([*POOLED, *known])}")
    lost = [level for level in evidence.levels if verdicts.is_empty() or level not in set(verdicts["follow_up"])]
    if lost:
        return f"no verdicts for {lost[0]}"
    names = [*columns, *(f"source_{name}" for name in columns if f"source_{name}" in verdicts.columns)]
    how = [pl.col(name).max() if pooled is None else pl.col(name).sum() for name in names]
    wide = verdicts.group_by("case", "follow_up").agg(how).pivot("follow_up", index="case", values=names).drop_nulls()
    wide = wide.sort("case")  # resampled in the same order each time
    parts = [
        wide.select([level if len(names) == 1 else f"{name}_{level}" for level in evidence.levels]).to_numpy()
        for name in columns
    ]
    if pooled is not None:
        base = [wide.select(f"source_{name}_{evidence.levels[0]}").to_numpy() for name in columns]
        parts = [np.concatenate([part, one], 1) for part, one in zip(parts, base, strict=True)]
    table = np.stack(parts, -1).astype(np.float64)
    if pooled is not None:
        table = table[table.any((1, 2))]  # nothing there and nothing found: such a case says nothing
    finite = table[np.isfinite(table)]
    table = np.where(np.isinf(table), finite.max() if len(finite) else 1.0, table)

    def measured(sums: Floats) -> Floats:
        if pooled is not None:
            return pooled(*np.moveaxis(sums, -1, 0))
        means = sums[..., 0] / len(table)
        return np.concatenate([means, np.zeros_like(means[..., :1])], -1)

    return table, measured


def _verdict(measures: Schema, severity: float | None, reason: str | None = None, **values: float) -> pl.DataFrame:
    """The one verdict over all cases; no severity where there is a reason."""
    return pl.DataFrame([{**_BASE, "severity": severity, "reason": reason, **values}], schema={**_OWN, **measures})


def _sign(evidence: Evidence) -> float:
    """Which way the measure goes where answers become worse: -1 for shares that are right, 1 for what is wrong.

    0 where both ways are allowed, or where it is not known which way is worse.
    """
    measure = str(evidence.parameters["measure"])
    if evidence.parameters["direction"] == "either":
        return 0.0
    return -1.0 if measure in SHARES else float(measure in WRONGS)


def correlation(evidence: Evidence) -> pl.DataFrame:
    """How far the measure becomes worse in proportion to the level: the shortfall below `least` of r, in that sense.

    A share of what is right must fall, an error or a severity must rise: a measure that goes the other way falls short
    by all of `least` and its own |r|. A share that is 0 in the source has nowhere to fall: only a rise is judged.
    """
    levels = _levels(evidence)
    if not isinstance(levels, str) and (len(levels[0]) < 2 or len(evidence.levels) < 2):
        levels = "it takes two levels and two cases judged at all of them"
    if isinstance(levels, str):
        return _verdict(_CORRELATION, None, levels)
    table, measured = levels
    order, sign = np.arange(len(evidence.levels), dtype=np.float64), _sign(evidence)

    def strength(rows: Floats) -> float:
        return pearson(order, measured(rows.sum(0))[:-1])

    r, measure = strength(table), str(evidence.parameters["measure"])
    if sign * r >= 0 and sign and measure in SHARES and not measured(table.sum(0))[-1]:
        return _verdict(_CORRELATION, None, f"there was nothing to lose: {measure} of the source is 0")
    low, high = bootstrap(table, strength)
    rho, least = spearman(order, measured(table.sum(0))[:-1]), evidence.parameters["least"]
    severity = max(0.0, least - (sign * r if sign else abs(r)))
    return _verdict(_CORRELATION, severity, r=r, rho=rho, low=low, high=high, cases=len(table))


def degradation(evidence: Evidence) -> pl.DataFrame:
    """How much of the measure is surely lost beyond what is allowed: the worst level decides.

    `drop` is the source's measure less the level's (for an error the other way round) at the level that loses most,
    with the 95 % interval of the greatest drop of all levels, over resampled cases, each with its source and all its
    levels (`greatest_interval`). What is lost of a share of what is right is relative to what there was to lose, the
    source's share: `lost`, with its interval. Severity is what the lower end of that interval exceeds `margin` by: 0 if
    the interval reaches the margin. If no level truly loses more than the margin, severity is above 0 with a
    probability of 2.5 % at most, however many levels there are.
    """
    levels = _levels(evidence)
    if not isinstance(levels, str) and len(levels[0]) < 2:
        levels = "it takes two cases judged at every level"
    if isinstance(levels, str):
        return _verdict(_DEGRADATION, None, levels)
    table, measured = levels
    measure = str(evidence.parameters["measure"])
    relative = measure in SHARES and evidence.parameters["of"] == "baseline"

    def drops(values: Floats) -> Floats:
        return np.asarray((values[..., -1:] - values[..., :-1]) * (-1.0 if measure in WRONGS else 1.0))

    def shares(values: Floats) -> Floats:
        first = values[..., -1:]
        return drops(values) / np.where(first > 0, first, 1.0) if relative else drops(values)

    values = measured(table.sum(0))
    dropped = drops(values)
    if np.isnan(dropped).any():
        return _verdict(_DEGRADATION, None, "nothing was found on both sides at some level")
    if relative and values[-1] == 0:
        return _verdict(_DEGRADATION, None, f"there was nothing to lose: {measure} of the source is 0")
    worst = int(np.argmax(dropped))
    drawn = measured(_resampled(table))
    low, high = greatest_interval(np.nan_to_num(drops(drawn)), len(table))
    lost_low, lost_high = greatest_interval(np.nan_to_num(shares(drawn)), len(table))
    return _verdict(
        _DEGRADATION,
        max(0.0, lost_low - evidence.parameters["margin"]),
        drop=float(dropped[worst]),
        low=low,
        high=high,
        lost=float(shares(values)[worst]),
        lost_low=lost_low,
        lost_high=lost_high,
        baseline=float(values[-1]),
        value=float(values[worst]),
        cases=len(table),
    )


def _resampled(table: Floats) -> Floats:
    """The sums over resampled cases: a thousand resamples for each level, since the error is shared among levels."""
    rows = table.reshape(len(table), -1)
    sums = [weights @ rows for weights in resamples(len(table), times=1000 * table.shape[1])]
    return np.concatenate(sums).reshape(-1, *table.shape[1:])


def _measure_words(measure: str) -> str:
    return measure.replace("_", " ").replace("f1", "F1")


def _correlation_words(measure: str, direction: str) -> str:
    change = "change" if direction == "either" or measure not in SHARES | WRONGS else "get worse"
    return f"{_measure_words(measure)} must {change} with the level"


def _degradation_words(measure: str, margin: float, of: str) -> str:
    change = "fall" if measure in SHARES else "rise"
    much = f"{percentage(margin)} of what it was" if of == "baseline" and measure in SHARES else digits(margin)
    return f"{_measure_words(measure)} may {change} by at most {much}"


# fmt: off
_CORRELATION = {"r": pl.Float64, "rho": pl.Float64, "low": pl.Float64, "high": pl.Float64, "cases": pl.Int32}
_DEGRADATION = {
    **dict.fromkeys(("drop", "low", "high", "lost", "lost_low", "lost_high", "baseline", "value"), pl.Float64),
    "cases": pl.Int32,
}

RELATIONS = (
    Relation(
        "correlation", "any", correlation, mapping=False, unit="units of r too little", threshold=0.0,
        grid=(0.0, 0.05, 0.1, 0.2, 0.5), over="cases", measures=_CORRELATION, made_of=_MADE_OF, responds=True,
        parameters=(
            _MEASURE,
            Parameter("least", "float", 0.9, low=0, high=1, help="r from here up is strong, in the sense of direction"),
            Parameter("direction", "choice", "worse", choices=("worse", "either"),
                      help="worse: a share of what is right falls, an error or a severity rises; either: |r| alone, as "
                           "for every other column"),
        ),
        words=_correlation_words,
        help="A measure of the whole dataset becomes worse in proportion to the level.",
    ),
    Relation(
        "degradation", "any", degradation, mapping=False, unit="units beyond the margin", threshold=0.0,
        grid=(0.0, 0.02, 0.05, 0.1, 0.2), over="cases", measures=_DEGRADATION, made_of=_MADE_OF,
        parameters=(
            _MEASURE,
            Parameter("margin", "float", 0.05, low=0, high=1e6, help="how much of the measure may be lost"),
            Parameter("of", "choice", "baseline", choices=("baseline", "whole"),
                      help="what is lost of a share counts as a part of the source's share, or of 1"),
        ),
        words=_degradation_words,
        help="A measure of the whole dataset does not fall from the source's by more than a margin.",
    ),
)
# fmt: on
