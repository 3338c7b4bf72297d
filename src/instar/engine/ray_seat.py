"""What runs on a node of a Ray cluster: a seat, which starts a process there and passes on what it hears and says."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import MSG_DONTWAIT

import xxhash

from instar.engine.manifest import packages
from instar.engine.messages import Setup
from instar.engine.process import spawned
from instar.reading import BROUGHT, brought_name
from instar.systems.child import end_guarded, ending, last_words

_MOST_BYTES = 4 << 20
"""As much of what a process says is passed on at once."""
TOGETHER = 0.005
"""Seconds in which what a process says is passed on together: a call costs more than many a prediction."""
_FOLDER = "instar-brought-"
MODELS = "INSTAR_MODELS"
"""The environment variable that says where models are. It is for nodes that have that folder, too."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what a file is known on two machines that share a disk: nobody has to read it."""

    size: int
    changed: int
    number: int

    @classmethod
    def of(cls, path: str | Path) -> Stamp | None:
        """That of a regular file; None where there is none."""
        try:
            status = Path(path).stat()
        except (OSError, ValueError):
            return None
        return cls(status.st_size, status.st_mtime_ns, status.st_ino) if stat.S_ISREG(status.st_mode) else None


Versions = Mapping[str, str]


def versions() -> Versions:
    """The versions of all that may change an answer, Instar's own among them."""
    from instar import __version__

    return {"instar": __version__, **packages()}


def content_hash(path: str | Path) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and its last words."""

    words: str


class Place:
    """One process on a node: the same as on the coordinator's own machine.

    The system lives in a process of its own here, too. It may hang, die or write where it should not, and somebody is
    still there to say what became of it.
    """

    def __init__(self, path: tuple[str, ...], folder: str, environment: Mapping[str, str]) -> None:
        ray_own = str(Path(sys.modules["ray"].__file__ or "").parent)
        usual = [entry for entry in sys.path if entry not in path and not entry.startswith(ray_own)]
        sys.path[:] = [*(entry for entry in path if Path(entry).exists()), *usual]
        self._folder = folder if Path(folder).is_dir() else str(Path.cwd())
        self._brought, self._lock = _new_folder()
        kept = {name: value for name, value in environment.items() if name != MODELS or Path(value).is_dir()}
        setup = Setup(None, {}, environment={**kept, BROUGHT: str(self._brought)})
        self._program, self._line, self._log = spawned(setup, self._folder)

    def take(self, content: bytes) -> None:
        """Something for the process to hear."""
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; what it said last is heard
            self._line.sendall(content)

    def hear(self) -> bytes | Ended:
        """What the process says next; how it ended, where nothing more will come."""
        with suppress(ConnectionResetError):
            if content := self._line.recv(_MOST_BYTES):
                time.sleep(TOGETHER)
                with suppress(BlockingIOError):
                    while len(content) < _MOST_BYTES and (more := self._line.recv(_MOST_BYTES, MSG_DONTWAIT)):
                        content += more
                return content
        end = Ended(f"({ending(self._program.wait())}){last_words(self._log)}")
        shutil.rmtree(self._brought, ignore_errors=True)
        os.close(self._lock)
        self._line.close()
        self._log.close()
        return end

    def end(self) -> None:
        """End the process, with all that its system has started."""
        end_guarded(self._program)

    # -- inputs

    def offer(self, content: bytes, path: str, stamp: Stamp) -> bool | str:
        """Something for the process to hear about a file, where that is here; what `sees` says."""
        seen = self.sees(path, stamp)
        if seen is True:
            self.take(content)
        return seen

    def sees(self, path: str, stamp: Stamp) -> bool | str:
        """Whether the file is here; the hash of one that may be it, by its size."""
        if (self._brought / brought_name(path)).exists():
            return True
        place = Path(self._folder, path)
        here = Stamp.of(place)
        if here is None or here.size != stamp.size:
            return False
        try:
            return here == stamp or content_hash(place)
        except OSError:
            return False

    def bring(self, path: str, content: bytes, start: int, stamp: Stamp, whole: bool) -> None:
        """A piece of a file that is not here, the last one where it is then whole."""
        place = self._brought / brought_name(path)
        unfinished = place.with_suffix(".part")
        with unfinished.open("ab" if start else "wb") as file:
            file.write(content)
        if whole:
            os.utime(unfinished, ns=(stamp.changed, stamp.changed))  # what is kept open is known by it
            unfinished.rename(place)

    def drop(self, path: str) -> None:
        """A file that was brought is not needed any more."""
        (self._brought / brought_name(path)).unlink(missing_ok=True)


class Seat:
    """An actor: it holds a place on a node for one process after the other. What is meant for one that has ended is
    nothing to the next."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}

    def start(self, turn: int, path: tuple[str, ...], folder: str, environment: Mapping[str, str]) -> Versions:
        """Start a process; returns what this node has installed."""
        self._places[turn] = Place(path, folder, environment)
        return versions()

    def ask(self, turn: int, method: str, *arguments: object) -> object:
        place = self._places.get(turn)
        answer = None if place is None else getattr(place, method)(*arguments)
        if isinstance(answer, Ended):
            del self._places[turn]
        return answer


def _new_folder() -> tuple[Path, int]:
    """A folder for files that are brought, with its lock. Those of seats that were killed are deleted."""
    for other in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with suppress(OSError):  # somebody has it, or it is another user's
            lock = _locked(other)
            shutil.rmtree(other, ignore_errors=True)
            os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    return folder, _locked(folder)


def _locked(folder: Path) -> int:
    """The lock of a folder, which ends with this process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
