"""Whose code it is: the user's own, or that of Python, a package or Instar; and where in it something failed."""

from __future__ import annotations

import os
import site
import sysconfig
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class BrokenModule(ImportError):
    """A module of the user's that cannot be imported; the message says where in it, and why."""


@cache
def _installed() -> tuple[str, ...]:
    """Where Python, installed packages and Instar are."""
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    places += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parent)]
    return tuple(f"{path}{os.sep}" for place in places for path in (place, os.path.realpath(place)))


def is_own(path: str) -> bool:
    """Whether a file is the user's own: neither Python's, nor installed (also for another Python), nor Instar's."""
    paths = (path, os.path.realpath(path))
    return not any(one.startswith(_installed()) or any(name in one for name in _PACKAGES) for one in paths)


def failed_at(error: BaseException) -> traceback.FrameSummary | None:
    """Where in the user's own code an error was raised, or was let through by a library; None where it was not there.

    Code without a file, as in a notebook's cell, counts where there is no other.
    """
    frames = zip(traceback.extract_tb(error.__traceback__), traceback.walk_tb(error.__traceback__), strict=True)
    own = [frame for frame, (running, _) in frames if _is_own_code(frame.filename, running.f_globals)]
    return next((frame for frame in reversed(own) if not frame.filename.startswith("<")), own[-1] if own else None)


def _is_own_code(filename: str, names: Mapping[str, object]) -> bool:
    """Whether a frame is in the user's own code. Code without a file is whose module it runs in: a dataclass's
    `__init__` is made in memory, also that of an installed package."""
    if not filename.startswith("<"):
        return is_own(filename)
    module = names.get("__file__")
    return not filename.startswith("<frozen ") and (not isinstance(module, str) or is_own(module))


def place_of(frame: traceback.FrameSummary) -> str:
    """A file and a line, as short as an editor understands it; a function and a line where there is no file."""
    if Path(frame.filename).is_file():
        return f"{Path(frame.filename).name}:{frame.lineno}"
    return f"{frame.name}, line {frame.lineno}"


def broken_module(module_name: str, error: BaseException) -> BrokenModule:
    """What kept a module of the user's from being imported, in its own file and line; none of our frames."""
    why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        path, number, line = error.filename, error.lineno or 0, error.text or ""
        why = f"{type(error).__name__}: {error.msg}"
    elif frame := failed_at(error):
        path, number, line = frame.filename, frame.lineno or 0, frame.line or ""
    else:
        return BrokenModule(f"{module_name} cannot be imported: {why}")
    if isinstance(error, SystemExit):
        why = "it ends Python when it is imported; put what a script does under `if __name__ == '__main__':`"
    shown = f", in `{line.strip()}`" if line.strip() else ""
    return BrokenModule(f"{module_name} cannot be imported: {path}, line {number}: {why}{shown}")
