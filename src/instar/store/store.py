"""The run folder: Parquet parts and a manifest. The only code that knows its file names.

A table is a folder of parts. A part is named for the range of sequence numbers it holds (`0000000004-0000000009`);
one whose range lies inside another's has been merged into it and no longer counts. A new part and a merged one
both appear by one rename, so that a table is whole at any moment, whoever is killed when.
"""

from __future__ import annotations

import fcntl
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import polars as pl

from instar.files import UNFINISHED, place_file
from instar.json_values import whole_number
from instar.outputs import Output, Row, Schema, output_kind
from instar.store.manifest import FORMAT, JudgingInfo, Manifest
from instar.store.tables import APART, CASE, NEED, PREDICTION, VERDICT, rows_frame
from instar.transforms import Change

_PART = re.compile(r"(\d{10})-(\d{10})\.parquet")


class NoRun(FileNotFoundError):
    """A folder that holds no run."""

    def __str__(self) -> str:
        return str(self.args[0])


class Busy(RuntimeError):
    """Another process is writing to the run."""


class Store:
    """One run folder. Readable at any time; written by one process, which holds its lock."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    # -- the manifest

    @property
    def exists(self) -> bool:
        return self._manifest_path.is_file()

    @property
    def _manifest_path(self) -> Path:
        return self.folder / "manifest.json"

    def manifest(self) -> Manifest:
        """What the run is: versions, fingerprints, rules, seeds, machine."""
        try:
            values = json.loads(self._manifest_path.read_text("utf-8"), parse_int=whole_number)
        except FileNotFoundError:
            raise NoRun(
                f"{self.folder} holds no run (there is no manifest.json in it); "
                "`instar run SYSTEM SUITE DATASET --out FOLDER` makes one"
            ) from None
        except ValueError as error:
            raise NoRun(f"{self._manifest_path} is damaged ({error}); restore it, or start a new run") from None
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            written = values if isinstance(values, dict) else {}
            raise NoRun(
                f"{self.folder} was written in format {written.get('format')}, this Instar reads {FORMAT}; "
                f"it was written by Instar {written.get('instar')}"
            )
        try:
            return Manifest.from_dict(values)
        except (KeyError, TypeError, ValueError) as error:
            raise NoRun(
                f"{self._manifest_path} is damaged ({type(error).__name__}: {error}); restore it, or start a new run"
            ) from None

    def write_manifest(self, manifest: Manifest) -> None:
        place_file(self._manifest_path, manifest.to_json().encode("utf-8"))

    # -- writing

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Only one process writes. The lock goes with its holder, however that ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(
                    f"another process is writing to {self.folder}; wait for it, or give another folder (`out`)"
                ) from None
            for left in self.folder.rglob(UNFINISHED):  # of a killed writer: nobody else writes here
                left.unlink(missing_ok=True)
            yield

    @contextmanager
    def judging_lock(self, judging: str) -> Iterator[None]:
        """Whoever judges waits here for another who judges the same: a viewer beside a run that goes on."""
        folder = self.folder / self.verdict_table(judging)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def append(self, table: str, frame: pl.DataFrame) -> None:
        """Commit a frame as a new part of a table."""
        if frame.is_empty():
            return
        parts = self._parts(table)
        number = max((last for _, last, _ in parts), default=-1) + 1
        self._write_part(table, number, number, frame)

    def _write_part(self, table: str, first: int, last: int, frame: pl.DataFrame | pl.LazyFrame) -> None:
        """A part of a frame; a lazy one is streamed, so that merging needs no more memory than a part."""
        write = frame.sink_parquet if isinstance(frame, pl.LazyFrame) else frame.write_parquet
        place_file(
            self.folder / table / f"{first:010d}-{last:010d}.parquet",
            lambda temporary: write(temporary, compression="zstd", compression_level=1),
        )

    def merge(self, table: str, *, keep: pl.Expr | None = None, at_most: int = 200_000) -> None:
        """Merge small parts, and leave out the rows that are not to be kept.

        With `keep` all parts become one at once, so that the rows vanish in one rename.
        """
        parts = self._live(table)
        if keep is not None and parts:
            everything = pl.concat([pl.scan_parquet(path, glob=False) for _, _, path in parts], how="diagonal")
            if everything.select((~keep).any()).collect().item():
                # one number more than there is, so that the new part wins over all others even if it replaces one
                self._write_part(table, parts[0][0], parts[-1][1] + 1, everything.filter(keep))
        elif len(parts) > 1:
            for run in _small_runs(parts, at_most):
                if len(run) > 1:
                    merged = pl.concat([pl.scan_parquet(path, glob=False) for _, _, path in run], how="diagonal")
                    self._write_part(table, run[0][0], run[-1][1], merged)
        for _, _, path in self._superseded(table):
            path.unlink(missing_ok=True)

    def put_blob(self, content_hash: str, data: bytes) -> None:
        """Store bytes once, by the hash of their content."""
        path = self._blob_path(content_hash)
        if not path.exists():
            place_file(path, data)

    def blob(self, content_hash: str) -> bytes:
        return self._blob_path(content_hash).read_bytes()

    def _blob_path(self, content_hash: str) -> Path:
        """A hash from a table is no path: `../..` leads nowhere."""
        if not re.fullmatch("[0-9a-f]+", content_hash):
            raise ValueError(f"{self.folder} holds no blob {content_hash!r}: that is no hash of its content")
        return self.folder / "blobs" / content_hash[:2] / content_hash

    # -- reading

    def _parts(self, table: str) -> list[tuple[int, int, Path]]:
        folder = self.folder / table
        parts = [
            (int(m[1]), int(m[2]), path)
            for path in (folder.iterdir() if folder.is_dir() else ())
            if (m := _PART.fullmatch(path.name))
        ]
        return sorted(parts, key=lambda part: (part[0], -part[1]))

    def _live(self, table: str) -> list[tuple[int, int, Path]]:
        live: list[tuple[int, int, Path]] = []
        for part in self._parts(table):
            if not live or part[1] > live[-1][1]:
                live.append(part)
        return live

    def _superseded(self, table: str) -> list[tuple[int, int, Path]]:
        live = {path for _, _, path in self._live(table)}
        return [part for part in self._parts(table) if part[2] not in live]

    def state(self, table: str) -> tuple[str, ...]:
        """The names of a table's parts: equal states hold equal rows."""
        return tuple(path.name for _, _, path in self._live(table))

    def scan(self, table: str, schema: Schema) -> pl.LazyFrame:
        """A table, lazily; empty but typed where nothing is committed yet."""
        parts = [path for _, _, path in self._live(table)]
        if not parts:
            return pl.LazyFrame(schema=dict(schema))
        return pl.concat([pl.scan_parquet(path, glob=False) for path in parts], how="diagonal")

    def read(
        self,
        table: str,
        schema: Schema,
        columns: Sequence[str] | None = None,
        where: pl.Expr | None = None,
        query: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
    ) -> pl.DataFrame:
        """A table's rows, or what a query makes of them. A part merged away while it was read is looked up again."""
        for attempt in range(5):
            try:
                lazy = self.scan(table, schema)
                lazy = lazy if where is None else lazy.filter(where)
                lazy = lazy if columns is None else lazy.select(columns)
                return lazy.collect() if query is None else query(lazy).collect(engine="streaming")
            except (FileNotFoundError, pl.exceptions.ComputeError):
                if attempt == 4:
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
        folder = self.folder / "verdicts"
        return sorted(p.parent.name for p in folder.glob("*/judging.json"))

    def judging_info(self, judging: str) -> JudgingInfo | None:
        """What is known of a judging's verdicts; None before there are any, or where its file is damaged."""
        path = self.folder / self.verdict_table(judging) / "judging.json"
        with suppress(FileNotFoundError, KeyError, TypeError, ValueError):
            return JudgingInfo.from_dict(json.loads(path.read_text("utf-8")))
        return None

    def replace_verdicts(self, judging: str, frames: Iterator[pl.DataFrame], info: JudgingInfo) -> None:
        """New verdicts for a judging, all at once: each part supersedes, the last write says they are whole."""
        table = self.verdict_table(judging)
        start = max((last for _, last, _ in self._parts(table)), default=-1) + 1
        number = start
        for frame in frames:
            self._write_part(table, number, number, frame)
            number += 1
        info = replace(info, parts=(start, number))
        place_file(self.folder / table / "judging.json", info.to_json().encode("utf-8"))
        for first, _, old in self._parts(table):
            if not start <= first < number:
                old.unlink(missing_ok=True)

    def verdict_parts(self, judging: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """A judging's verdicts, part by part: what does not fit into memory at once. Columns may be missing."""
        info = self.judging_info(judging)
        if info is None:
            raise NoRun(f"{self.folder} has no judging {judging!r}; it has {', '.join(self.judgings()) or 'none'}")
        first, end = info.parts
        for start, _, path in self._parts(self.verdict_table(judging)):
            if first <= start < end:
                there = pl.read_parquet_schema(path)
                yield pl.read_parquet(path, columns=[name for name in columns or there if name in there])

    def verdicts(self, judging: str) -> pl.DataFrame:
        return pl.concat([*self.verdict_parts(judging)] or [pl.DataFrame(schema=VERDICT)], how="diagonal")


def _small_runs(parts: list[tuple[int, int, Path]], at_most: int) -> list[list[tuple[int, int, Path]]]:
    """Neighbouring parts that together stay small enough to be one."""
    runs: list[list[tuple[int, int, Path]]] = [[]]
    size = 0
    for part in parts:
        rows = pl.scan_parquet(part[2], glob=False).select(pl.len()).collect().item()
        if runs[-1] and size + rows > at_most:
            runs.append([])
            size = 0
        runs[-1].append(part)
        size += rows
    return runs
