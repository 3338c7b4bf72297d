"""A boundary: how far each image can be changed before the answer to it breaks, and what share bears how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from instar.analysis.limits import (
    BROKEN,
    FAILED,
    HELD,
    UNKNOWN,
    Bound,
    States,
    bisected,
    bound_rays,
    next_levels,
    states_of,
)
from instar.analysis.rates import UNJUDGED, unjudged_pairs
from instar.analysis.run import Run
from instar.engine import DEFAULT
from instar.registry import later_object
from instar.stats import LEAST_FOR_MEDIAN, Survival, survival
from instar.store import KeptColumns, Row, Store, basis_of, keep, kept
from instar.suites import suite_pieces
from instar.suites.grid import Grid, grids_of, is_search

QUANTILES = (0.1, 0.25, 0.75, 0.9)
"""Shares of the cases whose limits are told beside the median."""
COUNTED = ("broken", "unbroken", "lost", "broken before")
"""What became of the cases that count in a curve."""
MOST_NOT_MONOTONIC = 0.1
"""If a larger share of the probed cases pass again at a larger change, levels between the tested ones hide limits."""

_LIMITS: dict[str, type[pl.DataType]] = {
    "family": pl.String,
    "ray": pl.String,
    "case": pl.String,
    "status": pl.String,
    "limit": pl.Float64,
    "second": pl.Float64,
    "level": pl.Int64,
    "rule": pl.String,
    "last": pl.Float64,
    "last_second": pl.Float64,
    "last_rule": pl.String,
    "failed": pl.Boolean,
    "asked": pl.Int64,
    "held_beyond": pl.Boolean,
    "broken_below": pl.Boolean,
    "probes": pl.Int64,
    "visual_change": pl.Float64,
}
_CURVE: dict[str, type[pl.DataType]] = {
    "family": pl.String,
    "ray": pl.String,
    "level": pl.Int64,
    "value": pl.Float64,
    "second": pl.Float64,
    "at_risk": pl.Int64,
    "broken": pl.Int64,
    "share": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
CHANGES: dict[str, type[pl.DataType]] = {"case": pl.String, "rule": pl.String, "visual_change": pl.Float64}
_KEPT = "visual-changes"


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """What a search found.

    `limits` has a row per ray and case: `status` is *broken* at `limit` (the value of the ray's first parameter that is
    turned; `second` that of the other one in a frontier), with `last` the largest level that held below it;
    *unbroken* up to the far end; *lost*, unbroken as far as it was judged; *broken before*, violated with no change at
    all; or it counts nowhere: *not judged*, *not applicable*, *unfinished*. `failed` says that the next level has no
    verdict because of a failure, as when the system raised an exception. `held_beyond` says that a larger change
    held again, `broken_below` that bisection alone would have missed the limit; both can be seen only where levels were
    asked beside bisection, which `probes` counts: it is null where no other level is left. `visual_change` is that of
    the follow-up at the limit, of an unbroken one at `last`.

    `curve` has the share of cases that have not broken up to each level, null where nobody was at risk any more;
    `median` a row per ray: counts, and the level at which half of the cases (and other shares) have broken, ∞ where the
    far end is not enough, null where nobody was judged so far. `judged_to` is the last level at which a case was at
    risk. If a ray is `not_monotonic` (more than a tenth of the `probed` cases are `held_beyond`, and not all levels
    were asked), it has no median and no shares: they would be those of limits that were missed.
    """

    run: Run
    grids: Sequence[Grid]
    limits: pl.DataFrame
    curve: pl.DataFrame
    median: pl.DataFrame
    questions: int
    every: int
    """How many follow-ups a grid of the same levels has, and `questions` were asked: of the cases that are judged."""
    judging: str = DEFAULT

    def __repr__(self) -> str:
        """Each way's median limit. In words of the report, which is found by its name: nothing here may import it."""
        words: str = later_object("instar.report.boundary_words:boundary_line")(self)
        return words

    def of(self, grids: Sequence[Grid]) -> Boundary:
        """The same of some grids alone."""
        own = pl.col("family").is_in([grid.family for grid in grids])
        return replace(
            self,
            grids=grids,
            limits=self.limits.filter(own),
            curve=self.curve.filter(own),
            median=self.median.filter(own),
        )


def searched_grids(run: Run) -> list[Grid]:
    """The grids that a run was made to search, one of each name; those of code that was not loaded are left out."""
    return list(grids_of(_searches(run)))


def _searches(run: Run) -> list[str]:
    pieces = dict.fromkeys(piece for text in run.manifest.suites for piece in suite_pieces(text))
    return [piece for piece in pieces if is_search(piece)]


def boundary_of(run: Run, *, threshold: float | None = None, judging: str = DEFAULT) -> Boundary:
    """The limits that a run holds of the grids it searched.

    Raises ValueError where it is a run of another kind.
    """
    grids = searched_grids(run)
    if not grids and _searches(run):
        raise ValueError(
            f"{run.folder} searched {', '.join(_searches(run))}: the family is not known here, has no limits, or is "
            "code that a file names and that was not loaded; open it with `trust` if it is yours"
        )
    if not grids:
        raise ValueError(
            f"{run.folder} holds no search for limits: it is a run of {', '.join(run.manifest.suites)}. `instar "
            "boundary SYSTEM FAMILY DATASET` makes one"
        )
    cases = run.store.cases(["case", "status"]).filter(status="ok")["case"].to_list()
    bounds = bound_rays(run.manifest.system.kind, grids)
    rules = list(dict.fromkeys(rule for bound in bounds for rule in (bound.unchanged, *bound.rules)))
    place = {rule: number for number, rule in enumerate(rules)}
    states = states_of(run, rules, cases, threshold=threshold, judging=judging)
    changes = {(case, rule): change for case, rule, change in visual_changes(run.store, judging).iter_rows()}
    neutral = states[[place[name] for name in {bound.unchanged for bound in bounds}]]
    judged = np.isin(neutral, (HELD, BROKEN)).any(0)
    rows, curves, medians = [], [], []
    for bound in bounds:
        own = states[[place[rule] for rule in (bound.unchanged, *bound.rules)]]
        rows_of_ray = [_limit(case, own[:, number], bound) for number, case in enumerate(cases)]
        for row in rows_of_ray:
            row["visual_change"] = changes.get((row["case"], row["rule"] or row["last_rule"]))
        curve, summary = _summary(rows_of_ray, bound)
        rows += rows_of_ray
        curves += curve
        medians.append(summary)
    return Boundary(
        run,
        grids,
        pl.DataFrame(rows, schema=_LIMITS),
        pl.DataFrame(curves, schema=_CURVE),
        pl.DataFrame(medians, infer_schema_length=None),
        int((states[:, judged] != UNKNOWN).sum()),
        states[:, judged].size,
        judging,
    )


def unjudged_ways(boundary: Boundary) -> pl.DataFrame:
    """Why pairs have no severity on the ways on which no case has a limit, those of the unchanged input among them."""
    idle = set(boundary.median.filter(cases=0).select("family", "ray").iter_rows())
    bounds = bound_rays(boundary.run.manifest.system.kind, boundary.grids)
    ways = [bound for bound in bounds if (bound.family, bound.ray.name) in idle]
    rules = list(dict.fromkeys(rule for bound in ways for rule in (bound.unchanged, *bound.rules)))
    store = boundary.run.store
    return unjudged_pairs(store.verdict_parts(boundary.judging, UNJUDGED) if store.state("predictions") else (), rules)


def _limit(case: str, states: States, bound: Bound) -> Row:
    """What is known of a case along a ray; the first state is that of the unchanged input."""
    neutral, levels = int(states[0]), states[1:]
    row: Row = dict.fromkeys(_LIMITS)
    row |= {"family": bound.family, "ray": bound.ray.name, "case": case, "asked": int((levels != UNKNOWN).sum())}
    row |= {"held_beyond": False, "broken_below": False, "failed": False}
    if neutral != HELD:
        return row | ({"status": "broken before", "level": 0} if neutral == BROKEN else {"status": "not judged"})
    broken, unbroken = np.flatnonzero(levels == BROKEN), np.flatnonzero(levels == HELD)
    first = int(broken[0]) if len(broken) else None
    below = unbroken if first is None else unbroken[unbroken < first]
    last = int(below[-1]) if len(below) else None
    if last is not None:
        row |= {"last_rule": bound.rules[last]} | _values(bound, last, "last", "last_second")
    if next_levels(levels, 0):
        return row | {"status": "unfinished"}
    seen = set[int]()
    _, high = bisected(levels, -1, len(levels), seen)  # where bisection alone would have ended
    row["probes"] = row["asked"] - len(seen) if len(seen) < len(levels) else None
    if first is not None:
        row |= {"status": "broken", "rule": bound.rules[first], "level": first + 1}
        row |= _values(bound, first, "limit", "second")
        return row | {"held_beyond": bool((unbroken > first).any()), "broken_below": high > first}
    reached = 0 if last is None else last + 1
    row["failed"] = reached < len(levels) and int(levels[reached]) == FAILED
    if last is None:
        return row | {"status": "not judged" if row["failed"] else "not applicable"}
    return row | {"status": "unbroken" if reached == len(levels) else "lost", "level": reached}


def _values(bound: Bound, level: int, *names: str) -> Row:
    """The values of a level, by name: those of the axes that the ray turns."""
    values = bound.ray.levels[level].values
    moving = [values[place] for place in bound.ray.moving]
    return dict(zip(names, moving, strict=False))


def _summary(limits: Sequence[Row], bound: Bound) -> tuple[list[Row], Row]:
    """The survival curve of a ray, and its median with all that is counted."""
    counted = [row for row in limits if row["status"] in COUNTED]
    ends = [row["level"] for row in counted]
    broken = [row["status"] in ("broken", "broken before") for row in counted]
    curve = survival(ends, broken, np.arange(len(bound.rules) + 1, dtype=np.float64))
    probed = [row for row in counted if row["status"] != "broken before" and row["probes"] != 0]
    beyond = sum(row["held_beyond"] for row in limits)
    missed = any(row["asked"] < len(bound.rules) for row in probed if row["status"] != "lost")
    estimable = not (missed and beyond > MOST_NOT_MONOTONIC * len(probed))
    common: Row = {"family": bound.family, "ray": bound.ray.name}
    rows = [
        {
            **common,
            "level": level,
            **_at(bound, level, "value", "second"),
            "at_risk": int(curve.at_risk[level]),
            "broken": int(curve.broken[level]),
            "share": float(curve.share[level]) if estimable and not np.isnan(curve.share[level]) else None,
            "low": (float(curve.low[level]) if counted else 0.0) if estimable else None,
            "high": float(curve.high[level]) if estimable else None,
        }
        for level in range(len(bound.rules) + 1)
    ]
    statuses = [row["status"] for row in limits]
    summary: Row = {
        **common,
        "cases": len(counted),
        **{name.replace(" ", "_"): statuses.count(name) for name in COUNTED},
        **{name.replace(" ", "_"): statuses.count(name) for name in ("not judged", "not applicable", "unfinished")},
        "failed": sum(row["status"] == "lost" and row["failed"] for row in limits),
        **_at(bound, max(ends, default=math.nan), "judged_to", "second_judged_to"),
        **_quantiles(curve, bound, len(counted) if estimable else 0),
        **_seen(counted if estimable else []),
        "held_beyond": beyond,
        "probed": len(probed),
        "not_monotonic": not estimable,
        "broken_below": sum(row["broken_below"] for row in limits),
        "unprobed": sum(row["probes"] == 0 and row["status"] in ("broken", "unbroken") for row in limits),
        "levels": len(bound.rules),
        "asked": sum(row["asked"] for row in limits),
        "every": len(bound.rules) * len(limits),
    }
    return rows, summary


def _at(bound: Bound, level: float, *names: str) -> Row:
    """The values at a level, 0 being no change, ∞ beyond the far end and NaN not known, by name."""
    if not math.isfinite(level):
        value = math.inf if math.isinf(level) else None
        return {name: value for name, _ in zip(names, bound.ray.moving, strict=False)}
    if level:
        return _values(bound, int(level) - 1, *names)
    return dict(zip(names, (bound.ray.axes[place].neutral for place in bound.ray.moving), strict=False))


def _quantiles(curve: Survival, bound: Bound, cases: int) -> Row:
    """The median with its interval and the other quantiles, as values of the parameter; `_level` is the place.

    Of few cases (`LEAST_FOR_MEDIAN`) there is no interval."""
    row: Row = dict.fromkeys(("median", "second", "median_low", "second_low", "median_high", "second_high"))
    quantiles = {f"q{100 * share:g}": share for share in QUANTILES}
    row |= {"median_level": None, **dict.fromkeys(one for name in quantiles for one in (name, f"second_{name}"))}
    if not cases:
        return row
    middle, low, high = curve.quantile(0.5)
    row |= _at(bound, middle, "median", "second") | {"median_level": None if math.isnan(middle) else middle}
    if cases >= LEAST_FOR_MEDIAN:
        row |= _at(bound, low, "median_low", "second_low") | _at(bound, high, "median_high", "second_high")
    for name, share in quantiles.items():
        row |= _at(bound, curve.quantile(share)[0], name, f"second_{name}")
    return row


def _seen(counted: Sequence[Row]) -> Row:
    """The median visual change at the limit with its interval; None where pixels move, or nobody measured it."""
    measured = [row for row in counted if row["visual_change"] is not None]
    row: Row = {"visual_cases": len(measured), "visual": None, "visual_low": None, "visual_high": None}
    if not measured or len(measured) < sum(row["status"] != "broken before" for row in counted):
        return row
    ends = [row["visual_change"] for row in measured]
    curve = survival(ends, [one["status"] == "broken" for one in measured])
    middle, low, high = curve.quantile(0.5)
    row |= {"visual_low": low, "visual_high": high}
    # beyond the far end is only what was judged up to it
    known = math.isfinite(middle) or any(one["status"] == "unbroken" for one in counted)
    return row | {"visual": middle if known else None}


# --- visual change, which takes the images and is kept -------------------------------------------------


def visual_changes(store: Store, judging: str = DEFAULT) -> pl.DataFrame:
    """The visual changes that were measured of a run as it is: a row per case and rule, null where pixels moved."""
    basis = basis_of(store, judging)
    columns = None if basis is None else kept(store, judging, _KEPT, basis)
    if columns is None or set(columns) != set(CHANGES):
        return pl.DataFrame(schema=CHANGES)
    return pl.DataFrame([columns[name].cast(kind).alias(name) for name, kind in CHANGES.items()])


def keep_visual_changes(store: Store, rows: pl.DataFrame, judging: str = DEFAULT) -> None:
    """Keep what was measured beside the verdicts; once the run has more predictions it is measured anew."""
    basis = basis_of(store, judging)
    if basis is not None and rows.height:
        columns: KeptColumns = rows.select(list(CHANGES)).to_dict()
        keep(store, judging, _KEPT, basis, columns)


def limit_pairs(boundary: Boundary) -> Iterator[tuple[str, str]]:
    """Cases and rules whose visual change is wanted: at the limit, or at the last level where nothing broke."""
    for case, rule, last in boundary.limits.select("case", "rule", "last_rule").unique(maintain_order=True).iter_rows():
        if wanted := rule or last:
            yield case, wanted
