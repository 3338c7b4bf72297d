"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

UNFINISHED = ".*.part"
"""What the files of killed writers are called, as a glob pattern."""


def place_file(path: Path, content: bytes | Callable[[Path], object]) -> Path:
    """Write beside, make durable, rename into place; the folder is made where it is missing.

    Instead of its bytes a file may be given by a function that writes it where it is told to. The unfinished file has
    a name of its own: two writers of one file do not meet, and no name gets longer than file systems allow.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        if isinstance(content, bytes):
            temporary.write_bytes(content)
        else:
            content(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return path
