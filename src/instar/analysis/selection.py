"""Which rules are enough: the cheapest that still find the failing cases, the most useful first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.analysis.coverage import violations
from instar.analysis.severities import Verdicts
from instar.engine import SOURCE
from instar.store import Store

Bools = npt.NDArray[np.bool_]

SECONDS = 20.0
"""How long the exact search may take; what it has found by then is the cheapest known, perhaps not the cheapest."""


def costs(store: Store) -> dict[str, float]:
    """Seconds of prediction that each follow-up costs per case, as the run measured them, all its repeats together."""
    spent = store.predictions(
        ["follow_up", "seconds", "case"],
        where=pl.col("status") == "ok",
        query=lambda rows: (
            rows.filter(pl.col("follow_up") != SOURCE)
            .group_by("follow_up")
            .agg(pl.col("seconds").sum() / pl.col("case").n_unique())
        ),
    )
    return dict(spent.select("follow_up", "seconds").iter_rows())


def selected(
    verdicts: Verdicts,
    thresholds: Mapping[str, float],
    follow_ups: Mapping[str, Sequence[str]],
    cost: Mapping[str, float],
    *,
    share: float = 1.0,
) -> tuple[pl.DataFrame, bool]:
    """The cheapest rules that find at least this share of the cases that violate any rule; and whether it is proven.

    `follow_ups` names what each rule needs predicted, `cost` what that costs; rules that share one pay it once. One row
    per rule, the one that finds most new cases for its cost first: `found` are the cases it adds, `cost` what it
    adds, `total` and `share` what all so far find together. Among sets of one cost, the fewest rules.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is above 0 and at most 1, got {share}")
    rules, _, hit = violations(verdicts, thresholds)
    hit = hit[:, hit.any(0)]
    schema = {"rule": pl.String, "cost": pl.Float64, "found": pl.Int64, "total": pl.Int64, "share": pl.Float64}
    if not hit.size:
        return pl.DataFrame(schema=schema), True
    names = list(dict.fromkeys(name for rule in rules for name in follow_ups[rule]))
    price = np.array([max(0.0, float(cost.get(name, 0.0))) for name in names])
    needs = np.array([[name in follow_ups[rule] for name in names] for rule in rules])
    chosen, proven = _cheapest(hit, needs, price, math.ceil(share * hit.shape[1] - 1e-9))
    rows, seen, paid, left = [], np.zeros(hit.shape[1], bool), np.zeros(len(names), bool), np.flatnonzero(chosen)
    while len(left):
        new, extra = (hit[left] & ~seen).sum(1), (needs[left] & ~paid) @ price
        place = int(np.argmax(new / np.maximum(extra, 1e-12)))
        if not new[place]:
            break  # a rule too many, which costs nothing more: the solver does not tell such prices from 0
        best = left[place]
        seen, paid, left = seen | hit[best], paid | needs[best], np.delete(left, place)
        rows.append((rules[best], float(extra[place]), int(new[place]), int(seen.sum()), float(seen.mean())))
    return pl.DataFrame(rows, schema=schema, orient="row"), proven


def _cheapest(hit: Bools, needs: Bools, price: npt.NDArray[np.float64], least: int) -> tuple[Bools, bool]:
    """Which rules (R,) to take so that at least so many cases of hit (R, C) are found, at the least price of what
    they need (R, F)."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, csr_array, eye_array

    useful = np.flatnonzero(hit.any(1))
    # cases that the same rules find are one, with their number for a weight
    patterns, count = np.unique(hit[useful], axis=1, return_counts=True)
    (many, kinds), paid = patterns.shape, len(price)
    small = (price[price > 0].min() if (price > 0).any() else 1.0) / (1000 * many)
    rule, need = np.nonzero(needs[useful])
    links = np.arange(len(rule))

    def picked(columns: npt.NDArray[np.int64], width: int) -> csr_array:
        return csr_array((np.ones(len(rule)), (links, columns)), shape=(len(rule), width))

    # variables: the rules taken, what is predicted for them, and the kinds of cases found
    must_hold: csr_array = block_array(
        [
            [csr_array(patterns.T.astype(float)), csr_array((kinds, paid)), -eye_array(kinds)],  # type: ignore[list-item]
            [-picked(rule, many), picked(need, paid), csr_array((len(rule), kinds))],
            [csr_array((1, many)), csr_array((1, paid)), csr_array(count[None].astype(float))],
        ]
    )
    answer = milp(
        np.concatenate([np.full(many, small), price, np.zeros(kinds)]),
        bounds=Bounds(0, 1),
        integrality=np.concatenate([np.ones(many), np.zeros(paid + kinds)]),
        constraints=LinearConstraint(must_hold, lb=np.concatenate([np.zeros(kinds + len(rule)), [least]])),
        options={"time_limit": SECONDS, "mip_rel_gap": 1e-9},
    )
    chosen = np.zeros(len(hit), bool)
    if answer.x is None:  # out of time without any: all that find something do
        chosen[useful] = True
        return chosen, False
    chosen[useful[answer.x[:many] > 0.5]] = True
    return chosen, bool(answer.status == 0)
