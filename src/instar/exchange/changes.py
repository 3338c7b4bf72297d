"""The predictions of an import: outputs with what was changed, as the export or the table says it, or as the
transformation does it to every input of that size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import polars as pl

from instar.case import blank_input
from instar.engine.plan import SOURCE
from instar.exchange.inputs import KnownInputs
from instar.exchange.raw import CHUNK, RawRows, spelled_key
from instar.outputs import output_kind
from instar.reading import too_many_pixels
from instar.store import KEY, Schema, Store, rows_frame
from instar.transforms import Change, NotApplicable, named_transformation
from instar.warp import Size

_FINE = pl.col("status") == "ok"
_UNSAID = pl.col("warp").list.len() == 0
_SIZE: Schema = {"wide": pl.Int32, "high": pl.Int32}
_DERIVED: Schema = {
    "follow_up": pl.String,
    **_SIZE,
    "matrix": pl.List(pl.Float64),
    "to_wide": pl.Int32,
    "to_high": pl.Int32,
}


def add_predictions(raw: RawRows, inputs: KnownInputs, sizes: pl.DataFrame, run: Store | None) -> None:
    """Write predictions beside the run, chunk by chunk. What the export could not make is added to `raw.keys`."""
    rows = raw.keys.join(raw.stored, on=KEY, how="anti").select("row").sort("row")
    schema = raw.scratch.prediction_schema(raw.kind)
    for start in range(0, rows.height, CHUNK):
        chunk = rows.slice(start, CHUNK)
        part = raw.read(where=pl.col("row").is_between(chunk["row"][0], chunk["row"][-1]))
        part = part.join(chunk, on="row", how="semi")
        if inputs.changes is None:
            part = _with_changes(raw, part, sizes)
        else:
            part = part.drop(*Change.columns).join(inputs.changes.drop("status", "message"), on=KEY, how="left")
        raw.scratch.append("predictions", part.select(pl.col(name).cast(kind) for name, kind in schema.items()))
    if inputs.changes is None:
        return
    unmade = inputs.changes.filter(~_FINE)
    if run is not None:
        unmade = unmade.join(run.predictions(list(KEY)), on=KEY, how="anti")
    if not unmade.is_empty():
        raw.scratch.append("predictions", rows_frame(unmade.to_dicts(), schema))
        raw.keys = pl.concat([raw.keys, unmade.select(KEY)], how="diagonal")


def source_sizes(raw: RawRows, inputs: KnownInputs, run: Store | None) -> pl.DataFrame:
    """The size of each case's source, as `wide` and `high`; the dataset's and the table's must be the same."""
    schema: Schema = {"case": pl.String, **_SIZE}
    in_tables = raw.keys.filter((pl.col("follow_up") == SOURCE) & (pl.col("repeat") == 0)).select(
        "case", "row", "file", "line", wide="width", high="height"
    )
    known = pl.DataFrame(
        [(name, row.get("width"), row.get("height")) for name, row in inputs.cases.items()], schema=schema, orient="row"
    )
    other = in_tables.join(known, on="case").filter(
        (pl.col("wide") != pl.col("wide_right")) | (pl.col("high") != pl.col("high_right"))
    )
    if not other.is_empty():
        at, row, more = raw.first(other)
        raise ValueError(
            f"{at}: the source of {row['case']} is {row['wide']}×{row['high']} here, and "
            f"{row['wide_right']}×{row['high_right']} in the dataset{more}"
        )
    stored = (
        pl.DataFrame(schema=schema)
        if run is None
        else run.cases(["case", "width", "height"]).rename({"width": "wide", "height": "high"})
    )
    return (
        pl.concat([known, stored, in_tables.select("case", "wide", "high")])
        .drop_nulls()
        .unique("case", keep="first", maintain_order=True)
    )


def _with_changes(raw: RawRows, part: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """What the table says of the change; where it says nothing, what the transformation does to such a frame."""
    part = part.join(sizes, on="case", how="left", maintain_order="left").with_columns(
        pl.col("wide", "high").fill_null(0)
    )
    part = part.join(_derived(raw, part), on=["follow_up", "wide", "high"], how="left", maintain_order="left")
    other = part.filter(
        _FINE & _UNSAID & ((pl.col("width") != pl.col("to_wide")) | (pl.col("height") != pl.col("to_high")))
    )
    if not other.is_empty():
        at, row, more = raw.first(other)
        raise ValueError(
            f"{at}: {row['follow_up']} of a source of {row['wide']}×{row['high']} is "
            f"{row['to_wide']}×{row['to_high']}, not {row['width']}×{row['height']}{more}"
        )
    return part.with_columns(
        warp=pl.when(_FINE & _UNSAID).then("matrix").otherwise("warp"),
        width=pl.coalesce("width", "to_wide", pl.when(pl.col("wide") > 0).then("wide")),
        height=pl.coalesce("height", "to_high", pl.when(pl.col("high") > 0).then("high")),
    )


def _derived(raw: RawRows, part: pl.DataFrame) -> pl.DataFrame:
    """Frame and warp of every follow-up that the table says nothing of, for each size of its source."""
    unsaid = part.filter(_FINE & _UNSAID)
    made = []
    for name, wide, high in unsaid.select("follow_up", "wide", "high").unique(maintain_order=True).iter_rows():
        change = _change_without_input(raw.kind, name, (wide, high))
        if isinstance(change, str):
            at, row, more = raw.first(unsaid.filter(follow_up=name, wide=wide, high=high))
            raise ValueError(f"{at}: {spelled_key(row)}: {change}{more}")
        size = (None, None) if change is None else change.warp.target
        matrix = np.eye(3) if change is None else change.warp.matrix
        made.append((name, wide, high, matrix.ravel().tolist(), *size))
    return pl.DataFrame(made, orient="row", schema=_DERIVED)


def _change_without_input(kind: str, name: str, size: Size) -> Change | str | None:
    """What a follow-up's change is, or why it is not known; None where neither it nor the frame matters."""
    output = output_kind(kind)
    if size == (0, 0):
        if not output.placed:
            return None
        return (
            "the size of the source is not known, and what is judged has a place in it; give the columns width "
            "and height, or an export or a dataset"
        )
    if name == SOURCE:
        return Change.none(size)
    change = _change_of(name, size, output.answers)
    if isinstance(change, str):
        if output.placed:
            return f"what it does to an input is not known without it ({change}); give the column warp, or an export"
        return Change.none(size)
    return change


@lru_cache(maxsize=4096)
def _change_of(name: str, size: Size, takes: str) -> Change | str:
    """What a transformation does to any input of a size; or why that is not known without the input."""
    wanted = named_transformation(name)
    if wanted.unloaded:
        return f"{' and '.join(sorted(wanted.unloaded))}, which makes it, is not loaded because a file names it"
    if wanted.photometric or [step.family.name for step in wanted.steps] == ["recorded"]:
        return Change.none(size)
    if wanted.needs or wanted.random:
        return f"it needs {' and '.join(sorted(wanted.needs))}" if wanted.needs else "it is random"
    if reason := too_many_pixels(*size):
        return f"the input has {reason}"
    try:
        return wanted(blank_input(takes, size))[1]
    except NotApplicable as error:
        return str(error)
