"""Where a run lies: a folder on a disk. What a bucket does in another way is in `bucket.py`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from instar.files import inside, place_file
from instar.remote import address_in, in_bucket
from instar.secrets import plain_address
from instar.store.parts import Part, part_name, parts_in


class Busy(RuntimeError):
    """Another process is writing to the run."""


class Gone(RuntimeError):
    """The run folder is not the one any more that is being written."""


def _leave_nothing(lock: Path, made: Iterable[Path]) -> None:
    """Take away a lock that is all there is in its folder, and the folders that were made for it."""
    with suppress(OSError):  # something else is there by now, or the folder was moved
        if [*lock.parent.iterdir()] == [lock]:
            lock.unlink()
            for folder in made:
                folder.rmdir()


class Folder:
    """A folder whose files are there whole or not at all. `name` is what the user calls it."""

    def __init__(self, path: Path) -> None:
        self.path = self.name = path
        self._locks: list[tuple[IO[str], Path]] = []

    def inside(self, name: str) -> Path:
        """A place in it; raises Elsewhere where that leads out of it."""
        return inside(self.path, name)

    # -- files that are replaced: the manifest, what is known of a judging

    def content(self, name: str) -> bytes:
        return self.inside(name).read_bytes()

    def replace(self, name: str, content: bytes) -> None:
        self.refuse_gone()
        place_file(self.inside(name), content)

    def instead(self, most: int = 8) -> str:
        """Which runs lie in folders of this one, where it holds none itself: whoever named it may have meant them."""
        runs = sorted(str(path.parent) for path in self.path.glob("*/manifest.json"))
        rest = f" and {len(runs) - most} more" if len(runs) > most else ""
        return f"folders in it do: {', '.join(runs[:most])}{rest}" if runs else ""

    def judgings(self) -> list[str]:
        return sorted(path.parent.name for path in self.inside("verdicts").glob("*/judging.json"))

    # -- parts and blobs, which are written once: their names say what they hold

    def parts(self, table: str) -> list[Part]:
        return parts_in(self.inside(table))

    def add(self, table: str, first: int, last: int, write: Callable[[Path], object]) -> None:
        self.refuse_gone()
        self._placed(table, first, last, write)

    def _placed(self, table: str, first: int, last: int, write: Callable[[Path], object]) -> Path:
        return place_file(
            self.inside(table) / f"{first:010d}-{last:010d}.parquet",
            write,
            name=lambda temporary: part_name(first, last, temporary),
        )

    def remove(self, table: str, part: Part) -> None:
        part.path.unlink(missing_ok=True)

    def bring(self, table: str, parts: Iterable[Part]) -> None:
        """See to it that parts can be read where they say they are."""

    def bring_again(self, table: str, part: Part) -> bool:
        """Whether a part that is not what was written was a copy, and there is a new one."""
        return False

    def add_blob(self, name: str, content: bytes) -> None:
        self.refuse_gone()
        path = self.inside(name)
        if not path.exists():
            place_file(path, content)

    def blob(self, name: str) -> Path:
        """Where a blob can be read."""
        return self.inside(name)

    def set_aside(self, name: str, place: str) -> bool:
        """Move a file to where nobody reads it; whether it was there."""
        if not os.path.lexists(self.path / name):
            return False
        path = self.inside(place)
        path.parent.mkdir(exist_ok=True)
        (self.path / name).replace(path)
        return True

    # -- locks

    def clear(self) -> None:
        """What a killed writer left besides unfinished files; its lock is ours now."""

    @contextmanager
    def locked(self, name: str, *, wait: bool) -> Iterator[None]:
        """Only one process writes. The lock goes with its holder, however that ends; where nothing was written, so do
        its file and the folders that were made for it."""
        path = self.inside(name)
        made = [path.parent, *path.parent.parents]
        made = [folder for folder in made if not folder.exists()]
        first = not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except OSError:
                raise Busy(
                    f"another process is writing to {self.name}; wait for it, or give another folder (`out`)"
                ) from None
            lock = (file, path)
            self._locks.append(lock)
            try:
                yield
            finally:
                self._locks.remove(lock)
                if first:
                    _leave_nothing(path, made)

    def refuse_gone(self) -> None:
        """Raises Gone where a lock is no longer where it was taken: a folder made anew would lack all the rest."""
        for file, path in list(self._locks):
            try:
                there = os.path.samestat(os.fstat(file.fileno()), path.stat())
            except FileNotFoundError:
                there = False
            if not there:
                raise Gone(
                    f"{self.name} was moved, deleted or replaced while it was written to; nothing more is written. "
                    "Put it back and give the same command again, or begin a new run in another folder (`out`)"
                )


def place_of(folder: str | Path) -> Folder:
    """Where a run lies: in a folder, or in a bucket."""
    address = address_in(folder)
    if address is None:
        return Folder(Path(folder))
    if not in_bucket(address):
        raise ValueError(f"{plain_address(address)}: a run lies in a folder, or in a bucket (s3://, gs://, az://)")
    from instar.store.bucket import bucket_at  # late: most runs lie on a disk

    return bucket_at(address)
