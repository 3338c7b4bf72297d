"""Merging runs: the parts of one become parts of another, and a new folder appears whole or not at all.

A part is linked, not copied, where both folders are on one disk: parts are never changed, so that neither folder
notices when the other one is deleted. Of a run in a bucket it is the copy on this disk that is linked. Only a part with
rows that are there already is written anew, without these.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import polars as pl

from instar.files import place_file
from instar.outputs import output_kind
from instar.remote import Unreachable
from instar.store.parts import Part, renumbered_name
from instar.store.store import NAMES, Store
from instar.store.tables import CASE, KEY, rows_frame

KEYS = {"cases": ("case",), "apart": ("hash",), "needs": ("case", "need"), "predictions": KEY}
"""What names a row of each table, in the order in which they are added: all that a prediction names is there first."""
NOT_COMPARED = ("path", "seconds")
"""Where an input lay and how long an answer took may differ between two rows of one key."""


class Different(ValueError):
    """A case has other rows in one run than in another."""


@contextmanager
def appearing(folder: Path) -> Iterator[Store]:
    """A run folder to write, which gets its name when all is written. What a killed one left is cleared by the next."""
    place = folder.resolve()
    hidden = Store(place.with_name(f".{place.name}.merging"))
    with hidden.lock():
        strangers = sorted(path.name for path in hidden.folder.iterdir() if path.name not in NAMES)
        if strangers:
            raise ValueError(f"{hidden.folder} is where a run is prepared, and it holds {strangers[0]}; move that away")
        for table in (*KEYS, "blobs"):
            shutil.rmtree(hidden.inside(table), ignore_errors=True)
        try:
            yield hidden
            hidden.folder.rename(place)
        except BaseException:
            shutil.rmtree(hidden.folder, ignore_errors=True)
            raise


class Joined:
    """A run folder that the rows of others are added to; the caller holds its lock.

    `truth` is the output kind of the cases' truth in all of them together.
    """

    def __init__(self, store: Store, truth: str | None) -> None:
        self.store = store
        self.truth_columns = (
            {f"truth_{name}": kind for name, kind in output_kind(truth).columns.items()} if truth else {}
        )
        self.checksums: dict[str, set[str]] = {}
        self.numbers: dict[str, int] = {}
        self.origins: dict[str, dict[str, Path]] = {}
        """The folder that each case, or each content kept apart, came from, by table."""
        for table, key in KEYS.items():
            parts = store.whole_parts(table)
            self.checksums[table] = {part.checksum for part in parts if part.checksum}
            self.numbers[table] = parts[-1].last + 1 if parts else 0
            self.origins[table] = dict.fromkeys(_anchors(parts, key[0]), store.folder)

    def add(self, source: Store) -> bool:
        """Add all that a run holds and this one does not; whether all of its cases are new here.

        Raises Different where both have a key with other rows.
        """
        with _unchanging(source):
            parts = {table: source.whole_parts(table) for table in KEYS}
            new = self.origins["cases"].keys().isdisjoint(_anchors(parts["cases"], "case"))
            for table in KEYS:
                self._add_table(source, table, parts[table])
        return new

    def _add_table(self, source: Store, table: str, parts: Sequence[Part]) -> None:
        checksums, origins = self.checksums[table], self.origins[table]
        fresh = [part for part in parts if part.checksum not in checksums]  # one that is there has the same rows
        if table == "needs":
            self._link_blobs(source, fresh)
        anchors = {part.path: _anchors([part], KEYS[table][0]) for part in fresh}
        known = {name for names in anchors.values() for name in names if name in origins}
        stored = self.store.read(table, {}, where=pl.col(KEYS[table][0]).is_in(list(known))) if known else None
        for part in fresh:
            self._add_part(source, table, part, None if known.isdisjoint(anchors[part.path]) else stored)
        checksums.update(part.checksum for part in fresh if part.checksum)
        for names in anchors.values():
            origins.update(dict.fromkeys(names - known, source.folder))

    def _add_part(self, source: Store, table: str, part: Part, stored: pl.DataFrame | None) -> None:
        """Add a part of a run, less the rows that are `stored` already, where it has cases of which there are some."""
        key = KEYS[table]
        widened = table == "cases" and self.truth_columns.keys() - pl.read_parquet_schema(part.path).keys()
        if stored is None and not widened:
            folder = self.store.inside(table)
            folder.mkdir(exist_ok=True)
            _link(part.path, folder / renumbered_name(part, self.numbers[table]))
            self.numbers[table] += 1
            return
        rows = pl.read_parquet(part.path, glob=False)
        if stored is not None:
            if table != "apart":  # the hash says what the content is
                self._refuse_different(source, table, rows, stored)
            rows = rows.join(stored, on=key, how="anti", maintain_order="left")
        if widened:  # as rows of cases without a truth are where others have one
            rows = rows_frame(rows.to_dicts(), {**CASE, **self.truth_columns})
        self.store.append(table, rows)
        self.numbers[table] += not rows.is_empty()

    def _link_blobs(self, source: Store, parts: Sequence[Part]) -> None:
        for name in _anchors(parts, "hash"):
            place = self.store.inside(self.store.blob_name(name))
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):  # a need whose content was lost is provided again
                    _link(source.place.blob(source.blob_name(name)), place)

    def _refuse_different(self, source: Store, table: str, rows: pl.DataFrame, stored: pl.DataFrame) -> None:
        key = KEYS[table]
        both = [one.join(other, on=key, how="semi").sort(key) for one, other in ((rows, stored), (stored, rows))]
        names = [name for name in rows.columns if name in stored.columns and name not in NOT_COMPARED]
        for name in names:
            here, there = both[0][name], both[1][name]
            if here.equals(there, null_equal=True):
                continue
            number = next(n for n in range(len(here)) if not here[n : n + 1].equals(there[n : n + 1], null_equal=True))
            row = both[0].row(number, named=True)
            case = row["case"]
            where = f"{self.origins[table][case]} and in {source.folder}"
            if name == "hash" and table == "cases":
                raise Different(
                    f"{case} is an input of {where}, and not the same one: its content differs. A case's id is its "
                    "path below the dataset's folder; put both datasets below one folder and run that, or merge others"
                )
            what = f"{row['follow_up']}, draw {row['draw']}, repeat {row['repeat']}" if "draw" in row else table
            raise Different(
                f"{case} is a case of {where}, and its rows differ ({what}: {name}). A case has one answer to each "
                "follow-up; leave out one of these runs"
            )


@contextmanager
def _unchanging(source: Store) -> Iterator[None]:
    """While a run is read, nobody writes to it. One that may only be read cannot be locked, and is taken as it is."""
    with ExitStack() as stack:
        try:
            stack.enter_context(source.lock())
        except Unreachable:
            pass  # a store that takes no writes; one that does not answer says so when the first part is read
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
        yield


def _anchors(parts: Sequence[Part], column: str) -> set[str]:
    """The different values of a column: cases, or hashes of contents."""
    names: set[str] = set()
    for part in parts:
        names.update(pl.read_parquet(part.path, columns=[column], glob=False)[column].drop_nulls().unique())
    return names


def _link(path: Path, place: Path) -> None:
    """One file in two places. Another disk, and a file system without links, get a copy."""
    try:
        os.link(path, place)
    except OSError:
        place_file(place, lambda temporary: shutil.copyfile(path, temporary))
