"""Pieces of a run: cases whose predictions fit into memory together, read where their rows lie.

A case's rows lie together, but for those that workers committed between them, and those that were added later: to a
run that was resumed, retried or got more rules. So a piece is a few ranges of rows, whatever the ids of its cases are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, Protocol

import polars as pl

from instar.outputs import Schema
from instar.store.parts import Rows
from instar.store.store import Store
from instar.store.tables import first_only

GAP = 4096
"""Rows of other cases that are read along rather than sought: about as many as are decoded together."""
RANGE = 32_768
"""Rows of a range at the most: what is not wanted of one is gone before many others are read."""


class _Places(Protocol):
    def __call__(self, table: str) -> Mapping[int, Rows]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some cases of a run, by the number of the piece."""

    store: Store
    number: int
    places: _Places

    def predictions(
        self, columns: Sequence[str] | None = None, where: pl.Expr | None = None, *, again: bool = False
    ) -> pl.DataFrame:
        where = where if again else first_only(where, self.store.manifest().system.deterministic)
        return self.store.read_at("predictions", self.places("predictions")[self.number], columns, where)

    def cases(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return self.store.read_at("cases", self.places("cases")[self.number], columns)


class _Spans(NamedTuple):
    """Rows of one case after another: `part` (its number), `case`, `first` and `last` (rows of the part), `size`."""

    state: tuple[str, ...]
    schema: Schema
    rows: pl.DataFrame


def pieces(store: Store, size: pl.Expr, at_most: int, where: pl.Expr | None = None) -> Iterator[Piece]:
    """All cases with predictions, or with such as meet a condition, in the order in which they were stored.

    The predictions of a piece are of the size `at_most`, unless a single case has larger ones.
    """
    spans = _spans(store, "predictions", size, where)
    cases = spans.rows.group_by("case", maintain_order=True).agg(pl.col("size").sum())
    cases = cases.select("case", piece=(pl.col("size").cum_sum() - 1) // at_most)

    @cache  # when a piece is first asked for a table, all of them are looked up
    def places(table: str) -> Mapping[int, Rows]:
        return _places(spans if table == "predictions" else _spans(store, table), cases)

    for number in cases["piece"].unique(maintain_order=True):
        yield Piece(store, number, places)


def _spans(store: Store, table: str, size: pl.Expr | None = None, where: pl.Expr | None = None) -> _Spans:
    """Where each case is in a table, in the order of its rows."""
    state, schema, parts = store.each_part(table, partial(_spans_of, size=size, where=where))
    empty = {"part": pl.Int64, "case": pl.String, "first": pl.Int64, "last": pl.Int64, "size": pl.Int64}
    numbered = [part.select(pl.lit(number).alias("part"), pl.all()) for number, part in enumerate(parts)]
    return _Spans(state, schema, pl.concat([pl.DataFrame(schema=empty), *(part.cast(empty) for part in numbered)]))  # type: ignore[arg-type]


def _spans_of(part: pl.LazyFrame, size: pl.Expr | None, where: pl.Expr | None) -> pl.LazyFrame:
    rows = part.with_row_index("row")
    rows = (rows if where is None else rows.filter(where)).select(
        "case", "row", size=pl.lit(0) if size is None else size
    )
    spans = rows.group_by(pl.col("case").rle_id().alias("span"), maintain_order=True)
    return spans.agg(
        pl.col("case").first(), first=pl.col("row").first(), last=pl.col("row").last(), size=pl.col("size").sum()
    ).drop("span")


def _places(spans: _Spans, cases: pl.DataFrame) -> Mapping[int, Rows]:
    """The rows of each piece: its spans, where few rows lie between them with these."""
    of_piece = spans.rows.join(cases, on="case").sort("piece", "part", "first")
    alone = (
        (pl.col("piece") != pl.col("piece").shift())
        | (pl.col("part") != pl.col("part").shift())
        | (pl.col("first") - pl.col("last").shift() > GAP)
    )
    ranges = of_piece.group_by("piece", alone.fill_null(True).cum_sum().alias("range"), maintain_order=True).agg(
        pl.col("part").first(), pl.col("first").first(), pl.col("last").last()
    )
    by_piece: dict[int, list[tuple[int, int, int]]] = {}
    for piece, _, part, first, last in ranges.iter_rows():
        by_piece.setdefault(piece, []).extend(
            (part, start, min(RANGE, last + 1 - start)) for start in range(first, last + 1, RANGE)
        )
    return {
        piece: Rows(own["case"], spans.state, spans.schema, by_piece.get(piece, ()))
        for (piece,), own in cases.group_by("piece", maintain_order=True)
    }
