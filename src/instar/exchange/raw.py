"""The rows of all tables, in a folder beside the run, each checked for itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import polars as pl

from instar.datasets import shortened
from instar.engine.packing import Packer
from instar.exchange.tables import Reader, lines
from instar.spelling import nearest
from instar.store import KEY, RecordedTable, Row, Schema, Store, columns_frame
from instar.systems import hash_file

CHUNK = 20_000
RAW = "raw"
"""The table of all lines, in the folder beside the run."""
NAMED = 8
"""How many of a list a message names."""


class RawRows:
    """Rows as tables say them. `keys` are those that become predictions, with the place of each in its table."""

    def __init__(self, scratch: Store, tables: Sequence[Path], reader: Reader) -> None:
        self.scratch, self.tables, self.reader, self.kind = scratch, tables, reader, reader.kind
        places: Schema = {"row": pl.Int64, "file": pl.Int32, "line": pl.Int64}
        pairs: Schema = {"of_pair": pl.Boolean, "pair_hash": pl.String, "extras": pl.String}
        self.schema = {**scratch.prediction_schema(self.kind), **places, **pairs}
        self.recorded: list[RecordedTable] = []
        self.notes: list[str] = []
        self._packer, self._apart = Packer(), set[str]()
        self.keys = self._read()
        self.stored = self.keys.clear()
        """Those that the run holds already, where an import completes an earlier one of the same tables."""

    def _read(self) -> pl.DataFrame:
        number = 0
        for file, path in enumerate(self.tables):
            before, left = number, self._rows(path, file)
            while rows := list(islice(left, CHUNK)):
                for row in rows:
                    row["row"] = number = number + 1
                self.scratch.append(RAW, self.frame(rows, self.schema))
            self.recorded.append(RecordedTable(path.name, hash_file(str(path)), number - before))
        return self.read([*KEY, "row", "file", "line", "of_pair", "pair_hash", "status", "width", "height"])

    def read(self, columns: Sequence[str] | None = None, where: pl.Expr | None = None) -> pl.DataFrame:
        return self.scratch.read(RAW, self.schema, columns, where)

    def _rows(self, path: Path, file: int) -> Iterator[Row]:
        seen = set[str]()
        for line, values in lines(path):
            seen.update(values)
            try:
                yield from ({**row, "file": file, "line": line} for row in self.reader.rows(values))
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise ValueError(f"{path}, line {line}: {error}") from None
        for ours, name in self.reader.columns.items():
            if name not in seen:
                raise ValueError(
                    f"{path}: it has no column {name!r}, which the parameter columns says is {ours}"
                    f"{nearest(name, seen)}; it has {shortened(sorted(seen), NAMED)}"
                )

    def frame(self, rows: list[Row], schema: Schema) -> pl.DataFrame:
        """Rows as a frame, with what is large set apart."""
        if not rows:
            return pl.DataFrame(schema=schema)
        packed = self._packer(rows)
        fresh = {name: content for name, content in packed.contents.items() if name not in self._apart}
        if fresh:
            self._apart.update(fresh)
            self.scratch.append_apart(fresh)
        # columns that no row has are made at once: empty lists, each for itself, would take as long as all the rest
        absent = {name: kind for name, kind in schema.items() if name not in packed.columns}
        return (
            columns_frame(packed.columns, {name: kind for name, kind in schema.items() if name in packed.columns})
            .with_columns(
                pl.lit(pl.Series([[] if isinstance(kind, pl.List) else None], dtype=kind)).first().alias(name)
                for name, kind in absent.items()
            )
            .select(list(schema))
        )

    def at(self, row: Row) -> str:
        """Where a row stands, in words."""
        return f"{self.tables[row['file']]}, line {row['line']}"

    def first(self, rows: pl.DataFrame) -> tuple[str, Row, str]:
        """Where the first of some rows stands, what it is, and how many more there are, in words."""
        row = rows.sort("row").row(0, named=True)
        more = f" ({rows.height - 1:,} more lines like it)" if rows.height > 1 else ""
        return self.at(row), row, more


def spelled_key(row: Row) -> str:
    """A key as people read it."""
    more = "".join(f", {name} {row[name]}" for name in ("draw", "repeat") if row[name])
    return f"{row['follow_up']} of case {row['case']!r}{more}"
