"""What is known of the subjects of each case, as columns to slice by: how many, how large, where, in which zones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from instar.engine import DEFAULT, SOURCE_ANSWERED, chunks
from instar.outputs import Schema, output_kind
from instar.relations import own_equivariance

if TYPE_CHECKING:
    from instar.analysis.run import Run

_PLACES: Schema = {
    "subjects": pl.Int64,
    **dict.fromkeys(("subject_size", "subject_x", "subject_y", "subject_off_centre"), pl.Float64),
}


def subject_columns(run: Run) -> pl.DataFrame:
    """One row per case: `case`, and numbers about its subjects as the first source output has them.

    `subjects` is how many were found with the confidence of the suite's judging. The others are about the largest of
    them, by the box around all its landmarks or its own box, which may reach out of the frame: `subject_size` is the
    box's diagonal as a share of the frame's, which does not change when somebody lies down; `subject_x` and
    `subject_y` are the box's centre as shares of width and height; `subject_off_centre` is its distance from the
    frame's centre, 1 in a corner. They are null where nobody was found, and all of them where the source failed.
    Kinds of output without subjects have none of these columns.

    Facts of needs that the run stored are columns named by the need: `zone_…` is the share of the image that each zone
    takes.
    """
    columns = run.store.cases(["case"])
    for part in (_places(run), _facts(run)):
        if part is not None:
            columns = columns.join(part, on="case", how="left", maintain_order="left")
    return columns


def _places(run: Run) -> pl.DataFrame | None:
    manifest = run.manifest
    if manifest.output is None:
        return None
    kind = output_kind(manifest.system.kind)
    frames = [pl.DataFrame(schema={"case": pl.String, **_PLACES})]
    for piece in chunks(run.store, SOURCE_ANSWERED):
        rows = piece.predictions(["case", "width", "height", *kind.columns], where=SOURCE_ANSWERED)
        subjects = kind.subjects(rows, manifest.header)
        if subjects is None:
            return None
        frames.append(_placed(rows, subjects.filter(pl.col("score") >= confidence_of(run))))
    return pl.concat(frames)


def confidence_of(run: Run, judging: str = DEFAULT) -> float:
    """Return the score from which a judging counts something as found."""
    relation = own_equivariance(run.manifest.system.kind).relation
    return float(run.judging(judging).of(relation).get("confidence", 0.0))


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


def _facts(run: Run) -> pl.DataFrame | None:
    stored = run.store.needs(pl.col("status") == "ok").unique(["case", "need"], keep="last", maintain_order=True)
    rows: dict[str, dict[str, object]] = {}
    for case, need, facts in stored.select("case", "need", "facts").iter_rows():
        for name, value in json.loads(facts or "{}").items():
            rows.setdefault(case, {"case": case})[f"{need.removesuffix('s')}_{name}"] = value
    return pl.DataFrame(list(rows.values()), infer_schema_length=None) if rows else None
