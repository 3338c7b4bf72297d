"""Direction: where the map changed, probability moves the expected way, and no path crosses an obstacle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from instar.outputs.forecast import Paths
from instar.outputs.heat import HeatMap, heat_of
from instar.relations.relation import VERDICT_COLUMNS, Evidence, Relation
from instar.spelling import Parameter
from instar.stats import wilcoxon
from instar.store import Row, Schema
from instar.tasks.traj_test.relations import NO_MAP, SOURCES, past_of
from instar.transforms import mask_of
from instar.warp import Warp, crossing, mask_at

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LEAST_MASS = 0.001
"""Added to every mass, so that a change from almost nothing to almost nothing says nothing."""
ALPHA = 0.05
OBSTACLES = ("structure", "tree")
"""Classes that nobody walks on, by the names that the papers' maps have."""
STEP = 0.5
"""Pixels between the places at which a path is looked at."""

# fmt: off
MEASURES: Schema = {
    "before": pl.Float64, "after": pl.Float64, "log_ratio": pl.Float64, "z": pl.Float64, "p": pl.Float64,
    "hellinger": pl.Float64, "crossing": pl.Int32, "futures": pl.Int32,
}
# fmt: on


def direction(evidence: Evidence) -> pl.DataFrame:
    """The log ratio of the probability mass in the changed cells, after over before, the wrong way.

    Three outcomes by a margin: confirmed, inconclusive, wrong way; and for `avoid` a fourth, crossing. Without a
    probability map `avoid` is judged by the futures alone.
    """
    follow_ups = evidence.follow_ups
    paths, pasts = Paths.of(follow_ups), past_of(evidence.cases)
    columns = ["map", "map_size", "map_warp", "width", "height"]
    sources_of: dict[str, list[Row]] = {}
    for row in evidence.sources.select("case", "repeat", "futures", "samples", *columns).iter_rows(named=True):
        sources_of.setdefault(row["case"], []).append(row)
    verdicts: list[Row] = []
    rows = follow_ups.select("case", "follow_up", "warp", "mask", "facts", "added", *columns).iter_rows(named=True)
    for number, row in enumerate(rows):
        sources = sources_of.get(row["case"])
        if sources is None:
            continue
        frame = (sources[0]["width"], sources[0]["height"])
        warp = Warp(np.reshape(row["warp"], (3, 3)), frame, (row["width"], row["height"]))
        past = pasts.get(row["case"])
        here = None if past is None else warp.points(past[-1])
        key = {"case": row["case"], "follow_up": row["follow_up"], "target": "whole"}
        verdicts.append({**key, **_verdict(sources, row, warp, here, paths[number], evidence)})
    return _median(pl.DataFrame(verdicts, schema={**VERDICT_COLUMNS, **MEASURES}, orient="row"))


def _verdict(
    sources: Sequence[Row], follow_up: Row, warp: Warp, here: Floats | None, futures: Floats, evidence: Evidence
) -> Row:
    effect, margin = evidence.parameters["effect"], evidence.options["margin"]
    as_published = evidence.parameters["test"] == "wilcoxon"
    if not follow_up["mask"]:
        return {"reason": "no cells of the map were changed; direction goes with class_change and obstacle"}
    mask = _mask(follow_up["mask"], follow_up["width"], follow_up["height"])
    crossed = int(crossings(futures, here, mask).sum())
    counts = {"crossing": crossed, "futures": len(futures)}
    if effect == "avoid" and here is not None and not as_published and mask_at(mask, here):
        return {**counts, "reason": "the person stands on the changed cells, which nobody could avoid"}
    if effect == "avoid" and not as_published and (inside := _obstacle_around(follow_up)):
        return {**counts, "reason": f"the map puts the person inside a {inside}, where nobody can walk"}
    walked_through = margin + math.log((len(futures) + 1) / (len(futures) + 1 - crossed))
    measured = _measured(sources, follow_up, warp, mask, effect)
    if measured is None:
        if effect != "avoid" or as_published:
            return {**counts, "reason": NO_MAP}
        if crossed:
            return {**counts, "severity": walked_through, "kind": "crossing"}
        led_there = any(crossings(warp.points(_futures(source)), here, mask).any() for source in sources)
        return {**counts, "severity": 0.0, "kind": "confirmed" if led_there else "inconclusive"}
    wrong = -measured["log_ratio"] if effect == "increase" else measured["log_ratio"]
    outcome = "confirmed" if -wrong >= margin else "wrong way" if wrong >= margin else "inconclusive"
    if as_published:
        outcome = "confirmed" if measured["p"] < ALPHA else "inconclusive"
    severity = 0.0 if outcome == "confirmed" else max(0.0, wrong)
    if effect == "avoid" and crossed and not as_published:
        outcome, severity = "crossing", max(severity, walked_through)
    return {**counts, **measured, "severity": severity, "kind": outcome}


def _obstacle_around(follow_up: Row) -> str | None:
    """The obstacle in which the person stands by the map: of a class that nobody walks on, or of the one added."""
    ground = json.loads(follow_up["facts"] or "{}").get("ground")
    return ground if ground in OBSTACLES or ground in (follow_up["added"] or ()) else None


def _futures(row: Row) -> Floats:
    return np.reshape(row["futures"], (row["samples"], -1, 2)).astype(np.float64)


def _measured(sources: Sequence[Row], follow_up: Row, warp: Warp, mask: Mask, effect: str) -> Row | None:
    """Masses in the changed cells before and after; None where there is no probability map."""
    actual = heat_of(follow_up)
    # a map that is the same for every run of a system is looked at once
    distinct = {_placed(source): heat_of(source) for source in sources}
    expected = {place: heat.warped(warp) for place, heat in distinct.items() if heat is not None}
    if actual is None or len(expected) < len(distinct):
        return None
    mass = {place: _mass(heat, mask) for place, heat in expected.items()}
    masses = np.array([mass[_placed(source)] for source in sources])
    after, typical = _mass(actual, mask), float(masses.mean())
    ratio = math.log((after + LEAST_MASS) / (typical + LEAST_MASS))
    spread = float(np.log(masses + LEAST_MASS).std(ddof=1)) if len(masses) > 1 else 0.0
    first = expected[_placed(sources[0])]
    share, now = first.share(mask), actual.onto(first)
    inside = share > 0.5
    old, new = first.cells[inside], now[inside]
    p = wilcoxon(old, new) if effect == "increase" else wilcoxon(new, old)
    apart = math.sqrt(float((share * (np.sqrt(first.cells) - np.sqrt(now)) ** 2).sum()) / 2)
    return {
        "before": typical,
        "after": after,
        "log_ratio": ratio,
        "z": ratio / spread if spread > 1e-9 else None,
        "p": p,
        "hellinger": min(1.0, apart),
    }


def _placed(row: Row) -> tuple[object, ...]:
    """What tells maps apart: their cells, and where these lie."""
    return row["map"], *(row["map_warp"] or ())


def _mass(heat: HeatMap, mask: Mask) -> float:
    return float((heat.cells * heat.share(mask)).sum())


@lru_cache(maxsize=32)
def _mask(packed: bytes, width: int, height: int) -> Mask:
    """Cases of one map share its changed cells."""
    mask = mask_of({"mask": packed, "width": width, "height": height})
    assert mask is not None
    return mask


def crossings(futures: Floats, here: Floats | None, mask: Mask) -> Mask:
    """Which of the futures (K, T, 2), from where the person is now, cross a cell of the mask."""
    paths = futures if here is None else np.concatenate([np.broadcast_to(here, (len(futures), 1, 2)), futures], 1)
    return crossing(mask, paths, STEP)


def _median(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One verdict per case and follow-up: that of the repeat whose severity is the (upper) median."""
    ranked = verdicts.with_columns(
        place=pl.col("severity").rank("ordinal").over("case", "follow_up"),
        count=pl.col("severity").count().over("case", "follow_up"),
    )
    middle = (pl.col("place") == pl.col("count") // 2 + 1) | (pl.col("count") == 0)
    return ranked.filter(middle).unique(["case", "follow_up"], keep="first", maintain_order=True).drop("place", "count")


_EFFECTS = {
    "increase": "more futures must go there",
    "decrease": "fewer futures must go there",
    "avoid": "futures must go around it",
}


# fmt: off
RELATIONS: Mapping[str, Relation] = {
    "direction": Relation(
        "direction", "forecast", direction, mapping=False, responds=True,
        unit="units of log ratio the wrong way", threshold=0.1,
        grid=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), measures=MEASURES,
        kinds=("confirmed", "inconclusive", "wrong way", "crossing"),
        meanings={
            "wrong way": "probability grows where it must fall, or falls where it must grow",
            "crossing": "futures go through an obstacle",
        },
        counted={"wrong way": "going the wrong way", "crossing": "crossing an obstacle"},
        parameters=(
            Parameter(
                "effect", "choice", choices=("increase", "decrease", "avoid"),
                help="what the probability of the changed cells must do; avoid: fall, and no path crosses",
            ),
            SOURCES, Parameter("repeats", "int", 1, low=1, high=1000, help="predictions of the follow-up"),
            Parameter("draws", "int", 1, low=1, high=1000, help="follow-ups of a random transformation"),
            Parameter(
                "test", "choice", "margin", choices=("margin", "wilcoxon"),
                help="wilcoxon: as published, p < 0.05 in the expected direction is a confirmation",
            ),
        ),
        options=(
            Parameter(
                "margin", "float", 0.1, low=0, high=10, open_low=True, help="log ratios within this are inconclusive",
            ),
        ),
        words=lambda effect: _EFFECTS[effect], title="answers to a changed map",
        details=(
            "probability where the map changed: {before} before, {after} after",
            "futures that cross the obstacle: {crossing} of {futures} (the more there are, the higher is the severity, "
            "also where all cross)",
        ),
        help="Where the map changed, probability rises or falls as it should. Where k of n futures cross an obstacle, "
        "the severity is at least the margin plus ln((n + 1) / (n + 1 - k)), the log ratio of those that should stay "
        "clear to those that do. It counts evidence: all of 20 futures are 3.14, and the one of a deterministic system "
        "is 0.79. Systems with other numbers of futures are compared by the share of violated cases.",
    ),
}
# fmt: on
