"""Input files, and objects at addresses: only regular ones are read, and none that is larger than allowed."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import xxhash

from instar.remote import TooLarge, Unreachable, address_in, object_bytes
from instar.secrets import plain_address

MAX_PIXELS = "INSTAR_MAX_PIXELS"
"""The environment variable that says how many pixels an image may have. Workers inherit it. Every message about what
was refused for it names it: a run that goes on with a higher limit asks that again."""
_VARIABLE = f"the environment variable {MAX_PIXELS}"
USUAL_PIXELS = 100_000_000
"""Far more than a camera takes; decoded, 0.3 GB in every worker. A few compressed bytes can claim to be more."""
MOST_BYTES = 1 << 32
"""Of a table or a file of annotations, the largest of which have a gigabyte or two."""


BROUGHT = "INSTAR_BROUGHT"
"""The environment variable that names the folder of files that were brought to this machine, for a worker that cannot
see them where they are."""


class Unreadable(ValueError):
    """An input that cannot be read; its message says which and why."""


def most_pixels() -> int:
    """How many pixels an image, a map or a frame may have, whether it is read or made."""
    text = os.environ.get(MAX_PIXELS, "").strip() or str(USUAL_PIXELS)
    if not text.isdecimal() or not 0 < len(text) < 19 or int(text) < 1:
        raise ValueError(f"{_VARIABLE} is {text[:40]!r}; it takes a whole number from 1")
    return int(text)


def too_many_pixels(width: int, height: int) -> str:
    """Why an image of a size is refused; empty where it is not."""
    most = most_pixels()
    if width * height <= most:
        return ""
    return f"{width:,} × {height:,} pixels; at most {most:,} are allowed ({_VARIABLE})"


def image_bytes(path: str | Path) -> bytes:
    """The content of an image's file: no image needs more than 8 bytes for each pixel it may have, and a header."""
    return file_bytes(path, 8 * most_pixels() + (1 << 20), limit=f" ({_VARIABLE})")


def file_bytes(path: str | Path, most: int = MOST_BYTES, *, start: int | None = None, limit: str = "") -> bytes:
    """The content of a regular file, or of the object at an address, of at most so many bytes; raises Unreadable with
    the path and the reason.

    With `start`, only so many bytes of its beginning. `limit` says who set the limit.
    """
    if (address := address_in(path)) is not None:
        return _object(address, most, limit)[:start]
    try:
        # A pipe or a device may never end, and opening a pipe waits for its other end.
        with os.fdopen(os.open(place_of(path), os.O_RDONLY | _NOT_WAITING), "rb") as file:
            size = _checked(path, os.fstat(file.fileno()), most, limit)
            content = file.read(size + 1 if start is None else start)
            # what grows while it is read, or does not know how large it is, is read to its end
            content += file.read(most + 1 - len(content)) if len(content) > size and start is None else b""
            if len(content) > most:
                raise Unreadable(f"{path}: more than {most:,} bytes{limit}")
            return content
    except OSError as error:
        reason = "not a regular file" if error.errno == errno.ENXIO else error.strerror or error  # a socket
        raise Unreadable(f"{path}: {reason}") from None
    except MemoryError:
        raise Unreadable(f"{path}: too large for memory") from None
    except ValueError as error:  # a NUL in the name
        raise error if isinstance(error, Unreadable) else Unreadable(f"{path!r}: {error}") from None


def _object(address: str, most: int, limit: str) -> bytes:
    try:
        return object_bytes(address, most)
    except TooLarge as error:
        raise Unreadable(f"{error}; at most {most:,} are read of such an object{limit}") from None
    except Unreachable as error:
        raise Unreadable(str(error)) from None
    except MemoryError:
        raise Unreadable(f"{plain_address(address)}: too large for memory") from None


_NOT_WAITING: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def brought_name(path: str | Path) -> str:
    """What the file of a path is called where it was brought to; its ending stays, by which libraries may know it."""
    return f"{xxhash.xxh3_128_hexdigest(os.fsencode(path))}{Path(path).suffix}"


def place_of(path: str | Path) -> str | Path:
    """Where the file of a path lies for this process: there, or where it was brought to."""
    folder = os.environ.get(BROUGHT)
    if not folder:
        return path
    brought = Path(folder, brought_name(path))
    return brought if brought.exists() else path


def file_text(path: str | Path, *, errors: str = "strict") -> str:
    """The text of a file in UTF-8, less a mark at its beginning that says so; its lines end as they are written."""
    return file_bytes(path).decode("utf-8-sig", errors)


def regular(path: str | Path) -> str:
    """The path of a regular file of no more bytes than are read, for libraries that open it by themselves."""
    try:
        _checked(path, Path(path).stat(), MOST_BYTES)
    except (OSError, ValueError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return str(path)


def _checked(path: str | Path, status: os.stat_result, most: int, limit: str = "") -> int:
    """How many bytes a regular file has; raises Unreadable where it is something else, or has too many."""
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{path}: not a regular file")
    if status.st_size > most:
        raise Unreadable(f"{path}: {status.st_size:,} bytes; at most {most:,} are read of such a file{limit}")
    return status.st_size
