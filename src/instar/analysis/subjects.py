"""What is known of the subjects of each case, as columns to slice by: how many, how large, where, in which zones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from instar.engine import SOURCE, chunks
from instar.outputs import output_kind
from instar.outputs.zones import Zones
from instar.relations import own_equivariance
from instar.store import Manifest, Store

__all__ = ["subject_columns"]

_PLACES: dict[str, Any] = {
    "subjects": pl.Int64,
    "subject_size": pl.Float64,
    "subject_x": pl.Float64,
    "subject_y": pl.Float64,
    "subject_off_centre": pl.Float64,
}


def subject_columns(store: Store) -> pl.DataFrame:
    """One row per case: `case`, and numbers about its subjects as the first source output has them.

    `subjects` is how many were found with the confidence of the suite's judging. The others are about the largest of
    them, by the box around all its landmarks or its own box, which may reach out of the frame: `subject_size` is the
    box's diagonal as a share of the frame's, which does not change when somebody lies down; `subject_x` and
    `subject_y` are the box's centre as shares of width and height; `subject_off_centre` is its distance from the
    frame's centre, 1 in a corner. They are null where nobody was found, and all of them where the source failed.
    Kinds of output without subjects have none of these columns.

    Where the run stored zones, `zone_…` is the share of the picture that each takes.
    """
    found = store.cases(["case"])
    for part in (_found(store), _zones(store)):
        if part is not None:
            found = found.join(part, on="case", how="left", maintain_order="left")
    return found


def _found(store: Store) -> pl.DataFrame | None:
    manifest = store.manifest()
    if manifest.output is None:
        return None
    kind = output_kind(manifest.system.kind)
    confidence = _confidence(manifest)
    frames = [pl.DataFrame(schema={"case": pl.String, **_PLACES})]
    first = (pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0) & (pl.col("status") == "ok")
    for part in chunks(store):
        rows = store.predictions(["case", "width", "height", *kind.columns], where=part & first)
        subjects = kind.subjects(rows, manifest.header)
        if subjects is None:
            return None
        frames.append(_placed(rows, subjects.filter(pl.col("score") >= confidence)))
    return pl.concat(frames)


def _confidence(manifest: Manifest) -> float:
    """What the suite's judging takes for found."""
    options = {p.name: p.default for p in own_equivariance(manifest.system.kind).relation.options}
    return float({**options, **manifest.options}.get("confidence", 0.0))


def _placed(rows: pl.DataFrame, subjects: pl.DataFrame) -> pl.DataFrame:
    frames = rows.select("case", "width", "height").with_row_index("row")
    x, y = (pl.col("x0") + pl.col("x1")) / 2, (pl.col("y0") + pl.col("y1")) / 2
    width, height = pl.col("width"), pl.col("height")
    measured = subjects.join(frames, on="row").select(
        "row",
        subject_size=_length(pl.col("x1") - pl.col("x0"), pl.col("y1") - pl.col("y0")) / _length(width, height),
        subject_x=x / width,
        subject_y=y / height,
        subject_off_centre=_length(2 * x - width, 2 * y - height) / _length(width, height),
    )
    largest = (
        measured.sort("subject_size", descending=True, maintain_order=True)
        .group_by("row")
        .agg(pl.len().cast(pl.Int64).alias("subjects"), pl.all().first())
    )
    return (
        frames.join(largest, on="row", how="left", maintain_order="left")
        .with_columns(pl.col("subjects").fill_null(0))
        .select("case", *_PLACES)
    )


def _length(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    return (x.cast(pl.Float64) ** 2 + y.cast(pl.Float64) ** 2).sqrt()


def _zones(store: Store) -> pl.DataFrame | None:
    stored = store.needs((pl.col("kind") == Zones.kind) & (pl.col("status") == "ok")).unique(
        "case", keep="last", maintain_order=True
    )

    def shares(row: Mapping[str, Any]) -> dict[str, Any]:
        if row["facts"]:
            found = json.loads(row["facts"])
        else:  # a run of before: they were not kept
            zones = store.need_value(row)
            assert isinstance(zones, Zones)
            found = zones.shares()
        return {"case": row["case"], **{f"zone_{name}": share for name, share in found.items()}}

    rows = [shares(row) for row in stored.iter_rows(named=True)]
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None
