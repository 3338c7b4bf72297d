"""Parts of a table: named for the range of numbers they hold and for the checksum of their content."""

from __future__ import annotations

import hashlib
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
import xxhash

from instar.outputs import Schema

_NAME = re.compile(r"(\d{10})-(\d{10})(?:\.([0-9a-f]{16}))?\.parquet")
GROUP_BYTES = 8 << 20
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What polars raises for a file that is no Parquet, or half of one."""


_IRREGULAR = "it is not a regular file"


class Damaged(OSError):
    """A stored file is not what was written: which, why, and what to do."""

    def __init__(self, run: Path, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(
            f"{path} is damaged: {why}. `instar repair-run {shlex.quote(str(run))}` sets it aside and says what it "
            "held; the next run makes only that again"
        )


class Part(NamedTuple):
    """A part of a table. `checksum` is empty where a format without checksums wrote it."""

    first: int
    last: int
    checksum: str
    path: Path


class Rows(NamedTuple):
    """Rows of some cases: ranges of a table's rows in which all of them are, each by the number of its part, its first
    row and how many. They hold while the table's parts are those of `state`."""

    cases: pl.Series
    state: tuple[str, ...]
    schema: Schema
    ranges: Sequence[tuple[int, int, int]]


def parts_in(folder: Path) -> list[Part]:
    """The parts in a folder, in order; the larger one first where several begin with one number."""
    return parts_named(folder, (path.name for path in (folder.iterdir() if folder.is_dir() else ())))


def parts_named(folder: Path, names: Iterable[str]) -> list[Part]:
    """Those of some names of files that are parts, as parts in a folder."""
    parts = [
        Part(int(name[1]), int(name[2]), name[3] or "", folder / file)
        for file in names
        if (name := _NAME.fullmatch(file))
    ]
    return sorted(parts, key=lambda part: (part.first, -part.last, part.checksum))


def live_parts(parts: Iterable[Part]) -> list[Part]:
    """Return the parts that count: one whose range lies inside a larger one has been merged into that."""
    live: list[Part] = []
    for part in parts:
        if not live or part.last > live[-1].last or part[:2] == live[-1][:2]:
            live.append(part)
    return live


def overlapping(live: Sequence[Part]) -> list[list[Part]]:
    """Return the parts whose ranges overlap, in groups. One process numbers them one after the other, so that another
    one wrote some of them."""
    groups: list[list[Part]] = []
    for part in live:
        if groups and part.first <= groups[-1][-1].last:
            groups[-1].append(part)
        else:
            groups.append([part])
    return [group for group in groups if len(group) > 1]


def refuse_overlapping(run: Path, live: Sequence[Part]) -> None:
    """Raise Damaged, which names both, if the ranges of two parts overlap."""
    for first, second, *_ in overlapping(live):
        raise Damaged(run, first.path, overlap_words(second))


def overlap_words(other: Part) -> str:
    return f"two processes wrote to the run, and {other.path.name} is of the same rows"


def part_name(first: int, last: int, path: Path) -> str:
    """What a part with this content is called."""
    return f"{first:010d}-{last:010d}.{_checksum(path)}.parquet"


def renumbered_name(part: Part, number: int) -> str:
    """What a part with the same content and another number is called."""
    return re.sub(r"^\d{10}-\d{10}", f"{number:010d}-{number:010d}", part.path.name)


def _checksum(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, xxhash.xxh3_64).hexdigest()


_checked: dict[Path, tuple[int, int, int]] = {}
"""Parts that were whole when they were read, by what changes when a file does: nobody reads a part twice for that."""


class TableSchema(NamedTuple):
    """The columns of a table's parts by their types: those that all have and those that some have. A later version may
    add others, of plain types."""

    columns: Schema
    optional: Schema

    def fault_in(self, found: Schema) -> str:
        """Describe the first column that is missing or of a wrong type. Returns "" if there is none."""
        expected = {**self.optional, **self.columns}
        for name in dict.fromkeys([*self.columns, *found]):
            if name not in found:
                return f"it has no column {name!r} ({_type_text(expected[name])})"
            if name in expected and found[name] != expected[name]:
                return f"its column {name!r} is {found[name]}, expected {_type_text(expected[name])}"
            if name not in expected and found[name] not in _PLAIN:
                return f"it has an unknown column {name!r} ({found[name]})"
        return ""


_PLAIN = (pl.Boolean, pl.Int32, pl.Int64, pl.UInt32, pl.Float32, pl.Float64, pl.String, pl.Null)


def _type_text(kind: pl.DataType | type[pl.DataType]) -> str:
    return str(kind() if isinstance(kind, type) else kind)


def check_part(run: Path, part: Part, schema: Callable[[], TableSchema | None]) -> None:
    """Raises Damaged for a part that is not what was written, and FileNotFoundError for one that is gone."""
    status = part.path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise Damaged(run, part.path, _IRREGULAR)
    state = (status.st_ino, status.st_mtime_ns, status.st_size)
    if _checked.get(part.path) != state:
        if why := _footer_fault(part, schema()):
            raise Damaged(run, part.path, why)
        _checked[part.path] = state


def _footer_fault(part: Part, schema: TableSchema | None) -> str:
    """Check what costs little: the checksum and the columns."""
    if part.checksum and _checksum(part.path) != part.checksum:
        return "its content does not fit the checksum in its name"
    try:
        return "" if schema is None else schema.fault_in(pl.read_parquet_schema(part.path))
    except UNREADABLE as error:
        return str(error).splitlines()[0]


def fault_of(part: Part, schema: TableSchema | None) -> str:
    """What is wrong with a part, read from beginning to end; empty where nothing is."""
    if not _regular(part):
        return _IRREGULAR
    try:
        if why := _footer_fault(part, schema):
            return why
        pl.read_parquet(part.path, glob=False)
    except OSError as error:
        return error.strerror or str(error)
    except UNREADABLE as error:
        return str(error).splitlines()[0]
    return ""


def refuse_damaged(run: Path, parts: Iterable[Part], schema: TableSchema | None) -> None:
    """Raises Damaged for the first part that cannot be read: one of a format without checksums."""
    for part in parts:
        if why := fault_of(part, schema):
            raise Damaged(run, part.path, why) from None


def _regular(part: Part) -> bool:
    """Whether a part is a file that is here, or is not there at all: a link leads elsewhere, a pipe is waited for."""
    return not part.path.is_symlink() and (part.path.is_file() or not part.path.exists())


def rows_in(part: Part) -> int | None:
    """How many rows a part has, by what is left of it; None where nothing says it."""
    if not _regular(part):
        return None
    try:
        return int(pl.scan_parquet(part.path, glob=False).select(pl.len()).collect().item())
    except (OSError, *UNREADABLE):
        return None


def names_of(parts: Iterable[Part]) -> tuple[str, ...]:
    """What says which rows a table has: equal names hold equal rows."""
    return tuple(part.path.name for part in parts)


def group_rows(frame: pl.DataFrame | pl.LazyFrame) -> int:
    """How many rows a reader decodes at a time: some megabytes, as the first rows tell, so that a few cases of a large
    part cost no more than themselves."""
    first = frame.head(100).collect() if isinstance(frame, pl.LazyFrame) else frame
    return max(64, min(8192, GROUP_BYTES * len(first) // max(1, int(first.estimated_size()))))


def small_runs(parts: list[Part], at_most: int) -> list[list[Part]]:
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
