"""Names from elsewhere: entry points of installed packages, and `package.module:object`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from instar.spelling import unknown

__all__ = ["find", "from_entry_points", "loaded_object"]

T = TypeVar("T")


def loaded_object(name: str) -> Any:
    """The object that `package.module:object` names. The current folder can be imported from, as by `python -m`."""
    module_name, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise ModuleNotFoundError(f"{name}: there is no module {error.name!r} in {here} or on the Python path; "
                                      "it is written package.module:object") from None
        raise
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise unknown(f"object in {module_name}", part, [n for n in dir(found) if not n.startswith("_")])
        found = getattr(found, part)
    return found


@cache
def _entries(group: str) -> Mapping[str, Any]:
    return {entry.name: entry for entry in entry_points(group=group)}


def from_entry_points(group: str, kind: type[T]) -> dict[str, T]:
    """What installed packages registered under a group, loaded and checked."""
    found: dict[str, T] = {}
    for name, entry in _entries(group).items():
        thing = entry.load()
        if not isinstance(thing, kind):
            raise TypeError(f"entry point {name!r} of {group} is a {type(thing).__name__}, not a {kind.__name__}")
        found[name] = thing
    return found


def find(what: str, name: str, built_in: Mapping[str, T], group: str, kind: type[T], *, see: str = "") -> T:
    """A built-in by name, else an installed package's, else the error that names the nearest."""
    if name in built_in:
        return built_in[name]
    if name in _entries(group):
        return from_entry_points(group, kind)[name]
    raise unknown(what, name, [*built_in, *_entries(group)], see=see)
