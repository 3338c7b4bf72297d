"""Files that are there whole or not at all, and texts that a file can hold."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from instar.secrets import plain_address

_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.part")
_LONE = re.compile("[\ud800-\udfff]")
_URI = "file://"
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ROOM = bytes(1 << 20)
"""What a disk has room for that is not full."""


def place_file(
    path: Path, content: bytes | Callable[[Path], object], *, name: Callable[[Path], str] | None = None
) -> Path:
    """Write beside, make durable, rename into place; the folder is made where it is missing.

    Instead of its bytes a file may be given by a function that writes it where it is told to. The unfinished file has
    a name of its own: two writers of one file do not meet, and no name gets longer than file systems allow. `name` says
    by the finished file what it is called instead. Where it cannot be written, the OSError names the file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{uuid.uuid4().hex}.part")
        try:
            if isinstance(content, bytes):
                temporary.write_bytes(content)
            else:
                content(temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            path = path if name is None else path.with_name(name(temporary))
            temporary.replace(path)
        except BaseException as error:
            number = _system_error(error, temporary)
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            if number is not None:
                raise OSError(number, os.strerror(number)) from error
            raise
    except OSError as error:
        number = error.errno
        if number is None:
            raise
        raise OSError(
            number,
            f"it was not written: {os.strerror(number)}. What was written before is whole; free some space or mend the "
            "folder, and the same command goes on from there",
            str(path),
        ) from error
    return path


def _system_error(error: BaseException, unfinished: Path) -> int | None:
    """The number of the system's error behind another one. Polars says it in words, or, where the disk was full just
    before the end of a file, not at all: then the unfinished file does not grow any more."""
    if isinstance(error, OSError) or not isinstance(error, Exception):
        return None
    if number := _SYSTEM_ERROR.search(str(error)):
        return int(number[1])
    try:
        with unfinished.open("ab") as file:
            file.write(_ROOM)
            file.flush()
            os.fsync(file.fileno())
    except OSError as full:
        return full.errno if full.errno in _FULL else None
    return None


def cache_folder() -> Path:
    """`instar` in the user's cache folder: what can be had again lies there."""
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "instar"


class Elsewhere(OSError):
    """A place in a folder of Instar's that leads out of it, or is no file."""


def inside(folder: Path, name: str) -> Path:
    """A place below a folder. Raises Elsewhere where it, or a folder on the way, is a link, a pipe or a device.

    A run folder or an export that somebody sent must not have us read or write elsewhere, nor wait for ever. The folder
    itself may be a link: the user named it.
    """
    path = folder
    for part in name.split("/"):
        if part in ("", ".", ".."):
            raise Elsewhere(f"{folder} names {name}, which lies elsewhere")
        path = path / part
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                what = "a link" if stat.S_ISLNK(mode) else "neither a folder nor a regular file"
                raise Elsewhere(
                    f"{path} is {what}: nothing of a run or an export is read or written there; put what it leads to "
                    "in its place, or delete it"
                )
    return path


def clear_unfinished(folders: Iterable[Path]) -> None:
    """Delete what killed writers of `place_file` left in these folders, by its name; nothing below them."""
    for folder in folders:
        for path in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
            if _UNFINISHED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)


def storable(text: str) -> str:
    r"""A text as a file can hold it: what is half of a pair in Unicode, and no character, is spelled out.

    The spelling is the same in plain text and inside JSON.

    >>> storable("caf\udce9")
    'caf<U+DCE9>'
    """
    return text if text.isascii() else _LONE.sub(lambda half: f"<U+{ord(half[0]):04X}>", text)


def path_text(path: str) -> str:
    r"""A path as a text that `path_of` makes the same path of. One that is no text (a name in Latin-1) is a URI.

    Of an address on the web its query is left out, and with it what opens the object for whoever knows it.

    >>> path_text("photos/ä.jpg"), path_text("photos/caf\udce9.jpg")
    ('photos/ä.jpg', 'file://photos/caf%E9.jpg')
    """
    if storable(path) == path and not path.startswith(_URI):
        return plain_address(path)
    try:
        return _URI + quote_from_bytes(os.fsencode(path))
    except UnicodeEncodeError:  # no file can be called that, so nobody will look for it
        return storable(path)


def path_of(text: str) -> str:
    r"""The path that `path_text` wrote down.

    >>> path_of("file://photos/caf%E9.jpg") == "photos/caf\udce9.jpg"
    True
    """
    return os.fsdecode(unquote_to_bytes(text.removeprefix(_URI))) if text.startswith(_URI) else text
