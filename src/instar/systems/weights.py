"""Files that systems are loaded from: what is hashed is what was loaded, also where a file is edited meanwhile."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import xxhash

from instar.systems.identity import Identity, note
from instar.systems.sources import LOADED
from instar.systems.system import hash_file

T = TypeVar("T")


class Edited(ValueError):
    """A file that changed while a model was loaded from it: nobody can tell what was loaded."""


class Files:
    """Regular files, hashed before anybody reads them; the other paths are left out."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._states = {path: state for path in paths if (state := _state(path))}
        self.hashes = {path: _hash(path) for path in self._states}

    def changed(self) -> str:
        """A file whose content changed since. Large ones are read again only where they were touched."""
        for path, before in self._states.items():
            now = _state(path)
            if now != before:
                if not now or _hash(path) != self.hashes[path]:
                    return path
                self._states[path] = now
        return ""


def loaded_from(paths: Iterable[Path], load: Callable[[], T]) -> tuple[T, list[str]]:
    """What a library loads from files that it opens itself, and their hashes. Raises Edited where one changed."""
    files = Files(map(str, paths))
    loaded = load()
    if changed := files.changed():
        raise Edited(f"{changed} changed while it was loaded; start again")
    return loaded, list(files.hashes.values())


def content_of(path: Path) -> tuple[bytes, str]:
    """The content of a file for a library that takes bytes, and its hash."""
    content = path.read_bytes()
    LOADED[str(path)] = digest = str(xxhash.xxh3_128_hexdigest(content))
    note(Identity({str(path): digest}, {str(path): len(content)}))
    return content, digest


def _state(path: str) -> tuple[int, ...]:
    with suppress(OSError, ValueError):  # a word that is no path
        state = Path(path).stat()
        if stat.S_ISREG(state.st_mode):
            return (state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino)
    return ()


def _hash(path: str) -> str:
    with suppress(OSError):  # a program that may be run but not read
        return hash_file(path)
    return ""
