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
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import polars as pl
import xxhash

from instar.files import clear_unfinished, inside, place_file, storable
from instar.outputs import Output, Row, Schema, output_kind
from instar.store.manifest import FORMAT, READABLE, JudgingInfo, Manifest, unsealed
from instar.store.parts import (
    UNREADABLE,
    Damaged,
    Part,
    check_parts,
    fault_of,
    live_parts,
    part_name,
    parts_in,
    rows_in,
)
from instar.store.tables import APART, CASE, NEED, PREDICTION, VERDICT, rows_frame
from instar.transforms import Change

TABLES = ("apart", "cases", "needs", "predictions")
NAMES = ("lock", "manifest.json", "blobs", "verdicts", *TABLES)
"""Everything that a run folder holds."""
GROUP_BYTES = 8 << 20


class NoRun(FileNotFoundError):
    """A folder that holds no run."""

    def __str__(self) -> str:
        return str(self.args[0])


class Busy(RuntimeError):
    """Another process is writing to the run."""


class Gone(RuntimeError):
    """The run folder is not the one any more that is being written."""


class Store:
    """One run folder. Readable at any time; written by one process, which holds its lock."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if (name := str(folder)) != storable(name):
            raise ValueError(f"{storable(name)}: a run folder has a name in UTF-8; rename it, or give another (`out`)")
        self._locks: list[tuple[IO[str], Path]] = []
        self._manifest_read: tuple[bytes, Manifest] | None = None

    # -- the manifest

    @property
    def exists(self) -> bool:
        return self._manifest_path.is_file()

    @property
    def _manifest_path(self) -> Path:
        return self.inside("manifest.json")

    def inside(self, name: str) -> Path:
        """A place in the run folder; raises Elsewhere where that leads out of it."""
        return inside(self.folder, name)

    def manifest(self) -> Manifest:
        """What the run is: versions, fingerprints, rules, seeds, machine."""
        try:
            content = self._manifest_path.read_bytes()
            if self._manifest_read is not None and self._manifest_read[0] == content:
                return self._manifest_read[1]  # it is asked for at every turn
            values = unsealed(content)
        except FileNotFoundError:
            raise NoRun(
                f"{self.folder} holds no run (there is no manifest.json in it); "
                "`instar run SYSTEM SUITE DATASET --out FOLDER` makes one"
            ) from None
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
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._bad_manifest(f"{type(error).__name__}: {error}") from None

    def _bad_manifest(self, why: str) -> NoRun:
        return NoRun(
            f"{self._manifest_path} is damaged ({why}); restore it from a copy, or start a new run. If you changed it "
            "yourself, delete its entry `checksum`"
        )

    def write_manifest(self, manifest: Manifest) -> None:
        self._refuse_gone()
        place_file(self._manifest_path, manifest.to_json())

    # -- writing

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Only one process writes. The lock goes with its holder, however that ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked(self.inside("lock"), fcntl.LOCK_EX | fcntl.LOCK_NB):
            with suppress(NoRun):  # a folder that is no run is somebody's own
                self.manifest()
                places = {name: self.inside(name) for name in NAMES}
                # verdicts are not ours to clear: a judge may be writing them, who holds another lock
                clear_unfinished([self.folder, *(places[name] for name in TABLES), *places["blobs"].glob("*")])
            yield

    @contextmanager
    def judging_lock(self, judging: str) -> Iterator[None]:
        """Whoever judges waits here for another who judges the same: a viewer beside a run that goes on."""
        folder = self.inside(self.verdict_table(judging))
        folder.mkdir(parents=True, exist_ok=True)
        with self._locked(self.inside(f"{self.verdict_table(judging)}/lock"), fcntl.LOCK_EX):
            clear_unfinished([folder])
            yield

    @contextmanager
    def _locked(self, path: Path, how: int) -> Iterator[None]:
        with path.open("a") as file:
            try:
                fcntl.flock(file, how)
            except OSError:
                raise Busy(
                    f"another process is writing to {self.folder}; wait for it, or give another folder (`out`)"
                ) from None
            lock = (file, path)
            self._locks.append(lock)
            try:
                yield
            finally:
                self._locks.remove(lock)

    def _refuse_gone(self) -> None:
        """Raises Gone where a lock is no longer where it was taken: a folder made anew would lack all the rest."""
        for file, path in list(self._locks):
            try:
                there = os.path.samestat(os.fstat(file.fileno()), path.stat())
            except FileNotFoundError:
                there = False
            if not there:
                raise Gone(
                    f"{self.folder} was moved, deleted or replaced while it was written to; nothing more is written. "
                    "Put it back and give the same command again, or begin a new run in another folder (`out`)"
                )

    def append(self, table: str, frame: pl.DataFrame) -> None:
        """Commit a frame as a new part of a table."""
        if frame.is_empty():
            return
        number = max((part.last for part in self._parts(table)), default=-1) + 1
        self._write_part(table, number, number, frame)

    def _write_part(self, table: str, first: int, last: int, frame: pl.DataFrame | pl.LazyFrame) -> None:
        """A part of a frame; a lazy one is streamed, so that merging needs no more memory than a part."""
        self._refuse_gone()
        write = frame.sink_parquet if isinstance(frame, pl.LazyFrame) else frame.write_parquet
        rows = _group_rows(frame)
        place_file(
            self.inside(table) / f"{first:010d}-{last:010d}.parquet",
            lambda temporary: write(temporary, compression="zstd", compression_level=1, row_group_size=rows),
            name=lambda temporary: part_name(first, last, temporary),
        )

    def merge(self, table: str, *, keep: pl.Expr | None = None, at_most: int = 200_000) -> None:
        """Merge small parts, and leave out the rows that are not to be kept.

        With `keep` all parts become one at once, so that the rows vanish in one rename.
        """
        parts = self._live(table)
        if keep is not None and parts:
            everything = self._scanned(parts)
            if everything.select((~keep).any()).collect().item():
                # one number more than there is, so that the new part wins over all others even if it replaces one
                self._write_part(table, parts[0].first, parts[-1].last + 1, everything.filter(keep))
        elif len(parts) > 1:
            for run in _small_runs(parts, at_most):
                if len(run) > 1:
                    self._write_part(table, run[0].first, run[-1].last, self._scanned(run))
        live = self._live(table)
        for part in self._parts(table):
            if part not in live:
                part.path.unlink(missing_ok=True)

    def blob_path(self, content_hash: str) -> Path:
        """A hash from a table is no path: `../..` leads nowhere."""
        if not re.fullmatch("[0-9a-f]+", content_hash):
            raise ValueError(f"{self.folder} holds no blob {content_hash!r}: that is no hash of its content")
        return self.inside(f"blobs/{content_hash[:2]}/{content_hash}")

    def put_blob(self, content_hash: str, data: bytes) -> None:
        """Store bytes once, by the hash of their content."""
        self._refuse_gone()
        path = self.blob_path(content_hash)
        if not path.exists():
            place_file(path, data)

    def blob(self, content_hash: str) -> bytes:
        """The bytes of a hash. Raises Damaged where they are gone, or others."""
        path = self.blob_path(content_hash)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Damaged(self.folder, path, error.strerror or str(error)) from None
        if xxhash.xxh3_128_hexdigest(content) != content_hash:
            raise Damaged(self.folder, path, "its content is not what its name says")
        return content

    # -- reading

    def _parts(self, table: str) -> list[Part]:
        return parts_in(self.inside(table))

    def _live(self, table: str) -> list[Part]:
        return live_parts(self._parts(table))

    def state(self, table: str) -> tuple[str, ...]:
        """The names of a table's parts: equal states hold equal rows."""
        return tuple(part.path.name for part in self._live(table))

    def _scanned(self, parts: Sequence[Part]) -> pl.LazyFrame:
        """Parts as one table, each checked: a damaged one must not be read, let alone be merged into another."""
        check_parts(self.folder, parts)
        return pl.concat([pl.scan_parquet(part.path, glob=False) for part in parts], how="diagonal")

    def read(
        self,
        table: str,
        schema: Schema,
        columns: Sequence[str] | None = None,
        where: pl.Expr | None = None,
        query: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
    ) -> pl.DataFrame:
        """A table's rows, or what a query makes of them; without any, but typed, where nothing is committed yet.

        A part merged away while it was read is looked up again. Raises Damaged for one that is not what was written.
        """
        for attempt in range(5):
            parts = self._live(table)
            try:
                lazy = self._scanned(parts) if parts else pl.LazyFrame(schema=dict(schema))
                lazy = lazy if where is None else lazy.filter(where)
                lazy = lazy if columns is None else lazy.select(columns)
                return lazy.collect() if query is None else query(lazy).collect(engine="streaming")
            except FileNotFoundError:
                if attempt == 4:
                    raise
            except UNREADABLE:
                if attempt == 4:
                    self._refuse_damaged(parts)
                    raise
        raise AssertionError("unreachable")

    def _refuse_damaged(self, parts: Sequence[Part]) -> None:
        """Raises Damaged for the first part that cannot be read: one of a format without checksums."""
        for part in parts:
            if why := fault_of(part):
                raise Damaged(self.folder, part.path, why) from None

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
        parts = [part.path for part in self._live("apart")]
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
    ) -> pl.DataFrame:
        """Every stored prediction: key, status, the change, and the output's columns."""
        schema = self.prediction_schema(self.manifest().system.kind)
        return self.read("predictions", schema, columns, where, query)

    def cases(self, columns: Sequence[str] | None = None, where: pl.Expr | None = None) -> pl.DataFrame:
        return self.read("cases", CASE, columns, where)

    def needs(self, where: pl.Expr | None = None) -> pl.DataFrame:
        return self.read(
            "needs", NEED, None, where, lambda rows: pl.concat([pl.LazyFrame(schema=NEED), rows], how="diagonal")
        )

    def append_predictions(self, rows: Sequence[Mapping[str, object]], kind: str) -> None:
        self.append("predictions", rows_frame(rows, self.prediction_schema(kind)))

    def append_cases(self, rows: Sequence[Mapping[str, object]], truth: str | None) -> None:
        columns = {f"truth_{name}": kind for name, kind in output_kind(truth).columns.items()} if truth else {}
        self.append("cases", rows_frame(rows, {**CASE, **columns}))

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
        return sorted(path.parent.name for path in self.inside("verdicts").glob("*/judging.json"))

    def judging_info(self, judging: str) -> JudgingInfo | None:
        """What is known of a judging's verdicts; None before there are any, or where its file is damaged."""
        path = self.inside(f"{self.verdict_table(judging)}/judging.json")
        with suppress(FileNotFoundError, KeyError, TypeError, ValueError, RecursionError):
            values = unsealed(path.read_bytes())
            return JudgingInfo.from_dict(values) if isinstance(values, dict) else None
        return None

    def holds_verdicts(self, judging: str, info: JudgingInfo) -> bool:
        """Whether all parts of a judging are there: whoever deletes one has it judged anew."""
        numbers = {part.first for part in self._parts(self.verdict_table(judging))}
        return numbers.issuperset(range(*info.parts))

    def write_judging_info(self, judging: str, info: JudgingInfo) -> None:
        self._refuse_gone()
        place_file(self.inside(f"{self.verdict_table(judging)}/judging.json"), info.to_json())

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
                    part.path.unlink(missing_ok=True)

    def verdict_parts(self, judging: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """A judging's verdicts, part by part: what does not fit into memory at once. Columns may be missing.

        All of them are of one judging, also where another one replaces it meanwhile.
        """
        table = self.verdict_table(judging)
        with self._reading(self.inside(f"{table}/readers")):
            info = self.judging_info(judging)
            if info is None:
                raise NoRun(f"{self.folder} has no judging {judging!r}; it has {', '.join(self.judgings()) or 'none'}")
            parts = {part.first: part for part in self._parts(table)}
            for number in range(*info.parts):
                if number not in parts:
                    raise Damaged(self.folder, self.folder / table, f"part {number} of its verdicts is gone")
                yield self._verdicts_in(parts[number], columns)

    def _verdicts_in(self, part: Part, columns: Sequence[str] | None) -> pl.DataFrame:
        check_parts(self.folder, [part])
        try:
            there = pl.read_parquet_schema(part.path)
            wanted = [name for name in columns or there if name in there]
            return pl.read_parquet(part.path, columns=wanted, glob=False)
        except UNREADABLE:
            self._refuse_damaged([part])
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

    def verdicts(self, judging: str) -> pl.DataFrame:
        return pl.concat([*self.verdict_parts(judging)] or [pl.DataFrame(schema=VERDICT)], how="diagonal")


def _group_rows(frame: pl.DataFrame | pl.LazyFrame) -> int:
    """How many rows a reader decodes at a time: some megabytes, as the first rows tell, so that a few cases of a large
    part cost no more than themselves."""
    first = frame.head(100).collect() if isinstance(frame, pl.LazyFrame) else frame
    return max(64, min(8192, GROUP_BYTES * len(first) // max(1, int(first.estimated_size()))))


def _small_runs(parts: list[Part], at_most: int) -> list[list[Part]]:
    """Neighbouring parts that together stay small enough to be one."""
    runs: list[list[Part]] = [[]]
    size = 0
    for part in parts:
        rows = rows_in(part) or 0
        if runs[-1] and size + rows > at_most:
            runs.append([])
            size = 0
        runs[-1].append(part)
        size += rows
    return runs
