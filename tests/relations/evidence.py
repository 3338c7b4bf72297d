"""What a relation says of a source and the draws of one follow-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from instar.outputs import Output
from instar.relations import Evidence, own_equivariance
from instar.warp import Size

Row = dict[str, Any]


def judged(
    source: Output,
    follow_ups: Sequence[Output],
    size: Size,
    row: Callable[[Any], Mapping[str, Any]],
    *,
    matrix: np.ndarray | None = None,
    regions: tuple[float, ...] | None = None,
    **options: Any,
) -> dict[str, Row]:
    """The verdicts by target. `row` makes the stored columns of an output."""
    bound = own_equivariance(source.kind)
    warp = (np.eye(3) if matrix is None else matrix).ravel().tolist()

    def frame(name: str, outputs: Sequence[Output]) -> pl.DataFrame:
        key = {"case": "a", "follow_up": name, "repeat": 0, "width": size[0], "height": size[1], "warp": warp}
        rows = [{**key, "draw": draw, **row(one)} for draw, one in enumerate(outputs)]
        touched = pl.Series("regions", [regions] * len(rows), pl.List(pl.Float32))
        return pl.DataFrame(rows, schema_overrides=dict(source.columns)).with_columns(touched)

    evidence = Evidence(
        source.header(),
        pl.DataFrame(),
        frame("source", (source,)),
        frame("moved", follow_ups),
        dict(bound.values),
        {option.name: option.default for option in bound.relation.options} | options,
    )
    return {row["target"]: row for row in bound.relation.judge(evidence).iter_rows(named=True)}
