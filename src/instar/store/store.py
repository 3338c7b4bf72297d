"""The run folder: Parquet parts and a manifest. The only code that knows its file names.

A table is a folder of parts. A part is named for the range of sequence numbers it holds and the checksum of its content
(`0000000004-0000000009.0123456789abcdef`); one whose range lies inside another's has been merged into it and no longer
counts. A new part and a merged one both appear by one rename, so that a table is whole at any moment, whoever is killed
when. Every file is checked when it is read: parts and blobs by their names, the manifest by a checksum of its own.
"""

from __future__ import annotations

import fcntl
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

import polars as pl
import xxhash

from instar.files import Elsewhere, clear_unfinished, storable
from instar.outputs import Output, Row, Schema, output_kind
from instar.remote import Address
from instar.store.folder import Busy as Busy
from instar.store.folder import Gone as Gone
from instar.store.folder import place_of
from instar.store.manifest import FORMAT, READABLE, JudgingInfo, Manifest, unsealed
from instar.store.parts import (
    UNREADABLE,
    Damaged,
    Part,
    Rows,
    TableSchema,
    check_part,
    group_rows,
    live_parts,
    names_of,
    refuse_damaged,
    refuse_overlapping,
    small_runs,
)
from instar.store.tables import (
    APART,
    CASE,
    NEED,
    PREDICTION,
    VERDICT,
    Columns,
    columns_frame,
    first_only,
    of_cases,
    rows_frame,
)
from instar.transforms import Change

T = TypeVar("T")

TABLES = ("apart", "cases", "needs", "predictions")
NAMES = ("lock", "manifest.json", "blobs", "marks", "verdicts", *TABLES)
"""Everything that a run folder holds."""
SPANS = (16, 256, 4096)
"""After so many parts those that were written last become one: a table of thousands of parts takes long to read, and a
run that is killed could not merge them at its end."""
SMALL = 200_000
"""Rows that a part has at the most when it is merged of several."""


class NoRun(FileNotFoundError):
    """A folder that holds no run."""

    def __str__(self) -> str:
        return str(self.args[0])


def _truth_columns(kind: str | None) -> Schema:
    return {f"truth_{name}": column for name, column in output_kind(kind).columns.items()} if kind else {}


class Store:
    """One run folder. Readable at any time; written by one process, which holds its lock."""

    def __init__(self, folder: str | Path) -> None:
        if (name := str(folder)) != storable(name):
            raise ValueError(f"{storable(name)}: a run folder has a name in UTF-8; rename it, or give another (`out`)")
        self.place = place_of(folder)
        self._manifest_read: tuple[bytes, Manifest] | None = None

    @property
    def folder(self) -> Path:
        """What the user calls the run: its folder, or its address in a bucket, by which nothing can be opened."""
        return self.place.name

    def refuse_bucket(self, why: str) -> None:
        """Raises ValueError where the run lies in a bucket."""
        if isinstance(self.folder, Address):
            raise ValueError(f"{self.folder} is in a bucket, and {why}")

    def inside(self, name: str) -> Path:
        """A place in the run folder, or in the copy of one in a bucket; raises Elsewhere where that leads out of it."""
        return self.place.inside(name)

    # -- the manifest

    @property
    def exists(self) -> bool:
        try:
            self.place.content("manifest.json")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return False
        return True

    def manifest(self) -> Manifest:
        """What the run is: versions, fingerprints, rules, seeds, machine."""
        try:
            content = self.place.content("manifest.json")
            if self._manifest_read is not None and self._manifest_read[0] == content:
                return self._manifest_read[1]  # it is asked for at every turn
            values = unsealed(content)
        except FileNotFoundError:
            wanted = self.place.instead() or "`instar run SYSTEM SUITE DATASET --out FOLDER` makes one"
            raise NoRun(f"{self.folder} holds no run (there is no manifest.json in it); {wanted}") from None
        except (ValueError, RecursionError) as error:
            raise self._bad_manifest(str(error)) from None
        if not isinstance(values, dict) or values.get("format") not in READABLE:
            written = values if isinstance(values, dict) else {}
            raise NoRun(
                f"{self.folder} was written in format {written.get('format')}, this Instar reads {FORMAT}; "
                f"it was written by Instar {written.get('instar')}"
            )
        try:
            self._manifest_read = content, Manifest.from_dict(values)
            return self._manifest_read[1]
        except ValueError as error:
            raise self._bad_manifest(str(error)) from None

    def _bad_manifest(self, why: str) -> NoRun:
        return NoRun(
            f"{self.folder / 'manifest.json'} is damaged ({why}); restore it from a copy, or start a new run. If you "
            "changed it yourself, delete its entry `checksum`"
        )

    def write_manifest(self, manifest: Manifest) -> None:
        self.place.replace("manifest.json", manifest.to_json())

    # -- writing

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Only one process writes. The lock goes with its holder, however that ends."""
        with self.place.locked("lock", wait=False):
            with suppress(NoRun):  # a folder that is no run is somebody's own
                self.manifest()
                places = {name: self.inside(name) for name in NAMES}
                # verdicts are not ours to clear: a judge may be writing them, who holds another lock
                clear_unfinished([self.place.path, *(places[name] for name in TABLES), *places["blobs"].glob("*")])
                self.place.clear()
            yield

    @contextmanager
    def judging_lock(self, judging: str) -> Iterator[None]:
        """Whoever judges waits here for another who judges the same: a viewer beside a run that goes on."""
        with self.place.locked(f"{self.verdict_table(judging)}/lock", wait=True):
            clear_unfinished([self.inside(self.verdict_table(judging))])
            yield

    def append(self, table: str, frame: pl.DataFrame) -> None:
        """Commit a frame as a new part of a table."""
        if frame.is_empty():
            return
        number = max((part.last for part in self._parts(table)), default=-1) + 1
        self._write_part(table, number, number, frame)
        for span in SPANS:
            if (number + 1) % span == 0:
                with suppress(OSError):  # no room, a damaged part: the rows are committed, and the end of a run says it
                    self._join(table, [part for part in self._live(table) if part.first > number - span], SMALL)

    def _write_part(self, table: str, first: int, last: int, frame: pl.DataFrame | pl.LazyFrame) -> None:
        """A part of a frame; a lazy one is streamed, so that merging needs no more memory than a part."""
        write = frame.sink_parquet if isinstance(frame, pl.LazyFrame) else frame.write_parquet
        rows = group_rows(frame)
        self.place.add(
            table,
            first,
            last,
            lambda temporary: write(temporary, compression="zstd", compression_level=1, row_group_size=rows),
        )

    def merge(self, table: str, *, keep: pl.Expr | None = None, at_most: int = SMALL) -> None:
        """Merge small parts, and leave out the rows that are not to be kept.

        With `keep` all parts become one at once, so that the rows vanish in one rename.
        """
        parts = self._live(table)
        if keep is not None and parts:
            everything = self._scanned(table, parts)
            if everything.select((~keep).any()).collect().item():
                # one number more than there is, so that the new part wins over all others even if it replaces one
                self._write_part(table, parts[0].first, parts[-1].last + 1, everything.filter(keep))
            parts = []
        self._join(table, parts, at_most)

    def _join(self, table: str, parts: list[Part], at_most: int) -> None:
        """Make neighbouring parts one, as far as they stay small, and delete what counts no more."""
        self.place.bring(table, parts)
        for run in small_runs(parts, at_most):
            if len(run) > 1:
                self._write_part(table, run[0].first, run[-1].last, self._scanned(table, run))
        for part in set(self._parts(table)).difference(self._live(table)):
            self.place.remove(table, part)

    def blob_name(self, content_hash: str) -> str:
        """A hash from a table is no path: `../..` leads nowhere."""
        if not re.fullmatch("[0-9a-f]+", content_hash):
            raise ValueError(f"{self.folder} holds no blob {content_hash!r}: that is no hash of its content")
        return f"blobs/{content_hash[:2]}/{content_hash}"

    def put_blob(self, content_hash: str, data: bytes) -> None:
        """Store bytes once, by the hash of their content."""
        self.place.add_blob(self.blob_name(content_hash), data)

    def blob(self, content_hash: str) -> bytes:
        """The bytes of a hash. Raises Damaged where they are gone, or others."""
        name = self.blob_name(content_hash)
        try:
            content = self.place.blob(name).read_bytes()
        except Elsewhere:
            raise
        except OSError as error:
            raise Damaged(self.folder, self.inside(name), error.strerror or str(error)) from None
        if xxhash.xxh3_128_hexdigest(content) != content_hash:
            raise Damaged(self.folder, self.inside(name), "its content is not what its name says")
        return content

    # -- reading

    def _parts(self, table: str) -> list[Part]:
        return self.place.parts(table)

    def _live(self, table: str) -> list[Part]:
        """The parts that count. Raises Damaged if two processes wrote parts of the same rows."""
        live = live_parts(self._parts(table))
        refuse_overlapping(self.folder, live)
        return live

    def whole_parts(self, table: str) -> list[Part]:
        """The parts of a table, where they can be read. Raises Damaged where one is not what was written."""
        parts = self._live(table)
        self._checked(table, parts)
        return parts

    def state(self, table: str) -> tuple[str, ...]:
        """The names of a table's parts: equal states hold equal rows."""
        return names_of(self._live(table))

    def _checked(self, table: str, parts: Sequence[Part]) -> None:
        """See to it that parts are here and what was written; raises Damaged for one that is not."""
        self.place.bring(table, parts)
        schema = cache(partial(self.table_schema, table))
        for part in parts:
            try:
                check_part(self.folder, part, schema)
            except Damaged:
                if not self.place.bring_again(table, part):
                    raise
                check_part(self.folder, part, schema)

    def table_schema(self, table: str) -> TableSchema | None:
        """Return the columns that the parts of a table have; None before a manifest says what the run holds."""
        if not self.exists:
            return None
        manifest = self.manifest()
        if table.startswith("verdicts/"):
            return TableSchema(VERDICT, {})
        if table == "predictions":
            return TableSchema(self.prediction_schema(manifest.system.kind), {})
        if table == "cases":
            return TableSchema(CASE, _truth_columns(manifest.truth_kind))
        return TableSchema({"apart": APART, "needs": NEED}[table], {})

    def _scanned(self, table: str, parts: Sequence[Part]) -> pl.LazyFrame:
        """Parts as one table, each checked: a damaged one must not be read, let alone be merged into another."""
        self._checked(table, parts)
        return pl.concat([pl.scan_parquet(part.path, glob=False) for part in parts], how="diagonal_relaxed")

    def read(
        self,
        table: str,
        schema: Schema,
        columns: Sequence[str] | None = None,
        where: pl.Expr | None = None,
        query: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
    ) -> pl.DataFrame:
        """A table's rows, or what a query makes of them; without any, but typed, where nothing is committed yet.

        Raises Damaged for a part that is not what was written.
        """

        def rows(parts: Sequence[Part]) -> pl.DataFrame:
            lazy = self._scanned(table, parts) if parts else pl.LazyFrame(schema=dict(schema))
            lazy = lazy if where is None else lazy.filter(where)
            lazy = lazy if columns is None else lazy.select(columns)
            return lazy.collect() if query is None else query(lazy).collect(engine="streaming")

        return self._of_parts(table, rows)

    def read_at(
        self, table: str, places: Rows, columns: Sequence[str] | None = None, where: pl.Expr | None = None
    ) -> pl.DataFrame:
        """The rows of some cases, by their places; by their ids where the table's parts are others by now."""

        def rows(parts: Sequence[Part]) -> pl.DataFrame:
            every = [pl.LazyFrame(schema=places.schema)]  # a part may lack columns that others have
            if names_of(parts) == places.state:
                self._checked(table, [parts[number] for number in {number for number, _, _ in places.ranges}])
                for number, first, count in places.ranges:
                    every.append(pl.scan_parquet(parts[number].path, glob=False).slice(first, count))
            elif parts:
                every.append(self._scanned(table, parts))
            lazy = pl.concat(every, how="diagonal_relaxed").filter(of_cases(places.cases))
            lazy = lazy if where is None else lazy.filter(where)
            return (lazy if columns is None else lazy.select(columns)).collect()

        return self._of_parts(table, rows)

    def each_part(
        self, table: str, query: Callable[[pl.LazyFrame], pl.LazyFrame]
    ) -> tuple[tuple[str, ...], Schema, list[pl.DataFrame]]:
        """What a query makes of each part of a table, with the table's state and its columns at that moment."""

        def frames(parts: Sequence[Part]) -> tuple[tuple[str, ...], Schema, list[pl.DataFrame]]:
            if not parts:
                return (), CASE if table == "cases" else {}, []  # cases that were damaged are set aside, and may be all
            schema = self._scanned(table, parts).collect_schema()
            each = (pl.scan_parquet(part.path, glob=False) for part in parts)
            return names_of(parts), schema, [query(part).collect(engine="streaming") for part in each]

        return self._of_parts(table, frames)

    def _of_parts(self, table: str, read: Callable[[Sequence[Part]], T]) -> T:
        """What is read of a table's parts; those merged away while they were read are looked up again."""
        for attempt in range(5):
            parts = self._live(table)
            try:
                return read(parts)
            except FileNotFoundError:
                if attempt == 4:
                    raise
            except UNREADABLE:
                if attempt == 4:
                    refuse_damaged(self.folder, parts, self.table_schema(table))
                    raise
        raise AssertionError("unreachable")

    # -- the tables

    def prediction_schema(self, kind: str) -> Schema:
        """Columns of predictions. What is kept apart is named by its hash."""
        names = dict.fromkeys(self.apart(kind), pl.String)
        return {**PREDICTION, **output_kind(kind).columns, **names}

    @staticmethod
    def apart(kind: str) -> tuple[str, ...]:
        """The columns of a kind's predictions whose content is stored once, by its hash."""
        return (*Change.apart, *output_kind(kind).apart)

    def apart_bytes(self) -> int:
        """How large a content that is kept apart is on average; they are compressed, and so as large in memory."""
        parts = [part.path for part in self.whole_parts("apart")]
        count: int = sum(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item() for path in parts)
        return sum(path.stat().st_size for path in parts) // max(1, count)

    def append_apart(self, contents: Mapping[str, bytes]) -> None:
        self.append("apart", pl.DataFrame({"hash": list(contents), "content": list(contents.values())}, schema=APART))

    def whole(self, predictions: pl.DataFrame) -> pl.DataFrame:
        """Predictions with the content of what is kept apart in the place of its hash."""
        for column in self.apart(self.manifest().system.kind):
            if column not in predictions.columns:
                continue
            wanted = predictions[column].drop_nulls().unique()
            if wanted.is_empty():
                predictions = predictions.with_columns(pl.lit(None, pl.Binary).alias(column))
                continue
            contents = self.read("apart", APART, where=pl.col("hash").is_in(wanted.implode())).unique("hash")
            predictions = (
                predictions.rename({column: "hash"})
                .join(contents, on="hash", how="left", maintain_order="left")
                .rename({"content": column})
                .drop("hash")
            )
        return predictions

    def predictions(
        self,
        columns: Sequence[str] | None = None,
        where: pl.Expr | None = None,
        query: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
        *,
        again: bool = False,
    ) -> pl.DataFrame:
        """Return the stored predictions: key, status, the change, and the output's columns.

        A deterministic system predicts each input once; a run may ask it about a few a second time, to check that.
        These second predictions are returned only with `again`: no rate, count or picture may depend on them.
        """
        system = self.manifest().system
        where = where if again else first_only(where, system.deterministic)
        return self.read("predictions", self.prediction_schema(system.kind), columns, where, query)

    def cases(self, columns: Sequence[str] | None = None, where: pl.Expr | None = None) -> pl.DataFrame:
        return self.read("cases", CASE, columns, where)

    def needs(self, where: pl.Expr | None = None) -> pl.DataFrame:
        return self.read(
            "needs", NEED, None, where, lambda rows: pl.concat([pl.LazyFrame(schema=NEED), rows], how="diagonal")
        )

    def append_predictions(self, rows: Sequence[Mapping[str, object]] | Columns, kind: str) -> None:
        """Rows one by one, or column by column."""
        schema = self.prediction_schema(kind)
        frame = columns_frame(rows, schema) if isinstance(rows, Mapping) else rows_frame(rows, schema)
        self.append("predictions", frame)

    def append_cases(self, rows: Sequence[Mapping[str, object]], truth: str | None) -> None:
        self.append("cases", rows_frame(rows, {**CASE, **_truth_columns(truth)}))

    def append_needs(self, rows: Sequence[Mapping[str, object]]) -> None:
        self.append("needs", rows_frame(rows, NEED))

    def need_value(self, row: Row) -> Output:
        """A stored need as the output it was."""
        header = json.loads(row["header"])
        kind = output_kind(header["kind"])
        content = self.blob(row["hash"])
        if len(kind.columns) == 1:
            return kind.from_row(dict.fromkeys(kind.columns, content), header)
        return kind.from_row(pl.read_ipc(io.BytesIO(content)).row(0, named=True), header)

    # -- verdicts, one folder per judging

    def verdict_table(self, judging: str) -> str:
        return f"verdicts/{judging}"

    def judgings(self) -> list[str]:
        return self.place.judgings()

    def judging_info(self, judging: str) -> JudgingInfo | None:
        """What is known of a judging's verdicts; None before there are any, or where its file is damaged."""
        with suppress(FileNotFoundError, ValueError, RecursionError):
            values = unsealed(self.place.content(f"{self.verdict_table(judging)}/judging.json"))
            return JudgingInfo.from_dict(values) if isinstance(values, dict) else None
        return None

    def holds_verdicts(self, judging: str, info: JudgingInfo) -> bool:
        """Whether all parts of a judging are there: whoever deletes one has it judged anew."""
        numbers = [part.first for part in self._parts(self.verdict_table(judging)) if part.first in range(*info.parts)]
        return len(numbers) == len({*numbers}) == len(range(*info.parts))

    def write_judging_info(self, judging: str, info: JudgingInfo) -> None:
        self.place.replace(f"{self.verdict_table(judging)}/judging.json", info.to_json())

    def replace_verdicts(self, judging: str, frames: Iterator[pl.DataFrame], info: JudgingInfo) -> None:
        """New verdicts for a judging, all at once: one rename makes them count instead of those before."""
        table = self.verdict_table(judging)
        start = number = max((part.last for part in self._parts(table)), default=-1) + 1
        for frame in frames:
            self._write_part(table, number, number, frame)
            number += 1
        self.write_judging_info(judging, replace(info, parts=(start, number)))
        with self.inside(f"{table}/readers").open("a") as readers, suppress(OSError):
            fcntl.flock(readers, fcntl.LOCK_EX | fcntl.LOCK_NB)  # somebody reads them: the next judging deletes them
            for part in self._parts(table):
                if not start <= part.first < number:
                    self.place.remove(table, part)

    def verdict_parts(
        self, judging: str, columns: Sequence[str] | None = None, where: pl.Expr | None = None
    ) -> Iterator[pl.DataFrame]:
        """A judging's verdicts, part by part: what does not fit into memory at once. Columns may be missing.

        All of them are of one judging, also where another one replaces it meanwhile.
        """
        table = self.verdict_table(judging)
        with self._reading(self.inside(f"{table}/readers")):
            for part in self._verdicts_here(judging):
                yield self._verdicts_in(table, part, columns, where)

    def _verdicts_here(self, judging: str) -> list[Part]:
        """The parts of a judging, all of which can be read: in a bucket nothing keeps another judging from deleting
        those that are not here yet, and then its own count."""
        table = self.verdict_table(judging)
        for attempt in range(5):
            info = self.judging_info(judging)
            if info is None:
                raise NoRun(f"{self.folder} has no judging {judging!r}; it has {', '.join(self.judgings()) or 'none'}")
            parts = {part.first: part for part in self._parts(table)}
            for number in range(*info.parts):
                if number not in parts:
                    raise Damaged(self.folder, self.folder / table, f"part {number} of its verdicts is gone")
            wanted = [parts[number] for number in range(*info.parts)]
            refuse_overlapping(self.folder, [part for part in self._parts(table) if part.first in range(*info.parts)])
            try:
                self.place.bring(table, wanted)
                return wanted
            except FileNotFoundError:
                if attempt == 4:
                    raise
        raise AssertionError("unreachable")

    def _verdicts_in(
        self, table: str, part: Part, columns: Sequence[str] | None, where: pl.Expr | None
    ) -> pl.DataFrame:
        self._checked(table, [part])
        try:
            there = pl.read_parquet_schema(part.path)
            wanted = [name for name in columns or there if name in there]
            lazy = pl.scan_parquet(part.path, glob=False)
            return (lazy if where is None else lazy.filter(where)).select(wanted).collect()
        except UNREADABLE:
            refuse_damaged(self.folder, [part], self.table_schema(table))
            raise

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        """While somebody reads, nobody deletes what is read. Where nothing can be written, nobody judges either."""
        try:
            file = path.open("a")
        except OSError:
            yield
            return
        with file:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def verdicts(self, judging: str, where: pl.Expr | None = None) -> pl.DataFrame:
        parts = [*self.verdict_parts(judging, where=where)]
        return pl.concat(parts or [pl.DataFrame(schema=VERDICT)], how="diagonal_relaxed")
