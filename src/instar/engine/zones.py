"""Zones that are wrong: a background that holds the subject, told by the system's own answer to the source."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import cast

import polars as pl

from instar.engine.judging import Judging
from instar.engine.plan import SOURCE
from instar.outputs import Output, Row, output_kind
from instar.outputs.zones import Zones
from instar.relations import Relation
from instar.relations.relation import ZONE_SHARE
from instar.store import Manifest, Store
from instar.transforms import named_transformation
from instar.transforms.region import zones_around

_PAIR = ("case", "follow_up")


def with_right_zones(
    store: Store, predictions: pl.DataFrame, manifest: Manifest, relation: Relation, judging: Judging
) -> pl.DataFrame:
    """The predictions, with those not applicable whose zone holds the subject: its pixels were changed with the zone.

    The judging's option `zone_share` says how much of what the system found in the source a zone may hold.
    """
    options = judging.of(relation)
    limit = options.get(ZONE_SHARE.name, 1.0)
    around = {name: _around(name) for name in predictions["follow_up"].unique() if name != SOURCE and limit < 1}
    changed = predictions.filter(
        (pl.col("status") == "ok") & pl.col("follow_up").is_in([name for name, zones in around.items() if zones])
    )
    if changed.is_empty() or manifest.output is None:
        return predictions
    sources = predictions.filter(
        (pl.col("follow_up") == SOURCE)
        & (pl.col("repeat") == 0)
        & (pl.col("status") == "ok")
        & pl.col("case").is_in(changed["case"].implode())
    )
    shares = _shares(store, sources, manifest, options, sorted(frozenset().union(*around.values())))
    wrong = [
        (case, name, zone)
        for case, name in changed.select(_PAIR).unique(maintain_order=True).iter_rows()
        for zone in sorted(around[name])
        if shares.get((case, zone), 0.0) > limit
    ]
    reasons = pl.DataFrame(wrong, schema=dict.fromkeys((*_PAIR, "zone"), pl.String), orient="row").unique(_PAIR)
    text = pl.format(
        "the zone {} holds more than {} of what the system found in the source: one of the two is wrong",
        "zone",
        pl.lit(f"{limit:.0%}".replace("%", " %")),
    )
    return (
        predictions.join(reasons, on=_PAIR, how="left", maintain_order="left")
        .with_columns(
            status=pl.when(pl.col("zone").is_null()).then("status").otherwise(pl.lit("not applicable")),
            message=pl.when(pl.col("zone").is_null()).then("message").otherwise(text),
        )
        .drop("zone")
    )


@lru_cache(maxsize=4096)
def _around(name: str) -> frozenset[str]:
    return zones_around(named_transformation(name))


def _shares(
    store: Store, sources: pl.DataFrame, manifest: Manifest, options: Row, zones: list[str]
) -> dict[tuple[str, str], float]:
    """How much of what was found in each source lies in each of these zones."""
    kind = output_kind(manifest.system.kind)
    needed = store.needs(
        (pl.col("need") == Zones.need) & (pl.col("status") == "ok") & pl.col("case").is_in(sources["case"].implode())
    ).unique("case", keep="last")
    stored = {row["case"]: row for row in needed.iter_rows(named=True)}

    def of_case(row: Row) -> list[tuple[tuple[str, str], float]]:
        answer: Output = kind.from_row(row, manifest.header)
        parts = cast(Zones, store.need_value(stored[row["case"]]))
        return [((row["case"], z), answer.inside(parts.mask(z) > 0, options)) for z in zones if z in parts.names]

    with ThreadPoolExecutor() as pool:  # decoding leaves Python's lock alone
        rows = (row for row in sources.iter_rows(named=True) if row["case"] in stored)
        return {key: share for pairs in pool.map(of_case, rows) for key, share in pairs}
