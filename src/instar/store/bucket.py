"""A run in a bucket: the same files under the same names, and a copy on this disk of those that never change.

A part or a blob is named for its content. It is written here first and then put as a whole, once; readers bring those
that they do not have. Files that are replaced are never kept: they are asked for anew. What the bucket lists is the
run; a part that is here alone was not committed.
"""

from __future__ import annotations

import re
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import xxhash

from instar.files import cache_folder, place_file
from instar.remote import Address, Advisory, Changed, Missing, Objects, Version, bucket_and_key, objects_in
from instar.store.folder import Folder, Gone
from instar.store.lease import Lease
from instar.store.parts import Part, parts_named

FRESH = 2.0
"""Seconds for which what a bucket said is not asked again, so that a command does not ask at every turn."""
AT_ONCE = 8
_PROBE = ".conditional-writes"


class _Known(NamedTuple):
    """A file that is replaced, as it was when it was last asked for."""

    content: bytes
    version: Version
    when: float


def bucket_at(address: str) -> Bucket:
    """The run at an address; all who read or write it in this process share what is known of it."""
    bucket, key = bucket_and_key(address)
    if not key.strip("/"):
        raise ValueError(f"{address}: a run needs a name in its bucket, such as {address.rstrip('/')}/runs/first")
    return _shared(bucket, key.strip("/"), objects_in(bucket), cache_folder())


@lru_cache(maxsize=64)
def _shared(bucket: str, prefix: str, objects: Objects, cache: Path) -> Bucket:
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{bucket}/{prefix}")[-60:]
    name = f"{readable}-{xxhash.xxh3_64_hexdigest(f'{bucket}/{prefix}'.encode())}"
    return Bucket(Address(f"{bucket}/{prefix}"), prefix, objects, cache / "runs" / name)


class Bucket(Folder):
    """A run in a bucket, and the copy of its parts and blobs on this disk."""

    def __init__(self, name: Path, prefix: str, objects: Objects, copy: Path) -> None:
        super().__init__(copy)
        self.name = name
        self._prefix, self._objects = prefix, objects
        self._known: dict[str, _Known] = {}
        self._listed: dict[str, tuple[set[str], float]] = {}
        self._leases: dict[str, Lease] = {}
        self._conditional: bool | None = None
        self._blobs: set[str] = set()

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"

    def _fresh(self, name: str, when: float) -> bool:
        """Whoever holds the lock of a file is the only one who changes it."""
        lock = f"{name.rpartition('/')[0]}/lock" if name.startswith("verdicts/") else "lock"
        return lock in self._leases or time.monotonic() - when < FRESH

    # -- files that are replaced

    def content(self, name: str) -> bytes:
        known = self._known.get(name)
        if known is None or not self._fresh(name, known.when):
            self._known.pop(name, None)
            content, version = self._objects.get(self._key(name))
            known = self._known[name] = _Known(content, version, time.monotonic())
        return known.content

    def replace(self, name: str, content: bytes) -> None:
        self.refuse_gone()
        known = self._known.pop(name, None)
        over = known.version if known else self._objects.version(self._key(name)) if self._conditional else None
        try:
            version = self._objects.put(
                self._key(name),
                content,
                over=over if self._conditional else None,
                anew=bool(self._conditional) and over is None,
            )
        except Changed:
            there = self._objects.get(self._key(name))
            if there.data != content:  # else it is our own write, whose answer was lost
                raise Gone(
                    f"{self.name}/{name} was written by another process meanwhile; nothing more is written. Give the "
                    "same command again when the other one is done"
                ) from None
            version = there.version
        self._known[name] = _Known(content, version, time.monotonic())

    def judgings(self) -> list[str]:
        ending = "/judging.json"
        names = (name.removeprefix(self._key("verdicts/")) for name in self._objects.names(self._key("verdicts/")))
        return sorted(name.removesuffix(ending) for name in names if name.endswith(ending) and name.count("/") == 1)

    # -- parts and blobs

    def parts(self, table: str) -> list[Part]:
        return parts_named(self.inside(table), self._names(table))

    def _names(self, table: str) -> set[str]:
        names, when = self._listed.get(table, (set[str](), -FRESH))
        if table not in self._listed or not self._fresh(f"{table}/", when):
            prefix = self._key(f"{table}/")
            names = {name.removeprefix(prefix) for name in self._objects.names(prefix)}
            self._listed[table] = names, time.monotonic()
        return names

    def add(self, table: str, first: int, last: int, write: Callable[[Path], object]) -> None:
        path = self._placed(table, first, last, write)
        self.refuse_gone()  # as late as can be
        self._objects.put(self._key(f"{table}/{path.name}"), path)
        self._names(table).add(path.name)

    def remove(self, table: str, part: Part) -> None:
        self._objects.delete(self._key(f"{table}/{part.path.name}"))
        self._names(table).discard(part.path.name)
        super().remove(table, part)

    def bring(self, table: str, parts: Iterable[Part]) -> None:
        """Raises FileNotFoundError for a part that is gone: it was merged into another, which the next listing has."""
        absent = [part for part in parts if not part.path.exists()]
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for _ in pool.map(lambda part: self._bring_one(f"{table}/{part.path.name}", part.path), absent):
                    pass
        except Missing:
            self._listed.pop(table, None)
            self._known.pop(f"{table}/judging.json", None)
            raise

    def _bring_one(self, name: str, path: Path) -> None:
        self._make_copy()
        place_file(path, lambda temporary: self._objects.fetch(self._key(name), temporary))

    def _make_copy(self) -> None:
        """A run may be nobody else's business."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)

    def bring_again(self, table: str, part: Part) -> bool:
        part.path.unlink(missing_ok=True)
        self.bring(table, [part])
        return True

    def add_blob(self, name: str, content: bytes) -> None:
        self.refuse_gone()
        if name not in self._blobs:
            self._objects.put(self._key(name), content)
            self._blobs.add(name)

    def blob(self, name: str) -> Path:
        path = self.inside(name)
        content = path.read_bytes() if path.exists() else b""
        if xxhash.xxh3_128_hexdigest(content) != path.name:  # not here, or not what was written
            self._bring_one(name, path)
        return path

    def set_aside(self, name: str, place: str) -> bool:
        self._known.pop(name, None)
        self._listed.clear()
        (self.path / name).unlink(missing_ok=True)
        try:
            content = self._objects.get(self._key(name)).data
        except Missing:
            return False
        self._objects.put(self._key(place), content)
        self._objects.delete(self._key(name))
        return True

    # -- locks

    def clear(self) -> None:
        """Parts that were written here and did not reach the bucket."""
        for table in (folder for folder in self.path.iterdir() if folder.is_dir() and not folder.is_symlink()):
            if table.name in ("blobs", "verdicts"):
                continue
            for path in table.glob("*.parquet"):
                if path.name not in self._names(table.name):
                    path.unlink(missing_ok=True)

    @contextmanager
    def locked(self, name: str, *, wait: bool) -> Iterator[None]:
        self._make_copy()
        with super().locked(name, wait=wait):
            lease = Lease(
                self._objects, self._key(name), str(self.name), self._disk(), conditional=self._has_conditions()
            )
            lease.take(wait=wait)
            self._known.clear()
            self._listed.clear()
            self._leases[name] = lease
            try:
                yield
            finally:
                del self._leases[name]
                lease.release()

    def refuse_gone(self) -> None:
        super().refuse_gone()
        for lease in list(self._leases.values()):
            lease.check()

    def _disk(self) -> str:
        """What this copy is called in a lock; its own lock is held."""
        path = self.inside(".copy")
        if not path.exists():
            place_file(path, uuid.uuid4().hex.encode())
        return path.read_text("utf-8")

    def _has_conditions(self) -> bool:
        """Whether the store writes an object only where there is none, if it is told to: it is tried."""
        if self._conditional is None:
            self._conditional = self._refuses_second() or self._refuses_second()
            if not self._conditional:
                warnings.warn(
                    Advisory(
                        f"{self.name}: its store does not keep two processes from writing one object, so that the lock "
                        "of the run is advisory: let only one process write to it"
                    ),
                    stacklevel=4,
                )
        return self._conditional

    def _refuses_second(self) -> bool:
        try:
            self._objects.put(self._key(_PROBE), b"This object says whether its store keeps conditions.", anew=True)
        except Changed:
            return True
        return False
